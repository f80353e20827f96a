"""The SELECT that a FLWR expression becomes, as it is put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.language.wxquery.fragments import Fragment, aggregated, fragment, joined, quoted
from tureen.language.wxquery.syntax import CountWindow, DataWindow, DiffWindow
from tureen.query import STEP_END, STEP_START


@dataclass
class Selecting:
    """FROM, WHERE, HAVING and the select list, and the window of the only relation if there is one.

    Windows are steps of the stream. Those that count items which satisfy a condition are window functions instead: the
    aggregates of a row are those of the window that begins with it, and QUALIFY keeps the rows where windows begin.
    """

    relations: list[Fragment] = field(default_factory=list)
    where: list[Fragment] = field(default_factory=list)
    having: list[Fragment] = field(default_factory=list)
    outputs: dict[str, tuple[Fragment, str]] = field(default_factory=dict)
    window: DataWindow | None = None
    counts_matches: bool = False
    """Whether the window counts only items that satisfy a condition."""
    has_aggregates: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether its rows are those of its relations."""
        return self.window is None and not self.has_aggregates

    def output(self, sql: Fragment, name: str) -> str:
        """The column of an expression in the answer; one that is there already is not added again."""
        known = self.outputs.get(sql.text)
        if known is not None:
            return known[1]
        names = {used.lower() for _, used in self.outputs.values()} | {STEP_START, STEP_END}
        number, unused = 1, name
        while unused.lower() in names:
            number += 1
            unused = f"{name}_{number}"
        self.outputs[sql.text] = (sql, unused)
        return unused

    def aggregate(self, call: Fragment) -> Fragment:
        """The call of an aggregate over the window, or over all rows."""
        self.has_aggregates = True
        return aggregated(fragment(call, self._frame) if self.counts_matches else call)

    @property
    def _frame(self) -> str:
        assert isinstance(self.window, CountWindow)
        return f" OVER (ROWS BETWEEN CURRENT ROW AND {self.window.size - 1} FOLLOWING)"

    def add_condition(self, condition: Fragment) -> None:
        """Add a condition: over aggregates, or over rows."""
        (self.having if condition.aggregated else self.where).append(condition)

    def sql(self) -> Fragment:
        """The whole query."""
        pieces: list[str | Fragment] = ["SELECT ", joined(", ", self._items()), " FROM ", self._from()]
        if self.where:
            pieces += [" WHERE ", joined(" AND ", self.where)]
        conditions = list(self.having)
        if self.counts_matches:
            assert isinstance(self.window, CountWindow)
            begins = f"(row_number() OVER (ORDER BY 1) - 1) % {self.window.step} = 0"
            is_full = f"count(*){self._frame} = {self.window.size}"
            conditions = [Fragment(begins), Fragment(is_full), *conditions]
        if conditions:
            pieces += [" QUALIFY " if self.counts_matches else " HAVING ", joined(" AND ", conditions)]
        return fragment(*pieces)

    def _items(self) -> list[Fragment]:
        items = [fragment(sql, f" AS {quoted(name)}") for sql, name in self.outputs.values()]
        if self.window is not None and not self.counts_matches:
            if not any(sql.aggregated for sql, _ in self.outputs.values()):
                # Without an aggregate, each item of a window would be a row.
                items.append(Fragment("count(*) AS `count`"))
            if isinstance(self.window, DiffWindow):
                items = [Fragment(STEP_START), Fragment(STEP_END), *items]
        return items or [Fragment("1 AS `row`")]

    def _from(self) -> Fragment:
        relations = joined(", ", self.relations)
        match self.window:
            case CountWindow(size, step) if not self.counts_matches:
                return fragment(relations, f" [ROWS {size} SLIDE {step}]")
            case DiffWindow(_, size, step):
                lengths = (int(length * 1_000_000) for length in (size, step))
                return fragment(relations, " [RANGE {} MICROSECONDS SLIDE {} MICROSECONDS]".format(*lengths))
        return relations
