"""Accesses of a warp to a few runs of memory (:mod:`ptxemu.analysis.runs`): a vector instruction, or an element, for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxemu.analysis.runs import Runs
from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.access import Access, host_pointer
from ptxemu.lower.core.context import Context
from ptxemu.lower.memory import consecutive


def pattern_pointers(ctx: Context, found: Access, runs: Runs) -> list[str]:
    """Where the runs of a pattern begin, in the host."""
    assert found.shape is not None
    return [host_pointer(ctx, found, found.shape.offsets[first]) for first in runs.firsts]


def through(ctx: Context, found: Access, starts: list[str], access: Callable[[list[str]], list[str]]) -> list[str]:
    """An access through host pointers to where runs start in the program."""
    base = ctx.field("shared_base") if found.space == "shared" else ""
    sums = [ctx.scalar.bin("add", "i64", start, base) if base else start for start in starts]
    return access([ctx.inst(f"inttoptr i64 {total} to ptr") for total in sums])


def load(ctx: Context, bits: str, count: int, runs: Runs, pointers: list[str], volatile: str = "", mask: str = "") -> list[str]:
    """``count`` elements for each lane. With a mask, runs must step."""
    if runs.step:
        return consecutive.load(ctx, bits, count, pointers, volatile, mask)
    size = int(bits[1:]) // 8
    return [_element_of_groups(ctx, bits, runs, pointers, index * size, volatile) for index in range(count)]


def _element_of_groups(ctx: Context, bits: str, runs: Runs, pointers: Sequence[str], offset: int, volatile: str) -> str:
    """One element for each group."""
    narrow, value = f"<{len(pointers)} x {bits}>", "poison"
    for index, pointer in enumerate(pointers):
        at = ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer
        element = ctx.inst(f"load {volatile}{bits}, ptr {at}, align {int(bits[1:]) // 8}")
        value = ctx.inst(f"insertelement {narrow} {value}, {bits} {element}, i64 {index}")
    picks = ", ".join(f"i32 {lane // runs.width}" for lane in range(LANES))
    return ctx.inst(f"shufflevector {narrow} {value}, {narrow} poison, <{LANES} x i32> <{picks}>")
