"""The machine of a run, and its load."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "duckdb", "polars")
PAGE = os.sysconf("SC_PAGE_SIZE")


def describe() -> dict[str, Any]:
    """CPU, cores, memory, kernel, and the versions of the packages."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * PAGE / 1e9, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        **{name: _version(name) for name in PACKAGES},
    }


def load() -> list[float]:
    """The load averages of the last 1, 5 and 15 minutes."""
    return [round(average, 2) for average in os.getloadavg()]


def resident(process: int | str = "self") -> int:
    """The resident memory of a process in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE


def process_seconds(process: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads(process: int) -> int:
    """The number of threads of a process."""
    return len(os.listdir(f"/proc/{process}/task"))


def available() -> int:
    """The available memory of the machine in bytes."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def family_processor_seconds() -> float:
    """The processor time of this process and of all processes that it or they have started, also of ended ones."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name, in parentheses, may contain any characters. After it: the state, the parent, …
            fields = path.read_text(errors="replace").rpartition(") ")[2].split()
            process = int(path.parent.name)
            # … and the time of the process in user and kernel mode, and of those that it has waited for.
            parents[process], ticks[process] = int(fields[1]), sum(map(int, fields[11:15]))
    family = [os.getpid()]
    for member in family:
        family += [process for process, parent in parents.items() if parent == member]
    return sum(ticks.get(member, 0) for member in family) / os.sysconf("SC_CLK_TCK")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=30).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown: {error}"
    return output.splitlines()[0] if output else "unknown"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def touch_memory(leave: int = 6 << 30) -> float:
    """Write to every page of free memory except for `leave` bytes, and free it; returns the number of bytes.

    The first write to a page of a virtual machine's memory involves the host and takes some 10 µs, a hundred times as
    long as later writes. Without this, the first measurements that write files would pay for new pages of the page
    cache. A machine that has been up for a while has no such pages.
    """
    free = available() - leave
    if free <= 0:
        return 0.0
    memory = np.empty(free, np.uint8)
    memory[::PAGE] = 1
    del memory
    return float(free)
