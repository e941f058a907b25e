"""Calls that are not inlined; those of the functions that compilers leave external: vprintf, __assertfail, malloc, free and
the grid barrier of cooperative groups."""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Function, Imm, Op, Reg
from ptxemu.ir.runtime_calls import GRID_SCOPE, SIGNATURES
from ptxemu.ir.types import U32, U64, ScalarType
from ptxemu.lower.core.access import note_position
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.functions.routines import real_call


@effect("call", size=60)
def call(ctx: Context, op: Op) -> None:
    """call (PTX ISA "call"), except of functions that have been inlined."""
    assert op.call is not None
    if op.call.real:
        real_call(ctx, op)
        return
    assert isinstance(op.call.callee, Function)
    name = op.call.callee.name
    arguments = [_argument(ctx, op, index, U64 if bits == 64 else U32) for index, bits in enumerate(SIGNATURES[name][1])]
    note_position(ctx, op)
    warp, pos, mask = ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", ctx.bits_of(ctx.active))
    if name == "vprintf":
        _returning(ctx, op, "i32", "pe_vprintf", warp, pos, mask, *arguments)
    elif name == "malloc":
        _returning(ctx, op, "i64", "pe_malloc", warp, mask, *arguments)
    elif name == "free":
        ctx.call("void", "pe_free", warp, pos, mask, *arguments)
    elif name == "cudaGraphSetConditional":
        ctx.call("void", "pe_set_condition", warp, pos, mask, *arguments)
    elif name == "cudaCGGetIntrinsicHandle":
        _grid_handle(ctx, op)
    elif name.startswith("cudaCGSynchronize"):
        ctx.call("void", "pe_grid_sync", warp, pos, mask)
        _results(ctx, op, "zeroinitializer")  # cudaSuccess
    else:
        ctx.call("void", "pe_assertfail", warp, pos, mask, *arguments[:4], attributes="cold")


def _argument(ctx: Context, op: Op, index: int, kind: ScalarType) -> tuple[str, str]:
    """All lanes' values in memory."""
    assert op.call is not None
    value = op.call.args[index]
    assert isinstance(value, (Reg, Imm))
    return "ptr", ctx.spill(kind.llvm, ctx.vector_of(value, kind))


def _returning(ctx: Context, op: Op, t: str, function: str, *arguments: tuple[str, str]) -> None:
    """Call a function whose last argument is where it leaves every lane's result."""
    out = ctx.temporary(f"<{LANES} x {t}>")
    ctx.call("void", function, *arguments, ("ptr", out))
    _results(ctx, op, ctx.inst(f"load <{LANES} x {t}>, ptr {out}, align 64"))


def _results(ctx: Context, op: Op, value: str) -> None:
    assert op.call is not None
    for result in op.call.returns:
        assert isinstance(result, Reg)
        ctx.bind(result, value)


def _grid_handle(ctx: Context, op: Op) -> None:
    """The handle of the grid, 0 where the launch is not cooperative; other scopes have none."""
    assert op.call is not None
    scope = op.call.args[0]
    assert isinstance(scope, (Reg, Imm))
    grid = ctx.vector.icmp("eq", "i32", ctx.vector_of(scope, U32), ctx.vector.int(32, GRID_SCOPE))
    _results(ctx, op, ctx.vector.select(grid, "i64", ctx.splat("i64", ctx.field("grid_workspace")), ctx.vector.int(64, 0)))
