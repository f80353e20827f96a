r"""Regular expressions: the part of Java's syntax that DuckDB's RE2 interprets the same way, translated to RE2.

Supported are characters, `.`, classes in brackets, `\d \w \s` and their complements, groups, `|`, the repetitions
`* + ? {m,n}`, lazy or not, `^` at the start and `$` at the end. What could differ is rejected: back references,
lookaround, flags, possessive repetitions, word boundaries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tureen.evaluation.limits import LONGEST_TEXT
from tureen.language.functions.signatures import Args, Function, UnsupportedCall, const, constant, escaped, text
from tureen.language.functions.text import GREW_TOO_LONG, check_growth
from tureen.language.tree import BOOLEAN, INT, STRING, Const, Expr

# Line terminators in Java; RE2 has only the first.
_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LAST_LINE = rf"(?:\r\n|[{_ENDS}])?\z"
# Java's classes are ASCII, and its \s includes the vertical tab, which RE2's does not.
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\x0b\f\r "}
_ESCAPED = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_MARKS = frozenset("\\.^$|?*+()[]{}-/&~#@!%,:;<>=\"'` _")
_HINT = "use characters, classes, groups, | and * + ? {m,n}; or use LIKE"
_TERMINATED = "'regexp_replace with $ of a string that ends with a line terminator'"
MOST_REPEATS = 1000


@dataclass
class _Reader:
    """Parses a pattern, and translates it to RE2."""

    pattern: str
    at: int = 0
    groups: int = 0
    repeated: bool = False
    ends: bool = False
    open: list[int] = field(default_factory=list)

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def next(self) -> str:
        character = self.peek()
        if not character:
            raise UnsupportedCall("the regular expression is incomplete", _HINT)
        self.at += 1
        return character

    def unsupported(self, construct: str) -> UnsupportedCall:
        return UnsupportedCall(f"{construct} in a regular expression is not supported", _HINT)

    def alternatives(self, depth: int) -> tuple[str, bool]:
        """Read alternatives; whether one of them matches an empty string."""
        out, empty = [], False
        while True:
            alternative, may_be_empty = self.sequence(depth)
            out.append(alternative)
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
            atom, may_be_empty, captures = self.atom(depth)
            atom, repeated_empty = self.repetition(atom, may_be_empty, captures)
            out += atom
            empty = empty and repeated_empty
        return out, empty

    def atom(self, depth: int) -> tuple[str, bool, bool]:
        """Read an atom; whether it matches an empty string, and whether it contains a capturing group."""
        character = self.next()
        if character == "(":
            return self.group(depth)
        if character == "[":
            return self.brackets(), False, False
        if character == "\\":
            return self.escape(), False, False
        if character == ".":
            return f"[^{_ENDS}]", False, False
        if character == "^" and self.at == 1:
            return r"\A", True, False
        if character in "^$*+?{}])" or character == "\0":
            raise self.unsupported(f"'{character}' at this position")
        return _quoted(character), False, False

    def group(self, depth: int) -> tuple[str, bool, bool]:
        before, start = self.groups, "("
        if self.peek() == "?":
            if self.pattern[self.at : self.at + 2] != "?:":
                raise self.unsupported("a group with '?'")
            self.at += 2
            start = "(?:"
        else:
            self.groups += 1
        inner, empty = self.alternatives(depth + 1)
        if self.next() != ")":
            raise self.unsupported("a group that is not closed")
        return f"{start}{inner})", empty, self.groups > before

    def escape(self) -> str:
        character = self.next()
        if character in _CLASSES:
            return f"[{_CLASSES[character]}]"
        if character.lower() in _CLASSES:
            return f"[^{_CLASSES[character.lower()]}]"
        if character in _ESCAPED:
            return _ESCAPED[character]
        if character in _MARKS:
            return _quoted(character)
        raise self.unsupported(f"'\\{character}'")

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
                    raise self.unsupported("an invalid range")
                out += f"{_quoted(low)}-{_quoted(high)}"
            count += 1
        self.at += 1
        return out + "]"

    def member(self) -> str:
        """Read a member of a class: one character, or the translation of a nested class."""
        character = self.next()
        if character == "\\":
            mark = self.next()
            if mark in _CLASSES:
                return _CLASSES[mark]
            if mark in _ESCAPED:
                return _ESCAPED[mark]
            if mark in _MARKS:
                return mark
            raise self.unsupported(f"'\\{mark}' in brackets")
        # Java supports nested classes, and their intersection.
        if character in "[]&^\0":
            raise self.unsupported(f"'{character}' in brackets")
        return character

    def repetition(self, atom: str, empty: bool, captures: bool) -> tuple[str, bool]:
        mark = self.peek()
        if mark == "{":
            end = self.pattern.find("}", self.at)
            low, comma, high = self.pattern[self.at + 1 : end].partition(",")
            bounds = [low, *([high] if high else [])]
            if end < 0 or not all(b.isascii() and b.isdigit() and int(b) <= MOST_REPEATS for b in bounds):
                raise self.unsupported("an invalid repetition")
            mark = self.pattern[self.at : end + 1]
            least = int(low)
            if comma and high and int(high) < least:
                raise self.unsupported("an invalid repetition")
        elif mark and mark in "*+?":
            least = int(mark == "+")
        else:
            return atom, empty
        if empty:
            raise self.unsupported("a repetition of a possibly empty match")
        self.at += len(mark)
        self.repeated = self.repeated or (captures and mark != "?")
        if self.peek() == "?":
            self.at += 1
            mark += "?"
        if self.peek() and self.peek() in "*+?{":
            raise self.unsupported("a repetition of a repetition")
        return atom + mark, least == 0


def _quoted(character: str) -> str:
    """A literal character; control characters and punctuation by their code."""
    if character.isalnum() or character == "_" or (ord(character) > 127 and character.isprintable()):
        return character
    return f"\\x{{{ord(character):x}}}"


@dataclass(frozen=True, slots=True)
class Regex:
    """A pattern translated to RE2, without the `$` at its end, and its properties."""

    body: str
    groups: int
    ends: bool
    empty: bool
    repeated: bool


def read_regex(pattern: str) -> Regex:
    r"""Translate a pattern to RE2; raises if it could mean something else there.

    >>> read_regex(r"^a\d+(b|c)").body
    '\\Aa[0-9]+(b|c)'
    """
    reader = _Reader(pattern)
    body, empty = reader.alternatives(0)
    if reader.at < len(pattern):
        raise reader.unsupported(f"'{reader.peek()}' at this position")
    if "|" in pattern and (reader.ends or body.startswith(r"\A")) and _top_level_bar(body):
        raise reader.unsupported("'^' or '$' beside '|'")
    return Regex(body, reader.groups, reader.ends, empty, reader.repeated)


def _top_level_bar(body: str) -> bool:
    depth, inside, characters = 0, False, iter(body)
    for character in characters:
        if character == "\\":
            next(characters)
        elif inside:
            inside = character != "]"
        elif character == "[":
            inside = True
        elif character == "|" and not depth:
            return True
        depth += (character == "(" and not inside) - (character == ")" and not inside)
    return False


def _literal(pattern: str) -> str:
    return escaped("'" + pattern.replace("'", "''") + "'")


def _pattern(args: Args, at: int = 1) -> str | None:
    argument = args[at]
    assert isinstance(argument, Const)
    return None if argument.value is None else str(argument.value)


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
        raise UnsupportedCall(f"the regular expression has no group {index}", f"it has {regex.groups}")
    if regex.repeated:
        raise UnsupportedCall(
            "regexp_extract with a repeated group is not supported", "use (?:…) for the repeated part"
        )
    # The terminator of the last line is not part of the match.
    body = f"({regex.body})" + (_LAST_LINE if regex.ends else "")
    return f"regexp_extract({{0}}, {_literal(body)}, {index + 1 if index else 1})"


def _replace(args: Args) -> str:
    pattern, replacement = _pattern(args), _pattern(args, 2)
    if pattern is None or replacement is None:
        return "NULL"
    regex = read_regex(pattern)
    if regex.empty or regex.repeated:
        raise UnsupportedCall("regexp_replace does not support repeated groups or empty matches", "use replace")
    body = _literal(regex.body + (r"\z" if regex.ends else ""))
    replaced = _bounded(args[0], body, _rewritten(replacement, regex.groups))
    if not regex.ends:
        return replaced
    # In Java, `$` matches before and after a line terminator at the end of the string.
    terminated = _literal(rf"[{_ENDS}]\z")
    return f"CASE WHEN regexp_matches({{0}}, {terminated}) THEN error({_TERMINATED}) ELSE {replaced} END"


def _bounded(value: Expr, body: str, replacement: str) -> str:
    """Replace all matches. Matches are counted only if the string could become much longer.

    A match has at least one character. A reference to a group adds at most the length of the string.
    """
    references = replacement.count("\\")
    added = len(replacement) - 2 * references
    sql = f"regexp_replace({{0}}, {body}, {_literal(replacement)}, 'g')"
    if not references and added <= 1:
        return sql
    if isinstance(value, Const):
        check_growth(len(str(value.value)) * (added + references))
    growth = f"len(regexp_extract_all({{0}}, {body})) * {added} + length({{0}}) * {references}"
    return (
        f"CASE WHEN length({{0}}) * {added + references} <= {LONGEST_TEXT} THEN {sql} "
        f"WHEN {growth} > length({{0}}) + {LONGEST_TEXT} THEN {GREW_TOO_LONG} ELSE {sql} END"
    )


def _rewritten(replacement: str, groups: int) -> str:
    r"""A replacement translated to RE2: `$1` becomes `\1`."""
    out, at = "", 0
    while at < len(replacement):
        character = replacement[at]
        if character == "$":
            digit, after = replacement[at + 1 : at + 2], replacement[at + 2 : at + 3]
            is_reference = digit.isascii() and digit.isdigit() and int(digit) <= groups and not after.isdigit()
            if not is_reference:
                raise UnsupportedCall("'$' in a replacement must be followed by the number of a group", "such as $1")
            out, at = out + f"\\{digit}", at + 2
            continue
        if character == "\\":
            raise UnsupportedCall("a backslash in a replacement is not supported", "remove it")
        out, at = out + character, at + 1
    return out


REGEXES: dict[str, Function] = {
    "regexp_like": Function((text, constant(STRING)), BOOLEAN, _like),
    "regexp_extract": Function((text, constant(STRING), constant(INT)), STRING, _extract, (const(1, INT),)),
    "regexp_replace": Function((text, constant(STRING), constant(STRING)), STRING, _replace, raises=True),
}
