"""Peers that do not answer: nobody waits for them twice, and not all threads at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tureen.errors import TooMany, TureenError, Unreachable
from tureen.federation import peering as module
from tureen.federation.local_neighbour import LocalNeighbour
from tureen.federation.neighbour import FLOWS_PATH, PeerInfo
from tureen.federation.peering import MOST_ASKING, MOST_QUESTIONS, Peering
from tureen.pot.catalog import Catalog, micros_now
from tureen.pot.files import make_private_directory
from tureen.pot.peers import Peer, add_peer


class MuteNeighbour(LocalNeighbour):
    """A peer that accepts calls and answers none of them until it is released."""

    def __init__(self) -> None:
        self.calls = 0
        self.released = threading.Event()

    def info(self, seconds: float | None = None) -> PeerInfo:  # noqa: ARG002
        """Answer late."""
        self.calls += 1
        self.released.wait()
        return PeerInfo("mute", "pot")

    def request(self, *_: Any) -> Any:
        """Answer never."""
        self.calls += 1
        raise Unreachable("no answer")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    make_private_directory(tmp_path / "pot")
    with Catalog(tmp_path / "pot", create=True) as catalog:
        with catalog.write() as tx:
            add_peer(tx, Peer("mute", "http://nowhere"))
        yield catalog


def until(is_reached: Any) -> None:
    while not is_reached():
        threading.Event().wait(0.005)


def state_of(peering: Peering) -> str:
    (state,) = peering.states()
    return state.state


def test_nobody_waits_for_a_peer_that_is_known_to_be_away(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASK_EVERY", 1e6)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.05)
    mute, stopping = MuteNeighbour(), threading.Event()
    peering = Peering(catalog, lambda _: mute, micros_now)
    thread = threading.Thread(target=peering.run, args=(stopping,))
    thread.start()
    until(lambda: state_of(peering) == "away")
    calls = mute.calls
    told = peering.infos()
    assert "is away: no answer from 'mute' in time" in str(told["mute"])
    with pytest.raises(Unreachable, match="is away"):
        peering.ask("mute", "PUT", FLOWS_PATH, {})
    assert mute.calls == calls, "it was not asked again"
    mute.released.set()
    until(lambda: state_of(peering) == "connected")
    assert isinstance(peering.infos()["mute"], PeerInfo)
    stopping.set()
    peering.close()
    thread.join()


def test_a_request_without_an_answer_makes_a_peer_away(catalog: Catalog) -> None:
    mute = MuteNeighbour()
    with closing(Peering(catalog, lambda _: mute, micros_now)) as peering:
        with pytest.raises(Unreachable, match="no answer"):
            peering.ask("mute", "PUT", FLOWS_PATH, {})
        assert state_of(peering) == "away"


def test_many_calls_that_ask_at_the_same_time_get_an_answer(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ASK_EVERY", 1e6)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 600.0)
    mute, stopping = MuteNeighbour(), threading.Event()
    told: list[object] = []
    with closing(Peering(catalog, lambda _: mute, micros_now)) as peering:
        threads = [threading.Thread(target=peering.run, args=(stopping,))]
        threads[0].start()
        until(lambda: mute.calls == 1)
        threads += [threading.Thread(target=lambda: told.append(peering.infos()["mute"])) for _ in range(12)]
        for thread in threads[1:]:
            thread.start()
        until(lambda: mute.calls == MOST_QUESTIONS)
        mute.released.set()
        for thread in threads[1:]:
            thread.join()
        assert [type(answer) for answer in told] == [PeerInfo] * 12
        stopping.set()
        peering.wake()
        threads[0].join()


def test_a_peer_that_cannot_be_connected_to_does_not_affect_others(catalog: Catalog) -> None:
    with catalog.write() as tx:
        add_peer(tx, Peer("broken", "http://nowhere"))

    def connect(peer: Peer) -> MuteNeighbour:
        if peer.name == "broken":
            raise TureenError("its token cannot be read")
        return mute

    mute = MuteNeighbour()
    mute.released.set()
    with closing(Peering(catalog, connect, micros_now)) as peering:
        told = peering.infos()
    assert isinstance(told["mute"], PeerInfo)
    assert "its token cannot be read" in str(told["broken"])


def test_not_all_threads_wait_for_peers(catalog: Catalog) -> None:
    with closing(Peering(catalog, lambda _: MuteNeighbour(), micros_now)) as peering, ExitStack() as stack:
        for _ in range(MOST_ASKING):
            stack.enter_context(peering.asking())
        with pytest.raises(TooMany, match="too many calls wait for other servers"):
            stack.enter_context(peering.asking())
        stack.pop_all().close()
        with peering.asking():
            pass
