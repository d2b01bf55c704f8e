"""Are two arms comparable?  Facts that differ, stacks and names that differ, and what each arm's own runs warn of."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from profiler.analysis.comparison.compare_replicates import Matching
from profiler.analysis.quality.findings import percent
from profiler.analysis.quality.toolchain_names import distinguishing_names
from profiler.analysis.quality.truncation_advice import truncation_advice
from profiler.model.costs import ArmCosts
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunMode

# Of the weight in the program's own executable: from this part on an arm counts as having debug information.
DEBUG_SHARE = 0.90
# Shares of the weight that may differ between arms without a word.
TRUNCATION_DIFFERENCE = 0.05
PARTIAL_NAMES_DIFFERENCE = 0.05
# Dimensions whose rows depend on the names of inline frames.
NAMED_DIMENSIONS = frozenset({"category", "group", "function", "file", "line"})


@dataclass(frozen=True, slots=True)
class _Fact:
    """``read`` gives "" for unknown."""

    code: str
    what: str
    read: Callable[[CaptureInfo], str]
    advice: str


_RECORD_ALIKE = "record both arms with the same options"
_SAME_HOST = "record both arms on one host, interleaved in one session"
_ONE_SESSION = "record both arms in one session: slotscope record --variant A=... --variant B=..."

_FACTS = (
    _Fact("rate-differs", "sampling rate", lambda info: _rate(info), _RECORD_ALIKE),
    _Fact("unwinder-differs", "call graph method", lambda info: _call_graph(info), _RECORD_ALIKE),
    _Fact("dump-size-differs", "stack dump size", lambda info: _dump_size(info), _RECORD_ALIKE),
    _Fact("cpu-differs", "CPU", lambda info: _cpu(info), _SAME_HOST),
    _Fact("kernel-differs", "kernel", lambda info: info.host.kernel, _SAME_HOST),
    _Fact(
        "toolchain-differs",
        "toolchain",
        lambda info: info.program.toolchain,
        "if the toolchain is not what you compare, build both arms with one",
    ),
    _Fact(
        "allocator-differs",
        "allocator",
        lambda info: info.program.allocator,
        "if the allocator is not what you compare, build both arms with one",
    ),
    _Fact(
        "mangling-differs",
        "name mangling",
        lambda info: info.program.mangling,
        "functions are matched by key across manglings; check rows that are new or gone",
    ),
)


def fact_warnings(baseline: ArmCosts, candidate: ArmCosts) -> list[ReportWarning]:
    """One warning per recorded fact that is known in both arms and differs; truncation, event and analysis options too."""
    infos = (*baseline.infos, *baseline.plain), (*candidate.infos, *candidate.plain)
    both_profiled = bool(baseline.infos and candidate.infos)
    found = [
        warning
        for warning in (
            _different(baseline.event, candidate.event, "event-differs", "event"),
            _different(baseline.phase, candidate.phase, "phase-differs", "phase"),
            _different(baseline.rules, candidate.rules, "rules-differ", "rule sets"),
        )
        if warning is not None and both_profiled
    ]
    for fact in _FACTS:
        values = _known(fact, infos[0]), _known(fact, infos[1])
        if values[0] and values[1] and values[0] != values[1]:
            names = distinguishing_names(values) if fact.code == "toolchain-differs" else map(sorted, values)
            shown = " / ".join(", ".join(of_arm) or "without" for of_arm in names)
            message = f"{baseline.name} and {candidate.name} differ in {fact.what}: {shown}"
            found.append(ReportWarning(fact.code, message, fact.advice))
    truncated = baseline.quality.truncated, candidate.quality.truncated
    if abs(truncated[0] - truncated[1]) > TRUNCATION_DIFFERENCE:
        message = (
            f"truncated stacks: {percent(truncated[0])} of {baseline.name}, {percent(truncated[1])} of {candidate.name}; "
            "categories found by outer frames are biased by it"
        )
        worse = baseline if truncated[0] > truncated[1] else candidate
        advice = truncation_advice({info.perf for info in worse.infos})
        found.append(ReportWarning("truncation-differs", message, advice))
    return found


def _known(fact: _Fact, infos: Iterable[CaptureInfo]) -> frozenset[str]:
    return frozenset(map(fact.read, infos)) - {""}


def naming_warning(baseline: ArmCosts, candidate: ArmCosts) -> ReportWarning | None:
    """Arms whose inline frames are named from different debug information: names, and so categories, cannot be compared.

    Either the program's own code has debug information in one arm only, or one arm's inline frames have bare names where the
    other's are qualified.  The share of bare names alone does not decide when the debug information is known to be alike: code
    without inlining has no inline frames to name.
    """
    own = baseline.quality.own_debug_share, candidate.quality.own_debug_share
    if min(own) >= 0 and (own[0] >= DEBUG_SHARE) != (own[1] >= DEBUG_SHARE):
        message = (
            f"debug information covers {percent(own[0])} of {baseline.name}'s own code and {percent(own[1])} of "
            f"{candidate.name}'s: inline frames are known in one arm only"
        )
        return ReportWarning(
            "debug-info-differs", message, "build both arms with the same debug information (debug = 1; gcc, clang: -g)"
        )
    partial = baseline.quality.partial_names, candidate.quality.partial_names
    kinds = tuple({info.program.debug_info for info in arm.infos} - {""} for arm in (baseline, candidate))
    is_known_alike = bool(kinds[0]) and kinds[0] == kinds[1]
    if not is_known_alike and abs(partial[0] - partial[1]) > PARTIAL_NAMES_DIFFERENCE:
        message = (
            f"inline frames have bare names in {percent(partial[0])} of {baseline.name} and {percent(partial[1])} of "
            f"{candidate.name}: the arms name the same code differently"
        )
        return ReportWarning("inline-names-differ", message, "build both arms with debug = 1 (gcc, clang: -g)")
    return None


def untestable_reason(baseline: ArmCosts, candidate: ArmCosts, dimension: str) -> str:
    """Why rows of this dimension may have no verdict, "" when they may."""
    if dimension not in NAMED_DIMENSIONS or naming_warning(baseline, candidate) is None:
        return ""
    return "the arms differ in debug information: their inline frames are named differently"


def matching_warnings(baseline: ArmCosts, candidate: ArmCosts, matching: Matching) -> list[ReportWarning]:
    """What the way of recording leaves open, and runs that had to be left out."""
    found: list[ReportWarning] = []
    if not matching.is_paired and baseline.infos and candidate.infos and not _is_side_by_side(baseline, candidate, matching):
        found.append(_unpaired(baseline, candidate))
    if any(matching.left_out):
        message = (
            f"runs without a partner in the same round are left out: {matching.left_out[0]} of {baseline.name}, "
            f"{matching.left_out[1]} of {candidate.name}"
        )
        found.append(ReportWarning("unmatched-runs", message, "see which runs failed: slotscope list"))
    if matching.is_averaged and not matching.by_instance:
        message = "several runs of one arm share a round: they are averaged, since only rounds are independent"
        found.append(ReportWarning("repeated-round", message))
    return found


def _is_side_by_side(baseline: ArmCosts, candidate: ArmCosts, matching: Matching) -> bool:
    """Several processes of either arm watched in one session: its windows are those of both arms."""
    sessions = {info.identity.session for arm in (baseline, candidate) for info in arm.infos}
    return matching.by_instance and len(sessions) == 1 and matching.fewest > 1


def _unpaired(baseline: ArmCosts, candidate: ArmCosts) -> ReportWarning:
    hosts = tuple({info.host.hostname for info in arm.infos} for arm in (baseline, candidate))
    sessions = tuple({info.identity.session for info in arm.infos} for arm in (baseline, candidate))
    if sessions[0] & sessions[1] - {""} and not hosts[0] & hosts[1]:
        return ReportWarning(
            "different-hosts",
            f"{baseline.name} and {candidate.name} ran on different hosts: host and build cannot be told apart",
            "swap the hosts between the arms and record again",
        )
    infos = (*baseline.infos, *candidate.infos)
    if any(info.source or info.identity.mode is RunMode.IMPORTED for info in infos):
        return ReportWarning(
            "recorded-apart",
            f"it is not known how {baseline.name} and {candidate.name} were recorded; "
            "if one after the other, order and build cannot be told apart",
            _ONE_SESSION,
        )
    if all(info.identity.instance for info in infos):
        return ReportWarning(
            "recorded-apart",
            f"{baseline.name} and {candidate.name} are processes of sessions of their own: what else differed between them "
            "cannot be told from the build",
            "watch several processes of either build in one experiment (targets)",
        )
    return ReportWarning(
        "recorded-apart",
        f"{baseline.name} and {candidate.name} were recorded one after the other: order and build cannot be told apart",
        _ONE_SESSION,
    )


def _different(first: str, second: str, code: str, what: str) -> ReportWarning | None:
    if first == second:
        return None
    return ReportWarning(code, f"the arms differ in {what}: {first or 'none'} / {second or 'none'}", _RECORD_ALIKE)


def _rate(info: CaptureInfo) -> str:
    if info.perf.frequency_hz:
        return f"{info.perf.frequency_hz} Hz"
    return f"period {info.perf.period}" if info.perf.period else ""


def _call_graph(info: CaptureInfo) -> str:
    return info.perf.call_graph if info.perf.event else ""


def _dump_size(info: CaptureInfo) -> str:
    return f"{info.perf.dump_bytes} bytes" if info.perf.call_graph == "dwarf" and info.perf.dump_bytes else ""


def _cpu(info: CaptureInfo) -> str:
    return f"{info.host.cpu} x {info.host.cpu_count}" if info.host.cpu_count and info.host.cpu else info.host.cpu


def distinct(warnings: Iterable[ReportWarning]) -> tuple[ReportWarning, ...]:
    """Each warning once, in order of first mention."""
    return tuple(dict.fromkeys(warnings))
