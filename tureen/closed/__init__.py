"""Closed sets: punctuations and rows in, accepted and rejected rows out.

Takes the punctuations of a stream and batches of its rows, in the order of its log. Holds what is closed, compacted:
sorted values, merged ranges. Gives for each row whether an earlier punctuation closes it. Does not know the pot or
Spark.

* `pattern.py`: a punctuation whose values are checked against the schema, and its text
* `rules.py`, `declaring.py`: what a stream declares; `last_rows.py`: rows that are the last with their key
* `key_codes.py`: the values of columns as integers that have the same order, or as hashes
* `key_set.py`: sets of millions of values; `closed_ranges.py`: merged ranges
* `closed_set.py`: all punctuations of a stream; `closing_history.py`: what was closed after any of them;
  `pattern_block.py`: consecutive ones by column; `pattern_values.py`: patterns as values
* `tuple_groups.py`: which groups of tuples that may still arrive are closed
* `gate.py`: which rows of a push are accepted
* `section.py`, `stored_gate.py`: punctuations and gates as bytes
"""
