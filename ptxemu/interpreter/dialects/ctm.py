"""What CTM does with texels: reads, writes, UMRT writes, the conditional test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu.dialects.ctm.lower import ctm_site
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import lane_data, take
from ptxemu.interpreter.surfaces import mask_of
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import Reader, Translator, method, write_all
from ptxemu.ir.ops import Op
from ptxemu.ir.types import B32

RESULTS, FIRST, WORD = 0, 1, 4  # areas


def _call(t: Translator, op: Op, function: str, *names: str, texels: bool = False) -> Callable[[Any, list[Lane]], int]:
    """A function of the runtime with the operands of these names behind the surface; ``texels`` go to the area RESULTS."""
    constants, handle = site("ctm", op, **ctm_site(op)), t.handle(op["s"])
    operands: list[list[Reader]] = [t.readers(op[name], B32) for name in names]

    def call(warp: Any, group: list[Lane]) -> int:
        words = [lane_data(warp, area, group, readers, WORD) for area, readers in enumerate(operands, FIRST)]
        words += [warp.grid.transfer.area(RESULTS).pointer] if texels else []
        return int(warp.grid.call(function, warp, constants, mask_of(group), handle(group[0]), *words))

    return call


@method("_ctm_load")
def load(t: Translator, op: Op) -> Step:
    """Texels at x, y, which are floats: red, green, blue, alpha."""
    call, writers = _call(t, op, "pe_ctm_load", "x", "y", texels=True), t.writers(op)

    def step(warp: Any, group: list[Lane]) -> None:
        call(warp, group)
        take(warp.grid.transfer.area(RESULTS), WORD, group, writers)

    return step


def _without_result(function: str, *names: str) -> Callable[[Translator, Op], Step]:
    def made(t: Translator, op: Op) -> Step:
        call = _call(t, op, function, *names)

        def step(warp: Any, group: list[Lane]) -> None:
            call(warp, group)

        return step

    return made


method("_ctm_store")(_without_result("pe_ctm_store", "x", "y", "v", "channels"))
method("_ctm_umrt")(_without_result("pe_ctm_umrt", "red", "green", "blue", "alpha", "channels"))


@method("_ctm_test")
def test(t: Translator, op: Op) -> Step:
    """The conditional test, whose result is a predicate."""
    call, writers = _call(t, op, "pe_ctm_test", "x", "y", "value"), t.writers(op)

    def step(warp: Any, group: list[Lane]) -> None:
        passed = call(warp, group)
        for lane in group:
            write_all(writers, lane, [passed >> lane.index & 1])

    return step
