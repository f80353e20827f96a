"""The target of a command, which is a server or a local pot, and the options that select it."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tureen.cli.error_output import reported
from tureen.cli.output import Format
from tureen.errors import Unauthorized, needs_extra

if TYPE_CHECKING:
    from tureen.soup.interface import AnySoup as AnySoup
else:
    # The command line starts without importing the engine or the client.
    AnySoup = Any

DEFAULT_URL = "http://127.0.0.1:7707"
"""The default address of `tureen serve`."""

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help=f"The server (TUREEN_URL). Default: {DEFAULT_URL}."),
]
Token = Annotated[str | None, typer.Option("--token", metavar="TEXT", help="The server's token (TUREEN_TOKEN).")]
Pot = Annotated[str | None, typer.Option("--pot", metavar="DIR", help="A local pot instead of a server (TUREEN_POT).")]
Output = Annotated[Format, typer.Option("-o", "--output", help="The output format.")]


class QueryLanguage(StrEnum):
    """The values of `--language`."""

    SQL = "sql"
    WXQUERY = "wxquery"


Language = Annotated[QueryLanguage, typer.Option("--language", help="The language of the text.")]

Owner = Annotated[
    str | None,
    typer.Option("--owner", metavar="NAME", help="Those of this principal, or of all with *; admins only."),
]
Ca = Annotated[
    str | None,
    typer.Option(
        "--ca", metavar="FILE", help="A PEM file of certificates to trust instead of the system's (TUREEN_CA)."
    ),
]

_TARGET_OPTIONS = {"url": Url, "token": Token, "pot": Pot, "ca": Ca}


@dataclass(frozen=True)
class Target:
    """The local pot, or otherwise the server, that a command works on."""

    pot: str | None
    url: str
    token: str | None
    ca: str | None = None


def target_of(
    url: str | None,
    token: str | None,
    pot: str | None,
    ca: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Target:
    """The target of the options, otherwise of the environment, otherwise the default server.

    >>> target_of(None, None, None, environ={"TUREEN_URL": "http://tureen:7707", "TUREEN_TOKEN": "x"})
    Target(pot=None, url='http://tureen:7707', token='x', ca=None)
    >>> target_of(None, None, "./pot", environ={"TUREEN_URL": "http://tureen:7707"}).pot
    './pot'
    """
    if url and pot:
        raise typer.BadParameter("the options exclude each other", param_hint="--url, --pot")
    if not url and not pot:
        url = environ.get("TUREEN_URL")
        pot = None if url else environ.get("TUREEN_POT")
    token, ca = token or environ.get("TUREEN_TOKEN"), ca or environ.get("TUREEN_CA") or None
    return Target(pot, url or DEFAULT_URL, token, ca)


def pot_of(pot: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The local pot of the option or of the environment."""
    directory = pot or environ.get("TUREEN_POT")
    if not directory:
        raise typer.BadParameter("a local pot is required", param_hint="--pot")
    return directory


def open_target(target: Target, *, creates_pot: bool = False) -> AnySoup:
    """Open the target; a pot that does not exist is an error unless `creates_pot`."""
    # Imported here, so that help and usage errors are fast.
    if target.pot:
        with needs_extra("engine", "--pot"):
            from tureen.pot.catalog import exists, no_pot  # noqa: PLC0415
            from tureen.soup.opening import open  # noqa: PLC0415

        if not creates_pot and not exists(Path(target.pot)):
            raise no_pot(Path(target.pot))
        return open(target.pot)
    from tureen.client.client import connect  # noqa: PLC0415

    return connect(target.url, target.token, ca=target.ca)


def on_soup(command: Callable[..., None]) -> Callable[..., None]:
    """Add the target options to a command, pass it the opened target as `soup`, and report errors."""
    return _adapted(command, _TARGET_OPTIONS, _with_soup)


def on_any_soup(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that may create the pot."""
    return _adapted(command, _TARGET_OPTIONS, functools.partial(_with_soup, creates_pot=True))


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Report the errors of a command without target options."""
    return _adapted(command, {}, lambda inner, options: inner(**options))


def _with_soup(command: Callable[..., None], options: dict[str, Any], *, creates_pot: bool = False) -> None:
    target = target_of(*(options.pop(name) for name in _TARGET_OPTIONS))
    with token_hint(target), open_target(target, creates_pot=creates_pot) as soup:
        command(soup, **options)


@contextmanager
def token_hint(target: Target) -> Iterator[None]:
    """If no token was set, say in the error how to set it."""
    try:
        yield
    except Unauthorized as error:
        if not target.token:
            error.hint = "set TUREEN_TOKEN or --token; the first start of `tureen serve` shows a token"
        raise


def _adapted(
    command: Callable[..., None],
    more_options: Mapping[str, Any],
    run: Callable[[Callable[..., None], dict[str, Any]], None],
) -> Callable[..., None]:
    """A command with more options than its function has parameters."""
    signature = inspect.signature(command, eval_str=True)
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in signature.parameters.values()
        if parameter.name != "soup"
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in more_options.items()
    ]

    @functools.wraps(command)
    def adapted(**options: Any) -> None:
        with reported():
            run(command, options)

    adapted.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    adapted.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return adapted
