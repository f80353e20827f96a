"""Where the tests' pots are: in memory, where it suffices, because a test waits for the disk at each commit."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_NEEDED = 4 << 30
"""The bytes that must be free; a run of all tests uses a part of them."""


def temporary_directory() -> str:
    """Where this process creates temporary files from now on: in memory, unless `TMPDIR` says where."""
    directory = os.environ.get("TMPDIR") or tempfile.gettempdir()
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK):
        system = os.statvfs(_MEMORY)
        if system.f_bavail * system.f_frsize >= _NEEDED:
            directory = str(_MEMORY)
    tempfile.tempdir = directory
    return directory
