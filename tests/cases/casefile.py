"""Case files: their format, and how they are read and written.

```
What the file is about, in a sentence or more.

stream: trades
time: ts                          (optional: without it, tuples have their time of arrival)
now: 2026-03-01 12:00:00          the default NOW of the cases
retain: 1 hour                    (optional)
clock: stream                     (optional: NOW is the highest time seen)

sym STRING | qty INT | ts TIMESTAMP
'AA'       | 1       | 2026-03-01 11:00:00
----                              a batch of arrival ends here
'BB'       | NULL    | 2026-03-01 11:00:00

== the name of a case
SELECT sym, sum(qty) AS total FROM trades GROUP BY sym
now: 2026-03-01 11:30:00
spark: SELECT …                   the query for Spark, instead of the same text without its window
----
sym STRING | total BIGINT
'AA'       | 1
'BB'       | NULL
```

Lines that start with `#` are comments. Keys come after the SQL, each at the start of a line; a long value continues
until the next key. `spark: no – reason` excludes a case from the comparison with Spark. An expected error is `error:
Class`, with ` at line:column` if it has a location, then `says: …` and `hint: …` or, if the query fails at run time,
`because: …`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases.tables import Table, read_row, read_time, split_cells
from tests.cases.tables import read_column as column_of
from tureen.schema import Schema
from tureen.window import to_micros

FOLDER = Path(__file__).parent
_KEY = re.compile(r"(now|spark|error|says|hint|because):(?: (.*))?")
_HEAD = re.compile(r"(stream|time|now|retain|clock): (.*)")
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
class CaseFile:
    """A stream, its tuples in batches of arrival, and its cases."""

    path: Path
    settings: dict[str, str]
    schema: Schema
    batches: tuple[list[dict[str, Any]], ...]
    head: tuple[str, ...]
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def stream(self) -> str:
        """The stream's name."""
        return self.settings["stream"]

    @property
    def clock(self) -> int:
        """The wall clock while the file runs."""
        return to_micros(read_time(self.settings["now"]))

    def text(self) -> str:
        """The whole file."""
        blocks = [self.head, *(case.lines() for case in self.cases)]
        return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def read_files() -> list[CaseFile]:
    """All case files, by name."""
    return [read_file(path) for path in sorted(FOLDER.glob("*.case"))]


def read_file(path: Path) -> CaseFile:
    """The stream and the cases of one file."""
    head, *blocks = _blocks(path.read_text().splitlines())
    settings, table = _head(head)
    columns = tuple(map(column_of, split_cells(table[0])))
    schema = Schema(columns, settings.get("time")).checked()
    batches: list[list[dict[str, Any]]] = [[]]
    for line in table[1:]:
        if line == "----":
            batches.append([])
        else:
            batches[-1].append(dict(zip(schema.names, read_row(columns, line), strict=True)))
    cases = tuple(map(_case, blocks))
    duplicates = {case.name for case in cases if [other.name for other in cases].count(case.name) > 1}
    if duplicates:
        raise ValueError(f"{path.name} has duplicate cases: {', '.join(sorted(duplicates))}")
    return CaseFile(path, settings, schema, tuple(batches), tuple(head), cases)


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


def _head(lines: list[str]) -> tuple[dict[str, str], list[str]]:
    """The settings of the stream, and the lines of its table."""
    first = next(i for i, line in enumerate(lines) if line.startswith("stream: "))
    rest = [line for line in lines[first:] if line and not line.startswith("#")]
    settings = {match.group(1): match.group(2) for line in rest if (match := _HEAD.fullmatch(line))}
    return settings, rest[len(settings) :]


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
    return Case(name, "\n".join(sql).rstrip(), now, keys.get("spark"), tuple(head), expected)


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
