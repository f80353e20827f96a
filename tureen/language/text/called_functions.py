"""Which functions a text calls, as far as its tokens tell."""

from __future__ import annotations

from itertools import pairwise

from sqlglot.tokens import TokenType

from tureen.errors import SqlError
from tureen.functions.user_function import function_key
from tureen.language.source import Source
from tureen.language.text.split import tokenize


def calls_function(text: str, name: str) -> bool:
    """Whether a text has a name before an open parenthesis.

    >>> calls_function("SELECT IS_SPAM (text) FROM mails", "is_spam"), calls_function("SELECT 'f(x)' FROM s", "f")
    (True, False)
    """
    try:
        tokens = tokenize(Source(text))
    except SqlError:
        return False
    return any(
        following.token_type is TokenType.L_PAREN
        and token.token_type is not TokenType.STRING
        and function_key(token.text) == function_key(name)
        for token, following in pairwise(tokens)
    )
