"""Random requests: responses conform to the OpenAPI description, and none is an internal error."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.examples import example_settings
from tests.service.running import RunningServer
from tureen.service.app import description

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
"""The checks of each response; not whether valid data is accepted, as a text need not be valid SQL."""

EXAMPLES = 6
"""The number of requests per mode and route; there are more than thirty routes."""

_QUIET = [
    HealthCheck.function_scoped_fixture,
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
]


SCHEMA = schemathesis.openapi.from_dict(description())
OPERATIONS = [result.ok() for result in SCHEMA.get_all_operations() if isinstance(result, Ok)]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_any_request(served: RunningServer, operation: Any, mode: GenerationMode) -> None:
    """Requests that conform to the description, and requests that do not."""
    headers = {"Authorization": f"Bearer {served.tokens['admin']}"}

    @example_settings(EXAMPLES)
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        if operation.path.endswith(("/changes", "/wait", "/result")):
            case.query = {**(case.query or {}), "timeout": "0"}
        response = case.call(base_url=served.url, headers=headers, timeout=30)
        case.validate_response(response, checks=list(CHECKS))
        assert response.status_code != 500

    try:
        send()
    except Unsatisfiable:
        # A route without parameters has no invalid request.
        assert mode is GenerationMode.NEGATIVE


_TEXT = (
    "SELECT * FROM trades WHERE sym = 'A' AND price > 1 OR NOT qty IS NULL BETWEEN 1 AND 2 IN (1, 2) LIKE 'a%' "
    "GROUP BY HAVING ORDER BY LIMIT 3 BEGIN NOW - 10 MINUTES END NOW [ROWS 5] SLIDE 1 HOUR count ( ) sum max CASE WHEN "
    'REGISTER QUERY INVOKE EXPLAIN SHOW STREAMS DESCRIBE DROP CREATE STREAM TABLE AS CAST :p ` " ; -- /* */ . , + - * '
    "/ TIMESTAMP '2026-01-01' INTERVAL '1' DAY NULL TRUE 1e400 99999999999999999999 0x 'ü \x00"
)
WORDS = _TEXT.split(" ")

texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.text(max_size=60),
    st.lists(st.sampled_from(WORDS), max_size=12).map(lambda words: "SELECT sym FROM trades WHERE " + " ".join(words)),
)


@example_settings(60)
@given(text=texts)
def test_any_text_as_sql(served: RunningServer, text: str) -> None:
    with served.client("both") as http:
        _ensure_trades(http)
        template = {"sql": text, "params": [{"p": 1}]}
        for path, body in (("/v1/sql", {"sql": text}), ("/v1/queries", {"sql": text}), ("/v1/templates", template)):
            response = http.post(path, json=body)
            assert response.status_code < 500, (path, text, response.text)
            if response.status_code >= 400:
                assert response.json()["error"]["message"]
            elif path == "/v1/queries":
                handle = response.json()["id"]
                assert http.get(f"/v1/queries/{handle}/result").status_code in (200, 400, 409)
                assert http.delete(f"/v1/queries/{handle}").status_code == 204


@example_settings(30)
@given(
    body=st.binary(max_size=80) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "surrogatepass")),
    media_type=st.sampled_from(
        [
            "application/json",
            "application/x-ndjson",
            "text/csv",
            "application/vnd.apache.arrow.stream",
            "text/plain",
            "",
        ]
    ),
    encoding=st.sampled_from(["", "gzip", "identity", "br"]),
)
def test_any_body_as_rows(served: RunningServer, body: bytes, media_type: str, encoding: str) -> None:
    headers = {"Content-Type": media_type, **({"Content-Encoding": encoding} if encoding else {})}
    with served.client("both") as http:
        _ensure_trades(http)
        for method, path in (
            ("POST", "/v1/streams/trades/rows"),
            ("PUT", "/v1/tables/trades/rows"),
            ("POST", "/v1/templates?sql=SELECT"),
            ("POST", "/v1/tables?name=x"),
            ("POST", "/v1/queries"),
            ("POST", "/v1/sql"),
        ):
            response = http.request(method, path, content=body, headers=headers)
            assert response.status_code < 500, (path, body, response.text)


_created: set[str] = set()


def _ensure_trades(http: httpx.Client) -> None:
    if "trades" not in _created:
        schema = "sym STRING, price DOUBLE, qty INT, ts TIMESTAMP"
        http.post("/v1/streams", json={"name": "trades", "schema": schema, "time": "ts"})
        http.post("/v1/tables", json={"name": "trades", "schema": schema})
        rows = [{"sym": "A", "price": 1.5, "qty": None, "ts": "2026-01-01"}]
        position = http.post("/v1/streams/trades/rows", json=rows).json()["position"]
        http.get("/v1/wait", params={"position": position})
        _created.add("trades")
