"""The Query SteM's runs: clauses compiled into arrays that a block can be matched with.

Takes clauses with their numbers, and a stream's schema. Holds distinct cut points, factors and clauses.
Gives query runs, each written once as one file and memory-mapped for matching.
Does not know runs of tuples, Spark, the catalog.

* `query_run.py`: a query run and its file; `arrays.py`: its arrays; `array_bounds.py`: checks of those read from a file
* `compile.py`: clauses to a query run; `template_compile.py`: a template's values to a query run, column by column
* `cuts.py`: cut points; `access_predicates.py`: clauses found by an equality's constant; `lineage.py`: bitmaps of
  clauses for each part of a column's order
* `merging.py`: merging query runs
"""

from tureen.queries.compile import compile_clauses
from tureen.queries.query_run import QueryRun

__all__ = ["QueryRun", "compile_clauses"]
