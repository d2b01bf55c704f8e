"""Looks up how a binary and its shared objects can be profiled, with the functions that recording and symbolizing use."""

from __future__ import annotations

from pathlib import Path

from profiler.errors import FormatError
from profiler.experiment.binaries.call_graph import choose_call_graph
from profiler.experiment.binaries.program_facts import keeps_frame_pointers, program_facts
from profiler.experiment.binaries.shared_objects import SharedObject, SharedObjects
from profiler.experiment.plan.call_graph_request import CallGraphRequest
from profiler.model.dso import Dso, DsoKind
from profiler.model.fitness import BinaryFitness, ObjectFitness
from symbolize.binary_facts import debug_detail, machine_name
from symbolize.elf.image import ElfImage
from symbolize.image_file import open_image
from symbolize.locate import LocatedBinary, Locator


def binary_fitness(path: Path, locator: Locator) -> BinaryFitness:
    """The facts of an executable; what is no ELF file has a ``problem``."""
    image, problem = open_image(path)
    if image is None:
        missing = f"{path}: not a file that can be looked at more than once" if path.exists() else f"{path}: no such file"
        return BinaryFitness(str(path), problem or missing)
    facts = program_facts(path)
    machines = _machines(image)
    objects = SharedObjects()
    chosen = choose_call_graph(CallGraphRequest(), path, objects, keeps_frame_pointers)
    located = locator.locate(Dso(str(path.resolve()), bytes(image.build_id), DsoKind.FILE))
    described = next((each for each in located.images if each.has_debug_info()), None)
    is_shared_out = described is not None and described.section_is_stored(".gnu_debugaltlink")
    return BinaryFitness(
        path=str(path),
        build_id=facts.build_id,
        symbols_problem=located.status,
        debug_file=located.debug_image.name if located.debug_image is not None else "",
        debug_detail=debug_detail(described or image).value,
        is_shared_out=is_shared_out,
        lacks_shared=is_shared_out and located.linked_files is not None and located.linked_files.lacks_supplementary(),
        machines=machines,
        keeps_frame_pointers=bool(facts.frame_pointers),
        allocator=facts.allocator,
        mangling=facts.mangling,
        toolchain=facts.toolchain,
        call_graph=f"dwarf,{chosen.dump_bytes}" if chosen.mode == "dwarf" else chosen.mode,
        call_graph_reason=chosen.reason,
        objects=() if machines else _objects(path, objects, locator),
    )


def _machines(image: ElfImage) -> tuple[str, ...]:
    """The host's is that of the interpreter which runs this."""
    own, _ = open_image(Path("/proc/self/exe"))
    if own is None or own.machine == image.machine:
        return ()
    return machine_name(image.machine), machine_name(own.machine)


def _objects(path: Path, objects: SharedObjects, locator: Locator) -> tuple[ObjectFitness, ...]:
    found: list[ObjectFitness] = []
    try:
        for needed in objects.closure(path):
            found.append(_object(needed, locator))
    except FormatError as error:
        found.append(ObjectFitness(Path(error.source).name, error.source, "", error.reason, False, None))
    return tuple(found)


def _object(needed: SharedObject, locator: Locator) -> ObjectFitness:
    image = open_image(needed.path)[0] if needed.path is not None else None
    if image is None or needed.path is None:
        return ObjectFitness(needed.name, "", "", "", False, None)
    located: LocatedBinary = locator.locate(Dso(str(needed.path.resolve()), bytes(image.build_id), DsoKind.FILE))
    return ObjectFitness(
        name=needed.name,
        path=str(needed.path),
        build_id=bytes(image.build_id).hex(),
        symbols_problem=located.status,
        has_debug_info=any(each.has_debug_info() for each in located.images),
        keeps_frame_pointers=keeps_frame_pointers(needed.path),
    )
