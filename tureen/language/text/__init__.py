"""Text: what can be read from tokens, before anything is looked up.

Takes a text. Holds nothing. Gives its parts, or a statement. Does not know streams or types of columns.

* `split.py`: the SELECT, BEGIN and END of a query, and where its clauses are; `window_bounds.py`: BEGIN and END
* `parse.py`: the SELECT as sqlglot's tree; `in_lists.py`: long IN lists as one token
* `depth.py`: limits of nesting; `shapes.py`: a text without its constants
* `statements.py`, `declarations.py`, `words.py`: statements other than SELECT
* `written.py`: the text of a call's arguments
"""
