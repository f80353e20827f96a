"""Commits are visible to all processes even before the word in shared memory is updated."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

import tureen
from tureen.errors import Unauthorized, UnknownQuery
from tureen.position import Position
from tureen.pot import catalog as catalog_module
from tureen.pot import commit_token
from tureen.pot.catalog import Catalog
from tureen.pot.pot_progress import PotProgress
from tureen.pot.stream_cache import StreamCache
from tureen.pot.streams import create_stream, drop_stream, find_stream
from tureen.pot.tokens import create_token, revoke_token
from tureen.schema import Schema
from tureen.service.authorization import Authenticator
from tureen.service.watcher import ProgressWatcher
from tureen.soup.served_soup import ServedSoup
from tureen.testing.manual_engine import ManualEngine

HeldCommit = Callable[[Callable[[], object]], AbstractContextManager[None]]


@pytest.fixture
def held_commit(monkeypatch: pytest.MonkeyPatch) -> HeldCommit:
    """Runs a block while a commit is paused after SQLite's commit and before the word is updated."""
    monkeypatch.setattr(commit_token, "CHECK_INTERVAL", float("inf"))

    @contextmanager
    def hold(commit: Callable[[], object]) -> Iterator[None]:
        committed, resume = threading.Event(), threading.Event()

        def point(_: str) -> None:
            if threading.current_thread() is thread:
                committed.set()
                resume.wait()

        monkeypatch.setattr(catalog_module, "hold_point", point)
        thread = threading.Thread(target=commit)
        thread.start()
        try:
            committed.wait()
            yield
        finally:
            resume.set()
            thread.join()

    return hold


@pytest.fixture
def feeder(tmp_path: Path) -> Iterator[ManualEngine]:
    """The process that commits, as seen by the readers."""
    feeder = ManualEngine(tmp_path / "pot")
    feeder.create_stream("s", "n INT")
    feeder.create_stream("t", "n INT")
    yield feeder
    feeder.close()


@pytest.fixture
def soup(feeder: ManualEngine) -> Iterator[tureen.Soup]:
    """A reader of the same pot."""
    with tureen.open(feeder.catalog.root, mode="read") as opened:
        yield opened


def _nothing() -> None:
    return None


def test_an_answer_has_the_awaited_position(feeder: ManualEngine, soup: tureen.Soup, held_commit: HeldCommit) -> None:
    query = soup.query(feeder.register("SELECT n FROM s"))
    assert len(query.invoke()) == 0
    with held_commit(lambda: feeder.push("s", [{"n": 1}])):
        position = str(Position(feeder.catalog.seq()))
        assert len(query.invoke(wait_for=position, timeout=60)) == 1
        assert query.invoke().position >= position


def test_an_answer_is_not_older_than_status_or_other_answers(
    feeder: ManualEngine, soup: tureen.Soup, held_commit: HeldCommit
) -> None:
    first, second = (soup.query(feeder.register(f"SELECT n FROM {stream}")) for stream in "st")
    assert len(first.invoke()) == 0

    feeder.push("t", [{"n": 1}])
    assert len(second.invoke()) == 1
    with held_commit(lambda: feeder.push("s", [{"n": 1}])):
        assert soup.status()["streams"]["s"]["rows"] == 1
        assert len(first.invoke()) == 1
        assert second.invoke().position >= soup.status()["position"]


def test_an_unregistered_query_is_not_answered(
    feeder: ManualEngine, soup: tureen.Soup, held_commit: HeldCommit
) -> None:
    query = soup.query(feeder.register("SELECT n FROM s"))
    query.invoke()
    with held_commit(lambda: feeder.unregister(query.id)):
        assert soup.queries() == []
        with pytest.raises(UnknownQuery):
            query.invoke()


def test_a_feed_skips_no_row(feeder: ManualEngine, soup: tureen.Soup, held_commit: HeldCommit) -> None:
    query = soup.query(feeder.register("SELECT n FROM s"))
    query.invoke()
    reader = ServedSoup.of(soup).calls.change_reader
    start = reader.all(None).position()
    assert len(reader.all(start)) == 0
    with held_commit(lambda: feeder.push("s", [{"n": 1}])):
        page = reader.all(start)
    numbers = [change.row["n"] for change in page]
    numbers += [change.row["n"] for change in reader.all(page.position())]
    assert numbers == [1]


def test_followers_and_waiters_are_notified(feeder: ManualEngine, soup: tureen.Soup, held_commit: HeldCommit) -> None:
    query = soup.query(feeder.register("SELECT n FROM s"))
    changes = query.changes(timeout=60)
    with held_commit(lambda: feeder.push("s", [{"n": 1}])):
        assert next(changes).row == {"n": 1}
    catalog = Catalog(feeder.catalog.root)

    async def notice() -> bool:
        watcher = ProgressWatcher(PotProgress(catalog), _nothing, tuple)
        watcher.start()
        version = watcher.version
        await asyncio.sleep(0)
        with held_commit(lambda: feeder.push("s", [{"n": 2}])):
            moved = await watcher.wait_for_news(version, 5)
        watcher.close()
        return moved

    assert asyncio.run(notice())
    catalog.close()


def test_a_revoked_token_is_rejected(feeder: ManualEngine, held_commit: HeldCommit) -> None:
    catalog = Catalog(feeder.catalog.root)
    authenticator = Authenticator(catalog, open_to_all=False)
    with feeder.catalog.write() as tx:
        token, text = create_token(tx, "anna", ["read"], now=0)
    headers = [(b"authorization", f"Bearer {text}".encode())]
    request = HTTPConnection({"type": "http", "headers": headers})
    assert authenticator.authenticate(request, None).principal == "anna"  # type: ignore[arg-type]

    def revoke() -> None:
        with feeder.catalog.write() as tx:
            revoke_token(tx, token.id)

    with held_commit(revoke), pytest.raises(Unauthorized):
        authenticator.authenticate(request, None)  # type: ignore[arg-type]
    catalog.close()


def test_a_recreated_stream_is_found(feeder: ManualEngine, held_commit: HeldCommit) -> None:
    catalog = Catalog(feeder.catalog.root)
    streams = StreamCache(catalog)
    before = streams.find("s")

    def recreate() -> None:
        with feeder.catalog.write() as tx:
            drop_stream(tx, find_stream(tx, "s"))
            create_stream(tx, "s", Schema.parse("n INT"), clock="wall", retain=None, source=None)

    with held_commit(recreate):
        after = streams.find("s")
    assert after.stream.id != before.stream.id
    assert after.seq > before.seq
    catalog.close()


DIES = """
import sys
from pathlib import Path
from tureen.testing.manual_engine import ManualEngine
engine = ManualEngine(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.readline()
engine.push("s", [{"n": 1}])
"""


def test_the_commit_of_a_process_that_died_before_the_update(
    feeder: ManualEngine, soup: tureen.Soup, crash_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_token, "CHECK_INTERVAL", float("inf"))
    query = soup.query(feeder.register("SELECT n FROM s"))
    command = [sys.executable, "-c", DIES, str(feeder.catalog.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert len(query.invoke()) == 0
        (crash_dir / "commit.before_word").touch()
        other.communicate("\n")
    assert other.returncode == -9
    soup.wait(str(Position(feeder.catalog.seq())), timeout=60)
    assert len(query.invoke()) == 1
    for number in range(3):
        feeder.push("s", [{"n": number}])
        assert len(query.invoke()) == 2 + number
