"""Files of checksummed parts: the container of every file that a commit names.

```
parts      each at a multiple of 64 bytes, padded with zeros
directory  start, length and checksum of each part, then the writer's metadata; two copies
footer     start and lengths of the directory, the checksum of these and of the file's name, magic; two copies
```

A checksum covers its part with the padding, so that every byte of a file is covered. Parts are memory-mapped and
verified when they are read. The directory has two copies, because without it no part could be located; its checksum
covers the file's name, so that swapped files are detected too. The checksums are 64-bit xxh3.
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
    """Writes one file, part by part; the caller makes it durable."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Write to an empty file of that name."""
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
        """Write the directory and the footer; return the file's checksum, which depends on those of all parts."""
        entries = np.array(self._entries, _ENTRY).tobytes()
        directory = entries + about
        checksum = _checksum(self._name, self._end, len(entries), directory)
        self._file.write(2 * directory)
        self._file.write(2 * _FOOTER.pack(self._end, len(entries), len(directory), checksum, _MAGIC))
        return checksum


class Parts:
    """A mapped file of parts; each is verified every time it is read, so readers cache what they decode."""

    def __init__(self, path: Path) -> None:
        """Map a file and verify its directory; raises DamagedFile, or FileNotFoundError if it does not exist."""
        self.path = path
        try:
            self._data = pa.memory_map(str(path)).read_buffer()
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
        except (OSError, pa.ArrowException) as error:
            raise self.damaged(str(error)) from error
        directory = next((copy for copy in self._directories() if copy is not None), None)
        if directory is None:
            raise self.damaged("both copies of its directory are damaged")
        entries, self.about, self.checksum = directory
        self._entries: list[tuple[int, int, int]] = np.frombuffer(entries, _ENTRY).tolist()

    def __len__(self) -> int:
        """The number of parts."""
        return len(self._entries)

    def read(self, number: int) -> pa.Buffer:
        """One part, not copied; raises DamagedFile."""
        start, length, checksum = self._entries[number]
        padded = self._data.slice(start, length + -length % _ALIGN)
        if xxh3_64_intdigest(padded) != checksum:
            raise self.damaged(f"the checksum of part {number + 1} of {len(self)} does not match")
        return self._data.slice(start, length)

    def has_whole_directory(self) -> bool:
        """Whether both copies of the directory and of the footer are intact."""
        return None not in self._directories()

    def damaged(self, detail: str) -> DamagedFile:
        """The error for damage in this file."""
        return DamagedFile.of(self.path, detail)

    def _directories(self) -> Iterator[tuple[pa.Buffer, bytes, int] | None]:
        """The entries, metadata and checksum of each copy; None for a damaged copy."""
        size = self._data.size
        for footer in (size - _FOOTER.size, size - 2 * _FOOTER.size):
            if footer < 0:
                yield None
                continue
            start, entries, length, checksum, magic = _FOOTER.unpack(self._data.slice(footer, _FOOTER.size))
            whole = start + 2 * (length + _FOOTER.size) == size and magic == _MAGIC
            fits = whole and entries <= length and entries % _ENTRY.itemsize == 0
            for begin in (start, start + length):
                directory = self._data.slice(begin, length) if fits else None
                if directory is None or _checksum(self.path.name, start, entries, directory) != checksum:
                    yield None
                else:
                    yield directory.slice(0, entries), directory.slice(entries).to_pybytes(), checksum


def missing_file(error: FileNotFoundError) -> DamagedFile:
    """The error for a missing file that the catalog names."""
    return DamagedFile.of(Path(str(error.filename)), "the file is missing")


def _checksum(name: str, start: int, entries: int, directory: pa.Buffer | bytes) -> int:
    checksum = xxh3_64(f"{name} {start} {entries}".encode())
    checksum.update(directory)
    return checksum.intdigest()
