"""Which bodies may be endless: XML that is pushed to a stream, and no other; and the limits of such bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from tests.service.running import RunningServer, run_server
from tureen.service.bodies import is_endless


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("POST", "/v1/streams/photons/rows", {"content-type": "application/xml"}, True),
        ("POST", "/v1/streams/photons/rows", {"content-type": "application/xml; charset=utf-8"}, True),
        ("POST", "/v1/streams/photons/rows", {"content-type": "application/xml", "content-length": "5"}, False),
        ("POST", "/v1/streams/photons/rows", {"content-type": "application/json"}, False),
        ("PATCH", "/v1/queries/rows", {"content-type": "application/xml"}, False),
        ("POST", "/v1/templates/alerts/rows", {"content-type": "application/xml"}, False),
        ("PUT", "/v1/streams/photons/rows", {"content-type": "application/xml"}, False),
        ("POST", "/v1/streams/a/b/rows", {"content-type": "application/xml"}, False),
    ],
)
def test_endless_bodies(method: str, path: str, headers: dict[str, str], expected: bool) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert is_endless(Request({"type": "http", "method": method, "path": path, "headers": pairs})) is expected


@pytest.fixture
def pages(served: RunningServer) -> Iterator[str]:
    """A stream of XML."""
    served.soup.create_stream("pages", "n BIGINT, text STRING", item="book/page")
    yield "pages"
    served.soup.drop_stream("pages")


def send(client: httpx.Client, stream: str, document: bytes, **parameters: Any) -> httpx.Response:
    """Send a document as a stream, in pieces."""
    pieces = (document[start : start + 500] for start in range(0, len(document), 500))
    headers = {"Content-Type": "application/xml"}
    return client.post(f"/v1/streams/{stream}/rows", params=parameters, content=pieces, headers=headers)


def book(count: int, length: int) -> bytes:
    """A document of pages with texts of that length."""
    items = (f"<page><n>{number}</n><text>{'x' * length}</text></page>" for number in range(count))
    return f"<book>{''.join(items)}</book>".encode()


def count_rows(served: RunningServer, stream: str) -> int:
    return len(served.soup.answer_once(f"SELECT n FROM {stream}"))


def test_batches_of_endless_bodies_have_a_size_limit(served: RunningServer, pages: str) -> None:
    with run_server(served.soup, max_batch_bytes=100_000) as small, small.client() as client:
        # Much more than the limit in all, but not in any batch.
        assert send(client, pages, book(200, 2_000), batch=20).json()["rows"] == 200
        refused = send(client, pages, book(200, 2_000), batch=100)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (413, "too_large")
        assert error["message"] == "a batch of a stream of XML may have at most 100,000 bytes"
        assert error["detail"] == "0 rows in 0 batches before this were stored"
        assert "batch=" in error["hint"]
        # A single item that does not end.
        long = book(30, 2_000).removesuffix(b"</book>") + b"<page><text>" + b"x" * 200_000
        refused = send(client, pages, long, batch=10)
        assert refused.status_code == 413
        assert refused.json()["error"]["detail"] == "30 rows in 3 batches before this were stored"
    assert count_rows(served, pages) == 230


def test_batches_of_endless_bodies_have_a_row_limit(served: RunningServer, pages: str) -> None:
    with run_server(served.soup, max_push_rows=50) as small, small.client() as client:
        refused = send(client, pages, book(5, 1), batch=51)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
        assert refused.json()["error"]["message"] == "?batch= must be at most 50, got 51"
        assert send(client, pages, book(70, 1), batch=50).status_code == 202
    assert count_rows(served, pages) == 70


def test_endless_bodies_of_a_principal_are_limited(served: RunningServer, pages: str) -> None:
    with run_server(served.soup, max_xml_streams=1) as small, small.client() as client:
        with small.service.xml_streams.hold("local"):
            refused = send(client, pages, book(5, 1))
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many")
            assert "at most 1 concurrent streams of XML" in refused.json()["error"]["message"]
            with small.client("other") as other:
                assert send(other, pages, book(5, 1)).status_code == 202
        # A stream that fails is over, too.
        assert send(client, pages, b"<book><page>").status_code == 400
        assert send(client, pages, book(5, 1)).status_code == 202
        assert small.service.xml_streams.total == 0
    assert count_rows(served, pages) == 10
