r"""Regular expressions: the part of Java's language that DuckDB's RE2 reads the same way, written for RE2.

Taken are characters, `.`, classes in brackets, `\d \w \s` and their opposites, groups, `|`, the repetitions
`* + ? {m,n}`, lazy or not, `^` at the start and `$` at the end. What could differ is refused: references back, looking
around, flags, possessive repetitions, word boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.evaluation.limits import LONGEST_TEXT
from tureen.language.functions.signatures import Args, Function, Refused, const, constant, escaped, text
from tureen.language.functions.text import GREW_TOO_LONG, check_growth
from tureen.language.tree import BOOLEAN, INT, STRING, Const, Expr

# What ends a line in Java; RE2 knows only the first.
_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LAST_LINE = rf"(?:\r\n|[{_ENDS}])?\z"
# Java's classes are ASCII, and its blanks have the vertical tab, which RE2's have not.
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\x0b\f\r "}
_ESCAPED = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_MARKS = frozenset("\\.^$|?*+()[]{}-/&~#@!%,:;<>=\"'` _")
_HINT = "write it with characters, classes, groups, | and * + ? {m,n}; or use LIKE"
MOST_REPEATS = 1000


@dataclass
class _Reader:
    """Reads a pattern, piece by piece, and writes it for RE2."""

    pattern: str
    at: int = 0
    groups: int = 0
    repeated: bool = False
    ends: bool = False
    open: list[int] = field(default_factory=list)

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def next(self) -> str:
        found = self.peek()
        if not found:
            raise Refused("the regular expression is not complete", _HINT)
        self.at += 1
        return found

    def refuse(self, what: str) -> Refused:
        return Refused(f"{what} in a regular expression is not supported", _HINT)

    def alternatives(self, depth: int) -> tuple[str, bool]:
        """Alternatives, and whether one of them matches an empty text."""
        out, empty = [], False
        while True:
            one, may_be_empty = self.sequence(depth)
            out.append(one)
            empty = empty or may_be_empty
            if self.peek() != "|":
                return "|".join(out), empty
            self.at += 1

    def sequence(self, depth: int) -> tuple[str, bool]:
        out, empty = "", True
        while self.peek() and self.peek() not in "|)":
            if self.peek() == "$" and depth == 0 and self.at == len(self.pattern) - 1:
                self.at += 1
                self.ends = True
                continue
            one, may_be_empty, captures = self.atom(depth)
            one, repeated_empty = self.repetition(one, may_be_empty, captures)
            out += one
            empty = empty and repeated_empty
        return out, empty

    def atom(self, depth: int) -> tuple[str, bool, bool]:
        """One piece, whether it matches an empty text, and whether it has a group that captures."""
        one = self.next()
        if one == "(":
            return self.group(depth)
        if one == "[":
            return self.brackets(), False, False
        if one == "\\":
            return self.escape(), False, False
        if one == ".":
            return f"[^{_ENDS}]", False, False
        if one == "^" and self.at == 1:
            return r"\A", True, False
        if one in "^$*+?{}])" or one == "\0":
            raise self.refuse(f"'{one}' at this place")
        return _quoted(one), False, False

    def group(self, depth: int) -> tuple[str, bool, bool]:
        before, start = self.groups, "("
        if self.peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise self.refuse("a group with '?'")
            self.at += 2
            start = "(?:"
        else:
            self.groups += 1
        inner, empty = self.alternatives(depth + 1)
        if self.next() != ")":
            raise self.refuse("a group that is not closed")
        return f"{start}{inner})", empty, self.groups > before

    def escape(self) -> str:
        one = self.next()
        if one in _CLASSES:
            return f"[{_CLASSES[one]}]"
        if one.lower() in _CLASSES:
            return f"[^{_CLASSES[one.lower()]}]"
        if one in _ESCAPED:
            return _ESCAPED[one]
        if one in _MARKS:
            return _quoted(one)
        raise self.refuse(f"'\\{one}'")

    def brackets(self) -> str:
        out = "[^" if self.peek() == "^" else "["
        self.at += self.peek() == "^"
        count = 0
        while self.peek() != "]" or not count:
            low = self.member()
            if len(low) > 1 or self.peek() != "-" or self.pattern[self.at + 1 : self.at + 2] == "]":
                out += low if len(low) > 1 else _quoted(low)
            else:
                self.at += 1
                high = self.member()
                if len(high) > 1 or high < low:
                    raise self.refuse("such a range")
                out += f"{_quoted(low)}-{_quoted(high)}"
            count += 1
        self.at += 1
        return out + "]"

    def member(self) -> str:
        """One character of a class, or the SQL of several."""
        one = self.next()
        if one == "\\":
            mark = self.next()
            if mark in _CLASSES:
                return _CLASSES[mark]
            if mark in _ESCAPED:
                return _ESCAPED[mark]
            if mark in _MARKS:
                return mark
            raise self.refuse(f"'\\{mark}' in brackets")
        # Java knows classes in classes, and their intersection.
        if one in "[]&^\0":
            raise self.refuse(f"'{one}' in brackets")
        return one

    def repetition(self, one: str, empty: bool, captures: bool) -> tuple[str, bool]:
        mark = self.peek()
        if mark == "{":
            end = self.pattern.find("}", self.at)
            low, comma, high = self.pattern[self.at + 1 : end].partition(",")
            bounds = [low, *([high] if high else [])]
            if end < 0 or not all(b.isascii() and b.isdigit() and int(b) <= MOST_REPEATS for b in bounds):
                raise self.refuse("such a repetition")
            mark = self.pattern[self.at : end + 1]
            least = int(low)
            if comma and high and int(high) < least:
                raise self.refuse("such a repetition")
        elif mark and mark in "*+?":
            least = int(mark == "+")
        else:
            return one, empty
        if empty:
            raise self.refuse("repeating what may be empty")
        self.at += len(mark)
        self.repeated = self.repeated or (captures and mark != "?")
        if self.peek() == "?":
            self.at += 1
            mark += "?"
        if self.peek() and self.peek() in "*+?{":
            raise self.refuse("a repetition of a repetition")
        return one + mark, least == 0


def _quoted(one: str) -> str:
    """A character that stands for itself; control characters by their number."""
    if one.isalnum() or one == "_" or (ord(one) > 127 and one.isprintable()):
        return one
    return f"\\x{{{ord(one):x}}}"


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern for RE2, without the `$` at its end; how many groups it has, and what it may do."""

    body: str
    groups: int
    ends: bool
    empty: bool
    repeated: bool


def read_regex(pattern: str) -> Regex:
    r"""The pattern for RE2; one that might mean something else is refused.

    >>> read_regex(r"^a\d+(b|c)").body
    '\\Aa[0-9]+(b|c)'
    """
    reader = _Reader(pattern)
    body, empty = reader.alternatives(0)
    if reader.at < len(pattern):
        raise reader.refuse(f"'{reader.peek()}' at this place")
    if "|" in pattern and (reader.ends or body.startswith(r"\A")) and _top_level_bar(body):
        raise reader.refuse("'^' or '$' beside '|'")
    return Regex(body, reader.groups, reader.ends, empty, reader.repeated)


def _top_level_bar(body: str) -> bool:
    depth, inside, marks = 0, False, iter(body)
    for one in marks:
        if one == "\\":
            next(marks)
        elif inside:
            inside = one != "]"
        elif one == "[":
            inside = True
        elif one == "|" and not depth:
            return True
        depth += (one == "(" and not inside) - (one == ")" and not inside)
    return False


def _literal(pattern: str) -> str:
    return escaped("'" + pattern.replace("'", "''") + "'")


def _pattern(args: Args, at: int = 1) -> str | None:
    found = args[at]
    assert isinstance(found, Const)
    return None if found.value is None else str(found.value)


def _like(args: Args) -> str:
    pattern = _pattern(args)
    if pattern is None:
        return "NULL"
    regex = read_regex(pattern)
    return f"regexp_matches({{0}}, {_literal(regex.body + (_LAST_LINE if regex.ends else ''))})"


def _extract(args: Args) -> str:
    pattern, group = _pattern(args), args[2]
    assert isinstance(group, Const)
    if pattern is None or group.value is None:
        return "NULL"
    regex, index = read_regex(pattern), int(group.value)
    if not 0 <= index <= regex.groups:
        raise Refused(f"the regular expression has no group {index}", f"it has {regex.groups}")
    if regex.repeated:
        raise Refused("regexp_extract with a repeated group is not supported", "write (?:…) for what is repeated")
    # What ends the last line is not part of the match.
    body = f"({regex.body})" + (_LAST_LINE if regex.ends else "")
    return f"regexp_extract({{0}}, {_literal(body)}, {index + 1 if index else 1})"


def _replace(args: Args) -> str:
    pattern, replacement = _pattern(args), _pattern(args, 2)
    if pattern is None or replacement is None:
        return "NULL"
    regex = read_regex(pattern)
    if regex.empty or regex.ends or regex.repeated:
        raise Refused(
            "regexp_replace takes no pattern with '$', with a repeated group, or for an empty text", "use replace"
        )
    return _bounded(args[0], _literal(regex.body), _rewritten(replacement, regex.groups))


def _bounded(value: Expr, body: str, replacement: str) -> str:
    """A replacement of all matches, which are only counted where the text could become much longer.

    A match has at least one character. A group's reference adds no more than the text has characters.
    """
    references = replacement.count("\\")
    added = len(replacement) - 2 * references
    sql = f"regexp_replace({{0}}, {body}, {_literal(replacement)}, 'g')"
    if not references and added <= 1:
        return sql
    if isinstance(value, Const):
        check_growth(len(str(value.value)) * (added + references))
    grown = f"len(regexp_extract_all({{0}}, {body})) * {added} + length({{0}}) * {references}"
    return (
        f"CASE WHEN length({{0}}) * {added + references} <= {LONGEST_TEXT} THEN {sql} "
        f"WHEN {grown} > length({{0}}) + {LONGEST_TEXT} THEN {GREW_TOO_LONG} ELSE {sql} END"
    )


def _rewritten(replacement: str, groups: int) -> str:
    r"""A replacement for RE2: `$1` is `\1`."""
    out, at = "", 0
    while at < len(replacement):
        one = replacement[at]
        if one == "$":
            digit, after = replacement[at + 1 : at + 2], replacement[at + 2 : at + 3]
            known = digit.isascii() and digit.isdigit() and int(digit) <= groups and not after.isdigit()
            if not known:
                raise Refused("'$' in a replacement stands before the number of a group", "such as $1")
            out, at = out + f"\\{digit}", at + 2
            continue
        if one == "\\":
            raise Refused("a backslash in a replacement is not supported", "leave it out")
        out, at = out + one, at + 1
    return out


REGEXES: dict[str, Function] = {
    "regexp_like": Function((text, constant(STRING)), BOOLEAN, _like),
    "regexp_extract": Function((text, constant(STRING), constant(INT)), STRING, _extract, (const(1, INT),)),
    "regexp_replace": Function((text, constant(STRING), constant(STRING)), STRING, _replace, raises=True),
}
