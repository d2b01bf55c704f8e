"""How far a capture or a selection can be trusted: counts first, then warnings made from them."""

from __future__ import annotations

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CaptureQuality:
    """Counts made while ingesting one recording.

    ``lost_samples`` as the kernel reported them; ``complete`` .. ``no_user_stack`` count samples per ``StackState``;
    ``unmapped_frames``: addresses outside every mapping; ``skipped_records``: records of unknown type by number;
    ``is_unfinished``: the recorder did not end properly, the readable part was used; ``notes``: one line each, for anything
    else that a reader of the numbers must know.
    """

    samples: int = 0
    lost_samples: int = 0
    throttled: int = 0
    complete: int = 0
    gap_possible: int = 0
    rootless: int = 0
    truncated: int = 0
    no_user_stack: int = 0
    unmapped_frames: int = 0
    is_unfinished: bool = False
    skipped_records: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportWarning:
    """``code`` is stable and short ("lost-samples"); ``message`` says what, with figures; ``advice`` what to do."""

    code: str
    message: str
    advice: str = ""
