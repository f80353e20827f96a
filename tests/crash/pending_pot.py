"""A pot with rows in runs and pending rows, and followers of it; a process works on it until it is killed.

The process writes a journal: which pushes began, which returned, and what each follower has seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tests.crash import workload
from tureen.handle import member_handle
from tureen.pipeline.sink import BatchSink
from tureen.position import BEGINNING
from tureen.pot.catalog import Catalog
from tureen.pot.sweep import sweep
from tureen.results.invoke import Invoker
from tureen.schema import Schema
from tureen.soup.change_batches import ChangeBatch
from tureen.soup.feed import ChangeReader
from tureen.soup.templates import Templates
from tureen.stems.intake import to_batch
from tureen.testing.manual_engine import ManualEngine

SCHEMA = "n INT, k INT, ts TIMESTAMP"
BASE = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 6

QUERIES = {
    "all": ("SELECT n FROM s", False),
    "lazy": ("SELECT n, k FROM s WHERE k = 1 AND n > 3", False),
    "kept": ("SELECT n, ts FROM s WHERE k <> 2", True),
    "recent": ("SELECT n FROM s [RANGE 20 SECONDS] WHERE k <> 2", True),
    "last": ("SELECT n FROM s WHERE k = 0 BEGIN NOW - 9 ROWS END NOW", False),
    "aggregate": ("SELECT k, count(*) AS c, sum(n) AS total FROM s WHERE n > 4 GROUP BY k ORDER BY k", True),
    "step": ("SELECT window_start, count(*) AS c, sum(n) AS total FROM s [TUMBLE 5 SECONDS]", False),
}
"""The SQL of each standing query, and whether it is eager."""

ONE_OFF = "SELECT n FROM s WHERE n % 3 = 1 ORDER BY n DESC LIMIT 5"

TEMPLATE = "SELECT n FROM s WHERE k = :k"
VALUES = (0, 2, 0)
"""The parameters of the template's queries; two are equal, so a row joins the answers of both."""

BEFORE = (
    *("append", "append", "take", "other", "append", "take"),
    *("append", "append", "other", "sink", "append", "take one"),
)
"""Leaves indexed runs and a tail, pending rows with reserved ids, a sink's rows after them, and pending rows again."""


class Handles(NamedTuple):
    """What is registered in the pot."""

    queries: dict[str, str]
    template: str

    @property
    def members(self) -> list[str]:
        """The handles of the template's queries."""
        return [member_handle(self.template, number) for number in range(len(VALUES))]


def rows(number: int) -> list[dict[str, Any]]:
    """The rows of a push, neither in order of time nor of key."""
    numbers = range(number * ROWS, (number + 1) * ROWS)
    return [{"n": n, "k": n % 3, "ts": BASE + timedelta(seconds=n * 7 % 60)} for n in numbers]


def create_pot(root: Path) -> Handles:
    """Create the streams, the queries and the template."""
    engine = ManualEngine(root)
    engine.create_stream("s", SCHEMA, "ts", clock="stream")
    engine.create_stream("other", "m INT")
    queries = {name: engine.register(sql, materialize=eager) for name, (sql, eager) in QUERIES.items()}
    queries["other"] = engine.register("SELECT m FROM other")
    templates = Templates(engine.catalog, engine.invoker)
    template = templates.register(TEMPLATE, [{"k": k} for k in VALUES], None)
    engine.close()
    return Handles(queries, template)


@dataclass
class Follower:
    """A follower of a query, of a template, or of all, which remembers what it has seen and up to where."""

    kind: str
    position: str = BEGINNING
    seen: list[list[Any]] = field(default_factory=list)
    """The query, the column and the value of each change."""

    def read(self, reader: Reader, most: int | None = None) -> None:
        """Read the changes since the last one that was seen, or the first of them."""
        changes = reader.changes(self)
        for change in islice(changes, most):
            # A reset of groups has no row.
            for name, value in [*change.row.items()][:1]:
                self.seen.append([change.query, name, value])
            self.position = change.position
        if most is None or len(changes) <= most:
            self.position = changes.position()


class Reader:
    """Answers and changes, as any process reads them."""

    def __init__(self, invoker: Invoker, handles: Handles) -> None:
        catalog = invoker.view.catalog
        self.invoker, self.handles = invoker, handles
        templates = Templates(catalog, invoker)
        self._changes = ChangeReader(catalog, invoker, templates, None, lambda _: None)

    def changes(self, follower: Follower) -> ChangeBatch:
        """What is new for a follower."""
        if follower.kind == "feed":
            return self._changes.all(follower.position)
        if follower.kind == "template":
            return self._changes.template(self.handles.template, follower.position)
        return self._changes.query(self.handles.queries[follower.kind], follower.position)


def other_process(root: Path, handles: Handles) -> Reader:
    """A reader with a catalog of its own."""
    return Reader(Invoker(Catalog(root)), handles)


def followers() -> list[Follower]:
    """One of each kind, from the beginning."""
    return [Follower("lazy"), Follower("kept"), Follower("recent"), Follower("template"), Follower("feed")]


def run_step(engine: ManualEngine, name: str, number: int) -> None:
    """A step of the pipeline; the number is that of the rows that it adds."""
    root = engine.catalog.root
    match name:
        case "append":
            engine.append("s", rows(number))
        case "other":
            engine.append("other", [{"m": number}])
        case "sink":
            sink = BatchSink(root, "s", ["n", "k", "ts"], None)
            batch: pa.RecordBatch = to_batch(Schema.parse(SCHEMA, "ts"), rows(number))
            sink.commit([sink.write(iter([batch]))])
        case "take":
            engine.take("s")
        case "take one":
            engine.take("s", 1)
        case "compile":
            engine.compile()
        case "pay":
            engine.pay()
        case "seal":
            engine.seal(everything=True)
        case "trim":
            engine.inbox.trim()
        case "sweep":
            sweep(engine.catalog, abandoned_after=-1, grace=-1)
        case _:
            raise AssertionError(name)


def work_until_killed(root: Path, handles: Handles, steps: Sequence[str], point: str, journal: Path) -> None:
    """Run the steps, arm a crash point, and run the last step; followers read a few changes after each."""
    for module, name, value in workload.LIMITS:
        setattr(module, name, value)
    engine = ManualEngine(root)
    reader, following = Reader(engine.invoker, handles), followers()
    *before, last = steps
    with open(journal, "w") as file:
        for number, name in enumerate([*before, last]):
            if number == len(before):
                Path(os.environ["TUREEN_CRASH_DIR"], point).touch()
            print(json.dumps({"begun": [name, number]}), file=file, flush=True)
            run_step(engine, name, number)
            print(json.dumps({"done": [name, number]}), file=file, flush=True)
            for follower in following:
                follower.read(reader, most=3)
                print(json.dumps({"follower": vars(follower)}), file=file, flush=True)
