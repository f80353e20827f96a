"""Binding: names are looked up, types are inferred, Spark's casts are inserted.

Takes sqlglot's tree and the schemas of streams and tables. Holds nothing. Gives a `Query`. Does not know data.

* `passes.py`: the passes in order; `draft.py`: a query on its way; `scope.py`: name resolution; `select.py`: the
  clauses that are supported
* `from_clause.py`, `asof.py`: relations and joins; `conditions.py`, `disjunctions.py`: the conjuncts of WHERE and ON
* `subqueries.py`, `lateral.py`, `beside_groups.py`, `set_operations.py`: queries within queries;
  `constant_rows.py`: VALUES; `input_condition.py`: a condition over one input of a bound query
* `bind.py`: expressions; `atoms.py`, `arithmetic.py`, `coerce.py`, `row_values.py`, `now.py`: kinds of expressions
* `calls.py`, `user_functions.py`: function calls
* `rewrites.py`, `rewrites_time.py`, `binary.py`: functions rewritten as other expressions
* `aggregates.py`, `ordered_aggregates.py`, `aggregate_types.py`: the aggregates of `tureen/aggregate_functions.py`
* `grouping.py`, `grouping_sets.py`, `steps.py`, `brackets.py`: groups and step windows; `emit_final.py`: which queries
  can have EMIT FINAL
* `window_functions.py`, `frames.py`, `ranking.py`: OVER
* `outputs.py`: the select list, ORDER BY, LIMIT
"""
