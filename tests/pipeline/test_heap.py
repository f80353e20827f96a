"""Spark's workers collect garbage after each task; imported objects are excluded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = "import gc; from tureen.pipeline.heap import freeze; freeze(); print(gc.get_freeze_count())"


@pytest.mark.parametrize("worker", [True, False])
def test_only_workers_freeze_imported_objects(worker: bool) -> None:
    env = {key: value for key, value in os.environ.items() if key != "SPARK_REUSE_WORKER"}
    if worker:
        env["SPARK_REUSE_WORKER"] = "1"
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
    assert (int(done.stdout) > 0) == worker
