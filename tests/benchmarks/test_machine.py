"""What is measured of the machine."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.machine import family_processor_seconds

WORK = "import time\nwhile time.process_time() < 0.3: pass"


def test_processor_time_includes_processes_that_ended() -> None:
    before = family_processor_seconds()
    subprocess.run([sys.executable, "-c", WORK], check=True)
    assert family_processor_seconds() - before >= 0.25


def test_processor_time_includes_processes_that_run() -> None:
    before = family_processor_seconds()
    program = [sys.executable, "-c", f"{WORK}\nprint(flush=True)\ninput()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        used = family_processor_seconds() - before
        process.communicate(b"\n")
    assert used >= 0.25
