"""Loads of words that lie side by side for each lane, wherever the lanes are: fields of a structure that is found by its index,
or elements of a lane's own row of which a loop takes several in a trip.

One by one each is a gather, which goes to the lines of all lanes again. The first of them loads the words of all, lane by lane,
and turns rows into columns; where it may not, each is loaded alone. Checked code does so where nothing is to be told of any of
the words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import leaves_stamps, tells_strays
from ptxemu.ir.ops import STRONG, Addr, Op, Reg
from ptxemu.ir.types import B64
from ptxemu.isa.table import LOADS_AND_STORES
from ptxemu.lower.core.access import Access, outside_memory, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import EFFECTS, Effect
from ptxemu.lower.core.known import Neighbours
from ptxemu.lower.core.parts import joined
from ptxemu.lower.core.telling import kept_range

COUNT = 4
"""Words of a lane that are loaded, as many as fill the least register."""
FEWEST = 3
"""Those of them that are wanted."""
WORD_BYTES = 4
PAGE_BYTES = 4096
WORD = "i32"
WORDS = f"<{LANES} x {WORD}>"


def neighbours_of(ctx: Context, ops: Sequence[Op], moving: Collection[Effect]) -> dict[Op, Neighbours]:
    """Those among some ops that are lowered one after another, each of which asks :func:`load`."""
    found: dict[Op, Neighbours] = {}
    if leaves_stamps(ctx.unit.observed) or ctx.unit.observed == "all" or ctx.checking or ctx.in_one_lane:
        return found
    for run in _runs(ctx, ops, moving):
        found.update(dict.fromkeys(run, Neighbours(run)))
    return found


def _runs(ctx: Context, ops: Sequence[Op], moving: Collection[Effect]) -> Iterator[list[Op]]:
    """Loads off one base of words side by side, in the order of these, between which nothing but loads touches memory."""
    begun: dict[Reg, dict[int, Op]] = {}
    for op in ops:
        if EFFECTS.get(op.row.lower) in moving and (address := _address(ctx, op)) is not None:
            assert isinstance(address.base, Reg)
            begun.setdefault(address.base, {}).setdefault(address.offset, op)
        elif not _only_loads(op):
            yield from _side_by_side(begun)
            begun = {}
    yield from _side_by_side(begun)


def _side_by_side(begun: dict[Reg, dict[int, Op]]) -> Iterator[list[Op]]:
    for loads in begun.values():
        run: list[int] = []
        for offset in [*sorted(loads), None]:
            if offset is not None and len(run) < COUNT and (not run or offset == run[-1] + WORD_BYTES):
                run.append(offset)
                continue
            if len(run) >= FEWEST:
                yield [loads[each] for each in run]
            run = [] if offset is None else [offset]


def _address(ctx: Context, op: Op) -> Addr | None:
    """Where a plain load of a word for each lane is, of which nothing else is known."""
    if op.guard is not None or not STRONG.isdisjoint(op.mods.values()) or len(op.dsts) != 1 or op in (ctx.strays or ()):
        return None
    stated, (dst,) = op.access, op.dsts
    address = stated.address
    if stated.space != "global" or stated.bytes != WORD_BYTES or dst is None or ctx.is_scalar(dst):
        return None
    if not isinstance(address, Addr) or not isinstance(address.base, Reg) or address.base.type.bits != B64.bits:
        return None
    if ctx.shape(address) is not None or ctx.is_grouped(address.base) or ctx.runs(address, WORD_BYTES) is not None:
        return None
    return address


def _only_loads(op: Op) -> bool:
    """Whether an op changes no memory and waits for nobody."""
    plain = op.row.lower in LOADS_AND_STORES and STRONG.isdisjoint(op.mods.values())
    return op.effects.pure or (plain and all(not one.stated.writes for one in op.accesses))


# ---------------------------------------------------------------- lowering


def load(ctx: Context, found: Access, alone: Callable[[], list[str]]) -> list[str]:
    """The value of a load that has neighbours, as integers; ``alone`` loads it without them."""
    op = found.op
    group = ctx.pairs.neighbours[op]
    if group.together:
        return ctx.when(group.together, lambda: [group.loaded[op]], alone, [WORDS], likely=True)
    addresses = _addresses(ctx, group, found)
    group.together = _may_load(ctx, group, found, addresses)

    def all_words() -> list[str]:
        return _columns(ctx, addresses)[: len(group.ops)]

    def first_alone() -> list[str]:
        return [value for each in group.ops for value in (alone() if each is op else ["zeroinitializer"])]

    words = ctx.when(group.together, all_words, first_alone, [WORDS] * len(group.ops), likely=True)
    group.loaded = dict(zip(group.ops, words, strict=True))
    return [group.loaded[op]]


def _addresses(ctx: Context, group: Neighbours, found: Access) -> str:
    """Where the first words of all lanes are, of a group of which one access is known."""
    first, this = (each.access.address for each in (group.ops[0], found.op))
    assert isinstance(first, Addr) and isinstance(this, Addr)
    addresses = vector_addresses(ctx, found)
    return ctx.vector.bin("add", "i64", addresses, ctx.vector.int(64, first.offset - this.offset))


def _may_load(ctx: Context, group: Neighbours, found: Access, addresses: str) -> str:
    """i1: all lanes are on, and what is loaded of each is in memory and in one page: it can be read if the first word can. Where
    strays are told, it is where the instruction has been before."""
    full = ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(found.mask), "-1")
    if tells_strays(ctx.unit.observed):
        kept = kept_range(ctx, found.op)
        outside = outside_memory(ctx, addresses, WORD_BYTES, kept, (COUNT - 1) * WORD_BYTES)
        return ctx.scalar.bin("and", "i1", full, ctx.scalar.icmp("eq", f"i{LANES}", outside, "0"))
    if len(group.ops) == COUNT and all(each in ctx.trusted for each in group.ops):
        return full
    outside = outside_memory(ctx, addresses, WORD_BYTES)
    inside = ctx.vector.bin("and", "i64", addresses, ctx.vector.int(64, PAGE_BYTES - 1))
    over = ctx.vector.icmp("ugt", "i64", inside, ctx.vector.int(64, PAGE_BYTES - COUNT * WORD_BYTES))
    wrong = ctx.scalar.bin("or", f"i{LANES}", outside, ctx.bits_of(over))
    return ctx.scalar.bin("and", "i1", full, ctx.scalar.icmp("eq", f"i{LANES}", wrong, "0"))


def _columns(ctx: Context, addresses: str) -> list[str]:
    """The words of all lanes, the first of each, and so on, from the rows at these addresses."""
    rows = ctx.target.vector_bytes // (COUNT * WORD_BYTES)  # of a register
    chunks = [_transposed(ctx, rows, addresses, first) for first in range(0, LANES, COUNT * rows)]
    return [joined(ctx.vector, "i32", column, COUNT * rows) for column in zip(*chunks, strict=True)]


def _transposed(ctx: Context, rows: int, addresses: str, first: int) -> list[str]:
    """The same of the lanes from one on that fill four registers: each quarter of a register holds the row of one of four."""
    kind, count = f"<{COUNT * rows} x i32>", COUNT * rows

    def shuffled(a: str, b: str, low: Sequence[int], high: Sequence[int]) -> list[str]:
        """Two vectors: of each quarter these elements, whose numbers go on in the second vector."""
        orders = ([COUNT * row + i % COUNT + i // COUNT * count for row in range(rows) for i in picks] for picks in (low, high))
        texts = (", ".join(f"i32 {i}" for i in order) for order in orders)
        return [ctx.inst(f"shufflevector {kind} {a}, {kind} {b}, <{count} x i32> <{text}>") for text in texts]

    r = [_rows(ctx, addresses, range(first + number, first + COUNT * rows, COUNT)) for number in range(COUNT)]
    ends = (0, 4, 1, 5), (2, 6, 3, 7)
    (low01, high01), (low23, high23) = shuffled(r[0], r[1], *ends), shuffled(r[2], r[3], *ends)
    halves = (0, 1, 4, 5), (2, 3, 6, 7)
    return [*shuffled(low01, low23, *halves), *shuffled(high01, high23, *halves)]


def _rows(ctx: Context, addresses: str, lanes: Sequence[int]) -> str:
    """Those of some lanes."""
    found, row = [], f"<{COUNT} x i32>"
    for lane in lanes:
        place = ctx.inst(f"extractelement {ctx.vector.ty('i64')} {addresses}, i64 {lane}")
        found.append(ctx.inst(f"load {row}, ptr {ctx.inst(f'inttoptr i64 {place} to ptr')}, align {WORD_BYTES}"))
    return joined(ctx.vector, "i32", found, COUNT)
