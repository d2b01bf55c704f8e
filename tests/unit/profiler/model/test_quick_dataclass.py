"""Each class is made twice, by the standard library and here: both must behave alike."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from profiler.model.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Quick:
    """Described."""

    name: str
    weight: int = 3
    notes: list[str] = field(default_factory=list)
    position: int = field(default=0, compare=False, repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Usual:
    """Described."""

    name: str
    weight: int = 3
    notes: list[str] = field(default_factory=list)
    position: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    left: int
    right: str


@dataclass(frozen=True, slots=True)
class Other:
    left: int
    right: str


@dataclass(frozen=True, slots=True)
class Single:
    left: float


@dataclass(frozen=True, slots=True)
class Nothing: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByIdentity:
    left: int


@dataclass(slots=True)
class Mutable:
    left: int


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 5), {}),
    (("a", 5, ["x"], 7), {}),
    ((), {"name": "b"}),
    (("a",), {"position": 9}),
    ((), {"position": 9, "notes": ["y"], "weight": 1, "name": "c"}),
]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_a_call_fills_in_the_same(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    made, expected = Quick(*values, **named), Usual(*values, **named)
    assert dataclasses.astuple(made) == dataclasses.astuple(expected)
    assert repr(made) == repr(expected).replace("Usual", "Quick")


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1, [], 2, 3), {}), (("a",), {"name": "b"}), (("a",), {"colour": 1}), ((), {"weight": 1})],
)
def test_a_wrong_call_is_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    for cls in (Quick, Usual):
        with pytest.raises(TypeError):
            cls(*values, **named)


def test_a_default_factory_is_called_for_each() -> None:
    first, second = Quick("a"), Quick("a")
    first.notes.append("x")
    assert second.notes == []


def test_equality_is_by_compared_fields_and_class() -> None:
    assert Quick("a", position=1) == Quick("a", position=2)
    assert Quick("a") != Quick("b")
    other: object = Other(1, "x")
    assert Pair(1, "x") != other
    assert Nothing() == Nothing()
    assert ByIdentity(1) != ByIdentity(1)


def test_a_single_field_is_compared_as_several_are() -> None:
    """What equals nothing, itself included, is the same value all the same."""
    nothing = float("nan")
    usual = dataclasses.make_dataclass("Single", [("left", float)], frozen=True, slots=True)
    assert Single(nothing) == Single(nothing)
    assert usual(nothing) == usual(nothing)
    assert hash(Single(1.5)) == hash(usual(1.5))


def test_equal_values_are_one_key() -> None:
    assert {Pair(1, "x"): "found"}[Pair(1, "x")] == "found"
    assert len({Nothing(), Nothing()}) == 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Quick("a"))


@pytest.mark.parametrize("change", [lambda pair: setattr(pair, "left", 2), lambda pair: delattr(pair, "left")])
def test_nothing_can_be_changed(change: Callable[[Pair], None]) -> None:
    pair = Pair(1, "x")
    with pytest.raises(FrozenInstanceError):
        change(pair)
    with pytest.raises(FrozenInstanceError):
        pair.middle = 3  # type: ignore[attr-defined]
    assert pair == Pair(1, "x")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_values_survive_pickling(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(Quick("a", 4, ["x"], 8), protocol)).position == 8
    assert pickle.loads(pickle.dumps(Pair(1, "x"), protocol)) == Pair(1, "x")


def test_what_the_standard_library_does_with_dataclasses() -> None:
    quick = Quick("a", 4, ["x"])
    assert replace(quick, weight=9) == Quick("a", 9, ["x"])
    assert copy.deepcopy(quick) == quick
    assert copy.deepcopy(quick).notes is not quick.notes
    assert [entry.name for entry in dataclasses.fields(quick)] == [entry.name for entry in dataclasses.fields(Usual)]
    assert dataclasses.asdict(quick) == {"name": "a", "weight": 4, "notes": ["x"], "position": 0}
    assert not hasattr(quick, "__dict__")
    match Pair(1, "x"):
        case Pair(left, right):
            assert (left, right) == (1, "x")
        case _:
            pytest.fail("no match")


def test_other_classes_are_those_of_the_standard_library() -> None:
    mutable = Mutable(1)
    mutable.left = 2
    assert mutable == Mutable(2)


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(TypeError, match="needs slots"):

        @dataclass(frozen=True)
        class WithoutSlots:
            left: int

    with pytest.raises(TypeError, match="__post_init__"):

        @dataclass(frozen=True, slots=True)
        class Checked:
            left: int

            def __post_init__(self) -> None: ...
