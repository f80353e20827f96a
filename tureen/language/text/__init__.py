"""Text: tokenizing, and what can be read from tokens without lookups.

Takes a text. Holds nothing. Gives its parts, or a statement. Does not know streams or types of columns.

* `split.py`: the SELECT and the window of a query, and the offsets of its clauses; `window_bounds.py`: BEGIN and END
* `table_functions.py`: steps as functions in FROM, in brackets; `session_groups.py`: sessions as window functions
* `blocks.py`: queries within the query, WITH and set operations
* `parse.py`: the SELECT as sqlglot's tree; `in_lists.py`: long IN lists as one token
* `depth.py`: nesting limits; `shapes.py`: texts without their constants
* `statements.py`, `relation_statements.py`, `function_statement.py`, `peer_statements.py`, `declarations.py`,
  `statement_reader.py`: statements other than SELECT
* `argument_text.py`: the text of a call's arguments; `called_functions.py`: which functions a text calls
* `punctuate.py`: the condition of PUNCTUATE
"""
