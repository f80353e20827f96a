"""Plans of continuous joins with intermediate results, and feedback about what is in demand (JIT).

Takes the new tuples of inputs: ids, times, integer keys and who wants them. Holds the tuples that later ones can still
join, joined tuples of parts of the join, and tuples that are suspended because they have no partners.
Gives the joined tuples that are new, by the ids of their tuples. Does not know values, SteMs, Spark, the pot or SQL.

* `join_graph.py`: inputs and the equalities between them; `plan_shape.py`: left-deep and bushy trees, and parts that
  joins have in common; `plan_root.py`: the joins of a plan
* `plan_store.py`: the tuples of all inputs; `plan_node.py`: joined tuples of a part; `node_index.py`: found by key;
  `plan_step.py`: joined with another part
* `tree_plan.py`: new tuples go up the trees; `plan_choice.py`: which plan costs less
* `demand.py`: which tuples of an input have partners in the others now; `demand_tests.py`: how that is tested;
  `plan_costs.py`, `feedback_switch.py`: whether the feedback pays
* `plan_kernels.py`, `demand_kernels.py`: compiled loops
"""
