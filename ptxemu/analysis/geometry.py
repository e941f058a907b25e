"""Block shapes: what the launch's block says about ``tid``, as compile variants."""

from __future__ import annotations

from ptxemu.analysis.shape import Shape, uniform

LANES = 32
NARROW = (1, 2, 4, 8, 16)


def variant_of(block: tuple[int, int, int]) -> str:
    """The variant of a block: ``row`` (a warp lies in one row), ``x<n>`` (rows of n lanes, n < 32) or ``any``."""
    x, y, z = block
    if (y == 1 and z == 1) or x % LANES == 0:
        return "row"
    if x in NARROW and (z == 1 or (x * y) % LANES == 0):
        return f"x{x}"
    return "any"


def tid_shape(variant: str, axis: str) -> Shape | None:
    """The shape of ``%tid.x/y/z`` under a variant."""
    lanes = range(LANES)
    if variant == "row":
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
