"""The inbox: idempotency keys, group commit, trimming, recovery."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from tureen.errors import KeyConflict, TureenError
from tureen.pot import inbox as inbox_module
from tureen.pot import log
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.catalog_tables import push_keys, streams
from tureen.pot.heads import Heads, log_directory
from tureen.pot.inbox import Inbox
from tureen.pot.log import scan, segments
from tureen.pot.record import Entry
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.schema import Schema


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = Catalog(tmp_path, create=True)
    with opened.write() as tx:
        create_stream(tx, "s", Schema.parse("a INT"), clock="wall", retain=None, source=None)
    yield opened
    opened.close()


def entry(text: str, key: str = "") -> Entry:
    return Entry(text.encode(), 1, micros_now(), text.encode().ljust(16)[:16], key)


def payloads(root: Path) -> list[str]:
    return [
        bytes(record.entry.payload).decode() for record in scan(log_directory(root, 1), 0, check=True) if record.entry
    ]


def mark_taken(catalog: Catalog, offset: int) -> None:
    with catalog.write() as tx:
        tx.execute(update(streams).values(taken=offset))


def test_a_repeated_key_changes_nothing(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    first = inbox.push(1, entry("rows", "k"))
    assert first.added
    assert inbox.push(1, entry("rows", "k"))[:2] == (first.end, False)
    assert payloads(catalog.root) == ["rows"]


def test_a_key_with_other_rows_is_rejected(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("rows", "k"))
    with pytest.raises(KeyConflict, match="'k' was used with other rows"):
        inbox.push(1, entry("others", "k"))
    assert payloads(catalog.root) == ["rows"]


def test_keys_are_per_stream(catalog: Catalog) -> None:
    with catalog.write() as tx:
        create_stream(tx, "t", Schema.parse("a INT"), clock="wall", retain=None, source=None)
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("rows", "k"))
    inbox.push(2, entry("others", "k"))


def test_keys_survive_a_restart_and_the_trimming_of_their_segment(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    inbox = Inbox(catalog.root, catalog)
    first = inbox.push(1, entry("rows", "k"))
    inbox.close()
    inbox = Inbox(catalog.root, catalog)
    assert inbox.push(1, entry("rows", "k"))[:2] == (first.end, False)
    inbox.push(1, entry("more"))
    mark_taken(catalog, inbox.end(1))
    inbox.trim()
    assert payloads(catalog.root) == ["more"]
    assert inbox.push(1, entry("rows", "k"))[:2] == (first.end, False)
    with pytest.raises(KeyConflict):
        inbox.push(1, entry("others", "k"))
    inbox.close()
    assert Inbox(catalog.root, catalog).push(1, entry("rows", "k"))[:2] == (first.end, False)


def test_old_keys_are_removed(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("rows", "k"))
    inbox.push(1, entry("more"))
    mark_taken(catalog, inbox.end(1))
    monkeypatch.setattr(inbox_module, "KEY_LIFETIME", 0)
    inbox.trim()
    inbox.push(1, entry("others", "k"))
    inbox.forget_old_keys()
    with catalog.read() as tx:
        assert tx.execute(select(push_keys)).first() is None


def test_trim_removes_taken_segments_only(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    inbox = Inbox(catalog.root, catalog)
    ends = [inbox.push(1, entry(text)).end for text in "abcd"]
    mark_taken(catalog, ends[1])
    inbox.trim()
    assert payloads(catalog.root) == ["c", "d"]
    assert len(segments(log_directory(catalog.root, 1))) == 2


def test_trim_ends_a_large_segment(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("a"))
    mark_taken(catalog, inbox.end(1))
    inbox.trim()
    inbox.push(1, entry("b"))
    assert len(segments(log_directory(catalog.root, 1))) == 1, "it was small"
    monkeypatch.setattr(inbox_module, "TRIM_BYTES", 1)
    for text in "cdef":
        mark_taken(catalog, inbox.end(1))
        inbox.trim()
        inbox.push(1, entry(text, text))
        assert len(segments(log_directory(catalog.root, 1))) <= 2
    inbox.trim()
    assert payloads(catalog.root) == ["f"], "the others were taken"
    end = inbox.end(1)
    inbox.close()
    again = Inbox(catalog.root, catalog)
    assert again.end(1) == end
    assert again.push(1, entry("c", "c")).end < end, "its key is known"


def test_concurrent_pushes_are_committed_together(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("first"))
    syncs: list[int] = []
    gate = threading.Event()
    real = os.fsync

    def counting(descriptor: int) -> None:
        syncs.append(descriptor)
        gate.wait(100)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", counting)
    threads = [threading.Thread(target=inbox.push, args=(1, entry(f"p{n}"))) for n in range(9)]
    for thread in threads:
        thread.start()
    while len(inbox._commit._slots) < 8:
        pass
    gate.set()
    for thread in threads:
        thread.join()
    assert len(syncs) == 2
    assert len(payloads(catalog.root)) == 10


def test_heads_have_the_ends_of_the_logs(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    heads = Heads(catalog.root / "inbox")
    seen = heads.wait(-1, 0.0)
    assert heads.ends() == {}
    end = inbox.push(1, entry("rows")).end
    assert heads.wait(seen, 0.0) != seen
    assert heads.ends() == {1: end}
    inbox.close()
    Inbox(catalog.root, catalog)
    assert heads.ends() == {1: end}


def test_damage_to_the_last_push_is_detected_on_reopening(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("first"))
    end = inbox.push(1, entry("last", "k")).end
    inbox.close()
    ((_, path),) = segments(log_directory(catalog.root, 1))
    path.write_bytes(path.read_bytes()[:-100])
    again = Inbox(catalog.root, catalog)
    assert again.end(1) == end
    assert again.push(1, entry("last", "k")).end > end
    records = list(scan(log_directory(catalog.root, 1), 0, again.end(1), check=True))
    assert [record.entry and bytes(record.entry.payload) for record in records] == [b"first", None, b"last"]


def test_the_key_of_a_torn_push_can_be_reused(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    whole = inbox.push(1, entry("whole")).end
    heads = (catalog.root / "inbox" / "heads").read_bytes()
    inbox.push(1, entry("x" * 100, "k"))
    inbox.close()
    (catalog.root / "inbox" / "heads").write_bytes(heads)
    ((_, path),) = segments(log_directory(catalog.root, 1))
    # As after a power failure: the file has its length, and its last block is empty.
    path.write_bytes(path.read_bytes()[:-64] + bytes(64))
    again = Inbox(catalog.root, catalog)
    assert again.end(1) == whole
    again.push(1, entry("x" * 100, "k"))
    assert payloads(catalog.root) == ["whole", "x" * 100]


def test_unreadable_heads_are_ignored(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    end = inbox.push(1, entry("rows")).end
    inbox.close()
    path = catalog.root / "inbox" / "heads"
    for damaged in (b"", b"\xff" * 32, path.read_bytes()[:-3]):
        path.write_bytes(damaged)
        again = Inbox(catalog.root, catalog)
        assert again.end(1) == end
        assert Heads(catalog.root / "inbox").ends() == {1: end}
        again.close()


def test_dropping_a_stream_removes_its_inbox(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("rows"))
    with catalog.write() as tx:
        drop_stream(tx, find_stream(tx, "s"))
    inbox.trim()
    assert not log_directory(catalog.root, 1).exists()


def test_a_closed_inbox_rejects_pushes(catalog: Catalog) -> None:
    inbox = Inbox(catalog.root, catalog)
    inbox.push(1, entry("rows"))
    inbox.close()
    with pytest.raises(TureenError, match="closed"):
        inbox.push(1, entry("late"))
    assert payloads(catalog.root) == ["rows"]
