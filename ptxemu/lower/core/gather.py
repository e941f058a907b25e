"""Gathers and scatters.

LLVM's intrinsics are used only where the CPU makes them cheap to compile and run; elsewhere the runtime goes over the active
lanes (csrc/memory/lanes.c).
"""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.context import MASK, WORD, Context

POINTERS = f"<{LANES} x ptr>"


def gather(ctx: Context, bits: str, addresses: str, offset: int, mask: str, *, start: str = "0", rare: bool = False) -> str:
    """One ``bits``-wide integer of every active lane from host addresses + ``offset``; zero in the other lanes.

    With a ``start``, an i64, addresses are offsets from there, less than 2**31: one instruction takes twice as many of these as
    of whole addresses. ``rare`` keeps the code out of line whatever the CPU.
    """
    whole = f"<{LANES} x {bits}>"
    if ctx.target.gathers(int(bits[1:])) and not rare:
        name = f"llvm.masked.gather.v{LANES}{bits}.v{LANES}p0"
        ctx.declare(name, f"declare {whole} @{name}({POINTERS}, {MASK}, {whole})")
        pointers = _pointers(ctx, addresses, offset, start)
        align = int(bits[1:]) // 8
        return ctx.inst(f"call {whole} @{name}({POINTERS} align {align} {pointers}, {MASK} {mask}, {whole} zeroinitializer)")
    return gather_stored(ctx, bits, ctx.in_memory("i64", addresses), sum_of(ctx, start, offset), mask)


def _pointers(ctx: Context, addresses: str, offset: int, start: str) -> str:
    """To where the lanes' elements are, in the form that LLVM makes the best instruction of."""
    if start != "0":
        first = ctx.inst(f"inttoptr i64 {sum_of(ctx, start, offset)} to ptr")
        index = ctx.vector.cast("trunc", "i64", addresses, "i32")
        return ctx.inst(f"getelementptr i8, ptr {first}, <{LANES} x i32> {index}")
    if offset:
        addresses = ctx.vector.bin("add", "i64", addresses, ctx.vector.int(64, offset))
    return ctx.inst(f"inttoptr {WORD} {addresses} to {POINTERS}")


def gather_stored(ctx: Context, bits: str, addresses: str, plus: str, mask: str) -> str:
    """The same out of line, from addresses that are in memory; ``plus``, an i64, is added to each."""
    whole = f"<{LANES} x {bits}>"
    out = ctx.temporary(whole)
    lane_by_lane(ctx, "gather", bits, addresses, plus, mask, out)
    return ctx.inst(f"load {whole}, ptr {out}, align 64")


def scatter(
    ctx: Context, bits: str, addresses: str, offset: int, value: str, mask: str, *, start: str = "0", rare: bool = False
) -> None:
    """Store one element of every active lane, in ascending lane order; the places are those of :func:`gather`."""
    if ctx.target.gathers(int(bits[1:])) and not rare:
        whole = f"<{LANES} x {bits}>"
        name = f"llvm.masked.scatter.v{LANES}{bits}.v{LANES}p0"
        ctx.declare(name, f"declare void @{name}({whole}, {POINTERS}, {MASK})")
        pointers = _pointers(ctx, addresses, offset, start)
        align = int(bits[1:]) // 8
        ctx.stmt(f"call void @{name}({whole} {value}, {POINTERS} align {align} {pointers}, {MASK} {mask})")
        return
    scatter_stored(ctx, bits, ctx.in_memory("i64", addresses), sum_of(ctx, start, offset), value, mask)


def scatter_stored(ctx: Context, bits: str, addresses: str, plus: str, value: str, mask: str) -> None:
    """The same out of line, to addresses that are in memory; ``plus``, an i64, is added to each."""
    lane_by_lane(ctx, "scatter", bits, addresses, plus, mask, ctx.in_memory(bits, value))


def lane_by_lane(ctx: Context, kind: str, bits: str, addresses: str, plus: str, mask: str, values: str) -> None:
    """A gather or scatter out of line (csrc/memory/lanes.h), with the values in memory too: a pointer to one for each lane."""
    name = f"pe_{kind}_{bits[1:]}"
    ctx.call("void", name, ("ptr", addresses), ("i64", plus), (f"i{LANES}", ctx.bits_of(mask)), ("ptr", values))


def sum_of(ctx: Context, start: str, offset: int) -> str:
    """An i64 plus a constant."""
    if start == "0" or not offset:
        return str(offset) if start == "0" else start
    return ctx.scalar.bin("add", "i64", start, str(offset))


def outside(ctx: Context, addresses: str, base: str, limit: str, shift: int) -> str:
    """i32: the lanes whose address is not one of the ``limit`` multiples of ``2**shift`` from ``base`` on.

    Rotating right by ``shift`` makes a misaligned offset huge, so one compare tests alignment and range.  Where 32 addresses
    take many registers, the test is out of line: it would be most of the code around a gather.
    """
    if not ctx.target.avx512:
        test = _test_helper(ctx, shift)
        return ctx.inst(f"call i{LANES} @{test}(ptr {ctx.in_memory('i64', addresses)}, i64 {base}, i64 {limit})")
    offsets = addresses if base == "0" else ctx.vector.bin("sub", "i64", addresses, ctx.splat("i64", base))
    return beyond(ctx, "i64", offsets, limit, shift)


def beyond(ctx: Context, kind: str, offsets: str, limit: str, shift: int) -> str:
    """i32: the lanes whose offset is not one of the first ``limit`` multiples of ``2**shift``."""
    if shift:
        offsets = ctx.vector.intrinsic("fshr", kind, offsets, offsets, ctx.vector.int(int(kind[1:]), shift))
    return ctx.inst(f"bitcast {MASK} {ctx.vector.icmp('uge', kind, offsets, ctx.splat(kind, limit))} to i{LANES}")


def _test_helper(ctx: Context, shift: int) -> str:
    """Define ``i32 f(addresses, base, limit)`` for :func:`outside`."""
    name = f"lanes.outside.{shift}"
    if name not in ctx.helpers:
        rotate = f"llvm.fshr.v{LANES}i64"
        ctx.declare(rotate, f"declare {WORD} @{rotate}({WORD}, {WORD}, {WORD})")

        def everywhere(value: str) -> str:
            return f"""  %{value}.first = insertelement {WORD} poison, i64 %{value}, i64 0
  %{value}.all = shufflevector {WORD} %{value}.first, {WORD} poison, <{LANES} x i32> zeroinitializer"""

        ctx.helpers[name] = f"""define internal i{LANES} @{name}(ptr %addresses, i64 %base, i64 %limit) noinline nounwind {{
  %at = load {WORD}, ptr %addresses, align 64
{everywhere("base")}
{everywhere("limit")}
  %offset = sub {WORD} %at, %base.all
  %unit = call {WORD} @{rotate}({WORD} %offset, {WORD} %offset, {WORD} splat (i64 {shift}))
  %bad = icmp uge {WORD} %unit, %limit.all
  %bits = bitcast <{LANES} x i1> %bad to i{LANES}
  ret i{LANES} %bits
}}"""
    return name
