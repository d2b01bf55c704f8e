"""How much of a phase is in it only because no stack was complete enough to end its windows."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from profiler.analysis.attribution.attributed_run import AttributedRun
from profiler.analysis.attribution.phases import PhaseSelection
from profiler.analysis.quality.findings import WARN, Finding, percent
from profiler.analysis.quality.truncation_advice import truncation_advice
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import PerfSettings
from profiler.model.sample_table import StackState

WARN_BROKEN = 0.05
# A gap hides one caller at most, so that most of these samples are in the phase indeed: its marker called the leaf.
WARN_ALL = 0.25


@dataclass(frozen=True, slots=True)
class Unproven:
    """Admitted weight in windows without the marker: ``broken`` stacks that end before a thread's start, and ``all``
    incomplete ones."""

    broken: int
    all: int


def unproven_weight(run: AttributedRun, phase: PhaseSelection | None) -> Unproven:
    """Of one run; nothing without a phase."""
    if phase is None:
        return Unproven(0, 0)
    samples = run.symbolized.capture.samples
    unproven = phase.unproven & run.admitted
    broken = unproven & ((samples.state == StackState.ROOTLESS) | (samples.state == StackState.TRUNCATED))
    return Unproven(int(samples.weight[broken].sum()), int(samples.weight[unproven].sum()))


def phase_findings(arm: str, runs: Sequence[Unproven], weight: int, settings: Collection[PerfSettings]) -> list[Finding]:
    """``phase-open`` when a part of the phase's ``weight`` that matters may lie outside of it."""
    broken, everything = sum(run.broken for run in runs), sum(run.all for run in runs)
    if broken <= WARN_BROKEN * weight and everything <= WARN_ALL * weight:
        return []
    message = (
        f"{arm}: {percent(everything / weight)} of the phase's weight has incomplete stacks without the marker: it counts as "
        "inside because nothing shows that the phase was left"
    )
    advice = "record with --call-graph dwarf"
    if {perf.call_graph for perf in settings} == {"dwarf"}:
        advice = f"{truncation_advice(settings)}; have the binaries of all stacks at hand"
    return [Finding(WARN, "phase-open", message, advice)]
