"""Gathers and scatters.

LLVM's intrinsics are used only where the CPU makes them cheap to compile and run (DESIGN section 3); elsewhere one small
out-of-line loop over the active lanes for each element size.
"""

from __future__ import annotations

from ptxemu.lower.context import MASK, WORD, Context
from ptxemu.variant import LANES

POINTERS = f"<{LANES} x ptr>"


def gather(ctx: Context, bits: str, addresses: str, offset: int, mask: str, *, rare: bool = False) -> str:
    """One ``bits``-wide integer of every active lane from host addresses + ``offset``; zero in the other lanes.

    ``rare`` keeps the code out of line whatever the CPU.
    """
    if offset:
        addresses = ctx.vector.bin("add", "i64", addresses, ctx.vector.int(64, offset))
    whole = f"<{LANES} x {bits}>"
    if ctx.target.gathers(int(bits[1:])) and not rare:
        name = f"llvm.masked.gather.v{LANES}{bits}.v{LANES}p0"
        ctx.declare(name, f"declare {whole} @{name}({POINTERS}, {MASK}, {whole})")
        pointers = ctx.inst(f"inttoptr {WORD} {addresses} to {POINTERS}")
        align = int(bits[1:]) // 8
        return ctx.inst(f"call {whole} @{name}({POINTERS} align {align} {pointers}, {MASK} {mask}, {whole} zeroinitializer)")
    name = _helper(ctx, "gather", bits)
    out = ctx.alloca(whole)
    ctx.stmt(f"call void @{name}(ptr {ctx.spill('i64', addresses)}, i{LANES} {ctx.bits_of(mask)}, ptr {out})")
    return ctx.inst(f"load {whole}, ptr {out}, align 64")


def scatter(ctx: Context, bits: str, addresses: str, offset: int, value: str, mask: str, *, rare: bool = False) -> None:
    """Store one element of every active lane, in ascending lane order."""
    if offset:
        addresses = ctx.vector.bin("add", "i64", addresses, ctx.vector.int(64, offset))
    whole = f"<{LANES} x {bits}>"
    if ctx.target.gathers(int(bits[1:])) and not rare:
        name = f"llvm.masked.scatter.v{LANES}{bits}.v{LANES}p0"
        ctx.declare(name, f"declare void @{name}({whole}, {POINTERS}, {MASK})")
        pointers = ctx.inst(f"inttoptr {WORD} {addresses} to {POINTERS}")
        align = int(bits[1:]) // 8
        ctx.stmt(f"call void @{name}({whole} {value}, {POINTERS} align {align} {pointers}, {MASK} {mask})")
        return
    name = _helper(ctx, "scatter", bits)
    slot = ctx.spill(bits, value)
    ctx.stmt(f"call void @{name}(ptr {ctx.spill('i64', addresses)}, i{LANES} {ctx.bits_of(mask)}, ptr {slot})")


def _helper(ctx: Context, kind: str, bits: str) -> str:
    """Define the lane loop for one element size: ``void f(addresses, mask, values)``."""
    name = f"lanes.{kind}.{bits}"
    if name not in ctx.helpers:
        align = max(1, int(bits[1:]) // 8)
        source, target = ("%at", "%slot") if kind == "gather" else ("%slot", "%at")
        clear = f"  store <{LANES} x {bits}> zeroinitializer, ptr %values, align 64\n" if kind == "gather" else ""
        ctx.declare("llvm.cttz.i32", "declare i32 @llvm.cttz.i32(i32, i1)")
        ctx.helpers[name] = f"""define internal void @{name}(ptr %addresses, i32 %mask, ptr %values) noinline nounwind {{
entry:
{clear}  %some = icmp ne i32 %mask, 0
  br i1 %some, label %loop, label %done
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %loop ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %index = zext i32 %lane to i64
  %from = getelementptr i64, ptr %addresses, i64 %index
  %address = load i64, ptr %from, align 8
  %at = inttoptr i64 %address to ptr
  %slot = getelementptr {bits}, ptr %values, i64 %index
  %value = load {bits}, ptr {source}, align {align}
  store {bits} %value, ptr {target}, align {align}
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %loop, label %done
done:
  ret void
}}"""
    return name
