"""Constant tables, and products of pairs of halves of words, by the instructions that processors have for them."""

from __future__ import annotations

from ptxemu.lower.core.emit import Emitter, Words
from ptxemu.lower.core.parts import joined, part

HALF = 1 << 16
PAIR_PRODUCTS = {64: "llvm.x86.avx512.pmaddw.d.512", 32: "llvm.x86.avx2.pmadd.wd"}
"""LLVM's names of what adds products of halves, by the bytes of a vector."""
PERMUTED = "llvm.x86.avx512.vpermi2var.hi.512"
"""What chooses among 64 elements, which two registers hold."""
PERMUTED_LANES = 32


def word_of(e: Emitter, name: str, words: Words, index: str) -> str:
    """The i32 of a table, whose length is a power of two, by the last bits of an i16."""
    if e.target.avx512 and e.lanes == PERMUTED_LANES:
        return paired(e, *(_permuted(e, tuple(word >> shift & HALF - 1 for word in words), index) for shift in (0, 16)))
    place = e.bin("and", "i32", e.cast("zext", "i16", index, "i32"), e.int(32, len(words) - 1))
    return e.element_of(name, words, place)


def _permuted(e: Emitter, halves: Words, index: str) -> str:
    """The same of a table of i16, which registers hold."""
    vector, lanes = f"<{PERMUTED_LANES} x i16>", PERMUTED_LANES
    e.declare(PERMUTED, f"declare {vector} @{PERMUTED}({vector}, {vector}, {vector})")
    parts = [f"{vector} <{', '.join(f'i16 {half}' for half in halves[at : at + lanes])}>" for at in range(0, len(halves), lanes)]
    found = [e.inst(f"call {vector} @{PERMUTED}({low}, {vector} {index}, {high})") for low, high in zip(parts[::2], parts[1::2])]
    if len(found) == 1:
        return found[0]
    upper = e.icmp("ne", "i16", e.bin("and", "i16", index, e.int(16, 2 * lanes)), e.int(16, 0))
    return e.select(upper, "i16", found[1], found[0])


def paired(e: Emitter, low: str, high: str) -> str:
    """The i32 of two i16."""
    if not e.lanes:
        upper = e.bin("shl", "i32", e.cast("zext", "i16", high, "i32"), e.int(32, 16))
        return e.bin("or", "i32", upper, e.cast("zext", "i16", low, "i32"))
    order = ", ".join(f"i32 {i // 2 + i % 2 * e.lanes}" for i in range(2 * e.lanes))
    vector = f"<{e.lanes} x i16>"
    both = e.inst(f"shufflevector {vector} {low}, {vector} {high}, <{2 * e.lanes} x i32> <{order}>")
    return e.inst(f"bitcast <{2 * e.lanes} x i16> {both} to {e.ty('i32')}")


def pair_products(e: Emitter, a: str, b: str) -> str:
    """The sum of the product of the low halves of two i32, as signed numbers, and of that of the high halves."""
    size = e.target.vector_bytes
    if size not in PAIR_PRODUCTS or not e.lanes or e.lanes * 4 % size:
        low = e.bin("mul", "i32", _low(e, a), _low(e, b))
        return e.bin("add", "i32", low, e.bin("mul", "i32", _high(e, a), _high(e, b)))
    name, count = PAIR_PRODUCTS[size], size // 4
    halves, words = f"<{2 * count} x i16>", f"<{count} x i32>"
    e.declare(name, f"declare {words} @{name}({halves}, {halves})")
    parts = []
    for at in range(0, e.lanes, count):
        cut = [e.inst(f"bitcast {words} {part(e, 'i32', x, at, count)} to {halves}") for x in (a, b)]
        parts.append(e.inst(f"call {words} @{name}({halves} {cut[0]}, {halves} {cut[1]})"))
    return joined(e, "i32", parts, count)


def _low(e: Emitter, x: str) -> str:
    return e.bin("ashr", "i32", e.bin("shl", "i32", x, e.int(32, 16)), e.int(32, 16))


def _high(e: Emitter, x: str) -> str:
    return e.bin("ashr", "i32", x, e.int(32, 16))
