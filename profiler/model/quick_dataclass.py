"""``dataclass`` of the standard library, at a fraction of its cost for frozen classes with slots.

The standard library compiles six functions for each such class, a third of a millisecond; the hundred and seventy classes that
a short report needs took a sixth of its time.  Here all classes share one set of functions.  They remain dataclasses:
``fields``, ``replace``, ``pickle`` and ``match`` see no difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, repr=True):
        """As that of the standard library; a frozen class needs slots, no ``__post_init__``, and all fields in ``__init__``."""

        def decorated(plain):
            if not frozen:
                return dataclasses.dataclass(plain, slots=slots, eq=eq, repr=repr)
            plain.__doc__ = plain.__doc__ or plain.__name__  # else one is made of the signature, which takes as long again
            made = dataclasses.dataclass(plain, slots=slots, eq=False, repr=False, init=False)
            _make_immutable(made)
            if eq:
                _compare_by_fields(made)
            if repr and "__repr__" not in plain.__dict__:
                made.__repr__ = _shown
            return made

        return decorated if cls is None else decorated(cls)


def _make_immutable(cls: type[Any]) -> None:
    fields = dataclasses.fields(cls)
    if "__slots__" not in cls.__dict__ or hasattr(cls, "__post_init__") or not all(field.init for field in fields):
        raise TypeError(f"{cls.__qualname__} needs slots, no __post_init__, and all fields in __init__")
    # Slots are filled past ``__setattr__``, which refuses.
    defaults = _Defaults(cls.__qualname__, fields)
    setters = tuple(getattr(cls, field.name).__set__ for field in fields)

    def __init__(self: object, *values: Any, **named: Any) -> None:
        is_complete = len(values) == len(setters) and not named
        for set_field, value in zip(setters, values if is_complete else defaults.completed(values, named), strict=True):
            set_field(self, value)

    def __setstate__(self: object, values: Sequence[Any]) -> None:
        for set_field, value in zip(setters, values, strict=True):
            set_field(self, value)

    own: dict[str, Callable[..., Any]] = {"__init__": __init__, "__setstate__": __setstate__, "__getstate__": _values}
    for name, method in (own | {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}).items():
        setattr(cls, name, method)


class _Defaults:
    """Completes calls of a class that do not give the value of every field in order."""

    def __init__(self, name: str, fields: Sequence[dataclasses.Field[Any]]) -> None:
        self._name = name
        self._names = [field.name for field in fields]
        self._defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
        self._factories = {
            field.name: field.default_factory for field in fields if field.default_factory is not dataclasses.MISSING
        }

    def completed(self, values: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """The values of all fields in their order; ``TypeError`` as of any call with wrong arguments."""
        given = dict(zip(self._names, values, strict=False)) | named
        if len(given) < len(values) + len(named):
            raise TypeError(f"{self._name}() got {len(values)} values in order, and {', '.join(named) or 'none'} by name")
        if len(given) < len(self._names):
            made = {name: make() for name, make in self._factories.items() if name not in given}
            given = self._defaults | made | given
        try:
            completed = [given.pop(name) for name in self._names]
        except KeyError as missing:
            raise TypeError(f"{self._name}() lacks {missing}") from None
        if given:
            raise TypeError(f"{self._name}() has no fields {', '.join(given)}")
        return completed


def _compare_by_fields(cls: type[Any]) -> None:
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    # Of a single name no tuple is made, and tuples compare their elements by identity first.
    key: Callable[[object], Any] = attrgetter(*names) if len(names) > 1 else lambda self: tuple(getattr(self, n) for n in names)

    def __eq__(self: object, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:
        return hash(key(self))

    for method in (__eq__, __hash__):
        if method.__name__ not in cls.__dict__ or cls.__dict__[method.__name__] is None:
            setattr(cls, method.__name__, method)


def _values(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
