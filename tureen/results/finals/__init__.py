"""Final groups: which groups of a query with EMIT FINAL cannot change any more.

Takes keys of groups, and what is closed. Holds nothing. Gives which of them are final. Does not know followers.

* `final_rule.py`: what each input must have closed; `final_groups.py`: the groups of one query
"""
