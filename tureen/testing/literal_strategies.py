"""Random SQL literals for Hypothesis: constants to compare a column of a type with."""

from __future__ import annotations

from hypothesis import strategies as st

from tureen.schema import Kind, Type

_INTS = st.integers(-3, 5).map(str)
_NUMBERS = st.one_of(
    _INTS,
    st.sampled_from(["0.5", "2.5", "-1.0", "3.00", "0.1", "100.25", "0.005", "-2.5"]),
    st.sampled_from(["1e0", "2.5e0", "-1e-1", "1e30", "3E0"]),
)
_LARGE = {
    Kind.TINYINT: ["-128", "127", "128", "-2147483648", "1000"],
    Kind.SMALLINT: ["-32768", "32767", "32768", "-9223372036854775808", "128"],
    Kind.INT: ["-2147483648", "2147483647", "2147483648", "-9223372036854775808", "16777217"],
    Kind.BIGINT: [
        "-9223372036854775808",
        "9223372036854775807",
        "9007199254740993",
        "9007199254740992e0",
        "1000000000000000000",
    ],
    Kind.FLOAT: [
        "16777217",
        "1e39",
        "CAST('NaN' AS DOUBLE)",
        "CAST('Infinity' AS DOUBLE)",
        "CAST(0.1 AS FLOAT)",
    ],
    Kind.DOUBLE: ["9007199254740993", "5e-324", "CAST('NaN' AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"],
    Kind.DECIMAL: ["99999999.99", "-99999999.99", "100000000", "0.01"],
}
_SPARK_ONLY = {
    Kind.TINYINT: ["2S", "3Y", "2L", "2.5D", "1.5F", "2BD", "'2'", "100Y"],
    Kind.SMALLINT: ["2S", "3Y", "2L", "2.5D", "1.5F", "2BD", "'2'", "1000S"],
    Kind.INT: ["2S", "3Y", "2L", "2.5D", "1.5F", "2BD", "'2'", "9223372036854775808"],
    # No constants beyond BIGINT: Spark and Tureen treat NULL differently there (docs/language.md).
    Kind.BIGINT: ["2L", "9007199254740992D", "2.5BD", "'2'"],
    Kind.FLOAT: ["0.1F", "0.1D", "0.1BD", "2L", "'0.1'", "9007199254740993", "16777217.0", "float('NaN')"],
    Kind.DOUBLE: ["0.1F", "0.1D", "2.5BD", "'2.5'", "double('Infinity')", "-0.0D", "16777217L"],
    Kind.DECIMAL: ["2.5D", "2L", "0.1F", "2.50BD", "0.12345678901", "'2.5'", "12345678901234567890.5"],
}
_TEXTS = st.sampled_from(
    ["", " ", "a", "A", "ab", "abc", "B", "B%", "a_b", "it's", "é", "Z", "ß", "😀", "a\nb"]
) | st.text("ab%_é😀'", max_size=3)


def quoted(text: str, backslashes: bool = False) -> str:
    r"""A text as a SQL literal; with `backslashes`, as Spark reads one.

    >>> print(quoted("it's"), quoted(r"a\b", backslashes=True))
    'it''s' 'a\\b'
    """
    if backslashes:
        text = text.replace("\\", "\\\\")
    return "'" + text.replace("'", "''") + "'"


def literals(type_: Type, portable: bool = True) -> st.SearchStrategy[str]:
    """Literals that a column of this type can be compared with, suitably typed."""
    kind = type_.kind
    match kind:
        case Kind.BOOLEAN:
            return st.sampled_from(["TRUE", "FALSE", "true"])
        case Kind.STRING:
            return _TEXTS.map(quoted) if portable else (_TEXTS | st.just("a\\b")).map(_spark_text)
        case Kind.DATE:
            days = st.sampled_from(["2025-12-31", "2026-01-01", "2026-01-02", "1970-01-01", "9999-12-31"])
            plain = days.map(lambda day: f"DATE '{day}'")
            if portable:
                return plain
            return plain | days.map(quoted) | st.just("TIMESTAMP '2026-01-01 00:00:01'")
        case Kind.TIMESTAMP:
            return _instants(portable)
    pools = [_NUMBERS, _NUMBERS, st.sampled_from(_LARGE[kind])]
    if not portable:
        pools.append(st.sampled_from(_SPARK_ONLY[kind]))
    return st.one_of(pools)


def _spark_text(text: str) -> str:
    return quoted(text, backslashes=True)


def _instants(portable: bool) -> st.SearchStrategy[str]:
    moments = st.sampled_from(
        [
            "2026-01-01 00:00:00",
            "2026-01-01 00:00:01",
            "2025-12-31 23:59:59.999999",
            "2026-01-01 00:00:00.000001",
            "1969-12-31 23:59:59.999999",
            "1970-01-01 00:00:00",
        ]
    )
    plain = moments.map(lambda moment: f"TIMESTAMP '{moment}'")
    if portable:
        return plain
    return st.one_of(
        plain,
        moments.map(quoted),
        st.sampled_from(["DATE '2026-01-01'", "TIMESTAMP '2026-01-01 01:00:00+01:00'", "'2026-01-01'"]),
    )


@st.composite
def patterns(draw: st.DrawFn, portable: bool = True) -> str:
    """LIKE patterns as SQL text, some with an ESCAPE clause."""
    pieces = draw(
        st.lists(st.sampled_from(["%", "%", "_", "a", "b", "ab", "A", "é", "😀", "'", "%%", "\n"]), max_size=4)
    )
    style = draw(st.sampled_from(["none", "none", "own", "backslash"]))
    if style == "none" or (style == "backslash" and portable):
        return quoted("".join(pieces))
    escape = "!" if style == "own" else "\\"
    position = draw(st.integers(0, len(pieces)))
    pieces.insert(position, escape + draw(st.sampled_from(["%", "_", escape])))
    text = "".join(pieces)
    if style == "own":
        return f"{quoted(text)} ESCAPE '!'"
    return quoted(text, backslashes=True)
