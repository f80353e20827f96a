"""The statement CREATE FUNCTION."""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.errors import Location
from tureen.language.text.declarations import read_type
from tureen.language.text.statement_reader import StatementReader


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """`CREATE [OR REPLACE] FUNCTION name(TYPE, …) RETURNS TYPE [VECTORIZED] AS 'package.module:name'`."""

    name: str
    arguments: str
    returns: str
    path: str
    vectorized: bool = False
    replace: bool = False
    location: Location = field(default=Location(1, 1), compare=False)


def read_create_function(reader: StatementReader, replace: bool) -> CreateFunction:
    """Read what comes after CREATE [OR REPLACE] FUNCTION."""
    location, name = reader.location(), reader.name("function")
    if not reader.accept("("):
        raise reader.syntax_error("the types of the arguments in parentheses", f"such as {name}(STRING, INT)")
    types = [read_type(reader, f"an argument of '{name}'")]
    while not reader.accept(")"):
        if not reader.accept(","):
            raise reader.syntax_error("a comma or a parenthesis", "an argument is a type, without a name")
        types.append(read_type(reader, f"an argument of '{name}'"))
    reader.expect("RETURNS", "write RETURNS and a type")
    returns = read_type(reader, f"the result of '{name}'")
    vectorized = reader.accept("VECTORIZED")
    reader.expect("AS", "write AS 'package.module:name'")
    path = reader.string("an import path in quotes", "as in AS 'package.module:name'")
    arguments = ", ".join(kind.sql for kind in types)
    return CreateFunction(name, arguments, returns.sql, path, vectorized, replace, location)
