"""Changes: the rows that joined an answer since a position, and the punctuations among them.

Takes a snapshot, a position and a prepared query. Holds nothing. Gives new rows, and punctuations of outputs.
Does not know who follows a query.

* `changes.py`, `join_changes.py`, `closed_steps.py`: rows of one stream, of a join, and of steps that are over
* `output_patterns.py`: patterns of inputs as patterns of outputs; `closed_inputs.py`: what is closed in the inputs of a
  join; `join_propagation.py`, `early_propagation.py`: the punctuations of its output; `punctuated_changes.py`: both
"""
