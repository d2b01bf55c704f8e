"""The builds of an experiment: every variant built as its plan says, timed, and looked at."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from collectors.process_tree import TreeCommand, run_tree
from profiler.errors import CaptureError, FormatError
from profiler.experiment.experiment_plan import DEFAULT_BUILD_TIMEOUT_S, ExperimentPlan, PlanVariant, Rebuild, SourceEdit
from profiler.experiment.placeholders import replaced
from profiler.model.experiment import BuildCost, SectionSize, VariantFacts
from symbolize.elf.image import parse_image

_SHOWN_SECTIONS = 8
_TAIL_LINES = 3


@dataclass(frozen=True, slots=True)
class BuiltVariant:
    """``binary``, ``profile_binary``: as run, without placeholders; the latter "" when runs under perf take the former."""

    plan: PlanVariant
    binary: str
    profile_binary: str
    facts: VariantFacts


def build_variants(plan: ExperimentPlan, directory: Path, progress: Callable[[str], None]) -> tuple[BuiltVariant, ...]:
    """All variants in the plan's order.  ``directory``: for build directories and logs, ``<directory>/<variant>/``.

    ``CaptureError`` naming the log when a build fails, takes longer than an hour, or leaves no binary.
    """
    return tuple(_built(plan, variant, directory / variant.name, progress) for variant in plan.variants)


def _built(plan: ExperimentPlan, variant: PlanVariant, directory: Path, progress: Callable[[str], None]) -> BuiltVariant:
    here = plan.path.absolute().parent
    build_dir = directory / "build"
    values = {"build_dir": str(build_dir)}
    build: BuildCost | None = None
    rebuild: BuildCost | None = None
    if variant.build:
        build_dir.mkdir(parents=True, exist_ok=True)
        progress(f"{variant.name}: building")
        build = _timed(variant, variant.build, directory / "build.log", values, here)
        if variant.rebuild is not None:
            progress(f"{variant.name}: building again after an edit")
            rebuild = _rebuilt(variant, variant.rebuild, directory / "rebuild.log", values, here)
        if variant.profile_build:
            progress(f"{variant.name}: building for the profile")
            _timed(variant, variant.profile_build, directory / "profile-build.log", values, here)
    binary, profile_binary = (
        _located(replaced((name,), values)[0], here) if name else "" for name in (variant.binary, variant.profile_binary)
    )
    facts = VariantFacts(
        name=variant.name,
        note=variant.note,
        revision=variant.revision or described_revision(variant.source or here),
        binary=binary,
        profile_binary=profile_binary,
        sha256=file_digest(Path(binary)) if "/" in binary else "",
        size_bytes=_size(variant, binary),
        sections=_sections(Path(binary)) if binary else (),
        build=build,
        rebuild=rebuild,
    )
    return BuiltVariant(variant, binary, profile_binary, facts)


def _located(name: str, here: Path) -> str:
    """Paths of a plan are relative to it; a bare name is looked up in PATH when it is run."""
    return str(here / name) if "/" in name else name


def _timed(variant: PlanVariant, command: tuple[str, ...], log: Path, values: dict[str, str], here: Path) -> BuildCost:
    arguments = replaced(command, values)
    environment = tuple((name, replaced((text,), values)[0]) for name, text in variant.build_env)
    used = run_tree(TreeCommand(arguments, variant.source or here, log, environment, DEFAULT_BUILD_TIMEOUT_S))
    if used.timed_out:
        raise CaptureError(f"{variant.name}: its build took more than {DEFAULT_BUILD_TIMEOUT_S / 60:g} minutes; see {log}")
    if used.exit_code:
        raise CaptureError(f"{variant.name}: its build ended with {used.exit_code}: {_last_line(log)} (all of it in {log})")
    return BuildCost(arguments, used.wall_ns, used.cpu_ns, used.peak_bytes)


def _rebuilt(variant: PlanVariant, rebuild: Rebuild, log: Path, values: dict[str, str], here: Path) -> BuildCost:
    with _edited(variant, rebuild.edit):
        cost = _timed(variant, rebuild.command, log, values, here)
    # What is measured afterwards is the program as its source is.
    _timed(variant, rebuild.command, log.with_suffix(".restore.log"), values, here)
    return BuildCost(cost.command, cost.wall_ns, cost.cpu_ns, cost.peak_bytes, edit=_described(rebuild.edit))


@contextlib.contextmanager
def _edited(variant: PlanVariant, edit: SourceEdit) -> Iterator[None]:
    """The source file changed, and as it was afterwards.  A copy beside it brings it back even if slotscope is killed: the
    next run finds the copy first."""
    kept = edit.file.with_name(f".{edit.file.name}.slotscope-before")
    try:
        before = kept.read_bytes() if kept.exists() else edit.file.read_bytes()
    except OSError as error:
        raise CaptureError(f"{variant.name}: rebuild.edit: {edit.file}: {error.strerror}") from None
    find, replace = edit.find.encode(), edit.replace.encode()
    if edit.find and find not in before:
        raise CaptureError(f"{variant.name}: rebuild.edit: {edit.find!r} is not in {edit.file}")
    kept.write_bytes(before)
    edit.file.write_bytes(before.replace(find, replace, 1) if edit.find else before + replace)
    try:
        yield
    finally:
        edit.file.write_bytes(before)
        kept.unlink()


def _described(edit: SourceEdit) -> str:
    return (
        f"{edit.file.name}: {edit.find!r} -> {edit.replace!r}" if edit.find else f"{edit.file.name}: {edit.replace!r} appended"
    )


def described_revision(directory: Path) -> str:
    """What git calls the directory's commit, "" where there is none."""
    command = ("git", "-C", str(directory), "describe", "--always", "--dirty", "--tags")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""


def file_digest(path: Path) -> str:
    """SHA-256 of a file, lower-case hex; "" when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _size(variant: PlanVariant, binary: str) -> int:
    if not binary or "/" not in binary:
        return 0
    try:
        return os.stat(binary).st_size
    except OSError as error:
        built = "its build left no" if variant.build else "there is no"
        raise CaptureError(f"{variant.name}: {built} {binary} ({error.strerror})") from None


def _sections(path: Path) -> tuple[SectionSize, ...]:
    """Of an ELF file, those with content, the largest first."""
    try:
        image = parse_image(path.read_bytes(), str(path))
    except (OSError, FormatError):
        return ()
    sizes = sorted(
        ((section.size, section.name) for section in image.section_table if section.size and section.name), reverse=True
    )
    return tuple(SectionSize(name, size) for size, name in sizes[:_SHOWN_SECTIONS])


def _last_line(log: Path) -> str:
    lines = log.read_bytes().decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "it printed nothing"
