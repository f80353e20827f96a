"""All interfaces of a pot behind one protocol: embedded, client, HTTP, SQL statements and command line.

Each implementation uses its interface as users do. Errors are raised as `InterfaceError`, with the message and the hint
that the user sees.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from typer.testing import CliRunner

import tureen
from tests.service.running import RunningServer
from tureen.cli.main import app
from tureen.errors import TureenError
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.why.explanation_json import to_json

# ruff: noqa: D102 - `Interface` documents the methods

Row = dict[str, Any]
Materialize = bool | str | None


@dataclass(frozen=True)
class InterfaceError(Exception):
    """An error as the user of an interface sees it."""

    message: str
    hint: str | None


@dataclass(frozen=True)
class Receipt:
    """The receipt of a push."""

    position: str
    added: int


class Interface(Protocol):
    """The operations of every interface."""

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        """Create a stream."""

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        """Add rows."""

    def register(
        self, sql: str, *, name: str | None = None, materialize: Materialize = None, hint: PlanHint = NO_HINT
    ) -> str:
        """Register a query and return its handle; None leaves options at their defaults."""

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        """The rows of a query's answer."""

    def streams(self) -> list[Row]:
        """The streams."""

    def queries(self) -> list[Row]:
        """The standing queries."""

    def explain(self, query: str) -> Row:
        """How a query is answered."""

    def why(self, query: str, condition: str) -> Row:
        """Why tuples are in a query's answer or not, in the form of HTTP."""

    def unregister(self, query: str) -> None:
        """Unregister a query."""

    def drop_stream(self, name: str) -> None:
        """Drop a stream."""


def as_user(call: Callable[[], Any]) -> Any:
    """The result of a Python call; its errors are raised as `InterfaceError`."""
    try:
        return call()
    except TureenError as error:
        raise InterfaceError(error.message, error.hint) from error


class PythonInterface:
    """`tureen.open` or `tureen.connect`."""

    def __init__(self, soup: tureen.Soup | tureen.Client) -> None:
        self.soup = soup

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        as_user(lambda: self.soup.create_stream(name, schema, time=time, if_not_exists=if_not_exists))

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        position = as_user(lambda: self.soup.push(stream, rows, key=key))
        return Receipt(position, position.added)

    def register(
        self, sql: str, *, name: str | None = None, materialize: Materialize = None, hint: PlanHint = NO_HINT
    ) -> str:
        options: dict[str, Any] = {} if materialize is None else {"materialize": materialize}
        options |= hint._asdict()
        return str(as_user(lambda: self.soup.register(sql, name=name, **options)).id)

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        return list(as_user(lambda: self.soup.query(query).invoke(wait_for=wait_for)))

    def streams(self) -> list[Row]:
        return self.soup.streams()

    def queries(self) -> list[Row]:
        return self.soup.describe_queries()

    def explain(self, query: str) -> Row:
        plan: Row = as_user(lambda: self.soup.query(query).explain())
        return plan

    def why(self, query: str, condition: str) -> Row:
        return to_json(as_user(lambda: self.soup.query(query).why(condition)))

    def unregister(self, query: str) -> None:
        as_user(lambda: self.soup.query(query).unregister())

    def drop_stream(self, name: str) -> None:
        as_user(lambda: self.soup.drop_stream(name))


class SqlInterface(PythonInterface):
    """SQL statements; rows are pushed from Python, and `materialize` is not available."""

    def _sql(self, text: str) -> Any:
        return as_user(lambda: self.soup.sql(text))

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        condition, time_clause = "IF NOT EXISTS " if if_not_exists else "", f" TIME {time}" if time else ""
        self._sql(f"CREATE STREAM {condition}{name} ({schema}){time_clause}")

    def register(
        self, sql: str, *, name: str | None = None, materialize: Materialize = None, hint: PlanHint = NO_HINT
    ) -> str:
        assert materialize is None, "not available in a statement"
        assert hint is NO_HINT, "not available in a statement"
        return str(self._sql(f"REGISTER {f'QUERY {name} AS ' if name else ''}{sql}").id)

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        if wait_for is not None:
            self.soup.wait(wait_for)
        return list(self._sql(f"INVOKE `{query}`"))

    def streams(self) -> list[Row]:
        return list(self._sql("SHOW STREAMS"))

    def queries(self) -> list[Row]:
        return list(self._sql("SHOW QUERIES"))

    def explain(self, query: str) -> Row:
        return dict(self._sql(f"EXPLAIN `{query}`"))

    def why(self, query: str, condition: str) -> Row:
        return to_json(self._sql(f"EXPLAIN ROW `{query}` WHERE {condition}"))

    def unregister(self, query: str) -> None:
        self._sql(f"DROP QUERY `{query}`")

    def drop_stream(self, name: str) -> None:
        self._sql(f"DROP STREAM {name}")


class HttpInterface:
    """HTTP requests."""

    def __init__(self, served: RunningServer) -> None:
        self._http = served.client()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, method: str, path: str, **options: Any) -> Any:
        response = self._http.request(method, f"/v1/{path}", **options)
        body: Any = response.json() if response.content else None
        if not response.is_success:
            raise InterfaceError(body["error"]["message"], body["error"].get("hint"))
        return body

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        body = {"name": name, "schema": schema, "time": time, "if_not_exists": if_not_exists}
        self._send("POST", "streams", json=body)

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        headers = {} if key is None else {"Idempotency-Key": key}
        receipt = self._send("POST", f"streams/{stream}/rows", json=rows, headers=headers)
        return Receipt(receipt["position"], receipt["added"])

    def register(
        self, sql: str, *, name: str | None = None, materialize: Materialize = None, hint: PlanHint = NO_HINT
    ) -> str:
        fields = {"sql": sql, "name": name, "materialize": materialize, **hint._asdict()}
        body = {key: value for key, value in fields.items() if value is not None}
        return str(self._send("POST", "queries", json=body)["id"])

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        params = {} if wait_for is None else {"wait_for": wait_for}
        return list(self._send("GET", f"queries/{query}/result", params=params)["rows"])

    def streams(self) -> list[Row]:
        return self._pages("streams")

    def queries(self) -> list[Row]:
        return self._pages("queries")

    def _pages(self, collection: str) -> list[Row]:
        items: list[Row] = []
        after: dict[str, str] = {}
        while True:
            page = self._send("GET", collection, params={"limit": 1000, **after})
            items += page[collection]
            if page["next"] is None:
                return items
            after = {"after": page["next"]}

    def explain(self, query: str) -> Row:
        return dict(self._send("GET", f"queries/{query}/explain"))

    def why(self, query: str, condition: str) -> Row:
        return dict(self._send("GET", f"queries/{query}/why", params={"where": condition}))

    def unregister(self, query: str) -> None:
        self._send("DELETE", f"queries/{query}")

    def drop_stream(self, name: str) -> None:
        self._send("DELETE", f"streams/{name}")


class CommandLine:
    """The `tureen` command, in this process or in a new process for each call."""

    def __init__(self, served: RunningServer, *, new_process: bool = False) -> None:
        self._env = {"TUREEN_URL": served.url, "TUREEN_TOKEN": served.tokens["admin"]}
        self._new_process = new_process

    def _run(self, *words: str, stdin: str = "") -> str:
        if self._new_process:
            process = subprocess.run(
                [sys.executable, "-m", "tureen.cli.main", *words],
                input=stdin,
                capture_output=True,
                text=True,
                env={**os.environ, **self._env},
                check=False,
            )
            code, out, err = process.returncode, process.stdout, process.stderr
        else:
            result = CliRunner().invoke(app, list(words), input=stdin, env=self._env)
            code, out, err = result.exit_code, result.stdout, result.stderr
        if code == 0:
            return out
        assert (code, out) == (1, ""), err
        lines = err.splitlines()
        hint = next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), None)
        raise InterfaceError(lines[0].removeprefix("error: ").partition(" (line ")[0], hint)

    def _json(self, *words: str) -> Any:
        return json.loads(self._run(*words, "-o", "json"))

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        options = [*(["--time", time] if time else []), *(["--if-not-exists"] if if_not_exists else [])]
        self._run("stream", "create", name, schema, *options)

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        options = [] if key is None else ["--key", key]
        words = ["push", stream, "-", "--format", "json", "-o", "json", *options]
        try:
            receipt = json.loads(self._run(*words, stdin=json.dumps(rows)))
        except InterfaceError as error:
            # The command adds the number of the chunk to the key; here there is only one chunk.
            raise InterfaceError(error.message.replace(f"'{key}/0'", f"'{key}'"), error.hint) from None
        return Receipt(receipt["position"], receipt["added"])

    def register(
        self, sql: str, *, name: str | None = None, materialize: Materialize = None, hint: PlanHint = NO_HINT
    ) -> str:
        words = {True: "yes", False: "no", "auto": "auto"}
        options = [] if materialize is None else ["--materialize", words[materialize]]
        options += [] if hint.plan is None else ["--plan", hint.plan]
        options += [] if hint.jit is None else ["--jit" if hint.jit else "--no-jit"]
        return self._run("query", "register", sql, *(["--name", name] if name else []), *options).strip()

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        options = [] if wait_for is None else ["--wait-for", wait_for]
        return list(self._json("query", "invoke", query, *options)["rows"])

    def streams(self) -> list[Row]:
        return list(self._json("stream", "list"))

    def queries(self) -> list[Row]:
        return list(self._json("query", "list"))

    def explain(self, query: str) -> Row:
        return dict(self._json("query", "explain", query))

    def why(self, query: str, condition: str) -> Row:
        return dict(self._json("query", "why", query, condition))

    def unregister(self, query: str) -> None:
        self._run("query", "drop", query)

    def drop_stream(self, name: str) -> None:
        self._run("stream", "drop", name, "-y")
