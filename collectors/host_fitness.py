"""Looks up what a host allows and offers for profiling; whether recording works is tried, not guessed."""

from __future__ import annotations

import os
import resource
import shutil
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

from collectors.disturbance import CPU_DEVICES, host_activity
from collectors.host import host_facts
from collectors.profilers.perf_record import paranoid_level, perf_version, start_recording
from collectors.profilers.pyspy import ptrace_scope, pyspy_version
from profiler.errors import CaptureError
from profiler.model.fitness import HostFitness, ProcessFitness
from profiler.model.run import PerfSettings

KERNEL_SETTINGS = Path("/proc/sys/kernel")
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
MACHINE = Path("/sys/class/dmi/id")
TRIAL_RATE_HZ = 99
# Where there are no hardware events perf records cpu-clock in place of cycles, but nothing in place of these.
HARDWARE_EVENT = "instructions"
# Numbers of linux/capability.h; perf_event_open(2) asks for either.
_CAPABILITIES = {"CAP_PERFMON": 38, "CAP_SYS_ADMIN": 21}
_CAP_IPC_LOCK = 14
_CAPABILITY_WORDS = struct.Struct("<5I")


def host_fitness(store: Path, has_kernel_names: bool, servers: tuple[str, ...]) -> HostFitness:
    """The facts of this host.  ``store``: where captures will go; ``has_kernel_names``, ``servers``: what symbolization found.

    Records this process for a moment, twice.
    """
    version, perf_problem = _answer(perf_version)
    pyspy, pyspy_problem = _answer(pyspy_version)
    facts = host_facts()
    directory, store_problem, free_bytes = _store_space(store)
    return HostFitness(
        is_root=os.geteuid() == 0,
        perf_version=version,
        perf_problem=perf_problem,
        clock_problem=trial_recording(os.getpid(), "cpu-clock") if version else "",
        hardware_problem=trial_recording(os.getpid(), HARDWARE_EVENT) if version else "",
        capabilities=_capabilities(_text(Path("/proc/self/status"))) or perf_capabilities(shutil.which("perf") or ""),
        paranoid=paranoid_level(),
        kptr_restrict=_text(KERNEL_SETTINGS / "kptr_restrict"),
        has_kernel_names=has_kernel_names,
        mlock_kb=_number(KERNEL_SETTINGS / "perf_event_mlock_kb"),
        memlock_bytes=_memlock_bytes(),
        max_rate_hz=_number(KERNEL_SETTINGS / "perf_event_max_sample_rate"),
        cpus=facts.cpu_count,
        usable_cpus=len(os.sched_getaffinity(0)),
        cpu=facts.cpu,
        throttled=host_activity().throttled,
        governors=_governors(),
        smt=_text(CPU_DEVICES / "smt/active"),
        hypervisor=_hypervisor(_text(Path("/proc/cpuinfo"))),
        clock_source=_text(CLOCK_SOURCE),
        load=os.getloadavg()[0],
        store=directory,
        store_problem=store_problem,
        store_free_bytes=free_bytes,
        servers=servers,
        pyspy_version=pyspy,
        pyspy_problem=pyspy_problem,
        ptrace_scope=ptrace_scope(),
    )


def process_fitness(pid: int) -> ProcessFitness:
    """The facts of a running process, recorded for a moment.  ``CaptureError`` when there is none."""
    root = Path("/proc", str(pid))
    name = _text(root / "comm")
    if not name:
        raise CaptureError(f"there is no process {pid}")
    maps = _text(root / "maps")
    files = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/")}
    is_python = any(Path(path).name.startswith(("python", "libpython")) for path in files)
    try:
        is_in_container = not os.path.samefile(root / "root", "/proc/self/root")
    except OSError:
        is_in_container = False
    return ProcessFitness(pid, name, trial_recording(pid, "cpu-clock"), is_python, is_in_container)


def trial_recording(pid: int, event: str) -> str:
    """Records a process for a moment as `record` would; "" or one line with why that cannot be done."""
    with tempfile.TemporaryDirectory(prefix="slotscope-doctor-") as directory:
        output = Path(directory, "perf.data")
        try:
            recorder = start_recording(PerfSettings(event, TRIAL_RATE_HZ), pid, output)
        except CaptureError as error:
            return str(error)
        try:
            recorder.stop()
            end = recorder.finish()
        except BaseException:
            recorder.abort()
            raise
        if end.failure or not output.exists():
            return end.failure or "perf wrote no file"
    return ""


def _answer(question: Callable[[], str]) -> tuple[str, str]:
    """(answer, "") or ("", why there is none)."""
    try:
        return question(), ""
    except CaptureError as error:
        return "", str(error)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _memlock_bytes() -> int | None:
    """None = not limited; also with CAP_IPC_LOCK, and where kernel.perf_event_paranoid is -1."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    may_lock = _effective(_text(Path("/proc/self/status"))) >> _CAP_IPC_LOCK & 1
    return None if soft == resource.RLIM_INFINITY or may_lock or paranoid_level() == "-1" else soft


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdecimal() else None


def _capabilities(status: str) -> tuple[str, ...]:
    """Of the text of /proc/PID/status (proc(5)): those in effect that perf asks for."""
    mask = _effective(status)
    return tuple(name for name, bit in _CAPABILITIES.items() if mask >> bit & 1)


def _effective(status: str) -> int:
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return int(masks[0], 16) if masks else 0


def perf_capabilities(path: str) -> tuple[str, ...]:
    """Those that whoever runs the program has (`setcap`), of those that perf asks for."""
    try:
        return tuple(f"{name} of perf itself" for name in permitted_of_file(os.getxattr(path, "security.capability")))
    except OSError:
        return ()


def permitted_of_file(attribute: bytes) -> tuple[str, ...]:
    """Of the extended attribute ``security.capability`` (struct vfs_cap_data of linux/capability.h): a word with version and
    flags, then twice 32 bits of permitted and 32 of inheritable ones."""
    if len(attribute) < _CAPABILITY_WORDS.size:
        return ()
    _, low, _, high, _ = _CAPABILITY_WORDS.unpack_from(attribute)
    return tuple(name for name, bit in _CAPABILITIES.items() if (high << 32 | low) >> bit & 1)


def _governors() -> tuple[str, ...]:
    paths = sorted(CPU_DEVICES.glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return tuple(sorted({text for path in paths if (text := _text(path))}))


def _hypervisor(cpu_info: str) -> str:
    """Who made the virtual machine, as far as it tells; "" on hardware."""
    if " hypervisor" not in cpu_info:
        return ""
    told = [text for name in ("sys_vendor", "product_name") if (text := _text(MACHINE / name))]
    return " ".join(told) or "hypervisor of unknown name"


def _store_space(store: Path) -> tuple[str, str, int]:
    """(directory, why nothing can be written there, free bytes); of a store that is not there yet, where it will be."""
    place = store.absolute()
    try:
        while not place.exists() and place != place.parent:
            place = place.parent
        free_bytes = shutil.disk_usage(place).free
    except OSError as error:
        return str(store), error.strerror or str(error), 0
    if not place.is_dir():
        return str(store), f"{place} is no directory", 0
    if not os.access(place, os.W_OK | os.X_OK):
        return str(store), f"no permission to write in {place}", 0
    return str(store), "", free_bytes
