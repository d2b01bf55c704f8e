"""Plans that are refused, and the command of a variant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from collectors.metrics import parse_metric
from profiler.errors import UsageError
from profiler.experiment.plan.recording_plan import Arm, RecordPlan, check_plan, variant_arms

COMMAND = ("{binary}", "--db={binary}.db", "x")
PLAN = RecordPlan(COMMAND, variant_arms(COMMAND, [("a", "/bin/a"), ("b", "/bin/b")]), seed=1)


def test_binary_is_put_in_everywhere() -> None:
    check_plan(PLAN)
    assert PLAN.arms[1] == Arm("b", ("/bin/b", "--db=/bin/b.db", "x"), "/bin/b")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": ()}, "no command to record"),
        ({"runs": 0}, "0 runs and 0 warm-up runs"),
        ({"warmup": -1}, "10 runs and -1 warm-up runs"),
        ({"frequency_hz": 0}, "--frequency 0"),
        ({"arms": (Arm("a", ("x",)), Arm("a", ("y",)))}, "distinct names: a, a"),
        ({"arms": (Arm("a/b", ("x",)),)}, "variant name 'a/b'"),
        ({"metrics": (parse_metric("t=(x)"), parse_metric("t=(y)"))}, "metrics need distinct names: t, t"),
    ],
)
def test_plans_that_cannot_be_carried_out(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        check_plan(replace(PLAN, **changes))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("command", "variants", "message"),
    [
        (COMMAND, [("a", "x"), ("b", "")], "write --variant b=BINARY"),
        (("prog",), [("a", "x")], "variant 'a' has a binary, but there is no {binary}"),
    ],
)
def test_binaries_and_command_belong_together(command: tuple[str, ...], variants: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError) as error:
        variant_arms(command, variants)
    assert message in str(error.value)


def test_same_command_under_two_names_is_a_control() -> None:
    arms = variant_arms(("prog",), [("a", ""), ("b", "")])
    check_plan(replace(PLAN, command=("prog",), arms=arms))
    assert arms[0].command == arms[1].command == ("prog",)


def test_one_variant_under_two_conditions_is_two_arms() -> None:
    arms = (Arm("a", ("prog",), condition="full"), Arm("a", ("prog", "--partial"), condition="partial"))
    check_plan(replace(PLAN, arms=arms))
    assert [arm.label for arm in arms] == ["a@full", "a@partial"]
