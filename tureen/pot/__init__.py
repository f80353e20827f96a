"""The pot: the catalog and the files.

Takes records, rows as bytes, and finished files. Holds them durably, in one directory.
Gives transactions, the inbox, the lease. Does not know Spark, the language, or the contents of a run.

* `catalog.py`, `catalog_creation.py`, `connecting.py`, `commit_token.py`, `digest.py`: the SQLite database;
  `transaction.py`, `statements.py`: what is executed on it
* `catalog_schema.py`, `catalog_tables.py`, `template_tables.py`, `join_tables.py`, `peer_tables.py`: its tables
* `relations.py`, `streams.py`, `derived_streams.py`, `stream_cache.py`, `tables.py`, `dropping.py`: streams and tables
* `queries.py`, `registered.py`, `clauses.py`, `registering.py`, `window_needs.py`: standing queries
* `templates.py`, `members.py`, `template_files.py`: templates
* `tokens.py`, `functions.py`: tokens and user functions; `status.py`: everything as users see it
* `peers.py`, `links.py`, `held_flows.py`, `home_progress.py`: other servers, and how far their streams are received
* `runs.py`, `query_runs.py`, `kept_joins.py`, `key_files.py`: the files that commits name; `needed_keys.py`: the key
  indexes that they have
* `files.py`, `parts.py`, `tablefile.py`: their format
* `inbox.py`, `log.py`, `record.py`, `heads.py`: pushed rows until they are in runs; `reserved_ids.py`: their tuple ids
* `gates.py`, `closed_files.py`, `pending_rejections.py`: punctuations, and the rows that they reject;
  `punctuation_places.py`: where they stand among the tuples
* `upkeep_needs.py`: which streams need background work; `pot_progress.py`: how far a pot is, in commits and pushes
* `bell.py`, `turn.py`, `group_commit.py`, `bulk_statements.py`: fast paths of concurrent readers and writers
* `lease.py`, `sweep.py`, `damage.py`, `backup.py`: the only engine, garbage, damage, copies
"""
