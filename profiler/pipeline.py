"""From an arm's captures to its costs: select the event, symbolize, attribute, choose samples, add up.

Runs are put in the order of their identity first, so the order in which captures were given never changes a result.  One
capture is in work at a time; what is kept of it is sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from profiler.analysis.attribution.aggregate import RunTable, merge_runs, run_tables
from profiler.analysis.attribution.apply_symbols import apply_symbols, frames_by_dso
from profiler.analysis.attribution.attribute import attribute
from profiler.analysis.attribution.attributed_run import AttributedRun, attributed_run
from profiler.analysis.attribution.logical_stacks import LogicalStacks, expand
from profiler.analysis.attribution.owners import (
    OTHER_LIMIT,
    merge_other_functions,
    merge_owner_cells,
    other_functions,
    owner_cells,
)
from profiler.analysis.attribution.phases import PhaseSelection, select_phase
from profiler.analysis.attribution.select_event import other_events, samples_of_event, select_event
from profiler.analysis.attribution.stack_patterns import compile_pattern, functions_with_name, stacks_through
from profiler.analysis.quality.arm_quality import FAIL_UNRESOLVED, QualityVerdict, judge
from profiler.analysis.quality.cpu_coverage import coverage_findings
from profiler.analysis.quality.phase_findings import Unproven, phase_findings, unproven_weight
from profiler.analysis.quality.run_quality import NO_SYMBOL, RunQuality, run_quality
from profiler.errors import AnalysisError, UsageError
from profiler.model.analysis_choices import DEFAULT_RULE_SETS, PhaseScope
from profiler.model.arrays import BoolColumn, UInt64Column
from profiler.model.capture import Capture
from profiler.model.costs import ArmCosts, MissingSymbols, OtherFunction, OwnerCell
from profiler.model.dso import Dso
from profiler.model.quality import ReportWarning
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import CaptureInfo, RunMode
from profiler.model.symbols import DsoSymbols, SymbolizedCapture
from profiler.rules.loader import load_rule_sets
from profiler.rules.matcher import RuleMatcher

if TYPE_CHECKING:
    from profiler.model.call_stacks import CallStacks
    from profiler.model.explanation import Explanation
    from profiler.model.rule_finding import RuleUse

Progress = Callable[[str], None]


class Symbolizer(Protocol):
    """Answers for one DSO; never raises for symbols that are missing or damaged (``DsoSymbols.status`` says so)."""

    def symbolize(self, dso: Dso, offsets: UInt64Column, is_return_address: BoolColumn) -> DsoSymbols: ...


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """What to look at and how.  ``rules``: built-in rule sets or files.  ``phase``, ``focus``, ``ignore``: regular
    expressions, "" = all samples.  ``event``: "" or "auto" is a clock, else cycles, else the only event with samples.
    ``view``: what the category and group tables hold, "leaf" or "owner".  ``dimensions``: the tables to make."""

    rules: tuple[str, ...] = DEFAULT_RULE_SETS
    phase: str = ""
    phase_scope: str = PhaseScope.PROCESS
    focus: str = ""
    ignore: str = ""
    event: str = ""
    view: str = "leaf"
    dimensions: tuple[str, ...] = ("category",)


@dataclass(frozen=True, slots=True)
class Arm:
    """``captures``: all runs of the arm, plain, profiled, failed and imported, in any order."""

    name: str
    captures: Sequence[Capture]


def arm_costs(arm: Arm, options: AnalysisOptions, symbolizer: Symbolizer, progress: Progress | None = None) -> ArmCosts:
    """The costs of an arm.  Failed runs are listed and left out; plain runs are listed for their headline times.

    Raises ``UsageError`` for options that cannot be used, ``AnalysisError`` for a phase that matches nothing.
    """
    analysis = _Analysis(arm, options, symbolizer, progress)
    keep_lines = "line" in options.dimensions
    most_others = OTHER_LIMIT if len(analysis.profiled) == 1 else None
    results = [_costs_of_run(run, options, most_others) for run in analysis.runs(keep_lines)]
    verdict = analysis.verdict(results)
    windows = [result.windows_ns for result in results]
    return ArmCosts(
        name=arm.name,
        event=analysis.event.name,
        unit=analysis.event.unit,
        view=options.view,
        phase=options.phase,
        rules=analysis.rule_set.name,
        infos=tuple(capture.info for capture in analysis.profiled),
        plain=analysis.plain,
        failed=analysis.failed,
        tables={name: merge_runs(name, [result.tables[name] for result in results]) for name in options.dimensions},
        owners=merge_owner_cells(result.owners for result in results),
        other_functions=merge_other_functions(result.others for result in results),
        quality=verdict.quality,
        missing=verdict.missing,
        phase_windows_ns=np.array(windows, np.int64) if options.phase else None,
        warnings=(*analysis.warnings(results), *verdict.warnings),
        groups={category: group for result in results for category, group in result.groups.items()},
    )


def arm_call_stacks(arm: Arm, options: AnalysisOptions, symbolizer: Symbolizer) -> CallStacks:
    """The arm's call stacks by function, a weight column per run; errors as for ``arm_costs``."""
    from profiler.analysis.attribution.call_stacks import merge_call_stacks, run_tree

    analysis = _Analysis(arm, options, symbolizer, None)
    trees = [run_tree(run.attributed) for run in analysis.runs(keep_lines=True)]
    return merge_call_stacks(arm.name, analysis.event, trees)


def explain_function(arm: Arm, function: str, options: AnalysisOptions, symbolizer: Symbolizer) -> tuple[Explanation, ...]:
    """Why the time of the functions that match the regular expression ``function`` stands in its category.

    Raises ``AnalysisError`` with the nearest names when no sample has such a function; else errors as for ``arm_costs``.
    """
    from profiler.analysis.attribution.explain import explain_run, merge_explanations

    pattern = compile_pattern(function, "--function")
    analysis = _Analysis(arm, options, symbolizer, None)
    names: set[str] = set()
    explained = []
    for run in analysis.runs(keep_lines=False):
        names.update(entry.key for entry in run.attributed.symbolized.functions)
        explained.append(explain_run(run.attributed, analysis.rule_set, pattern))
    explanations = merge_explanations(explained)
    if not explanations:
        message = f"{arm.name}: no sample has a function that matches '{function}'{_hint(function, names)}"
        raise AnalysisError(message, analysis.missing_files())
    return explanations


def arm_rule_use(arm: Arm, options: AnalysisOptions, symbolizer: Symbolizer) -> RuleUse:
    """What the rules took of the arm, and what none of them did; errors as for ``arm_costs``."""
    from profiler.analysis.attribution.rule_use import merge_rule_use, rule_use
    from profiler.model.rule_finding import RuleUse

    analysis = _Analysis(arm, options, symbolizer, None)
    uses, others = [], []
    for run in analysis.runs(keep_lines=False):
        uses.append(rule_use(run.attributed, analysis.rule_set))
        others.append(other_functions(run.attributed))
    whole = merge_rule_use(uses)
    return RuleUse(arm.name, whole.places, whole.taken, merge_other_functions(others), whole.total)


@dataclass(frozen=True, slots=True)
class _AnalysedRun:
    attributed: AttributedRun
    phase: PhaseSelection | None


@dataclass(frozen=True, slots=True)
class _RunCosts:
    """What is kept of one run."""

    tables: dict[str, RunTable]
    owners: tuple[OwnerCell, ...]
    others: tuple[OtherFunction, ...]
    quality: RunQuality
    windows_ns: int
    marked_samples: int
    unproven: Unproven
    groups: dict[str, str]


def _costs_of_run(run: _AnalysedRun, options: AnalysisOptions, most_others: int | None) -> _RunCosts:
    matches = run.attributed.matches
    return _RunCosts(
        tables=run_tables(run.attributed, options.dimensions, options.view),
        owners=owner_cells(run.attributed),
        others=other_functions(run.attributed, most_others),
        quality=run_quality(run.attributed),
        windows_ns=run.phase.windows_ns if run.phase else 0,
        marked_samples=run.phase.marked_samples if run.phase else 0,
        unproven=unproven_weight(run.attributed, run.phase),
        groups={name: group for name, group in zip(matches.categories, matches.groups, strict=True) if group},
    )


class _Analysis:
    """One arm under one set of options: which runs count, and each of them attributed on demand."""

    def __init__(self, arm: Arm, options: AnalysisOptions, symbolizer: Symbolizer, progress: Progress | None) -> None:
        captures = sorted(arm.captures, key=_run_order)
        valid = [capture for capture in captures if capture.info.outcome.is_valid]
        self.profiled = [capture for capture in valid if capture.info.identity.mode is not RunMode.PLAIN]
        self.plain = tuple(capture.info for capture in valid if capture.info.identity.mode is RunMode.PLAIN)
        self.failed = tuple(capture.info for capture in captures if not capture.info.outcome.is_valid)
        self.event = select_event(self.profiled, options.event)
        self.rule_set = load_rule_sets(options.rules)
        self._matcher = RuleMatcher(self.rule_set)
        self._phase = compile_pattern(options.phase, "--phase") if options.phase else None
        self._scope = _scope(options.phase_scope)
        self._arm = arm
        self._options = options
        self._symbolizer = symbolizer
        self._progress = progress

    def runs(self, keep_lines: bool) -> Iterator[_AnalysedRun]:
        """Every profiled run, attributed.  Raises ``AnalysisError`` at the end when no run has the phase."""
        marked = 0
        names: set[str] = set()
        for number, capture in enumerate(self.profiled, 1):
            if self._progress is not None:
                self._progress(f"{self._arm.name}: run {number} of {len(self.profiled)}")
            symbolized = _symbolized(capture, self._symbolizer)
            stacks = expand(symbolized, keep_lines)
            phase = self._select_phase(symbolized, stacks)
            yield _AnalysedRun(self._attributed(symbolized, stacks, phase), phase)
            marked += phase.marked_samples if phase else 0
            if phase is not None and not marked:
                names.update(function.key for function in symbolized.functions)
        if self._phase is not None and self.profiled and not marked:
            hint = _hint(self._options.phase, names)
            message = f"{self._arm.name}: no sample matches the phase '{self._options.phase}'{hint}"
            raise AnalysisError(message, self.missing_files())

    def missing_files(self) -> tuple[MissingSymbols, ...]:
        """Files that are not at hand or damaged and have a large share of all samples: none of their functions can match."""
        of_all = _Analysis(self._arm, replace(self._options, phase="", focus="", ignore=""), self._symbolizer, None)
        qualities = [run_quality(run.attributed) for run in of_all.runs(keep_lines=False)]
        missing = judge(qualities, [capture.quality for capture in self.profiled]).missing
        return tuple(entry for entry in missing if entry.reason != NO_SYMBOL and entry.share > FAIL_UNRESOLVED)

    def verdict(self, results: Sequence[_RunCosts]) -> QualityVerdict:
        """How far the costs can be trusted."""
        qualities = [result.quality for result in results]
        weight = sum(quality.weight for quality in qualities)
        settings = {capture.info.perf for capture in self.profiled}
        more = [
            *coverage_findings(self._arm.name, self.profiled, self.event),
            *phase_findings(self._arm.name, [result.unproven for result in results], weight, settings),
        ]
        return judge(qualities, [capture.quality for capture in self.profiled], settings, more)

    def warnings(self, results: Sequence[_RunCosts]) -> tuple[ReportWarning, ...]:
        """What was left out, and filters that matched nothing."""
        found = [*other_events(self._arm.name, self.profiled, self.event, self._options.event)]
        if self.failed:
            reasons = sorted({info.outcome.failure for info in self.failed})
            what = "1 failed run is" if len(self.failed) == 1 else f"{len(self.failed)} failed runs are"
            message = f"{self._arm.name}: {what} left out ({'; '.join(reasons)})"
            found.append(ReportWarning("failed-runs", message, "look at their output with slotscope show"))
        unmarked = sum(not result.marked_samples for result in results)
        if self._phase is not None and unmarked:
            have = "has no sample in the phase and counts" if unmarked == 1 else "have no sample in the phase and count"
            message = f"{self._arm.name}: {unmarked} of {len(results)} runs {have} as 0"
            found.append(ReportWarning("phase-missing", message, "record longer or at a higher frequency"))
        is_filtered = self._options.focus or self._options.ignore
        if is_filtered and results and not any(result.quality.samples for result in results):
            message = f"{self._arm.name}: no sample passes --focus '{self._options.focus}' --ignore '{self._options.ignore}'"
            found.append(ReportWarning("empty-focus", message, "look for the name in report --by function"))
        notes = sorted({note for capture in self.profiled for note in capture.quality.notes})
        return (*found, *(ReportWarning("recording", f"{self._arm.name}: {note}") for note in notes))

    def _select_phase(self, symbolized: SymbolizedCapture, stacks: LogicalStacks) -> PhaseSelection | None:
        if self._phase is None:
            return None
        is_marker = functions_with_name(symbolized.functions, self._phase)[stacks.function()]
        is_marked = stacks_through(stacks, is_marker)[stacks.innermost]
        capture = symbolized.capture
        return select_phase(capture, is_marked[capture.samples.stack], self._scope)

    def _attributed(self, symbolized: SymbolizedCapture, stacks: LogicalStacks, phase: PhaseSelection | None) -> AttributedRun:
        capture = symbolized.capture
        admitted = samples_of_event(capture, self.event)
        if phase is not None:
            admitted &= phase.admitted
        if self._options.focus or self._options.ignore:
            from profiler.analysis.attribution.focus import focused

            passes = focused(symbolized, stacks, self._options.focus, self._options.ignore)
            admitted &= passes[stacks.innermost][capture.samples.stack]
        dso_names = [dso.name for dso in capture.dsos]
        matches = self._matcher.match(symbolized.functions, symbolized.files, dso_names, stacks.places)
        return attributed_run(symbolized, stacks, matches, attribute(stacks, matches, self.rule_set), admitted)


def _symbolized(capture: Capture, symbolizer: Symbolizer) -> SymbolizedCapture:
    from symbolize.function_key import function_key

    def key_of_name(name: str) -> tuple[str, str]:
        found = function_key(name)
        return found.key, found.trait_key

    frames = capture.frames
    answers = {
        dso: symbolizer.symbolize(capture.dsos[dso], frames.offset[rows], frames.is_return_address[rows])
        for dso, rows in frames_by_dso(capture).items()
    }
    return apply_symbols(capture, answers, key_of_name)


def _scope(name: str) -> PhaseScope:
    try:
        return PhaseScope(name)
    except ValueError:
        raise UsageError(f"unknown phase scope '{name}': choose one of {', '.join(PhaseScope)}") from None


def _run_order(capture: Capture) -> tuple[str | int, ...]:
    """Runs of one arm in a fixed order: as they were recorded, then by what tells equal identities apart."""
    info: CaptureInfo = capture.info
    identity = info.identity
    tail = (info.source, info.started_at, len(capture.samples), int(capture.samples.weight.sum()))
    return (identity.session, info.host.hostname, identity.round, identity.position, identity.mode, *tail)


def _hint(pattern: str, names: set[str]) -> str:
    from profiler.analysis.attribution.nearest_names import nearest_names

    found = nearest_names(pattern, names)
    return f"; nearest names: {', '.join(found)}" if found else ""
