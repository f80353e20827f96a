"""The parts of the client that decide: errors by their codes, when to try again, what an event is."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

import tureen
from tests.service.running import Running
from tureen import errors
from tureen.client.events import Event, lines_of, read_events
from tureen.client.remote_errors import error_from
from tureen.client.retry import LONGEST_PAUSE, Failure, Retries
from tureen.client.tokens import Tokens
from tureen.errors import Forbidden, Location, TureenError, Unauthorized

KINDS = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, TureenError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_comes_back_as_what_it_was(kind: type[TureenError]) -> None:
    told = {
        "code": kind.code,
        "message": "m",
        "detail": "d",
        "hint": "h",
        "position": {"line": 2, "column": 3},
    }
    found = error_from(told)
    assert type(found) is kind
    assert (found.message, found.detail, found.hint, found.location) == ("m", "d", "h", Location(2, 3))


def test_codes_are_each_one_errors() -> None:
    assert len({kind.code for kind in KINDS}) == len(KINDS)


def test_a_code_that_is_not_known_is_kept() -> None:
    found = error_from({"code": "brand_new", "message": "m"})
    assert (type(found), found.code, str(found)) == (errors.ServiceError, "brand_new", "m")


def test_what_may_have_been_done_is_repeated_only_where_that_is_safe() -> None:
    for failure in Failure:
        safe = Retries(repeatable=True, known=True, patience=9)
        unsafe = Retries(repeatable=False, known=True, patience=9)
        doubtful = failure in (Failure.LOST, Failure.BROKEN)
        assert safe.pause_after(failure, 0, None, 0.5) is not None
        assert (unsafe.pause_after(failure, 0, None, 0.5) is None) == doubtful
        assert safe.unsure == doubtful


def test_pauses_grow_and_end_with_the_patience() -> None:
    retries = Retries(repeatable=True, known=True, patience=100)
    pauses = [retries.pause_after(Failure.LOST, 0, None, 1.0) or 0.0 for _ in range(10)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    assert retries.pause_after(Failure.LOST, 99, None, 1.0) is None
    assert retries.pause_after(Failure.BUSY, 10, 7.0, 1.0) == 7.0
    assert retries.pause_after(Failure.BUSY, 10, 95.0, 1.0) is None


def test_events_in_whatever_pieces_they_come() -> None:
    text = 'id: 1\nevent: change\ndata: {"a":"x\u2028y"}\n\n: still here\n\nevent: error\r\ndata: 1\r\ndata: 2\r\n\r\n'
    data = text.encode()
    wanted = [Event("change", "1", '{"a":"x\u2028y"}'), Event("error", None, "1\n2")]
    for size in range(1, len(data)):
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        assert list(read_events(lines_of(pieces))) == wanted


@pytest.mark.parametrize("url", ["", "nowhere", "ftp://x", "http://"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(TureenError, match="no address"):
        tureen.connect(url)


def test_tokens_made_used_and_revoked(served_pot: Running, stream: str) -> None:
    with tureen.connect(served_pot.url, served_pot.tokens["admin"]) as admin:
        tokens = Tokens(admin.transport)
        made = tokens.create("sensor", ["write"], expires_in="1 day", note="roof")
        assert made["expires_at"] - made["created_at"] == timedelta(days=1)
        assert made["id"] in [one["id"] for one in tokens.list()]
        assert "token" not in tokens.list()[-1]
        with tureen.connect(served_pot.url, made["token"]) as sensor:
            # It may push, and see nothing: the server checks what this client cannot.
            row = {"n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC), "d": Decimal("1.25")}
            at = sensor.push(stream, [row])
            sensor.wait(at)
            with pytest.raises(Forbidden):
                sensor.streams()
            with pytest.raises(errors.InvalidRows):
                sensor.push(stream, [{"m": 1}])
            tokens.revoke(made["id"])
            with pytest.raises(Unauthorized):
                sensor.push(stream, [row])
        assert served_pot.soup.register(f"SELECT * FROM {stream}").invoke().table.to_pylist() == [row]
    with tureen.connect(served_pot.url) as nobody, pytest.raises(Unauthorized):
        nobody.status()


def test_a_client_needs_no_engine() -> None:
    code = "import sys, tureen; tureen.connect('http://127.0.0.1:1'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numba", "duckdb", "pyspark", "sqlalchemy", "sqlglot", "pandas", "fastapi", "uvicorn"}
    assert heavy & set(done.stdout.split()) == set()
