"""trap, brkpt and what the passes insert; conversions of addresses between spaces."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Op
from ptxemu.ir.types import B64, U32
from ptxemu.lower.core.access import local_bases
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise, source_type


@elementwise("_move")
def _move(e: Emitter, op: Op, value: str) -> str:
    return value


@elementwise("_equal")
def _equal(e: Emitter, op: Op, a: str, b: str) -> str:
    return e.icmp("eq", source_type(op, 0), a, b)


def raise_fault(ctx: Context, op: Op, kind: int) -> None:
    ctx.call(
        "void", "pe_fault", ("ptr", "%w"), ("i32", str(kind)), ("i32", ctx.position(op)), ("i32", _first_lane(ctx)),
        ("i32", "0"), ("i64", "0"), ("i32", "0"), attributes="cold",
    )  # fmt: skip


def _first_lane(ctx: Context) -> str:
    return ctx.scalar.intrinsic("cttz", "i32", ctx.bits_of(ctx.active), extra="i1 true")


@effect("trap")
def trap(ctx: Context, op: Op) -> None:
    """trap (PTX ISA): end the launch with an error."""
    raise_fault(ctx, op, lib.PE_TRAP)


@effect("_invalid_branch")
def invalid_branch(ctx: Context, op: Op) -> None:
    raise_fault(ctx, op, lib.PE_INVALID_BRANCH)


@effect("brkpt")
def brkpt(ctx: Context, op: Op) -> None:
    """brkpt: suspends for a debugger; with none attached execution goes on."""


@effect("pmevent")
def pmevent(ctx: Context, op: Op) -> None:
    """pmevent: would trigger performance counters; there are none."""


@effect("cvta")
def cvta(ctx: Context, op: Op) -> None:
    """cvta (PTX ISA "cvta"): add or subtract the window's base; global, const and param addresses are generic already."""
    dst, kind = op["d"], op.type_of("d")
    if dst is None or kind is None:
        return
    vector = not ctx.is_scalar(dst)
    emitter = ctx.vector if vector else ctx.scalar
    value = _address(ctx, op, vector)
    space = _window(op)
    operation = "sub" if "to" in op.mods else "add"
    if space == "shared":
        base = ctx.field("shared_base")
        value = emitter.bin(operation, "i64", value, ctx.splat("i64", base) if vector else base)
    elif space == "local":
        value = ctx.vector.bin(operation, "i64", value, local_bases(ctx))
    ctx.define(op, 0, emitter.cast("trunc", "i64", value, f"i{kind.bits}"))


def _window(op: Op) -> str:
    """The state space, without its ``::cta`` refinement."""
    return op.mods["space"].partition("::")[0]


def _address(ctx: Context, op: Op, vector: bool) -> str:
    """The source address as i64; 32-bit sources are window offsets."""
    from ptxemu.ir.ops import Reg, SymRef
    from ptxemu.lower.core.special import symbol_value

    source = op["a"]
    if isinstance(source, SymRef):
        value = symbol_value(ctx, source)
        return ctx.splat("i64", value) if vector else value
    kind = U32 if isinstance(source, Reg) and source.type.bits == 32 else B64
    value = ctx.vector_of(source, kind) if vector else ctx.scalar_of(source, kind)
    return (ctx.vector if vector else ctx.scalar).cast("zext", kind.llvm, value, "i64")


@effect("isspacep")
def isspacep(ctx: Context, op: Op) -> None:
    """isspacep (PTX ISA): does a generic address fall in the space's window?"""
    dst = op["d"]
    if dst is None:
        return
    vector = not ctx.is_scalar(dst)
    value = _address(ctx, op, vector)
    space = _window(op)
    shared = _inside(ctx, value, ctx.field("shared_base"), ctx.field("shared_size"), vector)
    if space == "shared":
        ctx.define(op, 0, shared)
        return
    local = _inside(ctx, value, ctx.field("local_base"), _local_extent(ctx), vector)
    if space == "local":
        ctx.define(op, 0, local)
        return
    const = _inside(ctx, value, ctx.field("const_base"), ctx.field("const_size"), vector)
    param = _inside(ctx, value, ctx.field("param_base"), ctx.field("param_size"), vector)
    if space in ("const", "param"):
        ctx.define(op, 0, const if space == "const" else param)
        return
    emitter = ctx.vector if vector else ctx.scalar
    windows = emitter.bin("or", "i1", emitter.bin("or", "i1", shared, local), emitter.bin("or", "i1", const, param))
    inside = _inside(ctx, value, ctx.field("arena_base"), ctx.field("arena_size"), vector)
    ctx.define(op, 0, emitter.bin("and", "i1", inside, emitter.bin("xor", "i1", windows, emitter.int(1, 1))))


def _local_extent(ctx: Context) -> str:
    return ctx.once("local_extent", f"mul i64 {ctx.field('local_size')}, 32")


def _inside(ctx: Context, value: str, base: str, size: str, vector: bool) -> str:
    emitter = ctx.vector if vector else ctx.scalar
    if vector:
        base, size = ctx.splat("i64", base), ctx.splat("i64", size)
    return emitter.icmp("ult", "i64", emitter.bin("sub", "i64", value, base), size)
