"""Look-up of a stream by name among those that peers share."""

from __future__ import annotations

from collections.abc import Mapping

from tureen.errors import DuplicateName, TureenError
from tureen.federation.neighbour import PeerInfo, SharedStream
from tureen.schema import name_key


def shared_stream(infos: Mapping[str, PeerInfo | TureenError], name: str) -> SharedStream | None:
    """The stream that peers share under a name; None if none does. Raises if it is not one stream."""
    shared: dict[str, list[tuple[str, SharedStream]]] = {}
    for peer, info in infos.items():
        for stream in info.streams if isinstance(info, PeerInfo) else ():
            if name_key(stream.name) == name_key(name):
                shared.setdefault(stream.origin, []).append((peer, stream))
    if not shared:
        return None
    if len(shared) > 1:
        peers = " and ".join(sorted(f"'{entries[0][0]}'" for entries in shared.values()))
        raise DuplicateName(
            f"there are different streams named '{name}' at {peers}",
            hint="ask one of them to share it no longer, or to give it another name",
        )
    (entries,) = shared.values()
    homes = sorted(peer for peer, stream in entries if stream.home == peer)
    if len(homes) > 1:
        raise DuplicateName(
            f"stream '{name}' lives at {' and '.join(map(repr, homes))}",
            detail="their pots are copies of one pot",
            hint="make copies with `tureen backup`, which have an identity of their own",
        )
    return entries[0][1]
