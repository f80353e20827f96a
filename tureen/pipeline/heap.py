"""What garbage collections leave alone.

Spark collects after every task and every look of a planner. With all that is imported there, that takes tens of
milliseconds each time, more than a small batch itself.
"""

from __future__ import annotations

import gc
import os
from functools import cache


@cache
def freeze() -> None:
    """Keep what is in memory by now out of collections, in a process that Spark uses for one task after another."""
    if "SPARK_REUSE_WORKER" in os.environ:
        gc.collect()
        gc.freeze()
