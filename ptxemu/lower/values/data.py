"""``mov`` of values, and its packing and unpacking forms (PTX ISA 9.7.9)."""

from __future__ import annotations

from ptxemu.ir.ops import Op, Vec
from ptxemu.lower.core.emit import Emitter, elementwise
from ptxemu.lower.core.float_bits import width


@elementwise("mov")
def move(e: Emitter, op: Op, *xs: str) -> str | tuple[str, ...]:
    """``mov d, a``; ``mov d, {a, b ...}`` packs and ``mov {d, e ...}, a`` unpacks, first element lowest.

    The elements of a vector source arrive as separate sources of the integer type of their share of the register.
    """
    container = op.type().llvm
    if isinstance(op["a"], Vec):
        return _pack(e, container, xs)
    if len(op.dsts) > 1:
        return _unpack(e, op, container, xs[0])
    return xs[0]


@elementwise("mov.vector")
def move_vector(e: Emitter, op: Op, *xs: str) -> tuple[str, ...]:
    """``mov.v2 {d, e}, {a, b}``: element by element."""
    return xs


def _pack(e: Emitter, container: str, xs: tuple[str, ...]) -> str:
    size = width(container) // len(xs)
    result = ""
    for i, x in enumerate(xs):
        part = e.cast("zext", f"i{size}", x, container)
        if i:
            part = e.bin("shl", container, part, e.splat(container, str(i * size)))
        result = e.bin("or", container, result, part) if result else part
    return result


def _unpack(e: Emitter, op: Op, container: str, x: str) -> tuple[str, ...]:
    size = width(container) // len(op.dsts)
    parts = []
    for i, kind in enumerate(op.dst_types):
        part = e.bin("lshr", container, x, e.splat(container, str(i * size))) if i else x
        part = e.cast("trunc", container, part, f"i{size}")
        parts.append(e.cast("bitcast", f"i{size}", part, kind.llvm))
    return tuple(parts)
