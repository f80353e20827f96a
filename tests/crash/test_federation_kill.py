"""SIGKILL around every write of a link: after a restart, answers over a remote stream are those of its home."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.crash.processes import run_until_killed
from tests.federation.servers_in_process import Site
from tureen.federation.needs import Need
from tureen.federation.placement import DirectPlacement, LinkSource
from tureen.position import BEGINNING, Position
from tureen.pot.links import Link
from tureen.punctuation import Punctuation
from tureen.sharing.selection_text import selection_text
from tureen.testing.manual_engine import ManualClock

BASE = datetime(2026, 1, 1, tzinfo=UTC)
NARROW = "SELECT v FROM s WHERE v > 3 AND k = 1 BEGIN NOW - 20 SECONDS END NOW"
FINAL = "SELECT v, count(*) AS n FROM s WHERE v > 3 AND k = 1 GROUP BY v EMIT FINAL"
WIDE = "SELECT k, count(*) AS n FROM s WHERE v > 1 GROUP BY k"
STEPS = (
    "SELECT window_start, k, count(*) AS n, avg(v) AS a FROM s [RANGE 6 SECONDS SLIDE 2 SECONDS] WHERE v > 1 GROUP BY k"
)

CRASH_POINTS = [
    "link.before_create",
    "link.after_create",
    "register.after_commit",
    "link.before_push",
    "push.after_sync",
    "push.after_publish",
    "link.after_push",
    "sink.before_commit",
    "sink.after_commit",
    "link.before_drop",
]


class PartialPlacement(DirectPlacement):
    """Places partial aggregates wherever they will do, at the home of the stream."""

    def place(self, need: Need, links: Sequence[Link], *, ask: bool = True) -> Link | LinkSource:
        """A link with the flow that is needed, or one from the home."""
        if need.partials is None:
            return super().place(need, links, ask=ask)
        flow = selection_text(need.stream.visible, need.partials)
        assert need.stream.home is not None
        return next((link for link in links if link.flow == flow), LinkSource(need.stream.home, flow))


def open_sites(root: Path) -> tuple[Site, Site]:
    """The home of a stream, and a server that receives it."""
    sites: dict[str, Site] = {}
    clock = ManualClock(BASE + timedelta(minutes=1))
    home, receiver = (Site(name, root, sites, clock) for name in ("alpha", "beta"))
    receiver.federation.placement = PartialPlacement(receiver.federation.infos)
    if not home.has_stream("s"):
        home.engine.create_stream("s", "k INT, v INT, ts TIMESTAMP", time="ts", clock="stream", retain="1 hour")
    if not receiver.federation.neighbours:
        receiver.receive_from(home, "s")
    return home, receiver


def receive(root: Path) -> None:
    """Push, register, receive, take and unregister, until a crash point is reached."""
    home, receiver = open_sites(root)
    push(home, 0, 6)
    receiver.register(FINAL, "final")
    receiver.register(NARROW, "narrow")
    receiver.register(STEPS, "steps")
    home.push("s", [Punctuation(v=[4, 5])])
    receiver.federation.step()
    push(home, 6, 12)
    home.push("s", [Punctuation(v=7)])
    receiver.federation.step()
    receiver.engine.take_everything()
    wide = receiver.register(WIDE, "wide")
    receiver.federation.step()
    receiver.unregister(wide)
    receiver.federation.sweep()


def push(home: Site, first: int, end: int) -> None:
    home.push("s", [{"k": n % 2, "v": n, "ts": BASE + timedelta(seconds=n - 3 * (n % 3))} for n in range(first, end)])


def punctuations(site: Site) -> list[str]:
    """All punctuations of the rows that are received, in order."""
    handle = site.register("SELECT v FROM s WHERE v > 3 AND k = 1")
    new = site.engine.invoker.new_rows(handle, Position.parse(BEGINNING), punctuations=True)
    return [str(placed.pattern) for placed in new.punctuations]


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_kill_and_restart(tmp_path: Path, crash_dir: Path, point: str) -> None:
    (crash_dir / point).touch()
    run_until_killed(receive, tmp_path)
    home, receiver = open_sites(tmp_path)
    for round_number in range(2):
        push(home, 100 + round_number, 106 + round_number)
        home.push("s", [Punctuation(v=101 + 2 * round_number)])
        for sql, name in ((NARROW, "narrow"), (WIDE, "wide"), (FINAL, "final"), (STEPS, "steps")):
            received = receiver.standing(name) or receiver.register(sql, name)
            receiver.federation.sweep()
            receiver.federation.step()
            answer, expected = receiver.invoke(received), home.answer(sql)
            assert (answer.note, answer.complete) == (None, expected.complete)
            assert answer.table.to_pylist() == expected.table.to_pylist()
            assert answer.window == expected.window
        receiver.engine.take_everything()
    assert len(receiver.federation.links()) == 3
    assert punctuations(receiver) == punctuations(home)
    for site in (home, receiver):
        site.close()
