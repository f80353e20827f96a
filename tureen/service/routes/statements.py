"""Statements: any one of them, as text."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from tureen.arguments import check_text
from tureen.language.text.statements import CreateStream, CreateTable, Drop, Register, Statement, parse_statement
from tureen.results.answer import Answer
from tureen.service import body_shapes as shapes
from tureen.service.authorization import Caller
from tureen.service.bodies import JSON
from tureen.service.error_responses import encode
from tureen.service.rendering import Rendered, render
from tureen.service.routes.common import Anyone, answers, problems, sent, shown_plan, shown_query, wanted_of
from tureen.service.routes.streams import shown_stream
from tureen.soup.standing import StandingQuery
from tureen.soup.statement_runner import run_statement

router = APIRouter(tags=["statements"])


@router.post(
    "/v1/sql",
    responses={**answers(shapes.Outcome), **problems(404, 406, 409, 429)},
    summary="Run a statement",
)
async def run_sql(caller: Anyone, request: Request, wanted: shapes.Statement) -> Response:
    """Run one statement: CREATE, DROP, REGISTER, INVOKE, SHOW, DESCRIBE, EXPLAIN or SELECT."""
    form, soup, service = wanted_of(request, caller, None), caller.soup, caller.service

    def run() -> Rendered:
        statement = parse_statement(check_text(wanted.sql, "a statement"))
        caller.check(scope_of(statement))
        if isinstance(statement, Register):
            service.check_room(caller.principal, 1)
        outcome = run_statement(soup, statement, files=False)
        if isinstance(outcome, Answer):
            service.metrics.answered.inc(len(outcome))
            return render(outcome, form, {"kind": "answer"})
        return Rendered({"Content-Type": JSON}, encode(_shown(caller, outcome)))

    return sent(await service.compute(caller.principal, run))


def scope_of(statement: Statement) -> str:
    """The scope that a statement needs: that of the route that does the same."""
    match statement:
        case CreateStream() if statement.format is not None:
            return "admin"
        case Drop() if statement.kind != "QUERY":
            return "admin"
        case CreateStream() | CreateTable() | Drop() | Register():
            return "write"
    return "read"


def _shown(caller: Caller, outcome: Any) -> dict[str, Any]:
    match outcome:
        case StandingQuery():
            return {"kind": "query", "query": shown_query(caller.soup.registered(outcome.id))}
        case list():
            return {"kind": "rows", "rows": [shown_stream(caller, one) for one in outcome]}
        case dict():
            return {"kind": "object", "object": shown_plan(caller, shown_stream(caller, outcome))}
    return {"kind": "none"}
