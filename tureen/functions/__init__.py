"""User functions: functions in Python that queries call.

Takes definitions, and Arrow columns of arguments. Holds worker processes, and counts of calls.
Gives Arrow columns of results, or an error that names the call. Does not know streams, queries, or the catalog.

* `user_function.py`: a definition, and its name in SQL; `function_lookup.py`: definitions by name
* `function_source.py`: the source of a Python function
* `function_calls.py`: calls from DuckDB; `function_costs.py`: what calls cost; `function_limits.py`: their limits
* `function_workers.py`: the processes that call functions; `function_worker.py`: what runs in them
"""
