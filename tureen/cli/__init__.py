"""The command line: the only folder that knows terminals.

Takes command lines. Holds nothing. Gives calls of a client or an embedded pot, with their results printed.
Does not know how answers are computed.

* `main.py`: the application; the commands are in `queries.py`, `streams.py`, `templates.py`, `tokens.py`, `push.py`,
  `punctuating.py`, `functions.py`, `integrity.py` (verify and backup), `network_commands.py`, `peers.py` and
  `serve.py`
* `target.py`: the server or pot that a command works on; `pot_tokens.py`: the tokens of a local pot
* `output.py`, `error_output.py`, `progress.py`, `following.py`: printing
* `row_files.py`, `file_formats.py`: files of rows, read in chunks
* `demo.py`, `demo_data.py`: the guided tour; `reference.py`: the generator of docs/cli.md
* `shell/`: `tureen sql`
"""
