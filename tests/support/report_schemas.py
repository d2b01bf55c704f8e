"""JSON schemas of the two documents, written from their description; nothing beyond it is allowed."""

from __future__ import annotations

from typing import Any

INTERVAL = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
INTERVAL_OR_NULL = {"anyOf": [INTERVAL, {"type": "null"}]}
NUMBER_OR_NULL = {"type": ["number", "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


WARNINGS = {
    "type": "array",
    "items": _object(code={"type": "string"}, message={"type": "string"}, advice={"type": "string"}),
}

REPORT = _object(
    schema={"const": "slotscope.report/1"},
    event={"type": "string"},
    unit={"type": "string"},
    total={"type": "integer"},
    view={"enum": ["leaf", "owner"]},
    rows={
        "type": "array",
        "items": _object(
            name={"type": "string"},
            self={"type": "integer"},
            total={"type": "integer"},
            share={"type": "number", "minimum": 0, "maximum": 1},
            share_interval=INTERVAL_OR_NULL,
            samples={"type": "integer"},
        ),
    },
    quality={"type": "object", "required": ["status"]},
    warnings=WARNINGS,
)

_ROW: dict[str, Any] = {
    "name": {"type": "string"},
    "baseline": NUMBER_OR_NULL,
    "candidate": NUMBER_OR_NULL,
    "delta": NUMBER_OR_NULL,
    "delta_interval": INTERVAL_OR_NULL,
    "relative": NUMBER_OR_NULL,
    "relative_interval": INTERVAL_OR_NULL,
    "p": NUMBER_OR_NULL,
    "p_adjusted": NUMBER_OR_NULL,
    "verdict": {"enum": ["faster", "slower", "equivalent", "undecided", "too_few_runs", "untestable"]},
    "sigma": NUMBER_OR_NULL,
    "no_overlap": {"type": "boolean"},
    "permutation_p": NUMBER_OR_NULL,
    "values": _object(
        baseline={"type": "array", "items": NUMBER_OR_NULL}, candidate={"type": "array", "items": NUMBER_OR_NULL}
    ),
}

ROW = _object(**_ROW)

COMPARE = _object(
    schema={"const": "slotscope.compare/1"},
    unit={"type": "string"},
    per={"type": "number", "exclusiveMinimum": 0},
    baseline=_object(name={"type": "string"}, runs={"type": "integer"}),
    candidates={
        "type": "array",
        "items": _object(
            name={"type": "string"},
            runs={"type": "integer"},
            test={"type": "string"},
            family={"type": "integer"},
            rows={"type": "array", "items": ROW},
            total=ROW,
            metrics={"type": "array", "items": _object(**_ROW, unit={"type": "string"})},
        ),
    },
    warnings=WARNINGS,
)

_POWER_ROW = _object(
    name={"type": "string"},
    unit={"type": "string"},
    mean={"type": "number"},
    visible={"type": "array", "items": {"type": "number", "minimum": 0}},
    runs_for_margin={"type": ["integer", "null"]},
    sampling_share=NUMBER_OR_NULL,
)

POWER = _object(
    schema={"const": "slotscope.power/1"},
    session={"type": "string"},
    primary={"type": "string"},
    per={"type": "number", "exclusiveMinimum": 0},
    comparisons={
        "type": "array",
        "minItems": 1,
        "items": _object(
            candidate={"type": "string"},
            control={"type": ["string", "null"]},
            test={"enum": ["paired t", "Welch t", "crossover t"]},
            unit={"type": "string"},
            margin={"type": "number"},
            promise=INTERVAL,
            replicates={"enum": ["runs", "processes"]},
            runs={"type": "array", "items": {"type": "integer"}},
            rows={"type": "array", "items": _POWER_ROW},
            total={"anyOf": [_POWER_ROW, {"type": "null"}]},
            metrics={"type": "array", "items": _POWER_ROW},
        ),
    },
    unknown={"type": "array", "items": {"type": "string"}},
)

DOCTOR = _object(
    schema={"const": "slotscope.doctor/1"},
    fit={"type": "boolean"},
    checks={
        "type": "array",
        "minItems": 1,
        "items": _object(
            subject={"type": "string"},
            check={"type": "string"},
            verdict={"enum": ["ok", "warning", "missing"]},
            finding={"type": "string"},
            advice={"type": "string"},
        ),
    },
)
