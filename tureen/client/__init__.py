"""The client: the only folder that knows httpx.

Takes the calls that an embedded pot takes. Holds connections to one server.
Gives the same objects, over HTTP. Does not know the engine, Spark or terminals.

* `client.py`: the methods of a remote pot; `listings.py`, `tokens.py`, `remote_statements.py`: parts of them
* `transport.py`, `retry.py`: requests, and when they are repeated; `remote_errors.py`: error bodies as exceptions
* `row_upload.py`: rows as Arrow bodies; `json_values.py`, `row_types.py`: values in JSON and their types
* `events.py`: following over server-sent events
"""
