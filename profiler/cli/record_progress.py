"""What `slotscope record` shows while it works: lines, and on a terminal a bar below them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from reports.plain_text import printable
from reports.quantities import count, counted, scale_for

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from profiler.experiment.plan.schedule import Schedule, ScheduledRun
    from profiler.experiment.run.preparation import Preparation, PreparedArm
    from profiler.experiment.run.progress import FinishedRun, SessionSummary


class RecordingLines:
    """``profiler.experiment.run.progress.RecordProgress`` on a stream."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._steps, self._done, self._rounds = 0, 0, 0
        self._started_s = clock()

    def session_started(self, session: str, preparation: Preparation, schedule: Schedule) -> None:
        plan = preparation.plan
        self._steps, self._rounds = len(schedule), len(schedule.rounds)
        self._started_s = self._clock()
        arms, rounds = counted(len(plan.arms), "arm"), counted(len(schedule.rounds), "round")
        self._line(f"session {session}: {arms}, {rounds}, {counted(self._steps, 'run')} in all, seed {plan.seed}")
        for arm in preparation.arms:
            self._line(f"{arm.name}: {_recording_text(arm)}")
        if self._stream.isatty():
            self._start_bar()

    def run_started(self, scheduled: ScheduledRun, variant: str) -> None:
        self._update_bar(f"{self._place(scheduled)} {variant} {scheduled.mode}")

    def run_finished(self, run: FinishedRun) -> None:
        self._done += 1
        scheduled, outcome = run.scheduled, run.outcome
        parts = [self._place(scheduled), printable(run.variant), str(scheduled.mode), _duration(outcome.wall_ns)]
        parts.append(f"cpu {_duration(outcome.user_ns + outcome.system_ns)}")
        if run.samples or run.lost_samples:
            parts.append(counted(run.samples, "sample"))
        parts += [
            f"{metric.name} {scale_for([metric.value], metric.unit).quantity(metric.value)}" for metric in outcome.metrics
        ]
        if run.lost_samples:
            parts.append(f"LOST {count(run.lost_samples)}: lower --frequency, or another --call-graph")
        if outcome.failure:
            word = "left out" if outcome.disturbance else "FAILED, left out"
            parts.append(f"{word}: {printable(outcome.failure)}")
        elif outcome.disturbance:
            parts.append(f"counts, though disturbed: {printable(outcome.disturbance)}")
        eta = time_left_s(self._clock() - self._started_s, self._done, self._steps)
        if eta is not None and self._bar is None:
            parts.append(f"({rough_duration(eta)} left)")
        self._line("  ".join(parts))
        self._update_bar("")

    def session_ended(self, summary: SessionSummary) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if summary.state != "finished":
            kept = f"{counted(summary.finished_rounds, 'finished round')} and {counted(len(summary.runs), 'run')} are kept"
            what = f": {kept}" if summary.runs else " before a run was finished"
            self._line(f"session {summary.session} was cut short{what}")

    def _place(self, scheduled: ScheduledRun) -> str:
        return "warm-up" if scheduled.is_warmup else f"round {scheduled.round + 1}/{self._rounds}"

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def _start_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        # Refreshed by hand: a thread that draws would take CPU time from the program.
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"), TextColumn("{task.description}"))
        self._bar = Progress(*columns, console=Console(file=self._stream), auto_refresh=False, transient=True)
        self._task = self._bar.add_task("", total=self._steps, left="")
        self._bar.start()

    def _update_bar(self, description: str) -> None:
        if self._bar is None or self._task is None:
            return
        eta = time_left_s(self._clock() - self._started_s, self._done, self._steps)
        left = "" if eta is None else f"{rough_duration(eta)} left"
        self._bar.update(self._task, completed=self._done, description=description, left=left, refresh=True)


def time_left_s(elapsed_s: float, done: int, steps: int) -> float | None:
    """What is left when the remaining steps take as long as those done; None while that is not known or nothing is left."""
    return elapsed_s / done * (steps - done) if 0 < done < steps else None


def rough_duration(seconds: float) -> str:
    """As long as nobody counts on it: "about 12 s", "about 3 min"."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"


def _duration(value_ns: int) -> str:
    return scale_for([value_ns], "ns").quantity(value_ns)


def _recording_text(arm: PreparedArm) -> str:
    if not arm.perf.event:
        return "not profiled"
    size = f",{arm.perf.dump_bytes}" if arm.perf.dump_bytes else ""
    text = f"{arm.perf.event} at {arm.perf.frequency_hz} Hz, call graph {arm.perf.call_graph}{size}"
    text += f" ({printable(arm.perf.call_graph_reason)})"
    if arm.profiled.program.debug_info == "none":
        text += "; no debug information in it: inline functions and lines will be missing (build with -g, or debug = 1)"
    return text
