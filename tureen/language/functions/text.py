"""String functions. Characters are Unicode code points, in Spark as in DuckDB."""

from __future__ import annotations

from tureen.evaluation.limits import LONGEST_TEXT, TEXT_MADE
from tureen.language.functions.casing import INITCAP, LOWER, UPPER
from tureen.language.functions.signatures import (
    Args,
    Function,
    Param,
    UnsupportedCall,
    bigint,
    const,
    constant,
    integer,
    only,
    same,
    text,
)
from tureen.language.tree import BOOLEAN, INT, STRING, Const
from tureen.schema import INTEGRAL, Kind

_TOO_LONG = f"{TEXT_MADE}')"
GREW_TOO_LONG = f"{TEXT_MADE} was added')"
_CAPPED = f"(CASE WHEN {{}} > {LONGEST_TEXT} THEN {LONGEST_TEXT} ELSE {{}} END)"
"""A length, capped, because DuckDB folds constants before it evaluates the conditions around them."""

_hexed = Param(INTEGRAL | {Kind.STRING}, None, STRING)


def _pad(name: str) -> Function:
    sql = (
        f"CASE WHEN {{1}} <= 0 THEN '' WHEN {{1}} > {LONGEST_TEXT} THEN {_TOO_LONG} "
        f"WHEN {{2}} = '' THEN left({{0}}, {{1}}) ELSE {name}({{0}}, {_CAPPED.format('{1}', '{1}')}, {{2}}) END"
    )
    return Function((text, integer, text), STRING, sql, (const(" ", STRING),), strict=True, raises=True)


def _substring(args: Args) -> str:
    """A substring from a position: 0 and 1 are the first character, negative positions count from the end."""
    start, count = args[1], args[2]
    if isinstance(start, Const) and isinstance(count, Const) and _is_at_least(start, 1) and _is_at_least(count, 0):
        return "substring({0}, {1}, {2})"
    first = "(CASE WHEN {1} > 0 THEN CAST({1} AS BIGINT) WHEN {1} < 0 THEN length({0}) + {1} + 1 ELSE 1 END)"
    return f"substring({{0}}, greatest({first}, 1), greatest({first} + {{2}} - greatest({first}, 1), 0))"


def _is_at_least(const: Const, least: int) -> bool:
    return isinstance(const.value, int) and const.value >= least


def _substring_index(args: Args) -> str:
    delimiter = args[1]
    assert isinstance(delimiter, Const)
    mark = str(delimiter.value or "")
    # Spark also finds delimiters that overlap.
    if any(mark.startswith(mark[i:]) for i in range(1, len(mark))):
        raise UnsupportedCall("the delimiter of substring_index must not overlap itself", "use split_part")
    return (
        "CASE WHEN {2} = 0 OR {1} = '' THEN '' "
        "WHEN {2} > 0 THEN array_to_string(string_split({0}, {1})[1:CAST({2} AS BIGINT)], {1}) "
        "ELSE array_to_string(string_split({0}, {1})[CAST({2} AS BIGINT):], {1}) END"
    )


def _sha2(args: Args) -> str:
    bits = args[1]
    if not isinstance(bits, Const) or bits.value not in (0, 256):
        raise UnsupportedCall("sha2 supports only 256 bits", "write sha2(…, 256)")
    return "sha256({0})"


def _hex(args: Args) -> str:
    if same(args).kind is not Kind.STRING:
        return "hex(CAST({0} AS BIGINT))"
    return f"CASE WHEN strlen({{0}}) > {LONGEST_TEXT} THEN {GREW_TOO_LONG} ELSE hex({{0}}) END"


def _replace(args: Args) -> str:
    """Replace every occurrence. Occurrences are counted only if the string could become much longer."""
    search, new = args[1], args[2]
    if isinstance(search, Const) and isinstance(new, Const) and len(str(new.value)) <= len(str(search.value)):
        return "replace({0}, {1}, {2})"
    if all(isinstance(arg, Const) and arg.value is not None for arg in args):
        check_growth(len(str(args[0].value)) * len(str(new.value)))  # type: ignore[union-attr]
    occurrences = "(length({0}) - length(replace({0}, {1}, ''))) // length({1})"
    return (
        f"CASE WHEN length({{0}}) * length({{2}}) <= {LONGEST_TEXT} THEN replace({{0}}, {{1}}, {{2}}) "
        f"WHEN {{1}} <> '' AND {occurrences} * (length({{2}}) - length({{1}})) > {LONGEST_TEXT} THEN {GREW_TOO_LONG} "
        "ELSE replace({0}, {1}, {2}) END"
    )


def check_growth(most: int) -> None:
    """Raise if a function of constants may add too many characters: DuckDB folds it before any check at run time."""
    if most > LONGEST_TEXT:
        raise UnsupportedCall(f"the function may add more than {LONGEST_TEXT:,} characters", "write the result instead")


# Java breaks lines after 76 characters. The result is about a third longer than the string.
_BASE64 = (
    f"CASE WHEN strlen({{0}}) > {2 * LONGEST_TEXT} THEN {GREW_TOO_LONG} "
    "ELSE rtrim(regexp_replace(base64(encode({0})), '(.{{76}})', '\\1\r\n', 'g'), '\r\n') END"
)
_REVERSE = (
    "CASE WHEN strlen({0}) = length({0}) AND NOT contains({0}, chr(13)) THEN reverse({0}) "
    # DuckDB keeps combining marks with their letter, Spark does not.
    "ELSE array_to_string(list_transform(range(length({0}), 0, -1), lambda _i: substring({0}, _i, 1)), '') END"
)
_LOCATE = (
    "CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {2} < 1 THEN 0 WHEN {0} = '' THEN 1 "
    "WHEN instr(substring({1}, {2}), {0}) = 0 THEN 0 ELSE instr(substring({1}, {2}), {0}) + {2} - 1 END"
)
_SPLIT_PART = (
    "CASE WHEN {2} = 0 THEN error('split_part counts from 1') "
    "WHEN {1} = '' THEN CASE WHEN {2} IN (1, -1) THEN {0} ELSE '' END ELSE split_part({0}, {1}, {2}) END"
)
_TOO_OFTEN = f"length({{0}}) * CAST({{1}} AS BIGINT) > {LONGEST_TEXT}"
_TIMES = f"(CASE WHEN {_TOO_OFTEN} THEN 0 ELSE {_CAPPED.format('{1}', '{1}')} END)"
_REPEAT = (
    f"CASE WHEN {{1}} <= 0 THEN '' WHEN {{1}} = 1 THEN {{0}} "
    f"WHEN {_TOO_OFTEN} THEN {_TOO_LONG} ELSE repeat({{0}}, {_TIMES}) END"
)
_SPACE = (
    f"CASE WHEN {{0}} <= 0 THEN '' WHEN {{0}} > {LONGEST_TEXT} THEN {_TOO_LONG} "
    f"ELSE repeat(' ', {_CAPPED.format('{0}', '{0}')}) END"
)
_FIND_IN_SET = "CASE WHEN contains({0}, ',') THEN 0 ELSE coalesce(list_position(string_split({1}, ','), {0}), 0) END"


def _unary(sql: str, raises: bool = False) -> Function:
    """A function from STRING to STRING."""
    return Function((text,), STRING, sql, raises=raises)


def _trim(name: str) -> Function:
    return Function((text, text), STRING, f"{name}({{0}}, {{1}})", (const(" ", STRING),))


TEXT: dict[str, Function] = {
    "length": Function((text,), INT, "length({0})"),
    "octet_length": Function((text,), INT, "strlen({0})"),
    "bit_length": Function((text,), INT, "strlen({0}) * 8"),
    "upper": _unary(UPPER, raises=True),
    "lower": _unary(LOWER, raises=True),
    "initcap": _unary(INITCAP, raises=True),
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "substring": Function((text, integer, integer), STRING, _substring, (const(2**31 - 1, INT),), strict=True),
    "left": Function((text, integer), STRING, "CASE WHEN {1} <= 0 THEN '' ELSE left({0}, {1}) END", strict=True),
    "right": Function((text, integer), STRING, "CASE WHEN {1} <= 0 THEN '' ELSE right({0}, {1}) END", strict=True),
    "lpad": _pad("lpad"),
    "rpad": _pad("rpad"),
    "repeat": Function((text, integer), STRING, _REPEAT, strict=True, raises=True),
    "space": Function((integer,), STRING, _SPACE, strict=True, raises=True),
    "reverse": _unary(_REVERSE),
    "replace": Function((text, text, text), STRING, _replace, (const("", STRING),), raises=True),
    "translate": Function((text, text, text), STRING, "translate({0}, {1}, {2})"),
    "instr": Function((text, text), INT, "instr({0}, {1})"),
    "locate": Function((text, text, integer), INT, _LOCATE, (const(1, INT),)),
    "startswith": Function((text, text), BOOLEAN, "starts_with({0}, {1})"),
    "endswith": Function((text, text), BOOLEAN, "suffix({0}, {1})"),
    "contains": Function((text, text), BOOLEAN, "contains({0}, {1})"),
    "substring_index": Function((text, constant(STRING), integer), STRING, _substring_index, strict=True),
    "split_part": Function((text, text, integer), STRING, _SPLIT_PART, strict=True, raises=True),
    "find_in_set": Function((text, text), INT, _FIND_IN_SET, strict=True),
    "ascii": Function((text,), INT, "ascii({0})"),
    "chr": Function((bigint,), STRING, "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END"),
    "hex": Function((_hexed,), STRING, _hex, raises=True),
    "base64": Function((only(Kind.STRING),), STRING, _BASE64, raises=True),
    "md5": _unary("md5({0})"),
    "sha1": _unary("sha1({0})"),
    "sha2": Function((text, constant(INT)), STRING, _sha2),
}
