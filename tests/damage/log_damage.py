"""Random damage to a log: acknowledged pushes are read back, or the damage is reported.

`check_damage` and `check_torn` run an experiment for a seed. `python -m tests.damage.log_damage 10000` runs many.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from tureen.pot import log
from tureen.pot.log import LogWriter, refer, scan, scan_segment, segments
from tureen.pot.record import Entry, LogRecord, encode


@dataclass(frozen=True)
class Push:
    """An acknowledged push: the offsets of its record, its entry, and the record's bytes."""

    start: int
    end: int
    entry: Entry
    data: bytes


def _entry(random: Random) -> Entry:
    # Payloads often contain bytes that look like the start of a record.
    size = random.choice([0, 1, 63, 64, 65, random.randrange(1000), random.randrange(5000)])
    payload = bytearray(random.randbytes(size))
    for _ in range(random.randrange(4)):
        if size > 4:
            at = random.randrange(size // 64 + 1) * 64
            payload[at : at + 4] = random.choice([b"TUR2", b"TURP", bytes(4)])
    key = "" if random.random() < 0.5 else f"key {random.randrange(1000)}" * random.randint(1, 10)
    return Entry(bytes(payload), random.randrange(1, 100), random.randrange(1 << 40), random.randbytes(16), key)


def _append(writer: LogWriter, random: Random) -> list[Push]:
    entries = [_entry(random) for _ in range(random.randint(1, 4))]
    start, pushes = writer.end, []
    for entry, end in zip(entries, writer.append(entries), strict=True):
        pieces, _ = encode(entry, start)
        pushes.append(Push(start, end, entry, b"".join(pieces)))
        start = end
    return pushes


def _write(directory: Path, random: Random) -> list[Push]:
    """A log of several segments, by one or several consecutive writers."""
    pushes: list[Push] = []
    for _ in range(random.randint(1, 3)):
        writer = LogWriter(directory, 0)
        for _ in range(random.randint(1, 8)):
            pushes += _append(writer, random)
        writer.close()
    return pushes


def _damage(directory: Path, random: Random) -> None:
    """Flip bits, overwrite, truncate or delete a file."""
    for _ in range(random.randint(1, 4)):
        _, path = random.choice(segments(directory))
        data = bytearray(path.read_bytes())
        offset = random.randrange(len(data) + 1)
        kind = random.random()
        if kind < 0.6:
            for _ in range(random.choice([1, 1, 2, 20])):
                flipped = min(len(data) - 1, offset + random.randrange(200))
                if data:
                    data[flipped] ^= 1 << random.randrange(8)
        elif kind < 0.8:
            del data[offset:]
        elif kind < 0.95:
            size = min(len(data) - offset, random.randrange(3000))
            data[offset : offset + size] = random.choice([bytes(size), random.randbytes(size)])
        else:
            path.unlink()
            if not segments(directory):
                return
            continue
        path.write_bytes(data)


def _bytes_at(directory: Path, push: Push) -> bytes:
    """The current bytes of the files at the offsets of a record."""
    earlier = [(base, path) for base, path in segments(directory) if base <= push.start]
    if not earlier:
        return b""
    base, path = earlier[-1]
    return path.read_bytes()[push.start - base : push.end - base]


def _check_read(records: list[LogRecord], pushes: list[Push], directory: Path, start: int, end: int) -> None:
    """Check that records cover all bytes, intact pushes are read, and all other pushes are reported."""
    offset = start
    for record in records:
        assert record.start == offset < record.end, "a gap or an overlap"
        offset = record.end
    assert offset == end
    read = {record.start: record for record in records}
    damaged = [(record.start, record.end) for record in records if record.entry is None]
    for push in pushes:
        if push.start < start:
            continue
        intact = read.get(push.start)
        if _bytes_at(directory, push) == push.data:
            assert intact is not None, f"the intact record at {push.start} is not read"
            assert intact.end == push.end
            assert intact.entry == push.entry, f"the intact record at {push.start} is read as another"
        else:
            assert any(first <= push.start and push.end <= last for first, last in damaged), f"{push.start} is lost"
    starts = {push.start for push in pushes}
    assert all(record.start in starts for record in records if record.entry is not None), "a record without a push"


def _by_references(directory: Path, start: int, end: int, random: Random) -> list[LogRecord]:
    """The log as read by the pipeline: planned in batches, then read reference by reference."""
    records: list[LogRecord] = []
    while start < end:
        references, start = refer(1, directory, start, end, random.choice([None, 1, 50, 500]), random.randint(1, 300))
        for reference in references:
            records += scan_segment(reference.path, reference.base, reference.start, reference.end, check=True)
    return records


def check_damage(directory: Path, seed: int) -> None:
    """Damage a closed log, read it, append to it, and read it again."""
    random = Random(seed)
    pushes = _write(directory, random)
    acknowledged = pushes[-1].end
    start = random.choice([0, 0, *(push.end for push in pushes[:-1])])
    _damage(directory, random)
    for _ in range(2):
        writer = LogWriter(directory, start, acknowledged)
        assert writer.end == acknowledged
        for records in (
            list(scan(directory, start, writer.end, check=True)),
            _by_references(directory, start, writer.end, random),
        ):
            _check_read(records, pushes, directory, start, writer.end)
        pushes += _append(writer, random)
        acknowledged = writer.end
        _check_read(list(scan(directory, start, acknowledged, check=True)), pushes, directory, start, acknowledged)
        writer.close()


def check_torn(directory: Path, seed: int) -> None:
    """Truncate the last, unacknowledged group of pushes as a crash does: no damage is reported."""
    random = Random(seed)
    pushes = _write(directory, random)
    acknowledged = pushes[-1].end
    writer = LogWriter(directory, 0)
    if random.random() < 0.8:
        pushes += _append(writer, random)
        acknowledged = writer.end
    lost = _append(writer, random)
    writer.close()
    base, path = segments(directory)[-1]
    data = path.read_bytes()
    cut = random.randint(acknowledged - base, len(data))
    # The file may have its full length but not its last blocks.
    remaining = data[:cut] + bytes(random.choice([0, 0, len(data) - cut, random.randint(0, len(data) - cut)]))
    path.write_bytes(remaining)
    whole = [
        push
        for push in lost
        if push.end - base <= len(remaining) and remaining[push.start - base :].startswith(push.data)
    ]
    # Also without the heads: after a power failure they may be older.
    again = LogWriter(directory, 0, random.choice([0, acknowledged]))
    assert again.end == max([acknowledged, *(push.end for push in whole)])
    pushes += whole
    pushes += _append(again, random)
    records = list(scan(directory, 0, again.end, check=True))
    assert [(record.start, record.entry) for record in records] == [(push.start, push.entry) for push in pushes]
    again.close()


def main() -> None:
    """Run the given number of experiments."""
    log.SEGMENT_BYTES = 4096
    for seed in range(int(sys.argv[1])):
        for check in (check_damage, check_torn):
            with tempfile.TemporaryDirectory() as directory, patch("os.fsync"):
                try:
                    check(Path(directory), seed)
                except BaseException:
                    print(f"{check.__name__} of seed {seed}")
                    raise
    print(f"{sys.argv[1]} seeds: everything was read or reported")


if __name__ == "__main__":
    main()
