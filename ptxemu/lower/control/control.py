"""trap, brkpt and what the passes insert; conversions of addresses between spaces."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Op, SymRef
from ptxemu.isa.table import CLUSTER_SHARED
from ptxemu.lower.control.cluster import source_address
from ptxemu.lower.core.access import local_bases, whole
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.distributed import Windows
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise, source_type
from ptxemu.lower.core.layout import STARTS
from ptxemu.lower.core.masks import first_lane


@elementwise("_move")
def _move(e: Emitter, op: Op, value: str) -> str:
    return value


@elementwise("_equal")
def _equal(e: Emitter, op: Op, a: str, b: str) -> str:
    return e.icmp("eq", source_type(op, 0), a, b)


def raise_fault(ctx: Context, op: Op, kind: int) -> None:
    ctx.call(
        "void", "pe_fault", ("ptr", "%w"), ("i32", str(kind)), ("i32", ctx.position(op)), ("i32", first_lane(ctx)),
        ("i32", "0"), ("i64", "0"), ("i32", "0"), attributes="cold",
    )  # fmt: skip


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
    """cvta (PTX ISA "cvta"): add or subtract the window's base; global, const and param addresses are generic already.

    Those of constants and parameters may have been in 32 bits. Addresses of shared memory may be those of other CTAs of the
    cluster; variables are the thread's own.
    """
    dst, kind = op["d"], op.type_of("d")
    if dst is None or kind is None:
        return
    vector = not ctx.is_scalar(dst)
    emitter = ctx.vector if vector else ctx.scalar
    value = source_address(ctx, op, vector)
    space = _window(op)
    if space == "shared":
        windows = Windows(ctx, vector)
        own = isinstance(op["a"], SymRef) and not ctx.unit.ranked
        to = windows.shared if "to" in op.mods else windows.own if own else windows.generic
        value = to(value)
    elif space == "local":
        value = ctx.vector.bin("sub" if "to" in op.mods else "add", "i64", value, local_bases(ctx))
    elif space in STARTS and "to" not in op.mods and not isinstance(op["a"], SymRef):
        is_short = emitter.icmp("ult", "i64", value, emitter.int(64, 1 << 32))
        named = whole(ctx, emitter, emitter.cast("trunc", "i64", value, "i32"), space)
        value = emitter.select(is_short, "i64", named, value)
    ctx.define(op, 0, emitter.cast("trunc", "i64", value, f"i{kind.bits}"))


def _window(op: Op) -> str:
    """The state space, without its ``::cta`` refinement."""
    return op.mods["space"].partition("::")[0]


@effect("isspacep")
def isspacep(ctx: Context, op: Op) -> None:
    """isspacep (PTX ISA): does a generic address fall in the space's window?

    An address that falls in no window is global, and so are those of parameters, whose window lies in that of global memory.
    """
    dst = op["d"]
    if dst is None:
        return
    vector = not ctx.is_scalar(dst)
    value = source_address(ctx, op, vector)
    space = _window(op)
    if space == "shared" and op.mods["space"] != CLUSTER_SHARED:
        ctx.define(op, 0, _inside(ctx, value, ctx.field("shared_base"), ctx.field("shared_size"), vector))
        return
    cluster = Windows(ctx, vector)
    offset = cluster.offset(value)
    in_size = cluster.e.icmp("ult", "i64", cluster.within(offset), cluster.field("shared_size"))
    shared = cluster.e.bin("and", "i1", cluster.holds(offset), in_size)
    if space == "shared":
        ctx.define(op, 0, shared)
        return
    local = _inside(ctx, value, ctx.field("local_base"), _local_extent(ctx), vector)
    if space == "local":
        ctx.define(op, 0, local)
        return
    if space == "param":
        ctx.define(op, 0, _inside(ctx, value, ctx.field("param_base"), ctx.field("param_size"), vector))
        return
    const = _inside(ctx, value, ctx.field("const_base"), ctx.field("const_size"), vector)
    if space == "const":
        ctx.define(op, 0, const)
        return
    emitter = ctx.vector if vector else ctx.scalar
    windows = emitter.bin("or", "i1", emitter.bin("or", "i1", shared, local), const)
    ctx.define(op, 0, emitter.bin("xor", "i1", windows, emitter.int(1, 1)))


def _local_extent(ctx: Context) -> str:
    return ctx.once("local_extent", f"mul i64 {ctx.field('local_size')}, 32")


def _inside(ctx: Context, value: str, base: str, size: str, vector: bool) -> str:
    emitter = ctx.vector if vector else ctx.scalar
    if vector:
        base, size = ctx.splat("i64", base), ctx.splat("i64", size)
    return emitter.icmp("ult", "i64", emitter.bin("sub", "i64", value, base), size)
