"""Results: from cells to answers.

Takes a handle and NOW. Holds memory maps of runs, pending rows and a view of the catalog.
Gives answers as Arrow. Does not know Spark, HTTP, or how blocks are matched.

* `invoke.py`: invocations; `answering.py`: answers of prepared queries; `answer.py`, `answer_text.py`: answers and
  changes as users see them; `prepared_queries.py`, `ready.py`, `join_ready.py`: prepared queries; `held_files.py`:
  answers although files are removed; `standing_check.py`: whether queries can be read; `explain.py`,
  `function_plans.py`: how they are answered; `query_names.py`: their inputs and columns as people know them;
  `costly_inputs.py`: inputs of joins whose clauses call user functions
* `join_answers.py`, `join_inputs.py`, `joined.py`, `combined_rows.py`, `constant_tables.py`: joins and queries within
  queries; `join_changes.py`, `flat_join.py`: the rows that joined the answer of a join
* `first_joined.py`: the first rows of a join with LIMIT
* `kept_rows.py`: rows of a join from its join runs; `kept_join_groups.py`: groups of them;
  `new_joined_tuples.py`: joined tuples of new tuples
* `lateral_values.py`: subqueries that use columns of the query around them
* `key_indexes.py`: the key indexes of runs and tables that a process keeps
* `view.py`, `stream_state.py`: streams as of one commit and one push; `pending.py`: rows that are in the inbox only
* `segment.py`, `segment_cache.py`: runs that are mapped; `ranges.py`, `numbering.py`, `axis.py`: which tuples a window
  contains; `stepping.py`: steps
* `gather.py`, `gather_kernels.py`, `placed_tuples.py`: rows; `grouped.py`, `grouping_set_rows.py`, `kept.py`: groups
* `finish.py`, `over_columns.py`: DISTINCT, ORDER BY, LIMIT, OVER
* `selection.py`, `matches.py`: the tuples in the window of an invocation, and those that satisfy the query;
  `remembered_rows.py`: the tuples of runs that were selected for joins before
* `followers.py`: all followers of a process; `followed.py`: which of those over one stream have changes;
  `followed_joins.py`, `join_operator.py`, `stem_input.py`: those over joins, whose new tuples are joined once;
  `operator_rows.py`, `block_rows.py`, `row_shape.py`: the rows that they read
* `closing_histories.py`, `closed_inputs.py`: what punctuations have closed in the inputs of a join; `join_purging.py`:
  the tuples that its operator forgets; `join_propagation.py`, `early_propagation.py`: the punctuations of its output;
  `unread_places.py`, `output_patterns.py`, `punctuated_changes.py`: punctuations among changes
* `changes.py`: the rows that joined an answer; `closed_steps.py`: the rows of steps that are over;
  `template_rule.py`, `template_matches.py`, `pairing.py`: the same for templates
* `group_following.py`, `followed_groups.py`, `group_deltas.py`: what changed in the groups of followed queries;
  `incremental_groups.py`: groups kept up to date; `group_changes.py`, `group_templates.py`: the changes of answers;
  `past_state.py`: a stream at an earlier position; `window_edges.py`: when time changes an answer
* `reuse.py`: answers from derived streams that cover a query; `derived_checks.py`: what these must have;
  `kept_covers.py`: answers from what is kept for a wider query
* `step_streams.py`, `shared_steps.py`: derived steps that those of a query consist of; `step_ledger.py`: which of them
  are exact; `composed_steps.py`: an answer from them
* `final_rule.py`, `final_groups.py`: which groups of a query with EMIT FINAL cannot change; `open_groups.py`,
  `final_following.py`: those that became final since a position
* `needed_tuples.py`, `needed_groups.py`: the tuples that later changes of a query need
* `watch.py`: how often clauses are invoked
"""
