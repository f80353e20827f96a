"""The bodies of the page's requests and responses."""

from __future__ import annotations

from pydantic import Field

from tureen.service.body_shapes import RequestBody, ResponseBody


class SignIn(RequestBody):
    """A token to sign in with."""

    token: str = Field(min_length=1, max_length=1_000)


class SessionInfo(ResponseBody):
    """Who is signed in."""

    principal: str | None
    scopes: list[str]
    seconds_left: float | None
    has_tokens: bool


class LanguageInfo(ResponseBody):
    """The words of the language."""

    keywords: list[str]
    functions: list[str]
