"""speedscope files: the published schema, and what its importer demands beyond it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.model.call_stacks import CallStacks
from reports.speedscope import render_speedscope
from support.report_values import call_stacks
from support.speedscope_rules import check_profiles


def export(*arms: CallStacks, categories_as_roots: bool = False) -> Any:
    document = json.loads(render_speedscope(arms, "test", categories_as_roots))
    check_profiles(document)
    return document


def stacks_of(document: Any, profile: int = 0) -> dict[str, float]:
    names = [frame["name"] for frame in document["shared"]["frames"]]
    shown = document["profiles"][profile]
    return {
        "/".join(names[frame] for frame in sample): weight
        for sample, weight in zip(shown["samples"], shown["weights"], strict=True)
    }


def test_one_run_keeps_its_raw_integers() -> None:
    lines = {"main/work/leaf": [2**53 + 1], "main/work": [10], "main": [0]}
    document = export(call_stacks(lines))
    assert stacks_of(document) == {"main/work/leaf": 2**53 + 1, "main/work": 10}
    profile = document["profiles"][0]
    assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "nanoseconds", 0)
    assert profile["endValue"] == 2**53 + 11


def test_several_runs_are_their_mean_and_the_total_stays_exact() -> None:
    document = export(call_stacks({"a": [1, 1, 2], "b": [1, 1, 2], "c": [1, 1, 2]}))
    assert document["profiles"][0]["endValue"] == 4  # 12 ns over 3 runs
    assert sum(document["profiles"][0]["weights"]) == 4
    assert all(isinstance(weight, int) for weight in document["profiles"][0]["weights"])
    assert document["profiles"][0]["name"] == "base (cpu-clock, mean of 3 runs)"


def test_counts_keep_their_fractions_and_have_no_unit() -> None:
    document = export(call_stacks({"a": [1, 0, 0, 0], "b": [1, 1, 1, 0]}, unit="page-faults"))
    assert document["profiles"][0]["unit"] == "none"
    assert stacks_of(document) == {"a": 0.25, "b": 0.75}


def test_one_frame_per_function_in_all_arms() -> None:
    one = call_stacks({"main/f": [1], "main/g": [2]}, arm="one", files={"f": ("f.c", 3), "g": ("g.c", 1)})
    two = call_stacks({"main/g/f": [4]}, arm="two", files={"f": ("f.c", 9), "g": ("other.c", 1)})
    document = export(one, two)
    assert document["shared"]["frames"] == [{"name": "main"}, {"name": "f", "file": "f.c"}, {"name": "g"}]
    assert [profile["name"] for profile in document["profiles"]] == ["one (cpu-clock)", "two (cpu-clock)"]
    assert stacks_of(document, 1) == {"main/g/f": 4}


def test_categories_as_roots() -> None:
    document = export(call_stacks({"main/sha": [3], "main": [1]}, categories={"sha": "SHA-256"}), categories_as_roots=True)
    assert stacks_of(document) == {"[SHA-256]/main/sha": 3, "[other]/main": 1}


def test_recursion_is_kept_in_the_stack() -> None:
    assert stacks_of(export(call_stacks({"main/f/f/f": [2]}))) == {"main/f/f/f": 2}


def test_hostile_names_are_valid_utf8_without_control_characters() -> None:
    data = render_speedscope([call_stacks({"x\udcff\x1b": [1]}, arm="\udc80")], "\udcff")
    document = json.loads(data.decode("utf-8"))
    assert document["shared"]["frames"] == [{"name": "x\\xff\\x1b"}]
    assert document["name"] == "\\xff"


def test_no_weight_at_all() -> None:
    document = export(call_stacks({"main": [0]}))
    assert document["profiles"][0]["samples"] == []


@given(st.permutations(["main/a/x", "main/a", "main/b/y", "start", "main/b"]))
def test_the_order_of_stacks_does_not_change_the_samples(order: list[str]) -> None:
    weights = {"main/a/x": [1, 2], "main/a": [2, 2], "main/b/y": [3, 1], "start": [4, 1], "main/b": [5, 1]}
    shuffled = export(call_stacks({line: weights[line] for line in order}))
    assert stacks_of(shuffled) == stacks_of(export(call_stacks(weights)))


RUNS = st.integers(1, 4)
LINES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map("/".join)


@given(st.data(), RUNS)
def test_the_sum_is_the_mean_total(data: st.DataObject, runs: int) -> None:
    weights = st.lists(st.integers(0, 2**50), min_size=runs, max_size=runs)
    lines = data.draw(st.dictionaries(LINES, weights, min_size=1, max_size=10))
    total = sum(sum(weight) for weight in lines.values())
    assert abs(export(call_stacks(lines))["profiles"][0]["endValue"] - total / runs) <= max(0.5, total * 2**-52)


@pytest.mark.parametrize("categories_as_roots", [False, True])
def test_the_published_schema_accepts_it(corpus: Path, categories_as_roots: bool) -> None:
    schema_file = corpus / "npm-speedscope" / "dist" / "release" / "file-format-schema.json"
    if not schema_file.is_file():
        pytest.skip(f"no published schema at {schema_file}")
    schema = json.loads(schema_file.read_text())
    one = call_stacks({"main/f": [1], "main/g\udcff": [2]}, arm="one", files={"f": ("f.c", 3)})
    two = call_stacks({"main/f": [1, 2], "main": [3, 3]}, arm="two", unit="cycles")
    jsonschema.validate(export(one, two, categories_as_roots=categories_as_roots), schema)
    broken = export(one)
    del broken["profiles"][0]["weights"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)
