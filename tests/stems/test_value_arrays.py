"""Arrays of Python values are those that Arrow makes of them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tureen.schema import Kind, Type
from tureen.stems.value_arrays import FEW, array_of, repeated_time

# Imports pandas here, and not within the deadline of a test.
pa.array([])

_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.TINYINT: st.integers(-(1 << 7), (1 << 7) - 1),
    Kind.SMALLINT: st.integers(-(1 << 15), (1 << 15) - 1),
    Kind.INT: st.integers(-(1 << 31), (1 << 31) - 1),
    Kind.BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    Kind.FLOAT: st.floats(width=32),
    Kind.DOUBLE: st.floats(),
    Kind.STRING: st.text(),
    Kind.DATE: st.dates(),
    Kind.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
}


@pytest.mark.parametrize("kind", _VALUES)
@given(data=st.data())
def test_values_are_converted_as_by_arrow(kind: Kind, data: st.DataObject) -> None:
    column_type = Type(kind)
    values = data.draw(st.lists(st.none() | _VALUES[kind], max_size=20))
    array = array_of(values, column_type)
    array.validate(full=True)
    assert repr(array.to_pylist()) == repr(pa.array(values, column_type.arrow).to_pylist())
    assert (array.type, array.null_count) == (column_type.arrow, values.count(None))


@pytest.mark.parametrize("count", [FEW, FEW + 1])
def test_few_and_many_values_are_equal(count: int) -> None:
    assert array_of([*range(count)], Type(Kind.INT)).equals(pa.array(range(count), pa.int32()))


def test_a_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        array_of(["\ud800"], Type(Kind.STRING))


def test_a_time_is_repeated() -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=7)
    assert repeated_time(7, 3).to_pylist() == [moment] * 3


def test_a_push_and_an_answer_do_not_import_what_they_do_not_need(tmp_path: Any) -> None:
    script = """
import sys, tureen.soup.embedded
from tureen.testing.manual_engine import ManualEngine
from pathlib import Path
engine = ManualEngine(Path(sys.argv[1]))
engine.create_stream("s", "a INT, t STRING, d DOUBLE")
engine.append("s", [{"a": 1, "t": "x", "d": 0.5}, {"a": 2, "t": None}])
answer = engine.invoke(engine.register("SELECT a FROM s WHERE a > 1"))
assert not {"pandas", "pyarrow.parquet"} & sys.modules.keys()
assert answer.table.to_pylist() == [{"a": 2}]
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "pot")], check=True)
