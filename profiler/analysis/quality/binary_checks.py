"""What the facts of a binary or of a running process mean for profiling: one check each, pure."""

from __future__ import annotations

import re

from profiler.model.fitness import BinaryFitness, Fitness, FitnessCheck, HostFitness, ObjectFitness, ProcessFitness

_GOOD_BUILD = "build with -g (gcc, clang) or debug = 1 (Rust)"
_FRAME_POINTERS = "-fno-omit-frame-pointer (gcc, clang) or -C force-frame-pointers=yes (Rust)"
_LTO = re.compile(r"GNU GIMPLE|\s-flto\b")
_MOST_TOOLCHAIN = 100


def binary_checks(binary: BinaryFitness) -> tuple[FitnessCheck, ...]:
    """Of the file itself, then one for each shared object that it loads."""
    if binary.problem:
        is_other = "not an ELF file" in binary.problem
        advice = "name the program itself, not a script that starts it" if is_other else "a file that can be read is needed"
        return (FitnessCheck(binary.path, "file", Fitness.WARNING, binary.problem, advice),)
    of_file = (_build_id(binary), _symbols(binary), _debug_information(binary), _frame_pointers(binary), _build(binary))
    if binary.machines:
        return (_machine(binary), *of_file)
    return (*of_file, _call_graph(binary), *(_shared_object(binary, needed) for needed in binary.objects))


def process_checks(process: ProcessFitness, host: HostFitness) -> tuple[FitnessCheck, ...]:
    """Whether the process can be recorded, and by what."""
    subject = f"process {process.pid} ({process.name})"
    if process.problem:
        found = [FitnessCheck(subject, "recording", Fitness.MISSING, process.problem, is_fatal=True)]
    else:
        found = [FitnessCheck(subject, "recording", Fitness.OK, "a trial recording with cpu-clock worked")]
    if process.is_in_container:
        finding = "runs in a container: its files are seen under its own root"
        found.append(FitnessCheck(subject, "container", Fitness.OK, finding))
    if process.is_python:
        fitness = Fitness.OK if host.pyspy_version else Fitness.MISSING
        finding = "perf shows the interpreter; the functions of the program are seen by py-spy"
        found.append(FitnessCheck(subject, "Python", fitness, finding, "" if host.pyspy_version else host.pyspy_problem))
    return tuple(found)


def _machine(binary: BinaryFitness) -> FitnessCheck:
    its, own = binary.machines
    finding = f"for {its}, and this host is {own}: it does not run here as it is"
    advice = "names of recordings made elsewhere can be read from it; ask doctor on a host of its kind for the rest"
    return FitnessCheck(binary.path, "machine", Fitness.WARNING, finding, advice)


def _build_id(binary: BinaryFitness) -> FitnessCheck:
    if binary.build_id:
        return FitnessCheck(binary.path, "build ID", Fitness.OK, binary.build_id)
    advice = "link with -Wl,--build-id, so that a rebuilt file is never taken for the recorded one"
    return FitnessCheck(binary.path, "build ID", Fitness.WARNING, "none", advice)


def _symbols(binary: BinaryFitness) -> FitnessCheck:
    if binary.symbols_problem:
        advice = "keep the unstripped file or its debug file, and name the directory with --debug-dir"
        return FitnessCheck(binary.path, "symbols", Fitness.MISSING, binary.symbols_problem, advice)
    where = f"in {binary.debug_file}" if binary.debug_file else "in the file"
    return FitnessCheck(binary.path, "symbols", Fitness.OK, where)


def _debug_information(binary: BinaryFitness) -> FitnessCheck:
    findings = {
        "full": (Fitness.OK, "full: inline functions have their whole names", ""),
        "names": (Fitness.OK, "names and lines without types: inline functions have their whole names", ""),
        "line-tables": (Fitness.WARNING, "line tables only: inline functions have bare names", _GOOD_BUILD),
        "split": (
            Fitness.OK,
            "split: inline functions are named while the .dwo files or the .dwp are there",
            "keep them where they were built, or beside the file",
        ),
    }
    damaged = "there, but nothing in it can be read: the file is damaged, or its debug information is of a kind not known here"
    findings["damaged"] = (Fitness.WARNING, damaged, "copy the file anew, or rebuild it")
    none = (
        Fitness.WARNING,
        "none: inline functions are not seen, and time is charged to what they were inlined into",
        _GOOD_BUILD,
    )
    fitness, finding, advice = findings.get(binary.debug_detail, none)
    if binary.lacks_shared:
        fitness, finding = Fitness.WARNING, f"{finding}; the part that dwz moved to a common file is not there"
        advice = "install the debug package that the file came with"
    elif binary.is_shared_out:
        finding += " (part of it in a common file, by dwz)"
    return FitnessCheck(binary.path, "debug information", fitness, finding, advice)


def _frame_pointers(binary: BinaryFitness) -> FitnessCheck:
    if binary.keeps_frame_pointers:
        return FitnessCheck(binary.path, "frame pointers", Fitness.OK, "kept")
    advice = f"not needed: stacks are unwound by call frame information; for cheaper recordings {_FRAME_POINTERS}"
    return FitnessCheck(binary.path, "frame pointers", Fitness.OK, "not kept", advice)


def _build(binary: BinaryFitness) -> FitnessCheck:
    lto = ", link-time optimization" if _LTO.search(binary.toolchain) else ""
    toolchain = binary.toolchain[:_MOST_TOOLCHAIN] + ("..." if len(binary.toolchain) > _MOST_TOOLCHAIN else "")
    finding = f"allocator {binary.allocator}, mangling {binary.mangling}{lto}; {toolchain or 'toolchain unknown'}"
    return FitnessCheck(binary.path, "build", Fitness.OK, finding)


def _call_graph(binary: BinaryFitness) -> FitnessCheck:
    return FitnessCheck(binary.path, "call graph", Fitness.OK, f"`auto` takes {binary.call_graph}: {binary.call_graph_reason}")


def _shared_object(binary: BinaryFitness, needed: ObjectFitness) -> FitnessCheck:
    name = f"shared object {needed.name}"
    if not needed.path:
        advice = "set LD_LIBRARY_PATH as the program will have it"
        return FitnessCheck(binary.path, name, Fitness.MISSING, "not found", advice)
    frames = {True: "frame pointers kept", False: "no frame pointers", None: "frame pointers unknown"}
    tail = frames[needed.keeps_frame_pointers]
    if needed.symbols_problem:
        advice = "install its debug package (libc6-dbg for Debian's C library), or set $DEBUGINFOD_URLS"
        finding = f"only its exported functions have names; {tail} ({needed.symbols_problem})"
        return FitnessCheck(binary.path, name, Fitness.WARNING, finding, advice)
    debug = "symbols and debug information" if needed.has_debug_info else "symbols"
    return FitnessCheck(binary.path, name, Fitness.OK, f"{debug}; {tail}")
