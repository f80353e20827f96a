"""The resources of a running server: memory of its processes, mapped files, files of its pot."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SIZE = re.compile(r"^(Rss|Anonymous|Shmem|Pss_Shmem):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Footprint:
    """The resources of a server and its pot at one time; sizes are in bytes."""

    anonymous: int
    """Resident anonymous memory of the server's process."""
    mapped: int
    """Resident pages of mapped files: libraries and runs."""
    run_maps: int
    """The number of files of the pot that the server's process has mapped."""
    deleted_maps: int
    """The number of these whose file is deleted."""
    others: int
    """Resident memory of its child processes: Java and Spark's workers."""
    files: int
    """Files in the pot."""
    disk: int
    """Bytes of all files in the pot."""
    inbox: int
    """Bytes of the inbox's segments."""
    wal: int
    """Bytes of the catalog's write-ahead log."""


def measure_footprint(pid: int, pot: Path) -> Footprint:
    """Measure a server's process, its children and its pot."""
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
    """The files below a directory: relative path and size."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            try:
                yield str(path.relative_to(root)), path.stat().st_size
            except FileNotFoundError:
                continue  # deleted meanwhile


def _sizes(pid: int) -> dict[str, int]:
    """The memory of a process in bytes, from the kernel; empty if it has ended."""
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
    descendants, parents = [], [pid]
    while parents:
        direct = children.get(parents.pop(), [])
        descendants += direct
        parents += direct
    return descendants
