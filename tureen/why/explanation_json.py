"""Explanations as JSON: timestamps, dates, decimals, NaN and the infinities are strings, and read by their types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tureen.why.explanation import ExplainedTuple, Explanation, Reason


def to_json(explanation: Explanation) -> dict[str, Any]:
    """The JSON object of an explanation."""
    body: dict[str, Any] = _json_value({**asdict(explanation), "has_more": explanation.has_more})
    return body


def from_json(body: Mapping[str, Any]) -> Explanation:
    """The explanation of a JSON object."""
    types: Mapping[str, str] = body["types"]

    def values(row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _value(value, types.get(name, "")) for name, value in row.items()}

    def reason(entry: Mapping[str, Any]) -> Reason:
        typed = {
            "values": values(entry["values"]),
            "nearest": None if entry["nearest"] is None else values(entry["nearest"]),
            "distance": _value(entry["distance"], "DOUBLE"),
        }
        return Reason(**{**entry, **typed})

    tuples = tuple(
        ExplainedTuple(
            entry["input"],
            values(entry["row"]),
            _value(entry["time"], "TIMESTAMP"),
            entry["in_answer"],
            tuple(map(reason, entry["reasons"])),
        )
        for entry in body["tuples"]
    )
    return Explanation(body["input"], tuples, body["total"], tuple(body["notes"]), dict(types), body["position"])


def _json_value(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _json_value(item) for name, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
    return value


def _value(value: Any, type_name: str) -> Any:
    if value is None:
        return None
    match type_name.partition("(")[0]:
        case "TIMESTAMP":
            return datetime.fromisoformat(value)
        case "DATE":
            return date.fromisoformat(value)
        case "DECIMAL":
            return Decimal(value)
        case "FLOAT" | "DOUBLE":
            return float(value)
    return value
