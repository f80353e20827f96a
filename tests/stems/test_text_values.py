"""Texts as values: numbers that Arrow converts equal those that are parsed one by one."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import example_settings
from tureen.schema import Column, Type
from tureen.stems import text_values
from tureen.stems.text_values import typed_array


class RefusedError(Exception):
    """The text of a row was refused."""


def refuse(row: int, text: str) -> NoReturn:
    raise RefusedError(row, text)


def outcome(kind: str, texts: list[str | None]) -> Any:
    try:
        return [repr(value) for value in typed_array(Column("c", Type.parse(kind)), texts, refuse).to_pylist()]
    except RefusedError as error:
        return error.args


NUMBERS = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(repr),
    st.sampled_from(["", " 1", "+5", "-0", "1e400", "-1e400", "1e-400", "0x1F", "1_0", "INF", "nan", "5.", ".5", "1d"]),
    st.text("0123456789+-.eExX ", max_size=6),
)


@pytest.mark.parametrize("kind", ["DOUBLE", "INT", "BIGINT", "TINYINT"])
@given(texts=st.lists(st.none() | NUMBERS, min_size=1, max_size=3))
@example_settings(100)
def test_quick_numbers_equal_parsed_ones(kind: str, texts: list[str | None]) -> None:
    quick = outcome(kind, texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_values, "_quick", lambda *_: None)
        assert outcome(kind, texts) == quick
