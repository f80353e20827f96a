"""Templates: one text with parameters, and a row of values for each query.

Takes texts and values. Holds nothing. Gives the query of a row. Does not know where values are stored.

* `template.py`: the parameters of a text; `member.py`: the query of a row, without parsing
"""
