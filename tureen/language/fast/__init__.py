"""Fast binding: a query that differs from an earlier one only in its constants is bound without parsing.

Takes a text. Holds the frames of earlier queries. Gives the same `Query` as the passes, or None. Does not know data.

* `quick.py`: the binder; `plain.py`: conditions of `column op constant`, read from tokens
"""
