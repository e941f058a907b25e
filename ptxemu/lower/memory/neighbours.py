"""Loads of words that lie side by side for each lane, wherever the lanes are: fields of a structure that is found by its index,
or elements of a lane's own row of which a loop takes several in a trip.

One by one each is a gather, which goes to the lines of all lanes again. The first of them loads the words of all, lane by lane,
and turns rows into columns; where it may not, each is loaded alone. Checked code does so where nothing is to be told of any of
the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Op
from ptxemu.lower.core.access import Access, Range, outside_memory, pointer_of, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.known import Neighbours
from ptxemu.lower.core.parts import joined
from ptxemu.lower.core.telling import untold_range
from ptxemu.lower.memory import fields, lines, patterns, together

COUNT = 4
"""Words of a lane that are loaded, as many as fill the least register."""
FEWEST = 3
"""Those of them that are wanted."""
WORD_BYTES = 4
WORD = "i32"
WORDS = f"<{LANES} x {WORD}>"
Row: TypeAlias = Callable[[int], str]
"""A pointer to the words of a lane."""


def neighbours_of(ctx: Context, off_one_base: Iterable[together.Loads]) -> dict[Op, Neighbours]:
    """Those among some loads, each of which asks :func:`load`."""
    found: dict[Op, Neighbours] = {}
    for loads in off_one_base:
        own = {offset: op for offset, op in loads.items() if _is_of_any_word(ctx, op)}
        for run in _side_by_side(own):
            found.update(dict.fromkeys(run, Neighbours(run, WORDS)))
    return found


def _is_of_any_word(ctx: Context, op: Op) -> bool:
    """Whether a load is of a word for each lane, of whose place nothing is known, or that it is far from those of the others."""
    address = op.access.address
    assert isinstance(address, Addr)
    if op.access.bytes != WORD_BYTES or ctx.is_grouped(address.base):
        return False
    shape = ctx.shape(address)
    if shape is not None:
        return shape.strided(WORD_BYTES) and abs(shape.stride) > fields.LARGEST * WORD_BYTES
    return ctx.expected.of(address, WORD_BYTES) is None


def _side_by_side(loads: together.Loads) -> Iterator[list[Op]]:
    return together.grouped(loads, lambda group, offset: len(group) < COUNT and offset == group[-1] + WORD_BYTES, FEWEST)


# ---------------------------------------------------------------- lowering


def load(ctx: Context, found: Access, alone: Callable[[], list[str]]) -> list[str]:
    """The value of one of them, as integers; ``alone`` loads it without the others."""

    def prepare(group: Neighbours) -> tuple[str, together.Load]:
        addresses = addresses_of(ctx, group, found)

        def columns(row: Row) -> list[str]:
            return _columns(ctx, row)[: len(group.ops)]

        def may_load() -> str:
            return _may_load(ctx, group, found, addresses)

        def in_line() -> list[str]:
            return columns(partial(lines.of_lane, ctx, lines.part(ctx, found, addresses)))

        in_place = partial(columns, partial(pointer_of, ctx, addresses))
        held = lines.held(ctx, found, addresses)
        if held is None:
            return may_load(), in_place
        types = [WORDS] * len(group.ops)
        whole = ctx.when(held, lambda: ["true"], lambda: [may_load()], ["i1"], likely=True)[0]
        return whole, lambda: ctx.when(held, in_line, in_place, types, likely=True)

    return together.load(ctx, found.op, alone, prepare)


def addresses_of(ctx: Context, group: Neighbours, found: Access) -> str:
    """Where the first of a group is in all lanes, of which one access is known."""
    first, this = (each.access.address for each in (group.ops[0], found.op))
    assert isinstance(first, Addr) and isinstance(this, Addr)
    addresses = vector_addresses(ctx, found)
    return ctx.vector.bin("add", "i64", addresses, ctx.vector.int(64, first.offset - this.offset))


def _may_load(ctx: Context, group: Neighbours, found: Access, addresses: str) -> str:
    """i1: all lanes are on, and what is loaded of each is in memory and in one page: it can be read if the first word can. Where
    accesses are told, nobody need be told of these."""
    full, untold = patterns.full(ctx, found.mask), untold_range(ctx, found.op)
    if untold is None and len(group.ops) == COUNT and all(each in ctx.trusted for each in group.ops):
        return full
    wrong = unreadable(ctx, addresses, WORD_BYTES, COUNT * WORD_BYTES, untold)
    return ctx.scalar.bin("and", "i1", full, ctx.scalar.icmp("eq", f"i{LANES}", wrong, "0"))


def unreadable(ctx: Context, addresses: str, size: int, bytes: int, untold: Range | None) -> str:
    """i32: the lanes at whose address so many bytes may not be read where elements of a size are asked for: they are not in one
    page of memory, or not in a range of which nobody need be told."""
    if untold is not None:
        return outside_memory(ctx, addresses, size, untold, bytes - size)
    inside = ctx.vector.bin("and", "i64", addresses, ctx.vector.int(64, together.PAGE_BYTES - 1))
    over = ctx.vector.icmp("ugt", "i64", inside, ctx.vector.int(64, together.PAGE_BYTES - bytes))
    return ctx.scalar.bin("or", f"i{LANES}", outside_memory(ctx, addresses, size), ctx.bits_of(over))


def _columns(ctx: Context, row: Row) -> list[str]:
    """The words of all lanes, the first of each, and so on."""
    rows = ctx.target.vector_bytes // (COUNT * WORD_BYTES)  # of a register
    chunks = [_transposed(ctx, rows, row, first) for first in range(0, LANES, COUNT * rows)]
    return [joined(ctx.vector, "i32", column, COUNT * rows) for column in zip(*chunks, strict=True)]


def _transposed(ctx: Context, rows: int, row: Row, first: int) -> list[str]:
    """The same of the lanes from one on that fill four registers: each quarter of a register holds the row of one of four."""
    kind, count = f"<{COUNT * rows} x i32>", COUNT * rows

    def shuffled(a: str, b: str, low: Sequence[int], high: Sequence[int]) -> list[str]:
        """Two vectors: of each quarter these elements, whose numbers go on in the second vector."""
        orders = ([COUNT * row + i % COUNT + i // COUNT * count for row in range(rows) for i in picks] for picks in (low, high))
        texts = (", ".join(f"i32 {i}" for i in order) for order in orders)
        return [ctx.inst(f"shufflevector {kind} {a}, {kind} {b}, <{count} x i32> <{text}>") for text in texts]

    r = [_rows(ctx, row, range(first + number, first + COUNT * rows, COUNT)) for number in range(COUNT)]
    ends = (0, 4, 1, 5), (2, 6, 3, 7)
    (low01, high01), (low23, high23) = shuffled(r[0], r[1], *ends), shuffled(r[2], r[3], *ends)
    halves = (0, 1, 4, 5), (2, 3, 6, 7)
    return [*shuffled(low01, low23, *halves), *shuffled(high01, high23, *halves)]


def _rows(ctx: Context, row: Row, lanes: Sequence[int]) -> str:
    """Those of some lanes."""
    found = [ctx.inst(f"load <{COUNT} x i32>, ptr {row(lane)}, align {WORD_BYTES}") for lane in lanes]
    return joined(ctx.vector, "i32", found, COUNT)
