"""The statements about peers: CREATE PEER, SHARE and UNSHARE."""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.errors import Location, SqlError
from tureen.language.text.statement_reader import StatementReader


@dataclass(frozen=True, slots=True)
class CreatePeer:
    """`CREATE PEER name URL 'address' [TOKEN 'text'] [CA 'file']`."""

    name: str
    url: str
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    location: Location = field(default=Location(1, 1), compare=False)


@dataclass(frozen=True, slots=True)
class ShareStream:
    """`SHARE STREAM stream WITH peer`, or `UNSHARE …`."""

    stream: str
    peer: str
    shared: bool = True
    location: Location = field(default=Location(1, 1), compare=False)


def read_create_peer(reader: StatementReader) -> CreatePeer:
    """Read what comes after CREATE PEER."""
    location, name = reader.location(), reader.name("peer")
    reader.expect("URL", f"write CREATE PEER {name} URL 'http://…'")
    values = {"URL": reader.string("an address in quotes", "as in URL 'http://127.0.0.1:7707'")}
    while reader.peek() is not None:
        word = reader.word()
        if word in values:
            raise SqlError(f"duplicate {word}", location=reader.location())
        reader.expect_any(("TOKEN", "CA"), "after the address come TOKEN and CA")
        values[word] = reader.string("a text in quotes", f"as in {word} '…'")
    return CreatePeer(name, values["URL"], values.get("TOKEN"), values.get("CA"), location)


def read_share(reader: StatementReader, *, shared: bool = True) -> ShareStream:
    """Read what comes after SHARE or UNSHARE."""
    verb = "SHARE" if shared else "UNSHARE"
    reader.expect("STREAM", f"write {verb} STREAM trades WITH a peer")
    location, stream = reader.location(), reader.name("stream")
    reader.expect("WITH", f"write {verb} STREAM {stream} WITH a peer")
    return ShareStream(stream, reader.name("peer"), shared, location)
