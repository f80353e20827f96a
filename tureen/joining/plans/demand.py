"""Feedback about demand: a tuple takes part in a plan only while every other input may have a partner for it (JIT).

Before a tuple is joined, it is tested against the keys of the other inputs (semi-joins). One that fails a test is
suspended: it waits in a blacklist under the key that it misses. A tuple that arrives with this key resumes it, and then
it is joined before the block of that tuple is done. All of it happens in compiled loops over blocks of tuples.

What a test counts are tuples of inputs, suspended ones too unless their rank is higher, and not intermediate results:
two sides of a join whose intermediate results are both suspended would wait for each other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tureen.joining.join_input import Numbers
from tureen.joining.plans import demand_kernels as kernel
from tureen.joining.plans.demand_tests import (
    NO_TESTS,
    DemandTest,
    PartnerTest,
    TriangleTest,
    ranks_of,
    tested_inputs,
    tests_of,
)
from tureen.joining.plans.plan_root import PlanRoot
from tureen.joining.plans.plan_shape import inputs_of_shape
from tureen.joining.plans.plan_store import PlanStore, grown

FIRST_WORDS, MOST_WORDS = 4, 16
"""The size of a set of bits, before and after sizes of groups are known."""

LEAST_FAILING, LEAST_TESTED = 0.05, 64
"""A test is used if at least this share of tuples fails it, or if it was made for fewer tuples than this."""

FEW_PASSING = 0.02
"""If at most this share of tuples passes the tests so far, no further ones are made."""

REPEATED = 8
"""A test that few tuples failed is made again after this many rebuilds."""


class PartnerDemand:
    """Decides which tuples of a store are in demand by a join."""

    def __init__(self, root: PlanRoot, store: PlanStore) -> None:
        """Start with the tuples of a store, none of which was tested yet."""
        graph = root.graph
        self._graph, self._store, self._bits_of_root = graph, store, root.bits
        self._size = 0
        self._wants = np.empty(0, np.uint64)
        self._level, self._passed = np.empty(0, np.int8), np.empty(0, np.int8)
        """The level of each tuple (see `demand_kernels`), and how many tests it has passed."""
        self._ranks = np.array(ranks_of(graph, inputs_of_shape(root.shape)), np.int64)
        tests = [
            tests_of(graph, number, root.inputs, self._ranks.tolist()) if number in root.inputs else NO_TESTS
            for number in range(len(graph))
        ]
        self._ranked = [list(of_input.ranked) for of_input in tests]
        self._others = [list(of_input.others) for of_input in tests]
        self._chosen = [(list(of_input.ranked), list(of_input.others)) for of_input in tests]
        self._rebuilds = 0
        self._words = FIRST_WORDS
        self._stack = np.empty(0, np.int32)
        self._counts = np.zeros(7, np.int64)
        self.runs = 0
        """How often tuples were tested, in blocks."""
        self._begin()

    def _begin(self) -> None:
        """Create empty directories for the chosen tests."""
        count = len(self._graph)
        thirds: dict[tuple[int, int], list[int]] = {}
        used: set[tuple[int, int]] = set()
        for number, chosen in enumerate(self._chosen):
            for test in (*chosen[0], *chosen[1]):
                used |= {(other, number) for other in tested_inputs(test)}
                if isinstance(test, TriangleTest):
                    thirds.setdefault((test.first, number), []).append(test.second)
                    thirds.setdefault((test.second, number), []).append(test.first)
        self._sets = max(1, *(len(lines) for lines in thirds.values())) if thirds else 1
        self._directories = np.full((count * count, kernel.THIRDS + self._sets), -1, np.int64)
        self._directories[:, kernel.USED] = 0
        for of, toward in used:
            line = self._directories[of * count + toward]
            line[: kernel.THIRDS] = 1, self._line(of, toward), self._line(toward, of)
            lines = [self._line(of, third) for third in thirds.get((of, toward), ())]
            line[kernel.THIRDS : kernel.THIRDS + len(lines)] = lines
        most = max(len(ranked) + len(others) for ranked, others in self._chosen)
        self._tests = np.zeros((count, max(1, most), 6), np.int64)
        for number, (ranked, others) in enumerate(self._chosen):
            for index, test in enumerate((*ranked, *others)):
                self._tests[number, index] = self._coded(number, test, thirds)
        self._limits = np.array([(len(a), len(a) + len(b)) for a, b in self._chosen], np.int64)
        self._tallies: Numbers = np.zeros((count, max(1, most), 2), np.int64)
        self._entries: Numbers = np.empty((0, 5), np.int64)
        self._bits: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._table = np.zeros(64, np.int32)
        self._watchers = np.empty((0, 4), np.int32)
        self._counts[: kernel.TESTS] = 0
        self._grow()

    def _line(self, number: int, other: int) -> int:
        """The line of keys by which an input is compared with another; -1 if it is not."""
        edge = self._graph.edge(number, other)
        return -1 if edge is None else self._store.line_of(number, edge.columns(number))

    def _coded(self, number: int, test: DemandTest, thirds: dict[tuple[int, int], list[int]]) -> tuple[int, ...]:
        """The fields of a test, see `demand_kernels`."""
        count = len(self._graph)
        if isinstance(test, PartnerTest):
            return 0, test.other * count + number, 0, 0, 0, int(test.other in self._graph.tables)
        first, second = test.first * count + number, test.second * count + number
        sets = thirds[test.first, number].index(test.second), thirds[test.second, number].index(test.first)
        return 1, first, second, *sets, 0

    def arrive(self) -> Numbers:
        """Test the tuples that were added to the store; those that are in demand now, and were not before."""
        begin = self._extend()
        if begin == self._size:
            return _NONE
        self._counts[[kernel.NEXT, kernel.END]] = begin, self._size
        return self._run(is_tested=True)

    def _extend(self) -> int:
        """Add the tuples that are new in the store; returns the first of them."""
        store, begin = self._store, self._size
        self._size = store.size
        if self._size > len(self._level):
            capacity = max(64, 2 * self._size)
            self._wants = grown(self._wants, capacity)
            self._level, self._passed = grown(self._level, capacity), grown(self._passed, capacity)
        new = slice(begin, self._size)
        self._wants[new] = store.wants[new] & self._bits_of_root
        self._level[new] = np.where(self._wants[new] != 0, kernel.SUSPENDED, kernel.DROPPED)
        self._passed[new] = 0
        return begin

    def drop(self, tuples: Numbers) -> int:
        """Remove tuples from demand for good; returns how many of them were suspended."""
        level = self._level[tuples]
        self._level[tuples] = kernel.DROPPED
        return int(np.count_nonzero(kernel.is_waiting(level)))

    def keep(self, rows: Numbers) -> None:
        """Keep only the given tuples, as the store does; `rebuild` must be called afterwards."""
        self._wants, self._level, self._passed = self._wants[rows], self._level[rows], self._passed[rows]
        self._size = len(rows)

    def rebuild(self) -> Numbers:
        """Test all tuples again, after the store was changed; those that are in demand, and were not before."""
        self._extend()
        store, level = self._store, self._level[: self._size]
        self._choose()
        self._begin()
        level[kernel.is_waiting(level)] = kernel.SUSPENDED
        self._passed[: self._size] = 0
        self._counts[[kernel.NEXT, kernel.END]] = 0, store.size
        self._run(is_tested=False)
        waiting = np.flatnonzero(level == kernel.SUSPENDED)
        # The last of the stack are tested first: those of the highest rank, which others count as partners.
        order = np.argsort(self._ranks[store.inputs[waiting]], kind="stable")
        self._stack = waiting[order].astype(np.int32)
        self._counts[kernel.STACK] = len(waiting)
        return self._run(is_tested=True)

    def _choose(self) -> None:
        """Choose the tests that tuples fail, most often failed first; and the size of the sets of bits."""
        self._rebuilds += 1
        if self._rebuilds % REPEATED == 0:
            self._chosen = [(list(a), list(b)) for a, b in zip(self._ranked, self._others, strict=True)]
            return
        for number, (ranked, others) in enumerate(self._chosen):
            tested, failed = self._tallies[number].T
            shares = failed / np.maximum(tested, 1)
            passing, kept = 1.0, []
            for index in sorted(range(len(ranked) + len(others)), key=lambda index: -shares[index]):
                if (shares[index] >= LEAST_FAILING or tested[index] < LEAST_TESTED) and passing > FEW_PASSING:
                    kept.append(index)
                    passing *= 1 - shares[index]
            both = [*ranked, *others]
            first = [both[index] for index in kept if index < len(ranked)]
            self._chosen[number] = first, [both[index] for index in kept if index >= len(ranked)]
        self._words = self._words_needed()

    def _words_needed(self) -> int:
        """So many that unrelated sets seldom share a bit: four times the square of the tuples of a key."""
        entries = self._entries[: self._counts[kernel.ENTRIES], kernel.DIRECTORY]
        sizes = np.bincount(entries, minlength=len(self._directories))
        has_sets = (self._directories[:, kernel.THIRDS :] >= 0).any(axis=1) & (sizes > 0)
        tuples = np.bincount(self._store.inputs[: self._store.size], minlength=len(self._graph))
        of = np.arange(len(self._directories)) // len(self._graph)
        if not has_sets.any():
            return self._words
        bits = 4 * float((tuples[of[has_sets]] / sizes[has_sets]).max()) ** 2
        return min(MOST_WORDS, 1 << (int(bits) // 64).bit_length())

    def _run(self, *, is_tested: bool) -> Numbers:
        """Test tuples until none is left; those that are in demand, in order."""
        store = self._store
        self.runs += 1
        if len(self._stack) < store.size:
            self._stack = grown(self._stack, 2 * store.size)
        if len(self._watchers) < 2 * store.size:
            self._watchers = np.ascontiguousarray(grown(self._watchers.T, 4 * store.size).T)
        active = np.empty(store.size, np.int32)
        while not kernel.test_tuples(
            self._words, self._sets, is_tested, self._ranks, self._directories, self._tests, self._limits,
            self._tallies, store.inputs, store.times, store.until, self._wants.view(np.int64), self._level,
            self._passed, store.keys, self._table, self._entries, self._bits, self._watchers, self._stack, active,
            self._counts,
        ):  # fmt: skip
            self._grow()
        numbers = np.sort(active[: self._counts[kernel.ACTIVATED]]).astype(np.int64)
        self._counts[kernel.ACTIVATED] = 0
        return numbers

    def _grow(self) -> None:
        """More room for entries and watchers."""
        entries = int(self._counts[kernel.ENTRIES])
        room = 2 * len(self._graph) + 4
        if entries + room > min(len(self._entries), len(self._table) * 2 // 3):
            capacity = max(256, 2 * (entries + room))
            self._entries = np.ascontiguousarray(grown(self._entries.T, capacity).T)
            bits = np.zeros(capacity * self._sets * self._words, np.uint64)
            bits[: len(self._bits)] = self._bits
            self._bits = bits
            self._table = np.zeros(1 << (3 * capacity // 2).bit_length(), np.int32)
            kernel.link_entries(self._table, self._entries, entries)

    @property
    def tests(self) -> int:
        """The number of tests so far."""
        return int(self._counts[kernel.TESTS])

    @property
    def publications(self) -> int:
        """How often a tuple was counted as a partner for another input."""
        return int(self._counts[kernel.PUBLICATIONS])

    def waiting(self) -> Numbers:
        """The tuples that are suspended."""
        return np.flatnonzero(kernel.is_waiting(self._level[: self._size]))

    @property
    def bytes(self) -> int:
        """The memory that directories, blacklists and sets of bits take."""
        entries = int(self._counts[kernel.ENTRIES])
        return entries * (40 + 8 * self._sets * self._words) + self._table.nbytes + 42 * self._store.size


_NONE: Numbers = np.empty(0, np.int64)
