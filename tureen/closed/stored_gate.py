"""What a gate has closed, as arrays and JSON: the content of closed-set files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tureen.closed.gate import Gate
from tureen.closed.key_set import KeySet, Level
from tureen.closed.pattern import Pattern

Read = Callable[[int], Any]
"""Returns the buffer of a part by its number."""


def gate_parts(gate: Gate) -> tuple[bytes, list[np.ndarray]]:
    """A description, and the arrays that it refers to by number."""
    arrays: list[np.ndarray] = []
    about = {
        "keys": [{"columns": names, **_level_entry(keys, arrays)} for names, keys in gate.closed.keys.items()],
        "ranges": [
            [Pattern(((name, interval),)).as_json(), mark]
            for name, ranges in gate.closed.ranges.items()
            for interval, mark in ranges.intervals()
        ],
        "others": [[pattern.as_json(), mark] for pattern, mark in gate.closed.others],
        "unique": None if gate.keys is None else _level_entry(gate.keys, arrays),
        "highest": gate.highest,
    }
    return json.dumps(about, separators=(",", ":")).encode(), arrays


def add_parts(gate: Gate, about: bytes, read: Read) -> None:
    """Close what a gate had closed; later ones must be added after earlier ones."""
    content = json.loads(about)
    for stored, mark in content["ranges"] + content["others"]:
        gate.closed.add(Pattern.from_json(stored), mark)
    for entry in content["keys"]:
        gate.closed.key_set(tuple(entry["columns"])).add_level(_level(entry, read))
    if content["unique"] is not None and gate.keys is not None:
        gate.keys.add_level(_level(content["unique"], read))
    if content["highest"] is not None:
        gate.saw(content["highest"])


def size_of(gate: Gate) -> int:
    """The number of values, ranges and other patterns that a gate has closed."""
    sets: Iterator[Any] = iter([*gate.closed.keys.values(), *gate.closed.ranges.values(), gate.closed.others])
    return sum(map(len, sets)) + (0 if gate.keys is None else len(gate.keys))


def _level_entry(keys: KeySet, arrays: list[np.ndarray]) -> dict[str, Any]:
    level = keys.as_level()
    numbers: list[int | None] = []
    for array in level:
        numbers.append(None if array is None else len(arrays))
        arrays += [] if array is None else [array]
    return {"parts": numbers, "count": len(level.first)}


def _level(entry: dict[str, Any], read: Read) -> Level:
    first, second, marks = entry["parts"]
    halves = None if second is None else np.frombuffer(read(second), np.int64)
    return Level(np.frombuffer(read(first), np.int64), halves, np.frombuffer(read(marks), np.uint32))
