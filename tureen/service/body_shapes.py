"""The shapes of JSON bodies, as they are checked where they come in and described for what goes out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Scope = Literal["read", "write", "admin"]


class Given(BaseModel):
    """A body that comes in: nothing is guessed, and nothing is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """A body that goes out."""


class Source(Given):
    """An outside source of a stream."""

    format: Text
    options: dict[str, str | int | float | bool] = {}


class NewStream(Given):
    """A stream that is to be made."""

    name: Name
    schema_: Annotated[Text, Field(alias="schema", examples=["sym STRING, price DOUBLE, ts TIMESTAMP"])]
    time: Name | None = None
    retain: Text | None = None
    clock: Literal["wall", "stream"] = "wall"
    source: Source | None = None
    if_not_exists: bool = False


class Stream(Shown):
    """A stream as it was made."""

    name: str
    schema_: Annotated[str, Field(alias="schema")]
    time: str | None
    clock: str
    retain_seconds: float | None
    source: dict[str, Any] | None
    error: str | None


class Streams(Shown):
    """Some streams."""

    streams: list[Stream]
    next: str | None


class Pushed(Shown):
    """Rows that are durable; `added` are those that this push added, none where it repeats one by its key."""

    position: str
    rows: int
    added: int


class Rejected(Shown):
    """A row that could not be taken."""

    rejected_at: datetime
    reason: str
    row: Any


class RejectedRows(Shown):
    """Rows that could not be taken."""

    rejected: list[Rejected]
    next: str | None


class NewQuery(Given):
    """A query that is to stand, or one for each row of parameters."""

    sql: Text
    name: Name | None = None
    materialize: bool | Literal["auto"] = "auto"
    params: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)] | None = None


class Sharing(Given):
    """Whether others may read a query."""

    shared: bool


class Query(Shown):
    """A standing query."""

    id: str
    name: str | None
    sql: str
    state: Literal["standing", "failed"]
    registered_at: datetime
    owner: str
    shared: bool
    template: str | None
    label: str | int | None
    place: str


class Queries(Shown):
    """Some queries."""

    queries: list[Query]
    next: str | None


class ResultColumn(Shown):
    """A column of an answer."""

    name: str
    type: str


class Window(Shown):
    """The window that an answer covers."""

    begin: str | None
    end: str | None


class Result(Shown):
    """What a query answers."""

    columns: list[ResultColumn]
    rows: list[dict[str, Any]]
    window: Window
    position: str
    complete: bool
    truncated: bool


class TableRows(Shown):
    """The rows of a table."""

    columns: list[ResultColumn]
    rows: list[dict[str, Any]]


class NewTemplate(Given):
    """A query for each row of parameters."""

    sql: Text
    params: Annotated[list[dict[str, Any]], Field(min_length=1)]
    name: Name | None = None
    label: Name | None = None


class AddedRows(Shown):
    """The numbers that rows of parameters took."""

    first: int
    rows: int


class RemovedRows(Given):
    """The rows of parameters that are to go: by their numbers, or by their values."""

    numbers: list[Annotated[int, Field(ge=0, lt=1 << 63)]] | None = None
    where: dict[str, Any] | None = None


class Removed(Shown):
    """How many queries stand no longer."""

    removed: int


class Template(Shown):
    """Many queries of one shape."""

    id: str
    name: str | None
    sql: str
    queries: int
    label: str | None
    registered_at: datetime
    owner: str
    shared: bool


class Templates(Shown):
    """Some templates."""

    templates: list[Template]
    next: str | None


class NewTable(Given):
    """A table that is to be made."""

    name: Name
    schema_: Annotated[Text, Field(alias="schema", examples=["sym STRING, sector STRING"])]
    rows: list[dict[str, Any]] | None = None
    if_not_exists: bool = False


class Table(Shown):
    """A table."""

    name: str
    schema_: Annotated[str, Field(alias="schema")]
    rows: int
    bytes: int
    changed_at: datetime


class Tables(Shown):
    """Some tables."""

    tables: list[Table]
    next: str | None


class Statement(Given):
    """One statement."""

    sql: Text


class Outcome(Shown):
    """What came out of a statement."""

    kind: Literal["none", "query", "answer", "rows", "object"]
    query: Query | None = None
    rows: list[dict[str, Any]] | None = None
    object: dict[str, Any] | None = None


class Waited(Shown):
    """What has come."""

    position: str


class Health(Shown):
    """How the server is."""

    status: Literal["ok"]


class NewToken(Given):
    """A token that is to be made."""

    principal: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] = ["read"]
    expires_in: Annotated[Text, Field(examples=["30 days"])] | None = None
    note: Annotated[str, Field(max_length=1_000)] | None = None


class Token(Shown):
    """A token, without its secret."""

    id: str
    principal: str
    scopes: list[Scope]
    note: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class CreatedToken(Token):
    """A token that was made now, with the text to send."""

    token: str


class Tokens(Shown):
    """Some tokens."""

    tokens: list[Token]
    next: str | None


class Place(Shown):
    """A place in a SQL text."""

    line: int
    column: int


class Error(Shown):
    """What went wrong."""

    code: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: Place | None = None
    request: str


class Problem(Shown):
    """The body of every answer that is not a success."""

    error: Error
