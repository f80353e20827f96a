"""Access control: every route with every kind of caller, compared with the scopes in docs/http.md."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import tureen
from tests.service.running import PRINCIPALS, RunningServer, run_server
from tureen.service.app import description

ROOT = Path(__file__).parents[2]
_CALL = re.compile(r"^\| (`(?:GET|POST|PUT|PATCH|DELETE) /[^|]*?) \| ([^|]+?) \|", re.MULTILINE)


def documented() -> dict[tuple[str, str], str]:
    """The scope of each (method, path) in docs/http.md."""
    scopes = {}
    for calls, scope in _CALL.findall((ROOT / "docs" / "http.md").read_text()):
        for call in re.findall(r"`([^`]+)`", calls):
            method, _, path = call.partition(" ")
            path = (
                path.partition("?")[0].replace("{id or name}", "{handle}").replace("/tokens/{id}", "/tokens/{token_id}")
            )
            scopes[method, path] = scope
    return scopes


def routes() -> list[tuple[str, str]]:
    return [(method.upper(), path) for path, methods in description()["paths"].items() for method in methods]


def test_documented_routes_are_the_routes() -> None:
    described = {*routes(), ("GET", "/docs"), ("GET", "/openapi.json")}
    assert set(documented()) == described


def allowed(scope: str, token: str) -> bool:
    scopes = set(PRINCIPALS[token][1])
    required = {"read", "write"} if scope == "by the statement" else set(scope.split(" or "))
    return "admin" in scopes or not scopes.isdisjoint(required)


BODIES = {
    ("POST", "/v1/queries"): {"sql": "SELECT 1 FROM nowhere"},
    ("POST", "/v1/streams"): {"name": "", "schema": ""},
    ("POST", "/v1/sql"): {"sql": "nonsense"},
}


def status_of(client: httpx.Client, method: str, path: str) -> int:
    """The status of a request that has no effect even if it is allowed."""
    url = path.format(name="nowhere", handle="nobody", token_id="none", stream="nothing")
    params = {"timeout": "0.01", "position": "nonsense"}
    response = client.request(method, url, params=params, json=BODIES.get((method, path), {"no": "body"}))
    assert response.status_code != 500, response.text
    return response.status_code


@pytest.mark.parametrize("token", [None, "wrong", *PRINCIPALS])
def test_every_route_requires_its_scope(served: RunningServer, token: str | None) -> None:
    scopes = documented()
    text = "tureen_0123456789abcdef_" + 43 * "x" if token == "wrong" else token
    with served.client(text) as client:
        for method, path in routes():
            scope, status = scopes[method, path], status_of(client, method, path)
            if scope == "–":
                expected = status not in (401, 403)
            elif token in (None, "wrong"):
                expected = status == 401
            elif allowed(scope, str(token)):
                expected = status not in (401, 403)
            else:
                # An invalid body may be refused first; that reveals nothing.
                expected = status in (403, 422)
            assert expected, (method, path, scope, token, status)


def test_valid_bodies_require_the_scope(served: RunningServer) -> None:
    with served.client("read") as reader, served.client("write") as writer:
        for method, path, body in (
            ("POST", "/v1/streams", {"name": "never", "schema": "a INT"}),
            ("POST", "/v1/queries", {"sql": "SELECT a FROM never"}),
            ("PATCH", "/v1/queries/x", {"shared": True}),
            ("PATCH", "/v1/templates/x", {"shared": True}),
            ("POST", "/v1/tokens", {"principal": "me", "scopes": ["admin"]}),
        ):
            assert reader.request(method, path, json=body).status_code == 403, path
        source = {"name": "never", "schema": "value BIGINT", "source": {"format": "rate", "options": {}}}
        assert writer.post("/v1/streams", json=source).status_code == 403
        assert writer.post("/v1/tokens", json={"principal": "me"}).status_code == 403
        function = {"name": "never", "returns": "INT", "arguments": "STRING", "path": "builtins:len"}
        assert writer.post("/v1/functions", json=function).status_code == 403
        assert writer.delete("/v1/functions/never").status_code == 403
        assert writer.post("/v1/peers", json={"name": "never", "url": "http://127.0.0.1:1"}).status_code == 403
        assert writer.put("/v1/peers/never/shares/nothing").status_code == 403


@pytest.mark.parametrize(
    ("sql", "scope"),
    [
        ("SHOW STREAMS", "read"),
        ("SELECT a FROM nowhere", "read"),
        ("EXPLAIN SELECT a FROM nowhere", "read"),
        ("INVOKE nobody", "read"),
        ("DESCRIBE nowhere", "read"),
        ("REGISTER SELECT a FROM nowhere", "write"),
        ("DROP QUERY nobody", "write"),
        ("CREATE STREAM `` (a INT)", "write"),
        ("DROP STREAM nowhere", "admin"),
        ("DROP FUNCTION nowhere", "admin"),
        ("CREATE FUNCTION upper(STRING) RETURNS INT AS 'builtins:len'", "admin"),
        ("SHOW FUNCTIONS", "read"),
        ("SHOW PEERS", "admin"),
        ("CREATE PEER never URL 'http://127.0.0.1:1'", "admin"),
        ("SHARE STREAM nothing WITH never", "admin"),
        ("DROP PEER never", "admin"),
        ("DROP TABLE nowhere", "admin"),
        ("CREATE STREAM r (value BIGINT) FROM 'nothing' OPTIONS ()", "admin"),
    ],
)
def test_statements_require_the_scope_of_their_route(served: RunningServer, sql: str, scope: str) -> None:
    for token in ("read", "write", "both"):
        with served.client(token) as client:
            response = client.post("/v1/sql", json={"sql": sql})
        refused = response.status_code == 403
        assert refused != allowed(scope, token) or response.json()["error"]["code"] == "sql", (token, response.text)


def test_objects_of_others_are_not_found(served: RunningServer, http: httpx.Client, stream: str) -> None:
    sql = f"SELECT id FROM {stream} WHERE sym = 'secret'"
    query = http.post("/v1/queries", json={"sql": sql, "name": f"secret of {stream}"}).json()
    template = http.post(
        "/v1/templates", json={"sql": f"SELECT id FROM {stream} WHERE id = :n", "params": [{"n": 1}], "name": stream}
    ).json()
    with served.client("other") as theirs:
        for name in (query["id"], query["name"], f"{template['id']}.0"):
            for method, path in (
                ("GET", ""),
                ("DELETE", ""),
                ("GET", "/result"),
                ("GET", "/result?limit=1"),
                ("GET", "/explain"),
                ("GET", "/why?where=id>0"),
                ("GET", "/changes"),
            ):
                response = theirs.request(method, f"/v1/queries/{name}{path}")
                assert response.status_code == 404, (method, name, path)
                assert "secret" not in response.text.replace(query["name"], "")
            assert theirs.patch(f"/v1/queries/{name}", json={"shared": True}).status_code == 404
        for name in (template["id"], stream):
            for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/queries"), ("GET", "/changes")):
                assert theirs.request(method, f"/v1/templates/{name}{path}").status_code == 404, (method, name, path)
            assert theirs.patch(f"/v1/templates/{name}", json={"shared": True}).status_code == 404
        listed = theirs.get("/v1/queries?limit=1000").text + theirs.get("/v1/templates").text
        shown = theirs.post("/v1/sql", json={"sql": "SHOW QUERIES"}).text
        assert query["id"] not in listed + shown
        assert template["id"] not in listed
        for statement in (
            f"INVOKE `{query['id']}`",
            f"EXPLAIN `{query['id']}`",
            f"EXPLAIN ROW `{query['id']}` WHERE id > 0",
            f"DROP QUERY `{query['id']}`",
        ):
            assert theirs.post("/v1/sql", json={"sql": statement}).status_code in (400, 404), statement
        similar = theirs.get(f"/v1/queries/{query['name']}x").json()["error"]
        assert "hint" not in similar, "a hint must not contain names of others"
        # Another principal can use the same name.
        same_name = theirs.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}", "name": query["name"]})
        assert same_name.status_code == 201
        assert theirs.get(f"/v1/queries/{query['name']}").json()["id"] == same_name.json()["id"] != query["id"]
        assert theirs.get(f"/v1/queries/{query['name']}/result").status_code == 200
        explained = theirs.get(f"/v1/queries/{query['name']}/explain").json()
        assert "clause" not in explained
        assert explained["shape"].keys() == {"text"}
    assert http.get(f"/v1/queries/{query['name']}").json()["id"] == query["id"]


def test_shared_queries_are_listed_and_read_by_handle(served: RunningServer, http: httpx.Client, stream: str) -> None:
    query = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}", "name": f"shared {stream}"}).json()
    assert http.patch(f"/v1/queries/{query['id']}", json={"shared": True}).json()["shared"] is True
    with served.client("other") as theirs:
        assert theirs.get(f"/v1/queries/{query['id']}/result").status_code == 200
        assert theirs.get(f"/v1/queries/{query['id']}").json()["owner"] == "local"
        assert theirs.get(f"/v1/queries/{query['name']}").status_code == 404
        assert theirs.delete(f"/v1/queries/{query['id']}").status_code == 404
        assert theirs.patch(f"/v1/queries/{query['id']}", json={"shared": False}).status_code == 404
        listed = {info["id"]: info for info in theirs.get("/v1/queries", params={"limit": 1000}).json()["queries"]}
        assert (listed[query["id"]]["owner"], listed[query["id"]]["shared"]) == ("local", True)
        assert http.patch(f"/v1/queries/{query['name']}", json={"shared": False}).json()["shared"] is False
        assert theirs.get(f"/v1/queries/{query['id']}/result").status_code == 404
        assert query["id"] not in theirs.get("/v1/queries", params={"limit": 1000}).text


def catalog_text(pot: Path) -> str:
    """A dump of the catalog through SQLite: opening and closing the file itself would release SQLite's locks."""
    with closing(sqlite3.connect(pot / "catalog.sqlite")) as connection:
        return "\n".join(connection.iterdump())


def test_tokens_are_created_listed_and_revoked(served: RunningServer, http: httpx.Client) -> None:
    body = {"principal": "ana", "scopes": ["read", "write"], "expires_in": "30 days", "note": "notebook"}
    created = http.post("/v1/tokens", json=body).json()
    listed = http.get("/v1/tokens").json()["tokens"]
    (info,) = [token for token in listed if token["id"] == created["id"]]
    assert info["scopes"] == ["read", "write"]
    assert created["token"] not in str(listed)
    assert created["token"].partition("_")[2].partition("_")[2] not in catalog_text(served.soup.path)
    with served.client(created["token"]) as client:
        assert client.get("/v1/streams").status_code == 200
        used = [token for token in http.get("/v1/tokens").json()["tokens"] if token["id"] == created["id"]]
        assert used[0]["last_used_at"] is not None
        assert http.delete(f"/v1/tokens/{created['id']}").status_code == 204
        assert client.get("/v1/streams").status_code == 401
    assert http.delete(f"/v1/tokens/{created['id']}").status_code == 404
    short = http.post("/v1/tokens", json={"principal": "ana", "expires_in": "0 seconds"})
    if short.status_code == 201:
        with served.client(short.json()["token"]) as client:
            assert client.get("/v1/streams").status_code == 401


def test_limits_of_a_principal(served: RunningServer) -> None:
    limits = {"max_queries": 1, "max_push_rows": 2, "max_result_rows": 1, "max_followers": 0, "max_invocations": 0}
    soup = served.soup.acting_for("small")
    soup.create_stream("small", "id BIGINT")
    with run_server(served.soup, **limits) as small, small.client("other") as client:
        assert client.post("/v1/streams/small/rows", json=[{"id": 1}] * 3).status_code == 413
        position = client.post("/v1/streams/small/rows", json=[{"id": 1}] * 2).json()["position"]
        two = {"sql": "SELECT id FROM small WHERE id > :n", "params": [{"n": 0}, {"n": 1}]}
        refused = client.post("/v1/templates", json=two)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many")
        assert refused.headers["retry-after"] == "1"
        handle = soup.acting_for("somebody else").register("SELECT id FROM small").id
        served.soup.wait(position)
        assert client.get(f"/v1/queries/{handle}/changes").status_code == 429
        assert client.get(f"/v1/queries/{handle}/result").status_code == 429
        small.service.invoking._limit = 1
        refused = client.get(f"/v1/queries/{handle}/result")
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
        assert client.get(f"/v1/queries/{handle}/result?limit=1").status_code == 200


def test_without_authentication_the_host_must_be_loopback(served: RunningServer) -> None:
    with run_server(served.soup, no_auth=True, open_metrics=True) as server, server.client(None) as client:
        assert client.get("/v1/streams").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert client.get("/v1/streams", headers={"Host": "evil.example"}).status_code == 403
        assert client.get("/v1/streams", headers={"Host": "localhost:1"}).status_code == 200


def test_pot_has_one_writer(served: RunningServer) -> None:
    with pytest.raises(tureen.TureenError, match="is being written"):
        tureen.open(served.soup.path, mode="write")


def test_admin_sees_explains_and_drops_objects_of_others(
    served: RunningServer, http: httpx.Client, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tureen")
    with served.client("other") as theirs:
        query = theirs.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}", "name": f"of {stream}"}).json()
        sql = f"SELECT id FROM {stream} WHERE id = :n"
        template = theirs.post("/v1/templates", json={"sql": sql, "params": [{"n": 1}], "name": stream}).json()
        member = f"{template['id']}.0"
        own = http.post("/v1/queries", json={"sql": f"SELECT id FROM {stream}"}).json()
        assert query["id"] not in http.get("/v1/queries?limit=1000").text
        for owner in ("*", "somebody else"):
            listed = {info["id"]: info["owner"] for info in _all_pages(http, "queries", owner)}
            assert (listed.get(query["id"]), own["id"] in listed) == ("somebody else", owner == "*")
            assert template["id"] in {info["id"] for info in _all_pages(http, "templates", owner)}
        assert http.get(f"/v1/queries/{query['id']}").json()["sql"] == query["sql"]
        assert http.get(f"/v1/queries/{query['id']}/explain").json()["stream"] == stream
        assert http.get(f"/v1/templates/{template['id']}").json()["queries"] == 1
        assert http.get(f"/v1/templates/{template['id']}/queries").json()["queries"][0]["id"] == member
        assert http.get(f"/v1/templates/{template['id']}/explain").json()["queries"] == 1
        # Only by handle: names are scoped to their owner.
        assert http.get(f"/v1/queries/{query['name']}").status_code == 404
        assert http.delete(f"/v1/templates/{stream}").status_code == 404
        # An admin cannot read the answer.
        assert http.get(f"/v1/queries/{query['id']}/result").status_code == 404
        for path in (f"queries/{query['id']}", f"queries/{member}", f"templates/{template['id']}"):
            assert http.delete(f"/v1/{path}").status_code == 204
            assert (
                f"admin 'local' dropped {'query' if 'queries' in path else 'template'} {path.split('/')[1]}"
                in caplog.text
            )
            assert http.delete(f"/v1/{path}").status_code == 404
        assert theirs.get(f"/v1/queries/{query['id']}").status_code == 404
    assert f"admin 'local' explained query {query['id']} of 'somebody else'" in caplog.text
    assert "admin 'local' listed the queries of '*'" in caplog.text


def _all_pages(http: httpx.Client, collection: str, owner: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    params: dict[str, Any] = {"owner": owner, "limit": 2}
    while True:
        page = http.get(f"/v1/{collection}", params=params).json()
        items += page[collection]
        if page["next"] is None:
            return items
        params["after"] = page["next"]


def test_lists_of_others_require_admin(served: RunningServer) -> None:
    with served.client("both") as client:
        for collection in ("queries", "templates"):
            assert client.get(f"/v1/{collection}?owner=*").status_code == 403
            assert client.get(f"/v1/{collection}?owner=somebody+else").status_code == 403
            assert client.get(f"/v1/{collection}?owner=local").status_code == 200
