"""Rows in every supported format become the same Arrow batch."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tureen.errors import InvalidRows
from tureen.schema import Schema
from tureen.stems.intake import content_digest, to_batch

SCHEMA = Schema.parse(
    "b BOOLEAN, i INT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(10,2), s STRING, day DATE, ts TIMESTAMP", time="ts"
)
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
ROW: dict[str, Any] = {
    "b": True,
    "i": 1,
    "l": 2,
    "f": 0.5,
    "d": 1.5,
    "n": Decimal("3.25"),
    "s": "x",
    "day": date(2026, 1, 2),
    "ts": MOMENT,
}


def test_dicts_tables_and_frames_give_the_same_batch() -> None:
    batch = to_batch(SCHEMA, [ROW])
    table = pa.Table.from_batches([batch])
    assert batch.to_pylist() == [ROW]
    assert to_batch(SCHEMA, table).equals(batch)
    assert to_batch(SCHEMA, batch).equals(batch)
    assert to_batch(SCHEMA, pl.from_arrow(table)).equals(batch)
    plain = Schema.parse("i INT, s STRING, ts TIMESTAMP", time="ts")
    frame = pd.DataFrame({"s": ["x"], "i": np.array([1], "int64"), "ts": [pd.Timestamp(MOMENT)]})
    assert to_batch(plain, frame).to_pylist() == [{"i": 1, "s": "x", "ts": MOMENT}]


def test_column_names_ignore_case_and_missing_columns_are_null() -> None:
    rows = to_batch(SCHEMA, [{"TS": MOMENT, "I": 7}, {"ts": MOMENT, "i": 8}]).to_pylist()
    assert [row["i"] for row in rows] == [7, 8]
    assert rows[0]["s"] is None


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("ts", "2026-01-02T03:04:05.000006Z", MOMENT),
        ("ts", "2026-01-02 03:04:05.000006", MOMENT),
        ("ts", datetime(2026, 1, 2, 3, 4, 5, 6), MOMENT),  # noqa: DTZ001 - without a zone it means UTC
        ("ts", MOMENT.astimezone(timezone(timedelta(hours=5))), MOMENT),
        ("day", "2026-01-02", date(2026, 1, 2)),
        ("i", 7.0, 7),
        ("i", np.int64(7), 7),
        ("d", 3, 3.0),
        ("n", "3.25", Decimal("3.25")),
        ("n", 3.25, Decimal("3.25")),
        ("n", 3, Decimal("3.00")),
        ("n", Decimal("3.250000"), Decimal("3.25")),
        ("n", Decimal("1.2E+7"), Decimal("12000000.00")),
        ("n", Decimal("0E-5000000"), Decimal("0.00")),
        ("n", "0E+5000000", Decimal("0.00")),
        ("l", Decimal("1E+3"), 1000),
        ("l", Decimal("0E+5000000"), 0),
        ("d", Decimal("Infinity"), float("inf")),
        ("f", "Infinity", float("inf")),
    ],
)
def test_equivalent_python_values_are_accepted(column: str, value: object, expected: object) -> None:
    assert to_batch(SCHEMA, [{**ROW, column: value}]).to_pylist()[0][column] == expected


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i", 2**31),
        ("i", True),
        ("i", 1.5),
        ("i", "1"),
        ("l", 2**63),
        ("b", 1),
        ("s", 5),
        ("s", b"x"),
        ("d", "x"),
        ("d", True),
        ("n", Decimal("3.255")),
        ("n", Decimal("123456789.00")),
        ("n", "abc"),
        ("n", Decimal("1E-38")),
        ("n", Decimal("-7E-77")),
        ("n", "-7E-77"),
        ("n", Decimal("1E-5000000")),
        ("n", "1E-5000000"),
        ("n", Decimal("1E+5000000")),
        ("n", Decimal("NaN")),
        ("n", "sNaN"),
        ("n", Decimal("Infinity")),
        ("i", Decimal("1E+5000000")),
        ("l", Decimal("Infinity")),
        ("d", Decimal("1E+5000000")),
        ("f", Decimal("1E+5000000")),
        ("day", MOMENT),
        ("day", "02/01/2026"),
        ("ts", 5),
        ("ts", "yesterday"),
        ("s", "\ud800"),
    ],
)
def test_invalid_values_are_rejected_with_row_and_column(column: str, value: object) -> None:
    with pytest.raises(InvalidRows, match=f"row 1: column '{column}' is"):
        to_batch(SCHEMA, [ROW, {**ROW, column: value}])


@pytest.mark.parametrize("column", ["i", "l", "f", "d", "n"])
def test_huge_integers_are_rejected(column: str) -> None:
    with pytest.raises(InvalidRows, match=f"row 0: column '{column}' is"):
        to_batch(SCHEMA, [{**ROW, column: 10**5000}])


def test_unknown_column_error_suggests_the_nearest_name() -> None:
    schema = Schema.parse("price DOUBLE")
    with pytest.raises(InvalidRows, match="row 0: unknown column 'prize'") as raised:
        to_batch(schema, [{"prize": 1.0}])
    assert raised.value.hint == "did you mean 'price'?"
    with pytest.raises(InvalidRows, match="unknown column 'prize'"):
        to_batch(schema, pa.table({"prize": [1.0]}))


def test_null_time_is_rejected() -> None:
    with pytest.raises(InvalidRows, match="row 1: the time column 'ts' is NULL"):
        to_batch(SCHEMA, [ROW, {**ROW, "ts": None}])


@pytest.mark.parametrize("rows", [5, "text", {"i": 1}, [1], ["x"], None])
def test_other_types_are_rejected(rows: object) -> None:
    with pytest.raises(InvalidRows):
        to_batch(SCHEMA, rows)


def test_arrow_columns_are_cast_without_loss() -> None:
    schema = Schema.parse("i INT, d DOUBLE, s STRING, ts TIMESTAMP", time="ts")
    table = pa.table(
        {
            "i": pa.array([1], pa.int8()),
            "d": pa.array([2], pa.int32()),
            "s": pa.array(["x"]).dictionary_encode(),
            "ts": pa.array([1_000], pa.timestamp("ms")),
        }
    )
    rows = to_batch(schema, table).to_pylist()
    assert rows == [{"i": 1, "d": 2.0, "s": "x", "ts": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}]
    with pytest.raises(InvalidRows, match="a value does not fit"):
        to_batch(schema, table.set_column(0, "i", pa.array([2**40])))
    with pytest.raises(InvalidRows, match="'i' is INT, not double"):
        to_batch(schema, table.set_column(0, "i", pa.array([1.0])))


def test_no_rows_give_an_empty_batch() -> None:
    assert to_batch(SCHEMA, []).num_rows == 0
    assert to_batch(SCHEMA, SCHEMA.arrow.empty_table()).num_rows == 0


def test_equal_rows_have_equal_digests_in_every_format() -> None:
    rows = [ROW, {"ts": MOMENT}, {**ROW, "i": None}]
    dicts = to_batch(SCHEMA, rows)
    frame = to_batch(SCHEMA, pl.from_arrow(pa.Table.from_batches([dicts])))
    noise = pa.Table.from_batches([dicts, dicts]).slice(3)
    assert content_digest(dicts) == content_digest(frame) == content_digest(to_batch(SCHEMA, noise))
    assert content_digest(dicts) != content_digest(to_batch(SCHEMA, [*rows[:2], {**ROW, "i": 0}]))
    under_null = pa.Array.from_buffers(pa.int32(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(b"junk")])
    table = pa.table({"i": under_null, "ts": [MOMENT]})
    assert content_digest(to_batch(SCHEMA, table)) == content_digest(to_batch(SCHEMA, [{"ts": MOMENT}]))


def test_invalid_utf8_is_rejected() -> None:
    schema = Schema.parse("s STRING")
    bad = pa.concat_arrays([pa.array(["fine"]), pa.array([b"\xff\xfe"]).view(pa.string())])
    with pytest.raises(InvalidRows, match="row 1: column 's' holds text that is not UTF-8"):
        to_batch(schema, pa.table({"s": bad}))


def test_times_outside_years_1_to_9999_are_rejected() -> None:
    schema = Schema.parse("d DATE, ts TIMESTAMP")
    far_day, far_time = pa.array([None, 2**31 - 1], pa.date32()), pa.array([0, 2**62], pa.timestamp("us", "UTC"))
    with pytest.raises(InvalidRows, match="row 1: column 'd' holds a date beyond"):
        to_batch(schema, pa.table({"d": far_day}))
    with pytest.raises(InvalidRows, match="row 1: column 'ts' holds a time beyond"):
        to_batch(schema, pa.table({"ts": far_time}))


def test_numbers_too_large_for_float_are_rejected() -> None:
    schema = Schema.parse("f FLOAT")
    assert to_batch(schema, [{"f": 3.4e38}, {"f": float("inf")}]).num_rows == 2
    assert to_batch(schema, pa.table({"f": [1.0, float("-inf")]})).num_rows == 2
    for rows in ([{"f": 1e300}], pa.table({"f": [1e300]})):
        with pytest.raises(InvalidRows, match="'f' is FLOAT"):
            to_batch(schema, rows)


@pytest.mark.parametrize(
    "rows",
    [
        pd.Series([1]),
        pl.Series([1]),
        pd.DataFrame({"i": ["a", 1, None]}),
        pd.DataFrame({"i": [1 + 2j]}),
        pd.DataFrame([[1, 2]], columns=["i", "i"]),
        [{"ts": pd.NaT}],
        [{"i": np.array([1, 2])}],
        [{"i": 1, "I": 2}],
        [{5: 1}],
    ],
)
def test_malformed_frames_and_values_are_rejected(rows: object) -> None:
    with pytest.raises(InvalidRows):
        to_batch(SCHEMA, rows)


@pytest.mark.parametrize(("type_", "least"), [("TINYINT", -128), ("SMALLINT", -32768)])
def test_small_integers_are_range_checked(type_: str, least: int) -> None:
    schema = Schema.parse(f"a {type_}")
    for rows in ([{"a": least}, {"a": -least - 1}, {"a": None}], pa.table({"a": pa.array([least, -least - 1, None])})):
        assert to_batch(schema, rows).column("a").to_pylist() == [least, -least - 1, None]
    for value in (least - 1, -least):
        for invalid in ([{"a": value}], pa.table({"a": pa.array([value])})):
            with pytest.raises(InvalidRows, match=type_):
                to_batch(schema, invalid)


def test_object_columns_of_frames_are_converted_like_dicts() -> None:
    schema = Schema.parse("a INT, m DECIMAL(9,2), d DATE, ts TIMESTAMP", "ts")
    values: dict[str, list[Any]] = {
        "a": [1, None, 3],
        "m": ["1.50", None, 2],
        "d": ["2026-01-31", None, date(2026, 2, 1)],
        "ts": ["2026-01-31T12:00:00Z", "2026-01-31 12:00:00+02:00", datetime(2026, 1, 31, tzinfo=UTC)],
    }
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    expected = to_batch(schema, rows)
    texts = {
        **values,
        "d": ["2026-01-31", None, "2026-02-01"],
        "ts": [*values["ts"][:2], "2026-01-31"],
        "m": ["1.50", None, "2"],
    }
    for frame in (
        pd.DataFrame(texts),
        pd.DataFrame(texts).astype({"ts": "category"}),
        pl.DataFrame(texts, strict=False),
    ):
        assert to_batch(schema, frame).equals(expected), type(frame)
    # NaN turns a pandas column of integers into floats.
    assert pd.DataFrame(texts)["a"].dtype == "float64"
    for invalid in ({"ts": ["yesterday"]}, {"ts": ["2026-01-31"], "a": [1.5]}, {"ts": ["2026-01-31"], "d": [5]}):
        with pytest.raises(InvalidRows, match="row 0: column"):
            to_batch(schema, pd.DataFrame(invalid))
    # Arrow columns are typed, so their values are not parsed.
    with pytest.raises(InvalidRows, match="cast it first"):
        to_batch(schema, pa.table({"ts": ["2026-01-31"]}))
