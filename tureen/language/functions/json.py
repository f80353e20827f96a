"""Functions of JSON strings. A string that is not valid JSON contains no values."""

from __future__ import annotations

import re

from tureen.language.functions.float_texts import float_text
from tureen.language.functions.signatures import Args, Function, UnsupportedCall, constant, escaped, only
from tureen.language.tree import INT, STRING, Const
from tureen.schema import Kind

_string = only(Kind.STRING)
_STEP = re.compile(r"\.([^.\[]+)|\['([^'?]+)'\]|\[([0-9]{1,9})\]", re.ASCII)


def _path(path: str) -> str | None:
    """A path in DuckDB's syntax; None for a path that is invalid in Spark, which then returns NULL.

    >>> _path("$.a['b c'][0]")
    '$."a"."b c"[0]'
    """
    if not path.startswith("$"):
        return None
    out, at = "$", 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            if "*" in path[at:]:
                raise UnsupportedCall("'*' in a JSON path is not supported", "name a single value, such as '$.a[0]'")
            return None
        name = step.group(1) or step.group(2)
        if name is not None and (name == "*" or name != name.strip() or set(name) & set('"\\')):
            raise UnsupportedCall(f"'{name}' in a JSON path is not supported", "such as '$.a[0].b'")
        out += f"[{int(step.group(3))}]" if name is None else f'."{name}"'
        at = step.end()
    return out


def _get(args: Args) -> str:
    constant_path = args[1]
    assert isinstance(constant_path, Const)
    path = None if constant_path.value is None else _path(str(constant_path.value))
    if path is None:
        return "CASE WHEN {0} IS NULL THEN NULL END"
    sql_path = escaped("'" + path.replace("'", "''") + "'")
    # DuckDB folds constants before it evaluates the conditions around them, so nothing here may raise.
    value = f"TRY(json_extract_string({{0}}, {sql_path}))"
    kind = f"TRY(json_type({{0}}, {sql_path}))"
    # Java formats large and small fractions with an exponent, and integers of any size without.
    fraction = f"{kind} = 'DOUBLE' AND regexp_matches({value}, '[.eE]')"
    formatted = float_text(single=False).replace("{0}", f"TRY_CAST({value} AS DOUBLE)")
    # Within an object or an array DuckDB formats them differently.
    nested = f"{kind} IN ('OBJECT', 'ARRAY') AND regexp_matches({value}, '{escaped(_EXPONENTS)}')"
    null = "WHEN TRY(json_type({0})) = 'NULL' THEN 'null' " if path == "$" else ""
    return (
        f"CASE WHEN NOT json_valid({{0}}) THEN NULL {null}WHEN {fraction} THEN {formatted} "
        f"WHEN {nested} THEN error('a fraction of that size within JSON') ELSE {value} END"
    )


# Fractions of at least ten millions, or below a thousandth.
_EXPONENTS = r"[:\[,]-?(?:[0-9]{8,}\.|0\.000|[0-9.]+e)"
_LENGTH = "CASE WHEN json_valid({0}) AND json_type({0}) = 'ARRAY' THEN json_array_length({0}) END"

JSON: dict[str, Function] = {
    "get_json_object": Function((_string, constant(STRING)), STRING, _get, strict=True, raises=True),
    "json_array_length": Function((_string,), INT, _LENGTH),
}
