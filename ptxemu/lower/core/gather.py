"""Gathers and scatters.

Instructions are used only where the CPU makes them cheap to compile and run: those of AVX-512, and those of AVX2 that load from
places near each other.  Elsewhere code goes over all lanes (:mod:`ptxemu.lower.core.each_lane`), or, where an access is rare or
few are on, the runtime over these (csrc/memory/lanes.c).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core import each_lane
from ptxemu.lower.core.context import MASK, WORD, Context
from ptxemu.lower.core.literals import offsets_literal

WORDS = (8, 16, 32, 64)  # bits of what is loaded lane by lane in registers
POINTERS = f"<{LANES} x ptr>"
HALF = LANES // 2


def gather(ctx: Context, bits: str, addresses: str, offset: int, mask: str, *, start: str = "0", rare: bool = False) -> str:
    """One ``bits``-wide integer of every active lane from host addresses + ``offset``; zero in the other lanes.

    With a ``start``, an i64, addresses are offsets from there, less than 2**31: one instruction takes twice as many of these as
    of whole addresses. ``rare`` keeps the code out of line whatever the CPU.
    """
    near, size = start != "0", int(bits[1:])
    fast = ctx.target.gathers_near(size) if near else ctx.target.gathers(size)
    if rare or not (fast or size in WORDS):
        return gather_stored(ctx, bits, ctx.in_memory("i64", addresses), sum_of(ctx, start, offset), mask)
    if not fast:
        return each_lane.load(ctx, bits, addresses, sum_of(ctx, start, offset), mask, near=near)
    if not near:
        pointers = _pointers(ctx, addresses, offset)
        return _in_halves(
            ctx, bits, mask, lambda lanes, on: _gathered(ctx, bits, len(lanes), _part(ctx, "ptr", pointers, lanes), on)
        )
    return gather_near(ctx, bits, _pointer(ctx, sum_of(ctx, start, offset)), _narrow(ctx, addresses), mask)


def gather_unaligned(ctx: Context, bits: str, addresses: str, mask: str) -> str:
    """One integer of every active lane from host addresses, whatever their alignment; zero in the other lanes, of which there are
    none on targets that do not gather elements of that size."""
    if not ctx.target.gathers(int(bits[1:])):
        return each_lane.load(ctx, bits, addresses, "0", mask)
    return _gathered(ctx, bits, LANES, _pointers(ctx, addresses, 0), mask, align=1)


def gather_near(ctx: Context, bits: str, pointer: str, offsets: str, mask: str) -> str:
    """One integer of every active lane, at offsets, a vector of i32, from a host pointer; zero in the other lanes."""

    def load(lanes: range, on: str) -> str:
        return _gathered_near(ctx, bits, len(lanes), pointer, _part(ctx, "i32", offsets, lanes), on)

    return _in_halves(ctx, bits, mask, load)


def _in_halves(ctx: Context, bits: str, mask: str, gathered: Callable[[range, str], str]) -> str:
    """What is gathered for some lanes and their mask, for all lanes."""

    def load(lanes: range) -> list[str]:
        found, few = gathered(lanes, _part(ctx, "i1", mask, lanes)), f"<{len(lanes)} x {bits}>"
        return [found if len(lanes) == HALF else _shuffled(ctx, few, found, "zeroinitializer", range(HALF))]

    kind = f"<{HALF} x {bits}>"
    (low,), (high,) = _by_halves(ctx, bits, mask, load, [kind])
    return _shuffled(ctx, kind, low, high, range(LANES))


def _gathered_near(ctx: Context, bits: str, count: int, pointer: str, offsets: str, mask: str) -> str:
    """Where there is AVX2 alone, LLVM makes branches of its own gather, so the instruction is called by name."""
    if ctx.target.avx512:
        return _gathered(ctx, bits, count, ctx.inst(f"getelementptr i8, ptr {pointer}, <{count} x i32> {offsets}"), mask)
    width = 256 // int(bits[1:])
    lanes = ctx.inst(f"sext <{count} x i1> {mask} to <{count} x {bits}>")
    parts = []
    for first in range(0, count, width):
        own = range(first, first + width)
        index = _shuffled(ctx, f"<{count} x i32>", offsets, "poison", own)
        on = _shuffled(ctx, f"<{count} x {bits}>", lanes, "poison", own)
        parts.append(_register_of(ctx, bits, width, pointer, index, on))
    while len(parts) > 1:
        kind, both = f"<{width} x {bits}>", range(2 * width)
        parts = [_shuffled(ctx, kind, low, high, both) for low, high in zip(parts[::2], parts[1::2])]
        width *= 2
    return parts[0]


def _register_of(ctx: Context, bits: str, width: int, pointer: str, index: str, on: str) -> str:
    kind, places = f"<{width} x {bits}>", f"<{width} x i32>"
    name = f"llvm.x86.avx2.gather.d.{'d' if bits == 'i32' else 'q'}.256"
    ctx.declare(name, f"declare {kind} @{name}({kind}, ptr, {places}, {kind}, i8)")
    return ctx.inst(f"call {kind} @{name}({kind} zeroinitializer, ptr {pointer}, {places} {index}, {kind} {on}, i8 1)")


def _gathered(ctx: Context, bits: str, count: int, pointers: str, mask: str, align: int = 0) -> str:
    whole, places, on = f"<{count} x {bits}>", f"<{count} x ptr>", f"<{count} x i1>"
    name = f"llvm.masked.gather.v{count}{bits}.v{count}p0"
    ctx.declare(name, f"declare {whole} @{name}({places}, {on}, {whole})")
    own = align or int(bits[1:]) // 8
    return ctx.inst(f"call {whole} @{name}({places} align {own} {pointers}, {on} {mask}, {whole} zeroinitializer)")


def _pointers(ctx: Context, addresses: str, offset: int) -> str:
    if offset:
        addresses = ctx.vector.bin("add", "i64", addresses, ctx.vector.int(64, offset))
    return ctx.inst(f"inttoptr {WORD} {addresses} to {POINTERS}")


def _pointer(ctx: Context, address: str) -> str:
    return ctx.inst(f"inttoptr i64 {address} to ptr")


def _narrow(ctx: Context, offsets: str) -> str:
    return ctx.vector.cast("trunc", "i64", offsets, "i32")


def _by_halves(
    ctx: Context, bits: str, mask: str, body: Callable[[range], Sequence[str]], types: Sequence[str]
) -> list[list[str]]:
    """What a body makes of each half of the lanes, or of the first lanes of it if the others are off; zeros where all are.

    One instruction serves half a warp, and takes as long where lanes are off, which in small blocks, and where tiles are as wide
    as half a warp, those of a half often are. One for half as many takes half the time.
    """
    on, word = ctx.bits_of(mask), f"i{LANES}"

    def some(lanes: range) -> str:
        among = sum(1 << lane for lane in lanes)
        return ctx.scalar.icmp("ne", word, ctx.scalar.bin("and", word, on, str(among)), "0")

    def of(lanes: range) -> list[str]:
        if not (ctx.target.avx512 and bits == "i32"):
            return ctx.when(some(lanes), partial(body, lanes), None, types)
        few, others = lanes[: HALF // 2], lanes[HALF // 2 :]

        def run() -> list[str]:
            return ctx.when(some(others), partial(body, lanes), partial(body, few), types)

        return ctx.when(some(lanes), run, None, types)

    return [of(range(HALF)), of(range(HALF, LANES))]


def _part(ctx: Context, kind: str, whole: str, lanes: range) -> str:
    return _shuffled(ctx, f"<{LANES} x {kind}>", whole, "poison", lanes)


def _shuffled(ctx: Context, kind: str, a: str, b: str, lanes: Sequence[int]) -> str:
    """These lanes of two vectors."""
    chosen = ", ".join(f"i32 {lane}" for lane in lanes)
    return ctx.inst(f"shufflevector {kind} {a}, {kind} {b}, <{len(lanes)} x i32> <{chosen}>")


def gather_pattern(ctx: Context, bits: str, pointer: str, offsets: tuple[int, ...], mask: str) -> str:
    """One integer of every active lane, at constant offsets from a host pointer; other lanes get anything.

    Where the offsets repeat, as those that follow from a column of a narrow block, each place is read once.
    """
    period = next(width for width in (8, 16, LANES) if offsets[:width] * (LANES // width) == offsets)
    kind, index = f"<{period} x {bits}>", offsets_literal(offsets[:period], "i32")
    if period == LANES:
        return gather_near(ctx, bits, pointer, index, mask)
    found = _gathered_near(ctx, bits, period, pointer, index, _some_of_each(ctx, mask, period))
    return _shuffled(ctx, kind, found, "poison", [lane % period for lane in range(LANES)])


def _some_of_each(ctx: Context, mask: str, period: int) -> str:
    """The lanes of the first period for which one is on in some period."""
    whole = bits = ctx.bits_of(mask)
    for first in range(period, LANES, period):
        bits = ctx.scalar.bin("or", f"i{LANES}", bits, ctx.scalar.bin("lshr", f"i{LANES}", whole, str(first)))
    return ctx.inst(f"bitcast i{period} {ctx.scalar.cast('trunc', f'i{LANES}', bits, f'i{period}')} to <{period} x i1>")


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
    if start != "0" and not rare and int(bits[1:]) in (32, 64):
        scatter_near(ctx, bits, sum_of(ctx, start, offset), _narrow(ctx, addresses), value, mask)
    elif not rare and ctx.target.avx512 and int(bits[1:]) in (8, 16):
        each_lane.store(ctx, bits, addresses, sum_of(ctx, start, offset), value, mask, near=start != "0")
    elif rare or not ctx.target.gathers(int(bits[1:])):
        scatter_stored(ctx, bits, ctx.in_memory("i64", addresses), sum_of(ctx, start, offset), value, mask)
    else:
        pointers = _pointers(ctx, addresses, offset)
        _scatter_in_halves(ctx, bits, value, mask, lambda lanes: _part(ctx, "ptr", pointers, lanes))


def scatter_near(ctx: Context, bits: str, start: str, offsets: str, value: str, mask: str) -> None:
    """The same at offsets, a vector of i32, from a host address, for elements of 32 or 64 bits."""
    if not ctx.target.gathers(int(bits[1:])):
        name, places = f"pe_scatter_near_{bits[1:]}", ctx.in_memory("i32", offsets)
        on, values = ctx.bits_of(mask), ctx.in_memory(bits, value)
        ctx.call("void", name, ("i64", start), ("ptr", places), (f"i{LANES}", on), ("ptr", values))
        return
    pointer = _pointer(ctx, start)

    def pointers(lanes: range) -> str:
        return ctx.inst(f"getelementptr i8, ptr {pointer}, <{len(lanes)} x i32> {_part(ctx, 'i32', offsets, lanes)}")

    _scatter_in_halves(ctx, bits, value, mask, pointers)


def _scatter_in_halves(ctx: Context, bits: str, value: str, mask: str, places: Callable[[range], str]) -> None:
    """``places``: the pointers of some lanes."""

    def store(lanes: range) -> list[str]:
        _scattered(ctx, bits, len(lanes), places(lanes), _part(ctx, bits, value, lanes), _part(ctx, "i1", mask, lanes))
        return []

    _by_halves(ctx, bits, mask, store, [])


def _scattered(ctx: Context, bits: str, count: int, pointers: str, value: str, mask: str) -> None:
    whole, places, on = f"<{count} x {bits}>", f"<{count} x ptr>", f"<{count} x i1>"
    name = f"llvm.masked.scatter.v{count}{bits}.v{count}p0"
    ctx.declare(name, f"declare void @{name}({whole}, {places}, {on})")
    align = int(bits[1:]) // 8
    ctx.stmt(f"call void @{name}({whole} {value}, {places} align {align} {pointers}, {on} {mask})")


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
