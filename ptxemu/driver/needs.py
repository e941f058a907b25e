"""What a kernel needs of its launch beyond a grid, a block and arguments."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.ir.ops import Function, Module, Op, SReg
from ptxemu.ir.runtime_calls import is_runtime_call

WORKSPACE = "envreg"  # special registers in which kernels of cooperative groups look for that of the grid


class Needs(Struct, frozen=True):
    """``dynamic_shared``: it may use shared memory whose size the launch says; ``cooperation``: its blocks wait for each other by
    the means of cooperative groups."""

    dynamic_shared: bool
    cooperation: bool


def needs_of(module: Module, entry: Function) -> Needs:
    """What a kernel and the functions that it calls need."""
    functions = reachable(entry)
    own = [variable for function in functions for variable in function.variables]
    dynamic = any(v.space == "shared" and not v.size for v in (*module.variables.values(), *own))
    return Needs(dynamic, any(_cooperates(op) for function in functions for op in function.ops))


def reachable(entry: Function) -> list[Function]:
    """The entry and the functions it calls, directly or not."""
    found = dict.fromkeys([entry])
    work = [entry]
    while work:
        for op in work.pop().ops:
            callee = op.call.callee if op.call is not None else None
            if isinstance(callee, Function) and callee not in found:
                found[callee] = None
                work.append(callee)
    return list(found)


def _cooperates(op: Op) -> bool:
    if op.call is not None and is_runtime_call(op.call):
        return isinstance(op.call.callee, Function) and op.call.callee.name.startswith("cudaCG")
    return any(isinstance(source, SReg) and source.name.startswith(WORKSPACE) for source in op.srcs)
