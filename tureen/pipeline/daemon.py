"""Spark's Python daemon with Tureen preloaded, so that a forked worker does not pay the import.

Spark starts this module instead of its own daemon (`spark.python.daemon.module`).
"""

from __future__ import annotations

import tureen.pipeline.sink

assert tureen.pipeline.sink  # imported for what it loads

if __name__ == "__main__":
    from pyspark.daemon import manager

    manager()
