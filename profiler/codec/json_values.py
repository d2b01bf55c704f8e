"""Frozen value types to JSON and back, driven by their field annotations.

Only what the value types use is known: str, int, float, bool, None, enums of str, tuples and nested dataclasses.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias, TypeVar

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | bool | None"
Value = TypeVar("Value")


class JsonShapeError(ValueError):
    """A JSON value is not what the type's annotations say; the message starts with the path of the field."""


def to_json(value: object) -> Json:
    """JSON form of a dataclass, tuple or scalar: fields in declaration order, tuples as arrays.

    Raises ``TypeError`` for a type outside the known ones (a programming error, not bad input).
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value.value if isinstance(value, StrEnum) else value
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(kind: type[Value], json: Json, path: str = "") -> Value:
    """The value of type ``kind`` that ``json`` describes.

    A field that is absent takes its default; an unknown field, a missing field without default and a value of another type
    raise ``JsonShapeError``.
    """
    return typing.cast(Value, _read(kind, json, path or kind.__name__))


def _read(annotation: Any, json: Json, path: str) -> object:
    origin = typing.get_origin(annotation)
    if origin in (types.UnionType, typing.Union):
        return _read_optional(annotation, json, path)
    if origin is tuple:
        return _read_tuple(typing.get_args(annotation), json, path)
    if is_dataclass(annotation):
        return _read_dataclass(typing.cast(type, annotation), json, path)
    return _read_scalar(annotation, json, path)


def _read_scalar(kind: type, json: Json, path: str) -> object:
    if kind is float and isinstance(json, int) and not isinstance(json, bool):
        return float(json)
    if issubclass(kind, StrEnum) and isinstance(json, str) and json in {member.value for member in kind}:
        return kind(json)
    if type(json) is kind:
        return json
    raise JsonShapeError(f"{path}: expected {kind.__name__}, found {_shown(json)}")


def _read_optional(annotation: Any, json: Json, path: str) -> object:
    kinds = [kind for kind in typing.get_args(annotation) if kind is not types.NoneType]
    if len(kinds) != 1:
        raise TypeError(f"{path}: only unions with None have a JSON form")
    return None if json is None else _read(kinds[0], json, path)


def _read_tuple(kinds: tuple[Any, ...], json: Json, path: str) -> tuple[object, ...]:
    if isinstance(json, str) or not isinstance(json, Sequence):
        raise JsonShapeError(f"{path}: expected an array, found {_shown(json)}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_read(kinds[0], item, f"{path}[{i}]") for i, item in enumerate(json))
    if len(kinds) != len(json):
        raise JsonShapeError(f"{path}: expected {len(kinds)} items, found {len(json)}")
    return tuple(_read(kind, item, f"{path}[{i}]") for i, (kind, item) in enumerate(zip(kinds, json, strict=True)))


def _read_dataclass(kind: type, json: Json, path: str) -> object:
    if not isinstance(json, Mapping):
        raise JsonShapeError(f"{path}: expected an object, found {_shown(json)}")
    hints, known = _annotations(kind)
    unknown = sorted(set(json) - set(known))
    if unknown:
        raise JsonShapeError(f"{path}: unknown field {unknown[0]!r}")
    missing = [name for name, field in known.items() if name not in json and not _has_default(field)]
    if missing:
        raise JsonShapeError(f"{path}: field {missing[0]!r} is missing")
    return kind(**{name: _read(hints[name], json[name], f"{path}.{name}") for name in known if name in json})


@cache
def _annotations(kind: type) -> tuple[dict[str, Any], dict[str, Field[Any]]]:
    return typing.get_type_hints(kind), {field.name: field for field in fields(kind)}


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _shown(json: Json) -> str:
    text = repr(json)
    return text if len(text) <= 40 else text[:37] + "..."
