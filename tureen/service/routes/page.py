"""Routes of the page: its files, signing in and out, and what it shows beyond the other routes.

The route of the files comes last, because it would take the other paths below /page/ for names of files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from tureen.aggregate_functions import AGGREGATE_NAMES
from tureen.errors import Unauthorized
from tureen.keywords import KEYWORDS
from tureen.language.binding.calls import NAMES
from tureen.pot.status import count_failed
from tureen.service.authorization import Caller
from tureen.service.error_responses import HttpError, encode_json
from tureen.service.page.activity import SAMPLE_SECONDS, ActivitySample
from tureen.service.page.assets import HEADERS, file_response
from tureen.service.page.manual import manual
from tureen.service.page.page_bodies import LanguageInfo, SessionInfo, SignIn
from tureen.service.page.sessions import COOKIE
from tureen.service.recent_values import MAX_AGE
from tureen.service.routes.descriptions import describe_errors
from tureen.service.routes.parameters import Reader
from tureen.service.routes.responses import encoded_response, hide_source_error, json_response, visible_status
from tureen.service.state import Service

router = APIRouter(tags=["page"])

ADMIN_ACTIVITY = frozenset(
    {
        "changes_per_second",
        "invocations_per_second",
        "invocation_p50",
        "invocation_p99",
        "followers",
        "memory_bytes",
    }
)
"""What a sample tells about other principals, and so only admins."""


STATUS_SECONDS = SAMPLE_SECONDS
"""How old the numbers of an overview may be, in seconds."""


@router.get("/", include_in_schema=False)
async def index(request: Request) -> Response:
    """The page."""
    return await page_file(request, "index.html")


@router.post(
    "/page/session",
    status_code=201,
    response_model=SessionInfo,
    responses=describe_errors(),
    summary="Sign in to the page",
)
async def sign_in(request: Request, body: SignIn) -> Response:
    """Begin a session of a token; the response sets a cookie that scripts cannot read."""
    service: Service = request.app.state.service
    if not service.settings.page:
        raise HttpError(404, "no such path")
    caller = service.authenticator.authenticate_token(body.token.strip(), service)
    secret = service.sessions.begin(body.token.strip())
    response = json_response(_session_info(service, caller, service.sessions.seconds), 201, _NO_STORE)
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(service.sessions.seconds),
        path="/",
        httponly=True,
        samesite="strict",
        secure=bool(service.settings.certificate),
    )
    return response


@router.get("/page/session", response_model=SessionInfo, responses=describe_errors(), summary="Show the session")
async def show_session(request: Request) -> Response:
    """Who is signed in, and with which scopes; nobody, if the principal is null."""
    service: Service = request.app.state.service
    try:
        caller = service.authenticator.authenticate(request, service)
    except Unauthorized:
        # Not an error: the page asks before it shows the form.
        return json_response(
            {"principal": None, "scopes": [], "seconds_left": None, "has_tokens": True}, 200, _NO_STORE
        )
    return json_response(_session_info(service, caller, service.sessions.seconds_left(request)), headers=_NO_STORE)


@router.delete("/page/session", status_code=204, response_class=Response, summary="Sign out of the page")
async def sign_out(request: Request) -> Response:
    """End the session; event streams that it has open end soon after."""
    service: Service = request.app.state.service
    service.sessions.end(request)
    response = Response(status_code=204, headers=_NO_STORE)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response


_NO_STORE = {"Cache-Control": "no-store"}


def _session_info(service: Service, caller: Caller, seconds: float | None) -> dict[str, Any]:
    return {
        "principal": caller.principal,
        "scopes": sorted(caller.scopes),
        "seconds_left": seconds,
        "has_tokens": not service.settings.no_auth,
    }


@router.get("/v1/overview", response_model=dict[str, Any], responses=describe_errors(), summary="Show the activity")
async def overview(
    caller: Reader,
    after: Annotated[float, Query(ge=0, allow_inf_nan=False, description="the `at` of the last known sample")] = 0.0,
) -> Response:
    """Rates and latencies of the last minutes, what is wrong at the moment, and the number of queries by state."""
    service = caller.service
    shared = await service.status(STATUS_SECONDS)
    samples = service.activity.samples(after)
    # Pages that know the same samples get the same response.
    key = ("overview", caller.visibility, *(sample.at for sample in samples[:1] + samples[-1:]))

    async def encode() -> bytes:
        return await asyncio.to_thread(lambda: encode_json(_overview(caller, shared.full, samples)))

    return encoded_response(await shared.responses.get(key, MAX_AGE, encode))


def _overview(caller: Caller, full: Mapping[str, Any], samples: Sequence[ActivitySample]) -> dict[str, Any]:
    service, is_admin = caller.service, caller.has_scope("admin")
    with service.catalog.read() as tx:
        failed = count_failed(tx, caller.visibility)
    visible = visible_status(caller, full)
    streams = visible["streams"]
    hidden = frozenset[str]() if is_admin else ADMIN_ACTIVITY
    return {
        "samples": [{key: value for key, value in asdict(each).items() if key not in hidden} for each in samples],
        "sample_seconds": SAMPLE_SECONDS,
        "queries": {"standing": visible["queries"] - failed, "failed": failed},
        "streams": len(streams),
        "tables": len(visible["tables"]),
        "rows": sum(stream["rows"] for stream in streams.values()),
        "bytes": sum(stream.get("bytes", 0) for stream in streams.values()),
        "lag_bytes": sum(stream["lag_bytes"] for stream in streams.values()),
        "engine": visible["engine"],
        "batches": service.soup.batches() if is_admin else [],
        "problems": _problems(visible, failed, is_admin=is_admin),
        "version": visible["version"],
    }


def _problems(status: Mapping[str, Any], failed: int, *, is_admin: bool) -> list[dict[str, str]]:
    """What needs attention: a text, and the page that shows more."""
    problems = []
    if status["error"] is not None:
        text = status["error"] if is_admin else hide_source_error(status["error"])
        problems.append({"text": f"the pipeline does not run: {text}", "link": "#/overview"})
    if failed:
        queries = "query was" if failed == 1 else "queries were"
        problems.append({"text": f"{failed:,} {queries} stopped by an error", "link": "#/queries?state=failed"})
    for name, stream in status["streams"].items():
        link = f"#/streams/{quote(name, safe='')}"
        if stream["error"] is not None:
            problems.append({"text": f"stream {name}: {stream['error']}", "link": link})
        if stream["rejected"]:
            rows = "row was" if stream["rejected"] == 1 else "rows were"
            problems.append({"text": f"stream {name}: {stream['rejected']:,} {rows} rejected", "link": link})
    if status.get("damaged"):
        problems.append({"text": f"{len(status['damaged'])} files are damaged", "link": "#/overview"})
    return problems


@router.get("/v1/language", response_model=LanguageInfo, responses=describe_errors(), summary="Describe the language")
async def describe_language(caller: Reader) -> Response:  # noqa: ARG001 - the scope is required
    """The keywords and functions of the language, for editors."""
    return json_response({"keywords": list(KEYWORDS), "functions": sorted({*NAMES, *AGGREGATE_NAMES})})


@router.get("/page/manual/sections", include_in_schema=False)
async def show_manual(request: Request) -> Response:
    """The sections of the language reference as HTML, for people who are signed in."""
    service: Service = request.app.state.service
    service.authenticator.authenticate(request, service)
    sections = await asyncio.to_thread(manual)
    return json_response({"sections": [section.__dict__ for section in sections]}, headers=dict(HEADERS))


@router.get("/page/{name}", include_in_schema=False)
async def page_file(request: Request, name: str) -> Response:
    """A file of the page."""
    service: Service = request.app.state.service
    response = file_response(name, request) if service.settings.page else None
    if response is None:
        raise HttpError(404, "no such path")
    return response
