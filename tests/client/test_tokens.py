"""Tokens managed over HTTP."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

import tureen
from tests.service.running import RunningServer
from tureen.client.tokens import RemoteTokens
from tureen.client.transport import Transport
from tureen.errors import Forbidden, InvalidRows, Unauthorized


def test_tokens_created_used_and_revoked(served_pot: RunningServer, stream: str) -> None:
    with closing(Transport(served_pot.url, served_pot.tokens["admin"])) as transport:
        tokens = RemoteTokens(transport)
        created = tokens.create("sensor", ["write"], expires_in="1 day", note="roof")
        assert created["expires_at"] - created["created_at"] == timedelta(days=1)
        assert created["id"] in [token["id"] for token in tokens.list()]
        assert "token" not in tokens.list()[-1]
        with tureen.connect(served_pot.url, created["token"]) as sensor:
            # It may push but not read the schema: the server checks the rows.
            row = {"n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC), "d": Decimal("1.25")}
            sensor.wait(sensor.push(stream, [row]))
            with pytest.raises(Forbidden):
                sensor.streams()
            with pytest.raises(InvalidRows):
                sensor.push(stream, [{"m": 1}])
            tokens.revoke(created["id"])
            with pytest.raises(Unauthorized):
                sensor.push(stream, [row])
        assert served_pot.soup.register(f"SELECT * FROM {stream}").invoke().table.to_pylist() == [row]
    with tureen.connect(served_pot.url) as anonymous, pytest.raises(Unauthorized):
        anonymous.status()
