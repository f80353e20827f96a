"""WXQuery: the second language of queries, after "Data Stream Sharing" (§2).

Takes a text and a function that looks up streams. Holds nothing.
Gives the `Query` of the SQL that the text means, with the template that makes XML of its rows.
Does not know data, Spark, the pot, or how a query is answered.

* `scanner.py`, `parser.py`, `syntax.py`: text → syntax tree
* `translation.py`: syntax tree → SQL and template, with `flwr.py` (for, let, where, nested queries), `returning.py`
  (return), `path_conditions.py`, `bindings.py` (variables), `selecting.py` and `fragments.py` (SQL, and its origin)
* `wxquery_binding.py`: all of them
"""
