"""Imports point downward only: the layers, checked over the syntax trees of every module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("profiler", "collectors", "symbolize", "reports")

# The unit that an import rule speaks of: the longest of these prefixes that a module's dotted name has.
LAYERS = {
    "profiler": 0,  # the package initialiser
    "profiler.errors": 0,
    "profiler.forked_task": 0,
    "profiler.model": 0,
    "profiler.rules": 1,
    "profiler.rules.check": 1,
    "profiler.analysis": 1,
    "profiler.analysis.statistics": 1,
    "profiler.analysis.attribution": 1,
    "profiler.analysis.quality": 1,
    "profiler.analysis.comparison": 1,
    "profiler.codec": 1,
    "profiler.protocol": 1,
    "profiler.toml": 1,
    "profiler.store": 2,
    "profiler.pipeline": 2,
    "profiler.stored_arms": 2,
    "profiler.experiment": 3,
    "profiler.experiment.plan": 3,
    "profiler.experiment.binaries": 3,
    "profiler.experiment.run": 3,
    "profiler.experiment.targets": 3,
    "profiler.attach": 3,
    "profiler.orders": 3,
    "profiler.service": 3,
    "profiler.service.access": 3,
    "profiler.service.agents": 3,
    "profiler.service.api": 3,
    "profiler.service.experiments": 3,
    "profiler.service.ingest": 3,
    "profiler.service.jobs": 3,
    "profiler.service.listening": 3,
    "profiler.service.pages": 3,
    "collectors.agent": 3,
    "collectors.agent.agent_log": 3,
    "collectors.agent.config": 3,
    "collectors.agent.spool": 3,
    "collectors.agent.connection": 3,
    "collectors.agent.jobs": 3,
    "collectors.agent.upload": 3,
    "profiler.cli": 4,
    "collectors": 0,
    "collectors.perf_data": 1,
    "collectors.ingest": 1,
    "collectors.importers": 1,
    "collectors.metrics": 2,
    "collectors.prometheus": 2,
    "collectors.host": 2,
    "collectors.host_fitness": 2,
    "collectors.disturbance": 2,
    "collectors.jit_maps": 2,
    "collectors.recording_file": 2,
    "collectors.processes": 2,
    "collectors.profilers": 2,
    "collectors.targets": 2,
    "symbolize": 0,
    "symbolize.elf": 1,
    "symbolize.dwarf": 1,
    "symbolize.unwind": 1,
    "symbolize.binary_facts": 1,
    "symbolize.demangle": 1,
    "symbolize.name_scanner": 1,
    "symbolize.source_origin": 1,
    "symbolize.function_key": 1,
    "symbolize.stored_functions": 1,
    "symbolize.symbol_map": 1,
    "symbolize.symbol_names": 1,
    "symbolize.column_file": 1,
    "symbolize.kallsyms": 1,
    "symbolize.symbol_tools": 2,
    "symbolize.cache": 2,
    "symbolize.shared_growth": 2,
    "symbolize.unwind_cache": 2,
    "symbolize.kernel_cache": 2,
    "symbolize.locate": 2,
    "symbolize.image_file": 2,
    "symbolize.search_paths": 2,
    "symbolize.root_directory": 1,
    "symbolize.debug_files": 2,
    "symbolize.debuginfod": 2,
    "symbolize.vmlinux": 2,
    "symbolize.symbolizer": 2,
    "reports": 1,
}
# Units that may use siblings of their layer: errors that carry values, and parts of one package that belong together.
SIBLINGS = {
    "profiler.errors": {"profiler.model"},
    "profiler.experiment.plan": set(),
    "profiler.experiment.binaries": {"profiler.experiment.plan"},
    "profiler.experiment.run": {"profiler.experiment.plan", "profiler.experiment.binaries"},
    "profiler.experiment.targets": {"profiler.experiment.plan", "profiler.experiment.binaries", "profiler.experiment.run"},
    "profiler.orders": {"profiler.experiment.plan"},
    "profiler.rules": {"profiler.toml"},
    "profiler.rules.check": {"profiler.rules"},
    "profiler.analysis.attribution": {"profiler.analysis.statistics"},
    "profiler.analysis.quality": {"profiler.analysis", "profiler.analysis.attribution", "profiler.analysis.statistics"},
    "profiler.analysis.comparison": {
        "profiler.analysis",
        "profiler.analysis.attribution",
        "profiler.analysis.quality",
        "profiler.analysis.statistics",
    },
    # The aggregator as one value puts the parts together; routes, and what goes on beside them, work on that value.
    "profiler.service": {
        "profiler.service.access",
        "profiler.service.agents",
        "profiler.service.jobs",
        "profiler.service.ingest",
        "profiler.service.experiments",
        "profiler.service.pages",
    },
    "profiler.service.access": {"profiler.service", "profiler.service.api"},
    "profiler.service.agents": {"profiler.service"},
    "profiler.service.jobs": {"profiler.orders", "profiler.service", "profiler.service.agents"},
    "profiler.service.ingest": {
        "profiler.service",
        "profiler.service.access",
        "profiler.service.api",
        "profiler.service.jobs",
    },
    "profiler.service.experiments": {
        "profiler.experiment",
        "profiler.experiment.binaries",
        "profiler.experiment.plan",
        "profiler.experiment.targets",
        "profiler.service",
        "profiler.service.access",
        "profiler.service.agents",
        "profiler.service.api",
        "profiler.service.jobs",
    },
    "profiler.service.pages": {
        "profiler.experiment",
        "profiler.service",
        "profiler.service.access",
        "profiler.service.agents",
        "profiler.service.api",
        "profiler.service.experiments",
        "profiler.service.jobs",
    },
    "profiler.service.api": {
        "profiler.service",
        "profiler.service.access",
        "profiler.service.agents",
        "profiler.service.experiments",
        "profiler.service.ingest",
        "profiler.service.jobs",
        "profiler.service.pages",
    },
    "profiler.service.listening": {"profiler.service", "profiler.service.access", "profiler.service.api"},
    # The agent: what it may do and what it keeps know nothing of the server; jobs know nothing of uploads, nor these of jobs.
    "collectors.agent": {
        "collectors.agent.agent_log",
        "collectors.agent.config",
        "collectors.agent.connection",
        "collectors.agent.jobs",
        "collectors.agent.spool",
        "collectors.agent.upload",
        "profiler.attach",
    },
    "collectors.agent.agent_log": set(),
    "collectors.agent.config": {"profiler.experiment.plan"},
    "collectors.agent.spool": set(),
    "collectors.agent.connection": {"collectors.agent.agent_log", "collectors.agent.config", "collectors.agent.spool"},
    "collectors.agent.jobs": {
        "collectors.agent.agent_log",
        "collectors.agent.config",
        "collectors.agent.connection",
        "collectors.agent.spool",
        "profiler.attach",
        "profiler.experiment.plan",
        "profiler.experiment.run",
        "profiler.experiment.targets",
        "profiler.orders",
    },
    "collectors.agent.upload": {"collectors.agent.agent_log", "collectors.agent.connection", "collectors.agent.spool"},
    "collectors.ingest": {"collectors.perf_data", "symbolize.unwind", "symbolize.elf"},
    "collectors.importers": {"collectors.ingest", "collectors.perf_data", "symbolize.demangle", "symbolize.unwind"},
    "symbolize.unwind": {"symbolize.elf"},
    "symbolize.dwarf": {"symbolize.elf"},
    "symbolize.binary_facts": {"symbolize.elf", "symbolize.dwarf"},
    "symbolize.symbol_map": {
        "symbolize.elf",
        "symbolize.dwarf",
        "symbolize.demangle",
        "symbolize.function_key",
        "symbolize.source_origin",
        "symbolize.stored_functions",
        "symbolize.symbol_names",
    },
    "symbolize.symbol_names": {"symbolize.elf", "symbolize.dwarf"},
    "symbolize.function_key": {"symbolize.demangle", "symbolize.name_scanner"},
}


def unit_of(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] not in PACKAGES:
        return None
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in LAYERS:
            return name
    return None


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found.append((dotted.removesuffix(".__init__"), path))
    return found


def imports_of(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module or "")
    return names


def violation(module: str, imported: str) -> str | None:
    importer, target = unit_of(module), unit_of(imported)
    if target is None or importer is None:
        return None
    if importer == target or LAYERS[target] < LAYERS[importer]:
        return None
    same_package = importer.split(".")[0] == target.split(".")[0]
    is_free = same_package and LAYERS[importer] >= 2 and importer not in SIBLINGS
    if LAYERS[target] == LAYERS[importer] and (is_free or target in SIBLINGS.get(importer, set())):
        return None
    return f"{module} (layer {LAYERS[importer]}) imports {imported} (layer {LAYERS[target]})"


@pytest.mark.parametrize(("module", "path"), modules(), ids=[name for name, _ in modules()])
def test_imports_point_downward(module: str, path: Path) -> None:
    found = [v for v in (violation(module, name) for name in imports_of(path)) if v]
    assert not found


def test_the_rule_sees_a_violation() -> None:
    assert violation("reports.terminal", "profiler.analysis.statistics.t_tests")
    assert violation("profiler.model.costs", "profiler.rules.loader")
    assert violation("collectors.ingest", "symbolize.dwarf.lines")
    assert violation("profiler.analysis.comparison.compare", "profiler.rules.loader")
    assert violation("collectors.ingest", "symbolize.unwind.unwinder") is None


def test_every_module_has_a_layer() -> None:
    assert [name for name, _ in modules() if unit_of(name) in ("profiler", "collectors", "symbolize") and "." in name] == []


def test_package_initialisers_import_nothing() -> None:
    assert [name for name, path in modules() if path.name == "__init__.py" and imports_of(path)] == []


def caught_names(path: Path) -> set[str]:
    handlers = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ExceptHandler)]
    return {node.id for each in handlers if each.type for node in ast.walk(each.type) if isinstance(node, ast.Name)}


def test_only_the_console_script_catches_every_expected_error() -> None:
    assert [name for name, path in modules() if "SlotscopeError" in caught_names(path)] == ["profiler.cli.main"]


def test_only_the_console_script_catches_unexpected_errors() -> None:
    handlers = [(name, node) for name, path in modules() for node in ast.walk(ast.parse(path.read_text()))]
    assert [name for name, node in handlers if isinstance(node, ast.ExceptHandler) and node.type is None] == []
    assert [name for name, path in modules() if "Exception" in caught_names(path)] == ["profiler.cli.main"]
