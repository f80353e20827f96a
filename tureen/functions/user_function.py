"""User functions: functions in Python that queries call.

A function is kept as its source text or as an import path, so that any process can call it. In SQL it is named by its
name and the digest of its definition, so that functions of the same name of two pots differ.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tureen.errors import InvalidFunction, InvalidSchema
from tureen.schema import Type, name_key

LONGEST_SOURCE = 16_384
"""The maximum length of a function's source: it is part of each clause that calls the function."""

MOST_ARGUMENTS = 32
"""The maximum number of a function's arguments."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CALLED = re.compile(r'"([A-Za-z][A-Za-z0-9_]*)#([0-9a-f]{16})!?"')


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function: its types, and its source or its import path."""

    name: str
    arguments: tuple[Type, ...]
    returns: Type
    source: str | None = None
    """The text of a `def` that needs nothing but itself."""
    path: str | None = None
    """`package.module:name`, imported by the process that calls the function."""
    vectorized: bool = False
    """Whether it is called with an Arrow array for each argument, instead of once for each row."""

    @property
    def text(self) -> str:
        """The definition as text; equal definitions have equal texts."""
        types = [argument.sql for argument in self.arguments]
        return json.dumps([self.name, types, self.returns.sql, self.source, self.path, self.vectorized])

    @classmethod
    def parse(cls, text: str) -> UserFunction:
        """The function of a definition.

        >>> function = UserFunction("twice", (Type.parse("INT"),), Type.parse("INT"), path="m:twice")
        >>> UserFunction.parse(function.text) == function
        True
        """
        name, types, returns, source, path, vectorized = json.loads(text)
        return cls(name, tuple(map(Type.parse, types)), Type.parse(returns), source, path, vectorized)

    @property
    def digest(self) -> str:
        """The digest of the definition."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def signature(self) -> str:
        """The name and the types, for people.

        >>> UserFunction("twice", (Type.parse("INT"),), Type.parse("INT"), path="m:twice").signature
        'twice(INT) RETURNS INT'
        """
        return f"{self.name}({', '.join(argument.sql for argument in self.arguments)}) RETURNS {self.returns.sql}"


def sql_name(function: UserFunction, *, constant: bool = False) -> str:
    """The name of a function in DuckDB SQL; that of a call without columns is not evaluated before there are rows."""
    return f'"{function.name}#{function.digest}{"!" if constant else ""}"'


def digests_in(sql: str) -> Iterator[str]:
    """The digests of the functions that DuckDB SQL calls."""
    if "#" in sql:
        yield from dict.fromkeys(match.group(2) for match in _CALLED.finditer(sql))


def shown_sql(sql: str) -> str:
    """DuckDB SQL for people: functions have the names that queries call them by.

    >>> shown_sql('("is_spam#0123456789abcdef"("text") > 3)')
    '(is_spam("text") > 3)'
    """
    return _CALLED.sub(r"\1", sql) if "#" in sql else sql


def parse_types(text: str) -> tuple[Type, ...]:
    """The types of arguments, separated by commas.

    >>> [kind.sql for kind in parse_types("STRING, decimal(10, 2)")]
    ['STRING', 'DECIMAL(10,2)']
    """
    parts = [part.strip() for part in re.split(r",(?![^()]*\))", text)]
    try:
        types = tuple(map(Type.parse, parts)) if text.strip() else ()
    except InvalidSchema as error:
        raise InvalidFunction(
            "the types of a function's arguments are not valid", detail=error.message, hint=error.hint
        ) from None
    if not 1 <= len(types) <= MOST_ARGUMENTS:
        raise InvalidFunction(
            f"a function must have 1 to {MOST_ARGUMENTS} arguments, got {len(types)}",
            hint='list their types, such as "STRING, INT"',
        )
    return types


def check_function_name(name: object) -> str:
    """Raise unless a value is a name that SQL can call without quotes."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidFunction(
            f"{str(name)[:80]!r} is not a valid name of a function",
            hint="a name has at most 63 letters, digits and underscores, and begins with a letter",
        )
    return name


def check_import_path(path: object) -> str:
    """Raise unless a value is an import path."""
    if not isinstance(path, str) or not _PATH.fullmatch(path):
        raise InvalidFunction(
            f"{str(path)[:80]!r} is not an import path", hint="write package.module:name, such as 'spam.rules:is_spam'"
        )
    return path


def function_key(name: str) -> str:
    """The key by which names of functions are compared."""
    return name_key(name)
