"""Joining: rows of several inputs become joined rows.

Takes the rows of each input and a join tree. Holds what the consumers of a continuous join want, the state of its plan,
and which tuples are not needed any more; otherwise nothing between calls.
Gives the numbers of the joined rows; for a continuous join, joined tuples with their lineages.
Does not know Spark, the pot, the language, windows, or how the rows of an input were selected.

* `join_input.py`: what is known about the rows of an input; `joined_rows.py`: combinations of them, by number
* `join_keys.py`: columns of two sides as integers that compare as the values do; `computed_keys.py`: the same of
  expressions
* `partners.py`, `partner_kernels.py`: the rows of one side that satisfy comparisons with a row of the other; an input
  may find them by a key index instead
* `key_columns.py`: the columns by which an input may be probed
* `partnered.py`: the rows of outer, semi, anti and ASOF joins, given the partners; `equal_rows.py`: rows that have the
  same partners
* `row_order.py`: the order of joined rows; `row_conditions.py`: conditions over them; `join_limits.py`: how many there
  may be
* `join_evaluation.py`: a join tree, side by side; `inner_plan.py`: the factors of an inner join by their sides
* `continuous_join.py`: new tuples are joined once for all queries that follow a join; `shared_join.py`,
  `shared_factor.py`: what these have in common; `join_consumers.py`: what each wants
* `planned_join.py`: the same by a plan that can change; `join_forest.py`: one plan for joins that have sub-joins in
  common; `plan_inputs.py`: their inputs for `plans/`, the trees with intermediate results; `plan_report.py`: what
  `explain` shows of them
* `lineages.py`, `lineage_kernels.py`, `sparse_lineages.py`: which of them want a tuple; `clause_lineages.py`: by the
  clauses that it satisfies; `stem.py`: the tuples that new ones are joined with; `joined_block.py`: the joined tuples;
  `key_probes.py`: which tuples of another input joined rows find
* `equality_classes.py`: columns with the same value in all joined tuples; `purging.py`: which tuples no later result
  can contain; `join_state.py`, `tuple_id_set.py`: those of each input
"""
