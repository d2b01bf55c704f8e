"""What is known of one run beside its samples: who, where, how, and what came out."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from profiler.model.quick_dataclass import dataclass


class RunMode(StrEnum):
    """PLAIN: without perf, for headline times.  PROFILED: under perf, for attribution.  IMPORTED: from a file."""

    PLAIN = "plain"
    PROFILED = "profiled"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """``session`` is one `record` or experiment; ``variant`` and ``condition`` ("" = none) make the arm; ``round`` counts from
    0 within the session; (session, host, round) is the block of a paired comparison; ``position`` is the run's place in the
    session's execution order.  ``instance``: the process that was watched, where several windows of it are runs; "" = the run
    is a process of its own.  ``is_whole_run``: it is one all the same, and ``instance`` is the node on which the program was
    run again and again: what they share is the node's luck."""

    session: str
    variant: str
    round: int
    mode: RunMode
    position: int = 0
    condition: str = ""
    instance: str = ""
    is_whole_run: bool = False

    @property
    def is_window(self) -> bool:
        """Whether it is a window of a process that went on: whoever watched decided how long it lasts."""
        return bool(self.instance) and not self.is_whole_run

    @property
    def arm(self) -> str:
        """The arm's label: the variant, and behind an @ the condition."""
        return f"{self.variant}@{self.condition}" if self.condition else self.variant


@dataclass(frozen=True, slots=True)
class RunKey:
    """A run in a store.  ``number`` counts the session's runs from 0 in the order in which they were added."""

    session: str
    number: int


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts that make two hosts comparable or not; empty string or 0 = unknown."""

    hostname: str = ""
    kernel: str = ""
    architecture: str = ""
    cpu: str = ""
    cpu_count: int = 0


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """The executable.  ``build_id`` lower-case hex.  ``debug_info``: "none", "line-tables", "full".  ``toolchain``: the
    producers named in the binary.  ``allocator``: "system", "jemalloc", "mimalloc", "tcmalloc".  ``mangling``: "none",
    "legacy", "v0", "itanium", "mixed".  ``frame_pointers``: True when its functions keep them, None = unknown."""

    path: str = ""
    build_id: str = ""
    size_bytes: int = 0
    debug_info: str = ""
    toolchain: str = ""
    allocator: str = ""
    mangling: str = ""
    frame_pointers: bool | None = None


@dataclass(frozen=True, slots=True)
class PerfSettings:
    """How perf was asked to record.  ``call_graph``: "fp", "dwarf", "lbr", "none"; of py-spy "python" or
    "python+native"; ``call_graph_reason`` says why "auto" chose it; ``dump_bytes`` of user stack per sample (0 unless
    dwarf)."""

    event: str = ""
    frequency_hz: int = 0
    period: int = 0
    call_graph: str = "none"
    call_graph_reason: str = ""
    dump_bytes: int = 0
    perf_version: str = ""
    perf_command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """A number taken from the program's output.  ``values`` holds every match, ``value`` the picked one, both in ``unit``
    ("ns" for durations, "" for bare numbers)."""

    name: str
    value: float
    unit: str
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What the run itself reported.  Times in ns: wall clock around the program alone, CPU from wait4 on the program.
    ``failure`` is empty for a run that counts; otherwise the reason why it is kept but left out.
    ``disturbance``: what else happened on the host meanwhile, "" = nothing; the run counts none the less.
    ``output_tail`` is the end of the program's output."""

    exit_code: int = 0
    wall_ns: int = 0
    user_ns: int = 0
    system_ns: int = 0
    voluntary_switches: int = 0
    involuntary_switches: int = 0
    minor_faults: int = 0
    major_faults: int = 0
    failure: str = ""
    metrics: tuple[Metric, ...] = ()
    output_tail: str = ""
    disturbance: str = ""

    @property
    def is_valid(self) -> bool:
        return not self.failure


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that the program works on, as it was when the session began.  ``sha256`` lower-case hex."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """Everything that identifies and explains a run.  ``source`` is the file for imported captures; ``started_at`` an ISO
    8601 UTC time stamp; ``command`` the argument list as run; ``phase`` the default phase asked for at recording;
    ``inputs`` the files named as the program's inputs; ``source_changed_at`` when ``source`` was last written, as
    ``started_at``: the recording was over by then."""

    identity: RunIdentity
    host: HostFacts = field(default_factory=HostFacts)
    program: ProgramFacts = field(default_factory=ProgramFacts)
    perf: PerfSettings = field(default_factory=PerfSettings)
    outcome: RunOutcome = field(default_factory=RunOutcome)
    command: tuple[str, ...] = ()
    revision: str = ""
    started_at: str = ""
    source: str = ""
    phase: str = ""
    inputs: tuple[InputFile, ...] = ()
    source_changed_at: str = ""
