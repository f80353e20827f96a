"""What the branches of a disjunction have in common, and what they require of one input."""

import pytest

from tureen.language.binding.disjunctions import conjuncts_of, required_of
from tureen.language.tree import BOOLEAN, INT, Call, Const, Expr, Ref
from tureen.schema import Column


def column(name: str) -> Expr:
    return Ref(Column(name, INT), 0)


def compare(left: str, right: str | int) -> Expr:
    other = column(right) if isinstance(right, str) else Const(right, INT, 0)
    return Call("=", (column(left), other), BOOLEAN, 0)


def all_of(*parts: Expr) -> Expr:
    return Call("and", parts, BOOLEAN, 0)


def any_of(*parts: Expr) -> Expr:
    return Call("or", parts, BOOLEAN, 0)


KEY = compare("a", "_1_a")
X, Y = compare("b", 1), compare("_1_b", 2)


@pytest.mark.parametrize(
    ("condition", "conjuncts"),
    [
        (all_of(X, all_of(KEY, Y)), [X, KEY, Y]),
        (any_of(all_of(KEY, X), all_of(Y, KEY)), [KEY, any_of(X, Y)]),
        (any_of(all_of(KEY, X), KEY), [KEY]),
        (any_of(all_of(KEY, X, Y), all_of(KEY, X)), [KEY, any_of(all_of(X, Y), X)]),
        (any_of(all_of(KEY, X), Y), [any_of(all_of(KEY, X), Y)]),
        (any_of(all_of(X, Y), all_of(X, KEY)), [any_of(all_of(X, Y), all_of(X, KEY))]),
        (any_of(any_of(all_of(KEY, X), all_of(KEY, Y)), all_of(KEY, X)), [KEY, any_of(any_of(X, Y), X)]),
    ],
    ids=["AND", "common", "a branch is the common part", "constants", "none", "only constants", "nested"],
)
def test_conjuncts(condition: Expr, conjuncts: list[Expr]) -> None:
    assert conjuncts_of(condition) == conjuncts


def test_what_is_required_of_one_input() -> None:
    pairs = any_of(all_of(compare("b", 1), compare("_1_b", 2)), all_of(compare("b", 3), compare("_1_b", 4)))
    assert required_of(pairs, 0) == any_of(compare("b", 1), compare("b", 3))
    assert required_of(pairs, 1) == any_of(compare("_1_b", 2), compare("_1_b", 4))
    assert required_of(any_of(all_of(X, Y), Y), 0) is None
    assert required_of(X, 0) is None


def test_conditions_that_can_raise_are_not_moved_to_an_input() -> None:
    ratio = Call("/", (Const(1, INT, 0), column("b")), INT, 0)
    raising = Call("=", (ratio, Const(1, INT, 0)), BOOLEAN, 0)
    assert required_of(any_of(all_of(raising, Y), all_of(X, Y)), 0) is None
