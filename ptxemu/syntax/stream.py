"""What happens at a syntax error: it is worded, mended by one token if that helps, else what it spoils is skipped."""

from __future__ import annotations

import re
from typing import NamedTuple

from ply import yacc

from ptxemu.syntax import messages, misplaced, repair
from ptxemu.syntax.declarations import UNNAMED, Header
from ptxemu.syntax.tokens import FIRST_WORD, MAX_NESTING, Token, Tokens, made
from ptxemu.syntax.words import DIRECTIVES, ITEM_STARTS, MODULE_ONLY
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile
from ptxemu.text.suggestions import proposing

_READY_MADE = ("RUN", "PARAMETERS", "INTEGERS")
_NOT_FIRST_AT_MODULE_SCOPE = (".param", ".reg")
_NOT_FIRST_OUTSIDE = (*_NOT_FIRST_AT_MODULE_SCOPE, ".local")
_MOST_FOLLOWERS = 5
"""Stop repairing after this many errors that follow from one."""
_MOST_VISITS = 2 * MAX_NESTING
_STRAY = (",", ")", "]")
_NEXT_PARAMETER = re.compile(r";\s*\.(?:param|reg)\b", re.ASCII)
_DECLARED = r"(?:\.func\b[^{};]*;\s*(?:\.(?:extern|visible|weak|common)\s+)?)*+"
_DEVICE_BODY = re.compile(_DECLARED + r"(?:\.func\b[^{};]*\{|\.entry\b)", re.ASCII)
_HEAD = re.compile(r"\.(entry|func)\b")


class Mending(NamedTuple):
    """A token to put before the one that the parser cannot take, or in its place; none if ``type`` is empty."""

    type: str
    text: str
    replaces: bool


class TokenStream(Tokens):
    """The tokens of one parse, and its ``p_error``."""

    def __init__(self, source: SourceFile, diagnostics: Diagnostics, fast: bool) -> None:
        super().__init__(source, diagnostics, fast)
        self.header = Header(self, self.module)
        self._outside = False  # what follows is the rest of a function that has been closed too early
        self._supposed: set[int] = set()  # braces that are not in the text
        self._visited, self._visits = -1, 0  # where the last syntax error was, and how often
        self._excused = -1  # until this many functions are read, such a rest has been reported

    def syntax_error(self, token: Token, parser: yacc.LRParser) -> Token:
        """Report; then give the token that mends the text, or queue what lets the parser go on."""
        if self._stopped:
            return None
        if token is not None and token.type in _READY_MADE:  # report the first token that it stands for
            self._lexer.begin("INITIAL")
            self._lexer.lexpos = token.lexpos
            token = self._read()
        if token is not None and self._is_stuck(token.lexpos):
            self._end_here()
            return None
        expected = repair.acceptable(parser)
        if token is None:
            self._report_end(expected)
            return self._close_all(parser) if "}" in expected else None
        at_item = "ADDRESS_SIZE" in expected
        if at_item and repair.is_code(token.type, str(token.value)):
            self._skip_outside(token, expected)
            return None
        if at_item and token.type == "}" and self._outside:
            self._outside = False
            self._pending.append(made("RESYNC", "", self._lexer.lexpos))
            return None
        mending = None if token.type in MODULE_ONLY and self.scopes else self._mending(token, parser, expected)
        self._report(token, expected, mending)
        if token.type == "}" and not self.starts_line(token.lexpos):
            self.diagnostics.damage.unbalanced.append(token.lexpos)  # it may not be meant to close anything
        if self._enough:
            self._pending.append(made("RESYNC", "", token.lexpos))
            self._end_here()
        if self._stopped:
            return None
        if self._foreign(token.lexpos):
            return None
        mended = mending and self._followers < _MOST_FOLLOWERS and self._mend(token, mending, parser)
        if mended:
            parser.errok()
            return mended
        self._resume(token)
        return None

    # ------------------------------------------------------------ wording

    def _report_end(self, expected: set[str]) -> None:
        end = len(self.text)
        if not self._count:
            self._statement_start = self._previous_end
        if not self.scopes:
            self.error(f"expected {messages.expectation(expected)} before the end of the file", end)
            return
        if self.scopes[-1] not in self._supposed:
            self.error("expected '}' before the end of the file", end, notes=self._opened())
        self.diagnostics.damage.unbalanced.append(end)

    def _close_all(self, parser: yacc.LRParser) -> Token:
        """At the end of the text: the first of the missing braces, the others queued."""
        closing = [made("}", "}", len(self.text)) for _ in self.scopes]
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

    def _report(self, token: Token, expected: set[str], mending: Mending | None) -> None:
        text = str(token.value)
        pos, end = token.lexpos, token.lexpos + len(text)
        if token.type in MODULE_ONLY and self.scopes:
            if self.scopes[-1] not in self._supposed:
                body = _DEVICE_BODY.match(self.text, pos) if self.diagnostics.strict else None
                if body:  # a function may be declared in another
                    pos, end = body.end() - 1, body.end()
                self.error(f"expected '}}' before '{text}'", pos, end, self._opened())
            return
        earlier = misplaced.fault_before(self.text, self._previous_end, self.module, expected, self.diagnostics.strict)
        if earlier is not None:
            self.error(*earlier)
            return
        if stop := misplaced.unfinished(self.text, pos, expected):
            pos, end = self.seen(pos, stop)
        message = messages.unknown_word(text, expected) if token.type == "MODIFIER" else None
        if message is None and token.type == "}" and not self._before.depth and "ADDRESS_SIZE" in expected:
            message = "unmatched '}'"
        notes = messages.advice(token.type, expected)
        if message is None:
            wanted = messages.expectation(expected, self.starts_line(pos))
            message = f"expected {wanted} before {messages.shown(text)}"
            notes = notes or self.line_ended(wanted, pos)
        if mending and len(mending.text) > 1:
            message += proposing(mending.text)
        self.error(message, pos, end, notes)

    # ------------------------------------------------------------ mending

    def _mending(self, token: Token, parser: yacc.LRParser, expected: set[str]) -> Mending | None:
        """What makes sense of the text."""
        text = str(token.value)
        word = repair.meant(token.type, text, expected)
        if word is not None and repair.shifts(parser, DIRECTIVES[word[1:]]):
            return Mending(DIRECTIVES[word[1:]], word, replaces=True)
        if self._before.in_parentheses and _NEXT_PARAMETER.match(self.text, token.lexpos) and repair.shifts(parser, ","):
            return Mending(",", ",", replaces=True)
        before = repair.missing(parser, token.type, text, self.starts_line(token.lexpos))
        if before is not None:
            return Mending(before, before, replaces=False)
        between = bool(expected & {"RUN", "ADDRESS_SIZE"})
        stray = token.type in _STRAY or (between and token.type == ";") or ("ADDRESS_SIZE" in expected and token.type == "{")
        return Mending("", "", replaces=True) if stray else None

    def _mend(self, token: Token, mending: Mending, parser: yacc.LRParser) -> Token:
        """The token that the parser takes next, or None if it cannot."""
        if mending.type and mending.replaces:
            self._last = made(mending.type, mending.text, token.lexpos)
            self._in_parentheses = self._before.in_parentheses
            return self._last
        if mending.type == ";" and self.diagnostics.strict:  # ptxas would not have understood the statement before
            self.diagnostics.damage.spans.append((self._cut_start, token.lexpos))
        if mending.type:
            self._unread(token)
            self._last = inserted = made(mending.type, mending.text, token.lexpos)
            self._track(inserted)
            if mending.type == "{":
                self._supposed.add(token.lexpos)
            return inserted
        if token.type == "{":
            self._outside = True
            self.scopes.clear()
        self._count = self._before.position  # as if the stray token were not there
        following = self._read()
        if following is None or repair.shifts(parser, following.type):
            return following
        self._unread(following)
        return None

    # ------------------------------------------------------------ going on

    def _is_stuck(self, pos: int) -> bool:
        """Whether recovery comes back to one place again and again: what is open here and in the parser may differ by then."""
        self._visits = self._visits + 1 if pos == self._visited else 0
        self._visited = pos
        return self._visits > _MOST_VISITS

    def _resume(self, token: Token) -> None:
        """Skip to a place where a statement or an item can start; then say RESYNC."""
        start, depth, first = self._statement_start, self._before.depth, True
        skipped = token.type == "{" and self._braces and self._skip_braces()
        queue = [made("RESYNC", "", token.lexpos)]
        while token is not None and not (skipped or self._stopped):
            if not (depth or self._before.depth) and token.type == "{" and (head := _HEAD.search(self.text, start, token.lexpos)):
                self._unread(token)
                queue += [made(head[1].upper(), head[0], head.start()), made("NAME", UNNAMED, head.end())]
                break
            if self._must_reread(token, depth, first):
                self._unread(token)
                if not depth:
                    self.scopes.clear()
                break
            if len(self.scopes) == depth and not self._count and token.type in (";", "}"):
                break
            token, first = self._read(), False
        self._end_statement()
        self._lose(start, self._lexer.lexpos)
        self._pending.extend(queue)
        if token is not None and token.type in MODULE_ONLY and self.scopes:
            self.diagnostics.damage.unbalanced.append(token.lexpos)
            self._pending.extend(made("}", "}", self._lexer.lexpos) for _ in self.scopes)
            self.scopes.clear()
            self._excused = self._functions + 1

    def _foreign(self, pos: int) -> bool:
        """Skip a line of C; a block that it opens is one of PTX too."""
        word = FIRST_WORD.match(self.text, self._statement_start)
        if word is None or word[1] not in messages.FOREIGN:
            return False
        end = self.text.find("\n", pos)
        end = len(self.text) if end < 0 else end
        line = self.text[self._statement_start : end].rstrip()
        if line.endswith("{") and self._before.depth:
            end = self._statement_start + len(line) - 1
        del self.scopes[self._before.depth :]
        self._end_statement()
        self._lexer.lexpos = end
        self._lose(self._statement_start, end)
        self._pending.append(made("RESYNC", "", end))
        return True

    def _skip_outside(self, token: Token, expected: set[str]) -> None:
        """Skip statements outside of a function: up to the brace that shall end them, or to what may stand there."""
        start, first = self._statement_start, True
        excused = self._outside or 0 <= self._excused - self._functions <= 1
        if not excused:
            end = self._function_end
            line, column = self.diagnostics.source.line_column(end or 0)
            notes = () if end is None else (f"the function before ends on line {line}, column {column}",)
            text = str(token.value)
            message = f"expected {messages.expectation(expected)} before {messages.shown(text)}"
            self.error(message, token.lexpos, token.lexpos + len(text), notes)
        self._outside = True
        while token is not None and not self._stopped:
            if not self.scopes and token.type == "}":
                self._outside = False
                break
            if not (self.scopes or first) and token.type in ITEM_STARTS and token.value not in _NOT_FIRST_OUTSIDE:
                self._unread(token)
                break
            token, first = self._read(), False
        self._end_statement()
        self._lose(start, self._lexer.lexpos)
        self._pending.append(made("RESYNC", "", self._lexer.lexpos))

    def _must_reread(self, token: Token, depth: int, first: bool) -> bool:
        """Whether ``token`` starts (or ends) what the parser shall read next."""
        if token.type == "}":
            return len(self.scopes) < depth
        if token.type in MODULE_ONLY and (depth or (self.scopes and self.starts_line(token.lexpos))):
            return True
        if len(self.scopes) != depth or (first and self._count == 1):
            return False
        if token.type in ITEM_STARTS:
            resumable = bool(depth) or token.value not in _NOT_FIRST_AT_MODULE_SCOPE
        else:
            resumable = bool(depth) and not first and repair.is_opcode(token.type, str(token.value))
        return resumable and self.starts_line(token.lexpos)

    def _skip_braces(self) -> bool:
        """After the ``{`` of a misplaced block: skip to its ``}``."""
        nesting = 1
        while nesting and (token := self._lexer.token()):
            nesting += (token.type == "{") - (token.type == "}")
        return True
