"""A disk that is soon full; and who may read what is on one."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(size: int) -> Iterator[Path]:
    """A file system of so many bytes; the test is skipped where one cannot be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    with tempfile.TemporaryDirectory() as place:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("a small file system cannot be mounted here")
        try:
            yield Path(place)
        finally:
            # Lazily: maps of its files go when they are collected.
            subprocess.run(["umount", "--lazy", place], check=True)


def modes(root: Path) -> dict[str, int]:
    """The permissions of all that is below a directory."""
    return {str(path.relative_to(root)): path.stat().st_mode & 0o777 for path in root.rglob("*")}
