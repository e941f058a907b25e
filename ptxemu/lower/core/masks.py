"""Masks of lanes that come as the bits of an i32."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.core.target import Target

if TYPE_CHECKING:
    from ptxemu.lower.core.context import Context

BYTES = f"<{LANES} x i8>"
WORDS = LANES // 4


def expanded(target: Target, inst: Callable[[str], str], bits: str) -> str:
    """Bits as a mask. Where masks are no registers of their own, LLVM takes such a vector apart, lane by lane, so each lane tests
    its bit in a copy of the byte that has it; ``inst`` emits an instruction and returns its name."""
    if target.avx512:
        return inst(f"bitcast i{LANES} {bits} to <{LANES} x i1>")
    words = f"<{WORDS} x i{LANES}>"
    first = inst(f"insertelement {words} poison, i{LANES} {bits}, i64 0")
    everywhere = inst(f"shufflevector {words} {first}, {words} poison, <{WORDS} x i32> zeroinitializer")
    near = vector_literal("i32", [lane // 16 * 16 + lane // 8 for lane in range(LANES)])  # in the same half of a register
    copies = inst(f"bitcast {words} {everywhere} to {BYTES}")
    own = inst(f"shufflevector {BYTES} {copies}, {BYTES} poison, <{LANES} x i32> {near}")
    wanted = vector_literal("i8", [1 << lane % 8 for lane in range(LANES)])
    tested = inst(f"and {BYTES} {own}, {wanted}")
    return inst(f"icmp eq {BYTES} {tested}, {wanted}")


def first_lane(ctx: Context) -> str:
    """i32: the first of the lanes that are on, of which there is one."""
    return ctx.scalar.intrinsic("cttz", f"i{LANES}", ctx.bits_of(ctx.active), extra="i1 true")
