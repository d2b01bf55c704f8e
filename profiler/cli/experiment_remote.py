"""Experiments that an aggregator carries out: submitted, followed, cancelled, and shown."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from profiler.cli.aggregator_client import ServerOptions, fetch_json, fetch_text, send_json
from profiler.cli.context import CliContext
from profiler.errors import CaptureError, StoreError, UsageError
from profiler.protocol.addresses import EXPERIMENT, EXPERIMENT_CANCEL, EXPERIMENT_RESULT, EXPERIMENTS
from reports.plain_text import printable
from reports.quantities import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from profiler.codec.json_values import Json
    from profiler.experiment.plan.experiment_plan import ExperimentPlan
    from profiler.service.experiments.experiment_progress import ExperimentProgress

Value = TypeVar("Value")
POLL_S = 2.0
# An aggregator that is started anew, or a network that is away, is waited for; the experiment goes on without the command.
_PATIENCE_S = 600.0
_FORMATS = {"table": "markdown", "markdown": "markdown", "json": "json"}


def run_on_server(plan: ExperimentPlan, options: ServerOptions, context: CliContext) -> int:
    """Submits the plan and follows it to its end.  ``UsageError``: the aggregator's agents cannot carry it out;
    ``CaptureError``: it failed or was cancelled."""
    if not plan.is_over_agents:
        raise UsageError(f"{plan.path}: its targets are not on agents: run it where they are, without --server")
    body = {"plan": plan.text, "name": plan.path.name}
    begun = _progress(send_json(options, EXPERIMENTS, body), options)
    return follow(begun.session, options, context)


def follow(session: str, options: ServerOptions, context: CliContext) -> int:
    """Shows how far an experiment is, until its end or Ctrl-C, which leaves it running."""
    lines = ProgressLines(context)
    try:
        ended = _await_end(session, options, lines)
    except KeyboardInterrupt:
        lines.close()
        print(f"session {session} goes on; look at it: {_command('watch', session, options)}", file=context.stderr)
        print(f"end it: {_command('cancel', session, options)}", file=context.stderr)
        raise
    lines.close()
    shows = _command("show", session, options)
    if ended.state != "finished":
        raise CaptureError(f"session {session} {ended.state}: {ended.detail}; `{shows}` shows what was measured")
    context.stdout.write(f"session {session}: `{shows}` shows what it found\n")
    return 0


def cancel(session: str, options: ServerOptions, context: CliContext) -> int:
    """Asks for the end of an experiment."""
    progress = _progress(send_json(options, _path(EXPERIMENT_CANCEL, session), {}), options)
    state = progress.doing or progress.state
    context.stdout.write(f"session {session}: {state}; what it has measured is kept\n")
    return 0


def show(session: str, format_: str, options: ServerOptions, context: CliContext) -> int:
    """What the aggregator's store says of an experiment, by default in Markdown."""
    if format_ not in _FORMATS:
        raise UsageError(f"--format {format_}: an aggregator answers with markdown or json")
    session = _latest(session, options)
    path = f"{_path(EXPERIMENT_RESULT, session)}?format={_FORMATS[format_]}"
    context.stdout.write(fetch_text(options, path))
    return 0


def _latest(name: str, options: ServerOptions) -> str:
    """The latest session that is called so, or whose experiment is; "" = of all."""
    found = _experiments(fetch_json(options, EXPERIMENTS), options)
    sessions = [each.session for each in found if name in ("", each.session, each.name)]
    if not sessions:
        known = ", ".join(dict.fromkeys(each.name for each in found))
        what = f"no experiment {name!r}; it has {known}" if known else "no experiment over agents has been run yet"
        raise UsageError(f"{options.server}: {what}")
    return sessions[-1]


def _await_end(session: str, options: ServerOptions, lines: ProgressLines) -> ExperimentProgress:
    heard_s = time.monotonic()
    while True:
        try:
            progress = _progress(fetch_json(options, _path(EXPERIMENT, session)), options)
        except StoreError as error:
            if time.monotonic() - heard_s > _PATIENCE_S:
                raise
            lines.note(f"{error}; trying again, the experiment does not need this command")
        else:
            heard_s = time.monotonic()
            lines.show(progress)
            if progress.state.is_final:
                return progress
        time.sleep(POLL_S)


@dataclass(slots=True)
class ProgressLines:
    """A line for whatever is new; on a terminal a bar below them."""

    context: CliContext
    _said: str = ""
    _bar: Progress | None = None
    _task: TaskID | None = None
    _troubles: set[str] = field(default_factory=set)

    def show(self, progress: ExperimentProgress) -> None:
        attempt = f", attempt {progress.attempt}" if progress.attempt > 1 else ""
        place = f"round {progress.round} of {progress.rounds}{attempt}"
        self._once(f"{place}, because of {progress.again}" if progress.again else "")
        self.note(f"session {progress.session}  {place}: {progress.doing or progress.state}")
        for node in progress.nodes:
            self._once(f"{place}  {node.variant}  {node.node}: {node.doing}" if _is_trouble(node.doing) else "")
        self._advance(progress)

    def note(self, line: str) -> None:
        """Said once, until another follows."""
        if line != self._said:
            self._said = line
            self._line(line)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _once(self, trouble: str) -> None:
        if trouble and trouble not in self._troubles:
            self._troubles.add(trouble)
            self._line(trouble)

    def _line(self, line: str) -> None:
        if self._bar is not None:
            self._bar.console.print(printable(line), markup=False, highlight=False)
        else:
            print(printable(line), file=self.context.stderr, flush=True)

    def _advance(self, progress: ExperimentProgress) -> None:
        if not self.context.stderr.isatty():
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(file=self.context.stderr), transient=True)
            self._task = self._bar.add_task(counted(progress.rounds, "round"), total=progress.rounds)
            self._bar.start()
        assert self._task is not None
        done = progress.rounds if progress.state == "finished" else progress.round - 1
        self._bar.update(self._task, completed=done, description=printable(f"round {progress.round}, {progress.doing}"))


def _is_trouble(doing: str) -> bool:
    """Whether it is anything but a state in which all is well."""
    state = doing.partition(":")[0].partition(",")[0]
    return bool(doing) and state not in ("waiting", "accepted", "ready", "running", "done")


def _progress(answer: Json, options: ServerOptions) -> ExperimentProgress:
    from profiler.service.experiments.experiment_progress import ExperimentProgress

    return _read(ExperimentProgress, answer, options)


def _experiments(answer: Json, options: ServerOptions) -> tuple[ExperimentProgress, ...]:
    from profiler.service.experiments.experiment_progress import Experiments

    return _read(Experiments, answer, options).experiments


def _read(kind: type[Value], answer: Json, options: ServerOptions) -> Value:
    from profiler.codec.json_values import JsonShapeError, from_json

    try:
        return from_json(kind, answer)
    except JsonShapeError as error:
        raise StoreError(f"{options.server}: another version of slotscope? ({error})") from None


def _path(address: str, session: str) -> str:
    return address.format(session=quote(session, safe=""))


def _command(action: str, session: str, options: ServerOptions) -> str:
    return shlex.join(("slotscope", "experiment", action, session, *options.words))
