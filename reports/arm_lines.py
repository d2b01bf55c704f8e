"""What is said of an arm in words: its header, its quality, what is missing and what to do about it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

from profiler.model.costs import ArmCosts, MissingSymbols
from profiler.model.quality import ReportWarning
from profiler.model.run import CaptureInfo
from reports.arm_report import ArmReport, group_breakdown, owner_breakdown
from reports.plain_text import printable
from reports.quantities import count, counted, percent, scale_for

TOO_MUCH_UNRESOLVED = 0.2
_SHOWN_OWNERS = 4
_WORTH_A_LINE = 0.001


def header_lines(report: ArmReport) -> list[str]:
    """Arm, runs, event, total per run, plain and failed runs, phase with its window and the program's own figures, quality."""
    costs = report.costs
    lines = [f"{printable(costs.name)}: {total_per_run(report)}, {counted(report.runs, 'run')}, event {printable(costs.event)}"]
    if costs.plain:
        lines.append(plain_runs_line(costs.plain))
    if costs.failed:
        lines.append(f"{counted(len(costs.failed), 'failed run')} left out: {_reasons(costs.failed)}")
    lines.append(f"by {report.dimension}, {costs.view} view, rules {printable(costs.rules)}")
    if costs.phase:
        lines.append(phase_line(costs))
    lines.append(quality_line(costs))
    return lines


def total_per_run(report: ArmReport) -> str:
    """ "1,234.5 ms per run", or without "per run" for a single one."""
    text = report.scale.quantity(report.total / report.divisor)
    return text if report.runs == 1 else f"{text} per run"


def plain_runs_line(plain: tuple[CaptureInfo, ...]) -> str:
    """Mean wall and CPU time of the runs without perf: what a user of the program sees."""
    wall_ns = sum(info.outcome.wall_ns for info in plain) / len(plain)
    cpu_ns = sum(info.outcome.user_ns + info.outcome.system_ns for info in plain) / len(plain)
    scale = scale_for([wall_ns, cpu_ns], "ns")
    mean = " on average" if len(plain) > 1 else ""
    return f"without perf, {counted(len(plain), 'run')}: wall {scale.quantity(wall_ns)}, CPU {scale.quantity(cpu_ns)}{mean}"


def phase_line(costs: ArmCosts) -> str:
    """The phase, the length of its windows, and beside it the durations that the program itself reported."""
    text = f"phase '{printable(costs.phase)}'"
    if costs.phase_windows_ns is not None and len(costs.phase_windows_ns):
        windows_ns = costs.phase_windows_ns.tolist()
        mean_ns = sum(windows_ns) / len(windows_ns)
        scale = scale_for([mean_ns], "ns")
        text += f": {scale.quantity(mean_ns)} of wall time" + (" per run" if len(windows_ns) > 1 else "")
        own = [
            f"{printable(name)} {scale.quantity(value)}{_times(costs.infos, name)}"
            for name, value in duration_metrics(costs.infos)
        ]
        text += f"; the program reports {', '.join(own)}" if own else ""
    return text


def duration_metrics(infos: tuple[CaptureInfo, ...]) -> list[tuple[str, float]]:
    """(name, mean in ns) of every metric in ns, over the runs that have it, in the order of first appearance."""
    values: dict[str, list[float]] = {}
    for info in infos:
        for metric in info.outcome.metrics:
            if metric.unit == "ns":
                values.setdefault(metric.name, []).append(metric.value)
    return [(name, sum(found) / len(found)) for name, found in values.items()]


def _times(infos: tuple[CaptureInfo, ...], name: str) -> str:
    """How often a run reports a metric of which one value was picked; nothing where the picked one is the sum."""
    metrics = [metric for info in infos for metric in info.outcome.metrics if metric.name == name]
    counts = {len(metric.values) for metric in metrics if not math.isclose(metric.value, sum(metric.values))}
    if not counts or counts == {0}:
        return ""
    return f" ({counts.pop()} times per run)" if len(counts) == 1 else " (several times per run)"


def quality_line(costs: ArmCosts) -> str:
    """One line: verdict, samples, losses, and the shares of weight that make stacks doubtful (left out when 0)."""
    quality = costs.quality
    parts = [f"{count(quality.samples)} samples", f"{percent(quality.complete)} complete stacks"]
    shares = (
        (quality.unresolved, "unresolved"),
        (quality.truncated, "truncated"),
        (quality.rootless, "without root"),
        (quality.gap_possible, "caller may be missing"),
        (quality.no_user_stack, "without user stack"),
        (quality.folded_interrupts, "interrupts charged to the code below"),
        (quality.partial_names, "partly named"),
    )
    parts += [f"{percent(share)} {what}" for share, what in shares if share >= 0.0005]
    if quality.lost_samples:
        parts.append(f"{count(quality.lost_samples)} samples lost")
    return f"quality {quality.status}: {', '.join(parts)}"


def unresolved_lines(costs: ArmCosts) -> list[str]:
    """Empty while at most 20 % of the weight is without a name; otherwise what is missing and the way out."""
    if costs.quality.unresolved <= TOO_MUCH_UNRESOLVED:
        return []
    lines = [f"WARNING: {percent(costs.quality.unresolved)} of the weight has no function name; do not trust the table below."]
    return lines + missing_lines(costs.missing)


def missing_lines(missing: Sequence[MissingSymbols]) -> list[str]:
    """One line per file, with its share of the weight, build ID and reason, and one with the way out."""
    lines = []
    for entry in missing:
        build_id = f"build ID {entry.build_id}" if entry.build_id else "build ID not recorded"
        reason = entry.reason.removeprefix(f"{entry.path}: ").replace(f" ({build_id})", "")
        lines.append(f"  {percent(entry.share)} {printable(entry.path)} ({build_id}): {printable(reason)}")
    lines.append(
        "  What to do: bring the files with these build IDs (or their debug files) to this machine and name their folder "
        "with --debug-dir, or run the report where the program was recorded."
    )
    return lines


def breakdown_lines(report: ArmReport) -> list[str]:
    """What stands below the table.  By category: "memmove 6.7 %: 4.1 tree update, 1.5 SSZ", whose work the pass-through
    categories did; by group: "hashing 41.2 %: 40.0 SHA-256, 1.2 Keccak", its categories.  In points of the total."""
    if not report.total:
        return []
    if report.dimension == "group":
        return _breakdown(group_breakdown(report), report.total, "more category", "more categories")
    if report.dimension == "category" and report.costs.view == "leaf":
        return _breakdown(owner_breakdown(report), report.total, "more owner", "more owners")
    return []


def _breakdown(entries: Sequence[tuple[str, int, list[tuple[str, int]]]], total: int, noun: str, plural: str) -> list[str]:
    lines = []
    for name, weight, parts in entries:
        if weight < _WORTH_A_LINE * total:
            continue
        shown = [f"{100 * part / total:.1f} {printable(part_name)}" for part_name, part in parts[:_SHOWN_OWNERS]]
        rest = sum(part for _, part in parts[_SHOWN_OWNERS:])
        if rest:
            left_out = len(parts) - _SHOWN_OWNERS
            shown.append(f"{100 * rest / total:.1f} {count(left_out)} {noun if left_out == 1 else plural}")
        lines.append(f"{printable(name)} {percent(weight / total)}: {', '.join(shown)}")
    return lines


def build_facts(costs: ArmCosts) -> list[list[tuple[str, str]]]:
    """Lines of (what, value): builds, revisions, toolchains and hosts of the runs, each once, and how they were counted."""
    infos = (*costs.infos, *costs.plain)
    lines = [[("build ID", build_id)] for build_id in _distinct(info.program.build_id for info in infos)]
    lines += [[("revision", revision)] for revision in _distinct(info.revision for info in infos)]
    lines += [[("toolchain", toolchain)] for toolchain in _distinct(info.program.toolchain for info in infos)]
    lines += [[("host", host)] for host in _distinct(_host(info) for info in infos)]
    if costs.infos:
        phase = [("phase", costs.phase)] if costs.phase else []
        lines.append([("event", costs.event), ("rules", costs.rules), *phase])
    return lines


def commands_of(costs: ArmCosts) -> list[str]:
    """Of all runs, as a shell would take them, each once."""
    return _distinct(shlex.join(info.command) for info in (*costs.infos, *costs.plain))


def _host(info: CaptureInfo) -> str:
    host = info.host
    return ", ".join(fact for fact in (host.hostname, host.cpu, host.kernel) if fact)


def _distinct(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def warning_line(warning: ReportWarning) -> str:
    """ "code: message (advice)"."""
    advice = f" ({printable(warning.advice)})" if warning.advice else ""
    return f"{printable(warning.code)}: {printable(warning.message)}{advice}"


def _reasons(failed: tuple[CaptureInfo, ...]) -> str:
    return "; ".join(dict.fromkeys(printable(info.outcome.failure) for info in failed))
