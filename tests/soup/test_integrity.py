"""A backup of a pot during pushes: it has every row acknowledged before, and is a complete pot."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import tureen
from tureen.window import from_micros

ROWS = 50


@pytest.mark.usefixtures("spark")
def test_backup_under_load_has_a_prefix_of_the_pushes(tmp_path: Path) -> None:
    acknowledged = 0
    enough, stop = threading.Event(), threading.Event()
    with tureen.open(tmp_path / "pot") as soup:
        soup.create_stream("t", "k INT, ts TIMESTAMP", time="ts", clock="stream")
        soup.create_table("names", "k INT, name STRING", [{"k": 1, "name": "one"}])
        query = soup.register("SELECT k FROM t WHERE k >= 0", name="all", materialize=True)

        def push() -> None:
            nonlocal acknowledged
            while not stop.is_set():
                numbers = range(acknowledged, acknowledged + ROWS)
                soup.push("t", [{"k": number, "ts": from_micros(number * 1_000_000)} for number in numbers])
                acknowledged += ROWS
                if acknowledged >= 40 * ROWS:
                    enough.set()

        pusher = threading.Thread(target=push)
        pusher.start()
        assert enough.wait(60)
        before = acknowledged
        tureen.backup(tmp_path / "pot", tmp_path / "copy")
        stop.set()
        pusher.join()
    assert tureen.verify(tmp_path / "copy").damaged == ()
    with tureen.open(tmp_path / "copy") as copy:
        last = copy.push("t", [{"k": -1, "ts": from_micros(10**12)}])
        answer = copy.query(query.id).invoke(wait_for=last, timeout=120)
        numbers = [row["k"] for row in answer]
        assert numbers == list(range(len(numbers))), "a prefix of what was pushed, each row once"
        assert len(numbers) >= before
        assert copy.table("names").to_pylist() == [{"k": 1, "name": "one"}]
