"""The HTTP service: the only folder that knows the web framework.

Takes requests and settings. Holds one embedded engine and open connections.
Gives answers as JSON, CSV, Arrow and server-sent events. Does not know how an answer is computed.

* `server.py`, `settings.py`, `logs.py`: the server process
* `app.py`, `fast_path.py`, `api_page.py`: the application, its shortcut for invocations, and its reference page
* `connections.py`, `middleware.py`, `authorization.py`, `error_responses.py`: applied to every request
* `routes/`: the handlers; `bodies.py`, `arrow_bodies.py`, `body_shapes.py`, `stream_shapes.py`: request bodies;
  `rendering.py`: answers
* `state.py`, `watcher.py`, `deadlines.py`, `metrics.py`: shared state, commit notifications, timeouts and metrics of a
  running server; `invocation_times.py`: which invocations are quick
* `recent_values.py`, `shared_answers.py`, `poll_turns.py`: what clients that poll get together, and when
* `http_neighbour.py`, `peer_tokens.py`: other servers, as this one calls them; `network_shapes.py`: bodies of
  requests about them and by them
* `page/`: the page that people see in a browser
* `event_stream.py`, `shared_reads.py`, `shared_threads.py`, `wake_queue.py`: connections that follow changes, what they
  read together, and how they are woken; `direct_events.py`: how most are not
"""
