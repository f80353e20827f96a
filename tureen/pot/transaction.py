"""A transaction on the pot's database: executes statements, and returns their rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy.sql import Executable

from tureen.pot.statements import CompiledStatement, Prepared, form_of, row_type

_NO_VALUES: Mapping[str, Any] = {}


class ResultRows:
    """The rows of a statement: tuples, whose columns are attributes. They are read once."""

    __slots__ = ("_cursor", "_form")

    def __init__(self, cursor: sqlite3.Cursor, form: CompiledStatement | None = None) -> None:
        """Read them from a cursor; the form of the statement converts their values."""
        self._cursor = cursor
        self._form = form

    def __iter__(self) -> Iterator[Any]:
        """All rows."""
        # Fetched at once, so that a statement is over before the next one is executed.
        rows = self._cursor.fetchall()
        return map(self._maker(), rows) if rows else iter(())

    def all(self) -> list[Any]:
        """All rows."""
        return list(self)

    def first(self) -> Any:
        """The first row, or None."""
        row = self._cursor.fetchone()
        if row is None:
            return None
        made = self._maker()(row)
        self._cursor.close()
        return made

    def one(self) -> Any:
        """The only row."""
        (row,) = self
        return row

    def scalars(self) -> list[Any]:
        """The first column of all rows."""
        convert = self._converter()
        values = [row[0] for row in self._cursor.fetchall()]
        return values if convert is None else [convert(value) for value in values]

    def scalar(self) -> Any:
        """The first column of the first row; None without rows."""
        row, convert = self._cursor.fetchone(), self._converter()
        self._cursor.close()
        if row is None:
            return None
        return row[0] if convert is None else convert(row[0])

    def scalar_one(self) -> Any:
        """The first column of the only row."""
        (value,) = self.scalars()
        return value

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        return self._cursor.rowcount

    def _converter(self) -> Callable[[Any], Any] | None:
        return self._form.converters[0] if self._form is not None and self._form.converters else None

    def _maker(self) -> Callable[[Sequence[Any]], Any]:
        """What makes a row of the tuple that the cursor returns."""
        make = row_type(tuple(column[0] for column in self._cursor.description))
        converters = () if self._form is None else self._form.converters
        if not converters:
            return make
        return lambda row: make(
            [value if convert is None else convert(value) for value, convert in zip(row, converters, strict=True)]
        )


class Transaction:
    """A transaction that `Catalog.read` or `Catalog.write` has begun."""

    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Execute statements on that connection."""
        self.connection = connection

    def execute(
        self, statement: Executable | Prepared, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] = _NO_VALUES
    ) -> ResultRows:
        """Execute a statement with the values of its parameters, or once with each of several values."""
        if isinstance(values, Mapping):
            form, own = form_of(statement, values)
            return ResultRows(self.connection.execute(*form.text_and_values(own)), form)
        form, own = form_of(statement, values[0])
        ordered = [[{**own, **each}[name] for name in form.order] for each in values]
        return ResultRows(self.connection.executemany(form.text, ordered))

    def execute_text(self, text: str, values: Sequence[Any] = ()) -> ResultRows:
        """Execute a statement in SQLite's dialect."""
        return ResultRows(self.connection.execute(text, values))
