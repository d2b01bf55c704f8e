"""Command lines of `slotscope record` and the plans that they make."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.metrics import RegexSpec
from profiler.cli.main import command_parser
from profiler.cli.record_options import record_plan
from profiler.errors import UsageError
from profiler.experiment.plan.cpu_list import parse_cpus
from profiler.experiment.plan.recording_plan import ProfilePolicy, RecordPlan


def plan(*arguments: str) -> RecordPlan:
    return record_plan(command_parser("record").parse_args(arguments))


def test_single_program_is_run_once_under_perf() -> None:
    made = plan("--", "./target/release/lcli-2", "skip-slots", "--slots", "32")
    assert made.command == ("./target/release/lcli-2", "skip-slots", "--slots", "32")
    assert [arm.label for arm in made.arms] == ["lcli-2"]
    assert (made.runs, made.warmup, made.profile) == (1, 0, ProfilePolicy.SAME)
    assert (made.event, made.frequency_hz, made.call_graph.mode) == ("cpu-clock", 1999, "auto")


def test_several_runs_or_variants_separate_times_from_profiles() -> None:
    assert (plan("--runs", "2", "--", "x").runs, plan("--runs", "2", "--", "x").profile) == (2, ProfilePolicy.SEPARATE)
    several = plan("--variant", "a=/x", "--variant", "b=/y", "--", "{binary}")
    assert (several.runs, several.profile) == (10, ProfilePolicy.SEPARATE)
    assert [(arm.label, arm.binary) for arm in several.arms] == [("a", "/x"), ("b", "/y")]
    assert plan("--variant", "a", "--variant", "b", "--profile", "none", "--", "x").profile is ProfilePolicy.NONE


def test_options_behind_the_program_are_the_programs() -> None:
    assert plan("--runs", "3", "--", "x", "--runs", "5", "--", "y").command == ("x", "--runs", "5", "--", "y")
    assert plan("--runs", "3", "x", "--runs", "5").command == ("x", "--runs", "5")


def test_everything_else_arrives_in_the_plan() -> None:
    made = plan(
        *("--metric", "a=took (.*)", "--metric", "b=json:x.y", "--pick", "median", "--before", "sh -c 'sync; true'"),
        *("--drop-caches", "--input", "state.ssz", "--input", "b", "--cpus", "0-2,5", "--phase", "^epoch", "--keep-raw"),
        *("--call-graph", "dwarf,8192", "--frequency", "997", "--event", "page-faults", "--seed", "11", "--warmup", "2"),
        *("--", "x"),
    )
    assert [(metric.name, metric.pick) for metric in made.metrics] == [("a", "median"), ("b", "median")]
    assert isinstance(made.metrics[0].source, RegexSpec)
    assert made.before == ("sh", "-c", "sync; true")
    assert made.inputs == (Path("state.ssz"), Path("b"))
    assert made.cpus == {0, 1, 2, 5}
    assert (made.drop_caches, made.keep_raw, made.phase, made.seed, made.warmup) == (True, True, "^epoch", 11, 2)
    assert (made.call_graph.mode, made.call_graph.dump_bytes) == ("dwarf", 8192)
    assert (made.frequency_hz, made.event) == (997, "page-faults")


def test_seed_is_random_unless_given() -> None:
    assert len({plan("--", "x").seed for _ in range(8)}) > 1
    with pytest.raises(UsageError, match="--seed -1"):
        plan("--seed", "-1", "--", "x")


@pytest.mark.parametrize(
    ("program", "name"),
    [("/opt/my prog", "my_prog"), ("./last", "last_"), ("+x", "x"), ("...", "program_"), ("a/b:c", "b_c")],
)
def test_names_made_of_programs_can_be_selected(program: str, name: str) -> None:
    assert plan("--", program).arms[0].label == name


@pytest.mark.parametrize(("text", "cpus"), [("", set()), ("3", {3}), ("0-3,8", {0, 1, 2, 3, 8}), ("1,1-1, 2", {1, 2})])
def test_lists_of_cpus(text: str, cpus: set[int]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["x", "1-", "-1", "3-1", "1,,2", "0-99999999999", "1 2"])
def test_lists_of_cpus_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--cpus"):
        parse_cpus(text)
