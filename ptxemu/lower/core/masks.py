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


def expanded(target: Target, inst: Callable[[str], str], bits: str, width: int = 8) -> str:
    """Bits as a mask of elements of ``width`` bits. ``inst`` emits an instruction and returns its name."""
    if target.avx512:
        return inst(f"bitcast i{LANES} {bits} to <{LANES} x i1>")
    return _by_signs(inst, bits, width) if width >= LANES else _by_bytes(inst, bits)


def _by_signs(inst: Callable[[str], str], bits: str, width: int) -> str:
    """Each lane has all bits, and moves its own to the place of the sign, which is what tells masked instructions."""
    kind = f"<{LANES} x i{width}>"
    wide = bits if width == LANES else inst(f"zext i{LANES} {bits} to i{width}")
    first = inst(f"insertelement {kind} poison, i{width} {wide}, i64 0")
    everywhere = inst(f"shufflevector {kind} {first}, {kind} poison, <{LANES} x i32> zeroinitializer")
    moved = inst(f"shl {kind} {everywhere}, {vector_literal(f'i{width}', [width - 1 - lane for lane in range(LANES)])}")
    return inst(f"icmp slt {kind} {moved}, zeroinitializer")


def _by_bytes(inst: Callable[[str], str], bits: str) -> str:
    """LLVM takes such a vector apart, lane by lane, so each lane tests its bit in a copy of the byte that has it."""
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
