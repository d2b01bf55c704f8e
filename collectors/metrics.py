"""Metrics: numbers that the program prints, taken from its output.

    NAME=REGEX or NAME=regex:REGEX   one group: a bare number, or a duration when the group includes its unit ("12.5 ms");
                                     two groups, or groups named value and unit: number and unit
    NAME=json:PATH                   lines that are JSON objects; dotted path, numbers index arrays; a path that ends in
                                     _ns, _us, _ms or _s is a duration

Durations become ns.  A number may have thousands separators ("1,234.5" or "1_234.5").
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from profiler.errors import CaptureError, UsageError
from profiler.model.quick_dataclass import dataclass
from profiler.model.run import Metric

DURATIONS_NS: Mapping[str, float] = MappingProxyType(
    {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "secs": 1e9, "seconds": 1e9}
)
PICKS: Mapping[str, Callable[[tuple[float, ...]], float]] = MappingProxyType(
    {"mean": statistics.fmean, "median": statistics.median, "last": lambda values: values[-1], "sum": math.fsum}
)
DEFAULT_PICK = "mean"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# A comma parts groups of three digits; "12,5" may be twelve and a half.
_NUMBER = re.compile(
    r"\s*([-+]?(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+(?:[eE][-+]?\d+)?)\s*([^\d\s]*)\s*"
)
# The squares of larger ones are beyond what a float holds.
_LARGEST = 1e150
_PATH_UNIT = re.compile(r"_(ns|us|ms|s)$")
_LATER_KINDS = ("prom", "stat")


@dataclass(frozen=True, slots=True)
class RegexSpec:
    """Groups of ``pattern``: ``value_group`` and, when not None, ``unit_group``."""

    pattern: re.Pattern[str]
    value_group: int
    unit_group: int | None


@dataclass(frozen=True, slots=True)
class JsonSpec:
    """``path``: keys and array indices from the object of a line to the number; ``unit`` "" or one of ``DURATIONS_NS``."""

    path: tuple[str, ...]
    unit: str


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """``text`` is the part after NAME= as given, for messages."""

    name: str
    text: str
    pick: str
    source: RegexSpec | JsonSpec


def parse_metric(option: str, pick: str = DEFAULT_PICK) -> MetricSpec:
    """The value of a ``--metric`` option.  ``UsageError`` for anything that cannot work."""
    name, equals, text = option.partition("=")
    if not equals or not _NAME.fullmatch(name) or not text:
        raise UsageError(f"--metric {option!r}: expected NAME=REGEX or NAME=json:PATH")
    if pick not in PICKS:
        raise UsageError(f"--pick {pick!r}: expected one of {', '.join(PICKS)}")
    kind, colon, rest = text.partition(":")
    if colon and kind in _LATER_KINDS:
        raise UsageError(f"--metric {option!r}: {kind}: sources are for live processes; a run's output needs regex: or json:")
    if colon and kind == "json":
        return MetricSpec(name, text, pick, _json_spec(option, rest))
    return MetricSpec(name, text, pick, _regex_spec(option, rest if colon and kind == "regex" else text))


def _json_spec(option: str, text: str) -> JsonSpec:
    path = tuple(text.split("."))
    if not all(path):
        raise UsageError(f"--metric {option!r}: json: needs a dotted path such as timings.total_ms")
    unit = _PATH_UNIT.search(path[-1])
    return JsonSpec(path, unit[1] if unit else "")


def _regex_spec(option: str, text: str) -> RegexSpec:
    try:
        pattern = re.compile(text, re.MULTILINE)
    except re.error as error:
        raise UsageError(f"--metric {option!r}: not a regular expression ({error})") from None
    named = pattern.groupindex
    if "value" in named:
        return RegexSpec(pattern, named["value"], named.get("unit"))
    if pattern.groups not in (1, 2):
        raise UsageError(f"--metric {option!r}: needs one group around the number, or two for number and unit")
    return RegexSpec(pattern, 1, 2 if pattern.groups == 2 else None)


def read_metrics(specs: tuple[MetricSpec, ...], output: Path) -> tuple[Metric, ...]:
    """The metrics found in a program's output; ``CaptureError`` for one that matches nothing."""
    if not specs:
        return ()
    text = output.read_bytes().decode("utf-8", "replace")
    return tuple(metric_in(spec, text) for spec in specs)


def metric_in(spec: MetricSpec, text: str) -> Metric:
    """One metric from the whole output, all matches in order.  ``CaptureError``: no match, no number, or mixed units."""
    source = spec.source
    found = list(_regex_values(spec, source, text) if isinstance(source, RegexSpec) else _json_values(spec, source, text))
    if not found:
        raise CaptureError(f"metric {spec.name!r} ({spec.text}) matches nothing in the program's output")
    units = {unit for _, unit in found}
    if len(units) > 1:
        raise CaptureError(f"metric {spec.name!r}: some matches have a unit of time and some have none")
    values = tuple(value for value, _ in found)
    return Metric(spec.name, PICKS[spec.pick](values), found[0][1], values)


def _regex_values(spec: MetricSpec, source: RegexSpec, text: str) -> Iterator[tuple[float, str]]:
    for match in source.pattern.finditer(text):
        captured = match[source.value_group]
        number = _NUMBER.fullmatch(captured or "")
        if number is None:
            raise CaptureError(f"metric {spec.name!r}: {captured!r} is not a number with an optional unit (ns, us, ms, s)")
        unit = match[source.unit_group] if source.unit_group is not None else number[2]
        yield _in_base_unit(spec, float(number[1].replace(",", "").replace("_", "")), (unit or "").strip())


def _json_values(spec: MetricSpec, source: JsonSpec, text: str) -> Iterator[tuple[float, str]]:
    for line in text.splitlines():
        if not line.lstrip().startswith("{"):
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for key in source.path:
            value = _step(value, key)
        number = _finite(value)
        if number is not None:
            yield _in_base_unit(spec, number, source.unit)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # JSON has integers of any size
        return None
    return number if math.isfinite(number) else None


def _step(value: object, key: str) -> object:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        item: object = value[int(key)]
        return item
    return None


def _in_base_unit(spec: MetricSpec, value: float, unit: str) -> tuple[float, str]:
    if unit and unit not in DURATIONS_NS:
        raise CaptureError(f"metric {spec.name!r}: unit {unit!r} is not one of ns, us, ms, s; capture the number alone")
    found = value * DURATIONS_NS.get(unit, 1.0)
    if not abs(found) <= _LARGEST:
        raise CaptureError(f"metric {spec.name!r}: {value:g}{unit} is too large to be compared with anything")
    return found, "ns" if unit else ""
