"""Excluding long-lived objects from garbage collection in Spark's Python workers.

Spark runs a collection after every task and every poll of a planner. With all that is imported there, it takes tens of
milliseconds each time, more than a small batch itself.
"""

from __future__ import annotations

import gc
import os
from functools import cache


@cache
def freeze() -> None:
    """Exclude the current objects from later collections, in a process that Spark reuses for several tasks."""
    if "SPARK_REUSE_WORKER" in os.environ:
        gc.collect()
        gc.freeze()
