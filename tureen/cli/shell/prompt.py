"""The shell's line editor: history, completion, colours, and statements over several lines."""

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
    """Where the history is kept: `TUREEN_HISTORY`, or a file in the user's state directory."""
    said = os.environ.get("TUREEN_HISTORY")
    if said:
        return Path(said)
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "tureen" / "history"


class Prompt:
    """Reads one input after the other."""

    def __init__(self, soup: AnySoup) -> None:
        """Complete the names of that soup."""
        self._completer = NameCompleter(lambda: names_of(soup))
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            history=_history(),
            # In a thread, as names may come from a server.
            completer=ThreadedCompleter(self._completer),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            lexer=PygmentsLexer(SqlLexer),
            multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
            prompt_continuation=MORE,
        )

    def read(self) -> str | None:
        """The next input, or None where the user leaves; Ctrl-C throws away what is typed."""
        while True:
            try:
                return self._session.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None

    def forget(self) -> None:
        """Look names up again."""
        self._completer.forget()


def _history() -> History:
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Statements may hold what is nobody else's business.
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
