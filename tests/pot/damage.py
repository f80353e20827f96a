"""Random damage to a log: what was acknowledged is read back, or the damage is reported.

`check_damage` and `check_torn` are one experiment each, by its seed. `python -m tests.pot.damage 10000` runs many.
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
from tureen.pot.record import Entry, Located, encode


@dataclass(frozen=True)
class Push:
    """A push that was acknowledged, the places of its record, and the record's bytes."""

    start: int
    end: int
    entry: Entry
    data: bytes


def _entry(random: Random) -> Entry:
    # Bytes that look like the beginnings of records are frequent among the payloads.
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
    """A log of some segments, by one writer or by several in a row."""
    pushes: list[Push] = []
    for _ in range(random.randint(1, 3)):
        writer = LogWriter(directory, 0)
        for _ in range(random.randint(1, 8)):
            pushes += _append(writer, random)
        writer.close()
    return pushes


def _damage(directory: Path, random: Random) -> None:
    """Flip, overwrite, cut off or delete something."""
    for _ in range(random.randint(1, 4)):
        _, path = random.choice(segments(directory))
        data = bytearray(path.read_bytes())
        place = random.randrange(len(data) + 1)
        kind = random.random()
        if kind < 0.6:
            for _ in range(random.choice([1, 1, 2, 20])):
                near = min(len(data) - 1, place + random.randrange(200))
                if data:
                    data[near] ^= 1 << random.randrange(8)
        elif kind < 0.8:
            del data[place:]
        elif kind < 0.95:
            size = min(len(data) - place, random.randrange(3000))
            data[place : place + size] = random.choice([bytes(size), random.randbytes(size)])
        else:
            path.unlink()
            if not segments(directory):
                return
            continue
        path.write_bytes(data)


def _bytes_at(directory: Path, push: Push) -> bytes:
    """What the files have now where a record was."""
    held = [(base, path) for base, path in segments(directory) if base <= push.start]
    if not held:
        return b""
    base, path = held[-1]
    return path.read_bytes()[push.start - base : push.end - base]


def _check_read(records: list[Located], pushes: list[Push], directory: Path, start: int, end: int) -> None:
    """Every byte is accounted for; what is whole in the files is read, all else of the pushes is reported."""
    place = start
    for record in records:
        assert record.start == place < record.end, "a gap, or an overlap"
        place = record.end
    assert place == end
    read = {record.start: record for record in records}
    damaged = [(record.start, record.end) for record in records if record.entry is None]
    for push in pushes:
        if push.start < start:
            continue
        whole = read.get(push.start)
        if _bytes_at(directory, push) == push.data:
            assert whole is not None, f"the whole record at {push.start} is not read"
            assert whole.end == push.end
            assert whole.entry == push.entry, f"the whole record at {push.start} is read as another"
        else:
            assert any(first <= push.start and push.end <= last for first, last in damaged), f"{push.start} vanished"
    known = {push.start for push in pushes}
    assert all(record.start in known for record in records if record.entry is not None), "a record that nobody pushed"


def _by_references(directory: Path, start: int, end: int, random: Random) -> list[Located]:
    """The log as the pipeline reads it: planned in batches, then read reference by reference."""
    records: list[Located] = []
    while start < end:
        references, start = refer(1, directory, start, end, random.choice([None, 1, 50, 500]), random.randint(1, 300))
        for one in references:
            records += scan_segment(one.path, one.base, one.start, one.end, check=True)
    return records


def check_damage(directory: Path, seed: int) -> None:
    """Damage a log that was closed, read it, go on writing, and read it again."""
    random = Random(seed)
    pushes = _write(directory, random)
    acknowledged = pushes[-1].end
    taken = random.choice([0, 0, *(push.end for push in pushes[:-1])])
    _damage(directory, random)
    for _ in range(2):
        writer = LogWriter(directory, taken, acknowledged)
        assert writer.end == acknowledged
        for records in (
            list(scan(directory, taken, writer.end, check=True)),
            _by_references(directory, taken, writer.end, random),
        ):
            _check_read(records, pushes, directory, taken, writer.end)
        pushes += _append(writer, random)
        acknowledged = writer.end
        _check_read(list(scan(directory, taken, acknowledged, check=True)), pushes, directory, taken, acknowledged)
        writer.close()


def check_torn(directory: Path, seed: int) -> None:
    """Cut off the last, unacknowledged group of pushes as a crash does: nothing is reported."""
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
    # The file may have its length already, and not its last blocks.
    kept = data[:cut] + bytes(random.choice([0, 0, len(data) - cut, random.randint(0, len(data) - cut)]))
    path.write_bytes(kept)
    whole = [push for push in lost if push.end - base <= len(kept) and kept[push.start - base :].startswith(push.data)]
    # Without the heads as well: after a loss of power they may be older.
    again = LogWriter(directory, 0, random.choice([0, acknowledged]))
    assert again.end == max([acknowledged, *(push.end for push in whole)])
    pushes += whole
    pushes += _append(again, random)
    records = list(scan(directory, 0, again.end, check=True))
    assert [(record.start, record.entry) for record in records] == [(push.start, push.entry) for push in pushes]
    again.close()


def main() -> None:
    """Run as many experiments as were asked for."""
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
