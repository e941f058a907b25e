"""The tokens that the grammar reads, and everything about them that a context-free grammar cannot know.

They come with the scopes (for the fast path, for missing braces and to bound nesting), the ``.loc`` in force and the
place where the statement began.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from typing import Any, NamedTuple

from ply import lex

from ptxemu.syntax import lexer as lexing
from ptxemu.syntax import messages
from ptxemu.syntax.ast import Instruction, Module, Variable
from ptxemu.syntax.scanner import Scanner
from ptxemu.syntax.trivia import blank
from ptxemu.syntax.words import DIRECTIVES, ITEM_STARTS
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import Loc, SourceFile, after_blanks

MAX_NESTING = 256
"""Deepest nesting of braces; later stages may recurse on it."""

_BAD_RUN = re.compile(r"(?:[^\sA-Za-z0-9_$%.;:,{}\[\]()<>+\-*/!~|&^=@?\"]|\.(?!\w)|\$(?![\w$]))+", re.ASCII)
_MOST_ERRORS = 100  # with those that repeat one on the same line, which are reported once
_WIDEST_INDENT = 256
_STATEMENT_END = re.compile(r"[;{}]|\Z")
FIRST_WORD = re.compile(r"[\s.]*([A-Za-z_$%][\w$]*)", re.ASCII)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?!(?:line)?[ \t]*[0-9]+[ \t]*\")", re.MULTILINE | re.ASCII)

Token = Any  # ply.lex.LexToken, which is untyped


class Place(NamedTuple):
    """Where in its statement a token stands."""

    depth: int = 0
    """How many scopes are open."""
    braces: int = 0
    """How many braces are open inside the statement: vectors, initialisers."""
    position: int = 0
    """How many tokens of the statement precede it."""
    in_parentheses: bool = False
    in_value: bool = False
    """After the ``=`` of an initialiser."""


class Tokens:
    """The lexer of one parse: PLY's ``token()`` protocol over a source text."""

    def __init__(self, source: SourceFile, diagnostics: Diagnostics, fast: bool) -> None:
        self.diagnostics = diagnostics
        self.module = Module()
        self.text = blank(source.text)
        self.scopes: list[int] = []
        self.numbered_targets = 0
        self._lexer = lexing.prototype().clone()
        self._lexer.stream = self
        self._lexer.input(self.text)
        self._scanner = Scanner(self.text, self) if fast else None
        self._pending: deque[Token] = deque()
        self._location_positions: list[int] = []
        self._locations: dict[tuple[int, ...], int] = {}  # the last .loc of each, counted from 1
        self._locations_before = 0  # how many .loc precede the function that is being read
        self._count = 0  # tokens of the statement so far
        self._braces = 0  # braces open inside the statement: vectors, initialisers
        self._in_parentheses = False
        self._in_value = False  # after the '=' of an initialiser
        self._previous_end = 0
        self._last: Token = None
        self._before = Place()  # of the last token
        self._last_scope = 0  # the scope that the last token closed
        self._statement_start = 0
        self._cut_start = 0  # of the statement before, if what starts an item has ended it
        self._function_end: int | None = None  # where the last body was closed
        self._functions = 0  # how many bodies have been
        self._last_error = -1
        self._errors = 0
        self._followers = 0  # errors that follow from the last one
        self._stopped = False
        self._enough = False  # errors: what follows the statement is not read
        self._plain = True  # the statement so far is one that ptxas reads too
        if diagnostics.strict and not source.text.isascii():
            self._reject_other_alphabets(source.text)
        if diagnostics.strict and "#" in source.text:
            self._reject_preprocessor_lines(source.text)

    # ------------------------------------------------------------ tokens

    def token(self) -> Token:
        """The next token, or None at the end."""
        if self._pending:
            return self._pending.popleft()
        if self._enough and not (self._count or self._stopped):
            self._end_here()
            return self.token()
        if self._stopped:
            return None
        return (self._ready_made(self._scanner) if self._scanner else None) or self._read()

    def _ready_made(self, scanner: Scanner) -> Token:
        """A token for the statements or parameters that the fast path knows here, or None."""
        start = self._lexer.lexpos
        if self.scopes:
            kind, (nodes, end) = "RUN", scanner.run(start) if not self._count else ([], start)
        elif self._in_parentheses and self._last.type in ("(", ","):
            kind, (nodes, end) = "PARAMETERS", scanner.parameters(start)
        else:
            return None
        if not nodes:
            return None
        self._lexer.lexpos = end
        self._last = made(kind, nodes, start)
        return self._last

    def _read(self) -> Token:
        self._previous_end = self._lexer.lexpos
        token = self._lexer.token()
        self._last = token
        self._before = Place(len(self.scopes), self._braces, self._count, self._in_parentheses, self._in_value)
        if token is not None and not self._stopped:
            self._track(token)
        return None if self._stopped else token

    def _track(self, token: Token) -> None:
        kind = token.type
        if not self._count:
            self._cut_start = self._statement_start = self._previous_end
        elif kind in ITEM_STARTS and not (self.scopes or self._in_parentheses) and self.starts_line(token.lexpos):
            self._cut_start, self._statement_start = self._statement_start, token.lexpos
        self._count += 1
        if kind == ";":
            self._end_statement()
        elif kind == "{":
            self._open(token.lexpos)
        elif kind == "}":
            self._close()
        elif kind == ":" and self._count == 2:
            self._count = 0
        elif kind in ("(", ")"):
            self._in_parentheses = kind == "(" and not self._in_value
        elif kind == "=":
            self._in_value = True
            self._lexer.begin("init")

    def _end_statement(self) -> None:
        self._count = self._braces = 0
        self._in_parentheses = False
        if self._in_value:
            self._in_value = False
            self._lexer.begin("INITIAL")

    def _open(self, pos: int) -> None:
        is_scope = self._count == 1 if self.scopes else not self._in_value
        if len(self.scopes) + self._braces >= MAX_NESTING:
            self.error(f"braces are nested deeper than {MAX_NESTING} levels", pos, pos + 1)
            self._stopped = True
        elif is_scope:
            if not self.scopes:
                self._locations_before = len(self.module.locs)
            self.scopes.append(pos)
            self._end_statement()
        else:
            self._braces += 1

    def _close(self) -> None:
        if self._braces:
            self._braces -= 1
        elif self.scopes:
            self._last_scope = self.scopes.pop()
            if not self.scopes:
                self._function_end = self._lexer.lexpos - 1
                self._functions += 1
            self._end_statement()

    def _unread(self, token: Token) -> None:
        """Take back the last token: it will be read again."""
        depth, self._braces, self._count, self._in_parentheses, self._in_value = self._before
        if depth > len(self.scopes):
            self.scopes.append(self._last_scope)
        del self.scopes[depth:]
        self._lexer.begin("init" if self._in_value else "INITIAL")
        self._lexer.lexpos = token.lexpos
        self._last = made("", "", token.lexpos)

    def starts_line(self, pos: int) -> bool:
        before = self.text[max(0, pos - _WIDEST_INDENT) : pos].rstrip(" \t")
        return not before or before[-1] in "\r\n"

    # ------------------------------------------------------------ .loc

    def note_location(self, pos: int, text: str) -> None:
        """Called at each ``.loc``, in order; what was read already is not noted again."""
        positions = self._location_positions
        if positions and pos <= positions[-1]:
            return
        match = lexing.LOC.match(text)
        assert match
        file, line, column = map(int, match.groups()[:3])
        caller = self._locations.get(tuple(map(int, match[4].split())), 0) if match[4] else 0
        self._statement_start = pos
        if not self.scopes:
            self.extension("'.loc' stands outside of a function", pos, pos + len(".loc"))
        elif match[4] and not caller:
            self.extension(
                f"no '.loc' before gives the location {match[4]} that this is inlined at", match.start(4) + pos, pos + len(text)
            )
        positions.append(pos)
        self.module.locs.append(Loc(file, line, column, caller))
        self._locations[file, line, column] = len(self.module.locs)

    def location_at(self, pos: int) -> int:
        """The ``Instruction.loc`` of an instruction at ``pos`` of the current function."""
        index = bisect_right(self._location_positions, pos)
        return index if index > self._locations_before else 0

    # ------------------------------------------------------------ the fast path

    def learn(self, node: Instruction | Variable, start: int, end: int, context: str = "") -> None:
        """The grammar read a node: teach the fast path its skeleton (see :meth:`Scanner.learn`)."""
        if self._scanner and self._plain and not self.diagnostics.records:
            self._scanner.learn(node, start, end, context)
        self._plain = True

    # ------------------------------------------------------------ errors

    def error(self, message: str, pos: int, end: int = -1, notes: tuple[str, ...] = ()) -> None:
        """Report a syntax error, unless it follows from one in the same statement and line."""
        statement = FIRST_WORD.match(self.text, self._statement_start)
        if statement and statement[1] in messages.FOREIGN and statement.start(1) <= pos:
            word = statement[1]
            message, notes = f"'{word}' is a word of C, not of PTX", (messages.FOREIGN[word],)
            pos, end = statement.span(1)
        if self._follows(pos):
            self._followers += 1
        elif not self._stopped:
            self._followers = 0
            self.diagnostics.error(message, pos, end, notes)
            self._damaged(pos)
            self._last_error = pos
            self._errors += 1
            self._enough = self.diagnostics.full
            self._stopped = self._errors >= _MOST_ERRORS

    def _follows(self, pos: int) -> bool:
        """Whether an error in the statement and line of ``pos`` has been reported."""
        last = self._last_error
        first, second = min(last, pos), max(last, pos)
        return last == pos or (self._statement_start <= last and "\n" not in self.text[first:second])

    def _end_here(self) -> None:
        """Enough errors: the functions end here, so that what precedes can be checked."""
        pos = self._lexer.lexpos
        self._stopped = True
        self._lose(self._statement_start, len(self.text))
        self.diagnostics.damage.unbalanced.append(pos)
        self._pending.extend(made("}", "}", pos) for _ in self.scopes)
        self.scopes.clear()

    def _lose(self, start: int, end: int) -> None:
        """Note what was not read, and which names it may have declared: all of a declaration, the label of a statement."""
        damage = self.diagnostics.damage
        damage.spans.append((start, end))
        first = FIRST_WORD.match(self.text, start, end)
        if first and (first[0].lstrip()[0] == "." or first[1] in DIRECTIVES):
            damage.lose(self.text[start:end])
        elif first:
            damage.lose(first[1])

    def _damaged(self, pos: int) -> None:
        """What else is wrong in this statement may follow from the error at ``pos``."""
        start = min(self._statement_start, pos)
        end = _STATEMENT_END.search(self.text, pos)
        assert end
        damage = self.diagnostics.damage
        damage.spans.append((start, end.start()))
        if first := FIRST_WORD.match(self.text, start, pos):
            damage.lose(first[1])

    def line_ended(self, wanted: str, pos: int) -> tuple[str, ...]:
        """A note on the line that what is missing at ``pos`` should have ended."""
        end = len(self.text[:pos].rstrip()) if self.starts_line(pos) else pos
        if not wanted.startswith("'") or end == pos:
            return ()
        line, column = self.diagnostics.source.line_column(end)
        return (f"{wanted} may be missing at the end of line {line}, column {column}",)

    def seen(self, pos: int, end: int) -> tuple[int, int]:
        """Where the parser finds a fault in ``pos`` to ``end`` that another token might have mended: at the next one.

        That counts only if it is on a later line.
        """
        following = after_blanks(self.text, end)
        same = self.diagnostics.source.line(following) == self.diagnostics.source.line(pos)
        return (pos, end) if same else (following, following + 1)

    def extension(self, message: str, pos: int, end: int = -1) -> None:
        """What ptxas does not read: an error in strict mode. The statement is not learnt, so that each is seen."""
        self._plain = False
        if self.diagnostics.strict:
            self.error(message, pos, end)

    def _reject_other_alphabets(self, source: str) -> None:
        """The first character outside of ASCII, if it is in a comment or string: elsewhere the lexer reports it."""
        first = next(index for index, char in enumerate(source) if not char.isascii())
        line = self.text[self.text.rfind("\n", 0, first) + 1 : first]
        if self.text[first] == " " or line.count('"') % 2:
            self.diagnostics.error("PTX is written in ASCII", first, first + 1)

    def _reject_preprocessor_lines(self, source: str) -> None:
        """Line markers (``# 1 "a.cu"``) are part of PTX; other lines for a preprocessor are not."""
        for match in _PREPROCESSOR.finditer(source):
            if self.text[match.end() - 1] == " ":  # blank: not in a string
                self.diagnostics.error("preprocessor lines are not part of PTX", match.end() - 1, match.end())

    def bad_text(self, pos: int) -> None:
        """Called by the lexer at a character that starts no token; skips the offending text."""
        text = self.text
        if not self._count:
            self._statement_start = self._previous_end
        if text[pos] == '"':
            end = text.find("\n", pos)
            self.error("unterminated string", pos, pos + 1)
            self._lexer.lexpos = len(text) if end < 0 else end
        else:
            match = _BAD_RUN.match(text, pos)
            self.error(f"unexpected character {text[pos]!r}", pos, pos + 1)
            self._lexer.lexpos = match.end() if match else pos + 1

    def unterminated_comment(self, pos: int) -> None:
        self.error("unterminated comment", pos, pos + 2)
        self._stopped = True


def made(kind: str, value: object, pos: int) -> Token:
    token = lex.LexToken()
    token.type, token.value, token.lexpos, token.lineno = kind, value, pos, 0
    return token
