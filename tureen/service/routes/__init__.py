"""The routes of the HTTP API.

Takes requests whose caller is known. Holds nothing. Gives responses. Does not know how an answer is computed.

* `queries.py`, `templates.py`, `streams.py`, `tables.py`, `tokens.py`, `statements.py`: what people use
* `health.py`: status, metrics, waiting; `common.py`: what handlers share
"""
