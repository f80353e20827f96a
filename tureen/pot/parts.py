"""Files of checksummed parts: the container of every file that a commit names.

```
parts      each at a multiple of 64 bytes, padded with zeros
directory  start, length and checksum of each part, then what the writer says about the file; twice
footer     start and lengths of the directory, the checksum of all that and of the file's name, magic; twice
```

A checksum covers its part with the padding, so that every byte of a file is covered by one. Parts are memory-mapped
and verified when they are read. The directory is there twice, because without it no part could be found; the file's
name is under its checksum, so that a file in the place of another is noticed too. The checksums are xxh3 with 64 bits.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from xxhash import xxh3_64, xxh3_64_intdigest

from tureen.errors import DamagedFile

_ALIGN = 64
_MAGIC = b"TUREEN03"
_FOOTER = struct.Struct("<QQQQ8s")
_ENTRY: Any = np.dtype([("start", "<u8"), ("length", "<u8"), ("checksum", "<u8")])


class PartsWriter:
    """Writes one file, part by part; making it durable is for the caller."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Write to an empty file, which is known by that name."""
        self._file = file
        self._name = name
        self._entries: list[tuple[int, int, int]] = []
        self._end = 0

    def add(self, part: pa.Buffer | bytes) -> None:
        """Append one part."""
        length = len(part)
        padding = bytes(-length % _ALIGN)
        checksum = xxh3_64(part)
        checksum.update(padding)
        self._file.write(part)
        self._file.write(padding)
        self._entries.append((self._end, length, checksum.intdigest()))
        self._end += length + len(padding)

    def finish(self, about: bytes = b"") -> int:
        """Write the directory and the footer; give the file's checksum, which follows from those of all parts."""
        entries = np.array(self._entries, _ENTRY).tobytes()
        directory = entries + about
        checksum = _checksum(self._name, self._end, len(entries), directory)
        self._file.write(2 * directory)
        self._file.write(2 * _FOOTER.pack(self._end, len(entries), len(directory), checksum, _MAGIC))
        return checksum


class Parts:
    """A mapped file of parts; each is verified whenever it is read, so readers keep what they made of it."""

    def __init__(self, path: Path) -> None:
        """Map a file and verify its directory; raises DamagedFile, or FileNotFoundError where there is none."""
        self.path = path
        try:
            self._data = pa.memory_map(str(path)).read_buffer()
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
        except (OSError, pa.ArrowException) as error:
            raise self.damaged(str(error)) from error
        directory = next((found for found in self._directories() if found is not None), None)
        if directory is None:
            raise self.damaged("neither copy of its directory is as it was written")
        entries, self.about, self.checksum = directory
        self._entries: list[tuple[int, int, int]] = np.frombuffer(entries, _ENTRY).tolist()

    def __len__(self) -> int:
        """How many parts there are."""
        return len(self._entries)

    def read(self, number: int) -> pa.Buffer:
        """One part, as it lies in the file; raises DamagedFile."""
        start, length, checksum = self._entries[number]
        padded = self._data.slice(start, length + -length % _ALIGN)
        if xxh3_64_intdigest(padded) != checksum:
            raise self.damaged(f"the checksum of part {number + 1} of {len(self)} does not match")
        return self._data.slice(start, length)

    def has_whole_directory(self) -> bool:
        """Whether both copies of the directory and of the footer are as they were written."""
        return None not in self._directories()

    def damaged(self, detail: str) -> DamagedFile:
        """The error that says what is wrong with this file."""
        return DamagedFile.of(self.path, detail)

    def _directories(self) -> Iterator[tuple[pa.Buffer, bytes, int] | None]:
        """The entries, what is said about the file, and its checksum, for each copy; None where it is damaged."""
        size = self._data.size
        for place in (size - _FOOTER.size, size - 2 * _FOOTER.size):
            if place < 0:
                yield None
                continue
            start, entries, length, checksum, magic = _FOOTER.unpack(self._data.slice(place, _FOOTER.size))
            whole = start + 2 * (length + _FOOTER.size) == size and magic == _MAGIC
            fits = whole and entries <= length and entries % _ENTRY.itemsize == 0
            for begin in (start, start + length):
                directory = self._data.slice(begin, length) if fits else None
                if directory is None or _checksum(self.path.name, start, entries, directory) != checksum:
                    yield None
                else:
                    yield directory.slice(0, entries), directory.slice(entries).to_pybytes(), checksum


def missing_file(error: FileNotFoundError) -> DamagedFile:
    """The error for a file that is not there although the catalog names it."""
    return DamagedFile.of(Path(str(error.filename)), "the file is missing")


def _checksum(name: str, start: int, entries: int, directory: pa.Buffer | bytes) -> int:
    checksum = xxh3_64(f"{name} {start} {entries}".encode())
    checksum.update(directory)
    return checksum.intdigest()
