"""The ways into a pot behind one small interface: embedded, client, HTTP, SQL statements, command line.

Each door says what its users say: Python calls, requests, statements, commands. What goes wrong is raised as `Refused`,
with the message and the hint that the user sees.
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
from tests.service.running import Running
from tureen.cli.main import app
from tureen.errors import TureenError

# ruff: noqa: D102 - `Door` says what each of the methods does

Row = dict[str, Any]
Materialize = bool | str | None


@dataclass(frozen=True)
class Refused(Exception):
    """What a door says to what is wrong."""

    message: str
    hint: str | None


@dataclass(frozen=True)
class Receipt:
    """What a door says to a push."""

    position: str
    added: int


class Door(Protocol):
    """What every door can do."""

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        """Make a stream."""

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        """Add rows."""

    def register(self, sql: str, *, name: str | None = None, materialize: Materialize = None) -> str:
        """Register a query and return its handle; None says nothing about materializing."""

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        """The rows of a query's answer."""

    def streams(self) -> list[Row]:
        """The streams."""

    def queries(self) -> list[Row]:
        """The standing queries."""

    def explain(self, query: str) -> Row:
        """How a query is answered."""

    def unregister(self, query: str) -> None:
        """Unregister a query."""

    def drop_stream(self, name: str) -> None:
        """Drop a stream."""


def refusing(call: Callable[[], Any]) -> Any:
    """The outcome of a Python call, with errors as users see them."""
    try:
        return call()
    except TureenError as error:
        raise Refused(error.message, error.hint) from error


class PythonDoor:
    """`tureen.open` or `tureen.connect`."""

    def __init__(self, soup: tureen.Soup | tureen.Client) -> None:
        self.soup = soup

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        refusing(lambda: self.soup.create_stream(name, schema, time=time, if_not_exists=if_not_exists))

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        at = refusing(lambda: self.soup.push(stream, rows, key=key))
        return Receipt(at, at.added)

    def register(self, sql: str, *, name: str | None = None, materialize: Materialize = None) -> str:
        said = {} if materialize is None else {"materialize": materialize}
        return str(refusing(lambda: self.soup.register(sql, name=name, **said)).id)

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        return list(refusing(lambda: self.soup.query(query).invoke(wait_for=wait_for)))

    def streams(self) -> list[Row]:
        return self.soup.streams()

    def queries(self) -> list[Row]:
        return self.soup.describe_queries()

    def explain(self, query: str) -> Row:
        found: Row = refusing(lambda: self.soup.query(query).explain())
        return found

    def unregister(self, query: str) -> None:
        refusing(lambda: self.soup.query(query).unregister())

    def drop_stream(self, name: str) -> None:
        refusing(lambda: self.soup.drop_stream(name))


class SqlDoor(PythonDoor):
    """Statements; rows come by `push` all the same, and whether to materialize cannot be said."""

    def _sql(self, text: str) -> Any:
        return refusing(lambda: self.soup.sql(text))

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        unless, clause = "IF NOT EXISTS " if if_not_exists else "", f" TIME {time}" if time else ""
        self._sql(f"CREATE STREAM {unless}{name} ({schema}){clause}")

    def register(self, sql: str, *, name: str | None = None, materialize: Materialize = None) -> str:
        assert materialize is None, "a statement cannot say it"
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

    def unregister(self, query: str) -> None:
        self._sql(f"DROP QUERY `{query}`")

    def drop_stream(self, name: str) -> None:
        self._sql(f"DROP STREAM {name}")


class HttpDoor:
    """Requests, as any program sends them."""

    def __init__(self, served: Running) -> None:
        self._http = served.client()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _send(self, method: str, path: str, **more: Any) -> Any:
        response = self._http.request(method, f"/v1/{path}", **more)
        told: Any = response.json() if response.content else None
        if not response.is_success:
            raise Refused(told["error"]["message"], told["error"].get("hint"))
        return told

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        body = {"name": name, "schema": schema, "time": time, "if_not_exists": if_not_exists}
        self._send("POST", "streams", json=body)

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        headers = {} if key is None else {"Idempotency-Key": key}
        told = self._send("POST", f"streams/{stream}/rows", json=rows, headers=headers)
        return Receipt(told["position"], told["added"])

    def register(self, sql: str, *, name: str | None = None, materialize: Materialize = None) -> str:
        body = {"sql": sql, "name": name, "materialize": materialize}
        return str(self._send("POST", "queries", json={key: one for key, one in body.items() if one is not None})["id"])

    def invoke(self, query: str, *, wait_for: str | None = None) -> list[Row]:
        params = {} if wait_for is None else {"wait_for": wait_for}
        return list(self._send("GET", f"queries/{query}/result", params=params)["rows"])

    def streams(self) -> list[Row]:
        return self._pages("streams")

    def queries(self) -> list[Row]:
        return self._pages("queries")

    def _pages(self, what: str) -> list[Row]:
        found: list[Row] = []
        after: dict[str, str] = {}
        while True:
            told = self._send("GET", what, params={"limit": 1000, **after})
            found += told[what]
            if told["next"] is None:
                return found
            after = {"after": told["next"]}

    def explain(self, query: str) -> Row:
        return dict(self._send("GET", f"queries/{query}/explain"))

    def unregister(self, query: str) -> None:
        self._send("DELETE", f"queries/{query}")

    def drop_stream(self, name: str) -> None:
        self._send("DELETE", f"streams/{name}")


class CommandDoor:
    """`tureen …`, in this process or each time in one of its own."""

    def __init__(self, served: Running, *, process: bool = False) -> None:
        self._env = {"TUREEN_URL": served.url, "TUREEN_TOKEN": served.tokens["admin"]}
        self._process = process

    def _run(self, *words: str, stdin: str = "") -> str:
        if self._process:
            done = subprocess.run(
                [sys.executable, "-m", "tureen.cli.main", *words],
                input=stdin,
                capture_output=True,
                text=True,
                env={**os.environ, **self._env},
                check=False,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            result = CliRunner().invoke(app, list(words), input=stdin, env=self._env)
            code, out, err = result.exit_code, result.stdout, result.stderr
        if code == 0:
            return out
        assert (code, out) == (1, ""), err
        lines = err.splitlines()
        hint = next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), None)
        raise Refused(lines[0].removeprefix("error: ").partition(" (line ")[0], hint)

    def _json(self, *words: str) -> Any:
        return json.loads(self._run(*words, "-o", "json"))

    def create_stream(self, name: str, schema: str, *, time: str | None = None, if_not_exists: bool = False) -> None:
        options = [*(["--time", time] if time else []), *(["--if-not-exists"] if if_not_exists else [])]
        self._run("stream", "create", name, schema, *options)

    def push(self, stream: str, rows: list[Row], *, key: str | None = None) -> Receipt:
        options = [] if key is None else ["--key", key]
        words = ["push", stream, "-", "--format", "json", "-o", "json", *options]
        try:
            told = json.loads(self._run(*words, stdin=json.dumps(rows)))
        except Refused as refused:
            # The key of the first chunk, which is all there is.
            raise Refused(refused.message.replace(f"'{key}/0'", f"'{key}'"), refused.hint) from None
        return Receipt(told["position"], told["added"])

    def register(self, sql: str, *, name: str | None = None, materialize: Materialize = None) -> str:
        words = {True: "yes", False: "no", "auto": "auto"}
        options = [] if materialize is None else ["--materialize", words[materialize]]
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

    def unregister(self, query: str) -> None:
        self._run("query", "drop", query)

    def drop_stream(self, name: str) -> None:
        self._run("stream", "drop", name, "-y")
