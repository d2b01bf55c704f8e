"""What facts of a host, a binary and a process mean.  Verdicts as docs/doctor.md has them; what the kernel's settings allow is
that of perf_event_open(2), kernel.rst and ptrace(2)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from profiler.analysis.quality.binary_checks import binary_checks, process_checks
from profiler.analysis.quality.host_checks import host_checks
from profiler.model.fitness import BinaryFitness, Fitness, FitnessCheck, HostFitness, ObjectFitness, ProcessFitness

HOST = HostFitness(
    is_root=False,
    perf_version="6.1.187",
    perf_problem="",
    clock_problem="",
    hardware_problem="",
    capabilities=(),
    paranoid="1",
    kptr_restrict="0",
    has_kernel_names=True,
    mlock_kb=516,
    memlock_bytes=None,
    max_rate_hz=100_000,
    cpus=8,
    usable_cpus=8,
    cpu="Ryzen",
    throttled=0,
    governors=("performance",),
    smt="0",
    hypervisor="",
    clock_source="tsc",
    load=0.4,
    store=".slotscope",
    store_problem="",
    store_free_bytes=50 << 30,
    servers=("https://debuginfod.example",),
    pyspy_version="0.4.3",
    pyspy_problem="",
    ptrace_scope="0",
)
BINARY = BinaryFitness(
    path="/opt/lcli",
    build_id="ab12",
    debug_detail="full",
    keeps_frame_pointers=True,
    allocator="jemalloc",
    mangling="v0",
    toolchain="rustc 1.95",
    call_graph="fp",
    call_graph_reason="the program and all of its shared objects keep frame pointers",
    objects=(ObjectFitness("libc.so.6", "/lib/libc.so.6", "cd", "", True, False),),
)
OK, WARNING, MISSING = Fitness.OK, Fitness.WARNING, Fitness.MISSING


def named(checks: tuple[FitnessCheck, ...], name: str) -> FitnessCheck:
    (found,) = [check for check in checks if check.name == name]
    return found


def test_a_host_without_faults_and_a_good_build() -> None:
    assert {check.fitness for check in (*host_checks(HOST), *binary_checks(BINARY))} == {OK}
    assert len({check.name for check in host_checks(HOST)}) == len(host_checks(HOST)) == 15


@pytest.mark.parametrize(
    ("changes", "name", "fitness", "words"),
    [
        ({"perf_version": "", "perf_problem": "perf is not installed"}, "perf", MISSING, "perf is not installed"),
        ({"clock_problem": "perf may not record here"}, "recording", MISSING, "may not record here"),
        ({"paranoid": "2"}, "permissions", WARNING, "without the kernel's part"),
        ({"paranoid": "4"}, "permissions", WARNING, "perhaps nothing"),
        ({"paranoid": "-1"}, "permissions", OK, "kernel included"),
        ({"paranoid": "3", "is_root": True}, "permissions", OK, "root: processes of all users"),
        ({"paranoid": "3", "capabilities": ("CAP_PERFMON",)}, "permissions", OK, "CAP_PERFMON: processes of all users"),
        ({"hardware_problem": "x", "hypervisor": "KVM"}, "events", OK, r"cannot be recorded here \(KVM\)"),
        ({}, "events", OK, "can be recorded too"),
        ({"has_kernel_names": False, "kptr_restrict": "1"}, "kernel names", WARNING, "kptr_restrict is 1"),
        ({"mlock_kb": 128}, "buffers", WARNING, "128"),
        ({"mlock_kb": 128, "is_root": True}, "buffers", OK, "128"),
        # Two perfs of 33 pages of 4 KiB for each CPU.
        ({"memlock_bytes": 64 << 10}, "buffers", WARNING, "in 1 session of a user at a time"),
        ({"memlock_bytes": 64 << 10, "mlock_kb": 2639}, "buffers", WARNING, "in 9 sessions"),
        ({"memlock_bytes": 64 << 10, "mlock_kb": 2640}, "buffers", OK, "in 10 sessions"),
        ({"memlock_bytes": 8 * 33 * 4096}, "buffers", OK, "each perf may lock what it needs"),
        ({"memlock_bytes": 8 * 33 * 4096 - 1}, "buffers", WARNING, "in 1 session"),
        ({"max_rate_hz": 1000}, "sampling rate", WARNING, "below the default of 1999"),
        ({"cpus": 1, "usable_cpus": 1}, "CPUs", WARNING, "1 x Ryzen"),
        ({"usable_cpus": 2, "smt": "1"}, "CPUs", OK, r"2 of them for this process; two threads share a core \(SMT\)"),
        ({"throttled": 3}, "throttling", WARNING, "3 times"),
        ({"governors": ("performance", "powersave")}, "CPU frequency", WARNING, "performance, powersave"),
        ({"governors": ()}, "CPU frequency", OK, "no governor"),
        ({"clock_source": "hpet"}, "clock", WARNING, "hpet"),
        ({"load": 4.1}, "load", WARNING, "4.1 processes .* for 8 CPUs"),
        ({"load": 3.9}, "load", OK, "3.9"),
        ({"store_free_bytes": 1 << 29}, "store", WARNING, "0.5 GB free"),
        ({"store_problem": "no permission to write in /x"}, "store", WARNING, "no permission"),
        ({"servers": ()}, "debuginfod", OK, "not configured"),
        ({"pyspy_version": "", "pyspy_problem": "py-spy is not installed"}, "py-spy", MISSING, "not installed"),
        ({"ptrace_scope": "1"}, "py-spy", WARNING, "may not read other processes"),
        ({"ptrace_scope": "1", "is_root": True}, "py-spy", OK, "0.4.3"),
        ({"ptrace_scope": "unknown"}, "py-spy", OK, "0.4.3"),
    ],
)
def test_facts_of_a_host(changes: dict[str, Any], name: str, fitness: Fitness, words: str) -> None:
    checks = host_checks(replace(HOST, **changes))
    check = named(checks, name)
    assert check.fitness is fitness
    assert re.search(words, check.finding)
    assert check.fitness is OK or check.advice
    fatal = {each.name for each in checks if each.is_fatal}
    assert fatal == ({name} if name in ("perf", "recording") and fitness is MISSING else set())


def test_what_does_not_exist_here_is_left_out() -> None:
    names = {check.name for check in host_checks(replace(HOST, mlock_kb=None, max_rate_hz=None, clock_source=""))}
    assert names.isdisjoint({"buffers", "sampling rate", "clock"})
    without_perf = {check.name for check in host_checks(replace(HOST, perf_version="", perf_problem="x"))}
    assert without_perf.isdisjoint({"recording", "events"})


@pytest.mark.parametrize(
    ("changes", "name", "fitness", "words", "advice"),
    [
        ({"build_id": ""}, "build ID", WARNING, "none", "--build-id"),
        ({"symbols_problem": "stripped"}, "symbols", MISSING, "stripped", "--debug-dir"),
        ({"debug_file": "/usr/lib/debug/x"}, "symbols", OK, "/usr/lib/debug/x", ""),
        ({"debug_detail": "none"}, "debug information", WARNING, "inline functions are not seen", "debug = 1"),
        ({"debug_detail": "line-tables"}, "debug information", WARNING, "bare names", "debug = 1"),
        ({"debug_detail": "names"}, "debug information", OK, "whole names", ""),
        ({"debug_detail": "damaged"}, "debug information", WARNING, "nothing in it can be read", "copy the file anew"),
        (
            {"machines": ("AArch64", "x86-64")},
            "machine",
            WARNING,
            "for AArch64, and this host is x86-64",
            "on a host of its kind",
        ),
        ({"debug_detail": "split"}, "debug information", OK, r"\.dwo", "keep them"),
        ({"is_shared_out": True}, "debug information", OK, "by dwz", ""),
        ({"is_shared_out": True, "lacks_shared": True}, "debug information", WARNING, "is not there", "debug package"),
        ({"keeps_frame_pointers": False}, "frame pointers", OK, "not kept", "-fno-omit-frame-pointer"),
        ({"toolchain": "GNU GIMPLE 12.2.0 -O2"}, "build", OK, "link-time optimization; GNU GIMPLE", ""),
        ({}, "build", OK, "allocator jemalloc, mangling v0; rustc 1.95$", ""),
        ({"call_graph": "dwarf,16384", "call_graph_reason": "x"}, "call graph", OK, "takes dwarf,16384: x", ""),
    ],
)
def test_facts_of_a_binary(changes: dict[str, Any], name: str, fitness: Fitness, words: str, advice: str) -> None:
    check = named(binary_checks(replace(BINARY, **changes)), name)
    assert (check.subject, check.fitness) == ("/opt/lcli", fitness)
    assert re.search(words, check.finding)
    assert advice in check.advice
    assert bool(advice) == bool(check.advice)


def test_shared_objects() -> None:
    objects = (
        ObjectFitness("libc.so.6", "/lib/libc.so.6", "cd", "stripped", False, False),
        ObjectFitness("libgone.so", "", "", "", False, None),
        ObjectFitness("libm.so.6", "/lib/libm.so.6", "ef", "", False, True),
    )
    checks = binary_checks(replace(BINARY, objects=objects))
    libc, gone, libm = (named(checks, f"shared object {each.name}") for each in objects)
    assert (libc.fitness, "libc6-dbg" in libc.advice) == (WARNING, True)
    assert (gone.fitness, gone.finding) == (MISSING, "not found")
    assert (libm.fitness, libm.finding) == (OK, "symbols; frame pointers kept")


def test_what_is_no_binary_has_one_check() -> None:
    (check,) = binary_checks(BinaryFitness("/opt/run.sh", "/opt/run.sh: not an ELF file"))
    assert (check.fitness, check.is_fatal) == (WARNING, False)


def test_processes() -> None:
    process = ProcessFitness(7, "relay", "", is_python=True, is_in_container=True)
    assert [check.fitness for check in process_checks(process, HOST)] == [OK, OK, OK]
    assert {check.subject for check in process_checks(process, HOST)} == {"process 7 (relay)"}
    without = process_checks(process, replace(HOST, pyspy_version="", pyspy_problem="py-spy is not installed"))
    assert named(without, "Python").fitness is MISSING
    refused = named(process_checks(replace(process, problem="perf may not record"), HOST), "recording")
    assert (refused.fitness, refused.is_fatal) == (MISSING, True)
