"""What an agent may do, as the owner of its host wrote it into agent.toml."""

from __future__ import annotations

from pathlib import Path

from collectors.targets.target_finder import TargetFinder
from profiler.model.quick_dataclass import dataclass
from profiler.protocol.hello import AgentLimits, OfferedTarget, OfferedWorkload


@dataclass(frozen=True, slots=True)
class ConfiguredTarget:
    """``metrics``: address of its page, "" = none.  ``swap``: argument list in which ``{variant}`` becomes one of
    ``variants``, empty = it is what it is."""

    name: str
    finder: TargetFinder
    metrics: str = ""
    variants: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadVariant:
    """``binary`` takes the place of ``{binary}``."""

    name: str
    binary: str


@dataclass(frozen=True, slots=True)
class ConfiguredWorkload:
    """``command``: argument list with ``{binary}``.  ``directory``: where it runs, "" = where the agent does."""

    name: str
    command: tuple[str, ...]
    variants: tuple[WorkloadVariant, ...]
    directory: str = ""

    def binary(self, variant: str) -> str:
        """ "" when there is no such variant."""
        return next((known.binary for known in self.variants if known.name == variant), "")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """``server``: its address without a path.  ``ca``: certificates that vouch for it, None = those of the system.
    ``token``: read from the token file; never shown."""

    server: str
    token: str
    spool: Path
    limits: AgentLimits
    ca: Path | None = None
    targets: tuple[ConfiguredTarget, ...] = ()
    workloads: tuple[ConfiguredWorkload, ...] = ()

    def target(self, name: str) -> ConfiguredTarget | None:
        return next((target for target in self.targets if target.name == name), None)

    def workload(self, name: str) -> ConfiguredWorkload | None:
        return next((workload for workload in self.workloads if workload.name == name), None)

    def offered_targets(self) -> tuple[OfferedTarget, ...]:
        return tuple(OfferedTarget(target.name, target.variants, bool(target.metrics)) for target in self.targets)

    def offered_workloads(self) -> tuple[OfferedWorkload, ...]:
        return tuple(OfferedWorkload(load.name, tuple(known.name for known in load.variants)) for load in self.workloads)
