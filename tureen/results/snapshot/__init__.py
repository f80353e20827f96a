"""Snapshots: streams, tables and kept joins as of one commit and one count of pushes.

Takes the catalog, run files and the inbox. Holds memory maps, pending rows, and what a process last read.
Gives segments of tuples, and the punctuations among them. Does not know queries' plans, joins, or answers.

* `view.py`: what a process last read; `stream_state.py`: a stream, or several, at one moment
* `segment.py`, `segment_cache.py`: runs that are mapped; `pending.py`: rows that are in the inbox only
* `past_state.py`: a stream at an earlier position; `held_files.py`: retries after files were replaced
* `standing_check.py`: whether a query can be read
* `unread_places.py`, `closing_histories.py`: punctuations after a mark, and what they have closed
"""
