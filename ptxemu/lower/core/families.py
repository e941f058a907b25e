"""Accesses of shared memory off one base, none of which gives a word to another lane than the others do: a *family*.

Those of one family never race with each other if one warp makes them, as far as their bases are the same.  Such are both keys
of a comparison in a sorting network, which are read and written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2s
from typing import TypeAlias

from msgspec import Struct

from ptxemu._runtime import lib
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Graph
from ptxemu.ir.observed import leaves_stamps
from ptxemu.ir.ops import STRONG, Addr, Op, Reg, Symbol
from ptxemu.isa.table import LOADS_AND_STORES
from ptxemu.lower.core.access import Access
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.known import Family, Together
from ptxemu.lower.core.word_groups import SEVERAL, WORD_BYTES, lanes_of

NONE = 0

Words: TypeAlias = "dict[int, int]"  # the lane of each, by its offset


def families_of(graph: Graph, uniformity: Uniformity) -> dict[Reg, Family]:
    """Those of all accesses of shared memory off each base, if these are families."""
    found: dict[Reg, Words | None] = {}
    for op in (op for block in graph.blocks for op in block.ops):
        address = _address(op)
        shape = uniformity.shape(address) if address is not None else None
        if address is None or shape is None or not isinstance(address.base, Reg):
            continue
        known = found.setdefault(address.base, {})
        own = _words(shape, op.access.bytes, address.offset)
        if known is None or own is None or any(known.get(word, lane) != lane for word, lane in own.items()):
            found[address.base] = None
        else:
            known.update(own)
    return {base: _family(words) for base, words in found.items() if words}


def listed_together(ctx: Context, ops: Iterable[Op]) -> dict[Op, Together]:
    """The plain accesses of shared memory among some ops, executed one after another, that one test covers: reads, and stores
    that are made in pairs."""
    if not leaves_stamps(ctx.unit.observed) or ctx.checking:
        return {}
    return _read_together(ctx, ops) | _stored_together(ctx)


def _stored_together(ctx: Context) -> dict[Op, Together]:
    stored = [Together([first, op]) for op, first in ctx.pairs.first.items() if op.access.stated.writes]
    return {op: together for together in stored for op in together.ops}


def _read_together(ctx: Context, ops: Iterable[Op]) -> dict[Op, Together]:
    found: dict[Op, Together] = {}
    begun: dict[tuple[Reg | Symbol, int, int], Together] = {}
    for op in ops:
        key = _read(ctx, op)
        if key is not None:
            found[op] = begun.setdefault(key, Together())
            found[op].ops.append(op)
        elif not _is_elsewhere(op):
            begun = {}
    return {op: together for op, together in found.items() if len(together.ops) > 1}


def _read(ctx: Context, op: Op) -> tuple[Reg | Symbol, int, int] | None:
    """What a read has in common with others that its test covers: the origin, size and remainder of the distance; None if it is
    none."""
    address = _address(op)
    if address is None or op.access.stated.kind != "read" or op.guard is not None or not STRONG.isdisjoint(op.mods.values()):
        return None
    if address.origin is None or op.row.lower not in LOADS_AND_STORES or ctx.shape(address) is None:
        return None
    assert op.access.bytes
    return address.origin, op.access.bytes, address.distance % op.access.bytes


def _is_elsewhere(op: Op) -> bool:
    """Whether an op neither touches shared memory nor puts accesses in an order."""
    moves = op.row.lower in LOADS_AND_STORES and STRONG.isdisjoint(op.mods.values())
    return op.effects.pure or (moves and all(access.space not in ("shared", "generic") for access in op.accesses))


class Place(Struct, frozen=True):
    """Where an access is, and of which family, as a ``pe_pattern_site`` says it."""

    low: int
    span: int
    first: int
    family: int


def place_of(found: Access, families: Mapping[Reg, Family]) -> Place:
    """That of an access by a pattern."""
    assert found.shape is not None
    low, high = found.shape.spread
    address = _address(found.op)
    family = families.get(address.base) if address is not None and isinstance(address.base, Reg) else None
    first = family.first - found.address.offset if family is not None else low
    if family is None:
        family = _family(_words(found.shape, found.size, 0) or {})
    return Place(low, high - low + found.size, first, family.number)


def may_be_claimed(found: Access) -> bool:
    """Whether an access by a pattern may ever be."""
    assert found.shape is not None
    low, high = found.shape.spread
    return high - low + found.size <= lib.PE_LONGEST_CLAIM and low % WORD_BYTES == 0


def _address(op: Op) -> Addr | None:
    """Where an op makes an access of whole words of shared memory."""
    if len(op.accesses) != 1 or op.access.space != "shared" or op.access.bytes is None or op.access.bytes % WORD_BYTES:
        return None
    address = op.access.address
    return address if isinstance(address, Addr) else None


def _words(shape: Shape, size: int | None, offset: int) -> Words | None:
    """None if a word has two lanes."""
    found = lanes_of([offset + first for first in shape.offsets], (size or 0) // WORD_BYTES)
    return None if any(lane >= SEVERAL for lane in found.values()) else found


def _family(words: Words) -> Family:
    if not words:
        return Family(0, NONE)
    first = min(words)
    text = repr(sorted((word - first, lane) for word, lane in words.items()))
    return Family(first, int.from_bytes(blake2s(text.encode(), digest_size=8).digest()))
