"""An experiment as its author describes it: builds, conditions, inputs, metrics, loads and targets, and how often to run."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path

from collectors.processes.service import Readiness
from collectors.targets.target_finder import TargetFinder
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.experiment.plan.recording_plan import DEFAULT_EVENT, DEFAULT_RUNS, ProfilePolicy
from profiler.model.experiment import Design, Direction
from profiler.model.quick_dataclass import dataclass
from profiler.model.sampling_defaults import FREQUENCY_HZ

DEFAULT_BUILD_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class PlanInput:
    """``{input.NAME}`` in a command becomes ``path``.  ``note``: free text for the report."""

    name: str
    path: Path
    note: str = ""


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """A change of one source file that is taken back afterwards: ``find`` becomes ``replace`` once, or, with an empty ``find``,
    ``replace`` is appended."""

    file: Path
    find: str
    replace: str


@dataclass(frozen=True, slots=True)
class Rebuild:
    """An incremental build after ``edit``; ``command`` as in ``PlanVariant.build``."""

    command: tuple[str, ...]
    edit: SourceEdit


@dataclass(frozen=True, slots=True)
class PlanVariant:
    """A build under test.  ``source``: working directory of its build commands, None = that of the plan.  ``build``: argument
    list, empty = the binary is there already; ``{build_dir}`` in it, in ``binary`` and in ``build_env`` is a directory of the
    variant's own.  ``profile_build``: a further build with more debug information, whose ``profile_binary`` is run under perf
    in place of ``binary``.  ``revision``: "" = what git describes."""

    name: str
    binary: str = ""
    source: Path | None = None
    build: tuple[str, ...] = ()
    build_env: tuple[tuple[str, str], ...] = ()
    rebuild: Rebuild | None = None
    profile_build: tuple[str, ...] = ()
    profile_binary: str = ""
    revision: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PlanCondition:
    """A way of running every variant: ``args`` follow the command, ``env`` is added.  ``is_control``: no gain is expected."""

    name: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    is_control: bool = False
    note: str = ""


class MetricKind(StrEnum):
    """REGEX, JSON: in the program's output.  PROMETHEUS: difference of ``_sum`` over difference of ``_count`` in the window.
    STAT: a count of ``perf stat``.  COMMAND: what a command prints after the run."""

    REGEX = "regex"
    JSON = "json"
    PROMETHEUS = "prometheus"
    STAT = "stat"
    COMMAND = "command"


@dataclass(frozen=True, slots=True)
class PlanMetric:
    """``spec``: the expression, path, series or event; of COMMAND the regex for its output, with ``command`` its argument list.
    ``from_load``: name of the load whose output is read, "" = the program's."""

    name: str
    kind: MetricKind
    spec: str
    direction: Direction = Direction.LOWER
    pick: str = "mean"
    command: tuple[str, ...] = ()
    from_load: str = ""


@dataclass(frozen=True, slots=True)
class PlanLoad:
    """A service is started, awaited, loaded by ``command`` and stopped by ``stop_signal``.  ``warmup_s``: load before the part
    that counts, ``window_s``: that part, 0 = as long as ``command`` runs.  ``requests``: the metric that counts requests, for
    CPU time per request, "" = none.  ``metrics``: address of the service's Prometheus page."""

    name: str
    service: tuple[str, ...]
    ready: Readiness
    command: tuple[str, ...]
    warmup_s: float = 0.0
    window_s: float = 0.0
    requests: str = ""
    metrics: str = ""
    stop_signal: str = "TERM"
    stop_timeout_s: float = 30.0


def cpu_per_request(load: PlanLoad) -> str:
    """Name of the metric that holds the service's CPU time per request."""
    return f"{load.name}: CPU per request"


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """A process that runs already.  One of ``pid``, ``comm``, ``cgroup``, ``unit`` finds it; ``metrics``: address of its
    Prometheus page.  Or, with ``agent``, the name of an agent: a ``process`` or a ``workload`` of that agent's own agent.toml.
    ``is_excluded``: watched and listed, but no replicate."""

    variant: str
    node: str
    pid: int = 0
    comm: str = ""
    cgroup: str = ""
    unit: str = ""
    metrics: str = ""
    is_excluded: bool = False
    agent: str = ""
    process: str = ""
    workload: str = ""

    @property
    def finder(self) -> TargetFinder:
        return TargetFinder(pid=self.pid, comm=self.comm, cgroup=self.cgroup, unit=self.unit)


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """A checked plan.  ``command``: argument list with ``{binary}`` and ``{input.NAME}``.  ``primary``: the metric it is about,
    "" = CPU time.  ``per``: work units in one run.  ``is_aa``: the baseline runs a second time under another name.
    ``retries``: runs that may be repeated in all because they failed or were disturbed.  ``window_s``, ``settle_s``: of
    targets; ``swap``: argument list that makes a ``{node}`` run a ``{variant}``, of a crossover.  ``path``, ``text``: the file
    it was read from."""

    name: str
    path: Path
    text: str
    variants: tuple[PlanVariant, ...]
    baseline: str
    seed: int
    design: Design = Design.INTERLEAVED
    runs: int = DEFAULT_RUNS
    warmup: int = 0
    command: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    primary: str = ""
    profile: ProfilePolicy = ProfilePolicy.SEPARATE
    per: float = 1.0
    phase: str = ""
    margin: float = 0.01
    drop_caches: bool = False
    cpus: frozenset[int] = frozenset()
    event: str = DEFAULT_EVENT
    frequency_hz: int = FREQUENCY_HZ
    call_graph: CallGraphRequest = field(default_factory=CallGraphRequest)
    keep_raw: bool = False
    is_aa: bool = False
    timeout_s: float = 0.0
    retries: int = 0
    window_s: float = 60.0
    settle_s: float = 0.0
    swap: tuple[str, ...] = ()
    inputs: tuple[PlanInput, ...] = ()
    conditions: tuple[PlanCondition, ...] = ()
    metrics: tuple[PlanMetric, ...] = ()
    loads: tuple[PlanLoad, ...] = ()
    targets: tuple[PlanTarget, ...] = ()

    @property
    def is_over_agents(self) -> bool:
        """Whether an aggregator carries it out, on the hosts of its agents."""
        return any(target.agent for target in self.targets)

    @property
    def has_workloads(self) -> bool:
        """Whether agents run programs for it, in place of watching what runs already."""
        return any(target.workload for target in self.targets)
