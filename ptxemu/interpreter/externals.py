"""Calls of functions that the runtime serves: vprintf, __assertfail, malloc, free and the barrier of the grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxemu._runtime import lib
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.translate import Reader, Translator, Writer
from ptxemu.ir.ops import Function, Imm, Op, Reg, Variable
from ptxemu.ir.runtime_calls import GRID_SCOPE, SIGNATURES
from ptxemu.ir.types import U32, U64, ScalarType

RESULT = 0  # area; the arguments follow


def external_call(t: Translator, op: Op) -> Step:
    assert op.call is not None and isinstance(op.call.callee, Function)
    name, pos, after = op.call.callee.name, op.pos, t.after
    results, arguments = SIGNATURES[name]
    readers = [_argument(t, value, _kind(bits)) for value, bits in zip(op.call.args, arguments, strict=True)]
    write = _result(t, op.call.returns[0], _kind(results[0])) if results else None

    def prepared(warp: Any, group: list[Lane]) -> list[Any]:
        """The arguments of the C function behind the mask."""
        warp.w.pos = pos
        transfer = warp.grid.transfer
        areas = enumerate(zip(readers, arguments, strict=True), 1)
        return [sum(lane.bit for lane in group), *(transfer.fill(area, bits // 8, group, read) for area, (read, bits) in areas)]

    def take(warp: Any, group: list[Lane], value: Callable[[Lane], int]) -> None:
        for lane in group:
            if write is not None:
                write(lane, value(lane))

    def returning(function: str, *leading: int) -> Step:
        def step(warp: Any, group: list[Lane]) -> None:
            area = warp.grid.transfer.area(RESULT)
            warp.grid.call(function, warp, *leading, *prepared(warp, group), area.pointer)
            take(warp, group, lambda lane: area.elements[results[0] // 8][lane.index])

        return step

    def synchronize(warp: Any, group: list[Lane]) -> int:
        take(warp, group, lambda lane: 0)
        if not warp.grid.cooperative:
            warp.fault(lib.PE_BARRIER_MISUSE, pos, -1, "grid synchronization needs a cooperative launch")
        for lane in group:
            lane.pc = after
        return int(warp.grid.arrive(warp, pos, group))

    def handle(warp: Any, group: list[Lane]) -> None:
        take(warp, group, lambda lane: warp.w.grid_workspace if readers[0](lane) == GRID_SCOPE else 0)

    def free(warp: Any, group: list[Lane]) -> None:
        warp.grid.call("pe_free", warp, pos, *prepared(warp, group))

    def set_condition(warp: Any, group: list[Lane]) -> None:
        warp.grid.call("pe_set_condition", warp, pos, *prepared(warp, group))

    def fail(warp: Any, group: list[Lane]) -> None:
        warp.grid.call("pe_assertfail", warp, pos, *prepared(warp, group)[:5])

    steps: dict[str, Step] = {
        "vprintf": returning("pe_vprintf", pos), "malloc": returning("pe_malloc"), "free": free, "__assertfail": fail,
        "cudaGraphSetConditional": set_condition,
        "cudaCGGetIntrinsicHandle": handle, "cudaCGSynchronize": synchronize, "cudaCGSynchronizeGrid": synchronize,
    }  # fmt: skip
    return steps[name]


def _kind(bits: int) -> ScalarType:
    return U64 if bits == 64 else U32


def _argument(t: Translator, value: Any, kind: ScalarType) -> Reader:
    if isinstance(value, Variable):
        return _in_frame(t, value, kind)
    assert isinstance(value, (Reg, Imm))
    return t.reader(value, kind)


def _in_frame(t: Translator, variable: Variable, kind: ScalarType) -> Reader:
    start = t.code.offsets[variable]

    def read(lane: Lane) -> int:
        first = lane.index * lane.warp.w.local_size + lane.base + start
        return int.from_bytes(lane.warp.local[first : first + kind.bytes], "little")

    return read


def _result(t: Translator, value: Any, kind: ScalarType) -> Writer | None:
    if isinstance(value, Reg):
        return t.writer(value, kind)
    assert isinstance(value, Variable)
    start = t.code.offsets[value]

    def write(lane: Lane, result: int) -> None:
        first = lane.index * lane.warp.w.local_size + lane.base + start
        lane.warp.local[first : first + kind.bytes] = result.to_bytes(kind.bytes, "little")

    return write
