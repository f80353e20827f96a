"""What a link takes: rows once, in order, with the columns that were asked for; nothing of any other frame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tureen.errors import PeerFailed
from tureen.federation.flow import known_flow
from tureen.federation.frame import FlowFrame
from tureen.federation.link_intake import LinkIntake
from tureen.pot.home_progress import HomeProgress
from tureen.pot.links import create_link
from tureen.pot.streams import create_stream, stream_by_id
from tureen.schema import Schema
from tureen.testing.manual_engine import ManualEngine


class Receiver:
    """A link, and what its replica has."""

    def __init__(
        self, root: Path, schema: str, time: str | None = None, flow: str = "SELECT * FROM s", **options: Any
    ) -> None:
        self.engine = ManualEngine(root)
        with self.engine.catalog.write() as tx:
            parsed = Schema.parse(schema, time)
            settings = {"clock": "wall", "retain": None, "source": None, **options}
            stream = create_stream(tx, "s", parsed, home="alpha", origin="x/1", **settings)
            self.link = create_link(tx, stream, "alpha", flow, known_flow(flow, "s", parsed).partials)
        self.moment = 0
        self.intake = LinkIntake(self.link, self.engine.inbox, lambda: self.moment, HomeProgress())

    def rows(self, ids: list[int], **columns: list[Any]) -> pa.RecordBatch:
        """Rows with ids of the home."""
        arrays = {**columns, "_home": ids}
        return pa.record_batch([pa.array(arrays[f.name], f.type) for f in self.intake.schema], self.intake.schema)

    @property
    def last_time(self) -> int | None:
        """The highest time that answers know."""
        return self.engine.invoker.with_stream(self.link.id, lambda state: state.stream.last_time)

    @property
    def count(self) -> int:
        """The number of tuples of the replica."""
        return self.engine.invoker.next_ids([self.link.id])[0]


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    return Receiver(tmp_path, "a INT, ts TIMESTAMP", "ts")


def test_rows_are_taken_once(receiver: Receiver) -> None:
    frame = FlowFrame(10, None, receiver.rows([3, 7], a=[1, 2], ts=[1, 2]))
    assert [receiver.intake.take(frame), receiver.intake.take(frame)] == [2, 0]
    overlapping = FlowFrame(12, None, receiver.rows([7, 11], a=[2, 3], ts=[2, 3]))
    assert receiver.intake.take(overlapping) == 1
    # A source that is behind this replica has nothing new.
    assert receiver.intake.take(FlowFrame(5)) == 0
    assert receiver.intake.progress.next_id == 12
    assert HomeProgress.parse(receiver.engine.inbox.derived_to(receiver.link.id)).next_id == 12
    assert receiver.count == 3


BAD: dict[str, Callable[[Receiver], FlowFrame]] = {
    "columns": lambda _: FlowFrame(9, None, pa.record_batch([pa.array([1], pa.int64())], ["_home"])),
    "not in order": lambda receiver: FlowFrame(9, None, receiver.rows([2, 1], a=[1, 2], ts=[1, 2])),
    "ids of a flow's rows": lambda receiver: FlowFrame(9, None, receiver.rows([1, 1], a=[1, 2], ts=[1, 2])),
    "are not": lambda receiver: FlowFrame(9, None, receiver.rows([9], a=[1], ts=[1])),
    "has no id": lambda receiver: FlowFrame(9, None, receiver.rows([None], a=[1], ts=[1])),  # type: ignore[list-item]
    "does not fit": lambda receiver: FlowFrame(9, None, receiver.rows([1], a=[1], ts=[None])),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_rows_are_refused(receiver: Receiver, message: str) -> None:
    with pytest.raises(PeerFailed, match=message):
        receiver.intake.take(BAD[message](receiver))
    assert (receiver.count, receiver.intake.progress) == (0, HomeProgress())


def test_the_time_of_the_home_is_stored_without_rows(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path, "a INT, ts TIMESTAMP", "ts", clock="stream")
    receiver.intake.take(FlowFrame(5, 100))
    assert (receiver.last_time, receiver.count) == (100, 0)
    receiver.intake.take(FlowFrame(6, 400, receiver.rows([5], a=[1], ts=[300])))
    assert (receiver.last_time, receiver.count) == (400, 1)
    receiver.engine.take_everything()
    assert receiver.last_time == 400
    with receiver.engine.catalog.read() as tx:
        stored = stream_by_id(tx, receiver.link.id)
    assert stored is not None
    assert stored.last_time == 400


def test_progress_without_rows_is_stored_now_and_then(receiver: Receiver) -> None:
    receiver.intake.take(FlowFrame(5, 100))
    assert receiver.engine.inbox.derived_to(receiver.link.id) is None
    receiver.moment = 20_000_000
    receiver.intake.take(FlowFrame(6, 100))
    assert receiver.engine.inbox.derived_to(receiver.link.id) == str(HomeProgress(6, 100))


def test_times_of_arrival_are_those_of_the_home(tmp_path: Path) -> None:
    receiver = Receiver(tmp_path, "a INT")
    receiver.intake.take(FlowFrame(9, None, receiver.rows([1, 2, 5], a=[1, 2, 3], _arrival=[10, 10, 20])))
    assert (receiver.last_time, receiver.count) == (20, 3)
    with pytest.raises(PeerFailed, match="has no time"):
        receiver.intake.take(FlowFrame(12, None, receiver.rows([10], a=[1], _arrival=[None])))


def test_partial_aggregates_stand_for_tuples_that_are_not_stored(tmp_path: Path) -> None:
    flow = "SELECT count(*), sum(a) FROM s [TUMBLE 1 MINUTE]"
    receiver = Receiver(tmp_path, "a INT, ts TIMESTAMP", "ts", flow)
    assert receiver.intake.request.punctuations is None

    def taken(next_id: int, ids: list[int], firsts: list[Any]) -> int:
        values: dict[str, list[Any]] = {"ts": ids, "_count": ids, "_sum:a": ids, "_first": firsts}
        return receiver.intake.take(FlowFrame(next_id, None, receiver.rows(ids, **values)))

    assert taken(10, [3, 7], [0, 0]) == 2
    assert taken(10, [3, 7], [0, 0]) == 0
    wrong: list[tuple[list[int], list[Any]]] = [([12], [9]), ([12], [13]), ([12], [None]), ([12, 13], [11, 10])]
    for ids, firsts in wrong:
        with pytest.raises(PeerFailed, match="stand for tuples that are stored"):
            taken(20, ids, firsts)
    assert receiver.count == 2
    assert taken(20, [12, 13], [10, 10]) == 2
