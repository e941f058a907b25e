"""Calls of the functions that compilers leave external: vprintf and __assertfail."""

from __future__ import annotations

from ptxemu.ir import Function, Imm, Op, Reg
from ptxemu.lower.context import Context
from ptxemu.lower.effects import effect
from ptxemu.types import U32, U64, ScalarType
from ptxemu.variant import LANES

EXTERNAL = ("vprintf", "__assertfail")


def _argument(ctx: Context, op: Op, index: int, kind: ScalarType) -> tuple[str, str]:
    assert op.call is not None
    value = op.call.args[index]
    assert isinstance(value, (Reg, Imm))
    return "ptr", ctx.spill(kind.llvm, ctx.vector_of(value, kind))


@effect("call")
def call(ctx: Context, op: Op) -> None:
    """Only external functions are left here; defined ones have been inlined."""
    assert op.call is not None and isinstance(op.call.callee, Function)
    mask = ("i32", ctx.bits_of(ctx.active))
    if op.call.callee.name == "vprintf":
        out = ctx.alloca(f"<{LANES} x i32>")
        arguments = [_argument(ctx, op, index, U64) for index in range(2)]
        ctx.call("void", "pe_vprintf", ("ptr", "%w"), ("i32", str(op.pos)), mask, *arguments, ("ptr", out))
        for value in op.call.returns:
            assert isinstance(value, Reg)
            ctx.bind(value, ctx.inst(f"load <{LANES} x i32>, ptr {out}, align 64"))
        return
    kinds = (U64, U64, U32, U64)  # message, file, line, function; the fifth is the size of a character
    arguments = [_argument(ctx, op, index, kind) for index, kind in enumerate(kinds)]
    ctx.call("void", "pe_assertfail", ("ptr", "%w"), ("i32", str(op.pos)), mask, *arguments, attributes="cold")
