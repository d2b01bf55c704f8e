"""The builds of an experiment: every variant built as its plan says, timed, and looked at."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from collectors.processes.process_output import last_line, output_tail
from collectors.processes.process_tree import TreeCommand, run_tree
from profiler.errors import CaptureError, FormatError
from profiler.experiment.plan.experiment_plan import DEFAULT_BUILD_TIMEOUT_S, ExperimentPlan, PlanVariant, Rebuild, SourceEdit
from profiler.experiment.plan.placeholders import replaced
from profiler.model.experiment import BuildCost, SectionSize, VariantFacts
from profiler.model.quick_dataclass import dataclass
from symbolize.elf.image import parse_image

# In place of an edit, for the first build of a session that finds what an earlier session built.
EARLIER_BUILD = "none: an earlier build was there"
_SHOWN_SECTIONS = 8


class _CutShortError(CaptureError):
    """A build that was ended before it had an end of its own."""


@dataclass(frozen=True, slots=True)
class BuiltVariant:
    """``binary``, ``profile_binary``: as run, without placeholders; the latter "" when runs under perf take the former."""

    plan: PlanVariant
    binary: str
    profile_binary: str
    facts: VariantFacts


@dataclass(frozen=True, slots=True)
class BuildPlace:
    """``directory``: for build directories and logs, ``<directory>/<variant>/``.  ``lock``: descriptor that stays open until
    the builds have ended, even when slotscope is killed before.  ``progress`` takes a line of text."""

    directory: Path
    lock: int
    progress: Callable[[str], None]


def build_variants(plan: ExperimentPlan, place: BuildPlace) -> tuple[BuiltVariant, ...]:
    """All variants in the plan's order.

    ``CaptureError`` naming the log when a build fails, takes longer than an hour, or leaves no binary.
    """
    here = plan.path.absolute().parent
    return tuple(_VariantBuild(variant, here, place).built() for variant in plan.variants)


@dataclass(frozen=True, slots=True)
class _VariantBuild:
    """The builds of one variant.  ``here``: the plan's directory."""

    variant: PlanVariant
    here: Path
    place: BuildPlace

    @property
    def directory(self) -> Path:
        return self.place.directory / self.variant.name

    @property
    def values(self) -> dict[str, str]:
        return {"build_dir": str(self.directory / "build")}

    def built(self) -> BuiltVariant:
        variant = self.variant
        if variant.rebuild is not None:
            _taken_back(variant.rebuild.edit.file)
        build: BuildCost | None = None
        rebuild: BuildCost | None = None
        if variant.build:
            with self._whole_directory():
                build, rebuild = self._costs()
        binary, profile_binary = (
            _located(replaced((name,), self.values)[0], self.here) if name else ""
            for name in (variant.binary, variant.profile_binary)
        )
        facts = VariantFacts(
            name=variant.name,
            note=variant.note,
            revision=variant.revision or described_revision(variant.source or self.here),
            binary=binary,
            profile_binary=profile_binary,
            sha256=file_digest(Path(binary)) if "/" in binary else "",
            size_bytes=_size(variant, binary),
            sections=_sections(Path(binary)) if binary else (),
            build=build,
            rebuild=rebuild,
        )
        return BuiltVariant(variant, binary, profile_binary, facts)

    @contextlib.contextmanager
    def _whole_directory(self) -> Iterator[None]:
        """A build directory in which no build was cut short: what one leaves may be half a binary that is newer than its
        sources.  A build that ends with an error says so itself, and leaves what it can go on from."""
        unfinished, build_dir = self.directory / "unfinished", Path(self.values["build_dir"])
        if unfinished.exists() and build_dir.exists():
            self.place.progress(f"{self.variant.name}: its last build was cut short: begins anew in an empty directory")
            shutil.rmtree(build_dir)
        build_dir.mkdir(parents=True, exist_ok=True)
        unfinished.touch()
        try:
            yield
        except _CutShortError:
            raise
        except CaptureError:
            unfinished.unlink()
            raise
        unfinished.unlink()

    def _costs(self) -> tuple[BuildCost, BuildCost | None]:
        variant, progress = self.variant, self.place.progress
        progress(f"{variant.name}: building")
        is_incremental = any(Path(self.values["build_dir"]).iterdir())
        build = self._timed(variant.build, "build")
        if is_incremental:
            build = replace(build, edit=EARLIER_BUILD)
        rebuild: BuildCost | None = None
        if variant.rebuild is not None:
            progress(f"{variant.name}: building again after an edit")
            rebuild = self._rebuilt(variant.rebuild)
        if variant.profile_build:
            progress(f"{variant.name}: building for the profile")
            self._timed(variant.profile_build, "profile-build")
        return build, rebuild

    def _timed(self, command: tuple[str, ...], name: str) -> BuildCost:
        variant, log = self.variant, self.directory / f"{name}.log"
        arguments = replaced(command, self.values)
        environment = tuple((key, replaced((text,), self.values)[0]) for key, text in variant.build_env)
        directory, held = variant.source or self.here, (self.place.lock,)
        used = run_tree(TreeCommand(arguments, directory, log, environment, DEFAULT_BUILD_TIMEOUT_S, held))
        if used.timed_out:
            raise _CutShortError(
                f"{variant.name}: its build took more than {DEFAULT_BUILD_TIMEOUT_S / 60:g} minutes; see {log}"
            )
        if used.exit_code:
            raise CaptureError(f"{variant.name}: its build ended with {used.exit_code}: {_last_line(log)} (all of it in {log})")
        return BuildCost(arguments, used.wall_ns, used.cpu_ns, used.peak_bytes)

    def _rebuilt(self, rebuild: Rebuild) -> BuildCost:
        with _edited(self.variant, rebuild.edit):
            cost = self._timed(rebuild.command, "rebuild")
        # What is measured afterwards is the program as its source is.
        self._timed(rebuild.command, "rebuild.restore")
        return replace(cost, edit=_described(rebuild.edit))


def _located(name: str, here: Path) -> str:
    """Paths of a plan are relative to it; a bare name is looked up in PATH when it is run."""
    return str(here / name) if "/" in name else name


@contextlib.contextmanager
def _edited(variant: PlanVariant, edit: SourceEdit) -> Iterator[None]:
    """The source file changed, and as it was afterwards.  A copy beside it brings it back even if slotscope is killed: see
    ``_taken_back``."""
    try:
        before = edit.file.read_bytes()
    except OSError as error:
        raise CaptureError(f"{variant.name}: rebuild.edit: {edit.file}: {error.strerror}") from None
    find, other = edit.find.encode(), edit.replace.encode()
    if edit.find and find not in before:
        raise CaptureError(f"{variant.name}: rebuild.edit: {edit.find!r} is not in {edit.file}")
    half = _half_kept(edit.file)
    half.write_bytes(before)
    half.replace(_kept(edit.file))
    edit.file.write_bytes(before.replace(find, other, 1) if edit.find else before + other)
    try:
        yield
    finally:
        _taken_back(edit.file)


def _kept(source: Path) -> Path:
    """Where a source file is kept as it was, as long as it is edited."""
    return source.with_name(f".{source.name}.slotscope-before")


def _half_kept(source: Path) -> Path:
    """The copy while it is written."""
    return source.with_name(f".{source.name}.slotscope-half")


def _taken_back(source: Path) -> None:
    """The source file as it was before an edit that is still in it."""
    kept = _kept(source)
    try:
        _half_kept(source).unlink(missing_ok=True)
        if kept.exists():
            # Its content, not the file: a newer time tells build tools that it changed.
            source.write_bytes(kept.read_bytes())
            kept.unlink()
    except OSError as error:
        raise CaptureError(f"{source}: cannot be brought back from {kept}: {error.strerror}") from None


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
    return last_line(output_tail(log)) or "it printed nothing"
