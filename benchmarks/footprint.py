"""What a running server takes of the machine: memory of its processes, maps of files, files of its pot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SIZE = re.compile(r"^(Rss|Anonymous|Shmem|Pss_Shmem):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Footprint:
    """One look at a server and its pot; sizes are in bytes."""

    anonymous: int
    """Resident memory of the server's process that no file is behind."""
    mapped: int
    """Resident pages of mapped files: libraries and runs."""
    run_maps: int
    """How many maps of files of the pot the server's process has."""
    deleted_maps: int
    """How many of them are of files that are deleted."""
    others: int
    """Resident memory of its child processes: Java, and the workers of Spark."""
    files: int
    """Files in the pot."""
    disk: int
    """Bytes of all files in the pot."""
    inbox: int
    """Bytes of the inbox's segments."""
    wal: int
    """Bytes of the catalog's write-ahead log."""


def look(pid: int, pot: Path) -> Footprint:
    """Look at a server's process, its children and its pot."""
    sizes = _sizes(pid)
    maps = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if f" {pot}/" in line]
    files = dict(sizes_of_files(pot))
    return Footprint(
        anonymous=sizes["Anonymous"],
        mapped=sizes["Rss"] - sizes["Anonymous"],
        run_maps=len(maps),
        deleted_maps=sum(line.endswith(" (deleted)") for line in maps),
        others=sum(_sizes(child).get("Rss", 0) for child in _descendants(pid)),
        files=len(files),
        disk=sum(files.values()),
        inbox=sum(size for name, size in files.items() if name.startswith("inbox/")),
        wal=files.get("catalog.sqlite-wal", 0),
    )


def sizes_of_files(root: Path) -> Iterator[tuple[str, int]]:
    """The files below a directory, each with its name from there and its size."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            try:
                yield str(path.relative_to(root)), path.stat().st_size
            except FileNotFoundError:
                continue  # it went meanwhile


def _sizes(pid: int) -> dict[str, int]:
    """What the kernel says of a process's memory, in bytes; nothing of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: 1024 * int(size) for name, size in _SIZE.findall(text)}


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        born = children.get(left.pop(), [])
        found += born
        left += born
    return found
