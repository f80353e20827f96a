"""The route of SQL statements."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tureen.arguments import check_text
from tureen.language.text.function_statement import CreateFunction
from tureen.language.text.peer_statements import CreatePeer, ShareStream
from tureen.language.text.relation_statements import CreateStream, CreateTable, DeriveStream
from tureen.language.text.statements import (
    Drop,
    Punctuate,
    Register,
    Show,
    Statement,
    parse_statement,
)
from tureen.results.answer import Answer
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.bodies import JSON
from tureen.service.error_responses import encode_json
from tureen.service.rendering import Rendered, render
from tureen.service.routes.descriptions import describe_answer, describe_errors
from tureen.service.routes.functions import visible_function
from tureen.service.routes.parameters import ReaderOrWriter
from tureen.service.routes.responses import query_info, response_format, to_response, visible_plan
from tureen.service.routes.streams import visible_stream
from tureen.soup.interface import AnySoup
from tureen.soup.standing import StandingQuery
from tureen.soup.statement_runner import run_statement
from tureen.why.explanation import Explanation
from tureen.why.explanation_json import to_json

router = APIRouter(tags=["statements"])


@router.post(
    "/v1/sql",
    responses={**describe_answer(shapes.StatementResult), **describe_errors(404, 406, 409, 429, 502)},
    summary="Run a statement",
)
async def run_sql(caller: ReaderOrWriter, request: Request, body: shapes.StatementRequest) -> Response:
    """Run a statement: CREATE, DROP, REGISTER, INVOKE, PUNCTUATE, SHOW, DESCRIBE, EXPLAIN or SELECT."""
    answer_format, soup, service = response_format(request, caller, None), caller.soup, caller.service

    def run() -> Rendered:
        if body.language != "sql":
            caller.require_scope("read")
            return _render(_run_once(soup, body))
        statement = parse_statement(check_text(body.sql, "a statement"))
        caller.require_scope(scope_of(statement))
        if isinstance(statement, Register):
            service.check_query_limit(caller.principal, 1)
        return _render(run_statement(soup, statement, files=False))

    def _render(result: Any) -> Rendered:
        if isinstance(result, Answer):
            service.metrics.answered.inc(len(result))
            return render(result, answer_format, {"kind": "answer"})
        return Rendered({"Content-Type": JSON}, encode_json(_result_body(caller, result)))

    return to_response(await service.compute(caller.principal, run))


def _run_once(soup: AnySoup, body: shapes.StatementRequest) -> Answer | dict[str, Any]:
    """Answer or explain a query in another language than SQL."""
    text = check_text(body.sql, "a query's text")
    word = _EXPLAIN.match(text)
    if word is None:
        return soup.answer_once(text, language=body.language)
    # Blanks keep the locations of errors.
    return soup.explain_once(" " * word.end() + text[word.end() :], language=body.language)


_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)


def scope_of(statement: Statement) -> str:
    """The scope that a statement requires, which is that of the corresponding route."""
    match statement:
        case CreateFunction() | CreatePeer() | ShareStream() | Show("PEERS"):
            return "admin"
        case CreateStream() if statement.format is not None:
            return "admin"
        case Drop() if statement.kind != "QUERY":
            return "admin"
        case CreateStream() | DeriveStream() | CreateTable() | Drop() | Register() | Punctuate():
            return "write"
    return "read"


def _visible_row(caller: Caller, row: dict[str, Any]) -> dict[str, Any]:
    return visible_function(caller, row) if "vectorized" in row else visible_stream(caller, row)


def _result_body(caller: Caller, result: Any) -> dict[str, Any]:
    match result:
        case StandingQuery():
            return {"kind": "query", "query": query_info(caller.soup.calls.registered(result.id))}
        case Explanation():
            return {"kind": "explanation", "explanation": to_json(result)}
        case list():
            return {"kind": "rows", "rows": [_visible_row(caller, row) for row in result]}
        case dict():
            return {"kind": "object", "object": visible_plan(caller, visible_stream(caller, result))}
    return {"kind": "none"}
