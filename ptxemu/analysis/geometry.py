"""What a block's variant says about ``%tid``."""

from __future__ import annotations

from ptxemu.analysis.shape import Shape, uniform
from ptxemu.ir.block_shape import LANES, ONE_WARP


def tid_shape(variant: str, axis: str) -> Shape | None:
    """The shape of ``%tid.x/y/z`` under a variant."""
    lanes = range(LANES)
    if variant in ("row", ONE_WARP):
        return Shape(tuple(lanes), 5, 1023) if axis == "x" else uniform(LANES, 0, 1023)
    if variant.startswith("x"):
        width = int(variant[1:])
        if axis == "x":
            return Shape(tuple(lane % width for lane in lanes), 64, width - 1)
        if axis == "y":
            rows = LANES // width
            return Shape(tuple(lane // width for lane in lanes), rows.bit_length() - 1, 1023)
        return uniform(LANES, 0, 63)
    return None
