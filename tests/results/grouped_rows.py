"""Random rows of a stream whose groups are followed."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tureen.testing.manual_engine import ManualClock

BASE = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = "k INT, f DOUBLE, v DOUBLE, n INT, ts TIMESTAMP"

ROW = st.fixed_dictionaries(
    {
        "k": st.sampled_from([None, 1, 2, 3]),
        "f": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
        "v": st.sampled_from([None, 0.1, 0.2, 3.3, 9.0, 1e16, -1e16]),
        "n": st.integers(0, 4),
        "late": st.sampled_from([0, 0, 0, 1, 3, 12, -4]),
    }
)


def timed_rows(rows: list[dict[str, Any]], now: ManualClock, ago: timedelta = timedelta()) -> list[dict[str, Any]]:
    """Rows of `ROW` as they are pushed: with times before the clock's, each as late as it says."""
    return [
        {**{name: row[name] for name in "kfvn"}, "ts": now.moment - timedelta(seconds=row["late"]) - ago}
        for row in rows
    ]
