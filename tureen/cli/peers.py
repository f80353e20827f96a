"""`tureen peer …`: the servers that a server receives streams from, and the streams that it shares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tureen.cli.output import Format, show_rows
from tureen.cli.target import AnySoup, Output, on_soup
from tureen.errors import TureenError

peer_commands = typer.Typer(
    no_args_is_help=True, help="Peers of a server, for admins: add, list, remove; share streams with them."
)

Name = Annotated[str, typer.Argument(help="The name of the peer, which is the --name of its server.")]
StreamName = Annotated[str, typer.Argument(metavar="STREAM", help="The stream.")]

COLUMNS = ("name", "url", "state", "since", "offers", "shared", "flows", "kept", "refused", "bytes", "error")


@peer_commands.command("add")
@on_soup
def add_peer(
    soup: AnySoup,
    name: Name,
    address: Annotated[str, typer.Argument(metavar="URL", help="The address of its server.")],
    peer_token: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The token that it has created for this server (scope peer).")
    ] = None,
    peer_token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with that token, so that no command line shows it.")
    ] = None,
    peer_ca: Annotated[
        str | None, typer.Option(metavar="FILE", help="A PEM file on this server of certificates to trust.")
    ] = None,
) -> None:
    """Receive streams from another server.

    Without a token, the server reads it from its environment or its peer_tokens when it connects.
    """
    if peer_token_file is not None:
        if peer_token is not None:
            raise TureenError("--peer-token and --peer-token-file exclude each other", hint="use one of them")
        peer_token = _read_token(peer_token_file)
    soup.add_peer(name, address, token=peer_token, ca=peer_ca)
    print(f"peer {name} added", file=sys.stderr)


def _read_token(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TureenError(f"the file '{path}' cannot be read", detail=str(error)) from None


@peer_commands.command("list")
@on_soup
def list_peers(soup: AnySoup, output: Output = Format.TABLE) -> None:
    """List the peers, whether they answer, what they offer and what is shared with them."""
    show_rows(soup.peers(), output, columns=COLUMNS)


@peer_commands.command("remove")
@on_soup
def remove_peer(soup: AnySoup, name: Name) -> None:
    """Receive nothing from a peer any more, and share nothing with it."""
    soup.remove_peer(name)
    print(f"peer {name} removed", file=sys.stderr)


@peer_commands.command("share")
@on_soup
def share_stream(soup: AnySoup, name: Name, stream: StreamName) -> None:
    """Let a peer receive a stream."""
    soup.share_stream(name, stream)
    print(f"stream {stream} shared with {name}", file=sys.stderr)


@peer_commands.command("unshare")
@on_soup
def unshare_stream(soup: AnySoup, name: Name, stream: StreamName) -> None:
    """Withdraw a stream from a peer."""
    soup.unshare_stream(name, stream)
    print(f"stream {stream} withdrawn from {name}", file=sys.stderr)
