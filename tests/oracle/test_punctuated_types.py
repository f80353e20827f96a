"""Joins of punctuated streams over keys of all types, compared with the same joins whose punctuations are ignored.

Both sides may have different types of a kind: a value of the wider one may be one that the other cannot have. The
streams are joined, and what is derived from them, with the punctuations of the first join, is joined again.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.errors import InvalidPunctuation
from tureen.joining.continuous_join import JoinSetting
from tureen.pipeline import arrival
from tureen.position import BEGINNING, Position
from tureen.punctuation import Punctuation, Range
from tureen.results.following import join_purging
from tureen.results.invoke import Invoker
from tureen.soup.change_batches import QueryChanges
from tureen.testing.manual_engine import ManualEngine
from tureen.testing.punctuations import matches

BASE = datetime(2026, 1, 1, tzinfo=UTC)
INDIA = timezone(timedelta(hours=5, minutes=30))
FLOATS = [math.nan, -0.0, 0.0, 0.5, 0.1, math.inf, -math.inf, 1e300, 3e38]
MOMENTS = [BASE, BASE.astimezone(INDIA), BASE + timedelta(microseconds=1), datetime(1, 1, 1, tzinfo=UTC)]
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, 0, 1, 127],
    "INT": [-(1 << 31), -1, 0, 1, 127, 128],
    "BIGINT": [-1, 0, 1, 127, 128, 1 << 31, (1 << 53) + 1, 1 << 53, (1 << 63) - 1, -(1 << 63)],
    "FLOAT": [each for each in FLOATS if each != 1e300],
    "DOUBLE": [*FLOATS, float(1 << 53)],
    "DECIMAL(3,1)": [Decimal("0.0"), Decimal("1.5"), Decimal("-99.9")],
    "DECIMAL(9,1)": [Decimal("0.0"), Decimal("1.5"), Decimal("-99.9"), Decimal("12345678.9")],
    "DECIMAL(9,2)": [Decimal("0.00"), Decimal("1.50"), Decimal("1.55")],
    "DECIMAL(20,1)": [Decimal("0.0"), Decimal("1.5"), Decimal("1234567890123456789.5")],
    "DECIMAL(38,1)": [Decimal("1.5"), Decimal("1234567890123456789.5"), Decimal("9" * 37 + ".5")],
    "STRING": ["", "a", "a%", "A", "%", "ä", "'", "x" * 40, "\x00"],
    "DATE": [date(1, 1, 1), date(1969, 12, 31), date(2026, 1, 1)],
    "TIMESTAMP": MOMENTS,
}
PAIRS = [
    ("BOOLEAN", "BOOLEAN"),
    ("TINYINT", "BIGINT"),
    ("BIGINT", "INT"),
    ("FLOAT", "DOUBLE"),
    ("DOUBLE", "FLOAT"),
    ("BIGINT", "DOUBLE"),
    ("DECIMAL(3,1)", "DECIMAL(9,1)"),
    ("DECIMAL(20,1)", "DECIMAL(38,1)"),
    ("DECIMAL(9,1)", "DECIMAL(20,1)"),
    ("DECIMAL(9,2)", "DECIMAL(9,1)"),
    ("INT", "DECIMAL(9,2)"),
    ("STRING", "STRING"),
    ("DATE", "DATE"),
    ("TIMESTAMP", "TIMESTAMP"),
]
QUERIES = (
    "SELECT a.k AS ka, b.k AS kb, a.n AS n, b.n AS m FROM a JOIN b ON a.k = b.k",
    "SELECT a.k AS ka, b.k AS kb, a.n AS n, b.n AS m FROM a [RANGE 5 SECONDS] JOIN b ON a.k = b.k",
    "SELECT d.ka AS ka, c.k AS kc, d.n AS n, c.n AS m FROM d JOIN c ON d.ka = c.k",
    "SELECT d.kb AS kb, c.k AS kc, d.m AS n, c.n AS m FROM d JOIN c ON d.kb = c.k AND d.n <= c.n",
)


def comparable(value: Any) -> Any:
    """NaN equals itself, and is the greatest number."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


def comparable_punctuation(punctuation: Punctuation) -> Punctuation:
    parts: dict[str, Any] = {}
    for name, part in punctuation.where.items():
        if isinstance(part, Range):
            low, high = (None if end is None else comparable(end) for end in (part.low, part.high))
            parts[name] = Range(low, high, part.low_open, part.high_open)
        else:
            parts[name] = [comparable(value) for value in part] if isinstance(part, list) else comparable(part)
    return Punctuation.of(parts)


class Reader:
    """A follower of a query whose operator uses punctuations, or ignores them."""

    def __init__(self, engine: ManualEngine, handle: str, setting: JoinSetting) -> None:
        self.handle, self.invoker = handle, Invoker(engine.catalog)
        self.invoker.followers.joins.setting = setting
        self.position = BEGINNING
        self.follower = self.invoker.follow(handle)
        self.rows: list[str] = []
        self.promised: list[Punctuation] = []

    def read(self) -> None:
        """Read what is new; no row matches an earlier punctuation."""
        new = self.invoker.new_rows(self.handle, Position.parse(self.position), self.follower, punctuations=True)
        for change in QueryChanges(self.handle, new):
            if change.punctuation is not None:
                self.promised.append(comparable_punctuation(change.punctuation))
                continue
            assert change.row is not None
            row = {name: comparable(value) for name, value in change.row.items()}
            assert not any(matches(each, row) for each in self.promised), (row, self.promised)
            self.rows.append(str(row))
        self.position = new.position()


def random_part(draw: random.Random, kind: str) -> Any:
    values = VALUES[kind]
    low, high = draw.choice(values), draw.choice(values)
    return draw.choice(
        [
            low,
            [low, high],
            Range(low=low, low_open=draw.random() < 0.5),
            Range(high=high, high_open=draw.random() < 0.5),
            Range(low, high, draw.random() < 0.3, draw.random() < 0.3),
        ]
    )


def run_script(seed: int, steps: int = 14) -> None:
    draw = random.Random(seed)
    kinds = draw.choice(PAIRS)
    of_stream = {"a": kinds[0], "b": kinds[1], "c": draw.choice(kinds)}
    with TemporaryDirectory() as folder:
        engine = ManualEngine(Path(folder))
        for name, kind in of_stream.items():
            engine.create_stream(name, f"k {kind}, n INT, ts TIMESTAMP", time="ts", clock="stream")
        engine.derive_stream("d", f"{QUERIES[0].replace(' FROM', ', a.ts AS ts FROM')}", time="ts", clock="stream")
        handles = [engine.register(sql, materialize=False) for sql in QUERIES]
        settings = (JoinSetting.BOTH, JoinSetting.WINDOWS)
        readers = [[Reader(engine, handle, setting) for setting in settings] for handle in handles]
        for step in range(steps):
            name = draw.choice("abc")
            items: list[Any] = [
                {"k": draw.choice([None, *VALUES[of_stream[name]]]), "n": step, "ts": BASE + timedelta(seconds=step)}
                for _ in range(draw.randint(1, 4))
            ]
            if draw.random() < 0.7:
                items.insert(draw.randint(0, len(items)), Punctuation(k=random_part(draw, of_stream[name])))
            # A range may be empty, and BOOLEAN has none.
            with suppress(InvalidPunctuation):
                engine.append(name, items)
            engine.derive()
            if draw.random() < 0.2:
                engine.take(draw.choice("abcd"))
            for reader in draw.choice(readers):
                reader.read()
        for handle, pair in zip(handles, readers, strict=True):
            for reader in pair:
                reader.read()
            alone = engine.invoker.new_rows(handle, Position.parse(BEGINNING)).rows.num_rows
            assert len(pair[0].rows) == alone
            assert Counter(pair[0].rows) == Counter(pair[1].rows)
        engine.close()


@example_settings(6)
@given(seed=st.integers(0, 1 << 32))
def test_punctuations_change_no_row(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_purging, "LAZY_SHARE", 1 << 20)
        patch.setattr(arrival, "TAIL_ROWS", 4)
        run_script(seed)
