"""Loads from places that are expected to lie side by side, and lie in two pieces: where a loop has been unrolled, some lanes of a
warp have had a trip more of its rest than others, and are that far behind from then on."""

from __future__ import annotations

from functools import partial

from ptxemu.analysis.runs import Runs
from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.access import Access
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.prefetch import LINE, ask
from ptxemu.lower.core.runs import Pieces, inside
from ptxemu.lower.memory import runs
from ptxemu.lower.memory.patterns import Made


def serves(ctx: Context, found: Access, formed: Runs, count: int, bits: int) -> bool:
    """Whether a load that is expected to form one run may have two pieces."""
    if found.grouped or found.space == "shared" or count > 1:
        return False
    return formed.width == LANES and formed.step > 0 and ctx.target.masked(bits, count)


def load(ctx: Context, found: Access, formed: Runs, pieces: Pieces, start: str, bits: str, otherwise: Made) -> list[str]:
    """An element of each lane that is on; ``start``: where the run that has the lane in the middle begins."""
    on = ctx.bits_of(found.mask)
    lanes = [ctx.scalar.bin("and", f"i{LANES}", piece, on) for piece in (pieces.first, pieces.second)]
    whole = ctx.scalar.icmp("eq", f"i{LANES}", ctx.scalar.bin("or", f"i{LANES}", *lanes), on)
    none = ctx.scalar.icmp("eq", f"i{LANES}", lanes[0], "0")  # what is there may be out of reach, which takes time
    starts = [ctx.scalar.select(none, "i64", pieces.start, start), pieces.start]
    test = ctx.scalar.conjunction([whole, *inside(ctx, found, formed, starts)])

    def both(pointers: list[str]) -> list[str]:
        for pointer in pointers if not pieces.moved else ():  # of a tile: the next block reads what lies behind
            ask(ctx, pointer, range(LANES * found.size, 2 * LANES * found.size, LINE))
        masks = (ctx.mask_from_bits(piece, int(bits[1:])) for piece in lanes)
        first, second = (runs.load(ctx, bits, 1, formed, [at], found.volatile, mask) for at, mask in zip(pointers, masks))
        return [ctx.vector.bin("or", bits, first[0], second[0])]

    in_pieces = partial(runs.through, ctx, found, starts, both)
    return ctx.when(test, in_pieces, otherwise, [f"<{LANES} x {bits}>"], likely=True)
