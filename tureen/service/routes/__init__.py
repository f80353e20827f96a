"""The routes of the HTTP API.

Takes requests whose caller is authenticated. Holds nothing. Gives responses. Does not know how an answer is computed.

* `streams.py`, `queries.py`, `templates.py`, `tables.py`, `functions.py`, `statements.py`, `tokens.py`: the objects of
  a pot
* `peers.py`, `network.py`: other servers, for admins; `flows.py`: what these call
* `health.py`: status, waiting, metrics, readiness and the reference page
* `page.py`: the page: its files, sessions, activity
* `parameters.py`, `responses.py`, `descriptions.py`: parameters, responses and OpenAPI descriptions of all routes
"""
