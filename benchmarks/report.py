"""What a benchmark found: numbers with their conditions, and goals that are met or not."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Line:
    """One measurement; a goal is a text like ">= 0.5" about its value."""

    what: str
    value: float
    unit: str
    goal: str = ""

    @property
    def met(self) -> str:
        """Whether the goal is reached."""
        if not self.goal:
            return ""
        sign, limit = self.goal.split()[:2]
        reached = self.value >= float(limit) if sign == ">=" else self.value <= float(limit)
        return "met" if reached else "NOT met"


@dataclass
class Report:
    """All measurements of a run."""

    lines: list[Line] = field(default_factory=list)

    def add(self, what: str, value: float, unit: str, goal: str = "") -> None:
        """Note a measurement and print it."""
        line = Line(what, value, unit, goal)
        self.lines.append(line)
        print(f"  {what}: {_shown(value)} {unit}" + (f"   goal {goal}: {line.met}" if goal else ""), flush=True)

    def write(self, name: str) -> None:
        """Keep the run as JSON and as a table."""
        RESULTS.mkdir(exist_ok=True)
        machine = {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "system": platform.platform(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "load": os.getloadavg(),
        }
        lines = [{**asdict(line), "met": line.met} for line in self.lines]
        (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine, "lines": lines}, indent=2) + "\n")
        table = ["| what | measured | goal | |", "|---|---|---|---|"]
        table += [
            f"| {line.what} | {_shown(line.value)} {line.unit} | {line.goal} | {line.met} |" for line in self.lines
        ]
        head = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, {machine['when']}"
        (RESULTS / f"{name}.md").write_text(f"# {name}\n\n{head}\n\n" + "\n".join(table) + "\n")


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
