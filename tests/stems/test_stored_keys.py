"""Key indexes in run files: found as if they were built, and not used if they are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tureen.errors import DamagedFile
from tureen.keys import KeyColumns
from tureen.pot.parts import Parts, PartsWriter
from tureen.schema import Schema
from tureen.stems.key_index import DECIMAL, EXACT, FLOAT, TEXT, KeyIndex, ProbeKeys
from tureen.stems.run import Layout, OpenRun, open_run, sort_by_time, write_run
from tureen.stems.stored_keys import PARTS_OF_INDEX

SCHEMA = Schema.parse("k BIGINT, s STRING, d DECIMAL(6,2), none INT, ts TIMESTAMP", "ts")
KEYS: list[KeyColumns] = [
    (("k", EXACT),),
    (("d", DECIMAL),),
    (("k", FLOAT), ("s", TEXT)),
    (("none", EXACT),),
]
ROWS = 300


def tuples() -> pa.Table:
    """Tuples that did not arrive in order of time; some columns have NULLs, and one has nothing else."""
    random = np.random.default_rng(5)
    numbers = random.integers(0, 40, ROWS)
    return pa.table(
        {
            "k": pa.array(numbers, mask=numbers % 7 == 0),
            "s": [f"s{number % 3}" for number in numbers],
            "d": pa.array(numbers % 10).cast(pa.decimal128(21, 2)).cast(pa.decimal128(6, 2)),
            "none": pa.nulls(ROWS, pa.int32()),
            "ts": pa.array(random.permutation(ROWS)).cast(pa.timestamp("us", "UTC")),
        },
        SCHEMA.stored,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a run."""
    path = tmp_path / "x.run"
    with path.open("wb") as file:
        write_run(file, path.name, SCHEMA, sort_by_time(SCHEMA, tuples()).table, None, indexed=True, keys=KEYS)
    return path


def built(run: OpenRun, columns: KeyColumns) -> KeyIndex:
    """The index of the tuples of a run."""
    return KeyIndex.of([(pa.concat_arrays([b.column(name) for b in run.blocks]), domain) for name, domain in columns])


@pytest.mark.parametrize("columns", KEYS)
def test_stored_index_equals_the_one_of_the_tuples(path: Path, columns: KeyColumns) -> None:
    run = open_run(path, SCHEMA)
    assert run.cells == []
    assert run.keys is not None
    assert columns in run.keys
    assert not run.keys.is_open(columns)
    stored, expected = run.keys.find(columns), built(run, columns)
    assert run.keys.is_open(columns)
    assert stored is run.keys.find(columns)
    assert stored is not None
    assert [array.tolist() for array in stored.arrays] == [array.tolist() for array in expected.arrays]
    valid = np.ones(ROWS, np.bool_)
    keys = np.resize(np.arange(60), (len(columns), ROWS))
    assert [part.tolist() for part in stored.find(ProbeKeys.of(keys, valid))] == [
        part.tolist() for part in expected.find(ProbeKeys.of(keys, valid))
    ]


def test_runs_of_earlier_formats_have_none(path: Path) -> None:
    about = json.loads(Parts(path).about)
    del about["keys"]
    earlier = path.with_name("y.run")
    with earlier.open("wb") as file:
        PartsWriter(file, earlier.name).finish(json.dumps(about).encode())
    assert Layout.of(Parts(earlier)).keys == []


def test_other_columns_have_no_index(path: Path) -> None:
    run = open_run(path, SCHEMA)
    assert run.keys is not None
    assert (("s", TEXT),) not in run.keys
    assert run.keys.find((("s", TEXT),)) is None


@pytest.mark.parametrize("array", range(PARTS_OF_INDEX))
def test_damaged_index_is_reported_once_and_the_others_are_used(path: Path, array: int) -> None:
    parts = Parts(path)
    start, length, _ = parts._entries[len(parts) - PARTS_OF_INDEX * len(KEYS) + array]
    data = bytearray(path.read_bytes())
    data[start + length // 2] ^= 4
    path.write_bytes(data)
    reported: list[DamagedFile] = []
    run = open_run(path, SCHEMA, reported.append)
    assert run.keys is not None
    assert [run.keys.find(KEYS[0]), run.keys.find(KEYS[0])] == [None, None]
    assert KEYS[0] not in run.keys
    assert len(reported) == 1
    assert run.keys.find(KEYS[1]) is not None


FAULTS: dict[str, Any] = {
    "directory": lambda array: array + 1,
    "starts": lambda array: array[::-1],
    "rows": lambda array: array + ROWS,
    "filter": lambda array: array[:-1],
}


@pytest.mark.parametrize("name", FAULTS)
def test_index_that_points_outside_of_its_run_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    arrays = KeyIndex.arrays.fget  # type: ignore[attr-defined]
    fields = ("filter", "directory", "keys", "starts", "rows")

    def wrong(index: KeyIndex) -> list[Any]:
        return [
            FAULTS[name](array) if field == name else array for field, array in zip(fields, arrays(index), strict=True)
        ]

    path = tmp_path / "x.run"
    with path.open("wb") as file, monkeypatch.context() as patch:
        patch.setattr(
            "tureen.stems.run.add_key_index",
            lambda parts, index: [parts.add(np.ascontiguousarray(array).tobytes()) for array in wrong(index)],
        )
        write_run(file, path.name, SCHEMA, sort_by_time(SCHEMA, tuples()).table, None, indexed=True, keys=KEYS[:1])
    reported: list[DamagedFile] = []
    run = open_run(path, SCHEMA, reported.append)
    assert run.keys is not None
    assert run.keys.find(KEYS[0]) is None
    assert "outside" in str(reported[0].detail)
