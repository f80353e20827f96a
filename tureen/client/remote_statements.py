"""SQL statements over HTTP: run by the server, except for those that read a file of this process."""

from __future__ import annotations

import re
from typing import Any

from tureen.client.create_table import CreateFromFile, parse_create_from_file
from tureen.client.json_values import read_answer, with_datetimes
from tureen.client.transport import ARROW, Request, Transport
from tureen.errors import DuplicateName, InvalidSchema
from tureen.soup.interface import AnySoup, Outcome
from tureen.soup.standing import HandleCalls, StandingQuery
from tureen.why.explanation_json import from_json

_READ_ONLY = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:select|invoke|show|desc|describe|explain)\b", re.IGNORECASE | re.DOTALL
)


def run(client: AnySoup, calls: HandleCalls, transport: Transport, text: str) -> Outcome:
    """Run one statement and return its result."""
    create = parse_create_from_file(text)
    if create is not None:
        _create_table(client, create)
        return None
    accept = {"Accept": f"{ARROW}, application/json;q=0.5"}
    repeatable = bool(_READ_ONLY.match(text))
    response = transport.send(Request("POST", "/v1/sql", json={"sql": text}, headers=accept, repeatable=repeatable))
    if response.headers.get("Content-Type", "").startswith(ARROW):
        return read_answer(response)
    return _outcome(calls, response.json())


def _create_table(client: AnySoup, create: CreateFromFile) -> None:
    try:
        client.create_table(create.name, create.schema, create.file, if_not_exists=create.if_not_exists)
    except (DuplicateName, InvalidSchema) as error:
        error.location = error.location or create.position
        raise


def _outcome(calls: HandleCalls, body: dict[str, Any]) -> Outcome:
    match body["kind"]:
        case "query":
            query = body["query"]
            return StandingQuery(calls, query["id"], query["name"], query["sql"])
        case "rows":
            return [with_datetimes(row) for row in body["rows"]]
        case "object":
            return with_datetimes(body["object"])
        case "explanation":
            return from_json(body["explanation"])
    return None
