"""The pot: the catalog and the files.

Takes records, rows as bytes, and finished files. Holds them durably, in one directory.
Gives transactions, snapshots, the inbox, the lease. Does not know Spark, SQL, or what is in a run.
"""
