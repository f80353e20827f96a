"""Frames: what is sent is what is received, in any chunks; anything else is refused without harm."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.closed.pattern import CodeRange, Pattern, ValueList
from tureen.closed.section import PlacedPattern
from tureen.errors import PeerFailed, TureenError, UnknownStream
from tureen.federation import frame as frames
from tureen.federation.frame import FlowFrame, decode_frames, encode_error, encode_frame, flow_schema
from tureen.federation.frame_punctuations import decode_punctuations, encode_punctuations
from tureen.schema import Schema

SCHEMA = flow_schema(Schema.parse("a INT, b STRING"), ["b"])


def batch(count: int) -> pa.RecordBatch:
    times = pa.array(range(count), pa.timestamp("us", tz="UTC"))
    return pa.record_batch([pa.array(["x"] * count), times, pa.array(range(count), pa.int64())], schema=SCHEMA)


def decoded(content: bytes, size: int = 1 << 16) -> list[FlowFrame]:
    chunks = [content[start : start + size] for start in range(0, len(content), size)]
    return list(decode_frames(chunks, SCHEMA, lambda error: TureenError(str(error["message"]))))


@example_settings(20)
@given(st.lists(st.integers(0, 400), max_size=4), st.integers(1, 300))
def test_frames_are_received_in_any_chunks(counts: list[int], size: int) -> None:
    sent = [FlowFrame(count, -5, batch(count) if count else None, count % 2 == 0, "why") for count in counts]
    received = decoded(b"".join(map(encode_frame, sent)), size)
    assert [(each.next_id, each.last_time, each.rows, each.current, each.away) for each in received] == [
        (each.next_id, each.last_time, each.rows, each.current, each.away) for each in sent
    ]
    assert sum(each.size for each in received) == sum(len(encode_frame(each)) for each in sent)


def with_header(header: Any, body: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<II", len(text), len(body)) + text + body


PATTERNS = (
    Pattern((("b", ValueList(("x", "é"))),)),
    Pattern((("b", CodeRange("a", None, low_open=True)),)),
)


@pytest.mark.parametrize("count", [0, 3, 500])
def test_punctuations_are_received_in_their_places(count: int) -> None:
    placed = tuple(PlacedPattern(at, PATTERNS[at % 2]) for at in sorted([0, count // 2, count] * 20))
    (received,) = decoded(encode_frame(FlowFrame(9, None, batch(count) if count else None, punctuations=placed)), 100)
    assert (received.punctuations, received.rows) == (placed, batch(count) if count else None)


def with_patterns(entries: Any, size: Any = None) -> bytes:
    content = json.dumps(entries).encode()
    return with_header({"next": 1, "punctuations": [len(content), size]}, content)


RANGE = {"low": "a", "high": "b", "low_open": False, "high_open": False}


@pytest.mark.parametrize(
    "content",
    [
        with_patterns(5),
        with_patterns([5]),
        with_patterns([[0, {}]]),
        with_patterns([[0, {"a": [1]}]]),
        with_patterns([[0, {"_home": [1]}]]),
        with_patterns([[0, {"b": []}]]),
        with_patterns([[0, {"b": [1]}]]),
        with_patterns([[0, {"b": ["\ud800"]}]]),
        with_patterns([[1, {"b": ["x"]}]]),
        with_patterns([[-1, {"b": ["x"]}]]),
        with_patterns([[True, {"b": ["x"]}]]),
        with_patterns([[0, {"b": {"low": "a"}}]]),
        with_patterns([[0, {"b": {**RANGE, "low": 5}}]]),
        with_patterns([[0, {"b": {**RANGE, "low": "c"}}]]),
        with_patterns([[0, {"b": {**RANGE, "low_open": 1}}]]),
        with_patterns([[0, {"b": ["x"]}]], 10**12),
        with_patterns([[0, {"b": ["x"]}]], 100),
        with_header({"next": 1, "punctuations": 5}),
        with_header({"next": 1, "punctuations": [9, None]}, b"[]"),
        with_header({"next": 1, "punctuations": [2, None]}, b"[["),
    ],
)
def test_other_punctuations_are_refused(content: bytes) -> None:
    with pytest.raises(PeerFailed):
        decoded(content)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (pa.int32(), 1 << 63),
        (pa.timestamp("us", tz="UTC"), 1 << 60),
        (pa.date32(), 1 << 40),
        (pa.int64(), 1.5),
        (pa.decimal128(38, 0), 10**38),
        (pa.decimal128(9, 2), "x"),
    ],
)
def test_codes_that_do_not_fit_a_column_are_refused(kind: pa.DataType, code: Any) -> None:
    schema = pa.schema([("a", kind)])
    good = encode_punctuations([PlacedPattern(0, Pattern((("a", CodeRange(-3, 5)),)))])
    assert decode_punctuations(good, schema, 0)[0].pattern == Pattern((("a", CodeRange(-3, 5)),))
    with pytest.raises(PeerFailed, match="does not fit its column"):
        decode_punctuations(json.dumps([[0, {"a": [code]}]]).encode(), schema, 0)


def test_large_rows_are_compressed() -> None:
    assert len(encode_frame(FlowFrame(9, None, batch(1000)))) < batch(1000).nbytes / 2


def test_the_error_of_a_peer_is_raised() -> None:
    content = encode_frame(FlowFrame(1)) + encode_error(UnknownStream("it is gone"))
    with pytest.raises(TureenError, match="it is gone"):
        decoded(content)


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<II", 1 << 30, 0),
        struct.pack("<II", 10, 1 << 31),
        with_header([1]),
        with_header({}),
        with_header({"next": "1"}),
        with_header({"next": True}),
        with_header({"next": 10**18}),
        with_header({"next": 1, "time": 1 << 62}),
        with_header({"next": 1, "time": 1.5}),
        with_header({"next": 1, "away": 5}),
        with_header({"error": 5}),
        with_header({"next": 1}, b"garbage"),
        with_header({"next": 1, "size": 10**12}, b"garbage"),
        with_header({"next": 1, "size": 100}, b"garbage"),
        with_header({"next": 1}, pa.record_batch([pa.array([1])], ["a"]).serialize().to_pybytes()),
    ],
)
def test_other_content_is_refused(content: bytes) -> None:
    with pytest.raises(PeerFailed):
        decoded(content)


def test_frames_with_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encode_frame(FlowFrame(9, None, batch(5)))
    monkeypatch.setattr(frames, "FRAME_ROWS", 4)
    with pytest.raises(PeerFailed, match="more rows than allowed"):
        decoded(content)


def test_offsets_that_point_anywhere_are_refused() -> None:
    rows = batch(3)
    text = pa.StringArray.from_buffers(3, pa.array([0, 1, 1 << 30, 3], pa.int32()).buffers()[1], pa.py_buffer(b"abc"))
    hostile = pa.record_batch([text, rows.column(1), rows.column(2)], schema=SCHEMA)
    with pytest.raises(PeerFailed, match="cannot be read"):
        decoded(with_header({"next": 9}, hostile.serialize().to_pybytes()))
