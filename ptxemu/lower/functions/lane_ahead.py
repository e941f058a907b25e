"""Prefetching where lanes run one after another: what later elements of a row lead to.

A lane reads indexes one after another, and with each of them a word that may be anywhere.  As the ends of rows cannot be
foreseen, the processor does not come to the next words while it waits for these.  So the code also reads the index that lies
some way ahead, if it is in the page that it has just read, and asks for the word that it leads to.  In a sparse matrix that is of
a later row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.analysis.trips import Makers, makers, sources
from ptxemu.ir.graph import Block, Phi, reads, registers
from ptxemu.ir.ops import STRONG, Op, Reg
from ptxemu.lower.core import prefetch
from ptxemu.lower.core.access import NOTED, access
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.known import Reach
from ptxemu.lower.core.reach import covers
from ptxemu.lower.core.telling import unseen

AHEAD = 64
"""Elements: a few rows of a sparse matrix, of which a page has hundreds."""
PAGE = 4096  # bytes of the least that is mapped


class Lead(Struct, frozen=True):
    """A load of an index, the ops that make an address of it, and the access there."""

    index: Op
    ops: list[Op]
    target: Op


def leads(ctx: Context, blocks: list[Block]) -> dict[Op, list[Lead]]:
    """Those in the code of a lane, of indexes off one address together, by the last load of these."""
    made = makers(blocks)
    found: dict[tuple[Block, Reg], list[Lead]] = {}
    for block in blocks:
        for lead in _of_block(ctx, block, made):
            base = lead.index.access.address.base
            assert isinstance(base, Reg)
            found.setdefault((block, base), []).append(lead)
    return {together[-1].index: together for together in found.values()}


def _of_block(ctx: Context, block: Block, made: Makers) -> Iterator[Lead]:
    for number, op in enumerate(block.ops):
        if not _is_index(ctx, op, made):
            continue
        following = set(op.dsts)
        made_of_it: list[Op] = []
        for later in block.ops[number + 1 :]:
            if _plain(later) and isinstance(later.access.address.base, Reg) and later.access.address.base in following:
                yield Lead(op, _needed(made_of_it, later.access.address.base), later)
                break
            if _serves(ctx, later) and following.intersection(reads(later)):
                following.update(later.dsts)
                made_of_it.append(later)


def _serves(ctx: Context, op: Op) -> bool:
    """Whether an op may be executed once more without harm."""
    kept = any(dst is not None and ctx.outlives_block(dst) for dst in op.dsts)
    return op.row.lower in ELEMENTWISE and op.guard is None and not kept


def _plain(op: Op) -> bool:
    """Whether an op moves data to or from memory of the device, and no more."""
    moves = len(op.accesses) == 1 and op.access.stated.kind != "update" and bool(op.access.stated.data)
    return moves and op.access.space in NOTED and STRONG.isdisjoint(op.mods.values()) and op.guard is None


def _is_index(ctx: Context, op: Op, made: Makers) -> bool:
    """Whether an op loads an element of a row, to whose address no other load leads, for its own block."""
    if not _plain(op) or op.access.stated.kind != "read" or len(op.dsts) != 1 or op.access.bytes is None:
        return False
    (result,) = op.dsts
    if not isinstance(op.access.address.base, Reg) or result is None or ctx.outlives_block(result):
        return False
    followed, _ = sources(registers(op.access.address), made)
    return any(isinstance(source, Phi) for source in followed) and not any(
        isinstance(source, Op) and source.accesses for source in followed
    )


def _needed(ops: list[Op], address: Reg) -> list[Op]:
    """Those of some ops from which an address follows."""
    wanted, found = {address}, []
    for op in reversed(ops):
        if wanted.intersection(op.dsts):
            found.append(op)
            wanted.update(reads(op))
    return found[::-1]


def first_of(together: list[Lead]) -> Op:
    """The load of the index that lies before the others."""
    return min((lead.index for lead in together), key=lambda op: op.access.address.offset)


def room(together: list[Lead]) -> tuple[int, int]:
    """Bytes from the first index of some to the end of what is read ahead of the last one, and their alignment."""
    first = first_of(together)
    size = first.access.bytes
    assert size is not None
    return max(_distance(first, lead.index) for lead in together) + (AHEAD + 1) * size, size


def limited(ctx: Context, together: list[Lead]) -> Reach | None:
    """Where indexes are read ahead, if it is known how far their array reaches: nowhere if what they lead to is cached."""
    base = first_of(together).access.address.base
    assert isinstance(base, Reg)
    if (reach := ctx.reaches.get(base)) is None:
        return None
    places = ctx.scalar.select(_far(ctx, together), "i64", reach.places[room(together)], "0")
    one = ctx.inst(f'call i64 asm "", "=r,0"(i64 {places})')  # LLVM would make two comparisons of it in each trip
    return replace(reach, places={room(together): one})


def ask(ctx: Context, together: list[Lead], limits: Reach | None, lower: Callable[[Context, Op], None]) -> None:
    """Ask for what lies ahead of some accesses, whose indexes have just been loaded, up to ``limits`` or the end of a page."""
    first = first_of(together)
    if limits is None:
        ctx.when(_far(ctx, together), lambda: _ask_if(ctx, together, _in_page(ctx, together), lower), None, [])
    else:
        _ask_if(ctx, together, covers(ctx, limits, access(ctx, first, "a").base, *room(together)), lower)


def _in_page(ctx: Context, together: list[Lead]) -> str:
    """i1: what is read ahead is in the page of the first index."""
    inside = ctx.scalar.bin("and", "i64", access(ctx, first_of(together), "a").base, str(PAGE - 1))
    return ctx.scalar.icmp("ule", "i64", inside, str(PAGE - room(together)[0]))


def _ask_if(ctx: Context, together: list[Lead], there: str, lower: Callable[[Context, Op], None]) -> list[str]:
    first = first_of(together)
    found = access(ctx, first, "a")

    def each() -> list[str]:
        for lead in together:
            ahead = _distance(first, lead.index) + AHEAD * room(together)[1]
            _ask(ctx, lead, ctx.scalar.bin("add", "i64", found.base, str(ahead)), lower)
        return []

    was_read = unseen(ctx, [found])  # as nobody has left out the lane
    ctx.when(ctx.scalar.conjunction([there, *was_read]), each, None, [], likely=True)
    return []


def _far(ctx: Context, together: list[Lead]) -> str:
    """i1: some of the words may be outside of the second cache, as far as it is known how far their arrays reach."""
    found = "false"
    for base in dict.fromkeys(lead.target.access.address.base for lead in together):
        if base not in ctx.reaches:
            return "true"
        far = ctx.scalar.icmp("ugt", "i64", ctx.reaches[base].bytes, ctx.field("cached"))
        found = ctx.scalar.bin("or", "i1", found, far)
    return found


def _distance(first: Op, op: Op) -> int:
    return int(op.access.address.offset - first.access.address.offset)


def _ask(ctx: Context, lead: Lead, address: str, lower: Callable[[Context, Op], None]) -> None:
    """Read the index at an address, make an address of it as of the one that was read before, and ask for what is there."""
    kind = lead.index.dst_types[0]
    place = ctx.inst(f"inttoptr i64 {address} to ptr")
    ctx.define(lead.index, 0, ctx.inst(f"load {kind.llvm}, ptr {place}, align {kind.bytes}"))
    for op in lead.ops:
        lower(ctx, op)
    target = ctx.inst(f"inttoptr i64 {access(ctx, lead.target, 'a').base} to ptr")
    prefetch.ask(ctx, target)
