"""Server-sent events."""

from __future__ import annotations

from tureen.client.events import Event, lines_of, read_events


def test_events_in_chunks_of_any_size() -> None:
    text = 'id: 1\nevent: change\ndata: {"a":"x\u2028y"}\n\n: still here\n\nevent: error\r\ndata: 1\r\ndata: 2\r\n\r\n'
    data = text.encode()
    expected = [Event("change", "1", '{"a":"x\u2028y"}'), Event("error", None, "1\n2")]
    for size in range(1, len(data)):
        chunks = [data[start : start + size] for start in range(0, len(data), size)]
        assert list(read_events(lines_of(chunks))) == expected
