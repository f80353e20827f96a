"""Evaluation of a join tree: side by side, each condition as soon as all of its inputs are joined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from tureen.eddy.join_order import SideStatistics, first_side, next_side
from tureen.errors import QueryFailed
from tureen.join import (
    Field,
    InnerJoin,
    Join,
    JoinCompare,
    JoinFactor,
    JoinKind,
    JoinTree,
    LateralJoin,
    field_name,
)
from tureen.joining.computed_keys import computed_keys, has_computed_keys
from tureen.joining.equal_rows import equal_rows
from tureen.joining.inner_plan import RANGES, inner_plan
from tureen.joining.join_input import JoinInput, LateralInput, Numbers
from tureen.joining.join_keys import keys_of
from tureen.joining.join_limits import DEFAULT_LIMITS, JoinLimits
from tureen.joining.joined_rows import JoinedRows
from tureen.joining.key_columns import key_columns, key_equalities, other_field
from tureen.joining.partnered import KnownPairs, closest, partnered
from tureen.joining.partners import Compared, Partners, find_partners
from tureen.joining.row_conditions import RowConditions, inputs_of
from tureen.joining.row_order import order_of
from tureen.predicate import FLIPPED
from tureen.stems.key_index import HASHED, codes_of, valid_flags

Known = JoinedRows | KnownPairs


class Sides(NamedTuple):
    """The rows of two sides that can have partners, their numbers, and the conditions between the sides."""

    left: JoinedRows
    right: JoinedRows
    left_rows: Numbers
    right_rows: Numbers
    factors: list[JoinFactor]


@dataclass
class JoinEvaluation:
    """Evaluates join trees over the rows of inputs; `now` is the NOW of the invocation."""

    inputs: Sequence[JoinInput]
    now: int
    limits: JoinLimits = DEFAULT_LIMITS
    steps: list[dict[str, object]] = field(default_factory=list)
    """The order in which sides were joined, and the numbers that it was decided from."""
    probed: set[int] = field(default_factory=set)
    """The inputs whose rows were found by key index."""
    known: InitVar[Mapping[JoinTree, Known] | None] = None
    """The joined rows of parts of the tree that are known already, or the pairs of joins of two inputs."""
    joined_before_last: int = 0
    """The joined rows of the last inner join, before the factors that are evaluated after it."""
    _candidates: int = 0
    _evaluated: dict[JoinTree, JoinedRows] = field(default_factory=dict)
    _known_pairs: dict[JoinTree, KnownPairs] = field(default_factory=dict)

    def __post_init__(self, known: Mapping[JoinTree, Known] | None) -> None:
        """Start with the known rows and pairs."""
        self._conditions = RowConditions(self.inputs, self.now)
        for tree, rows in (known or {}).items():
            if isinstance(rows, KnownPairs):
                self._known_pairs[tree] = rows
            else:
                self._evaluated[tree] = rows

    def rows(self, tree: JoinTree) -> JoinedRows:
        """The joined rows of a tree. A side that occurs several times is evaluated once."""
        if isinstance(tree, int):
            return JoinedRows.of_input(tree, len(self.inputs[tree]))
        # The hash of a tree is computed from all of it.
        known = self._evaluated.get(tree) if self._evaluated else None
        if known is None:
            match tree:
                case InnerJoin():
                    known = self._inner(tree)
                case Join():
                    known = self._join(tree)
                case LateralJoin():
                    known = self._lateral(tree)
            self._evaluated[tree] = known
        return known

    def _inner(self, join: InnerJoin) -> JoinedRows:
        plan = inner_plan(join)
        sides = {number: self.rows(tree) for number, tree in enumerate(join.sides)}
        for number, own in enumerate(plan.own):
            if own:
                sides[number] = self.where(sides[number], own)
        pending = plan.between
        first = first_side([SideStatistics(number, len(side)) for number, side in sides.items()])
        joined, inputs = sides.pop(first), plan.inputs[first]
        self._note(join.sides[first], len(joined), None)
        while sides:
            options = [
                plan.statistics(number, len(side), inputs | plan.inputs[number], pending)
                for number, side in sides.items()
            ]
            number = next_side(options)
            inputs |= plan.inputs[number]
            between = [factor for factor, reads in pending if reads <= inputs]
            pending = [(factor, reads) for factor, reads in pending if not reads <= inputs]
            joined = self.pairs(joined, sides.pop(number), between)
            self._note(join.sides[number], len(joined), next(option for option in options if option.side == number))
        if pending:
            joined = self.where(joined, [factor for factor, _ in pending])
        self.joined_before_last = len(joined)
        return self.where(joined, plan.last) if plan.last else joined

    def _note(self, side: JoinTree, rows: int, statistics: SideStatistics | None) -> None:
        step: dict[str, object] = {"side": side, "joined_rows": rows}
        if statistics is not None:
            step["rows"] = statistics.rows
            step["equalities"] = statistics.equalities
            step["inequalities"] = statistics.inequalities
        self.steps.append(step)

    def _join(self, join: Join) -> JoinedRows:
        left, right = self.rows(join.left), self.rows(join.right)
        known = self._known_pairs.get(join)
        if known is not None:
            pairs = self._of_known(join, left, right, known)
        else:
            sides = self._sides(left, right, join.factors)
            match join.kind:
                case JoinKind.SEMI | JoinKind.ANTI:
                    with_partner = self._with_partner(sides.left, sides.right, sides.factors)
                    return partnered(join.kind, left, right, (sides.left_rows[with_partner], _NONE))
                case JoinKind.ASOF | JoinKind.ASOF_LEFT:
                    assert join.latest is not None
                    pairs = self._latest(sides.left, sides.right, sides.factors, join.latest)
                case _:
                    pairs = self._pair_numbers(sides.left, sides.right, sides.factors)
            pairs = sides.left_rows[pairs[0]], sides.right_rows[pairs[1]]
        return self._checked(partnered(join.kind, left, right, pairs))

    def _of_known(self, join: Join, left: JoinedRows, right: JoinedRows, known: KnownPairs) -> tuple[Numbers, Numbers]:
        """The pairs of a join of two inputs, of which those that satisfy its comparisons are known."""
        pairs = self._kept(left, right, (known.left, known.right), known.rest)
        if join.latest is None:
            return pairs
        compared = self._compared(join.latest, left.take(pairs[0]), right.take(pairs[1]))
        return closest(pairs, compared.right.values, is_last=join.latest.op in (">", ">="))

    def _sides(self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]) -> Sides:
        """The rows of two sides that can have partners: a row that fails a condition of its own side has none."""
        of_left, of_right = frozenset(left.rows), frozenset(right.rows)
        left_only = [factor for factor in factors if inputs_of(factor) <= of_left]
        right_only = [factor for factor in factors if inputs_of(factor) <= of_right and factor not in left_only]
        between = [factor for factor in factors if factor not in left_only and factor not in right_only]
        left_rows, right_rows = self.numbers_where(left, left_only), self.numbers_where(right, right_only)
        return Sides(
            left.take(left_rows) if left_only else left,
            right.take(right_rows) if right_only else right,
            left_rows,
            right_rows,
            between,
        )

    def _lateral(self, join: LateralJoin) -> JoinedRows:
        left, right = self.rows(join.left), self.rows(join.right)
        entry = cast(LateralInput, self.inputs[join.result])
        sides = self._sides(left, right, join.factors)
        if join.one_suffices:
            with_partner = sides.left_rows[self._with_partner(sides.left, sides.right, sides.factors)]
            entry.compute(pa.table({"_none": pa.nulls(len(with_partner))}), with_partner, len(left))
            return left.beside(JoinedRows({join.result: np.arange(len(left))}, len(left)))
        reads_left = any(field.input in left.rows for field in entry.fields)
        if len(left) and not reads_left and not sides.factors and len(sides.left) == len(left):
            # All rows have the same partners.
            self._compute(entry, sides.right, np.zeros(len(sides.right), np.int64), 1)
            return left.beside(JoinedRows({join.result: np.zeros(len(left), np.int64)}, len(left)))
        numbers = np.arange(len(left))
        if not entry.depends_on_order:
            read = [field for factor in join.factors for field in factor.fields] + [*entry.fields]
            columns = [self.values(field, left) for field in dict.fromkeys(read) if field.input in left.rows]
            chosen, numbers = equal_rows(columns, len(left))
            # Rows with equal values have the same partners.
            sides = self._sides(left.take(chosen), right, join.factors)
        first, second = self._pair_numbers(sides.left, sides.right, sides.factors)
        pairs = sides.left.take(first).beside(sides.right.take(second))
        self._compute(entry, pairs, sides.left_rows[first], int(numbers.max(initial=-1)) + 1)
        return left.beside(JoinedRows({join.result: numbers}, len(left)))

    def _compute(self, entry: LateralInput, partners: JoinedRows, of_rows: Numbers, rows: int) -> None:
        in_order = order_of(self.inputs, partners)
        order = np.arange(len(partners)) if in_order is None else in_order
        order = order[np.argsort(of_rows[order], kind="stable")]
        columns = {field_name(field): self.values(field, partners.take(order)) for field in entry.fields}
        table = pa.table(columns) if columns else pa.table({"_none": pa.nulls(len(partners))})
        entry.compute(table, of_rows[order], rows)

    def pairs(self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]) -> JoinedRows:
        """The pairs of two sides that satisfy factors between them."""
        first, second = self._pair_numbers(left, right, factors)
        return left.take(first).beside(right.take(second))

    def _pair_numbers(
        self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]
    ) -> tuple[Numbers, Numbers]:
        """The pairs of two sides that satisfy factors between them, by the numbers of their rows."""
        if len(left) < len(right):
            probed = self._probed(left, right, factors)
            if probed is not None:
                return probed
            # The smaller side is the one that is hashed and sorted.
            return self._hashed(right, left, factors)[::-1]
        probed = self._probed(right, left, factors)
        return self._hashed(left, right, factors) if probed is None else probed[::-1]

    def _hashed(self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]) -> tuple[Numbers, Numbers]:
        """The pairs by grouping and sorting the right side."""
        partners, rest = self._partners(left, right, factors)
        self._count(partners.pairs, None if rest else partners.pairs)
        parts: list[tuple[Numbers, Numbers]] = []
        rows = 0
        for pair in partners.in_parts():
            parts.append(self._kept(left, right, pair, rest))
            rows += len(parts[-1][0])
            self.limits.check_rows(rows)
        return _concatenated(parts)

    def _probed(
        self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]
    ) -> tuple[Numbers, Numbers] | None:
        """The pairs by the key index of an input; None if it has none for these factors, or scanning is cheaper."""
        if not right.is_whole:
            return None
        (number,) = right.rows
        if not self.inputs[number].may_probe(len(left)):
            return None
        equalities = key_equalities(factors, number)
        if not equalities:
            return None
        columns = key_columns(equalities, number)
        probes = [self.values(other_field(factor, number), left) for factor in equalities]
        codes = [codes_of(column, domain) for column, (_, domain) in zip(probes, columns, strict=True)]
        flags = [valid_flags(column) for column in probes]
        # A copy also of a single line, which can be written to: so one compiled form serves all.
        keys, valid = np.array(codes[0], ndmin=2), flags[0]
        if len(codes) > 1:
            keys, valid = np.stack(codes), np.logical_and.reduce(flags)
        pairs = self.inputs[number].probe(columns, keys, valid)
        if pairs is None:
            return None
        self.probed.add(number)
        exact = [factor for factor in equalities if factor.domain not in HASHED]
        rest = [factor for factor in factors if factor not in exact]
        self._count(len(pairs[0]), None if rest else len(pairs[0]))
        first, second = self._kept(left, right, pairs, rest)
        self.limits.check_rows(len(first))
        return first, second

    def _kept(
        self, left: JoinedRows, right: JoinedRows, pair: tuple[Numbers, Numbers], factors: Sequence[JoinFactor]
    ) -> tuple[Numbers, Numbers]:
        if not factors or not len(pair[0]):
            return pair
        kept = self.numbers_where(left.take(pair[0]).beside(right.take(pair[1])), factors)
        return pair[0][kept], pair[1][kept]

    def _with_partner(self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]) -> Numbers:
        """The left rows that have a partner."""
        partners, rest = self._partners(left, right, factors)
        if not rest:
            return np.flatnonzero(partners.lasts > partners.firsts)
        self._count(partners.pairs, None)
        kept = [np.unique(self._kept(left, right, pair, rest)[0]) for pair in partners.in_parts()]
        return np.concatenate([_NONE, *kept])

    def _latest(
        self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor], latest: JoinCompare
    ) -> tuple[Numbers, Numbers]:
        """For each left row the partner with the closest value."""
        equalities = [factor for factor in factors if _is_equality(factor)]
        rest = [factor for factor in factors if not _is_equality(factor)]
        compared = [self._compared(factor, left, right) for factor in equalities]
        partners = find_partners(len(left), len(right), compared, [self._compared(latest, left, right)])
        closest_is_last = latest.op in (">", ">=")
        if not rest:
            return _concatenated((partners.last() if closest_is_last else partners.first()).in_parts())
        self._count(partners.pairs, None)
        parts = []
        for pair in partners.in_parts():
            first, second = self._kept(left, right, pair, rest)
            # All pairs of a left row are in one part, in order of the right value.
            ends = np.flatnonzero(np.diff(first, append=-1)) if closest_is_last else _starts(first)
            parts.append((first[ends], second[ends]))
        return _concatenated(parts)

    def _partners(
        self, left: JoinedRows, right: JoinedRows, factors: Sequence[JoinFactor]
    ) -> tuple[Partners, list[JoinFactor]]:
        """Partners by all equalities and the inequalities with one right column; and the factors that remain.

        If that leaves many pairs without equalities of columns, by equalities of expressions too, which remain.
        """
        equal = [factor for factor in factors if _is_equality(factor)]
        equalities = [self._compared(factor, left, right) for factor in equal]
        if len(equal) == len(factors):
            return find_partners(len(left), len(right), equalities, ()), []
        rest = [factor for factor in factors if not _is_equality(factor)]
        bounds = _same_right_column([factor for factor in rest if _is_range(factor)], right)
        ranges = [self._compared(factor, left, right) for factor in bounds]
        remaining = [factor for factor in rest if factor not in bounds]
        partners = find_partners(len(left), len(right), equalities, ranges)
        if not equal and partners.pairs > len(left) + len(right):
            computed = filter(has_computed_keys, remaining)
            keys = [computed_keys(factor, left, right, self.values) for factor in computed]
            equalities = [compared for compared in keys if compared is not None]
            partners = find_partners(len(left), len(right), equalities, ranges) if equalities else partners
        return partners, remaining

    def _compared(self, factor: JoinFactor, left: JoinedRows, right: JoinedRows) -> Compared:
        """A comparison of two sides as keys, with the side of `left` first."""
        assert isinstance(factor, JoinCompare)
        if factor.left.input in left.rows:
            first, second = keys_of(factor, self.values(factor.left, left), self.values(factor.right, right))
            return Compared(factor.op, first, second)
        first, second = keys_of(factor, self.values(factor.left, right), self.values(factor.right, left))
        return Compared(FLIPPED[factor.op], second, first)

    def values(self, column: Field, rows: JoinedRows) -> pa.Array:
        """A column of joined rows."""
        return self._conditions.values(column, rows)

    def where(self, rows: JoinedRows, factors: Sequence[JoinFactor]) -> JoinedRows:
        """The rows that satisfy factors."""
        return self._conditions.where(rows, factors)

    def numbers_where(self, rows: JoinedRows, factors: Sequence[JoinFactor]) -> Numbers:
        """The numbers of the rows that satisfy factors."""
        return self._conditions.numbers_where(rows, factors)

    def _count(self, candidates: int, rows: int | None) -> None:
        self._candidates += candidates
        if rows is not None:
            self.limits.check_rows(rows)
        if self._candidates > self.limits.candidates:
            raise QueryFailed(
                f"the join would examine {self._candidates:,} pairs of rows, more than {self.limits.candidates:,}",
                hint="compare columns of its inputs for equality, or narrow its windows",
            )

    def _checked(self, rows: JoinedRows) -> JoinedRows:
        self.limits.check_rows(len(rows))
        return rows


_NONE: Numbers = np.empty(0, np.int64)


def _concatenated(parts: Iterable[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Pairs of all parts."""
    pairs = list(parts)
    if len(pairs) == 1:
        return pairs[0]
    pairs = [(_NONE, _NONE), *pairs]
    return np.concatenate([first for first, _ in pairs]), np.concatenate([second for _, second in pairs])


def _is_equality(factor: JoinFactor) -> bool:
    return isinstance(factor, JoinCompare) and factor.op == "="


def _is_range(factor: JoinFactor) -> bool:
    return isinstance(factor, JoinCompare) and factor.op in RANGES


def _same_right_column(factors: Sequence[JoinFactor], right: JoinedRows) -> list[JoinFactor]:
    """The inequalities with the same column of the right side: those of the first one."""
    columns = []
    for factor in factors:
        assert isinstance(factor, JoinCompare)
        is_right = factor.right.input in right.rows
        # An offset and ranks of strings are specific to one comparison.
        shifts = factor.offset if is_right else 0
        unique = id(factor) if shifts or factor.domain in ("string", "decimal") else 0
        columns.append((factor.right if is_right else factor.left, factor.domain, unique))
    return [factor for factor, column in zip(factors, columns, strict=True) if column == columns[0]]


def _starts(values: Numbers) -> Numbers:
    """The index of the first of each run of equal values."""
    return np.flatnonzero(np.diff(values, prepend=-1))
