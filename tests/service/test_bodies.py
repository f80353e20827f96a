"""Which bodies may be endless: XML that is pushed to a stream, and no other."""

from __future__ import annotations

import pytest
from starlette.requests import Request

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
