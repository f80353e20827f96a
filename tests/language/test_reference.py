"""The language reference is correct: its examples are bound, and it names every function and type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tureen.aggregate_functions import AGGREGATE_NAMES
from tureen.language import bind_query
from tureen.language.binding.calls import NAMES
from tureen.language.binding.now import NAMES as NOW_NAMES
from tureen.language.binding.ranking import RANKS
from tureen.query import NamedRelation, RelationKind
from tureen.schema import Kind, Schema

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
STREAM = next(text for kind, text in BLOCKS if kind == "text")


OTHERS = {
    name: (
        Schema.parse(columns, time="ts" if "ts " in columns else None),
        RelationKind.STREAM if kind == "stream" else RelationKind.TABLE,
    )
    for kind, name, columns in re.findall(r"the (stream|table) `(\w+) \(([^)]*)\)`", " ".join(PAGE.split()))
}


def lookup(name: str) -> NamedRelation:
    return NamedRelation(name, *OTHERS.get(name, (Schema.parse(STREAM, time="ts"),)))


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "sql"])
def test_example(text: str) -> None:
    assert bind_query(text, lookup).outputs


def test_relations_of_joins_are_described() -> None:
    assert sorted(OTHERS) == ["companies", "quotes"]


@pytest.mark.parametrize("name", [*NAMES, *AGGREGATE_NAMES, *RANKS, *NOW_NAMES, *Kind])
def test_every_function_and_type_is_named(name: str) -> None:
    assert re.search(rf"\b{name}\b", PAGE, re.IGNORECASE)


def test_table_of_aggregates_lists_every_aggregate() -> None:
    section = PAGE.partition("\n## Aggregates\n")[2].partition("\n\nThe approximate")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    documented = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    assert sorted(documented) == AGGREGATE_NAMES
