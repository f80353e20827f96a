"""Tokens of peers that are not stored in the pot: from the environment, or from files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tureen.errors import TureenError
from tureen.pot.peers import Peer

VARIABLE = "TUREEN_PEER_TOKEN_"
"""The beginning of the names of the variables, which the name of the peer follows."""

LARGEST_TOKEN = 4096


def with_token(peer: Peer, directory: str, environ: Mapping[str, str] | None = None) -> Peer:
    """A peer with its token: the stored one, or that of the environment, or that of the file of its name.

    They are read again for each new connection, so that a token can be replaced.
    """
    if peer.token is not None:
        return peer
    token = (os.environ if environ is None else environ).get(variable_of(peer.name))
    if not token and directory:
        token = _read_token(Path(directory) / peer.name)
    return replace(peer, token=token or None)


def variable_of(name: str) -> str:
    """The name of the environment variable with the token of a peer.

    >>> variable_of("site-2.north")
    'TUREEN_PEER_TOKEN_SITE_2_NORTH'
    """
    return VARIABLE + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _read_token(path: Path) -> str | None:
    # Names of peers have no slashes.
    if not path.is_file():
        return None
    try:
        with open(path) as file:
            return file.read(LARGEST_TOKEN).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TureenError("the file with the token of a peer cannot be read", detail=type(error).__name__) from None
