"""Branches, returns, exits and traps; calls of functions of the module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxemu._runtime import lib
from ptxemu.interpreter.externals import external_call
from ptxemu.interpreter.lane import SPLIT, Lane, Step
from ptxemu.interpreter.memory import overflow
from ptxemu.interpreter.translate import FRAME_ALIGN, GUARDED, Code, Reader, Translator, method
from ptxemu.ir.ops import Function, Imm, Op, Reg, Variable, Vec
from ptxemu.ir.types import PRED
from ptxemu.lower.core.layout import align_up

GUARDED.add("bra")


@method("bra")
def branch(t: Translator, op: Op) -> Step:
    labels, name, after = t.labels, op.labels[0], t.after
    if op.guard is None:
        return lambda warp, group: labels[name]
    holds = t.guard(op)

    def step(warp: Any, group: list[Lane]) -> int | None:
        taken = [lane for lane in group if holds(lane)]
        if not taken:
            return None
        if len(taken) == len(group):
            return labels[name]
        for lane in group:
            lane.pc = after
        for lane in taken:
            lane.pc = labels[name]
        return SPLIT

    return step


@method("brx")
def switch(t: Translator, op: Op) -> Step:
    """brx.idx: an index past the list is a fault."""
    read, labels, names = t.operand(op, "a"), t.labels, op.labels

    def step(warp: Any, group: list[Lane]) -> int:
        for lane in group:
            if read(lane) >= len(names):
                warp.fault(lib.PE_INVALID_BRANCH, op.pos, lane.index)
            lane.pc = labels[names[read(lane)]]
        return SPLIT

    return step


@method("exit")
def leave_kernel(t: Translator, op: Op) -> Step:
    return lambda warp, group: warp.exit(group)


@method("trap")
def trap(t: Translator, op: Op) -> Step:
    return lambda warp, group: warp.fault(lib.PE_TRAP, op.pos, min(lane.index for lane in group))


# ---------------------------------------------------------------- calls

Move = Callable[[Lane, int, Code], None]  # a value between a caller and its callee, whose frame begins at an offset


@method("ret")
def leave_function(t: Translator, op: Op) -> Step:
    """Threads go back to the caller, or leave the kernel. What the caller takes is still in the callee's frame."""
    if t.code.function.kind == "entry":
        return lambda warp, group: warp.exit(group)

    def step(warp: Any, group: list[Lane]) -> int:
        for lane in group:
            base, callee = lane.base, lane.code
            lane.leave()
            for move in lane.code.returning[lane.pc]:
                move(lane, base, callee)
        return SPLIT

    return step


@method("call")
def call(t: Translator, op: Op) -> Step:
    assert op.call is not None
    if not op.call.real:
        return external_call(t, op)
    after = t.after
    formals, results = op.call.formals
    open_bytes = _open_bytes(formals, op.call.args)
    give = [_give(t, index, *pair) for index, pair in enumerate(zip(formals, op.call.args, strict=False))]
    t.code.returning[after] = [_take(t, index, *pair) for index, pair in enumerate(zip(results, op.call.returns, strict=False))]
    choose = _target(t, op)

    def step(warp: Any, group: list[Lane]) -> int:
        for lane in group:
            code = choose(lane)
            base = align_up(lane.stack, code.align)
            end = base + code.frame_bytes + open_bytes
            if end > warp.w.local_size or lane.held + code.host_bytes > warp.grid.host_stack:
                overflow(warp, op.pos, sum(lane.bit for lane in group))
            for move in give:
                move(lane, base, code)
            lane.enter(code, base, end, after)
        return SPLIT

    return step


def _open_bytes(formals: list[Variable], actuals: Sequence[Any]) -> int:
    """What the array takes that is passed for an open array parameter, the last one."""
    found = [actual.size for formal, actual in zip(formals, actuals, strict=False) if None in formal.dims]
    return align_up(sum(found), FRAME_ALIGN)


def _local(lane: Lane, start: int, size: int) -> slice:
    first = lane.index * lane.warp.w.local_size + start
    return slice(first, first + size)


def _elements(actual: Reg | Imm | Vec) -> list[tuple[int, Any]]:
    """The registers and constants of an operand, by their offsets in the parameter."""
    found, offset = [], 0
    for item in actual.items if isinstance(actual, Vec) else (actual,):
        assert isinstance(item, (Reg, Imm))
        found.append((offset, item))
        offset += item.type.bytes
    return found


def _give(t: Translator, index: int, formal: Variable, actual: Any) -> Move:
    """An argument, into the callee's frame."""
    if isinstance(actual, Variable):
        here, size = _home(t, actual), actual.size if None in formal.dims else min(formal.size, actual.size)

        def copy(lane: Lane, base: int, callee: Code) -> None:
            lane.warp.local[_local(lane, base + callee.parameters[index], size)] = here(lane, size)

        return copy
    parts = [(offset, item.type.bytes, t.reader(item, item.type)) for offset, item in _elements(actual)]

    def write(lane: Lane, base: int, callee: Code) -> None:
        start = base + callee.parameters[index]
        lane.warp.local[_local(lane, start, formal.size)] = bytes(formal.size)
        for at, size, read in parts:
            size = min(size, formal.size)
            lane.warp.local[_local(lane, start + at, size)] = (read(lane) & (1 << 8 * size) - 1).to_bytes(size, "little")

    return write


def _home(t: Translator, variable: Variable) -> Callable[[Lane, int], bytes]:
    """The bytes of a caller's variable."""
    if variable in t.layout.params:  # of the kernel
        from ptxemu._runtime import ffi

        offset = t.layout.params[variable]
        return lambda lane, size: bytes(ffi.buffer(ffi.cast("char *", lane.warp.w.param_base + offset), size))
    own = t.code.offsets[variable]
    return lambda lane, size: bytes(lane.warp.local[_local(lane, lane.base + own, size)])


def _take(t: Translator, index: int, formal: Variable, actual: Any) -> Move:
    """A result, from the callee's frame."""
    if isinstance(actual, Variable):
        own, size = t.code.offsets[actual], min(formal.size, actual.size)

        def copy(lane: Lane, base: int, callee: Code) -> None:
            memory = lane.warp.local
            memory[_local(lane, lane.base + own, size)] = bytes(memory[_local(lane, base + callee.results[index], size)])

        return copy
    parts = [(offset, item, t.slot(item)) for offset, item in _elements(actual)]

    def read(lane: Lane, base: int, callee: Code) -> None:
        start = base + callee.results[index]
        for at, item, slot in parts:
            size = min(item.type.bytes, formal.size)
            value = int.from_bytes(lane.warp.local[_local(lane, start + at, size)], "little")
            lane.r[slot] = value & 1 if item.type is PRED else value

    return read


def _target(t: Translator, op: Op) -> Callable[[Lane], Code]:
    """The code that a lane calls; an address that is not a function of the call's signature is a fault."""
    assert op.call is not None
    if isinstance(op.call.callee, Function):
        code = t.codes[op.call.callee]
        return lambda lane: code
    address: Reader = t.reader(op.call.callee, op.call.callee.type)
    codes = {t.layout.module.function_address(function): t.codes[function] for function in targets(op, t.codes)}

    def choose(lane: Lane) -> Code:
        token = address(lane)
        if token not in codes:
            lane.warp.grid.call("pe_invalid_call", lane.warp, op.pos, lane.index, token)
        return codes[token]

    return choose


def targets(op: Op, functions: Any) -> list[Function]:
    """The functions that an indirect call may reach."""
    assert op.call is not None and op.call.prototype is not None
    listed = functions if op.call.targets is None else op.call.targets
    wanted = [_shapes(variables) for variables in op.call.prototype]
    return [
        function
        for function in listed
        if function.kind == "func"
        and function.body is not None
        and [_shapes([param.variable for param in function.params]), _shapes(function.returns)] == wanted
    ]


def _shapes(variables: Any) -> list[tuple[int, bool]]:
    return [(variable.size, bool(variable.dims)) for variable in variables]
