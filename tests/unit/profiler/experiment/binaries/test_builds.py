"""Builds of an experiment: made, measured, looked at, and refused in one line when they fail."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.errors import CaptureError
from profiler.experiment.binaries import builds
from profiler.experiment.binaries.builds import EARLIER_BUILD, BuildPlace, BuiltVariant, build_variants, described_revision
from profiler.experiment.plan.experiment_plan import ExperimentPlan
from profiler.experiment.plan.plan_file import parse_plan
from profiler.experiment.run.arms import arm_labels, experiment_arms

HEAD = (
    '[experiment]\nname = "x"\naa = true\ncommand = ["{binary}", "{input.data}"]\n[[input]]\nname = "data"\npath = "in.txt"\n'
)


def build(plan: ExperimentPlan, directory: Path) -> tuple[BuiltVariant, ...]:
    return build_variants(plan, BuildPlace(directory, sys.stderr.fileno(), lambda _: None))


def built(directory: Path, text: str) -> tuple[BuiltVariant, ...]:
    return build(parse_plan(HEAD + text, directory / "plan.toml"), directory / "builds")


def variant(build: str, more: str = "") -> str:
    return f'[[variant]]\nname = "v"\nbinary = "{{build_dir}}/program"\nbuild = ["sh", "-c", {build!r}]\n{more}'


def test_a_build_is_timed_and_its_binary_looked_at(tmp_path: Path) -> None:
    # So many functions that the compiler is seen at work: memory is looked at every 20 ms.
    functions = "".join(f"int f{number}(int x) {{ return x * {number}; }}\n" for number in range(4000))
    data = "static const char data[1000000] = {1};\nint main(void) { return data[1]; }\n"
    (tmp_path / "program.c").write_text(functions + data)
    (one,) = built(tmp_path, variant('gcc -o "$OUT" program.c', 'build_env = { OUT = "{build_dir}/program" }'))
    facts = one.facts
    assert one.binary == str(tmp_path / "builds/v/build/program")
    assert facts.size_bytes == Path(one.binary).stat().st_size
    assert facts.sections[0].name == ".rodata"
    sizes = subprocess.run(["readelf", "-SW", one.binary], capture_output=True, check=True, text=True).stdout
    (line,) = [line for line in sizes.splitlines() if " .rodata " in line]
    assert facts.sections[0].size_bytes == int(line.split("PROGBITS")[1].split()[2], 16)
    assert facts.build is not None
    assert 0 < facts.build.cpu_ns < 60e9
    assert facts.build.peak_bytes > 5_000_000


def test_an_incremental_build_sees_the_edit_and_the_source_stays_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "src" / "text"
    source.parent.mkdir()
    source.write_text("one two one")
    build = 'cp text "$OUT"; cat text >>../seen; chmod +x "$OUT"'
    edit = 'edit = { file = "text", find = "one", replace = "1" }'
    rebuild = f'rebuild = {{ command = ["sh", "-c", {build!r}], {edit} }}\n'
    more = 'source = "src"\nbuild_env = { OUT = "{build_dir}/program" }\n' + rebuild
    (one,) = built(tmp_path, variant(build, more))
    assert (tmp_path / "seen").read_text() == "one two one" + "1 two one" + "one two one"
    assert source.read_text() == "one two one"
    assert Path(one.binary).read_text() == "one two one"
    assert one.facts.rebuild is not None
    assert one.facts.rebuild.edit == "text: 'one' -> '1'"
    assert list(source.parent.iterdir()) == [source]


def test_a_source_left_changed_by_a_killed_build_is_brought_back(tmp_path: Path) -> None:
    source = tmp_path / "text"
    source.write_text("changed")
    (tmp_path / ".text.slotscope-before").write_text("original")
    build = 'echo >"$OUT"'
    rebuild = f'rebuild = {{ command = ["sh", "-c", {build!r}], edit = {{ file = "text", append = "x" }} }}\n'
    built(tmp_path, variant(build, 'build_env = { OUT = "{build_dir}/program" }\n' + rebuild))
    assert source.read_text() == "original"


def test_what_a_build_left_that_was_cut_short_is_no_binary(tmp_path: Path) -> None:
    """The build has nothing to do where there is a binary, as make where it is newer than its sources."""
    once = variant('test -e "$OUT" || printf whole >"$OUT"', 'build_env = { OUT = "{build_dir}/program" }')
    binary = tmp_path / "builds/v/build/program"
    binary.parent.mkdir(parents=True)
    binary.write_text("half")
    (tmp_path / "builds/v/unfinished").touch()
    (one,) = built(tmp_path, once)
    assert (one.binary, binary.read_text()) == (str(binary), "whole")
    assert one.facts.build is not None
    assert one.facts.build.edit == "", "the time of a full build"
    binary.write_text("of an earlier run")
    (one,) = built(tmp_path, once)
    assert one.facts.build is not None
    assert one.facts.build.edit == EARLIER_BUILD
    assert binary.read_text() == "of an earlier run", "what was finished is gone on from"
    with pytest.raises(CaptureError, match="ended with 1"):
        built(tmp_path, variant("exit 1"))
    built(tmp_path, once)
    assert binary.read_text() == "of an earlier run", "a build that failed has ended in order"


def test_a_source_that_was_edited_is_brought_back_before_the_first_build(tmp_path: Path) -> None:
    """The first build may be the shipped one: it must not see the edit of a rebuild that was killed."""
    (tmp_path / "text").write_text("edited")
    (tmp_path / ".text.slotscope-before").write_text("original")
    (tmp_path / ".text.slotscope-half").write_text("orig")
    rebuild = 'rebuild = { command = ["true"], edit = { file = "text", append = "x" } }\n'
    (one,) = built(tmp_path, variant('cp text "$OUT"', 'build_env = { OUT = "{build_dir}/program" }\n' + rebuild))
    assert Path(one.binary).read_text() == "original"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["builds", "text"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (variant("echo no rule; exit 2"), "v: its build ended with 2: no rule (all of it in "),
        (variant("true"), "v: its build left no "),
        ('[[variant]]\nname = "v"\nbinary = "./nothing"\n', "v: there is no "),
        (
            variant("true", 'rebuild = { command = ["true"], edit = { file = "none.c", append = "x" } }'),
            "none.c: No such file",
        ),
        (
            variant("true", 'rebuild = { command = ["true"], edit = { file = "plan", find = "q", replace = "x" } }'),
            "'q' is not in ",
        ),
        (
            '[[variant]]\nname = "v"\nbinary = "{build_dir}/p"\nbuild = ["no-such-compiler"]\n',
            "no-such-compiler: cannot be run",
        ),
    ],
)
def test_builds_that_fail_are_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "plan").write_text("nothing here")
    with pytest.raises(CaptureError) as raised:
        built(tmp_path, text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_revision_is_what_git_describes(tmp_path: Path) -> None:
    assert described_revision(tmp_path) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    subprocess.run([*git, "tag", "v1.2"], check=True)
    assert described_revision(tmp_path) == "v1.2"


def test_arms_are_variants_under_conditions_and_the_baseline_again(tmp_path: Path) -> None:
    shutil.copy("/bin/true", tmp_path / "one")
    shutil.copy("/bin/true", tmp_path / "two")
    text = '[[variant]]\nname = "a"\nbinary = "./one"\n[[variant]]\nname = "b"\nbinary = "./two"\n'
    text += '[[condition]]\nname = "full"\n[[condition]]\nname = "part"\nargs = ["--part", "{binary}"]\nenv = { K = "v" }\n'
    plan = parse_plan(HEAD + text, tmp_path / "plan.toml")
    found = experiment_arms(plan, build(plan, tmp_path / "builds"))
    arms = [arm.arm for arm in found]
    assert [arm.label for arm in arms] == ["a@full", "a-again@full", "b@full", "a@part", "a-again@part", "b@part"]
    assert arm_labels(plan) == tuple(arm.label for arm in arms)
    binary, data = str(tmp_path / "two"), str(tmp_path / "in.txt")
    assert arms[5].command == (binary, data, "--part", binary)
    assert arms[5].environment == (("K", "v"),)
    assert arms[0].command == arms[1].command


def test_the_shipped_binary_stays_what_the_profile_build_does_not_touch(tmp_path: Path) -> None:
    """The table of variants is about the first build; only runs under perf take the second one's binary."""
    more = 'profile_build = ["sh", "-c", "printf with-debug-info > \\"$OUT.debug\\""]\n'
    more += 'build_env = { OUT = "{build_dir}/program" }\nprofile_binary = "{build_dir}/program.debug"\n'
    plan = parse_plan(HEAD + variant('printf small > "$OUT"', more), tmp_path / "plan.toml")
    (one,) = build(plan, tmp_path / "builds")
    assert one.facts.size_bytes == len("small")
    assert one.facts.sha256 == hashlib.sha256(b"small").hexdigest()
    assert one.facts.build is not None
    assert one.facts.build.command == ("sh", "-c", 'printf small > "$OUT"')
    (arm, _) = (found.arm for found in experiment_arms(plan, (one,)))
    data = str(tmp_path / "in.txt")
    assert arm.command == (str(tmp_path / "builds/v/build/program"), data)
    assert arm.profiled_command == (str(tmp_path / "builds/v/build/program.debug"), data)
    assert Path(arm.profiled_binary).read_text() == "with-debug-info"


def test_a_build_that_took_too_long_left_no_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = 'test -e "$OUT" || { printf half >"$OUT"; sleep SECONDS; printf whole >"$OUT"; }'
    environment = 'build_env = { OUT = "{build_dir}/program" }'
    monkeypatch.setattr(builds, "DEFAULT_BUILD_TIMEOUT_S", 0.5)
    with pytest.raises(CaptureError, match="took more than"):
        built(tmp_path, variant(script.replace("SECONDS", "60"), environment))
    monkeypatch.undo()
    (one,) = built(tmp_path, variant(script.replace("SECONDS", "0"), environment))
    assert Path(one.binary).read_text() == "whole"
