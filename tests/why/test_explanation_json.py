"""Explanations survive the way over HTTP unchanged."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

from tureen.why.explanation import ExplainedTuple, Explanation, Reason
from tureen.why.explanation_json import from_json, to_json

MOMENT = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)


def test_values_keep_their_types() -> None:
    row = {
        "t": MOMENT,
        "d": date(2026, 1, 1),
        "m": Decimal("1.50"),
        "f": float("inf"),
        "s": "2026",
        "n": None,
        "b": True,
    }
    types = {
        "t": "TIMESTAMP",
        "d": "DATE",
        "m": "DECIMAL(6,2)",
        "f": "DOUBLE",
        "s": "STRING",
        "n": "INT",
        "b": "BOOLEAN",
    }
    reason = Reason(
        "no partner", "text", "t = d", "false", {"m": Decimal("2.00")}, "q", {"f": 1.0, "t": MOMENT}, float("inf")
    )
    explained = ExplainedTuple("s", row, MOMENT, False, (reason, Reason("limit", "cut")))
    explanation = Explanation("s", (explained,), 7, ("a note",), types, "position")
    body = json.loads(json.dumps(to_json(explanation)))
    assert body["has_more"] is True
    assert body["tuples"][0]["row"]["f"] == "Infinity"
    assert from_json(body) == explanation
