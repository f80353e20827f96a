"""Positions: written, read, compared by age, and those of earlier versions read."""

from __future__ import annotations

import pytest

from tureen.errors import TureenError
from tureen.position import Mark, Position, PushPosition, QueryKey, parse_position

HANDLE = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "position",
    [
        Position(3),
        Position(3, {1: Mark(7)}),
        Position(3, {1: Mark(7), 12: Mark(0, QueryKey(HANDLE)), 13: Mark(9, QueryKey(HANDLE, 4))}),
        Position(3, {1: Mark(7)}, 12),
        PushPosition(3, 1, 99, 12),
    ],
)
def test_positions_are_read_as_they_were_written(position: Position | PushPosition) -> None:
    assert parse_position(str(position)) == position


@pytest.mark.parametrize("text", ["", "x", "1.2", "1.2.3.4.5.6", "-1", "١", "1-", "1-2", "1-2.3.x", "1.2.5.3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(TureenError, match="is not a position"):
        parse_position(text)


def test_position_of_a_push_is_no_place_to_continue_from() -> None:
    with pytest.raises(TureenError, match="is the position of a push"):
        Position.parse(str(PushPosition(3, 1, 99)))


def test_positions_compare_by_age() -> None:
    positions = [
        Position(7),
        Position(7, {1: Mark(90)}),
        Position(7, {1: Mark(90, QueryKey(HANDLE, 1))}),
        Position(7, {1: Mark(91)}),
        PushPosition(7, 1, 400, 1),
        Position(7, {1: Mark(92)}, 1),
        PushPosition(7, 2, 64, 2),
        Position(8),
        Position(10, {1: Mark(0)}),
    ]
    texts = [str(position) for position in positions]
    assert texts == sorted(texts)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("000000000000007.000001.000000000000000.000000000000090", Position(7, {1: Mark(90)})),
        (
            "000000000000007.000001.000000000000000.000000000000090.000000000000003",
            Position(7, {1: Mark(90, QueryKey("", 2))}),
        ),
        ("000000000000007~000001.000000000000090", Position(7, {1: Mark(90)})),
        (f"000000000000007~000002.000000000000005.{HANDLE}.3", Position(7, {2: Mark(5, QueryKey(HANDLE, 3))})),
        ("000000000000007.000001.000000000000400", PushPosition(7, 1, 400)),
    ],
)
def test_positions_of_earlier_versions_are_read(text: str, position: Position | PushPosition) -> None:
    assert parse_position(text) == position
