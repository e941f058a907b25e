"""Shared memory that nobody has written, for which code looks itself where the lanes of a warp read a pattern of words: there
may be such bytes between these, so that no range that the checker keeps has all of them (csrc/check/init.h)."""

from __future__ import annotations

from ptxemu._runtime import ffi, lib
from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.access import Access, pattern_test
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import gather_near
from ptxemu.lower.core.literals import offsets_literal

BITS = 32
"""That are loaded at once, those of as many bytes."""


def can_be_seen(ctx: Context, found: Access) -> bool:
    """Whether code looks for them where an access is."""
    reads = found.space == "shared" and found.kind == lib.PE_READ and found.size in (4, 8)
    return reads and found.shape is not None and not found.shape.uniform and ctx.target.gathers_near(BITS)


def reads_none(ctx: Context, found: Access) -> str:
    """i1: all words of a pattern are in shared memory, and it is seen that somebody has written them."""
    place = ctx.scalar.bin("add", "i64", ctx.field("ranges"), str(int(lib.PE_BLANK_BITS) * ffi.sizeof("pe_range")))
    table, first = (_field(ctx, place, name) for name in ("bits", "first"))
    looks = ctx.scalar.bin("and", "i1", ctx.scalar.icmp("ne", "i64", table, "0"), pattern_test(ctx, found.span))
    return ctx.when(looks, lambda: [_all_written(ctx, found, table, first)], lambda: ["false"], ["i1"])[0]


def _all_written(ctx: Context, found: Access, table: str, first: str) -> str:
    assert found.shape is not None
    start = ctx.scalar.bin("add", "i64", first, found.base)
    bits = ctx.scalar.bin("add", "i64", table, ctx.scalar.bin("shl", "i64", ctx.scalar.bin("lshr", "i64", start, "5"), "2"))
    rest = ctx.splat("i32", ctx.scalar.cast("trunc", "i64", ctx.scalar.bin("and", "i64", start, str(BITS - 1)), "i32"))
    byte = ctx.vector.bin("add", "i32", rest, offsets_literal(found.shape.offsets, "i32"))
    words = ctx.vector.bin("shl", "i32", ctx.vector.bin("ashr", "i32", byte, ctx.vector.int(32, 5)), ctx.vector.int(32, 2))
    pointer = ctx.inst(f"inttoptr i64 {bits} to ptr")
    unset = gather_near(ctx, "i32", pointer, words, found.mask)
    unset = ctx.vector.bin("lshr", "i32", unset, ctx.vector.bin("and", "i32", byte, ctx.vector.int(32, BITS - 1)))
    unset = ctx.vector.bin("and", "i32", unset, ctx.vector.int(32, (1 << found.size) - 1))
    return ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(ctx.vector.icmp("ne", "i32", unset, "zeroinitializer")), "0")


def _field(ctx: Context, place: str, name: str) -> str:
    offset = dict(ffi.typeof("pe_blank_bits").fields)[name].offset
    at = ctx.inst(f"inttoptr i64 {ctx.scalar.bin('add', 'i64', place, str(offset))} to ptr")
    return ctx.inst(f"load i64, ptr {at}, align 8")
