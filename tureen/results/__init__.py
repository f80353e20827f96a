"""Results: from cells to answers.

Takes a handle and NOW. Holds memory maps of runs, pending rows and a view of the catalog.
Gives answers as Arrow. Does not know Spark, HTTP, or how blocks are matched.

* `invoke.py`: invocations; `prepared_queries.py`: queries that are bound and prepared; `answering.py`: their answers;
  `answer.py`: answers and changes as users see them; `answer_bounds.py`: what answers tell beside their rows
* `explain.py`, `function_plans.py`: how queries are answered
* `needed_tuples.py`, `needed_groups.py`: the tuples that later changes of a query need; `derived_checks.py`: what
  derived streams must have
* `snapshot/`: streams at one moment; `rows/`: rows and groups of one input; `joins/`: those of several
* `changes/`: the rows that joined an answer since a position; `following/`: for all followers at once; `groups/`:
  changes of groups; `finals/`: groups that cannot change; `templates/`: changes of many queries of one shape
* `covers/`: answers from what is stored for something else
* `answer_text.py`: answers as people see them at a prompt or in a notebook
* `query_names.py`: inputs and columns of queries as people know them
"""
