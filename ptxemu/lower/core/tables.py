"""Constant tables, by the instructions that processors have for them."""

from __future__ import annotations

from ptxemu.lower.core.emit import Emitter, Words

HALF = 1 << 16
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
