"""Loads of bytes and halves that lie in one word of each lane, wherever the lanes are, as of the colours of a pixel that is found
by its index. Processors gather words, or load them lane by lane in the same time as bytes, so the first of them does so for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Op
from ptxemu.lower.core.access import Access
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import gather_unaligned
from ptxemu.lower.core.known import Neighbours
from ptxemu.lower.core.telling import untold_range
from ptxemu.lower.memory import patterns, together
from ptxemu.lower.memory.neighbours import WORD, WORD_BYTES, addresses_of, unreadable

SIZES = (1, 2)
"""Bytes of what is loaded."""
FEWEST = 2


def loads_of(ctx: Context, off_one_base: Iterable[together.Loads]) -> dict[Op, Neighbours]:
    """Those among some loads, each of which asks :func:`load`."""
    found: dict[Op, Neighbours] = {}
    for loads in off_one_base:
        for size in SIZES:
            own = {offset: op for offset, op in loads.items() if op.access.bytes == size and _is_anywhere(ctx, op)}
            for group in _in_words(own, size):
                found.update(dict.fromkeys(group, Neighbours(group, f"<{LANES} x i{8 * size}>")))
    return found


def _is_anywhere(ctx: Context, op: Op) -> bool:
    """Whether nothing is known of the places of lanes."""
    address, size = op.access.address, op.access.bytes
    assert isinstance(address, Addr) and size is not None
    return not ctx.is_grouped(address.base) and ctx.shape(address) is None and ctx.expected.of(address, size) is None


def _in_words(loads: together.Loads, size: int) -> Iterator[list[Op]]:
    return together.grouped(loads, lambda group, offset: offset + size - group[0] <= WORD_BYTES, FEWEST)


def load(ctx: Context, found: Access, alone: Callable[[], list[str]]) -> list[str]:
    """The value of one of them, as integers; ``alone`` loads it without the others."""

    def prepare(group: Neighbours) -> tuple[str, together.Load]:
        addresses = addresses_of(ctx, group, found)

        def parts() -> list[str]:
            word = gather_unaligned(ctx, WORD, addresses, found.mask)
            first = _offset(group.ops[0])
            return [_part(ctx, word, _offset(op) - first, found.size) for op in group.ops]

        return _may_load(ctx, found, addresses), parts

    return together.load(ctx, found.op, alone, prepare)


def _offset(op: Op) -> int:
    return int(op.access.address.offset)


def _part(ctx: Context, word: str, offset: int, size: int) -> str:
    """What lies so many bytes behind the start of a word."""
    moved = ctx.vector.bin("lshr", WORD, word, ctx.vector.int(32, 8 * offset)) if offset else word
    return ctx.vector.cast("trunc", WORD, moved, f"i{8 * size}")


def _may_load(ctx: Context, found: Access, addresses: str) -> str:
    """i1: the words of all lanes that are on are in memory, and in one page: they can be read if their first bytes can. Where
    accesses are told, nobody need be told of these. Without gathers, all lanes are on."""
    wrong, gathers = (
        unreadable(ctx, addresses, found.size, WORD_BYTES, untold_range(ctx, found.op)),
        ctx.target.gathers(8 * WORD_BYTES),
    )
    if gathers:
        wrong = ctx.scalar.bin("and", f"i{LANES}", wrong, ctx.bits_of(found.mask))
    readable = ctx.scalar.icmp("eq", f"i{LANES}", wrong, "0")
    return readable if gathers else ctx.scalar.bin("and", "i1", patterns.full(ctx, found.mask), readable)
