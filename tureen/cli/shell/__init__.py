"""The shell: `tureen sql`.

Takes statements, typed, piped or given with -c. Holds the session's history. Gives their results, printed.
Does not know what a statement means.

* `shell.py`: the loop; `splitting.py`: the statements of a text
* `prompt.py`: the line editor; `completion.py`: keywords and names
"""
