"""Masks of lanes, and the bits of an i32 that say the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.core.parts import part
from ptxemu.lower.core.target import Target

if TYPE_CHECKING:
    from ptxemu.lower.core.context import Context

BYTES = f"<{LANES} x i8>"
WORDS = LANES // 4
MASK = f"<{LANES} x i1>"
REGISTER = 256  # bits of AVX2
PACKS = {32: "packssdw", 16: "packsswb"}  # what packs elements, by their bits


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


def bits_of(ctx: Context, mask: str) -> str:
    """A mask as an i32."""
    if mask in ctx.conjunctions:
        whole, cond = ctx.conjunctions[mask]
        frozen = ctx.inst(f"freeze {MASK} {cond}")  # it may be poison in lanes that are off
        return ctx.scalar.bin("and", f"i{LANES}", ctx.bits_of(whole), _packed(ctx, frozen, ctx.compared[cond]))
    if mask in ctx.compared:
        return _packed(ctx, mask, ctx.compared[mask])
    return ctx.inst(f"bitcast {MASK} {mask} to i{LANES}")


def _packed(ctx: Context, mask: str, width: int) -> str:
    """The bits of a comparison of elements of ``width`` bits.

    The instructions that pack two registers take a half of each in turns. LLVM puts their results in order each time, which takes
    several cycles; here that is done in the end.
    """
    count = REGISTER // width  # lanes of a register
    wide = ctx.inst(f"sext {MASK} {mask} to {ctx.vector.ty(f'i{width}')}")
    registers = [part(ctx.vector, f"i{width}", wide, first, count) for first in range(0, LANES, count)]
    orders = [list(range(first, first + count)) for first in range(0, LANES, count)]
    kind = f"<{count} x i{width}>"
    while len(registers) > 1:
        elements = min(32, REGISTER // len(orders[0]))  # of 64 bits, both halves say the same
        registers = [_pack(ctx, kind, elements, *pair) for pair in zip(registers[::2], registers[1::2])]
        orders = [_packed_order(*pair) for pair in zip(orders[::2], orders[1::2])]
        kind = f"<{2 * REGISTER // elements} x i{elements // 2}>"
    return _signs(ctx, registers[0], orders[0])


def _pack(ctx: Context, kind: str, elements: int, a: str, b: str) -> str:
    """Two registers of elements of so many bits as one of half as many."""
    source, packed = f"<{REGISTER // elements} x i{elements}>", f"<{2 * REGISTER // elements} x i{elements // 2}>"
    name = f"llvm.x86.avx2.{PACKS[elements]}"
    ctx.declare(name, f"declare {packed} @{name}({source}, {source})")
    both = (ctx.inst(f"bitcast {kind} {x} to {source}") for x in (a, b))
    return ctx.inst(f"call {packed} @{name}({', '.join(f'{source} {x}' for x in both)})")


def _packed_order(a: list[int], b: list[int]) -> list[int]:
    half = len(a) // 2
    return [*a[:half], *b[:half], *a[half:], *b[half:]]


def _signs(ctx: Context, bytes: str, order: list[int]) -> str:
    """The bits of a register that has a byte of each lane, in some order: a few lanes side by side stay together."""
    together = 4 if order[3] == order[0] + 3 else 2
    count = LANES // together
    units = f"<{count} x i{8 * together}>"
    places = ", ".join(f"i32 {order.index(lane) // together}" for lane in range(0, LANES, together))
    moved = ctx.inst(f"bitcast {BYTES} {bytes} to {units}")
    moved = ctx.inst(f"shufflevector {units} {moved}, {units} poison, <{count} x i32> <{places}>")
    moved = ctx.inst(f"bitcast {units} {moved} to {BYTES}")
    return ctx.inst(f"bitcast {MASK} {ctx.inst(f'icmp slt {BYTES} {moved}, zeroinitializer')} to i{LANES}")


def deposited(ctx: Context, mask: str, first: int, places: int) -> str:
    """An i64 whose bits at ``places`` are those of a mask from lane ``first`` on, where the CPU can do that at once."""
    bits = ctx.scalar.cast("zext", f"i{LANES}", ctx.bits_of(mask), "i64")
    rest = ctx.scalar.bin("lshr", "i64", bits, str(first)) if first else bits
    ctx.declare("llvm.x86.bmi.pdep.64", "declare i64 @llvm.x86.bmi.pdep.64(i64, i64)")
    return ctx.inst(f"call i64 @llvm.x86.bmi.pdep.64(i64 {rest}, i64 {places})")
