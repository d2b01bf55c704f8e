"""Whether a host and a binary are fit for profiling: the facts that were looked up, and what they mean."""

from __future__ import annotations

from enum import StrEnum

from profiler.model.quick_dataclass import dataclass


class Fitness(StrEnum):
    """OK: nothing to do.  WARNING: works, with less to see or more noise.  MISSING: something is not there."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class FitnessCheck:
    """``subject``: "host", or the file or process that it is about; ``name``: what was looked at; ``finding``: what was found,
    one line; ``advice``: what to do, "" = nothing.  ``is_fatal``: recording cannot work at all."""

    subject: str
    name: str
    fitness: Fitness
    finding: str
    advice: str = ""
    is_fatal: bool = False


@dataclass(frozen=True, slots=True)
class HostFitness:
    """What was looked up of a host; "" or None = not known.

    ``perf_version`` "" = ``perf_problem`` says why not; ``clock_problem``, ``hardware_problem``: why a trial recording of
    cpu-clock and of instructions failed, "" = it worked. ``capabilities``: of this process or of perf, of those that perf
    asks for. ``paranoid``, ``kptr_restrict``, ``ptrace_scope``: as the kernel writes them. ``mlock_kb``, ``max_rate_hz``: the
    kernel's limits. ``throttled``: times that a CPU was slowed down since the boot. ``governors``: distinct ones. ``smt``:
    "1" when threads share cores. ``hypervisor``: of a virtual machine. ``load``: of the last minute. ``store``: the
    directory, and ``store_problem`` why nothing can be written there. ``servers``: of debuginfod.
    """

    is_root: bool
    perf_version: str
    perf_problem: str
    clock_problem: str
    hardware_problem: str
    capabilities: tuple[str, ...]
    paranoid: str
    kptr_restrict: str
    has_kernel_names: bool
    mlock_kb: int | None
    max_rate_hz: int | None
    cpus: int
    usable_cpus: int
    cpu: str
    throttled: int
    governors: tuple[str, ...]
    smt: str
    hypervisor: str
    clock_source: str
    load: float
    store: str
    store_problem: str
    store_free_bytes: int
    servers: tuple[str, ...]
    pyspy_version: str
    pyspy_problem: str
    ptrace_scope: str


@dataclass(frozen=True, slots=True)
class ObjectFitness:
    """A shared object that a program loads: ``path`` "" = not found.  ``symbols_problem``: why functions have no names, "" =
    they have.  ``keeps_frame_pointers``: None = cannot be told."""

    name: str
    path: str
    build_id: str
    symbols_problem: str
    has_debug_info: bool
    keeps_frame_pointers: bool | None


@dataclass(frozen=True, slots=True)
class BinaryFitness:
    """What was looked up of an executable.  ``problem``: why nothing could be, and then all else is empty.

    ``symbols_problem`` as of an object; ``debug_file``: path of the separate file in use.  ``debug_detail``: see
    ``symbolize.binary_facts.DebugDetail``.  ``is_shared_out``: part of the debug information was moved to a common file by
    dwz, and ``lacks_shared`` that this is not there.  ``machines``: (the file's, this host's), empty when they are the same.
    ``call_graph``, ``call_graph_reason``: what "auto" takes, and why.
    """

    path: str
    problem: str = ""
    build_id: str = ""
    symbols_problem: str = ""
    debug_file: str = ""
    debug_detail: str = "none"
    is_shared_out: bool = False
    lacks_shared: bool = False
    machines: tuple[str, ...] = ()
    keeps_frame_pointers: bool = False
    allocator: str = ""
    mangling: str = ""
    toolchain: str = ""
    call_graph: str = ""
    call_graph_reason: str = ""
    objects: tuple[ObjectFitness, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessFitness:
    """What was looked up of a running process.  ``problem``: why it cannot be recorded, "" = a trial recording worked.
    ``is_python``: its executable or a library of it is Python's."""

    pid: int
    name: str
    problem: str
    is_python: bool
    is_in_container: bool
