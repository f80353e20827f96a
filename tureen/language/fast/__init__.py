"""Fast binding: a query that differs from an earlier one in its constants alone is bound without parsing.

Takes a text. Holds what earlier texts meant. Gives the same `Query` as the passes, or None. Does not know data.

* `quick.py`: the binder; `plain.py`: conditions of `column op constant`, read from tokens
"""
