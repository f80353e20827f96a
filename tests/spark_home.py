"""The home of Spark in tests, always at the same path: the archive of classes contains the paths of Spark's jars."""

from __future__ import annotations

import sys
from pathlib import Path

from tureen.pipeline.spark_home import link_home

_HOME = Path(sys.prefix) / "spark-home"


def spark_home() -> str:
    """The home, without the zip file of pyspark."""
    _HOME.mkdir(exist_ok=True)
    link_home(_HOME)
    return str(_HOME)
