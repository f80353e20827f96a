"""The client: the only folder that knows httpx.

Takes the calls that an embedded pot takes. Holds connections to one server.
Gives the same objects, over HTTP. Does not know how answers are computed or stored, the language, Spark or terminals,
nor any package of the extras.

* `client.py`, `remote_calls.py`: the methods of a remote pot, and those of its handles
* `listings.py`, `tokens.py`: paged lists and tokens
* `remote_statements.py`: SQL statements; `create_table.py`: those that name a local file
* `transport.py`, `retry.py`: requests, and when they are retried; `remote_errors.py`: error bodies as exceptions
* `row_upload.py`: rows as Arrow bodies; `json_values.py`, `row_types.py`: values in JSON and their types
* `events.py`: changes over server-sent events
"""
