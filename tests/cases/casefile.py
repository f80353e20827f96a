"""Case files: their format, and how they are read and written.

```
What the file is about, in a sentence or more.

stream: trades
time: ts                          (optional: without it, tuples have their time of arrival)
now: 2026-03-01 12:00:00          the default NOW of the cases
retain: 1 hour                    (optional)
clock: stream                     (optional: NOW is the highest time seen)
unique: sym                       (optional: the columns of the unique key)
lateness: 1 minute                (optional)

sym STRING | qty INT | ts TIMESTAMP
'AA'       | 1       | 2026-03-01 11:00:00
----                              a batch of arrival ends here
'BB'       | NULL    | 2026-03-01 11:00:00
punctuate: sym = 'BB'             no later tuple matches it

== the name of a case
SELECT sym, sum(qty) AS total FROM trades GROUP BY sym
now: 2026-03-01 11:30:00
spark: SELECT …                   the query for Spark, instead of the same text without its window
----
sym STRING | total BIGINT
'AA'       | 1
'BB'       | NULL
```

A file may have several relations: the next one starts with another line `stream: …` or `table: …`. First arrives the
first batch of each, then the second of each; a batch of a table replaces its content. The query for Spark then reads
all tuples that are retained, not those in the window, because each stream may have a window of its own. DuckDB runs the
same query, much faster than Spark; cases with `judge: spark` are those whose query means something else in DuckDB.

Lines that start with `#` are comments. Keys come after the SQL, each at the start of a line; a long value continues
until the next key. `spark: no – reason` excludes a case from the comparison with Spark. An expected error is `error:
Class`, with ` at line:column` if it has a location, then `says: …` and `hint: …` or, if the query fails at run time,
`because: …`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cases.tables import Table, read_row, read_time, split_cells
from tests.cases.tables import read_column as column_of
from tureen.closed.rules import Rules
from tureen.errors import UnknownStream
from tureen.language import parse_duration
from tureen.language.text.statements import Punctuate, parse_statement
from tureen.punctuation import Punctuation
from tureen.query import NamedRelation, RelationKind
from tureen.schema import Schema, name_key
from tureen.window import to_micros

Item = dict[str, Any] | Punctuation

FOLDER = Path(__file__).parent
_KEY = re.compile(r"(now|spark|judge|error|says|hint|because):(?: (.*))?")
_HEAD = re.compile(r"(stream|table|time|now|retain|clock|unique|lateness): (.*)")
_PUNCTUATE = "punctuate: "
_ERROR = re.compile(r"(\w+)(?: at (\d+:\d+))?")


@dataclass(frozen=True)
class Failure:
    """An expected error: its class, its location in the text, and its message."""

    kind: str
    location: str | None
    says: str
    hint: str | None = None
    because: str | None = None

    def lines(self) -> list[str]:
        """The lines of the failure in a case file."""
        lines = [f"error: {self.kind}" + (f" at {self.location}" if self.location else ""), f"says: {self.says}"]
        lines += [f"hint: {self.hint}"] if self.hint else []
        return lines + ([f"because: {self.because}"] if self.because else [])


Expected = Table | Failure


@dataclass(frozen=True)
class Case:
    """A query and its expected answer."""

    name: str
    sql: str
    now: int | None
    spark: str | None
    judge: str | None
    head: tuple[str, ...]
    """All lines before the answer, unchanged."""
    expected: Expected | None

    @property
    def reason(self) -> str | None:
        """The reason why the case is not compared with Spark, if it is not."""
        return self.spark.removeprefix("no – ") if self.spark and self.spark.startswith("no – ") else None

    def lines(self) -> list[str]:
        """The text of the case."""
        return [*self.head, "----", *(self.expected.lines() if self.expected else ())]


@dataclass(frozen=True)
class CaseRelation:
    """A stream with its tuples in batches of arrival, or a table with its contents in turn."""

    settings: dict[str, str]
    schema: Schema
    batches: tuple[list[dict[str, Any]], ...]
    punctuated: tuple[list[Item], ...] = ()
    """The batches with the punctuations of each, in order; empty if there are none."""

    @property
    def rules(self) -> Rules:
        """Its unique key and its lateness."""
        unique, lateness = self.settings.get("unique"), self.settings.get("lateness")
        columns = () if unique is None else tuple(name.strip() for name in unique.split(","))
        return Rules(columns, None if lateness is None else parse_duration(lateness))

    @property
    def is_table(self) -> bool:
        """Whether it is a table."""
        return "table" in self.settings

    @property
    def name(self) -> str:
        """Its name."""
        return self.settings["table" if self.is_table else "stream"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All tuples of the stream in order of arrival, or the last content of the table."""
        return self.batches[-1] if self.is_table else [row for batch in self.batches for row in batch]

    @property
    def named(self) -> NamedRelation:
        """The relation as the language knows it."""
        return NamedRelation(self.name, self.schema, RelationKind.TABLE if self.is_table else RelationKind.STREAM)


@dataclass(frozen=True)
class CaseFile:
    """Streams and tables, and cases over them."""

    path: Path
    relations: tuple[CaseRelation, ...]
    head: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def stream(self) -> CaseRelation:
        """The first stream; the only relation of most files."""
        return self.relations[0]

    @property
    def joins(self) -> bool:
        """Whether there are several relations."""
        return len(self.relations) > 1

    @property
    def clock(self) -> int:
        """The wall clock while the file runs."""
        return to_micros(read_time(self.stream.settings["now"]))

    def find(self, name: str) -> NamedRelation:
        """Look up a relation, as the catalog does."""
        for relation in self.relations:
            if name_key(relation.name) == name_key(name):
                return relation.named
        raise UnknownStream(f"there is no stream or table named '{name}'")

    def text(self) -> str:
        """The whole file."""
        blocks = [self.head, *(case.lines() for case in self.cases)]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def read_files() -> list[CaseFile]:
    """All case files, by name."""
    return [read_file(path) for path in sorted(FOLDER.glob("*.case"))]


def read_file(path: Path) -> CaseFile:
    """The relations and the cases of one file."""
    head, *blocks = _blocks(path.read_text().splitlines())
    relations = tuple(map(_relation, _sections(head)))
    cases = tuple(map(_case, blocks))
    duplicates = {case.name for case in cases if [other.name for other in cases].count(case.name) > 1}
    if duplicates:
        raise ValueError(f"{path.name} has duplicate cases: {', '.join(sorted(duplicates))}")
    return CaseFile(path, relations, tuple(head), cases)


def _blocks(lines: list[str]) -> list[list[str]]:
    """The lines before the first case, and those of each case, without blank lines at the end."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("== "):
            blocks.append([])
        blocks[-1].append(line.rstrip())
    for block in blocks:
        while not block[-1]:
            block.pop()
    return blocks


def _sections(head: list[str]) -> list[list[str]]:
    """The lines of each relation, without comments."""
    sections: list[list[str]] = []
    for line in head:
        if line.startswith(("stream: ", "table: ")):
            sections.append([])
        if sections and line and not line.startswith("#"):
            sections[-1].append(line)
    return sections


def _relation(lines: list[str]) -> CaseRelation:
    settings = {match.group(1): match.group(2) for line in lines if (match := _HEAD.fullmatch(line))}
    header, *rows = lines[len(settings) :]
    columns = tuple(map(column_of, split_cells(header)))
    schema = Schema(columns, settings.get("time")).checked()
    batches: list[list[Item]] = [[]]
    for line in rows:
        if line == "----":
            batches.append([])
        elif line.startswith(_PUNCTUATE):
            statement = parse_statement(f"PUNCTUATE s WHERE {line.removeprefix(_PUNCTUATE)}")
            assert isinstance(statement, Punctuate)
            batches[-1].append(statement.punctuation)
        else:
            batches[-1].append(dict(zip(schema.names, read_row(columns, line), strict=True)))
    only_rows = tuple([item for item in batch if isinstance(item, dict)] for batch in batches)
    relation = CaseRelation(settings, schema, only_rows)
    is_punctuated = any(isinstance(item, Punctuation) for batch in batches for item in batch)
    return replace(relation, punctuated=tuple(batches)) if is_punctuated or relation.rules else relation


def _case(block: list[str]) -> Case:
    cut = block.index("----") if "----" in block else len(block)
    head, answer = block[:cut], [line for line in block[cut + 1 :] if line and not line.startswith("#")]
    name, sql, keys = head[0].removeprefix("== "), [], _keys(head[1:])
    for line in head[1:]:
        if _KEY.fullmatch(line):
            break
        if not line.startswith("#"):
            sql.append(line)
    expected: Expected | None = None
    if answer:
        expected = _failure(_keys(answer)) if answer[0].startswith("error: ") else Table.read(answer)
    now = to_micros(read_time(keys["now"])) if "now" in keys else None
    return Case(name, "\n".join(sql).rstrip(), now, keys.get("spark"), keys.get("judge"), tuple(head), expected)


def _keys(lines: list[str]) -> dict[str, str]:
    """The values of `key: value` lines, each with its continuation lines."""
    values_by_key: dict[str, list[str]] = {}
    values: list[str] | None = None
    for line in lines:
        if key := _KEY.fullmatch(line):
            values = values_by_key.setdefault(key.group(1), [])
            values.append(key.group(2) or "")
        elif values is not None and not line.startswith("#"):
            values.append(line)
    return {key: "\n".join(parts).strip() for key, parts in values_by_key.items()}


def _failure(keys: dict[str, str]) -> Failure:
    match = _ERROR.fullmatch(keys["error"])
    assert match, keys["error"]
    return Failure(match.group(1), match.group(2), keys["says"], keys.get("hint"), keys.get("because"))
