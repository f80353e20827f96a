"""Followed groups: what changed in the groups of queries since a position.

Takes positions and prepared queries. Holds the groups of followed queries at the last moment. Gives changes of groups.
Does not know users or connections.

* `group_following.py`, `followed_groups.py`, `group_deltas.py`: what changed; `incremental_groups.py`: groups that are
  kept up to date; `group_changes.py`: the changes of answers
* `final_following.py`, `open_groups.py`: groups of EMIT FINAL that became final
"""
