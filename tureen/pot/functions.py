"""User functions in the catalog: their definitions, and the queries that call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, func, insert, select

from tureen.errors import DuplicateName, FunctionInUse, UnknownFunction, nearest
from tureen.functions.user_function import UserFunction, function_key
from tureen.pot.catalog import micros_now
from tureen.pot.catalog_tables import functions, queries, streams
from tureen.pot.registered import DERIVED
from tureen.pot.statements import Prepared
from tureen.pot.template_tables import templates
from tureen.pot.transaction import Transaction

Calls = Callable[[str, str], bool]
"""Whether the SQL of a query calls the function of a name."""

SHOWN_USERS = 5
"""The maximum number of queries that an error names."""


@dataclass(frozen=True, slots=True)
class StoredFunction:
    """A function in the catalog, its creator, and the time in microseconds."""

    function: UserFunction
    owner: str
    created_at: int


def add_function(
    tx: Transaction, function: UserFunction, owner: str, calls_function: Calls, *, replace: bool = False
) -> None:
    """Add a function; with `replace`, instead of one of the same name that no query calls."""
    existing = find_function(tx, function.name)
    if existing == function:
        if replace:
            return
        raise DuplicateName(f"function '{function.name}' exists already", hint="pass replace=True to replace it")
    if existing is not None:
        if not replace:
            raise DuplicateName(f"function '{function.name}' exists already", hint="pass replace=True to replace it")
        remove_function(tx, function.name, calls_function, "replaced")
    key = function_key(function.name)
    tx.execute(
        insert(functions).values(
            name_key=key, name=function.name, definition=function.text, owner=owner, created_at=micros_now()
        )
    )


def remove_function(tx: Transaction, name: str, calls_function: Calls, action: str = "dropped") -> None:
    """Remove a function; raises FunctionInUse if queries call it."""
    function = find_function(tx, name)
    if function is None:
        raise unknown_function(tx, name)
    users = list(users_of(tx, function.name, calls_function))
    if users:
        listed = ", ".join(users[:SHOWN_USERS]) + (f" and {len(users) - SHOWN_USERS} more" * (len(users) > SHOWN_USERS))
        raise FunctionInUse(
            f"function '{function.name}' cannot be {action}: it is called by {listed}",
            hint="unregister these queries, and drop these streams, first",
        )
    tx.execute(delete(functions).where(functions.c.name_key == function_key(name)))


_DEFINITION = Prepared(select(functions.c.definition).where(functions.c.name_key == bindparam("name")))


def find_function(tx: Transaction, name: str) -> UserFunction | None:
    """The function of that name, or None."""
    if not _has_table(tx):
        return None
    text = tx.execute(_DEFINITION, {"name": function_key(name)}).scalar()
    return None if text is None else UserFunction.parse(text)


class StoredFunctions:
    """Looks up functions in the catalog."""

    def __init__(self, read: Callable[[], AbstractContextManager[Transaction]]) -> None:
        """Look up each function in a transaction that `read` begins: few queries call one."""
        self._read = read

    @classmethod
    def of(cls, tx: Transaction) -> StoredFunctions:
        """Look up functions in a transaction that has begun."""
        return cls(lambda: nullcontext(tx))

    def __call__(self, name: str, /) -> UserFunction | None:
        """The function of a name; None if there is none."""
        with self._read() as tx:
            return find_function(tx, name)

    def names(self) -> list[str]:
        """The names of all functions."""
        with self._read() as tx:
            return [stored.function.name for stored in list_functions(tx)]


def unknown_function(tx: Transaction, name: str) -> UnknownFunction:
    """The error for a name that no function has."""
    names = [stored.function.name for stored in list_functions(tx)]
    return UnknownFunction(f"there is no function named '{name}'", hint=nearest(name, names))


def list_functions(tx: Transaction) -> list[StoredFunction]:
    """All functions, in order of creation."""
    if not _has_table(tx):
        return []
    rows = tx.execute(select(functions).order_by(functions.c.id))
    return [StoredFunction(UserFunction.parse(row.definition), row.owner, row.created_at) for row in rows]


def _has_table(tx: Transaction) -> bool:
    """Whether the pot can have functions: an older one in a read-only directory has no table of them."""
    names = tx.execute_text("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'functions'")
    return names.scalar() is not None


def users_of(tx: Transaction, name: str, calls_function: Calls) -> Iterable[str]:
    """The queries, templates and derived streams that call a function, as texts for people."""
    derived = dict(tx.execute(select(streams.c.query_id, streams.c.name).where(streams.c.query_id.is_not(None))).all())
    for kind, table in (("query", queries), ("template", templates)):
        candidates = select(table).where(func.instr(func.lower(table.c.sql), name.lower()) > 0)
        for row in tx.execute(candidates):
            if not calls_function(row.sql, name):
                continue
            if row.owner == DERIVED:
                yield f"stream '{derived.get(row.id, row.id)}'"
            else:
                yield f"{kind} '{row.name or row.id}'"


def check_functions(tx: Transaction, called: Iterable[UserFunction]) -> None:
    """Raise if a function was dropped or replaced since a query was bound to it."""
    for function in called:
        if find_function(tx, function.name) != function:
            raise UnknownFunction(f"function '{function.name}' was dropped while the query was registered")
