"""What a block's variant says about special registers that tell where a thread is."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.analysis.shape import Shape, constant, trailing_zeros, uniform
from ptxemu.ir.block_shape import LANES, ONE_WARP, SPREAD, is_full, is_spread, kind_of

MOST_THREADS = {"x": lib.PE_MAX_BLOCK_XY, "y": lib.PE_MAX_BLOCK_XY, "z": lib.PE_MAX_BLOCK_Z}
MOST_BLOCKS = {"x": lib.PE_MAX_GRID_X, "y": lib.PE_MAX_GRID_YZ, "z": lib.PE_MAX_GRID_YZ}


def tid_shape(variant: str, axis: str) -> Shape | None:
    """The shape of ``%tid.x/y/z`` under a variant."""
    kind, most = kind_of(variant).removeprefix(SPREAD), MOST_THREADS[axis] - 1
    lanes = range(LANES)
    if kind == ONE_WARP:
        return Shape(tuple(lanes), 64, LANES - 1) if axis == "x" else constant(LANES, 0)
    if kind == "row":
        return Shape(tuple(lanes), 5, most) if axis == "x" else uniform(LANES, 0, most)
    if (width := _width(kind)) is None:
        return None
    if axis == "x":
        return Shape(tuple(lane % width for lane in lanes), 64, width - 1)
    if axis == "y":
        return Shape(tuple(lane // width for lane in lanes), trailing_zeros(LANES // width), most)
    return uniform(LANES, 0, most)


def ntid_shape(variant: str, axis: str) -> Shape:
    """The shape of ``%ntid.x/y/z``: in blocks of full warps, as many threads as fill these."""
    kind, full = kind_of(variant), is_full(variant)
    if is_spread(variant):
        return uniform(LANES, 0, MOST_THREADS[axis])
    width = _width(kind)
    if width is not None and axis == "x":
        return constant(LANES, width)
    if kind == ONE_WARP and (full or axis != "x"):
        return constant(LANES, LANES if axis == "x" else 1)
    zeros = 0
    if full and kind == "row" and axis == "x":
        zeros = trailing_zeros(LANES)
    if full and width is not None and axis == "y":
        zeros = trailing_zeros(LANES // width)
    return uniform(LANES, zeros, MOST_THREADS[axis])


def blocks_shape(variant: str, axis: str) -> Shape:
    """The shape of ``%ctaid.x/y/z`` and ``%nctaid.x/y/z``, which are uniform and have bounds."""
    few = is_full(variant) and axis == "x"
    return uniform(LANES, 0, lib.PE_FEW_BLOCKS - 1 if few else MOST_BLOCKS[axis])


def _width(kind: str) -> int | None:
    """Of the rows of a block that are narrower than a warp."""
    return int(kind[1:]) if kind.startswith("x") else None
