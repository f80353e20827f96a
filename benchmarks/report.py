"""What a benchmark found: goals that are met or not, numbers with their conditions, plots; as JSON and as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.goals import GOALS, Goal, Reached, is_missed, verdict

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Line:
    """One measurement; a goal is a text like ">= 0.5" about its value."""

    what: str
    value: float
    unit: str
    goal: str = ""
    part: str = ""

    @property
    def met(self) -> str:
        """Whether the goal is reached, and if not by how much it is missed."""
        return verdict(self.value, self.goal)


@dataclass
class Report:
    """All that a run finds out; a part of the benchmark begins with `begin`."""

    folder: Path = RESULTS
    whole: bool = False
    """Whether all parts run."""
    lines: list[Line] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    """What is not a number, by part: why something was not measured, and what a figure means."""
    plots: list[tuple[str, str]] = field(default_factory=list)
    failed: bool = False
    parts: list[str] = field(default_factory=list)
    _reached: dict[str, Reached] = field(default_factory=dict)
    _before: list[float] = field(default_factory=machine.load)

    def begin(self, part: str) -> None:
        """What follows belongs to that part."""
        self.parts.append(part)
        print(f"{part} ({datetime.now(UTC):%H:%M:%S})", flush=True)

    def add(self, what: str, value: float, unit: str, goal: str = "") -> None:
        """Note a measurement and print it."""
        line = Line(what, value, unit, goal, self._part)
        self.lines.append(line)
        print(f"  {what}: {shown(value)} {unit}" + (f"   goal {goal}: {line.met}" if goal else ""), flush=True)

    def note(self, text: str) -> None:
        """Note something that is not a number, and print it."""
        self.notes.append((self._part, text))
        print(f"  {text}", flush=True)

    def fail(self, text: str) -> None:
        """Note that something could not be measured; the run is not a success."""
        self.failed = True
        self.note(text)

    def reach(self, key: str, value: float) -> None:
        """Note what was measured for one of the goals."""
        self._settle(Reached(_goal(key), value))

    def miss(self, key: str, why: str) -> None:
        """Note why one of the goals was not measured."""
        self._settle(Reached(_goal(key), None, why))

    def plot(self, name: str, title: str) -> Path:
        """Where a plot of that name goes; the page shows it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.plots.append((self._part, f"![{title}]({name})"))
        return self.folder / name

    @property
    def goals(self) -> list[Reached]:
        """The goals of the parts that ran, or all if everything ran; those as well that nothing was measured for."""
        wanted = [goal for goal in GOALS if self.whole or goal.part in self.parts]
        return [self._reached.get(goal.key) or Reached(goal, None) for goal in wanted]

    def all_met(self) -> bool:
        """Whether everything was measured, and every goal met."""
        said = [one.met for one in self.goals] + [one.met for one in self.lines]
        return not self.failed and not any(is_missed(one) for one in said)

    def write(self, name: str) -> None:
        """Keep the run as JSON and as a page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        conditions = {
            **machine.describe(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "load_before": self._before,
            "load_after": machine.load(),
        }
        found = {
            "machine": conditions,
            "goals": [{**asdict(one.goal), "value": one.value, "met": one.met} for one in self.goals],
            "lines": [{**asdict(line), "met": line.met} for line in self.lines],
            "notes": [{"part": part, "note": text} for part, text in self.notes],
        }
        (self.folder / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
        (self.folder / f"{name}.md").write_text("\n".join(self._page(name, conditions)) + "\n")

    @property
    def _part(self) -> str:
        return self.parts[-1] if self.parts else ""

    def _settle(self, one: Reached) -> None:
        self._reached[one.goal.key] = one
        value = "" if one.value is None else f"{shown(one.value)} {one.goal.unit}"
        print(f"  * {one.goal.what}: {value}   goal {one.goal.goal or 'none'}: {one.met}", flush=True)

    def _page(self, name: str, conditions: dict[str, Any]) -> list[str]:
        page = [f"# {name}", ""]
        page += [f"* {key.replace('_', ' ')}: {_said(value)}" for key, value in conditions.items()]
        if self.goals:
            page += ["", "## Goals", "", *_goal_table(self.goals)]
        for part in dict.fromkeys(self.parts or [""]):
            page += ["", f"## {part}" if part else "## Measured"]
            lines = [line for line in self.lines if line.part == part]
            if lines:
                page += ["", "| what | measured | goal | |", "|---|---|---|---|"]
                page += [
                    f"| {line.what} | {shown(line.value)} {line.unit} | {line.goal} | {line.met} |" for line in lines
                ]
            for texts, mark in ((self.notes, "* "), (self.plots, "")):
                of_part = [mark + text for owner, text in texts if owner == part]
                page += ["", *of_part] if of_part else []
        return page


def _goal(key: str) -> Goal:
    return next(goal for goal in GOALS if goal.key == key)


def _goal_table(goals: Sequence[Reached]) -> list[str]:
    table = ["| what | goal | must | measured | |", "|---|---|---|---|---|"]
    for one in goals:
        value = "" if one.value is None else f"{shown(one.value)} {one.goal.unit}".strip()
        table.append(f"| {one.goal.what} | {one.goal.goal} | {one.goal.must} | {value} | {one.met} |")
    return table


def shown(value: float) -> str:
    """A number as a person reads it."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _said(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)
