"""Statements over HTTP: run by the server, but for what needs the files of this process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tureen.client.json_values import answer_of, dated
from tureen.client.transport import ARROW, Request, Transport
from tureen.results.answer import Answer
from tureen.soup.standing import StandingQuery

if TYPE_CHECKING:
    from tureen.client.client import Client

Outcome = StandingQuery | Answer | list[dict[str, Any]] | dict[str, Any] | None
"""What a statement gives, as for an embedded pot."""

_CREATE_TABLE = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*create\s+table\b", re.IGNORECASE | re.DOTALL)
_REPEATABLE = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:select|invoke|show|desc|describe|explain)\b", re.I | re.DOTALL
)


def run(client: Client, transport: Transport, text: str) -> Outcome:
    """Run one statement and give what came out."""
    if _CREATE_TABLE.match(text):
        # The parser is large, and only this statement may name a file.
        from tureen.language.text.statements import parse_statement  # noqa: PLC0415
        from tureen.soup.statement_runner import run_statement  # noqa: PLC0415

        return run_statement(client, parse_statement(text))
    accept = {"Accept": f"{ARROW}, application/json;q=0.5"}
    repeatable = bool(_REPEATABLE.match(text))
    response = transport.send(Request("POST", "/v1/sql", json={"sql": text}, headers=accept, repeatable=repeatable))
    if response.headers.get("Content-Type", "").startswith(ARROW):
        return answer_of(response)
    return _outcome(client, response.json())


def _outcome(client: Client, told: dict[str, Any]) -> Outcome:
    match told["kind"]:
        case "query":
            query = told["query"]
            return StandingQuery(client, query["id"], query["name"], query["sql"])
        case "rows":
            return [dated(one) for one in told["rows"]]
        case "object":
            return dated(told["object"])
    return None
