"""Statements in the form that SQLite's driver takes: a text, its values in order, and what reads its rows.

Statements are written with SQLAlchemy, which has the tables. Its own execution of a statement takes ten times longer
than SQLite, so they are only compiled with it. A statement that is built when it is executed is found among those
compiled before by its structure; one that is executed often is a constant, `Prepared`, which is compiled once.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.util import LRUCache

DIALECT = sqlite.dialect()

_KEPT = 1_000
"""The number of statements that are kept compiled."""

_kept: LRUCache[object, CompiledStatement] = LRUCache(_KEPT)

Values = Mapping[str, Any]
"""The values of a statement's parameters, by name."""

Converter = Callable[[Any], Any] | None
"""Makes a value of SQLite one of Python; None where they are the same."""


class CompiledStatement(NamedTuple):
    """A compiled statement."""

    compiled: SQLCompiler
    text: str
    order: tuple[str, ...]
    """The names of the parameters, in the order of their places."""
    constants: Values
    """The values of parameters that the statement itself has."""
    converters: tuple[Converter, ...]
    """Of the columns of its rows; empty if all are None."""

    def text_and_values(self, values: Values) -> tuple[str, Sequence[Any]]:
        """The text, with as many places as lists have values, and the values in order."""
        if self.compiled.post_compile_params:
            expanded = self.compiled.construct_expanded_state(values, escape_names=False)
            return expanded.statement, expanded.positional_parameters
        return self.text, [values[name] for name in self.order]


class Prepared:
    """A statement that is compiled once, for each set of parameters; it must not contain lists of values."""

    def __init__(self, statement: Executable) -> None:
        """Compile the statement when it is first executed."""
        self._statement = statement
        self._forms: dict[tuple[str, ...], CompiledStatement] = {}

    def form(self, names: tuple[str, ...]) -> CompiledStatement:
        """The statement, compiled for parameters with these names."""
        form = self._forms.get(names)
        if form is None:
            form = self._forms[names] = _compile(self._statement, names)
            assert not form.compiled.post_compile_params, f"a list in a prepared statement: {form.text}"
        return form


def form_of(statement: Executable | Prepared, given: Values) -> tuple[CompiledStatement, Values]:
    """A statement's compiled form for given values, and all values that it has."""
    names = tuple(given)
    if isinstance(statement, Prepared):
        form = statement.form(names)
        return form, {**form.constants, **given}
    # What differs between two statements of one structure are the values in them, in the same order.
    key = statement._generate_cache_key()  # type: ignore[attr-defined]
    kept = _kept.get((key.key, names))
    if kept is None:
        kept = _kept[key.key, names] = _compile(statement, names, key)
    return kept, kept.compiled.construct_params({**kept.constants, **given}, key.bindparams, escape_names=False)


@cache
def row_type(names: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    """What makes a row with named columns of a tuple."""
    # The names are those of the statement's columns, which only SQLite knows.
    row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]
    make: Callable[[Sequence[Any]], Any] = row._make
    return make


def _compile(statement: Executable, names: tuple[str, ...], key: Any = None) -> CompiledStatement:
    compiled: Any = statement.compile(dialect=DIALECT, column_keys=list(names), cache_key=key)  # type: ignore[attr-defined]
    constants = {column.key: column.default.arg for column in compiled.insert_prefetch}
    if key is None:
        own = {name: value.effective_value for value, name in compiled.bind_names.items() if not value.required}
        constants = own | constants
    columns: Sequence[Any] = getattr(statement, "exported_columns", ())
    converters = tuple(column.type.result_processor(DIALECT, None) for column in columns)
    return CompiledStatement(
        compiled, compiled.string, tuple(compiled.positiontup), constants, converters if any(converters) else ()
    )
