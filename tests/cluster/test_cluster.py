"""A cluster whose workers can access the pot works; otherwise the first task fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import workload

# Executors' Python starts in a mount namespace in which another directory hides the pot.
PYTHON = """#!/bin/sh
if tr '\\0' ' ' < /proc/$PPID/cmdline | grep -q CoarseGrainedExecutorBackend; then
    exec unshare -m sh -c 'mount -t tmpfs none {hidden} && exec {python} "$@"' sh "$@"
fi
exec {python} "$@"
"""


def can_mount() -> bool:
    """Whether this process may mount in a new namespace."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="needs permission to mount, to hide a directory from Spark's workers")
@pytest.mark.timeout(600)
def test_workers_must_have_access_to_the_pot(tmp_path: Path) -> None:
    python = tmp_path / "python"
    (tmp_path / "unseen").mkdir()
    python.write_text(PYTHON.format(python=sys.executable, hidden=tmp_path / "unseen"))
    python.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-m", workload.__name__, str(tmp_path / "seen"), str(tmp_path / "unseen")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    output = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    even = range(0, workload.ROWS, 2)
    assert output["answer"] == str([{"n": len(even), "total": sum(even)}])
    assert "Spark's worker on" in output["error"]
    assert "does not see the pot" in output["error"]
    assert output["rows"] == "0"
