"""Standing queries as values: what a registration contains, and what the catalog has of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tureen.functions.user_function import UserFunction
from tureen.plan_hint import NO_HINT, PlanHint
from tureen.pot.kept_joins import NewJoin
from tureen.predicate import Clause
from tureen.query import RelationKind
from tureen.schema import Schema, name_key

LOCAL = "local"
"""The owner of what is registered without a service."""

DERIVED = "$derived"
"""The owner of the queries of derived streams, which no list contains; `check_name` refuses it for a principal."""


@dataclass(frozen=True, slots=True)
class NewInput:
    """An input of a query that is being registered: a stream with its clause, or a table."""

    stream_id: int | None = None
    clause: Clause = ()
    table_id: str | None = None
    needs: str | None = None
    """What its window needs of a stream that keeps what is needed; see `tureen.pot.window_needs`."""

    @property
    def kind(self) -> RelationKind:
        """Whether it is a stream or a table."""
        return RelationKind.STREAM if self.table_id is None else RelationKind.TABLE


@dataclass(frozen=True, slots=True)
class Registration:
    """A query that is being registered."""

    sql: str
    shape: str
    inputs: tuple[NewInput, ...]
    eager: bool | None = None
    """Whether its results are to be kept ready; None leaves it to the engine."""
    name: str | None = None
    owner: str = LOCAL
    language: str = "sql"
    join: NewJoin | None = None
    """The join of streams that it contains, unless the query is to be evaluated when it is invoked."""
    functions: tuple[UserFunction, ...] = ()
    """The user functions that it calls."""
    plan_hint: PlanHint = NO_HINT
    """How its join is computed while it is followed."""

    @property
    def name_key(self) -> str | None:
        """The form of its name that must be unique for an owner."""
        return None if self.name is None else name_key(self.name)


@dataclass(frozen=True, slots=True)
class Unregistration:
    """A query that is being unregistered, by its handle; with an owner, only if it is theirs."""

    handle: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class RegisteredInput:
    """An input of a standing query: a relation, and the state of its clause."""

    kind: RelationKind = RelationKind.STREAM
    stream_id: int | None = None
    table_id: str | None = None
    clause_id: int | None = None
    """None where the query is not registered, or is one of a template."""
    number: int | None = None
    """The clause's number in cells, while the clause is eager."""
    clause_seq: int = 0
    """The commit by which the clause became eager."""
    needs: str | None = None
    """See `NewInput`; only of a query that is being registered."""


@dataclass(frozen=True, slots=True)
class MemberValues:
    """A template, and the row of values that makes one of its queries."""

    template: str
    """Its handle."""
    sql: str
    columns: Schema
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Registered:
    """A standing query as the catalog has it."""

    id: str
    name: str | None
    sql: str
    shape: str
    inputs: tuple[RegisteredInput, ...]
    seq: int
    registered_at: int
    owner: str
    shared: bool = False
    eager: bool | None = False
    """What its registration asked for: results kept ready, or not, or as the engine decides."""
    error: str | None = None
    label: str | int | None = None
    """The label of its changes, where it is a query of a template with labels."""
    values: MemberValues | None = None
    """The values of its parameters, where it is a query of a template."""
    language: str = "sql"
    join_id: int | None = None
    """The join that it contains, whose results may be kept."""
    plan_hint: PlanHint = NO_HINT
    """How its join is computed while it is followed."""

    @property
    def stream(self) -> RegisteredInput:
        """The first input; the only one of a query without a join."""
        return self.inputs[0]

    @cached_property
    def stream_ids(self) -> tuple[int, ...]:
        """The streams that it reads, each once."""
        return tuple(dict.fromkeys(entry.stream_id for entry in self.inputs if entry.stream_id is not None))

    @cached_property
    def table_ids(self) -> tuple[str, ...]:
        """The tables that it reads, each once."""
        return tuple(dict.fromkeys(entry.table_id for entry in self.inputs if entry.table_id is not None))

    @property
    def cursor(self) -> str:
        """Its position in the order of registration: the next page of a listing continues from it."""
        return f"{self.seq:015d}.{self.id}"

    @property
    def state(self) -> str:
        """Either "standing", or "failed" once it raised on some tuple."""
        return "standing" if self.error is None else "failed"
