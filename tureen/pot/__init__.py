"""The pot: the catalog and the files.

Takes records, rows as bytes, and finished files. Holds them durably, in one directory.
Gives transactions, the inbox, the lease. Does not know Spark, or what is in a run.

* `catalog.py`, `catalog_tables.py`, `connecting.py`, `digest.py`: one SQLite database
* `streams.py`, `named.py`, `tables.py`, `queries.py`, `clauses.py`, `registering.py`, `templates.py`, `members.py`,
  `template_files.py`, `tokens.py`, `status.py`: what is in it
* `runs.py`, `query_runs.py`: files that commits name; `files.py`, `parts.py`, `tablefile.py`: how they are written
* `inbox.py`, `log.py`, `record.py`, `heads.py`: pushed rows until Spark has taken them
* `bell.py`, `turn.py`, `group_commit.py`, `bulk_statements.py`: many readers and writers
* `lease.py`, `sweep.py`, `damage.py`, `backup.py`: one engine, garbage, damage, copies
"""
