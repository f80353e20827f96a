"""Rendering of ARRAY columns in each format."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tureen.results.answer import Answer, Bounds
from tureen.schema import Type, array_of
from tureen.service.bodies import ARROW, CSV, JSON
from tureen.service.rendering import ResponseFormat, render

TIMESTAMP = datetime(2026, 3, 1, 11, tzinfo=UTC)
LISTS = {
    "INT": [[1, 2], [], [3]],
    "DOUBLE": [[1.5, math.nan], [], [-math.inf]],
    "DECIMAL(5,2)": [[Decimal("1.10")], [], []],
    "STRING": [['a,"b"'], [], ["é"]],
    "TIMESTAMP": [[TIMESTAMP], [], []],
}
TABLE = pa.table({name: pa.array(values, array_of(Type.parse(name)).arrow) for name, values in LISTS.items()})


def rendered(media_type: str, table: pa.Table) -> bytes:
    answer = Answer(table, Bounds(None, None), "1", complete=True)
    body = render(answer, ResponseFormat(media_type, gzip=False)).body
    assert isinstance(body, bytes)
    return body


@pytest.mark.parametrize("start", [0, 1])
def test_array_in_json(start: int) -> None:
    answer = json.loads(rendered(JSON, TABLE.slice(start)))
    assert {column["name"]: column["type"] for column in answer["columns"]} == {
        name: f"ARRAY<{name}>" for name in LISTS
    }
    assert answer["rows"][-2:] == [
        {name: [] for name in LISTS},
        {"INT": [3], "DOUBLE": ["-Infinity"], "DECIMAL(5,2)": [], "STRING": ["é"], "TIMESTAMP": []},
    ]
    if not start:
        assert answer["rows"][0] == {
            "INT": [1, 2],
            "DOUBLE": [1.5, "NaN"],
            "DECIMAL(5,2)": ["1.10"],
            "STRING": ['a,"b"'],
            "TIMESTAMP": ["2026-03-01T11:00:00+00:00"],
        }


def test_array_in_csv_is_json_text() -> None:
    _, first, second, _ = rendered(CSV, TABLE.select(["INT", "STRING"])).decode().splitlines()
    assert first == '"[1,2]","[""a,\\""b\\""""]"'
    assert second == '"[]","[]"'


def test_array_in_arrow_is_a_list() -> None:
    assert pa.ipc.open_stream(rendered(ARROW, TABLE)).read_all().schema == TABLE.schema
