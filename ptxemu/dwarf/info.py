"""What the debug data of a text say of its functions: their variables, and which of them there are at an instruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ptxemu.dwarf.entries import Entry, entries_of
from ptxemu.dwarf.locations import Frame, Location, in_ranges, listed, locate, within
from ptxemu.dwarf.names import At, Tag
from ptxemu.dwarf.sections import Sections, sections_of
from ptxemu.dwarf.stream import DwarfError

VARIABLES = (Tag.FORMAL_PARAMETER, Tag.VARIABLE)
BLOCKS = (Tag.LEXICAL_BLOCK, Tag.INLINED_SUBROUTINE)
OUTER = frozenset({Tag.NAMESPACE})
LONGEST_CHAIN = 16  # of entries that refer to one another
Labels = Mapping[str, int]
"""The labels of a function, with the instructions behind them by their numbers in it."""


class DebugInfo:
    """That of one text; empty if it has none."""

    def __init__(self, text: str) -> None:
        self.sections: Sections = sections_of(text)
        self.entries = entries_of(self.sections)
        self._functions = {name: entry for entry in self.entries.values() if (name := self._begin(entry))}

    def _begin(self, entry: Entry) -> str:
        """The label that a function begins with."""
        named = self.sections.symbol(entry.number(At.LOW_PC) or 0) if entry.tag == Tag.SUBPROGRAM else None
        return named[0] if named is not None else ""

    def function(self, labels: Labels) -> Entry | None:
        return next((self._functions[name] for name in labels if name in self._functions), None)

    def get(self, entry: Entry, attribute: At) -> Any:
        """An attribute of an entry, or of that which it is an instance of."""
        for _ in range(LONGEST_CHAIN):
            if attribute in entry.attributes:
                return entry.attributes[attribute]
            origin = entry.number(At.ABSTRACT_ORIGIN) or entry.number(At.SPECIFICATION)
            if origin is None or origin not in self.entries:
                return None
            entry = self.entries[origin]
        return None

    def name(self, entry: Entry) -> str:
        found = self.get(entry, At.NAME)
        return found if isinstance(found, str) else ""

    def type(self, entry: Entry) -> Entry | None:
        """The entry of its type; None stands for void."""
        found = self.get(entry, At.TYPE)
        return self.entries.get(found) if isinstance(found, int) else None

    def visible(self, labels: Labels, pc: int) -> Iterator[Entry]:
        """The variables of a function's blocks that an instruction is in, the innermost first; then its parameters."""
        function = self.function(labels)
        if function is None:
            return
        scopes = [function]
        while inner := next(
            (child for child in scopes[-1].children if child.tag in BLOCKS and self._has(child, labels, pc)), None
        ):
            scopes.append(inner)
        for scope in reversed(scopes):
            yield from (child for child in scope.children if child.tag == Tag.VARIABLE)
            yield from (child for child in scope.children if child.tag == Tag.FORMAL_PARAMETER)

    def _has(self, block: Entry, labels: Labels, pc: int) -> bool:
        if block.tag not in BLOCKS:
            return False
        low, high, ranges = (block.number(name) for name in (At.LOW_PC, At.HIGH_PC, At.RANGES))
        if low is not None and high is not None:
            return within(low, high, self.sections, labels, pc)
        try:
            return ranges is not None and in_ranges(ranges, self.sections, labels, pc)
        except DwarfError:
            return False

    def globals(self) -> Iterator[Entry]:
        """Variables of files and namespaces."""
        for unit in self.entries.values():
            if unit.parent is None:
                yield from (entry for entry in unit.walk(OUTER) if entry.tag == Tag.VARIABLE)

    def location(self, entry: Entry, frame: Frame, labels: Labels, pc: int) -> Location:
        """Where a variable is kept at an instruction. Raises DwarfError if it is not."""
        kept = entry.attributes.get(At.LOCATION)
        if isinstance(kept, int):
            kept = listed(kept, self.sections, labels, pc)
        if isinstance(kept, bytes):
            return locate(kept, self.sections, frame)
        constant = self.get(entry, At.CONST_VALUE)
        if isinstance(constant, int):
            return constant
        raise DwarfError("optimized out")
