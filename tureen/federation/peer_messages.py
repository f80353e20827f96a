"""The messages by which peers plan the flows of a stream, as JSON.

Everything that a peer sends is checked and bounded, because it may send anything.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from tureen.errors import PeerFailed
from tureen.schema import Schema
from tureen.sharing.peer_network import Hop, PeerReport, ReceivedFlow
from tureen.sharing.selection_text import MAX_TEXT

MAX_PEERS = 64
"""The most peers of a network that are considered."""

MAX_FLOWS = 1024
"""The most flows of a peer that are considered."""

MAX_SAMPLE_BYTES = 1 << 20
"""The largest sample of a stream, in bytes before it is encoded."""

_MAX_NAME = 256

Item = TypeVar("Item")


def states_json(states: Iterable[PeerReport]) -> dict[str, Any]:
    """The reports of peers about a stream."""
    return {
        "peers": [
            {
                "name": state.name,
                "is_home": state.is_home,
                "senders": list(state.senders),
                "flows": [list(flow) for flow in state.flows],
                "load": state.load,
                "aggregates": state.aggregates,
            }
            for state in states
        ]
    }


def read_states(content: Any) -> list[PeerReport]:
    """Read what `states_json` wrote."""
    return _list(_member(content, "peers"), _read_state, MAX_PEERS)


def _read_state(item: Any) -> PeerReport:
    load = _member(item, "load")
    is_home = _member(item, "is_home")
    if not isinstance(load, int | float) or isinstance(load, bool) or not 0 <= load <= 1e6:
        raise PeerFailed("the load of a peer is not a number")
    if not isinstance(is_home, bool):
        raise PeerFailed("a peer does not tell whether it is the home of a stream")
    return PeerReport(
        _name(_member(item, "name")),
        is_home,
        tuple(_list(_member(item, "senders"), _name, MAX_PEERS)),
        tuple(_list(_member(item, "flows"), _read_flow, MAX_FLOWS)),
        float(load),
        # Version 0.8 does not know partial aggregates, and does not tell.
        item.get("aggregates") is True,
    )


def _read_flow(item: Any) -> ReceivedFlow:
    sender, text = _parts(item, 2)
    return ReceivedFlow(_name(sender), read_text(text))


def hops_json(hops: Sequence[Hop]) -> list[list[str]]:
    """Hops of a plan."""
    return [[hop.peer, hop.sender, hop.text] for hop in hops]


def read_hops(content: Any) -> list[Hop]:
    """Read what `hops_json` wrote."""
    return _list(content, _read_hop, MAX_PEERS)


def _read_hop(item: Any) -> Hop:
    peer, sender, text = _parts(item, 3)
    return Hop(_name(peer), _name(sender), read_text(text))


def read_names(content: Any) -> list[str]:
    """A list of names of peers."""
    return _list(content, _name, MAX_PEERS)


def read_flows(content: Any) -> list[tuple[str, str]]:
    """Pairs of the origin of a stream and a flow of it."""
    pairs = _list(content, lambda item: _parts(item, 2), MAX_FLOWS * MAX_PEERS)
    return [(read_text(origin), read_text(flow)) for origin, flow in pairs]


def read_text(value: Any) -> str:
    """A text of bounded length."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise PeerFailed(f"a text of at most {MAX_TEXT} characters was expected")
    return value


def sample_json(rows: pa.Table, rows_per_second: float) -> dict[str, Any]:
    """Some rows of a stream, and how many arrive."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    return {"rows_per_second": rows_per_second, "rows": base64.b64encode(sink.getvalue()).decode()}


def read_sample(content: Any, schema: Schema) -> tuple[pa.Table, float]:
    """Read what `sample_json` wrote, of a stream with that schema."""
    rate, text = _member(content, "rows_per_second"), _member(content, "rows")
    if not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 <= rate <= 1e12:
        raise PeerFailed("the rate of a stream is not a number")
    if not isinstance(text, str) or len(text) > 2 * MAX_SAMPLE_BYTES:
        raise PeerFailed("a sample is larger than allowed")
    try:
        rows = pa.ipc.open_stream(base64.b64decode(text, validate=True)).read_all()
        rows.validate(full=True)
        return rows.select(schema.names).cast(schema.arrow), float(rate)
    except (pa.ArrowException, binascii.Error, KeyError, ValueError, OSError) as error:
        raise PeerFailed("a sample cannot be read", detail=str(error)[:200]) from error


def _member(content: Any, name: str) -> Any:
    if not isinstance(content, dict) or name not in content:
        raise PeerFailed(f"'{name}' is missing in what a peer sent")
    return content[name]


def _list(content: Any, read: Callable[[Any], Item], most: int) -> list[Item]:
    if not isinstance(content, list) or len(content) > most:
        raise PeerFailed(f"a list of at most {most} items was expected")
    return [read(item) for item in content]


def _parts(item: Any, count: int) -> list[Any]:
    if not isinstance(item, list) or len(item) != count:
        raise PeerFailed(f"a list of {count} items was expected")
    return item


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_NAME:
        raise PeerFailed("the name of a peer is not valid")
    return value
