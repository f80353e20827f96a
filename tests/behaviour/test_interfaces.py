"""One suite over all interfaces of a pot: the same results, defaults and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tureen
from tests.behaviour.interfaces import (
    CommandLine,
    HttpInterface,
    Interface,
    InterfaceError,
    PythonInterface,
    SqlInterface,
)
from tests.service.running import RunningServer
from tureen.plan_hint import PlanHint

SCHEMA = "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"
ROWS = [
    {"sym": "A", "price": 1.5, "qty": 1, "ts": "2026-01-01T00:00:00Z"},
    {"sym": "B", "price": 2.5, "qty": 2, "ts": "2026-01-01T00:00:01Z"},
]

Names = Callable[[str], str]

INTERFACES = ("open", "connect", "http", "sql", "command")


def open_interface(name: str, served: RunningServer) -> Iterator[Interface]:
    """An interface, closed at the end of the generator."""
    match name:
        case "open":
            yield PythonInterface(served.soup)
        case "http":
            http = HttpInterface(served)
            yield http
            http.close()
        case "command" | "process":
            yield CommandLine(served, new_process=name == "process")
        case _:
            with tureen.connect(served.url, served.tokens["admin"]) as client:
                yield PythonInterface(client) if name == "connect" else SqlInterface(client)


@pytest.fixture(params=INTERFACES)
def interface(request: pytest.FixtureRequest, served_pot: RunningServer) -> Iterator[Interface]:
    """Each interface."""
    yield from open_interface(request.param, served_pot)


@pytest.fixture(params=[*INTERFACES, "process"])
def any_interface(request: pytest.FixtureRequest, served_pot: RunningServer) -> Iterator[Interface]:
    """Each interface, and the command line with a new process for each call."""
    yield from open_interface(request.param, served_pot)


@pytest.fixture
def stream(served_pot: RunningServer, fresh: Names) -> str:
    """A stream of trades, created independently of the interface under test."""
    name = fresh("trades")
    served_pot.soup.create_stream(name, SCHEMA, time="ts")
    return name


def test_life_of_a_query(any_interface: Interface, fresh: Names) -> None:
    stream, name = fresh("s"), fresh("q")
    any_interface.create_stream(stream, SCHEMA, time="ts")
    sql = f"SELECT sym, price FROM {stream} WHERE qty > 1"
    handle = any_interface.register(sql, name=name)
    pushed = any_interface.push(stream, ROWS)
    assert pushed.added == 2
    assert any_interface.invoke(name, wait_for=pushed.position) == [{"sym": "B", "price": 2.5}]
    assert any_interface.invoke(handle) == [{"sym": "B", "price": 2.5}]
    listed = next(query for query in any_interface.queries() if query["id"] == handle)
    assert (listed["name"], listed["sql"], listed["state"]) == (name, sql, "standing")
    plan = any_interface.explain(name)
    assert (plan["id"], plan["stream"], plan["factors"]) == (handle, stream, ["qty >= 2"])
    (explained,) = any_interface.why(name, "sym = 'A'")["tuples"]
    assert [reason["text"] for reason in explained["reasons"]] == ["qty >= 2 is false (qty = 1)"]
    assert (explained["in_answer"], explained["row"]["price"]) == (False, ROWS[0]["price"])
    any_interface.unregister(name)
    with pytest.raises(InterfaceError):
        any_interface.invoke(handle)
    any_interface.drop_stream(stream)
    assert stream not in [info["name"] for info in any_interface.streams()]


def test_materialize_defaults_to_auto(interface: Interface, stream: str) -> None:
    assert interface.explain(interface.register(f"SELECT * FROM {stream}"))["materialize"] == "auto"


@pytest.mark.parametrize("materialize", [True, False, "auto"])
def test_materialize_can_be_chosen(interface: Interface, stream: str, materialize: bool | str) -> None:
    if isinstance(interface, SqlInterface):
        pytest.skip("not available in a statement")
    query = interface.register(f"SELECT * FROM {stream}", materialize=materialize)
    assert interface.explain(query)["materialize"] == materialize


@pytest.mark.parametrize("hint", [PlanHint(), PlanHint("bushy", True), PlanHint("eddy", True), PlanHint(None, False)])
def test_plan_of_a_join_can_be_chosen(interface: Interface, stream: str, hint: PlanHint) -> None:
    if isinstance(interface, SqlInterface):
        pytest.skip("not available in a statement")
    query = interface.register(f"SELECT a.ts FROM {stream} a JOIN {stream} b ON a.ts = b.ts", hint=hint)
    plan = interface.explain(query)
    assert (plan["plan"], plan["jit"]) == hint


def test_plan_of_a_selection_is_refused(interface: Interface, stream: str) -> None:
    if isinstance(interface, SqlInterface):
        pytest.skip("not available in a statement")
    queries = len(interface.queries())
    with pytest.raises(InterfaceError, match="the query has one input"):
        interface.register(f"SELECT * FROM {stream}", hint=PlanHint("bushy"))
    assert len(interface.queries()) == queries


def test_streams_are_described_alike(interface: Interface, served_pot: RunningServer, stream: str) -> None:
    described = [info for info in interface.streams() if info["name"] == stream]
    assert described == [info for info in served_pot.soup.streams() if info["name"] == stream]


def test_if_not_exists_keeps_an_existing_stream(interface: Interface, stream: str, fresh: Names) -> None:
    interface.create_stream(stream, "other INT", if_not_exists=True)
    assert next(info for info in interface.streams() if info["name"] == stream)["time"] == "ts"
    new = fresh("s")
    interface.create_stream(new, "n INT", if_not_exists=True)
    assert new in [info["name"] for info in interface.streams()]


def test_repeated_push_adds_nothing(interface: Interface, stream: str) -> None:
    first = interface.push(stream, ROWS, key="k")
    again = interface.push(stream, ROWS, key="k")
    assert (first.added, again.added) == (2, 0)
    query = interface.register(f"SELECT qty FROM {stream}")
    assert interface.invoke(query, wait_for=again.position) == [{"qty": 1}, {"qty": 2}]


ERRORS: dict[str, Callable[[Interface, str], Any]] = {
    "unknown column": lambda interface, stream: interface.register(f"SELECT prize FROM {stream}"),
    "unknown stream": lambda interface, _: interface.register("SELECT a FROM nowhere"),
    "type mismatch": lambda interface, stream: interface.register(f"SELECT sym FROM {stream} WHERE ts > 5"),
    "invalid SQL": lambda interface, stream: interface.register(f"SELECT FROM {stream}"),
    "duplicate stream": lambda interface, stream: interface.create_stream(stream.upper(), "n INT"),
    "unknown type": lambda interface, _: interface.create_stream("bad", "n NOSUCH"),
    "unknown time column": lambda interface, _: interface.create_stream("bad", "n INT", time="ts"),
    "duplicate query name": lambda interface, stream: [
        interface.register(f"SELECT * FROM {stream}", name="twice") for _ in "12"
    ],
    "invoke an unknown query": lambda interface, _: interface.invoke("nothing"),
    "explain an unknown query": lambda interface, _: interface.explain("nothing"),
    "why in an unknown query": lambda interface, _: interface.why("nothing", "a = 1"),
    "why with an unknown column": lambda interface, stream: interface.why(
        interface.register(f"SELECT sym FROM {stream}"), "prize = 1"
    ),
    "why with an invalid condition": lambda interface, stream: interface.why(
        interface.register(f"SELECT sym FROM {stream}"), "sym ="
    ),
    "unregister an unknown query": lambda interface, _: interface.unregister("nothing"),
    "drop an unknown stream": lambda interface, _: interface.drop_stream("nowhere"),
    "push to an unknown stream": lambda interface, _: interface.push("nowhere", ROWS),
    "invalid value in a row": lambda interface, stream: interface.push(stream, [{**ROWS[0], "qty": "many"}]),
    "unknown column in a row": lambda interface, stream: interface.push(stream, [{**ROWS[0], "prize": 1}]),
    "key used for other rows": lambda interface, stream: [interface.push(stream, ROWS[:n], key="same") for n in (1, 2)],
}


@pytest.mark.parametrize("error", ERRORS)
def test_errors_are_alike(interface: Interface, served_pot: RunningServer, stream: str, error: str) -> None:
    with pytest.raises(InterfaceError) as raised:
        ERRORS[error](interface, stream)
    with pytest.raises(InterfaceError) as expected:
        ERRORS[error](PythonInterface(served_pot.soup), stream)
    assert raised.value == expected.value
