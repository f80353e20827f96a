"""The report of a run: goals that are met or not, measurements, notes and plots; as JSON and as a Markdown page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.goals import GOALS, Goal, GoalResult, is_missed, verdict

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Measurement:
    """A measurement; its goal is a condition on its value like ">= 0.5"."""

    what: str
    value: float
    unit: str
    goal: str = ""
    part: str = ""

    @property
    def met(self) -> str:
        """Whether the goal is met, and if not, by how much it is missed."""
        return verdict(self.value, self.goal)


@dataclass
class Report:
    """The results of a run; `begin` starts a part of the benchmark."""

    folder: Path = RESULTS
    whole: bool = False
    """Whether all parts run."""
    remark: str = ""
    """The conditions of the run that nothing measures, such as other load on the machine."""
    lines: list[Measurement] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    """Remarks by part: why something was not measured, and what a figure means."""
    plots: list[tuple[str, str]] = field(default_factory=list)
    failed: bool = False
    parts: list[str] = field(default_factory=list)
    _reached: dict[str, GoalResult] = field(default_factory=dict)
    _before: list[float] = field(default_factory=machine.load)

    def begin(self, part: str) -> None:
        """Start a part; everything that follows belongs to it."""
        self.parts.append(part)
        print(f"{part} ({datetime.now(UTC):%H:%M:%S})", flush=True)

    def add(self, what: str, value: float, unit: str, goal: str = "") -> None:
        """Add a measurement and print it."""
        line = Measurement(what, value, unit, goal, self._part)
        self.lines.append(line)
        print(f"  {what}: {format_number(value)} {unit}" + (f"   goal {goal}: {line.met}" if goal else ""), flush=True)

    def note(self, text: str) -> None:
        """Add a remark and print it."""
        self.notes.append((self._part, text))
        print(f"  {text}", flush=True)

    def fail(self, text: str) -> None:
        """Add a remark that something could not be measured, and mark the run as failed."""
        self.failed = True
        self.note(text)

    def reach(self, key: str, value: float) -> None:
        """Add the measured value of a goal."""
        self._add_result(GoalResult(_goal(key), value))

    def miss(self, key: str, reason: str) -> None:
        """Add the reason why a goal was not measured."""
        self._add_result(GoalResult(_goal(key), None, reason))

    def plot(self, name: str, title: str) -> Path:
        """The path for a plot of that name, which the page shows."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.plots.append((self._part, f"![{title}]({name})"))
        return self.folder / name

    @property
    def goals(self) -> list[GoalResult]:
        """The goals of the parts that ran, or all if everything ran, including goals that were not measured."""
        selected = [goal for goal in GOALS if self.whole or goal.part in self.parts]
        return [self._reached.get(goal.key) or GoalResult(goal, None) for goal in selected]

    def all_met(self) -> bool:
        """Whether everything was measured, and every goal met."""
        verdicts = [result.met for result in self.goals] + [line.met for line in self.lines]
        return not self.failed and not any(map(is_missed, verdicts))

    def write(self, name: str) -> None:
        """Write the report as JSON and as a page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        conditions = {
            **machine.describe(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "load_before": self._before,
            "load_after": machine.load(),
        } | ({"remark": self.remark} if self.remark else {})
        document = {
            "machine": conditions,
            "goals": [{**asdict(result.goal), "value": result.value, "met": result.met} for result in self.goals],
            "lines": [{**asdict(line), "met": line.met} for line in self.lines],
            "notes": [{"part": part, "note": text} for part, text in self.notes],
        }
        (self.folder / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
        (self.folder / f"{name}.md").write_text("\n".join(self._page(name, conditions)) + "\n")

    @property
    def _part(self) -> str:
        return self.parts[-1] if self.parts else ""

    def _add_result(self, result: GoalResult) -> None:
        self._reached[result.goal.key] = result
        value = "" if result.value is None else f"{format_number(result.value)} {result.goal.unit}"
        print(f"  * {result.goal.what}: {value}   goal {result.goal.goal or 'none'}: {result.met}", flush=True)

    def _page(self, name: str, conditions: dict[str, Any]) -> list[str]:
        page = [f"# {name}", ""]
        page += [f"* {key.replace('_', ' ')}: {_formatted(value)}" for key, value in conditions.items()]
        if self.goals:
            page += ["", "## Goals", "", *_goal_table(self.goals)]
        for part in dict.fromkeys(self.parts or [""]):
            page += ["", f"## {part}" if part else "## Measured"]
            lines = [line for line in self.lines if line.part == part]
            if lines:
                page += ["", "| what | measured | goal | |", "|---|---|---|---|"]
                page += [
                    f"| {line.what} | {format_number(line.value)} {line.unit} | {line.goal} | {line.met} |"
                    for line in lines
                ]
            for texts, mark in ((self.notes, "* "), (self.plots, "")):
                part_texts = [mark + text for text_part, text in texts if text_part == part]
                page += ["", *part_texts] if part_texts else []
        return page


def _goal(key: str) -> Goal:
    return next(goal for goal in GOALS if goal.key == key)


def _goal_table(goals: Sequence[GoalResult]) -> list[str]:
    table = ["| what | goal | must | measured | |", "|---|---|---|---|---|"]
    for result in goals:
        value = "" if result.value is None else f"{format_number(result.value)} {result.goal.unit}".strip()
        table.append(f"| {result.goal.what} | {result.goal.goal} | {result.goal.must} | {value} | {result.met} |")
    return table


def format_number(value: float) -> str:
    """A number with thousands separators or three significant digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _formatted(value: Any) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
