"""Which parts of a text its syntax errors made unreadable."""

from __future__ import annotations

import re
from bisect import bisect_right

from msgspec import Struct

_WORD = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)
_NAMELESS = re.compile(r"\s*[^\w\s$%:]*(?:\.\w+)?:", re.ASCII)
_DIGITS = "0123456789"


class Damage(Struct):
    """The unreadable parts of a source, so that errors that follow from them are not reported."""

    spans: list[tuple[int, int]] = []
    names: set[str] = set()
    """What may have been declared there."""
    unbalanced: list[int] = []
    """Where braces do not match: what belongs to which function there is a guess."""
    _sealed: bool = False
    _known: dict[tuple[int, int], tuple[bool, frozenset[str]]] = {}

    def __bool__(self) -> bool:
        return bool(self.spans or self.unbalanced)

    def lose(self, text: str) -> None:
        """Note the words of a text that was not read."""
        self.names.update(_WORD.findall(text))

    def seal(self) -> None:
        """Make the spans ready for :meth:`holds`: sorted, without overlaps."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(self.spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        self.spans = merged
        self._sealed = True

    def holds(self, pos: int) -> bool:
        """Whether a position lies in a part that was not read; False before :meth:`seal`."""
        if not self._sealed:
            return False
        at = bisect_right(self.spans, (pos, 1 << 62)) - 1
        return at >= 0 and pos < self.spans[at][1]

    def hides(self, name: str) -> bool:
        """Whether a name may have been declared in what was not read: itself, or as ``%r<n>`` if it is ``%r1``."""
        return name in self.names or name.partition(".")[0].rstrip(_DIGITS) in self.names

    def labels(self, name: str, text: str, start: int, end: int) -> bool:
        """Whether a part of ``text`` from ``start`` to ``end`` that was not read may hold a label."""
        spans = ((max(pos, start), min(stop, end)) for pos, stop in self.spans if pos < end and stop > start)
        return any(nameless or name in words for nameless, words in (self._words(text, span) for span in spans))

    def _words(self, text: str, span: tuple[int, int]) -> tuple[bool, frozenset[str]]:
        """Whether a part begins with a label that is not a name, and its words."""
        if span not in self._known:
            part = text[slice(*span)]
            self._known[span] = _NAMELESS.match(part) is not None, frozenset(_WORD.findall(part))
        return self._known[span]

    def unbalances(self, start: int, end: int) -> bool:
        return any(start <= pos <= end for pos in self.unbalanced)
