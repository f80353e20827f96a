"""The interface of a pot: the methods that `tureen.open` and `tureen.connect` both give.

`Soup` and `Client` implement it and inherit its docstrings. It needs no package of the extras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa

from tureen.position import Pushed
from tureen.punctuation import Punctuation
from tureen.results.answer import Answer, Change
from tureen.schema import Schema
from tureen.soup.standing import QueryTemplate, StandingQuery
from tureen.why.explanation import Explanation

AnyPunctuation = Punctuation | Mapping[str, Any]
"""A punctuation, or the mapping from columns to patterns that it has."""

Positions = str | list[str] | tuple[str, ...] | set[str]
"""A position, or several."""

Outcome = StandingQuery | Answer | Explanation | list[dict[str, Any]] | dict[str, Any] | None
"""The result of a statement: REGISTER returns a handle, INVOKE and SELECT an answer, SHOW rows, EXPLAIN and DESCRIBE a
dict, EXPLAIN ROW an explanation."""


class AnySoup(Protocol):
    """A pot, opened in this process or behind a server: its streams, tables, standing queries and templates."""

    # Streams

    def create_stream(
        self,
        name: str,
        schema: str | Schema | None = None,
        *,
        time: str | None = None,
        retain: str | None = None,
        clock: str | None = None,
        source: dict[str, Any] | None = None,
        query: str | None = None,
        unique: Sequence[str] | None = None,
        lateness: str | None = None,
        punctuate: str | None = None,
        key: Sequence[str] | None = None,
        item: str | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a stream, fed by `push`, by a Spark source or by a query.

        `schema` lists the columns as in CREATE TABLE. `time` names the time column; without it, the time is that of
        arrival. A time column that is DOUBLE or BIGINT is an abstract clock in seconds. `retain` is how long rows are
        kept, such as "1 day"; with "needed", until no window, derived stream or followed join needs them. With
        `clock="stream"`, NOW is the highest time seen, for replays. `source` has the keys `format` and `options`.
        `if_not_exists` keeps an existing stream unchanged.

        `unique` names columns whose values together identify a tuple: a second tuple with the same values is rejected.
        With a `lateness`, such as "10 seconds", tuples that are older than the highest time seen by more than that are
        rejected. With `punctuate="closed"` and `key=["item"]`, a row in which the BOOLEAN column `closed` is true is
        the last one with its item: later ones are rejected, as after a punctuation. If the column is a STRING, or a
        header of a source that gives headers, it has punctuations as JSON, such as `{"item": 180}`, without a key.

        `item` is the path of the stream's items in XML documents, such as "photons/photon"; columns are then named by
        their paths below an item, such as "`coord/cel/ra` DOUBLE".

        With a `query` instead of a schema, the stream is derived: its tuples are the changes of that query, from the
        first retained tuple on, and the rows of steps that are over. Its time is, unless `time` names another column,
        the first column that is the time of an input, or the start of a step. Its clock is that of its inputs.
        """

    def drop_stream(self, name: str) -> None:
        """Remove a stream, its tuples, and the queries over it."""

    def streams(self) -> list[dict[str, Any]]:
        """The streams, in order of creation."""

    def push(
        self,
        stream: str,
        rows: Any,
        *,
        key: str | None = None,
        punctuations: Iterable[AnyPunctuation] | None = None,
        format: str | None = None,  # noqa: A002 - the name people expect
        batch: int = 10_000,
    ) -> Pushed:
        """Add rows to a stream and return their position, which has the attributes `added` and `rejected`.

        The rows are durable then, and in every later answer. `rows` is a list of dicts, an Arrow table or batch, or a
        pandas or polars DataFrame. Either all rows are stored or none. With a `key`, repeating the push changes
        nothing, and `added` is 0. A client that gets no key generates one, so that a push whose response was lost is
        not stored twice.

        A list may have punctuations among its rows, and `punctuations` come after the rows. Rows that match an earlier
        punctuation of the stream are not stored: they are counted in `rejected`, and `rejected()` returns them.

        With `format="xml"`, `rows` is a document in bytes, or the path of one, which is stored as a whole or not at
        all. It may also be a file object: a stream of XML, which is stored in batches of `batch` items, each under the
        key and its number.
        """

    def punctuate(self, stream: str, where: AnyPunctuation, *, key: str | None = None) -> Pushed:
        """Promise that no later tuple of a stream matches a pattern, and return the position of the promise.

        `where` maps columns to values, lists of values or a `tureen.Range`; a tuple matches if all of them do. Later
        tuples that match are rejected.
        """

    def rejected(self, stream: str) -> list[dict[str, Any]]:
        """The rows of a stream that could not be stored, with the reason."""

    # Tables

    def create_table(
        self, name: str, schema: str | Schema | None = None, rows: Any = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a table: dimension data without time; `if_not_exists` keeps an existing one unchanged.

        `rows` is a list of dicts, an Arrow table or batch, a pandas, polars or Spark DataFrame, or the path of a `.csv`
        or `.parquet` file, which is read by this process. Without a `schema`, it is derived from the types of the rows.
        """

    def replace_table(self, name: str, rows: Any) -> None:
        """Replace all rows of a table atomically."""

    def drop_table(self, name: str) -> None:
        """Remove a table."""

    def table(self, name: str) -> pa.Table:
        """All rows of a table."""

    def tables(self) -> list[dict[str, Any]]:
        """The tables, in order of creation."""

    # Functions

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | str,
        returns: str,
        *,
        arguments: str,
        vectorized: bool = False,
        replace: bool = False,
    ) -> None:
        """Create a function that queries can call; on a server, for admins only.

        `function` is a plain Python function, whose source is stored, or an import path, "package.module:name".
        `arguments` has the types of its arguments, such as "STRING, INT"; NULL is None. With `vectorized`, it is called
        with a `pyarrow.Array` for each argument, and returns one. `replace` replaces a function that no query calls.
        """

    def drop_function(self, name: str) -> None:
        """Remove a function that no query calls; on a server, for admins only."""

    def functions(self) -> list[dict[str, Any]]:
        """The functions, in order of creation, with their types, their code, and the calls that were observed."""

    # Peers

    def peers(self) -> list[dict[str, Any]]:
        """The servers that this one receives streams from or shares streams with, and their state; for admins.

        An embedded pot has none: only a running server has peers.
        """

    def network(self) -> dict[str, Any]:
        """What this server receives from its peers, by which links, and what they receive; for admins."""

    def add_peer(self, name: str, url: str, *, token: str | None = None, ca: str | None = None) -> None:
        """Receive streams from the server of that name and address; for admins.

        `token` is one that this peer has created for this server, with the scope `peer`. `ca` is a PEM file of
        certificates to trust instead of the system's, which the server reads.
        """

    def remove_peer(self, name: str) -> None:
        """Receive nothing from a peer any more, and share nothing with it; for admins."""

    def share_stream(self, peer: str, stream: str) -> None:
        """Let a peer receive a stream; for admins."""

    def unshare_stream(self, peer: str, stream: str) -> None:
        """Withdraw a stream from a peer; for admins."""

    # Queries

    def register(
        self,
        sql: str,
        *,
        name: str | None = None,
        materialize: bool | str = "auto",
        plan: str | None = None,
        jit: bool | None = None,
        language: str = "sql",
    ) -> StandingQuery:
        """Register a standing query; its answers also include tuples that arrived before.

        `language` is that of the text: "sql" or "wxquery".

        `materialize=True` matches arriving tuples with the query; `False` evaluates the query from the index when it is
        invoked; `"auto"` chooses by cost and by how often the query is invoked.

        `plan` and `jit` are for a join that is followed or derived. `plan="eddy"` joins each new tuple with all other
        inputs; `"left-deep"` and `"bushy"` keep intermediate results in a tree of joins. With `jit=True` such a tree
        suspends tuples while they have no partners; with `False` it never does, and with the eddy there are none to
        suspend. What is left out is chosen by cost.
        """

    def query(self, handle_or_name: str) -> StandingQuery:
        """The standing query of that handle or name."""

    def queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[StandingQuery]:
        """The standing queries, in order of registration, without those of templates (see `QueryTemplate`).

        `limit` is the maximum number of queries; pass the `place` of the last one as `after` for the next page. `owner`
        selects the queries of a principal, or of all principals with "*"; on a server, for admins only.
        """

    def describe_queries(
        self, *, after: str | None = None, limit: int | None = None, owner: str | None = None
    ) -> list[dict[str, Any]]:
        """Descriptions of the queries that `queries` returns."""

    def share(self, handle: str, shared: bool = True) -> None:
        """Allow other principals to invoke and follow a query or template by its handle; `shared=False` revokes it."""

    def answer_once(self, sql: str, *, now: datetime | None = None, language: str = "sql") -> Answer:
        """The answer of an unregistered query; a client does not support `now`."""

    def explain_once(self, sql: str, *, language: str = "sql") -> dict[str, Any]:
        """How an unregistered query would be answered."""

    def feed(self, *, since: str | None = None, timeout: float | None = None) -> Iterator[Change]:
        """The changes of all queries and templates that can be followed, with those of groups.

        The positions are those of the feed: resuming from one neither misses nor repeats a change. Positions of answers
        and of single queries do not fit.
        """

    # Templates

    def register_many(
        self, sql: str, params: Any, *, name: str | None = None, label: str | None = None
    ) -> QueryTemplate:
        """Register a query for each row of parameters, written `:name` in the select list, in WHERE or in HAVING.

        `params` is a list of dicts, an Arrow table, or a pandas or polars DataFrame. The queries are stored as values
        and evaluated when they are invoked, so that a million of them do not slow down arriving tuples. `label` is a
        column of `params` that is returned with each change, whether the SQL uses it or not.
        """

    def template(self, handle_or_name: str) -> QueryTemplate:
        """The template of that handle or name."""

    def templates(self, *, owner: str | None = None) -> list[dict[str, Any]]:
        """The templates, in order of registration, with the number of their queries.

        `owner` selects the templates of a principal, or of all principals with "*"; on a server, for admins only.
        """

    def describe_template(self, handle_or_name: str) -> dict[str, Any]:
        """The description of one template, as `templates` returns it."""

    # The pot

    def sql(self, text: str) -> Outcome:
        """Run one statement: CREATE, DROP, REGISTER, INVOKE, SHOW, DESCRIBE, EXPLAIN or SELECT (docs/statements.md).

        The file of `CREATE TABLE … FROM 'file'` is read by this process.
        """

    def wait(self, position: Positions, *, timeout: float | None = None) -> None:
        """Wait until answers reflect a position, or each of several; they reflect every push that has returned."""

    def status(self) -> dict[str, Any]:
        """The state of the pot: rows, runs, tail, debts, queries, position, lag."""

    def close(self) -> None:
        """Release the pot, or close the connections to its server.

        A pot that is open when the program ends is closed.
        """

    def __enter__(self) -> Self:
        """Return this object, which is closed at the end of the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close this object."""
