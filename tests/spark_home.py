"""A home of Spark without the zip file of pyspark: with it, Spark's Python processes start in a third of the time.

Spark's Python processes import pyspark from `python/lib/pyspark.zip` of its home, if it exists. A zip file has no
bytecode, so each process compiles the modules again. Without it, they import the installed package.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pyspark

_HOME = Path(sys.prefix) / "spark-home"
_INSTALLED = Path(pyspark.__file__).parent
_NEEDED = ("bin", "jars", "sbin")


def spark_home() -> str:
    """The home, of links to the installed Spark."""
    _HOME.mkdir(exist_ok=True)
    for name in _NEEDED:
        with suppress(FileExistsError):
            (_HOME / name).symlink_to(_INSTALLED / name)
    return str(_HOME)
