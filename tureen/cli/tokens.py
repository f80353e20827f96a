"""`tureen token …`: the tokens of a server, managed by an admin over HTTP or on the local pot."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

import typer

from tureen.cli.output import Format, show_object, show_rows
from tureen.cli.target import Ca, Output, Pot, Token, Url, reporting, target_of, token_hint
from tureen.errors import needs_extra

token_commands = typer.Typer(
    no_args_is_help=True, help="Tokens: create, list, revoke. --pot works while a server runs, too."
)

COLUMNS = ("id", "principal", "scopes", "note", "created_at", "expires_at", "last_used_at")


@token_commands.command("create")
@reporting
def create(
    principal: Annotated[str, typer.Argument(help="The owner of the queries that are registered with the token.")],
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="read, write, admin or peer; may be repeated. Default: read.")
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option(help='How long it is valid, for example "30 days"; default: for ever.')
    ] = None,
    note: Annotated[str | None, typer.Option(help="A note, shown by `list`.")] = None,
    url: Url = None,
    token: Token = None,
    pot: Pot = None,
    ca: Ca = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a token and print it; it is not shown again."""
    with _tokens(url, token, pot, ca) as tokens:
        created = tokens.create(principal, scope or ["read"], expires_in, note)
    if output is Format.TABLE:
        scopes = ", ".join(created["scopes"])
        print(f"token {created['id']} of {principal} ({scopes}); it is not shown again", file=sys.stderr)
        print(created["token"])
    else:
        show_object(created, output)


@token_commands.command("list")
@reporting
def list_tokens(
    url: Url = None, token: Token = None, pot: Pot = None, ca: Ca = None, output: Output = Format.TABLE
) -> None:
    """List the tokens without their secrets."""
    with _tokens(url, token, pot, ca) as tokens:
        entries = tokens.list()
    show_rows([{**entry, "scopes": ", ".join(entry["scopes"])} for entry in entries], output, columns=COLUMNS)


@token_commands.command("revoke")
@reporting
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, as `list` shows it.")],
    url: Url = None,
    token: Token = None,
    pot: Pot = None,
    ca: Ca = None,
) -> None:
    """Revoke a token."""
    with _tokens(url, token, pot, ca) as tokens:
        tokens.revoke(token_id)
    print(f"token {token_id} revoked", file=sys.stderr)


@contextmanager
def _tokens(url: str | None, token: str | None, pot: str | None, ca: str | None) -> Iterator[Any]:
    """The tokens of a local pot, or of a server."""
    target = target_of(url, token, pot, ca)
    # They import the catalog or the client, which help does not need.
    if target.pot:
        with needs_extra("engine", "--pot"):
            from tureen.cli.pot_tokens import PotTokens  # noqa: PLC0415

        yield PotTokens(target.pot)
        return
    from tureen.client.tokens import RemoteTokens  # noqa: PLC0415
    from tureen.client.transport import Transport  # noqa: PLC0415

    with token_hint(target), closing(Transport(target.url, target.token, ca=target.ca)) as transport:
        yield RemoteTokens(transport)
