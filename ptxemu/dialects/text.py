"""Assembly text: lines of one small PLY grammar, with the diagnostics and the recovery of the PTX front end.

A dialect gives its lexer's rules and its grammar.  Each line is parsed by itself, so that an error costs one line and the
rest is still checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from types import ModuleType
from typing import Any

from ply import lex, yacc

from ptxemu.process.lazy import lazy_property
from ptxemu.syntax.ast import Int
from ptxemu.syntax.repair import acceptable
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile, unmarked

Token = Any  # ply.lex.LexToken, which is untyped
Rule = Any  # ply.yacc.YaccProduction
INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)", re.ASCII)
LONGEST_NUMBER = 20


class TextError(Exception):
    """A line is wrong at ``pos`` .. ``end``; what is raised while a line is parsed becomes a diagnostic."""

    def __init__(self, message: str, pos: int, end: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.pos = pos
        self.end = end


class LineParser:
    """The parser of a dialect.

    ``rules`` is an object with PLY's ``tokens``, ``literals`` and ``t_`` rules, whose token values stay texts; ``grammar``
    a module with ``p_`` productions and ``start``; ``comments`` matches what is blanked before, over several lines if need
    be; ``words`` says how messages call the tokens that may come next, the most telling first, a pair where both may come;
    ``refused`` is what belongs to another language, and the message for it.
    """

    def __init__(
        self,
        rules: object,
        grammar: ModuleType,
        comments: re.Pattern[str],
        words: Mapping[str, str] | Mapping[str | tuple[str, str], str],
        refused: tuple[re.Pattern[str], str] | None = None,
    ) -> None:
        self._rules = rules
        self._grammar = grammar
        self._comments = comments
        self._words = words
        self._refused = refused

    @lazy_property
    def _lexer(self) -> lex.Lexer:
        return lex.lex(object=self._rules, reflags=re.ASCII, errorlog=lex.NullLogger())

    @lazy_property
    def _tables(self) -> yacc.LRParser:
        return yacc.yacc(module=self._grammar, write_tables=False, debug=False, errorlog=lex.NullLogger())

    def parse(self, source: SourceFile, diagnostics: Diagnostics) -> list[Any]:
        """What the productions made of each line, empty lines left out."""
        text = self._comments.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), unmarked(source.text))
        parser = copy(self._tables)
        found = []
        start = 0
        for line in text.split("\n"):
            if line.strip() and not diagnostics.full:
                try:
                    found.append(self._line(parser, line, start))
                except TextError as error:
                    diagnostics.error(error.message, error.pos, error.end)
            start += len(line) + 1
        return [item for item in found if item is not None]

    def _line(self, parser: Any, line: str, start: int) -> Any:
        if self._refused is not None and (found := self._refused[0].search(line)):
            raise TextError(self._refused[1].format(found[0]), start + found.start(), start + found.end())
        stream = _Line(self._lexer.clone(), line, start)
        parser.errorfunc = lambda token: self._syntax_error(parser, token, stream.end)
        return parser.parse(lexer=stream)

    def _syntax_error(self, parser: Any, token: Token | None, end: int) -> None:
        expected = acceptable(parser)
        kinds = ((key if isinstance(key, tuple) else (key,), words) for key, words in self._words.items())
        wanted = next((words for kind, words in kinds if expected.issuperset(kind)), "the end of the line")
        if token is None:
            raise TextError(f"expected {wanted} before the end of the line", end)
        raise TextError(f"expected {wanted}, found '{token.value}'", token.lexpos, token.lexpos + len(token.value))


class _Line:
    """The tokens of one line, at their places in the source."""

    def __init__(self, lexer: Any, line: str, start: int) -> None:
        self._lexer = lexer
        self._start = start
        self.end = start + len(line.rstrip())
        lexer.input(line)
        lexer.start = start

    def token(self) -> Token | None:
        token = self._lexer.token()
        if token is not None:
            token.lexpos += self._start
        return token


def bad_character(token: Token) -> None:
    """The ``t_error`` of every dialect."""
    pos = token.lexer.start + token.lexpos
    rest = token.value
    if rest.startswith("/*") or (rest[0] == '"' and '"' not in rest[1:]):
        what = "comment" if rest[0] == "/" else "text"
        raise TextError(f"this {what} never ends", pos, pos + 2)
    raise TextError(f"unexpected character {rest[0]!r}", pos, pos + 1)


def integer(text: str, pos: int) -> Int:
    """An integer literal, decimal or hexadecimal, with an optional sign."""
    if not INTEGER.fullmatch(text) or len(text) > LONGEST_NUMBER:
        raise TextError(f"invalid number '{text[:40]}'", pos, pos + len(text))
    return Int(int(text, 16) if "x" in text.lower() else int(text), False, pos, pos + len(text))
