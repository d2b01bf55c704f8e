"""What the facts of a host mean for profiling: one check each, pure."""

from __future__ import annotations

from profiler.model.fitness import LOCKED_BY_PERF_KB, LOCKED_BY_SESSION_KB, Fitness, FitnessCheck, HostFitness
from profiler.model.sampling_defaults import FREQUENCY_HZ

HOST = "host"
_MLOCK_KB = 516  # what perf asks for per CPU, for an ordinary user
_SESSIONS = 10
_BUSY = 0.5
_LITTLE_BYTES = 1 << 30
_SLOW_CLOCKS = frozenset({"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"})
_PERFORMANCE = "performance"
_ALLOW = "`sudo sysctl kernel.perf_event_paranoid=1`, or `sudo setcap cap_perfmon+ep` on perf, or run as root"


def host_checks(host: HostFitness) -> tuple[FitnessCheck, ...]:
    """In a fixed order; a check whose facts do not exist on this host is left out."""
    found = (
        _perf(host),
        _recording(host),
        _permissions(host),
        _event(host),
        _kernel_names(host),
        _buffers(host),
        _rate(host),
        _cpus(host),
        _throttling(host),
        _governor(host),
        _clock(host),
        _load(host),
        _store(host),
        _debuginfod(host),
        _pyspy(host),
    )
    return tuple(check for check in found if check is not None)


def _check(name: str, fitness: Fitness, finding: str, advice: str = "") -> FitnessCheck:
    return FitnessCheck(HOST, name, fitness, finding, advice)


def _perf(host: HostFitness) -> FitnessCheck:
    if host.perf_version:
        return _check("perf", Fitness.OK, f"version {host.perf_version}")
    return FitnessCheck(HOST, "perf", Fitness.MISSING, host.perf_problem, "install perf to record", is_fatal=True)


def _recording(host: HostFitness) -> FitnessCheck | None:
    if not host.perf_version:
        return None
    if host.clock_problem:
        return FitnessCheck(HOST, "recording", Fitness.MISSING, host.clock_problem, _ALLOW, is_fatal=True)
    return _check("recording", Fitness.OK, "a trial recording of this process with cpu-clock worked")


def _permissions(host: HostFitness) -> FitnessCheck:
    level = f"kernel.perf_event_paranoid is {host.paranoid or 'unknown'}"
    if host.is_root:
        return _check("permissions", Fitness.OK, f"root: processes of all users, kernel included ({level})")
    if host.capabilities:
        listed = ", ".join(host.capabilities)
        return _check("permissions", Fitness.OK, f"{listed}: processes of all users, kernel included ({level})")
    if host.paranoid in ("-1", "0", "1"):
        return _check("permissions", Fitness.OK, f"your own processes, kernel included ({level})")
    if host.paranoid == "2":
        finding = f"your own processes, without the kernel's part ({level})"
        return _check("permissions", Fitness.WARNING, finding, f"to see kernel time: {_ALLOW}")
    return _check("permissions", Fitness.WARNING, f"perhaps nothing ({level})", _ALLOW)


def _event(host: HostFitness) -> FitnessCheck | None:
    if not host.perf_version or host.clock_problem:
        return None
    auto = "`auto` takes cpu-clock, in nanoseconds on every machine"
    if host.hardware_problem:
        where = f" ({host.hypervisor})" if host.hypervisor else ""
        return _check("events", Fitness.OK, f"{auto}; hardware events such as instructions cannot be recorded here{where}")
    return _check("events", Fitness.OK, f"{auto}; hardware events such as instructions can be recorded too")


def _kernel_names(host: HostFitness) -> FitnessCheck:
    restrict = f"kernel.kptr_restrict is {host.kptr_restrict or 'unknown'}"
    if host.has_kernel_names:
        return _check("kernel names", Fitness.OK, f"/proc/kallsyms can be read ({restrict})")
    advice = "run as root, or `sudo sysctl kernel.kptr_restrict=0` (and kernel.perf_event_paranoid=1)"
    return _check("kernel names", Fitness.WARNING, f"/proc/kallsyms hides its addresses ({restrict})", advice)


def _buffers(host: HostFitness) -> FitnessCheck | None:
    """A user's attached sessions share what the kernel lets perf lock; what each perf may lock of its own comes on top."""
    if host.mlock_kb is None:
        return None
    finding = f"kernel.perf_event_mlock_kb is {host.mlock_kb}"
    if not host.is_root and not host.capabilities and host.mlock_kb < _MLOCK_KB:
        advice = f"`sudo sysctl kernel.perf_event_mlock_kb={_MLOCK_KB}`, or samples are lost"
        return _check("buffers", Fitness.WARNING, finding, advice)
    if host.memlock_bytes is None or host.memlock_bytes >= LOCKED_BY_PERF_KB * 1024 * host.cpus:
        return _check("buffers", Fitness.OK, f"{finding}, and each perf may lock what it needs beside that")
    sessions = host.mlock_kb // LOCKED_BY_SESSION_KB
    finding += f": enough to attach in {sessions or 'no'} session{'s' * (sessions != 1)} of a user at a time"
    if sessions >= _SESSIONS:
        return _check("buffers", Fitness.OK, finding)
    needed = _SESSIONS * LOCKED_BY_SESSION_KB
    advice = f"for {_SESSIONS} sessions `sudo sysctl kernel.perf_event_mlock_kb={needed}`, or raise `ulimit -l`"
    return _check("buffers", Fitness.WARNING, finding, advice)


def _rate(host: HostFitness) -> FitnessCheck | None:
    if host.max_rate_hz is None:
        return None
    finding = f"up to {host.max_rate_hz} samples per second"
    if host.max_rate_hz >= FREQUENCY_HZ:
        return _check("sampling rate", Fitness.OK, finding)
    advice = f"ask for less with --frequency, or `sudo sysctl kernel.perf_event_max_sample_rate={10 * FREQUENCY_HZ}`"
    return _check("sampling rate", Fitness.WARNING, f"{finding}, below the default of {FREQUENCY_HZ}", advice)


def _cpus(host: HostFitness) -> FitnessCheck:
    usable = "" if host.usable_cpus == host.cpus else f", {host.usable_cpus} of them for this process"
    machine = f"; virtual machine ({host.hypervisor})" if host.hypervisor else ""
    shared = "; two threads share a core (SMT)" if host.smt == "1" else ""
    finding = f"{host.cpus} x {host.cpu or 'CPU of unknown name'}{usable}{shared}{machine}"
    if host.cpus == 1:
        return _check("CPUs", Fitness.WARNING, finding, "perf and the program take turns: times of profiled runs are longer")
    advice = "for the least noise give the program cores of its own: record --cpus" if shared else ""
    return _check("CPUs", Fitness.OK, finding, advice)


def _throttling(host: HostFitness) -> FitnessCheck:
    if not host.throttled:
        return _check("throttling", Fitness.OK, "no CPU is known to have been slowed down since the boot")
    finding = f"CPUs were slowed down for their heat {host.throttled} times since the boot"
    return _check("throttling", Fitness.WARNING, finding, "cool the machine; compare interleaved runs only")


def _governor(host: HostFitness) -> FitnessCheck:
    if not host.governors:
        return _check("CPU frequency", Fitness.OK, "nothing here changes it (no governor)")
    finding = f"governor {', '.join(host.governors)}"
    if host.governors == (_PERFORMANCE,):
        return _check("CPU frequency", Fitness.OK, finding)
    return _check("CPU frequency", Fitness.WARNING, finding, "`sudo cpupower frequency-set -g performance` while measuring")


def _clock(host: HostFitness) -> FitnessCheck | None:
    if not host.clock_source:
        return None
    if host.clock_source in _SLOW_CLOCKS:
        advice = "every look at the time costs microseconds: see `dmesg | grep -i tsc` for why tsc is not used"
        return _check("clock", Fitness.WARNING, host.clock_source, advice)
    return _check("clock", Fitness.OK, host.clock_source)


def _load(host: HostFitness) -> FitnessCheck:
    finding = f"{host.load:.1f} processes on average in the last minute, for {host.cpus} CPUs"
    if host.load <= _BUSY * host.cpus:
        return _check("load", Fitness.OK, finding)
    return _check("load", Fitness.WARNING, finding, "measure when nothing else runs: other work makes runs differ")


def _store(host: HostFitness) -> FitnessCheck:
    if host.store_problem:
        return _check("store", Fitness.WARNING, f"{host.store}: {host.store_problem}", "name another directory with --store")
    finding = f"{host.store}: {host.store_free_bytes / (1 << 30):.1f} GB free"
    if host.store_free_bytes >= _LITTLE_BYTES:
        return _check("store", Fitness.OK, finding)
    return _check("store", Fitness.WARNING, finding, "make room, or name another directory with --store")


def _debuginfod(host: HostFitness) -> FitnessCheck:
    if host.servers:
        return _check("debuginfod", Fitness.OK, f"asked for missing debug files: {' '.join(host.servers)}")
    advice = "if names of system libraries are missing: install their debug packages, or set $DEBUGINFOD_URLS"
    return _check("debuginfod", Fitness.OK, "not configured", advice)


def _pyspy(host: HostFitness) -> FitnessCheck:
    if not host.pyspy_version:
        return _check("py-spy", Fitness.MISSING, host.pyspy_problem, "needed for Python programs only: `pip install py-spy`")
    scope = f"kernel.yama.ptrace_scope is {host.ptrace_scope}"
    if host.is_root or host.ptrace_scope in ("0", "unknown"):
        return _check("py-spy", Fitness.OK, f"version {host.pyspy_version} ({scope})")
    advice = "to record running Python programs: run as root, or `sudo sysctl kernel.yama.ptrace_scope=0`"
    return _check("py-spy", Fitness.WARNING, f"version {host.pyspy_version} may not read other processes ({scope})", advice)
