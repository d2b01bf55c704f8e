"""agent.toml: TOML in, a checked ``AgentConfig`` out, every mistake with the line it stands on."""

from __future__ import annotations

import stat
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from collectors.agent.config.agent_config import AgentConfig, ConfiguredTarget, ConfiguredWorkload, WorkloadVariant
from collectors.targets.target_finder import TargetFinder
from profiler.errors import UsageError
from profiler.experiment.plan.placeholders import placeholders
from profiler.experiment.plan.recording_plan import BINARY_PLACEHOLDER
from profiler.protocol.hello import AgentLimits, TargetProfiler
from profiler.protocol.loopback import is_loopback
from profiler.protocol.token_file import read_token
from profiler.store.records import check_variant_name
from profiler.toml.toml_document import TomlError, toml_document
from profiler.toml.toml_positions import toml_positions
from profiler.toml.toml_table import TomlSource, TomlTable, nearest_key

Item = TypeVar("Item")
LONGEST_JOB_S = 3600.0
HIGHEST_FREQUENCY_HZ = 4999
SPOOL_BYTES = 2 << 30
LEAST_SPOOL_BYTES = 1 << 20
CPU_PERCENT = 20.0
_SETTINGS = ("server", "ca", "token_file", "spool", "insecure")
_TABLES = ("limits", "target", "workload")
_WAYS = ("pid", "comm", "cgroup", "unit", "container")


def read_agent_file(path: Path) -> AgentConfig:
    """``UsageError``, one line with the file's line: what cannot work, or what others could read or change."""
    try:
        mode = path.stat().st_mode
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from None
    if mode & stat.S_IWOTH:
        raise UsageError(f"{path}: everybody may write to it, and so say what this host runs: `chmod o-w {path}`")
    try:
        document = toml_document(text)
    except TomlError as error:
        raise UsageError(f"{path}:{error.line}: not valid TOML: {error.reason}") from None
    source = TomlSource(path, toml_positions(text))
    for name in document:
        if name not in (*_SETTINGS, *_TABLES):
            hint = nearest_key(name, (*_SETTINGS, *_TABLES))
            source.fail(f"unknown key {name!r}{hint}", name if isinstance(document[name], dict | list) else "", key=name)
    return _config(source, document)


def _config(source: TomlSource, document: dict[str, object]) -> AgentConfig:
    settings = TomlTable(source, "", 0, document)
    here = source.path.absolute().parent
    config = AgentConfig(
        server=_server(settings),
        token=_token(settings, here),
        spool=here / settings.text("spool"),
        ca=here / settings.text("ca") if settings.has("ca") else None,
        limits=_limits(source, document),
        targets=_each(source, document, "target", _target),
        workloads=_each(source, document, "workload", lambda table: _workload(table, here)),
    )
    if config.ca is not None and not config.ca.is_file():
        settings.fail(f"{config.ca}: no such file", "ca")
    return config


def _server(settings: TomlTable) -> str:
    address = settings.text("server").rstrip("/")
    try:
        parts = urllib.parse.urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        settings.fail(f"{address!r} is no address", "server")
    if parts.scheme not in ("http", "https") or not host or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        settings.fail(f"{address!r}: expected an address such as https://aggregator:8640", "server")
    if parts.scheme == "http" and not settings.flag("insecure") and not is_loopback(host):
        settings.fail(
            f"{address}: http would show the token and all captures to the network: use https, or write insecure = true",
            "server",
        )
    settings.flag("insecure")
    return address


def _token(settings: TomlTable, here: Path) -> str:
    path = here / settings.text("token_file")
    try:
        return read_token(path)
    except UsageError as error:
        settings.fail(str(error), "token_file")


def _limits(source: TomlSource, document: dict[str, object]) -> AgentLimits:
    values = document.get("limits", {})
    if not isinstance(values, dict):
        source.fail("limits are a table: write [limits]", "limits")
    table = TomlTable(source, "limits", 0, values)
    longest_s = table.seconds("longest_job", LONGEST_JOB_S)
    if not longest_s > 0:
        table.fail("expected more than 0 seconds", "longest_job")
    limits = AgentLimits(
        longest_job_s=longest_s,
        highest_frequency_hz=table.count("frequency", HIGHEST_FREQUENCY_HZ, 1, 100_000),
        spool_bytes=table.byte_count("spool_bytes", SPOOL_BYTES, LEAST_SPOOL_BYTES),
        cpu_percent=table.number_of("cpu_percent", CPU_PERCENT),
    )
    table.finish()
    return limits


def _each(source: TomlSource, document: dict[str, object], name: str, read: Callable[[TomlTable], Item]) -> tuple[Item, ...]:
    """Every ``[[name]]`` table; no two of one name."""
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        source.fail(f"write [[{name}]] with two brackets: there may be several", name)
    found: list[Item] = []
    names: set[str] = set()
    for number, values in enumerate(tables):
        table = TomlTable(source, name, number, values)
        own = _name(table, table.text("name"), "name")
        if own in names:
            table.fail(f"{own!r} is the name of another {name}", "name")
        names.add(own)
        found.append(read(table))
        table.finish()
    return tuple(found)


def _name(table: TomlTable, name: str, key: str) -> str:
    try:
        check_variant_name(name)
    except UsageError as error:
        table.fail(str(error).removeprefix("variant "), key)
    return name


def _target(table: TomlTable) -> ConfiguredTarget:
    finder = TargetFinder(
        pid=table.count("pid", 0, 1),
        comm=table.regex("comm", ""),
        cgroup=table.text("cgroup", ""),
        unit=table.text("unit", ""),
        container=table.text("container", ""),
        exclude=table.words("exclude"),
    )
    ways = [way for way in _WAYS if table.has(way)]
    if len(ways) != 1:
        table.fail(f"exactly one of {', '.join(_WAYS)} finds the process; here are {', '.join(ways) or 'none'}")
    variants = tuple(_name(table, name, "variants") for name in table.words("variants"))
    swap = table.words("swap")
    if bool(variants) != bool(swap):
        table.fail("variants and swap go together: swap is the command that makes the target one of its variants")
    if swap and "variant" not in placeholders(swap):
        table.fail("{variant} is missing in the command", "swap")
    profiler, has_native = _profiler(table)
    return ConfiguredTarget(table.text("name"), finder, table.address("metrics"), variants, swap, profiler, has_native)


def _profiler(table: TomlTable) -> tuple[TargetProfiler, bool]:
    """(what records the target, whether native frames are recorded too)."""
    name, has_native = table.text("profiler", TargetProfiler.PERF), table.flag("native")
    if name not in list(TargetProfiler):
        table.fail(f"{name!r}: expected {' or '.join(map(repr, map(str, TargetProfiler)))}", "profiler")
    if name == TargetProfiler.PERF:
        if table.has("native"):
            table.fail("native is for py-spy: perf always records native frames", "native")
        return TargetProfiler.PERF, False
    if not (table.has("pid") or table.has("comm")):
        table.fail("py-spy records one process and what it starts: find it by pid or comm", "profiler")
    if table.has("metrics"):
        table.fail("pages of metrics are read beside perf only", "metrics")
    return TargetProfiler.PYSPY, has_native


def _workload(table: TomlTable, here: Path) -> ConfiguredWorkload:
    command = table.words("command", needed=True)
    inner = table.table("variants", needed=True)
    assert inner is not None
    variants = tuple(WorkloadVariant(_name(inner, name, name), str(here / inner.text(name))) for name in inner.values)
    if not variants:
        table.fail("at least one variant is needed", "variants")
    if not any(BINARY_PLACEHOLDER in word for word in command):
        table.fail(f"{BINARY_PLACEHOLDER} is missing in the command: every variant would run the same", "command")
    directory = str(here / table.text("directory")) if table.has("directory") else ""
    return ConfiguredWorkload(table.text("name"), command, variants, directory)
