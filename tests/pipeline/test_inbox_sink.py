"""The source and sink of pushed streams, called as by Spark, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.workload import ROWS, push, take
from tests.disk import small_disk
from tureen.errors import PotError, StorageFailed
from tureen.pipeline.inbox_sink import InboxSink
from tureen.pipeline.inbox_source import InboxReader
from tureen.pipeline.verifying import verify_pot
from tureen.pot.catalog import Catalog
from tureen.pot.heads import log_directory
from tureen.pot.inbox import Inbox
from tureen.pot.log import segments
from tureen.pot.runs import rejected_rows
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.schema import Schema
from tureen.testing.manual_engine import ManualEngine

SCHEMA = Schema.parse("id BIGINT, a INT")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog(tmp_path, create=True)
    for name in ("s", "t"):
        with opened.write() as tx:
            create_stream(tx, name, SCHEMA, clock="wall", retain=None, source=None)
    yield opened
    opened.close()


def ids(root: Path, stream: str = "s") -> list[int]:
    soup = ManualEngine(root)
    try:
        return sorted(row["id"] for row in soup.invoke(soup.register(f"SELECT id FROM {stream}")))
    finally:
        soup.close()


def test_a_damaged_record_is_rejected(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    for number in range(3):
        push(inbox, 1, number)
    ((_, path),) = segments(log_directory(catalog.root, 1))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    take(catalog.root)
    assert ids(catalog.root) == [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]
    with catalog.read() as tx:
        (rejected,) = rejected_rows(tx, 1)
    assert "checksum" in rejected["reason"]
    push(inbox, 1, 3)
    take(catalog.root)
    assert ids(catalog.root)[-1] == 4 * ROWS - 1


@pytest.mark.parametrize("again", [False, True])
def test_a_damaged_header_is_rejected(catalog: Catalog, again: bool) -> None:
    inbox = Inbox(catalog.root, catalog)
    ends = [push(inbox, 1, number) for number in range(5)]
    ((_, path),) = segments(log_directory(catalog.root, 1))
    data = bytearray(path.read_bytes())
    data[ends[1]] ^= 1
    path.write_bytes(data)
    if again:
        inbox.close()
        inbox = Inbox(catalog.root, catalog)
    take(catalog.root)
    assert ids(catalog.root) == [*range(2 * ROWS), *range(3 * ROWS, 5 * ROWS)]
    with catalog.read() as tx:
        (rejected,) = rejected_rows(tx, 1)
    assert rejected["row"] == {"bytes": ends[2] - ends[1], "offset": ends[1]}
    push(inbox, 1, 5)
    take(catalog.root)
    assert ids(catalog.root)[-1] == 6 * ROWS - 1


def test_verify_detects_damage_to_the_last_push(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    start, end = (push(inbox, 1, number) for number in range(2))
    inbox.close()
    assert not verify_pot(catalog, lambda _done, _all: None).damaged
    ((_, path),) = segments(log_directory(catalog.root, 1))
    path.write_bytes(path.read_bytes()[:-64])
    (damage,) = verify_pot(catalog, lambda _done, _all: None).damaged
    assert (damage.path, damage.lost) == ("inbox/1", True)
    assert damage.detail.startswith(f"{end - start} bytes from {start} on")


def test_a_lost_log_is_reported(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    push(inbox, 1, 0)
    take(catalog.root)
    taken, end = inbox.end(1), push(inbox, 1, 1)
    inbox.close()
    for _, path in segments(log_directory(catalog.root, 1)):
        path.unlink()
    again = Inbox(catalog.root, catalog)
    take(catalog.root)
    with catalog.read() as tx:
        (rejected,) = rejected_rows(tx, 1)
        assert find_stream(tx, "s").taken == end
    assert rejected["row"] == {"bytes": end - taken, "offset": taken}
    push(again, 1, 2)
    take(catalog.root)
    assert ids(catalog.root) == [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]


def test_a_dropped_stream_does_not_stop_other_streams(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    push(inbox, 1, 0)
    push(inbox, 2, 1)
    with catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    take(catalog.root)
    assert ids(catalog.root, "t") == list(range(ROWS, 2 * ROWS))


def test_two_batches_of_the_same_rows_cannot_both_commit(catalog: Catalog) -> None:
    """As when the Spark of a killed engine commits its last batch while the new engine commits its first."""
    inbox = Inbox(catalog.root, catalog)
    push(inbox, 1, 0)
    reader = InboxReader(catalog.root, 1)
    start = {**reader.initialOffset(), "warm": 1}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    (part,) = reader.partitions(start, end)
    first, second = InboxSink(catalog.root), InboxSink(catalog.root)
    messages = [sink.write(reader.read(part)) for sink in (first, second)]
    first.commit([messages[0]], 0)
    with pytest.raises(PotError, match="another batch has advanced"):
        second.commit([messages[1]], 0)
    assert ids(catalog.root) == list(range(ROWS))


def test_a_repeated_batch_changes_nothing(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    push(inbox, 1, 0)
    reader = InboxReader(catalog.root, 1)
    start = {**reader.initialOffset(), "warm": 1}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    for _ in range(2):
        sink = InboxSink(catalog.root)
        sink.commit([sink.write(reader.read(part)) for part in reader.partitions(start, end)], 0)
    assert ids(catalog.root) == list(range(ROWS))


def test_a_full_disk_fails_pushes_and_loses_no_acknowledged_rows() -> None:
    with small_disk(8 << 20) as disk:
        catalog = Catalog(disk, create=True)
        with catalog.write() as tx:
            create_stream(tx, "s", SCHEMA, clock="wall", retain=None, source=None)
        inbox = Inbox(disk, catalog)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(6 << 20))
        acknowledged = 0
        with pytest.raises(StorageFailed, match="No space left"):
            for acknowledged in range(100_000):
                push(inbox, 1, acknowledged)
        assert acknowledged > 0
        with pytest.raises(StorageFailed):
            take(disk)
        ballast.unlink()
        push(inbox, 1, acknowledged)
        take(disk)
        assert ids(disk) == list(range((acknowledged + 1) * ROWS))
        inbox.close()
        catalog.close()
