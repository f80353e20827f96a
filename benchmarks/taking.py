"""Waiting until Spark has taken pushed rows, which are in answers before."""

from __future__ import annotations

import time

import tureen
from tureen.errors import WaitTimeout
from tureen.position import PushPosition, parse_position
from tureen.pot.streams import stream_by_id


def wait_until_taken(soup: tureen.Soup, position: str, timeout: float) -> None:
    """Wait until the rows of a push are in runs."""
    pushed = parse_position(position)
    assert isinstance(pushed, PushPosition)
    deadline = time.monotonic() + timeout
    catalog = soup._pot.catalog
    while True:
        token = catalog.token()
        with catalog.read() as tx:
            stream = stream_by_id(tx, pushed.stream)
        assert stream is not None
        if stream.taken >= pushed.end:
            return
        while catalog.token() == token:
            if time.monotonic() > deadline:
                raise WaitTimeout("pushed rows are not in runs yet")
            time.sleep(0.002)
