"""Plan files: TOML in, a checked ``ExperimentPlan`` out, every mistake with the line it stands on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from collectors.metrics import PICKS
from collectors.processes.service import Readiness
from profiler.errors import UsageError
from profiler.experiment.plan.call_graph_request import parse_call_graph
from profiler.experiment.plan.cpu_list import parse_cpus
from profiler.experiment.plan.experiment_plan import (
    ExperimentPlan,
    MetricKind,
    PlanCondition,
    PlanInput,
    PlanLoad,
    PlanMetric,
    PlanTarget,
    PlanVariant,
    Rebuild,
    SourceEdit,
)
from profiler.experiment.plan.plan_check import check_experiment
from profiler.experiment.plan.recording_plan import (
    DEFAULT_EVENT,
    DEFAULT_RUNS,
    ProfilePolicy,
)
from profiler.model.experiment import Design, Direction
from profiler.model.sampling_defaults import ATTACHED_FREQUENCY_HZ, FREQUENCY_HZ
from profiler.toml.toml_document import TomlError, toml_document
from profiler.toml.toml_positions import toml_positions
from profiler.toml.toml_table import TomlSource, TomlTable, nearest_key

Item = TypeVar("Item")
_TABLES = ("experiment", "input", "variant", "condition", "metric", "load", "target")
_MOST_RUNS = 100_000
_SIGNALS = ("TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2")


def read_plan(path: Path) -> ExperimentPlan:
    """The plan in a file.  ``UsageError`` with file and line for whatever cannot work."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from None
    return parse_plan(text, path)


def parse_plan(text: str, path: Path) -> ExperimentPlan:
    """The same from the text; relative paths in it are relative to the directory of ``path``."""
    try:
        document = toml_document(text)
    except TomlError as error:
        raise UsageError(f"{path}:{error.line}: not valid TOML: {error.reason}") from None
    source = TomlSource(path, toml_positions(text))
    for name in document:
        if name not in _TABLES:
            source.fail(f"unknown table {name!r}{nearest_key(name, _TABLES)}", name)
    plan = _plan(source, document, text)
    check_experiment(plan, source)
    return plan


def _plan(source: TomlSource, document: dict[str, object], text: str) -> ExperimentPlan:
    if not isinstance(document.get("experiment"), dict):
        source.fail("a plan begins with a table [experiment]", "experiment")
    settings = TomlTable(source, "experiment", 0, document["experiment"])  # type: ignore[arg-type]
    here = source.path.absolute().parent
    variants = _each(source, document, "variant", lambda table: _variant(table, here))
    targets = _each(source, document, "target", _target)
    plan = ExperimentPlan(
        name=settings.text("name"),
        path=source.path,
        text=text,
        design=settings.choice("design", Design, Design.INTERLEAVED),
        runs=settings.count("runs", DEFAULT_RUNS, 1, _MOST_RUNS),
        warmup=settings.count("warmup", 0, 0, _MOST_RUNS),
        seed=settings.count("seed", secrets.randbelow(1 << 32)),
        baseline=settings.text("baseline", variants[0].name if variants else ""),
        primary=settings.text("primary", ""),
        profile=settings.choice("profile", ProfilePolicy, ProfilePolicy.SEPARATE),
        per=settings.number_of("per", 1.0, least=1e-12),
        phase=settings.regex("phase", ""),
        margin=settings.number_of("margin", 1.0, least=1e-6) / 100,
        drop_caches=settings.flag("drop_caches"),
        cpus=_as_option(settings, "cpus", parse_cpus, ""),
        command=settings.words("command"),
        before=settings.words("before"),
        event=_event(settings),
        frequency_hz=settings.count("frequency", _default_frequency_hz(targets), 1, 1_000_000),
        call_graph=_as_option(settings, "call_graph", parse_call_graph, "auto"),
        keep_raw=settings.flag("keep_raw"),
        is_aa=settings.flag("aa"),
        timeout_s=settings.seconds("timeout", 0.0),
        retries=settings.count("retries", _default_retries(settings, targets)),
        window_s=settings.seconds("window", 60.0),
        settle_s=settings.seconds("settle", 0.0),
        swap=settings.words("swap"),
        variants=variants,
        inputs=_each(source, document, "input", lambda table: _input(table, here)),
        conditions=_each(source, document, "condition", _condition),
        metrics=_each(source, document, "metric", _metric),
        loads=_each(source, document, "load", _load),
        targets=targets,
    )
    settings.finish()
    return plan


def _default_frequency_hz(targets: Sequence[PlanTarget]) -> int:
    return ATTACHED_FREQUENCY_HZ if any(target.process for target in targets) else FREQUENCY_HZ


def _default_retries(settings: TomlTable, targets: Sequence[PlanTarget]) -> int:
    """One for every fifth round, and two more; none for processes of this host, whose windows are marked instead."""
    if targets and not any(target.agent for target in targets):
        return 0
    return 2 + settings.count("runs", DEFAULT_RUNS, 1, _MOST_RUNS) // 5


def _each(source: TomlSource, document: dict[str, object], name: str, read: Callable[[TomlTable], Item]) -> tuple[Item, ...]:
    """Every ``[[name]]`` table."""
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        source.fail(f"write [[{name}]] with two brackets: there may be several", name)
    found = []
    for number, values in enumerate(tables):
        table = TomlTable(source, name, number, values)
        found.append(read(table))
        table.finish()
    return tuple(found)


def _input(table: TomlTable, here: Path) -> PlanInput:
    return PlanInput(table.text("name"), here / table.text("path"), table.text("note", ""))


def _variant(table: TomlTable, here: Path) -> PlanVariant:
    source = here / table.text("source") if table.has("source") else None
    rebuild = table.table("rebuild")
    return PlanVariant(
        name=table.text("name"),
        binary=table.text("binary", ""),
        source=source,
        build=table.words("build"),
        build_env=table.pairs("build_env"),
        rebuild=_rebuild(rebuild, source or here) if rebuild is not None else None,
        profile_build=table.words("profile_build"),
        profile_binary=table.text("profile_binary", ""),
        revision=table.text("revision", ""),
        note=table.text("note", ""),
    )


def _rebuild(table: TomlTable, source: Path) -> Rebuild:
    edit = table.table("edit", needed=True)
    assert edit is not None
    replace = edit.text("replace") if edit.has("find") else edit.text("append")
    made = Rebuild(table.words("command", needed=True), SourceEdit(source / edit.text("file"), edit.text("find", ""), replace))
    edit.finish()
    table.finish()
    return made


def _condition(table: TomlTable) -> PlanCondition:
    return PlanCondition(
        table.text("name"), table.words("args"), table.pairs("env"), table.flag("control"), table.text("note", "")
    )


def _metric(table: TomlTable) -> PlanMetric:
    kinds = [kind for kind in (MetricKind.REGEX, MetricKind.JSON, MetricKind.PROMETHEUS, MetricKind.STAT) if table.has(kind)]
    command = table.words("command")
    if len(kinds) != 1:
        wanted = "exactly one of regex, json, prometheus, stat says where it is read"
        table.fail(f"{wanted}; here are {', '.join(kinds) or 'none'}", kinds[1] if len(kinds) > 1 else "")
    kind = kinds[0]
    if command and kind not in (MetricKind.REGEX, MetricKind.JSON):
        table.fail("a command's output is read by regex or json", "command")
    pick = table.text("pick", "mean")
    if pick not in PICKS:
        table.fail(f"{pick!r} is none of {', '.join(PICKS)}", "pick")
    spec = table.regex("regex") if kind is MetricKind.REGEX else table.text(kind)
    return PlanMetric(
        name=table.text("name"),
        kind=MetricKind.COMMAND if command else kind,
        spec=f"{kind}:{spec}" if command else spec,
        direction=table.choice("direction", Direction, Direction.LOWER),
        pick=pick,
        command=command,
        from_load=table.text("from", ""),
    )


def _load(table: TomlTable) -> PlanLoad:
    ready = table.table("ready", needed=True)
    assert ready is not None
    readiness = Readiness(
        port=ready.count("port", 0, 1, 65535),
        http=ready.address("http"),
        log=ready.regex("log", ""),
        timeout_s=ready.seconds("timeout", 60.0),
    )
    if sum((bool(readiness.port), bool(readiness.http), bool(readiness.log))) != 1:
        ready.fail("exactly one of port, http, log says when the service is ready")
    ready.finish()
    signal = table.text("stop", "TERM").removeprefix("SIG")
    if signal not in _SIGNALS:
        table.fail(f"{signal!r} is none of {', '.join(_SIGNALS)}", "stop")
    return PlanLoad(
        name=table.text("name"),
        service=table.words("service", needed=True),
        ready=readiness,
        command=table.words("command", needed=True),
        warmup_s=table.seconds("warmup", 0.0),
        window_s=table.seconds("window", 0.0),
        requests=table.text("requests", ""),
        metrics=table.address("metrics"),
        stop_signal=signal,
        stop_timeout_s=table.seconds("stop_timeout", 30.0),
    )


def _target(table: TomlTable) -> PlanTarget:
    if any(table.has(key) for key in ("agent", "process", "workload")):
        return _agent_target(table)
    target = PlanTarget(
        variant=table.text("variant"),
        node=table.text("node"),
        pid=table.count("pid", 0, 1),
        comm=table.regex("comm", ""),
        cgroup=table.text("cgroup", ""),
        unit=table.text("unit", ""),
        metrics=table.address("metrics"),
        is_excluded=table.flag("exclude"),
    )
    ways = [name for name in ("pid", "comm", "cgroup", "unit") if table.has(name)]
    if len(ways) > 1:
        table.fail(f"one of pid, comm, cgroup, unit finds the process; here are {', '.join(ways)}", ways[1])
    if not ways and not target.metrics:
        table.fail("one of pid, comm, cgroup, unit or a metrics address is needed")
    return target


def _agent_target(table: TomlTable) -> PlanTarget:
    agent = table.text("agent")
    for key in ("pid", "comm", "cgroup", "unit", "metrics"):
        if table.has(key):
            table.fail(f"the agent's own agent.toml says so: name it with process, and leave {key} out", key)
    kinds = [key for key in ("process", "workload") if table.has(key)]
    if len(kinds) != 1:
        table.fail(
            f"exactly one of process, workload names what the agent is to profile; here are {', '.join(kinds) or 'none'}",
            kinds[1] if len(kinds) > 1 else "agent",
        )
    return PlanTarget(
        variant=table.text("variant"),
        node=table.text("node", agent),
        is_excluded=table.flag("exclude"),
        agent=agent,
        process=table.text("process") if kinds == ["process"] else "",
        workload=table.text("workload") if kinds == ["workload"] else "",
    )


def _event(settings: TomlTable) -> str:
    event = settings.text("event", "auto")
    return DEFAULT_EVENT if event == "auto" else event


def _as_option(table: TomlTable, key: str, parse: Callable[[str], Item], default: str) -> Item:
    """What the parser of a command-line option makes of it; its complaints at the line of the key."""
    text = table.text(key, default)
    try:
        return parse(text)
    except UsageError as error:
        table.fail(str(error).removeprefix(f"--{key.replace('_', '-')} {text!r}: "), key)
