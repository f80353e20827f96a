"""The shell's line editor: history, completion, highlighting, and statements of several lines."""

from __future__ import annotations

import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from tureen.cli.shell.completion import NameCompleter, names_of
from tureen.cli.shell.splitting import is_complete
from tureen.cli.target import AnySoup

PROMPT = "tureen> "
MORE = "   ...> "


def history_file() -> Path:
    """The file of the history: `TUREEN_HISTORY`, or a file in the user's state directory."""
    path = os.environ.get("TUREEN_HISTORY")
    if path:
        return Path(path)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tureen" / "history"


class Prompt:
    """Reads statements and commands from a terminal."""

    def __init__(self, soup: AnySoup) -> None:
        """Complete the names of a soup."""
        self._completer = NameCompleter(lambda: names_of(soup))
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            history=_history(),
            # In a thread, as looking up names may take a request to a server.
            completer=ThreadedCompleter(self._completer),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            lexer=PygmentsLexer(SqlLexer),
            multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
            prompt_continuation=MORE,
        )

    def read(self) -> str | None:
        """The next input, or None at end of file; Ctrl-C discards the line."""
        while True:
            try:
                return self._session.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None

    def forget(self) -> None:
        """Invalidate the cached names."""
        self._completer.forget()


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Statements may contain confidential values.
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
