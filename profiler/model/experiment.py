"""What an experiment was meant to be, as it is kept beside its runs: enough to repeat it and to report on it."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.quick_dataclass import dataclass


class Design(StrEnum):
    """INTERLEAVED: the arms take turns within each round on one host.  PARALLEL: arms run at the same time in processes of
    their own, and the replicate is the process.  CROSSOVER: every process runs both arms, one after the other."""

    INTERLEAVED = "interleaved"
    PARALLEL = "parallel"
    CROSSOVER = "crossover"


class Direction(StrEnum):
    """Which way a metric is better."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class SectionSize:
    """Bytes of one section of an executable, such as ``.text``."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BuildCost:
    """One build, measured over its whole process tree.  Times in ns; ``peak_bytes``: largest resident memory of all its
    processes together.  ``command``: argument list as run; ``edit``: what was changed before an incremental build, or that an
    earlier build was there; "" for a full one."""

    command: tuple[str, ...]
    wall_ns: int
    cpu_ns: int
    peak_bytes: int
    edit: str = ""


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """A build under test.  ``binary``: path as run, ``profile_binary`` the one under perf, "" = the same; ``sha256`` of the
    former, lower-case hex.  ``sections``: the largest first.  ``build``, ``rebuild``: None where the experiment built nothing.
    ``control_of``: the variant that this one repeats under another name, "" = none."""

    name: str
    note: str = ""
    revision: str = ""
    binary: str = ""
    profile_binary: str = ""
    sha256: str = ""
    size_bytes: int = 0
    sections: tuple[SectionSize, ...] = ()
    build: BuildCost | None = None
    rebuild: BuildCost | None = None
    control_of: str = ""


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """A way of running every variant.  ``is_control``: the gain should vanish in it.  ``load``: that the services are under,
    where there are several."""

    name: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    is_control: bool = False
    note: str = ""
    load: str = ""


@dataclass(frozen=True, slots=True)
class InputFacts:
    """An input file.  ``sha256`` lower-case hex."""

    name: str
    path: str
    size_bytes: int
    sha256: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """A number that every run reports.  ``source``: where it is read from, as the plan says."""

    name: str
    direction: Direction
    source: str


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """``variants``: in the plan's order, ``baseline`` one of their names; the order is the ladder's.  ``primary``: the metric
    that the experiment is about, "" = CPU time.  ``per``: work units in one run, such as slots; times are shown divided by it.
    ``margin``: changes up to this fraction count as none.  ``plan_text``: the plan file, whole."""

    name: str
    design: Design
    runs: int
    seed: int
    baseline: str
    command: tuple[str, ...]
    variants: tuple[VariantFacts, ...]
    conditions: tuple[ConditionFacts, ...] = ()
    inputs: tuple[InputFacts, ...] = ()
    metrics: tuple[MetricFacts, ...] = ()
    primary: str = ""
    per: float = 1.0
    margin: float = 0.01
    phase: str = ""
    plan_path: str = ""
    plan_text: str = ""

    @property
    def better_higher(self) -> frozenset[str]:
        """Metrics of which more is better."""
        return frozenset(metric.name for metric in self.metrics if metric.direction is Direction.HIGHER)
