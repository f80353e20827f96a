"""Pending rows: followers and answers across pushes, commits of Spark and of sinks, merging and restarts."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tureen
from tests.examples import example_settings
from tureen.pipeline import arrival, upkeep
from tureen.position import Position, parse_position
from tureen.pot import backup, log
from tureen.pot.catalog import Catalog
from tureen.pot.heads import log_directory
from tureen.pot.log import segments
from tureen.pot.pot_progress import PotProgress
from tureen.pot.streams import drop_stream, find_stream, taken_offsets
from tureen.results.changes.changes import NewRows
from tureen.results.invoke import Invoker
from tureen.results.snapshot import pending, segment
from tureen.stems.pushed import stored_tuples
from tureen.testing.manual_engine import ManualEngine, TakenBatch

SCHEMA = "n INT, ts TIMESTAMP"
STEPS = st.one_of(
    st.tuples(
        st.sampled_from(["append", "append", "append", "push", "begin"]), st.lists(st.integers(0, 5), max_size=4)
    ),
    st.tuples(st.just("take"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["plan", "plan", "commit", "commit planned", "seal", "seal all", "restart"]), st.just(0)),
    st.tuples(st.just("read"), st.integers(0, 2)),
)


class PendingRun:
    """A script on one stream, with readers that follow it in this process and in others."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.engine = ManualEngine(root)
        self.engine.create_stream("s", SCHEMA, "ts")
        self.handle = self.engine.register("SELECT n FROM s")
        self.arrived: list[int] = []
        self.begun: list[tuple[Any, list[int]]] = []
        self.planned: TakenBatch | None = None
        self.readers: list[Reader] = [
            Reader(self.engine.invoker, self.handle),
            self.other_reader(),
            self.other_reader(),
        ]
        self.count = 0

    def other_reader(self) -> Reader:
        """A reader with a catalog of its own, as another process has."""
        return Reader(Invoker(Catalog(self.root)), self.handle)

    def rows(self, times: list[int]) -> list[dict[str, Any]]:
        """Rows with the next numbers."""
        first, self.count = self.count, self.count + len(times)
        return [{"n": first + index, "ts": f"2026-01-01T00:00:{time:02d}Z"} for index, time in enumerate(times)]

    def step(self, name: str, detail: Any) -> None:
        """Run a step."""
        match name:
            case "append" | "push":
                rows = self.rows(detail)
                if rows:
                    (self.engine.append if name == "append" else self.engine.push)("s", rows)
                self.arrived += [row["n"] for row in rows]
            case "begin" if detail:
                rows = self.rows(detail)
                self.begun.append((self.engine.begin("s", rows), [row["n"] for row in rows]))
            case "commit" if self.begun:
                batch, numbers = self.begun.pop(0)
                self.engine.commit(batch)
                self.arrived += numbers
            case "take" if self.planned is None:
                self.engine.take("s", detail)
            case "plan" if self.planned is None:
                self.planned = self.engine.plan("s")
            case "commit planned" if self.planned is not None:
                self.engine.commit_taken(self.planned)
                self.planned = None
            case "seal" | "seal all":
                self.engine.seal(everything=name == "seal all")
            case "restart":
                self.engine.close()
                self.engine = ManualEngine(self.root)
                self.planned = None
                self.readers[0] = Reader(self.engine.invoker, self.handle, self.readers[0])
            case "read":
                self.check(self.readers[detail])

    def check(self, reader: Reader) -> None:
        """Compare what a reader has followed, and its answer, with what arrived."""
        reader.read()
        assert reader.numbers == self.arrived
        answer = reader.invoker.invoke(self.handle)
        assert sorted(answer.table.column("n").to_pylist()) == sorted(self.arrived)

    def finish(self) -> None:
        """Compare all readers, and resume from every position."""
        for reader in self.readers:
            self.check(reader)
        # From every position that a change had, the rest comes, and nothing else.
        last = self.readers[0]
        for index, position in enumerate(last.positions):
            rest = last.invoker.new_rows(self.handle, parse_position(position))  # type: ignore[arg-type]
            assert rest.rows.column("n").to_pylist() == self.arrived[index + 1 :]
        assert last.positions == sorted(last.positions)
        self.engine.close()
        for reader in self.readers[1:]:
            reader.invoker.view.catalog.close()


class Reader:
    """A follower that reads from where it stopped, and never skips ahead."""

    def __init__(self, invoker: Invoker, handle: str, before: Reader | None = None) -> None:
        self.invoker, self.handle = invoker, handle
        self.numbers: list[int] = [] if before is None else before.numbers
        self.positions: list[str] = [] if before is None else before.positions
        self.position: str = "0" if before is None else before.position

    def read(self) -> None:
        """Read what is new."""
        new = self.invoker.new_rows(self.handle, parse_position(self.position))  # type: ignore[arg-type]
        self.numbers += new.rows.column("n").to_pylist()
        self.positions += [new.position(index) for index in range(len(new))]
        self.position = new.position()


@example_settings(20, explored=40)
@given(st.lists(STEPS, min_size=4, max_size=25), st.sampled_from([1, 3, 100]), st.integers(1, 8))
@example([("append", [1]), ("push", [1]), ("append", [1]), ("take", 3)], 1, 1)
@example([("push", [1]), ("append", [1]), ("push", [1]), ("seal all", 0), ("take", 3)], 1, 1)
@example([("push", [1]), ("append", [1]), ("read", 1), ("push", [1]), ("read", 1)], 100, 1)
@example([("append", [1]), ("plan", 0), ("push", [1]), ("append", [1]), ("commit planned", 0), ("take", 1)], 1, 1)
def test_followers_miss_and_repeat_nothing(steps: list[tuple[str, Any]], tail_rows: int, small_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        patch.setattr(arrival, "TAIL_ROWS", tail_rows)
        patch.setattr(upkeep, "FAN", 2)
        patch.setattr(segment, "SCANS_BEFORE_INDEX", 2)
        patch.setattr(pending, "SMALL_ROWS", small_rows)
        patch.setattr(pending, "LARGE_ROWS", 4 * small_rows)
        run = PendingRun(Path(root))
        for name, detail in steps:
            run.step(name, detail)
        run.finish()


@pytest.fixture
def engine(tmp_path: Path) -> Any:
    engine = ManualEngine(tmp_path)
    engine.create_stream("s", SCHEMA, "ts")
    yield engine
    engine.close()


def row(number: int) -> dict[str, Any]:
    return {"n": number, "ts": f"2026-01-01T00:00:{number % 60:02d}Z"}


def numbers(engine: ManualEngine, handle: str) -> list[int]:
    values: list[int] = engine.invoke(handle).table.column("n").to_pylist()
    return values


def test_a_pushed_row_is_answered_before_it_is_taken(engine: ManualEngine) -> None:
    handle = engine.register("SELECT n FROM s WHERE n > 1")
    position = engine.append("s", [row(1), row(2)])
    assert PotProgress(engine.catalog).is_reached(parse_position(position))
    answer = engine.invoke(handle)
    assert answer.table.column("n").to_pylist() == [2]
    assert answer.position > position
    engine.take("s")
    assert numbers(engine, handle) == [2]


def test_a_push_after_an_answer_has_a_later_position(engine: ManualEngine) -> None:
    handle = engine.register("SELECT n FROM s")
    engine.append("s", [row(1)])
    before = engine.invoke(handle).position
    assert before < engine.append("s", [row(2)]) < engine.invoke(handle).position


def test_damaged_records_are_left_out_before_and_after_they_are_rejected(engine: ManualEngine) -> None:
    handle = engine.register("SELECT n FROM s")
    for number in range(3):
        engine.append("s", [row(number)])
    ((_, path),) = segments(log_directory(engine.catalog.root, 1))
    data = bytearray(path.read_bytes())
    data[len(data) // 3 + 64 + 200] ^= 1
    path.write_bytes(data)
    assert numbers(engine, handle) == [0, 2]
    engine.take("s")
    assert numbers(engine, handle) == [0, 2]


def test_a_trimmed_inbox_is_read_again_from_runs(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = engine.register("SELECT n FROM s")
    reader = Invoker(Catalog(engine.catalog.root))
    engine.append("s", [row(0)])
    assert numbers(engine, handle) == [0]
    engine.append("s", [row(1)])
    read = log.scan
    taken: list[bool] = []

    def take_first(*arguments: Any, **options: Any) -> Any:
        # Between the reader's snapshot and its reading of the log.
        if not taken:
            taken.append(True)
            engine.take("s")
            for _, path in segments(log_directory(engine.catalog.root, 1)):
                path.unlink()
        return read(*arguments, **options)

    monkeypatch.setattr(pending, "scan", take_first)
    assert reader.invoke(handle).table.column("n").to_pylist() == [0, 1]
    assert taken
    reader.view.catalog.close()


def test_many_small_pushes_are_held_in_few_pieces(engine: ManualEngine) -> None:
    handle = engine.register("SELECT n FROM s")
    for number in range(300):
        engine.append("s", [row(number)])
        if number % 7 == 0:
            engine.invoke(handle)
    assert sorted(numbers(engine, handle)) == list(range(300))
    assert len(engine.invoker.view.stream(1).pending.pieces) == 1


def test_a_backlog_of_many_rows_is_held_in_few_pieces(engine: ManualEngine) -> None:
    handle = engine.register("SELECT count(*) AS n, sum(n) AS total FROM s")
    times = pa.array([1_767_225_600_000_000] * 50_000, pa.timestamp("us", tz="UTC"))
    for start in range(0, 400_000, 50_000):
        values = pa.array(range(start, start + 50_000), pa.int32())
        engine.append("s", pa.table({"n": values, "ts": times}))
        assert engine.invoke(handle).table.to_pylist() == [
            {"n": start + 50_000, "total": (start + 50_000) * (start + 49_999) // 2}
        ]
    assert len(engine.invoker.view.stream(1).pending.pieces) <= 8


def test_pending_rows_are_decoded_once(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []

    def count(schema: Any, payload: Any, arrival: int) -> pa.Table:
        decoded.append(arrival)
        time.sleep(0)  # Let other threads run, which must not decode the same record.
        return stored_tuples(schema, payload, arrival)

    monkeypatch.setattr(pending, "stored_tuples", count)
    sqls = ["SELECT n FROM s", "SELECT n FROM s WHERE n > 3", "SELECT count(*) AS n FROM s", "SELECT n FROM s LIMIT 2"]
    handles = [engine.register(sql) for sql in sqls]
    since = [engine.invoker.new_rows(handles[0], None).position() for _ in range(16)]
    with ThreadPoolExecutor(16) as threads:
        for number in range(30):
            engine.append("s", [row(number)])
            for answer in threads.map(engine.invoke, handles * 4):
                assert len(answer) > 0 or number < 4
            since = list(
                threads.map(lambda at: engine.invoker.new_rows(handles[0], Position.parse(at)).position(), since)
            )
            if number % 10 == 0:
                engine.take("s", 3)
            assert len(decoded) == number + 1
    assert numbers(engine, handles[0]) == list(range(30))


def test_status_counts_pending_rows(tmp_path: Path) -> None:
    engine = ManualEngine(tmp_path / "pot")
    engine.create_stream("s", SCHEMA, "ts")
    engine.append("s", [row(1), row(2)])
    with tureen.open(tmp_path / "pot", mode="read") as soup:
        status = soup.status()["streams"]["s"]
        assert (status["rows"], status["pending_rows"], status["fresh"]) == (2, 2, "after its push")
        assert status["lag_bytes"] > 0
        engine.take("s")
        status = soup.status()["streams"]["s"]
        assert (status["rows"], status["pending_rows"], status["lag_bytes"]) == (2, 0, 0)
    engine.close()


def test_status_counts_pending_rows_with_reserved_ids(engine: ManualEngine) -> None:
    engine.append("s", [row(1), row(2)])
    engine.push("s", [row(3)])
    with tureen.open(engine.catalog.root, mode="read") as soup:
        status = soup.status()["streams"]["s"]
    assert (status["rows"], status["pending_rows"]) == (3, 2)


def test_a_snapshot_is_not_older_than_its_last_push(engine: ManualEngine) -> None:
    """Otherwise queries of a template that were added before the push could be missed."""
    view = engine.invoker.view
    view.refresh()
    view.stream(1)
    engine.register("SELECT n FROM s")
    engine.append("s", [row(1)])
    assert view.stream(1).seq == engine.catalog.seq()


def test_a_stream_that_is_dropped_while_all_are_read(engine: ManualEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.create_stream("gone", SCHEMA, "ts")
    listed: list[Any] = []

    def drop_after(tx: Any) -> Any:
        streams = taken_offsets(tx)
        if not listed:
            listed.extend(streams)
            with Catalog(engine.catalog.root) as other, other.write() as write:
                drop_stream(write, find_stream(write, "gone"))
        return streams

    monkeypatch.setattr("tureen.results.invoke.taken_offsets", drop_after)
    assert list(engine.invoker.snapshot().streams) == [1]
    assert len(listed) == 2


def test_a_backup_has_pending_rows(engine: ManualEngine, tmp_path: Path) -> None:
    engine.register("SELECT n FROM s", name="all")
    engine.append("s", [row(1)])
    tureen.backup(engine.catalog.root, tmp_path / "copy")
    with tureen.open(tmp_path / "copy", mode="read") as soup:
        assert list(soup.query("all").invoke()) == [{"n": 1}]


def test_a_backup_without_reserved_rows_reuses_no_id(
    engine: ManualEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is copied, then rows are pushed and a sink commits, then the catalog is copied."""
    handle = engine.register("SELECT n FROM s")
    engine.append("s", [row(0)])
    copy_catalog = backup._copy_catalog

    def late(*arguments: Any) -> None:
        engine.append("s", [row(1)])
        engine.append("s", [row(2)])
        engine.push("s", [row(3)])
        copy_catalog(*arguments)

    monkeypatch.setattr(backup, "_copy_catalog", late)
    tureen.backup(engine.catalog.root, tmp_path / "copy")
    copy = ManualEngine(tmp_path / "copy")
    since = copy.invoke(handle).position
    assert sorted(numbers(copy, handle)) == [0, 3]
    for number in (4, 5, 6):
        copy.append("s", [row(number)])
    new = copy.invoker.new_rows(handle, parse_position(since))  # type: ignore[arg-type]
    assert new.rows.column("n").to_pylist() == [4, 5, 6]
    copy.take("s")
    everything = copy.invoker.new_rows(handle, parse_position("0"))  # type: ignore[arg-type]
    assert everything.rows.column("n").to_pylist() == [0, 3, 4, 5, 6]
    assert isinstance(everything, NewRows)
    assert len(set(everything.ids.tolist())) == 5
    copy.close()
