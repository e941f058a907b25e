"""Stores of 256 bits that leave out elements, ``{%r1, _, ...}``: stores of the parts that are there (PTX ISA, "st")."""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.ir.ops import Addr, Imm, Op, Vec, items_of
from ptxemu.ir.types import U32
from ptxemu.passes.internal import ALIGNED, STORE_FOUR, STORE_ONE, STORE_TWO

ROWS = {1: STORE_ONE, 2: STORE_TWO, 4: STORE_FOUR}
MOST_BYTES = 16  # of a part
KEPT = ("sem", "scope", "space", "cop")  # qualifiers that are of consequence


def parts(op: Op, stored: tuple[bool, ...]) -> list[Op]:
    """What a store becomes; ``stored`` tells which elements it has."""
    kind, address = op.type_of("v"), op["a"]
    assert kind is not None and isinstance(address, Addr)
    mods = {name: op.mods[name] for name in KEPT if name in op.mods}
    size = Imm(kind.bytes * len(stored), U32)
    found = [Op(ALIGNED, mods, (), (address, size), (), (None, U32), op.pos, op.end, guard=op.guard, loc=op.loc)]
    items = list(items_of(op["v"]))
    for first, count in _runs(stored, MOST_BYTES // kind.bytes):
        given, items = items[:count], items[count:]
        value = given[0] if count == 1 else Vec(tuple(given))
        sources = Addr(address.base, address.offset + first * kind.bytes), value
        found.append(Op(ROWS[count], mods, (), sources, (), (None, kind), op.pos, op.end, guard=op.guard, loc=op.loc))
    return found


def _runs(stored: tuple[bool, ...], most: int) -> Iterator[tuple[int, int]]:
    """Elements side by side, as powers of two that are aligned."""
    at = 0
    while at < len(stored):
        count = most
        while count > 1 and (at % count or not all(stored[at : at + count])):
            count //= 2
        if stored[at]:
            yield at, count
        at += count
