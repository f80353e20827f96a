"""Where a command works: on a server, or on a pot of this machine; and how what comes out is written."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tureen.cli.error_output import reported
from tureen.cli.output import Format
from tureen.errors import Unauthorized

if TYPE_CHECKING:
    from tureen.client.client import Client
    from tureen.soup.embedded import Soup

    AnySoup = Soup | Client
else:
    # The command line starts without the engine and without the client.
    AnySoup = Any

DEFAULT_URL = "http://127.0.0.1:7707"
"""Where `tureen serve` listens unless told otherwise."""

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help=f"The server (TUREEN_URL; {DEFAULT_URL} if nothing is said)."),
]
Token = Annotated[str | None, typer.Option("--token", metavar="TEXT", help="The token for it (TUREEN_TOKEN).")]
Pot = Annotated[
    str | None, typer.Option("--pot", metavar="DIR", help="A pot of this machine instead of a server (TUREEN_POT).")
]
Output = Annotated[Format, typer.Option("-o", "--output", help="How to write what comes out.")]

Owner = Annotated[
    str | None, typer.Option("--owner", metavar="NAME", help="Those of this principal, or of all with *; for an admin.")
]
Ca = Annotated[
    str | None,
    typer.Option("--ca", metavar="FILE", help="Certificates in PEM to trust instead of the usual (TUREEN_CA)."),
]

_TARGET = {"url": Url, "token": Token, "pot": Pot, "ca": Ca}


@dataclass(frozen=True)
class Target:
    """What a command works on: a pot of this machine, or else a server."""

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
    """What the options name, or else the environment, or else the usual server.

    >>> target_of(None, None, None, environ={"TUREEN_URL": "http://tureen:7707", "TUREEN_TOKEN": "x"})
    Target(pot=None, url='http://tureen:7707', token='x', ca=None)
    >>> target_of(None, None, "./pot", environ={"TUREEN_URL": "http://tureen:7707"}).pot
    './pot'
    """
    if url and pot:
        raise typer.BadParameter("a command works on a server or on a pot, not on both", param_hint="--url, --pot")
    if not url and not pot:
        url = environ.get("TUREEN_URL")
        pot = None if url else environ.get("TUREEN_POT")
    token, ca = token or environ.get("TUREEN_TOKEN"), ca or environ.get("TUREEN_CA") or None
    return Target(pot, url or DEFAULT_URL, token, ca)


def pot_of(pot: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The pot that a command works on which needs the directory itself."""
    found = pot or environ.get("TUREEN_POT")
    if not found:
        raise typer.BadParameter("name a pot of this machine", param_hint="--pot")
    return found


def open_target(target: Target, *, makes_pot: bool = False) -> AnySoup:
    """The soup to work on; a pot that is not there is refused, unless the command is one that may make it."""
    # Imported here, so that help and usage errors come at once.
    if target.pot:
        from tureen.pot.catalog import exists, no_pot  # noqa: PLC0415
        from tureen.soup.embedded import open  # noqa: PLC0415

        if not makes_pot and not exists(Path(target.pot)):
            raise no_pot(Path(target.pot))
        return open(target.pot)
    from tureen.client.client import connect  # noqa: PLC0415

    return connect(target.url, target.token, ca=target.ca)


def on_soup(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command that takes `soup` the options that name one, open it, and report what goes wrong."""
    return _adapted(command, _TARGET, _with_soup)


def on_any_soup(command: Callable[..., None]) -> Callable[..., None]:
    """The same for a command that may make the pot."""
    return _adapted(command, _TARGET, functools.partial(_with_soup, makes_pot=True))


def reporting(command: Callable[..., None]) -> Callable[..., None]:
    """Report what goes wrong in a command that opens nothing by itself."""
    return _adapted(command, {}, lambda inner, given: inner(**given))


def _with_soup(command: Callable[..., None], given: dict[str, Any], *, makes_pot: bool = False) -> None:
    target = target_of(*(given.pop(name) for name in _TARGET))
    with naming_the_token(target), open_target(target, makes_pot=makes_pot) as soup:
        command(soup, **given)


@contextmanager
def naming_the_token(target: Target) -> Iterator[None]:
    """Tell whoever gave no token how to give one to a command."""
    try:
        yield
    except Unauthorized as error:
        if not target.token:
            error.hint = "set TUREEN_TOKEN, or give --token; `tureen serve` shows a token at its first start"
        raise


def _adapted(
    command: Callable[..., None],
    more: Mapping[str, Any],
    run: Callable[[Callable[..., None], dict[str, Any]], None],
) -> Callable[..., None]:
    """A command with more options than its function has parameters."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "soup"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in more.items()
    ]

    @functools.wraps(command)
    def adapted(**given: Any) -> None:
        with reported():
            run(command, given)

    keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    adapted.__signature__ = signature.replace(parameters=[*keyword, *added])  # type: ignore[attr-defined]
    adapted.__annotations__ = {one.name: one.annotation for one in [*keyword, *added]}
    return adapted
