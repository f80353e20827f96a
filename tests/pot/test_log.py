"""The durable log of pushes."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tureen.errors import StorageFailed
from tureen.pot import log
from tureen.pot.log import LogWriter, refer, scan, segments
from tureen.pot.record import Entry


def entry(text: str, key: str = "") -> Entry:
    return Entry(text.encode(), rows=len(text), arrival=1, digest=b"d" * 16, key=key)


def texts(directory: Path, start: int = 0, end: int | None = None) -> list[str | None]:
    records = scan(directory, start, end, check=True)
    return [None if record.entry is None else bytes(record.entry.payload).decode() for record in records]


def flip(directory: Path, offset: int) -> None:
    """Damage a byte of a log."""
    base, path = max(segment for segment in segments(directory) if segment[0] <= offset)
    data = bytearray(path.read_bytes())
    data[offset - base] ^= 1
    path.write_bytes(data)


def test_entries_are_read_in_order(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("one"), entry("two", key="k")])
    assert texts(tmp_path) == ["one", "two"]
    assert texts(tmp_path, ends[0]) == ["two"]
    assert texts(tmp_path, 0, ends[0]) == ["one"]
    assert [record.entry.key for record in scan(tmp_path, 0) if record.entry] == ["", "k"]


def test_a_log_of_several_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 300)
    writer = LogWriter(tmp_path, 0)
    ends = [writer.append([entry(str(number))])[0] for number in range(10)]
    assert len(segments(tmp_path)) > 2
    assert texts(tmp_path) == [str(number) for number in range(10)]
    assert texts(tmp_path, ends[4]) == ["5", "6", "7", "8", "9"]
    references, end = refer(1, tmp_path, ends[1], ends[-1], None, 1000)
    assert (references[0].start, end) == (ends[1], ends[-1])
    assert sum(reference.rows for reference in references) == 8


def test_a_budget_ends_after_a_whole_push(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("abc"), entry("defg"), entry("h")])
    references, end = refer(1, tmp_path, 0, ends[-1], 4, 1)
    assert end == ends[1]
    assert [reference.rows for reference in references] == [3, 4]


@pytest.mark.parametrize("cut", [1, 60, 65, 100])
def test_a_torn_record_is_overwritten(tmp_path: Path, cut: int) -> None:
    writer = LogWriter(tmp_path, 0)
    whole = writer.append([entry("whole")])[0]
    torn = writer.append([entry("x" * 100)])[0]
    writer.close()
    path = segments(tmp_path)[-1][1]
    with path.open("r+b") as file:
        file.truncate(torn - cut)
    again = LogWriter(tmp_path, 0)
    assert again.end == whole
    again.append([entry("after")])
    assert texts(tmp_path) == ["whole", "after"]


def test_new_records_start_after_consumed_offsets(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    writer.append([entry("lost with the disk")])
    writer.close()
    segments(tmp_path)[-1][1].write_bytes(b"")
    again = LogWriter(tmp_path, 5000)
    (end,) = again.append([entry("new")])
    assert end > 5000
    assert texts(tmp_path, 5000, end) == ["new"]


def test_a_damaged_record_is_reported(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("a" * 10), entry("b" * 10), entry("c" * 10)])
    flip(tmp_path, ends[0] + 64)
    assert texts(tmp_path, 0, ends[-1]) == ["a" * 10, None, "c" * 10]


def test_a_damaged_header_is_reported(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("a"), entry("b"), entry("c")])
    flip(tmp_path, ends[0])
    records = list(scan(tmp_path, 0, ends[-1], check=True))
    assert [(record.start, record.end, record.entry is None) for record in records] == [
        (0, ends[0], False),
        (ends[0], ends[1], True),
        (ends[1], ends[2], False),
    ]
    again = LogWriter(tmp_path, 0)
    assert again.end == ends[-1]
    again.append([entry("d")])
    assert texts(tmp_path) == ["a", None, "c", "d"]


@pytest.mark.parametrize("offset", [0, 4, 12, 20, 63, 64, 127])
def test_damage_to_an_acknowledged_push_is_reported(tmp_path: Path, offset: int) -> None:
    writer = LogWriter(tmp_path, 0)
    (whole,) = writer.append([entry("whole")])
    (last,) = writer.append([entry("last")])
    flip(tmp_path, whole + offset)
    assert LogWriter(tmp_path, 0).end == whole
    again = LogWriter(tmp_path, 0, acknowledged=last)
    assert again.end == last
    assert texts(tmp_path, 0, again.end) == ["whole", None]
    (after,) = again.append([entry("after")])
    assert texts(tmp_path, 0, after) == ["whole", None, "after"]


def test_lost_segments_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "SEGMENT_BYTES", 1)
    writer = LogWriter(tmp_path, 0)
    ends = [writer.append([entry(text)])[0] for text in "abcd"]
    for number, (_, path) in enumerate(segments(tmp_path)):
        if number in (0, 2):
            path.unlink()
    assert texts(tmp_path, 0, ends[-1]) == [None, "b", None, "d"]
    for _, path in segments(tmp_path):
        path.unlink()
    records = list(scan(tmp_path, ends[0], ends[-1], check=True))
    assert [(record.start, record.end, record.entry) for record in records] == [(ends[0], ends[-1], None)]
    references, end = refer(1, tmp_path, ends[0], ends[-1], None, 100)
    assert [(reference.start, reference.end) for reference in references] == [(ends[0], ends[-1])]
    assert end == ends[-1]


def test_a_copy_of_a_record_in_a_payload_is_ignored(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "one", 0)
    writer.append([entry("inner")])
    ((_, path),) = segments(tmp_path / "one")
    inner = path.read_bytes()
    outer = LogWriter(tmp_path / "other", 0)
    ends = outer.append([Entry(inner * 3, 1, 1, b"d" * 16), entry("after")])
    flip(tmp_path / "other", 0)
    assert texts(tmp_path / "other", 0, ends[-1]) == [None, "after"]


def first_format(text: str, key: str = "") -> bytes:
    """A record in the first format of the log."""

    def pad(data: bytes) -> bytes:
        return data + bytes(-len(data) % 64)

    body = pad(key.encode()) + pad(text.encode())
    fields = (len(text), len(text), 1, len(key), b"d" * 16)
    checksum = zlib.crc32(body, zlib.crc32(repr(fields).encode()))
    return pad(struct.pack("<4sIIIqI16s", b"TURP", checksum, *fields)) + body


def test_segments_of_the_first_format_are_read(tmp_path: Path) -> None:
    data = b"".join(first_format(text, key) for text, key in (("a", "k"), ("b", ""), ("c", "")))
    (tmp_path / f"{0:018d}.log").write_bytes(data)
    assert texts(tmp_path) == ["a", "b", "c"]
    assert next(scan(tmp_path, 0)).entry == Entry(b"a", 1, 1, b"d" * 16, "k")
    writer = LogWriter(tmp_path, 0)
    assert writer.end == len(data)
    writer.append([entry("d")])
    flip(tmp_path, 192)
    flip(tmp_path, 192 + 8)
    assert texts(tmp_path) == ["a", None, "c", "d"]


def test_a_full_disk_fails_the_push_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(tmp_path, 0)
    writer.append([entry("before")])
    with monkeypatch.context() as patched:

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        patched.setattr("os.pwrite", full)
        with pytest.raises(StorageFailed, match="No space left"):
            writer.append([entry("no room")])
    writer.append([entry("after")])
    assert texts(tmp_path) == ["before", "after"]


def test_no_push_is_acknowledged_after_a_failed_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(tmp_path, 0)
    writer.append([entry("before")])

    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", failing)
        with pytest.raises(StorageFailed):
            writer.append([entry("unsure")])
    with pytest.raises(StorageFailed, match="earlier"):
        writer.append([entry("never")])
