"""The service: the only folder that knows the web framework.

Takes requests and settings. Holds one embedded engine and open connections.
Gives answers as JSON, CSV, Arrow and server-sent events. Does not know how an answer is computed.

* `server.py`, `settings.py`, `logs.py`: a server process; `app.py`, `api_page.py`: the application and its description
* `connections.py`, `middleware.py`, `authorization.py`, `error_responses.py`: around every request
* `routes/`: the handlers; `bodies.py`, `arrow_bodies.py`, `body_shapes.py`: requests; `rendering.py`: answers
* `state.py`, `watcher.py`, `metrics.py`: what a running server holds, wakes and counts
"""
