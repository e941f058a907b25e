"""Sums of the products of parts of words, by the instructions that processors have for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce

from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.core.parts import joined, part

PAIR_PRODUCTS = {64: "llvm.x86.avx512.pmaddw.d.512", 32: "llvm.x86.avx2.pmadd.wd"}
"""LLVM's names of what adds products of halves, by the bytes of a vector."""
BYTE_PRODUCTS = "llvm.x86.avx512.vpdpbusd.512"
"""What adds to words the products of their bytes, those of the first one unsigned, those of the other one signed."""
REGISTER = 16  # words
TOPS = 0x80808080  # the highest bit of each byte


def high_products(e: Emitter, a: str, b: str, signed: bool) -> str:
    """The upper halves of the products of two i32 of each lane, from vectors of i64 with those of the even and of the odd lanes:
    LLVM looks through a shift of the products, and makes something worse of it."""
    narrow, lanes = e.ty("i32"), e.lanes
    e.lanes //= 2
    wide, shift = e.ty("i64"), e.int(64, 32)
    extend = "ashr" if signed else "lshr"
    pairs = [e.inst(f"bitcast {narrow} {x} to {wide}") for x in (a, b)]
    even = e.bin("mul", "i64", *(e.bin(extend, "i64", e.bin("shl", "i64", x, shift), shift) for x in pairs))
    odd = e.bin("mul", "i64", *(e.bin(extend, "i64", x, shift) for x in pairs))
    e.lanes = lanes
    halves = [e.inst(f"bitcast {wide} {x} to {narrow}") for x in (even, odd)]
    picks = ", ".join(f"i32 {lane + (lanes if lane % 2 else 1)}" for lane in range(lanes))
    return e.inst(f"shufflevector {narrow} {halves[0]}, {narrow} {halves[1]}, <{lanes} x i32> <{picks}>")


def pair_products(e: Emitter, a: str, b: str) -> str:
    """The sum of the product of the low halves of two i32, as signed numbers, and of that of the high halves."""
    size = e.target.vector_bytes
    if size not in PAIR_PRODUCTS or not e.lanes or e.lanes * 4 % size:
        halves_of = (fields(e, x, True, 16, range(2)) for x in (a, b))
        return e.bin("add", "i32", *(e.bin("mul", "i32", x, y) for x, y in zip(*halves_of)))
    name, count = PAIR_PRODUCTS[size], size // 4
    halves, words = f"<{2 * count} x i16>", f"<{count} x i32>"
    e.declare(name, f"declare {words} @{name}({halves}, {halves})")
    parts = []
    for at in range(0, e.lanes, count):
        cut = [e.inst(f"bitcast {words} {part(e, 'i32', x, at, count)} to {halves}") for x in (a, b)]
        parts.append(e.inst(f"call {words} @{name}({halves} {cut[0]}, {halves} {cut[1]})"))
    return joined(e, "i32", parts, count)


def byte_products(e: Emitter, a: str, b: str, signed: tuple[bool, bool], total: str) -> str:
    """``total`` plus the products of the four bytes of two i32, each of which has signed ones or not."""
    if not e.lanes:
        xs, ys = (fields(e, x, of, 8, range(4)) for x, of in zip((a, b), signed))
        return sum_of_products(e, xs, ys, total)
    if not e.target.dots or e.lanes % REGISTER:
        pairs = [pair_products(e, *(_bytes(e, x, first, of) for x, of in zip((a, b), signed))) for first in (0, 1)]
        return reduce(partial(e.bin, "add", "i32"), pairs, total)
    if signed[0] != signed[1]:
        return _added(e, total, *((b, a) if signed[0] else (a, b)))
    turned, other = (a, b) if signed[0] else (b, a)
    turned = e.bin("xor", "i32", turned, e.int(32, TOPS))  # 128 more than signed bytes, or less than unsigned ones
    tops = e.int(32, TOPS)
    first, second = ((turned, other), (tops, other)) if signed[0] else ((other, turned), (other, tops))
    return e.bin("sub", "i32", _added(e, total, *first), _added(e, e.int(32, 0), *second))


def fields(e: Emitter, x: str, signed: bool, bits: int, places: Iterable[int]) -> list[str]:
    """Fields of ``bits`` bits, by their numbers, extended to 32 bits."""
    tops = (32 - bits * (i + 1) for i in places)
    lifted = (e.bin("shl", "i32", x, e.int(32, top)) if top else x for top in tops)
    return [e.bin("ashr" if signed else "lshr", "i32", value, e.int(32, 32 - bits)) for value in lifted]


def sum_of_products(e: Emitter, xs: Sequence[str], ys: Sequence[str], total: str) -> str:
    """``total`` plus those of numbers of 32 bits."""
    return reduce(partial(e.bin, "add", "i32"), (e.bin("mul", "i32", x, y) for x, y in zip(xs, ys, strict=True)), total)


def _added(e: Emitter, total: str, unsigned: str, signed: str) -> str:
    words, bytes = f"<{REGISTER} x i32>", f"<{4 * REGISTER} x i8>"
    e.declare(BYTE_PRODUCTS, f"declare {words} @{BYTE_PRODUCTS}({words}, {bytes}, {bytes})")
    parts = []
    for at in range(0, e.lanes, REGISTER):
        sum, *cut = (part(e, "i32", x, at, REGISTER) for x in (total, unsigned, signed))
        first, second = (e.inst(f"bitcast {words} {x} to {bytes}") for x in cut)
        parts.append(e.inst(f"call {words} @{BYTE_PRODUCTS}({words} {sum}, {bytes} {first}, {bytes} {second})"))
    return joined(e, "i32", parts, REGISTER)


def _bytes(e: Emitter, x: str, first: int, signed: bool) -> str:
    """The bytes 0 and 2, or 1 and 3, of an i32 as its halves."""
    halves, eight = f"<{2 * e.lanes} x i16>", "splat (i16 8)"
    value = e.inst(f"bitcast {e.ty('i32')} {x} to {halves}")
    if not first:
        value = e.inst(f"shl {halves} {value}, {eight}")
    value = e.inst(f"{'ashr' if signed else 'lshr'} {halves} {value}, {eight}")
    return e.inst(f"bitcast {halves} {value} to {e.ty('i32')}")
