"""The comparisons of integers by which programs branch."""

from __future__ import annotations

from ptxemu.ir.ops import Op

ORDERS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge", **{name: name for name in ("lt", "le", "gt", "ge")}}
INVERSE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def compares_two(op: Op) -> bool:
    """Whether an op has one predicate for a result, of a comparison of two values alone."""
    return "cmp" in op.mods and len(op.srcs) == 2 and len(op.dsts) == 1


def takes_both(op: Op, value: bool) -> bool:
    """Whether a predicate made of two others has this value only if both of them have it."""
    return f"absorbs:{1 - value}" in op.row.traits
