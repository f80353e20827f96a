"""The durable log of pushes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tureen.errors import StorageFailed
from tureen.pot import log
from tureen.pot.log import Entry, LogWriter, refer, scan, segments


def entry(text: str, key: str = "") -> Entry:
    return Entry(text.encode(), rows=len(text), arrival=1, digest=b"d" * 16, key=key)


def texts(directory: Path, start: int = 0, end: int | None = None) -> list[str | None]:
    found = scan(directory, start, end, check=True)
    return [None if one.entry is None else bytes(one.entry.payload).decode() for one in found]


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("one"), entry("two", key="k")])
    assert texts(tmp_path) == ["one", "two"]
    assert texts(tmp_path, ends[0]) == ["two"]
    assert texts(tmp_path, 0, ends[0]) == ["one"]
    assert [one.entry.key for one in scan(tmp_path, 0) if one.entry] == ["", "k"]


def test_a_log_goes_on_over_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_torn_record_is_no_record_and_its_place_is_taken_again(tmp_path: Path, cut: int) -> None:
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


def test_new_records_never_take_places_that_were_taken_up(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    writer.append([entry("lost with the disk")])
    writer.close()
    segments(tmp_path)[-1][1].write_bytes(b"")
    again = LogWriter(tmp_path, 5000)
    (end,) = again.append([entry("new")])
    assert end > 5000
    assert texts(tmp_path, 5000, end) == ["new"]


def test_a_damaged_record_is_reported_and_the_next_one_is_read(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("a" * 10), entry("b" * 10), entry("c" * 10)])
    path = segments(tmp_path)[-1][1]
    data = bytearray(path.read_bytes())
    data[ends[0] + 64] ^= 1
    path.write_bytes(data)
    assert texts(tmp_path, 0, ends[-1]) == ["a" * 10, None, "c" * 10]


def test_a_lost_header_loses_the_rest_of_the_segment_and_says_so(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 0)
    ends = writer.append([entry("a"), entry("b"), entry("c")])
    path = segments(tmp_path)[-1][1]
    data = bytearray(path.read_bytes())
    data[ends[0]] ^= 1
    path.write_bytes(data)
    found = list(scan(tmp_path, 0, ends[-1], check=True))
    assert [one.entry is None for one in found] == [False, True]
    assert found[-1].end == ends[-1]


def test_a_full_disk_refuses_the_push_and_the_log_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_after_a_failed_fsync_nothing_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
