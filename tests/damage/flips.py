"""A pot, the answers of its queries, and random flips of its bytes (5000 by `python -m tests.damage.flips 5000`)."""

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
    """Rows, a second apart."""
    return [
        {"k": i * 37 % 4001, "v": i * 11 % 997 / 10, "s": "abc"[i % 3] + "a" * (i % 2), "ts": i * SECOND}
        for i in range(first, first + count)
    ]


def build(root: Path) -> list[str]:
    """Build a pot with indexed, merged and unindexed runs, paid and unpaid debts, a table and a template.

    Returns the handles of its queries.
    """
    engine = ManualEngine(root)
    for name in ("t", "other"):
        engine.create_stream(name, SCHEMA, "ts", clock="stream")
    handles = [engine.register(sql, materialize=number % 3 != 2) for number, sql in enumerate(QUERIES)]
    engine.compile()
    engine.push("t", table(rows(0, ROWS)))
    # These overlap in time, so that merging changes their order of arrival.
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
    components = pot.writable()
    components.tables.create("names", "k INT, name STRING", [{"k": 1, "name": "one"}, {"k": 2, "name": "two"}])
    template = components.templates.register(
        "SELECT k, v FROM t WHERE k = :k AND v > :v", [{"k": 7, "v": 1.0}, {"k": 70, "v": 0.5}], None
    )
    components.templates.add(template, [{"k": 8, "v": 0.5}])
    pot.close()
    return [*handles, *(f"{template}.{number}" for number in range(3))]


def table(pushed: list[dict[str, Any]]) -> pa.Table:
    """Rows as an Arrow table, which is faster to push."""
    columns = {"k": pa.int32(), "v": pa.float64(), "s": pa.string(), "ts": pa.timestamp("us", tz="UTC")}
    return pa.Table.from_pylist(pushed, pa.schema(columns.items()))


def answers(root: Path, handles: list[str]) -> list[Any]:
    """The answer of each query, or its error; the content of the table comes last."""
    _mapped.cache_clear()  # as in a new process
    try:
        catalog = Catalog(root)
    except PotError as error:
        return [error] * (len(handles) + 1)
    results: list[Any] = []
    try:
        invoker = Invoker(catalog)
        for handle in handles:
            try:
                results.append(invoker.invoke(handle).table.to_pydict())
            except PotError as error:
                results.append(error)
        pot = OpenPot(root, mode="read", master="local[1]", nice=0, clock=micros_now)
        try:
            results.append(pot.components.tables.read("names").to_pydict())
        except PotError as error:
            results.append(error)
        finally:
            pot.close()
    finally:
        catalog.close()
    return results


def files(root: Path) -> list[Path]:
    """The files of a pot that answers depend on, in a fixed order."""
    catalog = Catalog(root)
    try:
        with catalog.read() as tx:
            return [root / CATALOG_FILE, *(root / path for path in sorted(named_files(tx)))]
    finally:
        catalog.close()


def flip(root: Path, handles: list[str], expected: list[Any], seed: int, count: int) -> Iterator[str]:
    """Flip `count` random bytes, one at a time; yields descriptions of undetected damage."""
    dice, paths = random.Random(seed), files(root)
    for _ in range(count):
        path = dice.choice(paths)
        written = path.read_bytes()
        offset = dice.randrange(len(written))
        saved = {catalog_file: catalog_file.read_bytes() for catalog_file in root.glob("catalog.*")}
        changed = bytearray(written)
        changed[offset] ^= dice.randrange(1, 256)
        path.write_bytes(changed)
        location = f"byte {offset} of {path.relative_to(root)} ({len(written)} bytes)"
        for number, (answer, expected_answer) in enumerate(zip(answers(root, handles), expected, strict=True)):
            if answer != expected_answer and not isinstance(answer, PotError):
                yield f"{location}: answer {number} is wrong"
        if not is_detected(root):
            yield f"{location}: verify does not detect it"
        path.write_bytes(written)
        for catalog_file, content in saved.items():
            catalog_file.write_bytes(content)


def is_detected(root: Path) -> bool:
    """Whether `verify` reports damage."""
    try:
        return bool(verify(root).damaged)
    except PotError:
        return True


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        pot = Path(directory) / "pot"
        query_handles = build(pot)
        truth = answers(pot, query_handles)
        problems = list(flip(pot, query_handles, truth, int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[1])))
        print("\n".join(problems))
        print(f"{sys.argv[1]} flips, {len(problems)} problems")
        sys.exit(bool(problems))
