"""One suite over all ways into a pot: the same outcomes, the same defaults, the same errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tureen
from tests.behaviour.doors import CommandDoor, Door, HttpDoor, PythonDoor, Refused, SqlDoor
from tests.service.running import Running

SCHEMA = "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"
ROWS = [
    {"sym": "A", "price": 1.5, "qty": 1, "ts": "2026-01-01T00:00:00Z"},
    {"sym": "B", "price": 2.5, "qty": 2, "ts": "2026-01-01T00:00:01Z"},
]

Names = Callable[[str], str]

DOORS = ("open", "connect", "http", "sql", "command")


def open_door(which: str, served: Running) -> Iterator[Door]:
    """One of the doors, for a while."""
    match which:
        case "open":
            yield PythonDoor(served.soup)
        case "http":
            http = HttpDoor(served)
            yield http
            http.close()
        case "command" | "process":
            yield CommandDoor(served, process=which == "process")
        case _:
            with tureen.connect(served.url, served.tokens["admin"]) as client:
                yield PythonDoor(client) if which == "connect" else SqlDoor(client)


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, served_pot: Running) -> Iterator[Door]:
    """Each door."""
    yield from open_door(request.param, served_pot)


@pytest.fixture(params=[*DOORS, "process"])
def any_door(request: pytest.FixtureRequest, served_pot: Running) -> Iterator[Door]:
    """Each door, and the command line in processes of its own."""
    yield from open_door(request.param, served_pot)


@pytest.fixture
def stream(served_pot: Running, fresh: Names) -> str:
    """A stream of trades, made by another door than the one under test."""
    name = fresh("door")
    served_pot.soup.create_stream(name, SCHEMA, time="ts")
    return name


def test_from_a_stream_to_an_answer_and_back(any_door: Door, fresh: Names) -> None:
    stream, name = fresh("s"), fresh("q")
    any_door.create_stream(stream, SCHEMA, time="ts")
    sql = f"SELECT sym, price FROM {stream} WHERE qty > 1"
    handle = any_door.register(sql, name=name)
    pushed = any_door.push(stream, ROWS)
    assert pushed.added == 2
    assert any_door.invoke(name, wait_for=pushed.position) == [{"sym": "B", "price": 2.5}]
    assert any_door.invoke(handle) == [{"sym": "B", "price": 2.5}]
    listed = next(one for one in any_door.queries() if one["id"] == handle)
    assert (listed["name"], listed["sql"], listed["state"]) == (name, sql, "standing")
    plan = any_door.explain(name)
    assert (plan["id"], plan["stream"], plan["factors"]) == (handle, stream, ["qty >= 2"])
    any_door.unregister(name)
    with pytest.raises(Refused):
        any_door.invoke(handle)
    any_door.drop_stream(stream)
    assert stream not in [one["name"] for one in any_door.streams()]


def test_by_default_the_engine_decides_what_is_kept_ready(door: Door, stream: str) -> None:
    assert door.explain(door.register(f"SELECT * FROM {stream}"))["materialize"] == "auto"


@pytest.mark.parametrize("materialize", [True, False, "auto"])
def test_or_whoever_registers_does(door: Door, stream: str, materialize: bool | str) -> None:
    if isinstance(door, SqlDoor):
        pytest.skip("a statement cannot say it")
    assert door.explain(door.register(f"SELECT * FROM {stream}", materialize=materialize))["materialize"] == materialize


def test_a_stream_is_described_alike(door: Door, served_pot: Running, stream: str) -> None:
    described = [one for one in door.streams() if one["name"] == stream]
    assert described == [one for one in served_pot.soup.streams() if one["name"] == stream]


def test_a_stream_that_is_there_is_left_as_it_is(door: Door, stream: str, fresh: Names) -> None:
    door.create_stream(stream, "other INT", if_not_exists=True)
    assert next(one for one in door.streams() if one["name"] == stream)["time"] == "ts"
    made = fresh("s")
    door.create_stream(made, "n INT", if_not_exists=True)
    assert made in [one["name"] for one in door.streams()]


def test_a_repeated_push_adds_nothing_and_says_so(door: Door, stream: str) -> None:
    first = door.push(stream, ROWS, key="k")
    again = door.push(stream, ROWS, key="k")
    assert (first.added, again.added) == (2, 0)
    query = door.register(f"SELECT qty FROM {stream}")
    assert door.invoke(query, wait_for=again.position) == [{"qty": 1}, {"qty": 2}]


WRONG: dict[str, Callable[[Door, str], Any]] = {
    "a column that is not there": lambda door, stream: door.register(f"SELECT prize FROM {stream}"),
    "a stream that is not there": lambda door, _: door.register("SELECT a FROM nowhere"),
    "types that do not fit": lambda door, stream: door.register(f"SELECT sym FROM {stream} WHERE ts > 5"),
    "no SQL": lambda door, stream: door.register(f"SELECT FROM {stream}"),
    "a stream's name twice": lambda door, stream: door.create_stream(stream.upper(), "n INT"),
    "a type that is not there": lambda door, _: door.create_stream("bad", "n NOSUCH"),
    "a time column that is not there": lambda door, _: door.create_stream("bad", "n INT", time="ts"),
    "a query's name twice": lambda door, stream: [door.register(f"SELECT * FROM {stream}", name="twice") for _ in "12"],
    "a query that is not there": lambda door, _: door.invoke("nothing"),
    "no plan": lambda door, _: door.explain("nothing"),
    "no query to unregister": lambda door, _: door.unregister("nothing"),
    "no stream to drop": lambda door, _: door.drop_stream("nowhere"),
    "rows for no stream": lambda door, _: door.push("nowhere", ROWS),
    "a row that does not fit": lambda door, stream: door.push(stream, [{**ROWS[0], "qty": "many"}]),
    "a column more": lambda door, stream: door.push(stream, [{**ROWS[0], "prize": 1}]),
    "a key for other rows": lambda door, stream: [door.push(stream, ROWS[:n], key="same") for n in (1, 2)],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_alike(door: Door, served_pot: Running, stream: str, wrong: str) -> None:
    with pytest.raises(Refused) as told:
        WRONG[wrong](door, stream)
    with pytest.raises(Refused) as expected:
        WRONG[wrong](PythonDoor(served_pot.soup), stream)
    assert told.value == expected.value
