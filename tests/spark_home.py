"""A home of Spark without the zip file of pyspark: with it, Spark's Python processes start in a third of the time.

Spark's Python processes import pyspark from `python/lib/pyspark.zip` of its home, if it exists. A zip file has no
bytecode, so each process compiles the modules again. Without it, they import the installed package.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyspark

_HOME = Path(sys.prefix) / "spark-home"
_INSTALLED = Path(pyspark.__file__).parent
_NEEDED = ("bin", "jars", "sbin")


def make_home() -> None:
    """Create the home, of links to the installed Spark."""
    _HOME.mkdir(exist_ok=True)
    for name in _NEEDED:
        link = _HOME / name
        link.unlink(missing_ok=True)
        link.symlink_to(_INSTALLED / name)


def spark_home() -> str:
    """The home, or that of the installed Spark if it was not created."""
    return str(_HOME if _HOME.exists() else _INSTALLED)
