"""The tokens that the grammar reads, and everything about them that a context-free grammar cannot know.

The stream tracks scopes (for the fast path, for missing braces and to bound nesting), keeps the ``.loc`` in force,
words the errors and finds the place where parsing resumes after one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from typing import Any

from ply import lex, yacc

from ptxemu.errors import Diagnostics
from ptxemu.source import SourceFile
from ptxemu.syntax import lexer as lexing
from ptxemu.syntax import messages
from ptxemu.syntax.ast import Instruction, Module, Variable
from ptxemu.syntax.declarations import Header
from ptxemu.syntax.scanner import Scanner
from ptxemu.syntax.trivia import blank
from ptxemu.syntax.words import ITEM_STARTS, MODULE_ONLY

MAX_NESTING = 256
"""Deepest nesting of braces; later stages may recurse on it."""

_BAD_RUN = re.compile(r"(?:[^\sA-Za-z0-9_$%.;:,{}\[\]()<>+\-*/!~|&^=@?\"]|\.(?!\w)|\$(?![\w$]))+", re.ASCII)
_MOST_ERRORS = 100  # with those that repeat one on the same line, which are reported once
_READY_MADE = ("RUN", "PARAMETERS", "INTEGERS")
_WIDEST_INDENT = 256
_PREPROCESSOR = re.compile(r"^[ \t]*#(?!\s*[0-9])", re.MULTILINE | re.ASCII)
_NOT_FIRST_AT_MODULE_SCOPE = (".param", ".reg")

Token = Any  # ply.lex.LexToken, which is untyped


class TokenStream:
    """The lexer of one parse: PLY's ``token()`` protocol over a source text."""

    def __init__(self, source: SourceFile, diagnostics: Diagnostics, fast: bool) -> None:
        self.diagnostics = diagnostics
        self.module = Module()
        self.header = Header(self, self.module)
        self.text = blank(source.text)
        self.scopes: list[int] = []
        self.numbered_targets = 0
        self._lexer = lexing.prototype().clone()
        self._lexer.stream = self
        self._lexer.input(self.text)
        self._scanner = Scanner(self.text, self) if fast else None
        self._pending: deque[Token] = deque()
        self._location_positions: list[int] = []
        self._locations: set[tuple[int, ...]] = set()
        self._locations_before = 0  # how many .loc precede the function that is being read
        self._count = 0  # tokens of the statement so far
        self._braces = 0  # braces open inside the statement: vectors, initialisers
        self._in_parentheses = False
        self._in_value = False  # after the '=' of an initialiser
        self._previous_end = 0
        self._last: Token = None
        self._last_depth = 0  # scopes open before the last token
        self._last_scope = 0  # the scope that the last token closed
        self._errors = 0
        self._stopped = False
        self._plain = True  # the statement so far is one that ptxas reads too
        if diagnostics.strict and "#" in source.text:
            self._reject_preprocessor_lines(source.text)

    # ------------------------------------------------------------ tokens

    def token(self) -> Token:
        """The next token, or None at the end."""
        if self._pending:
            return self._pending.popleft()
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
        self._last = _token(kind, nodes, start)
        return self._last

    def _read(self) -> Token:
        self._previous_end = self._lexer.lexpos
        token = self._lexer.token()
        self._last = token
        self._last_depth = len(self.scopes)
        if token is not None and not self._stopped:
            self._track(token)
        return None if self._stopped else token

    def _track(self, token: Token) -> None:
        kind = token.type
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
            self._end_statement()

    # ------------------------------------------------------------ .loc

    def note_location(self, pos: int, text: str) -> None:
        """Called at each ``.loc``, in order; what was read already is not noted again."""
        positions = self._location_positions
        if positions and pos <= positions[-1]:
            return
        match = lexing.LOC.match(text)
        assert match
        file, line, column = map(int, match.groups()[:3])
        if not self.scopes:
            self.extension("'.loc' stands outside of a function", pos, pos + len(".loc"))
        elif match[4] and tuple(map(int, match[4].split())) not in self._locations:
            self.extension(
                f"no '.loc' before gives the location {match[4]} that this is inlined at", match.start(4) + pos, pos + len(text)
            )
        positions.append(pos)
        self.module.locs.append((file, line, column))
        self._locations.add((file, line, column))

    def location_at(self, pos: int) -> int:
        """The ``Instruction.loc`` of an instruction at ``pos`` of the current function."""
        index = bisect_right(self._location_positions, pos)
        return index if index > self._locations_before else 0

    # ------------------------------------------------------------ the fast path

    def learn(self, node: Instruction | Variable, start: int, end: int, context: str = "") -> None:
        """The grammar read a node: teach the fast path its shape (see :meth:`Scanner.learn`)."""
        if self._scanner and self._plain and not self.diagnostics.records:
            self._scanner.learn(node, start, end, context)
        self._plain = True

    # ------------------------------------------------------------ errors

    def error(self, message: str, pos: int, end: int = -1, notes: tuple[str, ...] = ()) -> None:
        if not self._stopped:
            self.diagnostics.error(message, pos, end, notes)
            self._errors += 1
            self._stopped = self.diagnostics.full or self._errors >= _MOST_ERRORS

    def extension(self, message: str, pos: int, end: int = -1) -> None:
        """What ptxas does not read: an error in strict mode. The statement is not learnt, so that each is seen."""
        self._plain = False
        if self.diagnostics.strict:
            self.error(message, pos, end)

    def _reject_preprocessor_lines(self, source: str) -> None:
        """Line markers (``# 1 "a.cu"``) are part of PTX; other lines for a preprocessor are not."""
        for match in _PREPROCESSOR.finditer(source):
            if self.text[match.end() - 1] == " ":  # blank: not in a string
                self.error("preprocessor lines are not part of PTX", match.end() - 1, match.end())

    def bad_text(self, pos: int) -> None:
        """Called by the lexer at a character that starts no token; skips the offending text."""
        text = self.text
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

    def syntax_error(self, token: Token, parser: yacc.LRParser) -> Token:
        """PLY's ``p_error``: report, then queue what lets the parser go on."""
        if self._stopped:
            return None
        if token is not None and token.type in _READY_MADE:  # report the first token that it stands for
            self._lexer.begin("INITIAL")
            self._lexer.lexpos = token.lexpos
            token = self._read()
        expected = messages.acceptable(parser)
        if token is None:
            self._report_end(expected)
            return self._close_all(parser) if "}" in expected else None
        self._report(token, expected)
        if not self._stopped:
            self._resume(token, ";" in expected and "INTEGER" not in expected)
        return None

    def _report_end(self, expected: set[str]) -> None:
        end = len(self.text)
        if not self.scopes:
            self.error(f"expected {messages.expectation(expected)} before the end of the file", end)
            return
        self.error("expected '}' before the end of the file", end, notes=self._opened())

    def _close_all(self, parser: yacc.LRParser) -> Token:
        """At the end of the text: the first of the missing braces, the others queued."""
        closing = [_token("}", "}", len(self.text)) for _ in self.scopes]
        self.scopes.clear()
        if not closing:
            return None
        self._pending.extend(closing[1:])
        parser.errok()
        return closing[0]

    def _opened(self) -> tuple[str, ...]:
        """A note on the brace that is still open."""
        line, column = self.diagnostics.source.line_column(self.scopes[-1])
        return (f"the '{{' to match is on line {line}, column {column}",)

    def _report(self, token: Token, expected: set[str]) -> None:
        text = str(token.value)
        pos, end = token.lexpos, token.lexpos + len(text)
        if token.type in MODULE_ONLY and self.scopes:
            self.error(f"expected '}}' before '{text}'", pos, end, self._opened())
            return
        notes: tuple[str, ...] = ()
        message = messages.unknown_word(text, expected) if token.type == "MODIFIER" else None
        if message is None and token.type == "}" and not self._last_depth and "ADDRESS_SIZE" in expected:
            message = "unmatched '}'"
        if message is None:
            wanted = messages.expectation(expected)
            message = f"expected {wanted} before {_shown(text)}"
            notes = self._line_ended(wanted, pos)
        self.error(message, pos, end, notes)

    def _line_ended(self, wanted: str, pos: int) -> tuple[str, ...]:
        """A note on the line that what is missing at ``pos`` should have ended."""
        if not wanted.startswith("'") or "\n" not in self.text[self._previous_end : pos]:
            return ()
        line, column = self.diagnostics.source.line_column(self._previous_end)
        return (f"{wanted} may be missing at the end of line {line}, column {column}",)

    # ------------------------------------------------------------ recovery

    def _resume(self, token: Token, at_end: bool) -> None:
        """Skip to a place where a statement or an item can start; then say RESYNC.

        ``at_end``: the statement was complete but for its ``;``, so what starts the next line is the next statement.
        """
        depth, first = self._last_depth, True
        skipped = token.type == "{" and self._braces and self._skip_braces()
        while token is not None and not (skipped or self._stopped):
            if self._must_reread(token, depth, first, at_end):
                self._reread(token)
                break
            if len(self.scopes) == depth and not self._count and token.type in (";", "}"):
                break
            token, first = self._read(), False
        self._end_statement()
        self._pending.append(_token("RESYNC", "", self._lexer.lexpos))
        if token is not None and token.type in MODULE_ONLY and self.scopes:
            self._pending.extend(_token("}", "}", self._lexer.lexpos) for _ in self.scopes)
            self.scopes.clear()

    def _must_reread(self, token: Token, depth: int, first: bool, at_end: bool) -> bool:
        """Whether ``token`` starts (or ends) what the parser shall read next."""
        if token.type == "}":
            return len(self.scopes) < depth
        if token.type in MODULE_ONLY and depth:
            return True
        if len(self.scopes) != depth or (first and self._count == 1):
            return False
        resumable = first and at_end
        if token.type in ITEM_STARTS:
            resumable = bool(depth) or token.value not in _NOT_FIRST_AT_MODULE_SCOPE
        return resumable and self._starts_line(token.lexpos)

    def _reread(self, token: Token) -> None:
        if token.type == "}":
            self.scopes.append(self._last_scope)
        self._lexer.lexpos = token.lexpos
        self._last = None

    def _skip_braces(self) -> bool:
        """After the ``{`` of a misplaced block: skip to its ``}``."""
        nesting = 1
        while nesting and (token := self._lexer.token()):
            nesting += (token.type == "{") - (token.type == "}")
        return True

    def _starts_line(self, pos: int) -> bool:
        before = self.text[max(0, pos - _WIDEST_INDENT) : pos].rstrip(" \t")
        return not before or before[-1] in "\r\n"


def _token(kind: str, value: object, pos: int) -> Token:
    token = lex.LexToken()
    token.type, token.value, token.lexpos, token.lineno = kind, value, pos, 0
    return token


def _shown(text: str) -> str:
    return f"'{text[:40]}...'" if len(text) > 40 else f"'{text}'"
