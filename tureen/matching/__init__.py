"""Matching: which tuples of a block satisfy which clauses of a query run.

Takes blocks and cells (stems), query runs (queries). Holds nothing but buffers that are reused.
Gives cells, the rows of one clause in one block, and the truth of any predicate over a block.
Does not know Spark, the catalog, windows, users.

* `match.py`: all clauses of a query run over a block; `clause_set.py`: clauses that come and go
* `visits.py`, `access_paths.py`: which clauses are matched how
* `clause_kernels.py`, `prefixes.py`: column-major matching; `rowmajor.py`: row-major matching of small blocks
* `access_kernels.py`, `buckets.py`, `reach.py`: clauses found by the constant of an equality
* `selector.py`, `scanning.py`: the rows of one clause; `kept_selector.py`: among those of a wider one
* `evaluate.py`, `derived.py`, `compare_columns.py`, `like.py`, `opaque.py`: predicates that no index answers
* `tuning.py`, `buffers.py`, `warming.py`: thresholds, memory, loading compiled code
"""

from tureen.matching.access_paths import access_column, describe
from tureen.matching.buffers import Buffers
from tureen.matching.evaluate import holds, profile_of
from tureen.matching.match import match_block
from tureen.matching.selector import Selector, select
from tureen.matching.tuning import Costs, Tuning
from tureen.matching.warming import warm_up
from tureen.stems.cells.cell import Cell, CellReader, RunCells

__all__ = [
    "Buffers",
    "Cell",
    "CellReader",
    "Costs",
    "RunCells",
    "Selector",
    "Tuning",
    "access_column",
    "describe",
    "holds",
    "match_block",
    "profile_of",
    "select",
    "warm_up",
]
