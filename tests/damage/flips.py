"""A pot, what its queries answer, and random flips of its bytes; `python -m tests.damage.flips 5000` makes so many."""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tureen.errors import PotError
from tureen.pot.catalog import CATALOG_FILE, Catalog, micros_now
from tureen.pot.damage import named_files
from tureen.pot.members import _mapped
from tureen.results.invoke import Invoker
from tureen.soup.integrity import verify
from tureen.soup.open_pot import OpenPot
from tureen.testing.manual_engine import ManualEngine

SCHEMA = "k INT, v DOUBLE, s STRING, ts TIMESTAMP"
ROWS = 6000
SECOND = 1_000_000

QUERIES = [
    "SELECT k, v FROM t WHERE k < 300",
    "SELECT k, s FROM t WHERE v > 50 AND s = 'b'",
    "SELECT k FROM t WHERE s LIKE '%a%' AND k < 1000",
    "SELECT * FROM t WHERE k BETWEEN 100 AND 120 BEGIN NOW - 100 MINUTES END NOW",
    "SELECT k FROM t WHERE v < 5 BEGIN NOW - 50 ROWS END NOW",
    "SELECT s, count(*) AS n, sum(k) AS total FROM t GROUP BY s",
    "SELECT count(*) AS n, sum(v) AS total FROM t WHERE k < 2000 BEGIN NOW - 90 MINUTES END NOW",
    "SELECT max(v) AS top FROM other WHERE k > 5",
]


def rows(first: int, count: int) -> list[dict[str, Any]]:
    """So many rows, a second apart."""
    return [
        {"k": i * 37 % 4001, "v": i * 11 % 997 / 10, "s": "abc"[i % 3] + "a" * (i % 2), "ts": i * SECOND}
        for i in range(first, first + count)
    ]


def build(root: Path) -> list[str]:
    """A pot with indexed, merged and unindexed runs, paid and unpaid debts, a table and a template; its handles."""
    engine = ManualEngine(root)
    for name in ("t", "other"):
        engine.create_stream(name, SCHEMA, "ts", clock="stream")
    handles = [engine.register(sql, materialize=number % 3 != 2) for number, sql in enumerate(QUERIES)]
    engine.compile()
    engine.push("t", table(rows(0, ROWS)))
    # These come late and overlap, so that merging puts them out of their order of arrival.
    engine.push("t", table(rows(3000, ROWS)))
    engine.seal(everything=True)
    engine.push("t", table(rows(9000, ROWS)), parts=2)
    handles.append(engine.register("SELECT k, v FROM t WHERE k > 3900"))
    engine.pay()
    handles.append(engine.register("SELECT k, v FROM t WHERE k = 77"))
    for number in range(3):
        engine.push("t", table(rows(15_000 + 20 * number, 20)))
        engine.push("other", table(rows(100 * number, 100)))
    engine.close()
    pot = OpenPot(root, mode="auto", master="local[1]", nice=0, clock=micros_now)
    parts = pot.own()
    parts.tables.create("names", "k INT, name STRING", [{"k": 1, "name": "one"}, {"k": 2, "name": "two"}])
    template = parts.templates.register(
        "SELECT k, v FROM t WHERE k = :k AND v > :v", [{"k": 7, "v": 1.0}, {"k": 70, "v": 0.5}], None
    )
    parts.templates.add(template, [{"k": 8, "v": 0.5}])
    pot.close()
    return [*handles, *(f"{template}.{number}" for number in range(3))]


def table(pushed: list[dict[str, Any]]) -> pa.Table:
    """Rows as Arrow, which is quicker to take."""
    columns = {"k": pa.int32(), "v": pa.float64(), "s": pa.string(), "ts": pa.timestamp("us", tz="UTC")}
    return pa.Table.from_pylist(pushed, pa.schema(columns.items()))


def answers(root: Path, handles: list[str]) -> list[Any]:
    """What each query answers, or the error that it ends with; the table comes last."""
    _mapped.cache_clear()  # as in a new process
    try:
        catalog = Catalog(root)
    except PotError as error:
        return [error] * (len(handles) + 1)
    found: list[Any] = []
    try:
        invoker = Invoker(catalog)
        for handle in handles:
            try:
                found.append(invoker.invoke(handle).table.to_pydict())
            except PotError as error:
                found.append(error)
        pot = OpenPot(root, mode="read", master="local[1]", nice=0, clock=micros_now)
        try:
            found.append(pot.parts.tables.read("names").to_pydict())
        except PotError as error:
            found.append(error)
        finally:
            pot.close()
    finally:
        catalog.close()
    return found


def files(root: Path) -> list[Path]:
    """The files of a pot that hold what answers are made of, in a fixed order."""
    catalog = Catalog(root)
    try:
        with catalog.read() as tx:
            return [root / CATALOG_FILE, *(root / path for path in sorted(named_files(tx)))]
    finally:
        catalog.close()


def flip(root: Path, handles: list[str], expected: list[Any], seed: int, count: int) -> Iterator[str]:
    """Flip so many random bytes, one at a time; yields what went wrong."""
    dice, paths = random.Random(seed), files(root)
    for _ in range(count):
        path = dice.choice(paths)
        written = path.read_bytes()
        place = dice.randrange(len(written))
        saved = {other: other.read_bytes() for other in root.glob("catalog.*")}
        changed = bytearray(written)
        changed[place] ^= dice.randrange(1, 256)
        path.write_bytes(changed)
        where = f"byte {place} of {path.relative_to(root)} ({len(written)} bytes)"
        for number, (found, right) in enumerate(zip(answers(root, handles), expected, strict=True)):
            if found != right and not isinstance(found, PotError):
                yield f"{where}: answer {number} is wrong"
        if not noticed(root):
            yield f"{where}: verify does not find it"
        path.write_bytes(written)
        for other, content in saved.items():
            other.write_bytes(content)


def noticed(root: Path) -> bool:
    """Whether verifying says that something is damaged."""
    try:
        return bool(verify(root).damaged)
    except PotError:
        return True


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        pot = Path(directory) / "pot"
        made = build(pot)
        truth = answers(pot, made)
        problems = list(flip(pot, made, truth, int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[1])))
        print("\n".join(problems))
        print(f"{sys.argv[1]} flips, {len(problems)} problems")
        sys.exit(bool(problems))
