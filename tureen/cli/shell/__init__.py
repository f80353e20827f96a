"""The shell: `tureen sql`.

Takes statements, typed, piped or passed with -c. Holds the session's history. Gives their results, printed.
Does not know what a statement means.

* `shell.py`: the loop; `splitting.py`: text split into statements
* `prompt.py`: the line editor; `completion.py`: keywords and names
"""
