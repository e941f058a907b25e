"""Operands of a row: how they are written, and where an op has them.

An op keeps its operands by position, destinations and sources apart, and vectors of destinations flattened. Which position
has which name follows from the row, its modifiers and the number of operands, so that passes may replace operands and need
not carry names along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product

from msgspec import Struct

SELECTORS = {
    "part": re.compile(r"b[0-3]|h[01]"),
    "halves": re.compile(r"h[0-3]{2}"),
    "bytes": re.compile(r"b[0-7]{4}"),
    "halfmask": re.compile(r"h(?:1?0|1)"),
    "bytemask": re.compile(r"b(?=.)3?2?1?0?"),
    "whole": re.compile(r"(?!)"),
}
"""Selectors of the video instructions, written after a register (``r1.b0``), by family: a byte or half; two halves or four
bytes of two operands; which halves or bytes of a result to write; none."""

LITERAL_FAMILIES = frozenset({None, "part"})
"""Families of operands that may be literals."""


class OperandPattern(Struct, frozen=True):
    """One operand: ``role`` is ``dst``, ``src`` or ``mem``; ``second`` is the pattern after a bar.

    ``count`` is the qualifier that gives the vector length or geometry, or the length itself, ``when`` that whose presence an
    optional operand follows, or None.  ``space`` is the qualifier of an address's state space, or a state space.  ``sink`` tells
    whether a destination may be ``_``; ``values`` are those that a constant is limited to, if any.  ``selector`` is the family
    of its selectors, ``selected`` whether it must have one, ``negatable`` whether it may be negated; ``most`` is the operand
    that a constant may not exceed.  ``rest`` tells that it stands for any number of operands.
    """

    name: str
    role: str
    type: str
    optional: bool
    count: str | None = None
    second: OperandPattern | None = None
    when: str | None = None
    space: str = "space"
    sink: bool = False
    values: tuple[range, ...] = ()
    selector: str | None = None
    selected: bool = False
    negatable: bool = False
    most: str | None = None
    rest: bool = False

    def length(self, mods: Mapping[str, str]) -> int | None:
        """How many elements it has; None where braces are not allowed."""
        if self.count is None:
            return None
        if self.count.isdecimal():
            return int(self.count)
        qualifier, _, divisor = self.count.partition("/")
        word = mods.get(qualifier)
        if divisor and word:
            return int(COLUMNS.findall(word)[0]) // int(divisor)
        return int(word.strip("vd")) if word else 1


COMMA = re.compile(r",(?![^()]*\))")  # outside parentheses
COLUMNS = re.compile(r"n(\d+)")  # in the shape of a matrix


@cache
def parse(text: str) -> tuple[OperandPattern, ...]:
    """The patterns of a row, as :mod:`ptxemu.isa.table` describes them."""
    return tuple(_operand(part) for part in COMMA.split(text) if part.strip())


@cache
def _operand(text: str) -> OperandPattern:
    text = text.strip()
    second = None
    if "|" in text:
        text, other = text.split("|", 1)
        second = _operand(other)
    text, optional, when = text.partition("?")
    name, _, kind = text.partition(":")
    name, _, space = name.partition("@")
    kind, _, bounds = kind.partition("<")
    kind, _, count = kind.partition("*")
    values: tuple[range, ...] = ()
    if name.startswith("imm"):
        kind, _, listed = kind.partition("(")
        values = tuple(_range(word) for word in listed.rstrip(")").split(",") if word)
    most = bounds.rstrip(">") if bounds[:1].isalpha() else None
    if bounds and most is None:
        values = (_range(bounds.rstrip(">")),)
    negatable = name.startswith("-")
    rest = name.endswith("...")
    name, _, selector = name.lstrip("-").removesuffix("...").partition(".")
    family = selector.rstrip("!")
    role = "mem" if name.startswith("[") else "dst" if name[0] in "dq_" else "src"
    sink = role == "dst" and name.endswith("_")
    return OperandPattern(
        name.strip("[]").rstrip("_") or "_", role, kind, bool(optional), count or None, second, when or None, space or "space",
        sink, values, family or None, selector.endswith("!"), negatable, most, rest,
    )  # fmt: skip


def _range(word: str) -> range:
    ends, _, step = word.partition("/")
    first, _, last = ends.partition("..")
    return range(int(first), int(last or first) + 1, int(step or 1))


# ---------------------------------------------------------------- where an op has them


class Place(Struct, frozen=True):
    """Operands ``start`` to ``stop`` of an op's destinations if ``result``, else of its sources.

    ``vector`` tells whether they are the elements of a vector of destinations; vectors of sources are one operand.
    """

    result: bool
    start: int
    stop: int
    vector: bool = False


class Implicit(Struct, frozen=True):
    """Operands that are not written: names of registers that an op reads and writes, always the last of its operands."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


COORDINATES = "coordinates"
SAMPLER = "sampler"
PARTS = {"surface": ("", COORDINATES), "texture": ("", SAMPLER, COORDINATES), "tensor": ("", COORDINATES)}
"""The operands that a surface, texture or tensor with coordinates becomes; the first has the name of the pattern."""
TARGETS = frozenset({"label", "targets"})  # not operands of the op

Names = Mapping[str, Place | None]


def present(patterns: Sequence[OperandPattern], mods: Mapping[str, str], missing: int) -> list[OperandPattern] | None:
    """The patterns of the operands that there are if ``missing`` are left out, from the right; None if so many cannot be."""
    possible = [pattern for pattern in patterns if pattern.when is None or pattern.when in mods]
    optional = [pattern for pattern in possible if pattern.optional and pattern.when is None]
    if not 0 <= missing <= len(optional):
        return None
    dropped = next(combinations(reversed(optional), missing))
    return [pattern for pattern in possible if pattern not in dropped]


def names(patterns: Sequence[OperandPattern], implicit: Implicit) -> frozenset[str]:
    """Those of all operands that an op may have."""
    found = {pattern.name for one in patterns for pattern in (one, one.second) if pattern and pattern.type not in TARGETS}
    found |= {part for pattern in patterns if pattern.count for part in PARTS.get(pattern.type, ()) if part}
    return frozenset(found | {*implicit.reads, *implicit.writes})


def counting(patterns: Sequence[OperandPattern]) -> tuple[str, ...]:
    """The qualifiers that decide how many operands there are."""
    counts = {pattern.count.partition("/")[0] for pattern in patterns if pattern.count}
    return tuple(sorted(counts | {pattern.when for pattern in patterns if pattern.when}))


def places(patterns: Sequence[OperandPattern], implicit: Implicit, mods: Mapping[str, str], dsts: int, srcs: int) -> Names | None:
    """Where an op with so many destinations and sources has each operand, None for one that is absent.

    None if the op does not fit the patterns.
    """
    found = next(fitting(patterns, implicit, mods, dsts, srcs), None)
    return None if found is None else dict.fromkeys(names(patterns, implicit)) | found


def fitting(
    patterns: Sequence[OperandPattern], implicit: Implicit, mods: Mapping[str, str], dsts: int, srcs: int
) -> Iterator[dict[str, Place]]:
    """The places for each choice of optional operands and of implicit ones that gives an op so many operands."""
    optional = sum(pattern.optional and pattern.when is None for pattern in patterns)
    seconds = {False, any(pattern.second and pattern.second.optional for pattern in patterns)}
    for missing, second, implied in product(range(optional + 1), seconds, {implicit, Implicit()}):
        chosen = present(patterns, mods, missing)
        assert chosen is not None
        counter = _Counter(mods, dsts - len(implied.writes), srcs - len(implied.reads), loose=not implicit.writes)
        if counter.fits(chosen, second):
            counter.implicit(implied)
            yield counter.found


class _Counter:
    """Counts through the operands of an op, ``dsts`` and ``srcs`` without the implicit ones.

    ``loose``: a lone destination may be written as a vector (mov, which unpacks its source).
    """

    def __init__(self, mods: Mapping[str, str], dsts: int, srcs: int, *, loose: bool) -> None:
        self.mods = mods
        self.loose = loose
        self.total = {True: dsts, False: srcs}
        self.taken = {True: 0, False: 0}
        self.found: dict[str, Place] = {}

    def fits(self, patterns: list[OperandPattern], seconds: bool) -> bool:
        for pattern in patterns:
            self.take(pattern, seconds)
        return self.taken == self.total

    def take(self, pattern: OperandPattern, seconds: bool) -> None:
        if pattern.type in TARGETS:
            return
        if pattern.rest:
            result = pattern.role == "dst"
            self.add(pattern.name, result, self.total[result] - self.taken[result], vector=True)
        elif pattern.role == "dst":
            self.results(pattern, seconds)
        elif pattern.count is None:
            self.add(pattern.name, False)
        else:
            for name in PARTS.get(pattern.type, ("",)):
                self.add(name or pattern.name, False)

    def results(self, pattern: OperandPattern, seconds: bool) -> None:
        length = pattern.length(self.mods)
        alone = self.loose and pattern.second is None and not self.taken[True]
        if alone and length is None and self.total[True] > 1:
            self.add(pattern.name, True, self.total[True], vector=True)
        else:
            self.add(pattern.name, True, length or 1, vector=(length or 1) > 1 or pattern.count == "1")
        if pattern.second is not None and (seconds or not pattern.second.optional):
            self.add(pattern.second.name, True)

    def add(self, name: str, result: bool, count: int = 1, *, vector: bool = False) -> None:
        start = self.taken[result]
        self.taken[result] = start + count
        self.found[name] = Place(result, start, start + count, vector)

    def implicit(self, implied: Implicit) -> None:
        """A register that is read and written has its place in the sources."""
        for result, names in ((True, implied.writes), (False, implied.reads)):
            for name in names:
                self.add(name, result)
