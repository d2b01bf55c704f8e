"""The counts that tell how far a capture can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collectors.perf_data import spec
from collectors.perf_data.reader import Recording
from collectors.perf_data.record_index import RecordIndex
from profiler.model.dso import Dso, DsoKind
from profiler.model.frame_table import FrameTable
from profiler.model.quality import CaptureQuality
from profiler.model.sample_table import SampleTable, StackState

# From so many samples on, one with more than this share of the weight is no observation of the program but a broken counter.
# Fewer samples are uneven by themselves: perf begins with tiny periods and lets them grow.
_ABSURD_SHARES = ((100, 0.2), (10, 0.9))
# A few samples of the launcher come before every program; only more than this share of the program's own are worth a word.
_EXPECTED_BEFORE_EXEC = 0.02


@dataclass(slots=True)
class IngestCounts:
    """What was seen and left out while samples were read."""

    mismatched: int = 0
    unknown_events: int = 0
    before_exec: int = 0

    def add(self, other: IngestCounts) -> None:
        self.mismatched += other.mismatched
        self.unknown_events += other.unknown_events
        self.before_exec += other.before_exec


def capture_quality(
    recording: Recording, index: RecordIndex, counts: IngestCounts, samples: SampleTable, unmapped_frames: int
) -> CaptureQuality:
    states = np.bincount(samples.state, minlength=len(StackState)).tolist()
    return CaptureQuality(
        samples=len(samples),
        lost_samples=lost_samples(recording, index),
        throttled=index.side_band.throttled,
        complete=states[StackState.COMPLETE],
        gap_possible=states[StackState.GAP_POSSIBLE],
        rootless=states[StackState.ROOTLESS],
        truncated=states[StackState.TRUNCATED],
        no_user_stack=states[StackState.NO_USER_STACK],
        unmapped_frames=unmapped_frames,
        is_unfinished=index.is_cut,
        skipped_records=index.skipped,
        notes=_notes(recording, index, counts, samples),
    )


def unmapped_count(frames: FrameTable, dsos: tuple[Dso, ...]) -> int:
    """Frames whose address lies in no mapping."""
    is_unknown = np.array([dso.kind == DsoKind.UNKNOWN for dso in dsos], np.bool_)
    return int(is_unknown[frames.dso].sum()) if len(dsos) else 0


def lost_samples(recording: Recording, index: RecordIndex) -> int:
    """Losses that the kernel reported.  With PERF_FORMAT_LOST perf adds records that count the same losses once more."""
    side_band = index.side_band
    if any(event.read_format & spec.PERF_FORMAT_LOST for event in recording.attributes):
        return max(side_band.lost_records, side_band.lost_samples)
    return side_band.lost_records + side_band.lost_samples


def _notes(recording: Recording, index: RecordIndex, counts: IngestCounts, samples: SampleTable) -> tuple[str, ...]:
    notes = []
    if not len(samples):
        notes.append(f"no samples; {_no_samples_reason(recording, lost_samples(recording, index))}")
    if counts.mismatched:
        notes.append(f"{counts.mismatched} samples are longer or shorter than their fields")
    if counts.unknown_events:
        notes.append(f"{counts.unknown_events} samples belong to no event of the recording and were left out")
    if counts.before_exec > _EXPECTED_BEFORE_EXEC * len(samples):
        what, were = ("1 sample", "was") if counts.before_exec == 1 else (f"{counts.before_exec} samples", "were")
        notes.append(f"{what} from before the program started {were} left out")
    if not any(event.sample_type & spec.PERF_SAMPLE_CALLCHAIN for event in recording.attributes) and len(samples):
        notes.append("recorded without call stacks; use --call-graph")
    if index.has_processor_trace:
        notes.append("what the processor traced (such as Intel PT) is not decoded; only samples are counted")
    if index.skipped:
        notes.append(_skipped_note(index.skipped))
    notes += _weight_notes(recording, samples)
    return tuple(notes)


def _no_samples_reason(recording: Recording, lost: int) -> str:
    if lost:
        return f"all {lost} were lost"
    names = ", ".join(event.name for event in recording.attributes)
    return f"the program may have ended before the first sample of {names}"


def _weight_notes(recording: Recording, samples: SampleTable) -> list[str]:
    notes = []
    for row, event in enumerate(recording.attributes):
        has_period = bool(event.sample_type & spec.PERF_SAMPLE_PERIOD)
        if event.is_frequency and not has_period:
            notes.append(f"{event.name}: samples carry no period; each counts the same")
        weight = samples.weight[samples.event == row]
        largest = float(weight.max()) / max(float(weight.sum(dtype=np.float64)), 1.0) if len(weight) else 0.0
        if largest > next((share for count, share in _ABSURD_SHARES if len(weight) >= count), 1.0):
            notes.append(
                f"{event.name}: one of {len(weight)} samples holds {largest:.0%} of the weight; its period may be wrong"
            )
    return notes


def _skipped_note(skipped: tuple[tuple[int, int], ...]) -> str:
    """``skipped``: (type, count) of the records passed over."""
    count, types = sum(number for _, number in skipped), ", ".join(str(kind) for kind, _ in skipped)
    what = "1 record" if count == 1 else f"{count} records"
    return f"{what} of unknown type{'' if len(skipped) == 1 else 's'} {types} skipped"
