"""JSON bodies: request bodies are validated against these models, response bodies are described by them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=1_000_000)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Scope = Literal["read", "write", "admin", "peer"]
Language = Literal["sql", "wxquery"]


class RequestBody(BaseModel):
    """A request body: no type coercion, no unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ResponseBody(BaseModel):
    """A response body."""


class NewQuery(RequestBody):
    """A query to register, or one for each row of parameters."""

    sql: Text
    language: Language = "sql"
    name: Name | None = None
    materialize: bool | Literal["auto"] = "auto"
    plan: str | None = None
    jit: bool | None = None
    params: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=10_000)] | None = None


class ShareRequest(RequestBody):
    """Whether other principals may read a query or template."""

    shared: bool


class QueryInfo(ResponseBody):
    """A standing query."""

    id: str
    name: str | None
    sql: str
    language: Language
    state: Literal["standing", "failed"]
    registered_at: datetime
    owner: str
    shared: bool
    template: str | None
    label: str | int | None
    place: str


class QueryList(ResponseBody):
    """A page of queries."""

    queries: list[QueryInfo]
    next: str | None


class ResultColumn(ResponseBody):
    """A column of an answer."""

    name: str
    type: str


class WindowBounds(ResponseBody):
    """The bounds of an answer's window."""

    begin: str | None
    end: str | None


class QueryResult(ResponseBody):
    """The answer of a query."""

    columns: list[ResultColumn]
    rows: list[dict[str, Any]]
    window: WindowBounds
    position: str
    complete: bool
    note: str | None
    truncated: bool


class TableRows(ResponseBody):
    """The rows of a table."""

    columns: list[ResultColumn]
    rows: list[dict[str, Any]]


class NewTemplate(RequestBody):
    """A template to register: a query for each row of parameters."""

    sql: Text
    params: Annotated[list[dict[str, Any]], Field(min_length=1)]
    name: Name | None = None
    label: Name | None = None


class AddedRows(ResponseBody):
    """The number of the first row that was added to a template, and the count of added rows."""

    first: int
    rows: int


class RowsToRemove(RequestBody):
    """The rows to remove from a template, by number or by value."""

    numbers: list[Annotated[int, Field(ge=0, lt=1 << 63)]] | None = None
    where: dict[str, Any] | None = None


class RemovedCount(ResponseBody):
    """The number of rows that were removed from a template."""

    removed: int


class TemplateInfo(ResponseBody):
    """A template."""

    id: str
    name: str | None
    sql: str
    queries: int
    label: str | None
    registered_at: datetime
    owner: str
    shared: bool


class TemplateList(ResponseBody):
    """A page of templates."""

    templates: list[TemplateInfo]
    next: str | None


class NewFunction(RequestBody):
    """A function to create: its source or its import path."""

    name: Name
    returns: Annotated[Text, Field(examples=["BOOLEAN"])]
    arguments: Annotated[Text, Field(examples=["STRING, INT"])]
    source: Text | None = None
    path: Annotated[Text | None, Field(examples=["package.module:name"])] = None
    vectorized: bool = False
    replace: bool = False


class FunctionInfo(ResponseBody):
    """A function, and the calls that the server observed."""

    name: str
    arguments: str
    returns: str
    vectorized: bool
    source: str | None
    path: str | None
    owner: str
    created_at: datetime
    calls: int
    seconds: float
    errors: int


class FunctionList(ResponseBody):
    """A page of functions."""

    functions: list[FunctionInfo]
    next: str | None


class NewTable(RequestBody):
    """A table to create."""

    name: Name
    schema_: Annotated[Text, Field(alias="schema", examples=["sym STRING, sector STRING"])]
    rows: list[dict[str, Any]] | None = None
    if_not_exists: bool = False


class TableInfo(ResponseBody):
    """A table."""

    name: str
    schema_: Annotated[str, Field(alias="schema")]
    rows: int
    bytes: int
    changed_at: datetime


class TableList(ResponseBody):
    """A page of tables."""

    tables: list[TableInfo]
    next: str | None


class ReasonInfo(ResponseBody):
    """What kept a tuple out of an answer, or how it is in it."""

    kind: str
    text: str
    factor: str | None
    truth: Literal["false", "unknown", "error"] | None
    values: dict[str, Any]
    input: str | None
    nearest: dict[str, Any] | None
    distance: float | None


class ExplainedTupleInfo(ResponseBody):
    """A tuple that satisfies the condition."""

    input: str
    row: dict[str, Any]
    time: datetime | None
    in_answer: bool
    reasons: list[ReasonInfo]


class ExplanationInfo(ResponseBody):
    """Why tuples are in a query's answer or not."""

    input: str
    tuples: list[ExplainedTupleInfo]
    total: int
    has_more: bool
    notes: list[str]
    types: dict[str, str]
    position: str


class StatementRequest(RequestBody):
    """A statement to run; in WXQuery, a query to answer once, or to explain after EXPLAIN."""

    sql: Text
    language: Language = "sql"


class StatementResult(ResponseBody):
    """The result of a statement."""

    kind: Literal["none", "query", "answer", "rows", "object", "explanation"]
    query: QueryInfo | None = None
    rows: list[dict[str, Any]] | None = None
    object: dict[str, Any] | None = None
    explanation: ExplanationInfo | None = None


class ReachedPosition(ResponseBody):
    """The position that was waited for."""

    position: str


class HealthStatus(ResponseBody):
    """The state of the server."""

    status: Literal["ok"]
    pipeline: Literal["starting", "running"]


class NewToken(RequestBody):
    """A token to create."""

    principal: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)] = ["read"]
    expires_in: Annotated[Text, Field(examples=["30 days"])] | None = None
    note: Annotated[str, Field(max_length=1_000)] | None = None


class TokenInfo(ResponseBody):
    """A token, without its secret."""

    id: str
    principal: str
    scopes: list[Scope]
    note: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class CreatedToken(TokenInfo):
    """A new token, with its secret text."""

    token: str


class TokenList(ResponseBody):
    """A page of tokens."""

    tokens: list[TokenInfo]
    next: str | None


class TextPosition(ResponseBody):
    """A position in a SQL text."""

    line: int
    column: int


class ErrorInfo(ResponseBody):
    """An error."""

    code: str
    message: str
    detail: str | None = None
    hint: str | None = None
    position: TextPosition | None = None
    request: str


class ErrorBody(ResponseBody):
    """The body of every response that is not a success."""

    error: ErrorInfo
