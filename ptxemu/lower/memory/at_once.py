"""Accesses whose elements go to memory and back at once, as far as CPUs can: up to 16 bytes of a lane, aligned to their size.

PTX leaves open in which order the elements of a vector are accessed, but programs count on what GPUs do: those that look back at
what other CTAs have done keep a state beside its value and access both in one vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.gather import lane_by_lane, sum_of
from ptxemu.lower.memory import consecutive

MOST = 128
"""Bits of the widest access."""


class _Part(Struct, frozen=True):
    """Some elements of an access that one instruction moves; ``offset``: bytes from its start."""

    first: int
    count: int
    offset: int
    bits: int

    @property
    def elements(self) -> slice:
        return slice(self.first, self.first + self.count)

    def typed(self, bits: str) -> str:
        """As integers of the elements' type: a vector, or the only one."""
        return f"<{self.count} x {bits}>" if self.count > 1 else bits

    @property
    def spelling(self) -> tuple[str, str, str]:
        """How LLVM spells the access: (before its type, its type, after its address). It has no cheap atomic one of 16 bytes."""
        return ("volatile ", "<2 x i64>", "") if self.bits == MOST else ("atomic volatile ", f"i{self.bits}", " monotonic")


def load(ctx: Context, bits: str, count: int, pointer: str) -> list[str]:
    """``count`` elements at a pointer, as integers."""
    values = []
    for part in _parts(bits, count):
        keyword, type, order = part.spelling
        read = ctx.inst(f"load {keyword}{type}, ptr {_beyond(ctx, pointer, part)}{order}, align {part.bits // 8}")
        whole = ctx.convert(read, type, part.typed(bits), False)
        values += [whole] if part.count == 1 else [_element(ctx, part.typed(bits), whole, k) for k in range(part.count)]
    return values


def store(ctx: Context, bits: str, values: Sequence[str], pointer: str) -> None:
    """Integers to the elements at a pointer."""
    for part in _parts(bits, len(values)):
        whole = _vector(ctx, bits, values[part.elements]) if part.count > 1 else values[part.first]
        keyword, type, order = part.spelling
        written = ctx.convert(whole, part.typed(bits), type, False)
        ctx.stmt(f"store {keyword}{type} {written}, ptr {_beyond(ctx, pointer, part)}{order}, align {part.bits // 8}")


def gather(ctx: Context, bits: str, count: int, mask: str, addresses: str, plus: str) -> list[str]:
    """``count`` elements of every active lane from host addresses that are in memory; ``plus``, an i64, is added to each."""
    values = []
    for part in _parts(bits, count):
        lanes = ctx.temporary(f"<{LANES} x i{part.bits}>")
        lane_by_lane(ctx, "gather_strong", f"i{part.bits}", addresses, sum_of(ctx, plus, part.offset), mask, lanes)
        values += consecutive.load(ctx, bits, part.count, lanes)
    return values


def scatter(ctx: Context, bits: str, values: Sequence[str], mask: str, addresses: str, plus: str) -> None:
    """Store all elements of every active lane, in ascending lane order."""
    for part in _parts(bits, len(values)):
        lanes = ctx.temporary(f"<{LANES} x i{part.bits}>")
        registers = consecutive.weave(ctx, list(values[part.elements]), bits)
        consecutive.store(ctx, bits, registers, part.count, lanes)
        lane_by_lane(ctx, "scatter_strong", f"i{part.bits}", addresses, sum_of(ctx, plus, part.offset), mask, lanes)


def _parts(bits: str, count: int) -> list[_Part]:
    size = int(bits[1:])
    per = min(count, MOST // size)
    return [_Part(first, per, first * size // 8, per * size) for first in range(0, count, per)]


def _beyond(ctx: Context, pointer: str, part: _Part) -> str:
    return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {part.offset}") if part.offset else pointer


def _element(ctx: Context, type: str, whole: str, index: int) -> str:
    return ctx.inst(f"extractelement {type} {whole}, i32 {index}")


def _vector(ctx: Context, bits: str, values: Sequence[str]) -> str:
    whole, type = "poison", f"<{len(values)} x {bits}>"
    for index, value in enumerate(values):
        whole = ctx.inst(f"insertelement {type} {whole}, {bits} {value}, i32 {index}")
    return whole
