"""`tureen token …`: who may use a server; on the pot itself, or over HTTP by an admin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.target import Ca, Output, Pot, Token, Url, naming_the_token, reporting, target_of

token_commands = typer.Typer(
    no_args_is_help=True, help="Tokens: create, list, revoke. Works on --pot while a server runs, too."
)

COLUMNS = ("id", "principal", "scopes", "note", "created_at", "expires_at", "last_used_at")


@token_commands.command("create")
@reporting
def create(
    principal: Annotated[str, typer.Argument(help="Who it is for; queries belong to the principal.")],
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="read, write or admin; may be repeated. Usually read.")
    ] = None,
    expires_in: Annotated[str | None, typer.Option(help='For how long it holds, as in "30 days".')] = None,
    note: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    url: Url = None,
    token: Token = None,
    pot: Pot = None,
    ca: Ca = None,
    output: Output = Format.TABLE,
) -> None:
    """Make a token and print it; it cannot be shown again."""
    with _tokens(url, token, pot, ca) as tokens:
        made = tokens.create(principal, scope or ["read"], expires_in, note)
    if output is Format.TABLE:
        print(f"token {made['id']} of {principal}: {', '.join(made['scopes'])}; it is shown once", file=sys.stderr)
        print(made["token"])
    else:
        show_object(made, output)


@token_commands.command("list")
@reporting
def list_tokens(
    url: Url = None, token: Token = None, pot: Pot = None, ca: Ca = None, output: Output = Format.TABLE
) -> None:
    """List the tokens, without what is secret."""
    with _tokens(url, token, pot, ca) as tokens:
        found = tokens.list()
    show_rows([{**one, "scopes": ", ".join(one["scopes"])} for one in found], output, columns=COLUMNS)


@token_commands.command("revoke")
@reporting
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, as `list` shows it.")],
    url: Url = None,
    token: Token = None,
    pot: Pot = None,
    ca: Ca = None,
) -> None:
    """Let a token open nothing any more."""
    with _tokens(url, token, pot, ca) as tokens:
        tokens.revoke(token_id)
    print(f"token {token_id} opens nothing any more", file=sys.stderr)


@contextmanager
def _tokens(url: str | None, token: str | None, pot: str | None, ca: str | None) -> Iterator[Any]:
    """The tokens of a pot of this machine, or those of a server."""
    target = target_of(url, token, pot, ca)
    # They bring the catalog or the client, which help does without.
    if target.pot:
        from tureen.cli.pot_tokens import PotTokens  # noqa: PLC0415

        yield PotTokens(target.pot)
        return
    from tureen.client.client import connect  # noqa: PLC0415
    from tureen.client.tokens import Tokens  # noqa: PLC0415

    with naming_the_token(target), connect(target.url, target.token, ca=target.ca) as client:
        yield Tokens(client.transport)
