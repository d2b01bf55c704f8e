"""Value types to JSON and back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pytest

from profiler.codec.json_values import JsonShapeError, from_json, to_json


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner:
    colour: Colour
    ratio: float = 0.5


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    inners: tuple[Inner, ...] = ()
    pair: tuple[int, str] = (1, "x")
    flag: bool | None = None


def test_shape_of_the_json() -> None:
    value = Outer("n", (Inner(Colour.RED, 2.0),), (3, "y"), True)
    json = {"name": "n", "inners": [{"colour": "red", "ratio": 2.0}], "pair": [3, "y"], "flag": True}
    assert to_json(value) == json
    assert from_json(Outer, json) == value


def test_absent_fields_take_their_defaults() -> None:
    assert from_json(Outer, {"name": "n"}) == Outer("n")


def test_whole_numbers_are_accepted_as_floats_but_not_the_other_way_round() -> None:
    assert from_json(Inner, {"colour": "red", "ratio": 3}) == Inner(Colour.RED, 3.0)
    with pytest.raises(JsonShapeError, match=r"Outer\.pair\[0\]: expected int, found 1\.0"):
        from_json(Outer, {"name": "n", "pair": [1.0, "x"]})


@pytest.mark.parametrize(
    ("json", "message"),
    [
        ({}, "Outer: field 'name' is missing"),
        ({"name": "n", "extra": 1}, "Outer: unknown field 'extra'"),
        ({"name": "n", "inners": [{"colour": "blue"}]}, r"Outer\.inners\[0\]\.colour: expected Colour, found 'blue'"),
        ({"name": "n", "inners": {}}, r"Outer\.inners: expected an array"),
        ({"name": "n", "pair": [1]}, r"Outer\.pair: expected 2 items, found 1"),
        ({"name": "n", "flag": 1}, r"Outer\.flag: expected bool, found 1"),
        ([], "Outer: expected an object"),
    ],
)
def test_what_does_not_fit_is_named(json: object, message: str) -> None:
    with pytest.raises(JsonShapeError, match=message):
        from_json(Outer, json)  # type: ignore[arg-type]


def test_types_without_a_json_form() -> None:
    with pytest.raises(TypeError, match="bytes"):
        to_json((b"x",))
