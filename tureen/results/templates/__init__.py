"""Templates: new rows and groups, for all queries of a template at once.

Takes new rows and the values of a template. Holds compiled values. Gives pairs of a row and a query.
Does not know users or connections.

* `template_rule.py`: what all queries have in common; `template_matches.py`, `pairing.py`: which rows satisfy which
* `group_templates.py`: the groups of a template
"""
