"""Spark's Python daemon with the kernels preloaded, so that forked tasks need not import them.

Spark starts this module instead of its own daemon (`spark.python.daemon.module`), one for each kind of worker. Only
those that run tasks (`pyspark.worker`) match tuples.
"""

from __future__ import annotations

import importlib
import sys

from pyspark.daemon import manager

from tureen.pipeline.heap import freeze

if __name__ == "__main__":
    if sys.argv[1:2] == ["pyspark.worker"]:
        importlib.import_module("tureen.pipeline.preload").preload()
    freeze()
    manager()
