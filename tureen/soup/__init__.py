"""The soup: an open pot in Python.

Takes SQL texts, rows, handles and positions. Holds an open pot, each part of it created when it is first needed.
Gives handles, answers, changes. Does not know HTTP or terminals.

* `interface.py`: the methods of a pot, whether opened or behind a server; `standing.py`: the handles that users get
* `opening.py`: `open`; `embedded.py`, `embedded_calls.py`: the methods of an open pot, and those of its handles
* `soup_status.py`: what `status` and `streams` return
* `served_soup.py`: an open pot as a server uses it
* `open_pot.py`: the catalog, the invoker and the engine below them; `exit_closing.py`: pots that are open when the
  program ends; `registry.py`: registering queries
* `templates.py`, `template_parameters.py`: templates, and their tables of parameter values
* `pushing.py`, `xml_pushing.py`: rows in; `waiting.py`: positions reached
* `feed.py`: changes out; `change_batches.py`, `feed_parts.py`: those of one read;
  `group_batches.py`, `turns.py`, `feed_groups.py`: changes of groups; `feed_queries.py`: the queries of a feed
* `stream_derivation.py`: streams that are derived from queries; `tables.py`: users' tables
* `functions.py`: users' functions; `remote_inputs.py`: inputs of queries that live at other servers
* `statement_runner.py`: SQL statements as method calls; `integrity.py`: verify and backup
"""
