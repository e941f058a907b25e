"""The fast path: finds statements whose skeleton has a template, without lexing or parsing them.

A *leaf* is a word or number.  ``re.split`` cuts a window of the text into leaves and what lies between them;
``str.join`` then replaces each leaf by its kind, and ``str.split(";")`` gives the skeletons of
its statements: all at C speed.  A skeleton that has a template costs one dictionary look-up; any other goes to the
grammar, and is learnt from what the grammar makes of it once it has come up often enough to pay.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from ptxemu.isa import rows
from ptxemu.syntax.ast import Instruction, Label, Statement, Variable
from ptxemu.syntax.lexer import DIRECTIVE, IDENTIFIER, LOC
from ptxemu.syntax.literals import DECIMAL_FLOAT, EXACT_FLOAT, INTEGER, is_representable
from ptxemu.syntax.templates import Builder, Leaves, compile_template

if TYPE_CHECKING:
    from ptxemu.syntax.tokens import Tokens

WINDOW = 1 << 16
"""Characters that are cut at once: bounds the memory of the fast path."""

LONGEST_STATEMENT = 4096
"""Longer ones are left to the grammar: a skeleton is made anew for each of the labels before a statement."""

LEARN_AFTER = 3
"""A template takes as long to make as a few statements take to parse."""

PARAMETER = "("
"""Before the skeleton of a parameter, whose syntax is not that of a statement."""

MAX_SKELETONS = 8192
"""Bounds the skeletons that a process remembers."""

_LEAF = re.compile(r"([%.\w$][\w$.]*(?:::[\w.]+)*)", re.ASCII)
_NAME = re.compile(IDENTIFIER, re.ASCII)
_MEMBER = re.compile(r"%[A-Za-z0-9_$]+\.[xyzwrgba]", re.ASCII)
_OPCODE = re.compile(r"(?!call\.)[A-Za-z][A-Za-z0-9_$]*(?:\.\w+(?:::\w+)*)+", re.ASCII)  # call has operands of its own
_COMMA = re.compile(r"[ \t\r\n]*,")
_PARAMETER = re.compile(r"[^,();{]*[^,();{\s](?=\s*[,)])", re.ASCII)
_BLANKS = " \t\r\n"
_LABEL = re.compile(r"\x01[ \t]*:(?!:|\s*\.(?:branchtargets|calltargets|callprototype))")

NAME, INT, UNSIGNED, FLOAT32, FLOAT64, DECIMAL, MEMBER, OPCODE = _KINDS = "\x01\x02\x03\x04\x05\x06\x07\x08"
_LONGEST_INT = 17  # beyond, a literal may not fit .s64, where a sign means something else

_templates: dict[str, tuple[Builder, int]] = {}
_sightings: dict[str, int] = {}


class _KindOf(dict[str, str]):
    """Leaf text -> what stands for it in a skeleton: its kind, or the text itself where it matters."""

    def __missing__(self, text: str) -> str:
        kind = self[text] = _kind(text)
        return kind


def _kind(text: str) -> str:
    if not text[0].isdigit():
        if _NAME.fullmatch(text):
            return text if rows().is_bare(text) or text == "WARP_SZ" else NAME
        is_opcode = _OPCODE.fullmatch(text) and not DIRECTIVE.search(text)
        return MEMBER if _MEMBER.fullmatch(text) else OPCODE if is_opcode else text
    integer = INTEGER.fullmatch(text)
    if integer:
        return text if len(text) > _LONGEST_INT else UNSIGNED if integer[1] else INT
    if EXACT_FLOAT.fullmatch(text):
        return FLOAT32 if text[1] in "fF" else FLOAT64
    return DECIMAL if DECIMAL_FLOAT.fullmatch(text) and is_representable(text) else text


class _Window:
    """A stretch of whole statements, cut into leaves."""

    def __init__(self, text: str, start: int, kinds: _KindOf) -> None:
        stop = text.rfind(";", start, start + WINDOW) + 1
        if not stop:
            stop = text.find(";", start + WINDOW) + 1 or len(text)
        cut = text[start:stop]
        pieces = _LEAF.split(cut)
        edges = list(accumulate(map(len, pieces), initial=start))
        self.start, self.stop = start, stop
        self.texts: list[str] = pieces[1::2]
        self.starts = edges[1:-1:2]
        self.ends = edges[2::2]
        lengths = [len(statement) + 1 for statement in cut.split(";")]
        self.statement_ends = list(accumulate(lengths[:-1], initial=start))[1:]
        pieces[1::2] = map(kinds.__getitem__, self.texts)
        self.pieces = pieces
        self.skeletons = [skeleton.lstrip(_BLANKS) for skeleton in "".join(pieces).split(";")]

    def rest(self, statement: int, pos: int) -> str:
        """The skeleton of what ``statement`` has left at ``pos``; empty past the last whole one and if it is very long."""
        if statement >= len(self.statement_ends) or self.statement_ends[statement] - pos > LONGEST_STATEMENT:
            return ""
        before = self.statement_ends[statement - 1] if statement else self.start
        return self.skeletons[statement] if pos == before else self.skeleton(pos, self.statement_ends[statement] - 1)

    def skeleton(self, start: int, end: int) -> str:
        """The skeleton of the text from ``start`` to ``end``, neither of which lies in a leaf."""
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        head = self.pieces[2 * first]
        head_end = self.starts[first] if first < len(self.starts) else self.stop
        head = head[len(head) - (head_end - start) :]
        if first == last:
            return head[: end - start].lstrip(_BLANKS)
        tail = self.pieces[2 * last][: end - self.ends[last - 1]]
        return "".join((head, *self.pieces[2 * first + 1 : 2 * last], tail)).lstrip(_BLANKS)

    def leaves(self, source: str, start: int, end: int) -> Leaves:
        first, last = bisect_left(self.starts, start), bisect_left(self.starts, end)
        kinds = self.pieces[2 * first + 1 : 2 * last : 2]
        free = {index for index, kind in enumerate(kinds) if kind in _KINDS}
        opcodes = {index for index, kind in enumerate(kinds) if kind == OPCODE}
        return Leaves(source, self.texts[first:last], self.starts[first:last], self.ends[first:last], free, opcodes)


class Scanner:
    """Recognises known statements in one (blanked) text."""

    def __init__(self, text: str, stream: Tokens) -> None:
        self._text = text
        self._stream = stream
        self._kinds = _KindOf()
        self._window: _Window | None = None
        self._usable = not any(kind in text for kind in _KINDS)

    def run(self, pos: int) -> tuple[list[Statement], int]:
        """The statements from ``pos``, a statement start, up to the first unknown one; and where they end."""
        window = self._window_at(pos)
        nodes: list[Statement] = []
        if window is None:
            return nodes, pos
        texts, starts, ends = window.texts, window.starts, window.ends
        stops, find = window.statement_ends, _templates.get
        statement, first = bisect_right(stops, pos), bisect_left(starts, pos)
        loc = self._stream.location_at(pos)
        skeleton = window.rest(statement, pos)
        while skeleton:
            template = find(skeleton)
            if template is not None:
                build, count = template
                nodes.append(build(texts, starts, ends, first, loc))
                first += count
                pos = stops[statement]
                statement += 1
                skeleton = window.skeletons[statement]
                continue
            if _LABEL.match(skeleton):
                nodes.append(Label(texts[first], starts[first], ends[first]))
                pos = self._text.index(":", ends[first]) + 1
            elif skeleton.startswith(".loc") and (match := LOC.match(self._text, starts[first])):
                pos = match.end()
                self._stream.note_location(match.start(), match[0])
                loc = self._stream.location_at(pos)
            else:
                break
            first = bisect_left(starts, pos, first)
            skeleton = window.rest(statement, pos)
        return nodes, pos

    def parameters(self, pos: int) -> tuple[list[Statement], int]:
        """As :meth:`run` for the parameters of a function, ``pos`` being after a ``(`` or ``,``."""
        nodes: list[Statement] = []
        window, end = self._window_at(pos), pos
        while window and (match := _PARAMETER.match(self._text, pos)) and match.end() < window.stop:
            template = _templates.get(PARAMETER + window.skeleton(pos, match.end()))
            if template is None:
                break
            first = bisect_left(window.starts, pos)
            nodes.append(template[0](window.texts, window.starts, window.ends, first, 0))
            end = match.end()
            comma = _COMMA.match(self._text, end)
            if comma is None:
                break
            pos = comma.end()
        return nodes, end

    def learn(self, node: Instruction | Variable, start: int, end: int, context: str = "") -> None:
        """Remember the skeleton of ``node``, whose text is from ``start`` to ``end``, if it is common.

        ``end`` is where the ``;`` of a statement is; ``context`` is :data:`PARAMETER` for a parameter.
        """
        window = self._window
        if window is None or not window.start <= start < end < window.stop:
            return
        skeleton = context + window.skeleton(start, end)
        if len(_sightings) >= MAX_SKELETONS and skeleton not in _sightings:
            return
        seen = _sightings[skeleton] = _sightings.get(skeleton, 0) + 1
        if seen == LEARN_AFTER:
            leaves = window.leaves(self._text, start, end)
            build = compile_template(node, leaves)
            if build is not None:
                _templates[skeleton] = build, len(leaves.texts)

    def _window_at(self, pos: int) -> _Window | None:
        window = self._window
        if window is None or not window.start <= pos < window.stop:
            self._window = window = _Window(self._text, pos, self._kinds) if self._usable else None
        return window
