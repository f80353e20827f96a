"""Results: formats, limits, waiting, ETags, and request bodies with rows."""

from __future__ import annotations

import gzip
import io
import socket
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pyarrow as pa

from tests.service.running import RunningServer
from tureen.service.bodies import ARROW

Push = Callable[..., str]


def register(http: httpx.Client, sql: str, **options: object) -> str:
    response = http.post("/v1/queries", json={"sql": sql, **options})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def test_answer_in_every_format(http: httpx.Client, stream: str, push: Push) -> None:
    handle = register(http, f"SELECT id, sym, price, ts FROM {stream}")
    pushed = push((1, "A", 1.5), (2, None, float(2)), (3, "", None))
    response = http.get(f"/v1/queries/{handle}/result", params={"wait_for": pushed})
    assert response.status_code == 200
    body = response.json()
    assert body["columns"] == [
        {"name": "id", "type": "BIGINT"},
        {"name": "sym", "type": "STRING"},
        {"name": "price", "type": "DOUBLE"},
        {"name": "ts", "type": "TIMESTAMP"},
    ]
    assert body["rows"][0] == {"id": 1, "sym": "A", "price": 1.5, "ts": "2026-01-01T00:00:00+00:00"}
    assert body["window"] == {"begin": None, "end": None}
    assert (body["complete"], body["truncated"]) == (True, False)
    assert body["position"] == response.headers["tureen-position"] > pushed[:15]
    arrow = http.get(f"/v1/queries/{handle}/result", headers={"Accept": ARROW})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("sym").to_pylist() == ["A", None, ""]
    csv = http.get(f"/v1/queries/{handle}/result", headers={"Accept": "text/csv"})
    assert csv.text.splitlines()[1:] == [
        '1,"A",1.5,"2026-01-01T00:00:00.000000+00:00"',
        '2,,2,"2026-01-01T00:00:00.000000+00:00"',
        '3,"",,"2026-01-01T00:00:00.000000+00:00"',
    ]
    assert http.get(f"/v1/queries/{handle}/result", headers={"Accept": "image/png"}).status_code == 406


def test_non_finite_numbers_in_json(http: httpx.Client, stream: str) -> None:
    handle = register(http, f"SELECT price FROM {stream}")
    rows = [{"price": value, "ts": "2026-01-01"} for value in ("NaN", "Infinity", "-Infinity", 1, None)]
    pushed = http.post(f"/v1/streams/{stream}/rows", json=rows).json()["position"]
    body = http.get(f"/v1/queries/{handle}/result", params={"wait_for": pushed}).json()
    assert [row["price"] for row in body["rows"]] == ["NaN", "Infinity", "-Infinity", 1.0, None]


def test_limits_and_large_answers(http: httpx.Client, stream: str) -> None:
    handle = register(http, f"SELECT id, sym FROM {stream}")
    count = 30_000
    timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    table = pa.table({"id": pa.array(range(count)), "sym": ["x"] * count, "ts": [timestamp] * count})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    pushed = http.post(f"/v1/streams/{stream}/rows", content=sink.getvalue(), headers={"Content-Type": ARROW})
    assert pushed.json()["rows"] == count
    path = f"/v1/queries/{handle}/result"
    wait = {"wait_for": pushed.json()["position"]}
    whole = http.get(path, params=wait)
    assert [row["id"] for row in whole.json()["rows"]] == list(range(count))
    assert "content-length" not in whole.headers, "a large answer is sent in chunks"
    limited = http.get(path, params={**wait, "limit": "7"}).json()
    assert (len(limited["rows"]), limited["truncated"]) == (7, True)
    arrow = http.get(path, headers={"Accept": ARROW})
    assert pa.ipc.open_stream(arrow.content).read_all().num_rows == count
    lines = http.get(path, headers={"Accept": "text/csv"}).text.splitlines()
    assert (len(lines), lines[-1]) == (count + 1, f'{count - 1},"x"')
    compressed = http.get(path, headers={"Accept-Encoding": "gzip"})
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.json()["rows"] == whole.json()["rows"]
    tag = whole.headers["etag"]
    assert http.get(path, headers={"If-None-Match": tag}).status_code == 304


def test_client_that_does_not_read_does_not_block_others(
    served: RunningServer, http: httpx.Client, stream: str
) -> None:
    handle = register(http, f"SELECT id, sym FROM {stream}")
    rows = "id,sym,ts\n" + "".join(f"{number},{'x' * 100},2026-01-01\n" for number in range(60_000))
    pushed = http.post(f"/v1/streams/{stream}/rows", content=rows, headers={"Content-Type": "text/csv"}).json()
    assert http.get("/v1/wait", params={"position": pushed["position"]}).status_code == 200
    head = f"GET /v1/queries/{handle}/result HTTP/1.1", "Host: x", f"Authorization: Bearer {served.tokens['read']}"
    request = "\r\n".join(head) + "\r\n\r\n"
    port = int(served.url.rpartition(":")[2])
    # More connections than threads for invocations.
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(served.service.settings.invoke_threads + 4)]
    try:
        for connection in slow:
            connection.sendall(request.encode())
        assert slow[0].recv(12) == b"HTTP/1.1 200"
        assert http.get(f"/v1/queries/{handle}/result?limit=1").status_code == 200
        assert len(http.get(f"/v1/queries/{handle}/result").json()["rows"]) == 60_000
    finally:
        for connection in slow:
            connection.close()


def test_etag_covers_the_rows_and_not_the_window(http: httpx.Client, stream: str, push: Push) -> None:
    handle = register(http, f"SELECT id FROM {stream} WHERE price > 1 BEGIN NOW - 100 DAYS END NOW")
    path = f"/v1/queries/{handle}/result"
    timestamp = datetime.now(UTC).isoformat()
    rows = [{"id": 1, "price": 2, "ts": timestamp}]
    pushed = http.post(f"/v1/streams/{stream}/rows", json=rows).json()["position"]
    first = http.get(path, params={"wait_for": pushed})
    cached = {"If-None-Match": first.headers["etag"]}
    again = http.get(path, headers=cached)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["tureen-window-end"] > first.headers["tureen-window-end"]
    pushed = push((2, "A", 0.0))
    unchanged = http.get(path, headers=cached, params={"wait_for": pushed})
    assert unchanged.status_code == 304, "the row is not in the answer"
    rows = [{"id": 3, "price": 2, "ts": timestamp}]
    pushed = http.post(f"/v1/streams/{stream}/rows", json=rows).json()["position"]
    changed = http.get(path, headers=cached, params={"wait_for": pushed})
    assert (changed.status_code, len(changed.json()["rows"])) == (200, 2)
    # Rows leave the window without a commit.
    later = http.get(path, headers=cached, params={"now": "2400-01-01T00:00:00Z"})
    assert (later.status_code, later.json()["rows"]) == (200, [])
    assert http.get(path, headers={"If-None-Match": "*"}).status_code == 304


def test_etag_covers_the_window_with_now(http: httpx.Client, stream: str, push: Push) -> None:
    handle = register(http, f"SELECT id FROM {stream} BEGIN NOW - 1 HOUR END NOW")
    push((1, "A", 1.0))
    path = f"/v1/queries/{handle}/result"
    tags = {http.get(path, params={"now": f"2030-01-01T0{hour}:00:00Z"}).headers["etag"] for hour in range(3)}
    assert len(tags) == 3, "each window has a tag of its own"


def test_small_answers_are_compressed_from_a_kilobyte_on(http: httpx.Client, stream: str, push: Push) -> None:
    handle = register(http, f"SELECT * FROM {stream}")
    pushed = push(*((number, "A" * 20, 1.0) for number in range(50)))
    response = http.get(f"/v1/queries/{handle}/result", params={"wait_for": pushed})
    assert response.headers["content-encoding"] == "gzip"
    assert len(response.json()["rows"]) == 50


def test_wait_times_out(http: httpx.Client, stream: str, push: Push) -> None:
    handle = register(http, f"SELECT id FROM {stream}")
    pushed = push((1, "A", 1.0))
    head, _, tail = pushed.rpartition(".")
    never = f"{head}.{int(tail) + 10**9:015d}"
    for path in (f"/v1/queries/{handle}/result?wait_for={never}&timeout=0.05", f"/v1/wait?position={never}&timeout=0"):
        response = http.get(path)
        assert (response.status_code, response.json()["error"]["code"]) == (408, "wait_timeout")
    assert http.get("/v1/wait", params={"position": [pushed, pushed]}).json() == {"position": pushed}
    wrong = http.get("/v1/wait?position=nonsense")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "error")


def test_gzip_bodies_are_decompressed_and_limited(served: RunningServer, http: httpx.Client, stream: str) -> None:
    rows = b'{"id": 1, "ts": "2026-01-01"}\n{"id": 2, "ts": "2026-01-02"}\n'
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    path = f"/v1/streams/{stream}/rows"
    assert http.post(path, content=gzip.compress(rows), headers=headers).json()["rows"] == 2
    two = gzip.compress(rows) + gzip.compress(rows)
    assert http.post(path, content=two, headers=headers).json()["rows"] == 4
    assert http.post(path, content=b"no gzip", headers=headers).status_code == 400
    assert http.post(path, content=gzip.compress(rows)[:-9], headers=headers).status_code == 400
    assert http.post(path, content=rows, headers={**headers, "Content-Encoding": "br"}).status_code == 415
    plain = {"Content-Type": "application/x-ndjson"}
    bad = http.post(path, content=b'{"id": 1}\nnonsense\n', headers=plain)
    assert (bad.status_code, bad.json()["error"]["message"]) == (400, "line 2 is not valid JSON")
    bomb = gzip.compress(bytes(17 << 20))
    refused = http.post("/v1/queries", content=bomb, headers={"Content-Type": "application/json", **headers})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
    assert served.service.settings.max_body_bytes > 0


def test_rows_as_csv(http: httpx.Client, stream: str) -> None:
    handle = register(http, f"SELECT id, sym FROM {stream}")
    headers = {"Content-Type": "text/csv; charset=utf-8"}
    path = f"/v1/streams/{stream}/rows"
    text = 'id,sym,ts\n1,"a,b",2026-01-01\n2,,2026-01-01\n3,"",2026-01-01\n'
    pushed = http.post(path, content=text, headers=headers).json()["position"]
    rows = http.get(f"/v1/queries/{handle}/result", params={"wait_for": pushed}).json()["rows"]
    assert [row["sym"] for row in rows] == ["a,b", None, ""]
    wrong = http.post(path, content="id,sym,ts\n1,a,2026-01-01\nx,a,2026-01-01\n", headers=headers)
    assert "line 3: column 'id' is BIGINT, not 'x'" in wrong.json()["error"]["message"]


def test_repeated_push_with_a_key_adds_nothing(http: httpx.Client, stream: str) -> None:
    path, headers = f"/v1/streams/{stream}/rows", {"Idempotency-Key": "k/1"}
    rows = [{"id": 1, "ts": "2026-01-01"}]
    first = http.post(path, json=rows, headers=headers).json()["position"]
    again = http.post(path, json=rows, headers=headers).json()["position"]
    assert first.rpartition(".")[2] == again.rpartition(".")[2]
    other = http.post(path, json=[{"id": 2, "ts": "2026-01-01"}], headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_conflict")
