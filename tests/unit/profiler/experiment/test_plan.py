"""Plans that are refused, and the command of a variant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from collectors.metrics import parse_metric
from profiler.errors import UsageError
from profiler.experiment.plan import RecordPlan, Variant, check_plan, command_of

PLAN = RecordPlan(("{binary}", "--db={binary}.db", "x"), (Variant("a", "/bin/a"), Variant("b", "/bin/b")), seed=1)


def test_binary_is_put_in_everywhere() -> None:
    check_plan(PLAN)
    assert command_of(PLAN, PLAN.variants[1]) == ("/bin/b", "--db=/bin/b.db", "x")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": ()}, "no command to record"),
        ({"runs": 0}, "0 runs and 0 warm-up runs"),
        ({"warmup": -1}, "10 runs and -1 warm-up runs"),
        ({"frequency_hz": 0}, "--frequency 0"),
        ({"variants": (Variant("a", "x"), Variant("a", "y"))}, "distinct names: a, a"),
        ({"variants": (Variant("a/b", "x"),)}, "variant name 'a/b'"),
        ({"variants": (Variant("a", "x"), Variant("b"))}, "write --variant b=BINARY"),
        ({"command": ("prog",)}, "variant 'a' has a binary, but there is no {binary}"),
        ({"metrics": (parse_metric("t=(x)"), parse_metric("t=(y)"))}, "metrics need distinct names: t, t"),
    ],
)
def test_plans_that_cannot_be_carried_out(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        check_plan(replace(PLAN, **changes))
    assert message in str(error.value)


def test_same_command_under_two_names_is_a_control() -> None:
    plan = replace(PLAN, command=("prog",), variants=(Variant("a"), Variant("b")))
    check_plan(plan)
    assert command_of(plan, plan.variants[0]) == command_of(plan, plan.variants[1]) == ("prog",)
