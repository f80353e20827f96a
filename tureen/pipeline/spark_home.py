"""A home of Spark without the zip file of pyspark: with it, Spark's Python processes start in a third of the time.

Spark's Python processes import pyspark from `python/lib/pyspark.zip` of its home, if it exists. A zip file has no
bytecode, so each process compiles the modules again. Without it, they import the installed package.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pyspark

_VARIABLE = "SPARK_HOME"
_INSTALLED = Path(pyspark.__file__).parent
_LINKED = ("bin", "conf", "jars", "sbin")


def link_home(directory: Path) -> None:
    """Make a directory a home, of links to the installed Spark."""
    for name in _LINKED:
        if (_INSTALLED / name).exists():
            with suppress(FileExistsError):
                (directory / name).symlink_to(_INSTALLED / name)


@contextmanager
def home_without_zip(config: Mapping[str, str]) -> Iterator[None]:
    """Let a JVM that is started in this context use such a home, where that changes nothing but the time.

    That is: all Python processes run on this machine with the Python of this one, which finds pyspark among its
    packages, and no other home is configured.
    """
    if not _suffices(config):
        yield
        return
    os.environ[_VARIABLE] = str(_process_home())
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _suffices(config: Mapping[str, str]) -> bool:
    python = config.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    is_local = config["spark.master"].partition("[")[0] == "local"
    is_installed = str(_INSTALLED.parent) in sysconfig.get_paths().values()
    return is_local and is_installed and python == sys.executable and _VARIABLE not in os.environ


@cache
def _process_home() -> Path:
    """The home of this process's JVMs, which is removed when it ends."""
    directory = Path(tempfile.mkdtemp(prefix="tureen-spark-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    link_home(directory)
    return directory
