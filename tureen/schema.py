"""Streams' schemas: column names, types, and which column is the time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from unicodedata import normalize

import pyarrow as pa

from tureen.errors import InvalidSchema, nearest

ARRIVAL = "_arrival"
"""The hidden time column of a stream without a declared one."""

CLOCK = "_clock"
"""The hidden time column of a stream whose declared one is a number; see `tureen.abstract_clock`."""

HOME_ID = "_home"
"""The hidden column of a replica that has the tuple ids of the stream's home; see `with_home_ids`."""


def name_key(name: str) -> str:
    """The key by which names are compared: case and Unicode normalization do not distinguish names.

    >>> name_key("Cafe\u0301") == name_key("caf\u00e9")
    True
    """
    return name.lower() if name.isascii() else normalize("NFC", normalize("NFC", name).lower())


class Kind(StrEnum):
    """The kinds of values, named as in Spark SQL."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    ARRAY = "ARRAY"


SCALARS = tuple(kind for kind in Kind if kind is not Kind.ARRAY)
"""The kinds that a column of a stream can have; ARRAYs occur in answers only."""

INTEGRAL = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT})
FRACTIONAL = frozenset({Kind.FLOAT, Kind.DOUBLE})
NUMERIC = INTEGRAL | FRACTIONAL | {Kind.DECIMAL}
SECONDS = frozenset({Kind.DOUBLE, Kind.BIGINT})
"""The kinds of a time column that is an abstract clock."""

_SYNONYMS = {
    "BOOL": "BOOLEAN",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "TEXT": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}

_ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}

_TYPE = re.compile(r"\s*([A-Za-z_]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*")
_COLUMN = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_][A-Za-z_0-9]*))\s*:?\s+?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Type:
    """A value's type; precision and scale are set for DECIMAL only, `element` for ARRAY only."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    element: Type | None = None

    @classmethod
    def parse(cls, text: str) -> Type:
        """Read a type as Spark SQL writes it.

        >>> Type.parse("decimal(10, 2)").sql
        'DECIMAL(10,2)'
        """
        match = _TYPE.fullmatch(text)
        name = match.group(1).upper() if match else ""
        name = _SYNONYMS.get(name, name)
        if not match or name not in SCALARS:
            raise InvalidSchema(
                f"unknown type '{text.strip()}'",
                hint=nearest(name, SCALARS) or f"types are {', '.join(SCALARS)}",
            )
        kind = Kind[name]
        if kind is not Kind.DECIMAL:
            if match.group(2) and name != "STRING":
                raise InvalidSchema(f"type {name} has no length", hint=f"write {name}")
            return cls(kind)
        precision, scale = int(match.group(2) or 10), int(match.group(3) or 0)
        if not 1 <= precision <= 38 or scale > precision:
            raise InvalidSchema(
                f"DECIMAL({precision},{scale}) is not a valid type",
                hint="the precision must be from 1 to 38, and the scale from 0 to the precision",
            )
        return cls(kind, precision, scale)

    @property
    def arrow(self) -> pa.DataType:
        """The type of the stored column."""
        if self.kind is Kind.DECIMAL:
            return pa.decimal128(self.precision, self.scale)
        if self.element is not None:
            return pa.list_(self.element.arrow)
        return _ARROW[self.kind]

    @property
    def sql(self) -> str:
        """The type as Spark SQL writes it."""
        if self.kind is Kind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        return str(self.kind) if self.element is None else f"ARRAY<{self.element.sql}>"


def array_of(element: Type) -> Type:
    """The type of a list of values.

    >>> array_of(Type.parse("INT")).sql
    'ARRAY<INT>'
    """
    return Type(Kind.ARRAY, element=element)


_BY_ARROW = {arrow: Type(kind) for kind, arrow in _ARROW.items()}


def type_of_arrow(arrow: pa.DataType) -> Type | None:
    """The SQL type that corresponds to an Arrow type; None if there is none.

    >>> type_of_arrow(pa.list_(pa.decimal128(9, 2))).sql
    'ARRAY<DECIMAL(9,2)>'
    """
    if pa.types.is_decimal(arrow):
        return Type(Kind.DECIMAL, arrow.precision, arrow.scale)
    if pa.types.is_list(arrow):
        element = type_of_arrow(arrow.value_type)
        return None if element is None else array_of(element)
    return _BY_ARROW.get(arrow)


@dataclass(frozen=True, slots=True)
class Column:
    """One named and typed attribute of a stream."""

    name: str
    type: Type


@dataclass(frozen=True)
class Schema:
    """The columns of a stream, and its time column if one is declared."""

    columns: tuple[Column, ...]
    time: str | None = None

    @classmethod
    def parse(cls, text: str, time: str | None = None, *, hidden: bool = False) -> Schema:
        """Read `name TYPE, …` and check the time column; with `hidden`, also columns that users do not see.

        >>> Schema.parse("sym STRING, price DOUBLE, ts TIMESTAMP", time="ts").time_column
        'ts'
        """
        columns = tuple(_parse_column(part) for part in _split(text))
        if not columns:
            raise InvalidSchema("a stream needs at least one column")
        return cls(columns, time).checked(hidden=hidden)

    def checked(self, *, hidden: bool = False) -> Schema:
        """Return this schema with the time column spelt as declared; raise if the schema is not valid."""
        seen: set[str] = set()
        for column in self.columns:
            key = name_key(column.name)
            if key in seen:
                raise InvalidSchema(f"duplicate column '{column.name}'")
            if key.startswith("_") and not hidden:
                raise InvalidSchema(
                    f"column '{column.name}' starts with an underscore",
                    hint="such names are reserved",
                )
            seen.add(key)
        if self.time is None:
            return self
        time_column = self.find(self.time)
        if time_column is None:
            raise InvalidSchema(
                f"the time column '{self.time}' is not in the schema",
                hint=nearest(self.time, self.names),
            )
        if time_column.type.kind not in {Kind.TIMESTAMP, *SECONDS}:
            raise InvalidSchema(
                f"the time column '{time_column.name}' must be TIMESTAMP, got {time_column.type.sql}",
                hint="or DOUBLE or BIGINT, for seconds of an abstract clock",
            )
        return Schema(self.columns, time_column.name)

    @property
    def names(self) -> list[str]:
        """The column names, as declared."""
        return [column.name for column in self.columns]

    @cached_property
    def time_column(self) -> str:
        """The stored column that holds a tuple's time."""
        return CLOCK if self.has_abstract_clock else self.time or ARRIVAL

    @cached_property
    def has_abstract_clock(self) -> bool:
        """Whether the declared time column is a number of seconds."""
        column = None if self.time is None else self.find(self.time)
        return column is not None and column.type.kind in SECONDS

    @property
    def sql(self) -> str:
        """The columns as Spark SQL writes them."""
        return ", ".join(f"`{column.name}` {column.type.sql}" for column in self.columns)

    @cached_property
    def without_hidden(self) -> Schema:
        """The columns that users see, of the schema of a replica."""
        return Schema(tuple(column for column in self.columns if not column.name.startswith("_")), self.time)

    def with_home_ids(self) -> Schema:
        """The schema of a replica: its tuples also have their ids at the home of the stream."""
        return Schema((*self.columns, Column(HOME_ID, Type(Kind.BIGINT))), self.time)

    @cached_property
    def _by_key(self) -> dict[str, Column]:
        return {name_key(column.name): column for column in self.columns}

    def find(self, name: str) -> Column | None:
        """The column of a name, case-insensitive; None if there is none."""
        return self._by_key.get(name_key(name))

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns that users see, as an Arrow schema."""
        return pa.schema([(column.name, column.type.arrow) for column in self.columns])

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns that a run contains: the declared ones and, unless one is the time, a hidden one."""
        if self.time_column == self.time:
            return self.arrow
        return self.arrow.append(pa.field(self.time_column, _ARROW[Kind.TIMESTAMP]))


def _split(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts = re.split(r",(?![^()]*\))", text)
    return [part for part in parts if part.strip()]


def _parse_column(text: str) -> Column:
    match = _COLUMN.fullmatch(text)
    if not match:
        raise InvalidSchema(f"cannot parse column '{text.strip()}'", hint="write `name TYPE`, as in `price DOUBLE`")
    quoted, plain, rest = match.groups()
    return Column(quoted or plain, Type.parse(rest))
