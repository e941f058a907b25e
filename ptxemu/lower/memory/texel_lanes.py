"""Texels of a warp that lie anywhere in one surface: vector instructions for the lanes, after one test.

The handle is uniform. Coordinates are compared with the view of the surface, all lanes at once; offsets from its first texel take
32 bits, as larger surfaces are left to the runtime (``near_row`` of ``pe_surface_view``).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.geometry import AXES, GEOMETRIES, LAYER
from ptxemu.ir.observed import tells_texels
from ptxemu.ir.ops import Op, items_of
from ptxemu.ir.types import B32
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import gather, scatter
from ptxemu.lower.memory import consecutive, surface_view
from ptxemu.lower.memory.surface_view import EXTENTS, PLAIN, STRIDES

NEAR = EXTENTS | {"x": "near_row"}


class Texels(Struct, frozen=True):
    """Those of one instruction, if it is ``ready``, an i1: lanes of ``mask`` have texels, at ``offsets``, a vector of
    i32, from ``base``, an i64; other lanes have none."""

    ready: str
    mask: str
    base: str
    offsets: str

    def addresses(self, ctx: Context) -> str:
        """Vector of i64."""
        return ctx.vector.bin("add", "i64", _wide(ctx, self), ctx.splat("i64", self.base))


def _wide(ctx: Context, texels: Texels) -> str:
    return ctx.vector.cast("zext", "i32", texels.offsets, "i64")


def texels_of(ctx: Context, op: Op, handle: str | None, size: int) -> Texels | None:
    """The texels of an access of ``size`` bytes a lane, whose x counts bytes, or None: it goes to the runtime."""
    geometry = op.mods["geom"]
    if handle is None or ctx.unit.observed == "all" or tells_texels(ctx.unit.observed) or geometry not in PLAIN:
        return None
    view = surface_view.address(ctx, geometry, handle, plain=True)
    items = items_of(op["coordinates"])
    places = {letter: GEOMETRIES[geometry].place(letter) for letter in (*AXES, LAYER)}
    lanes = {letter: ctx.vector_of(items[place], B32) for letter, place in places.items() if place is not None}
    mask = on = ctx.mask_of(op)
    for letter, coordinates in lanes.items():
        room = ctx.splat("i32", _room(ctx, view, letter, size))
        mask = ctx.conjunction(mask, ctx.vector.icmp("ult", "i32", coordinates, room))
    ready = [_is_settled(ctx, op, view, on, mask), *([_are_aligned(ctx, on, lanes["x"], size)] if size > 1 else [])]
    return Texels(ctx.scalar.conjunction(ready), mask, surface_view.field(ctx, view, "base"), _offsets(ctx, view, lanes))


def _room(ctx: Context, view: str, letter: str, size: int) -> str:
    """i32: below this number, a coordinate is inside."""
    extent = surface_view.field(ctx, view, NEAR[letter])
    less = ctx.scalar.intrinsic("usub.sat", "i64", extent, str(size - 1)) if letter == "x" and size > 1 else extent
    return ctx.scalar.cast("trunc", "i64", less, "i32")


def _is_settled(ctx: Context, op: Op, view: str, on: str, inside: str) -> str:
    """i1: lanes outside have nothing, and there is a surface, or no lane is outside."""
    if op.mods.get("clamp", "trap") == "zero":
        return ctx.scalar.icmp("ne", "i64", surface_view.field(ctx, view, NEAR["x"]), "0")
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(inside), ctx.bits_of(on))


def _are_aligned(ctx: Context, on: str, x: str, size: int) -> str:
    """i1: all lanes that are on."""
    low = ctx.vector.bin("and", "i32", x, ctx.vector.int(32, size - 1))
    astray = ctx.conjunction(on, ctx.vector.icmp("ne", "i32", low, ctx.vector.int(32, 0)))
    return ctx.scalar.bin("xor", "i1", ctx.any(astray), "true")


def _offsets(ctx: Context, view: str, lanes: dict[str, str]) -> str:
    """Of all lanes, those without texels too; what these wrap to is not used."""
    sum = lanes["x"]
    for letter, name in STRIDES.items():
        if letter in lanes:
            stride = ctx.splat("i32", ctx.scalar.cast("trunc", "i64", surface_view.field(ctx, view, name), "i32"))
            sum = ctx.vector.bin("add", "i32", sum, ctx.vector.bin("mul", "i32", lanes[letter], stride))
    return sum


def load(ctx: Context, texels: Texels, bits: str, count: int) -> list[str]:
    """``count`` integers of every lane; zeros where there is no texel."""
    word, words = consecutive.words_of(bits, count)
    size, offsets = int(word[1:]) // 8, _wide(ctx, texels)
    found = [gather(ctx, word, offsets, index * size, texels.mask, start=texels.base) for index in range(words)]
    return consecutive.split(ctx, found, word, bits)


def store(ctx: Context, texels: Texels, bits: str, values: Sequence[str]) -> list[str]:
    """Integers of every lane that has a texel; the highest lane of a texel is the last."""
    word, _ = consecutive.words_of(bits, len(values))
    size, offsets = int(word[1:]) // 8, _wide(ctx, texels)
    for index, value in enumerate(consecutive.merged(ctx, values, bits, word)):
        scatter(ctx, word, offsets, index * size, value, texels.mask, start=texels.base)
    return []
