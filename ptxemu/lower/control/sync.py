"""Barriers and fences."""

from __future__ import annotations

from functools import partial

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.convergence import counts_threads, meets_all, membermask
from ptxemu.ir.ops import Op, Operand
from ptxemu.ir.types import B32, PRED, U32
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.masks import first_lane
from ptxemu.lower.core.telling import tell_fence, tell_order

REDUCTIONS = {"popc": 0, "and": 1, "or": 2}


def _uniform(ctx: Context, operand: Operand) -> str:
    """A barrier number or count: of a varying register, the first active lane's value."""
    shape = ctx.shape(operand)
    if shape is not None and shape.uniform:
        return ctx.scalar_of(operand, U32)
    lane = first_lane(ctx)
    return ctx.inst(f"extractelement <{LANES} x i32> {ctx.vector_of(operand, U32)}, i32 {lane}")


def _arguments(ctx: Context, op: Op) -> tuple[str, str]:
    """The number of a barrier and the count of threads, 0 for all of the CTA."""
    return _uniform(ctx, op["a"]), "0" if op["b"] is None else _uniform(ctx, op["b"])


def _predicate(ctx: Context, op: Op) -> str:
    """The lanes whose predicate is true."""
    return ctx.conjunction(ctx.active, ctx.predicate(op["c"], op.negated("c"), True))


def _form(op: Op) -> int:
    """``barrier`` without ``.aligned`` counts threads; the others count whole warps (PTX ISA "bar, barrier").

    In this scheme, lanes that do not come to a barrier of the whole CTA are on their way out (:mod:`ptxemu.analysis.barriers`).
    """
    whole = op["b"] is None
    return lib.PE_BARRIER_PER_THREAD if counts_threads(op) and not whole else 0


def _barrier(ctx: Context, op: Op, arrive: int) -> None:
    number, count = _arguments(ctx, op)
    ctx.call(
        "void", "pe_barrier", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", number), ("i32", count),
        ("i32", ctx.bits_of(ctx.active)), ("i32", str(arrive | _form(op))),
    )  # fmt: skip


@effect("barrier_sync", size=20)
def barrier_sync(ctx: Context, op: Op) -> None:
    """bar.sync, barrier.sync (PTX ISA "bar, barrier")."""
    _barrier(ctx, op, 0)


@effect("barrier_arrive", size=20)
def barrier_arrive(ctx: Context, op: Op) -> None:
    _barrier(ctx, op, 1)


@effect("barrier_red", size=40)
def barrier_red(ctx: Context, op: Op) -> None:
    """bar.red: popc gives a count, and/or a predicate."""
    number, count = _arguments(ctx, op)
    predicate = _predicate(ctx, op)
    kind = next(REDUCTIONS[mod] for mod in op.mods.values() if mod in REDUCTIONS)
    result = ctx.call(
        "i32", "pe_barrier_red", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", number), ("i32", count),
        ("i32", ctx.bits_of(ctx.active)), ("i32", str(kind | _form(op))), ("i32", ctx.bits_of(predicate)),
    )  # fmt: skip
    if op.type_of("d") is PRED:
        result = ctx.scalar.icmp("ne", "i32", result, "0")
    ctx.define(op, 0, result)


@effect("_barrier_join")
def barrier_join(ctx: Context, op: Op) -> None:
    """The first half of a barrier that counts threads: lanes arrive, each at the barrier that it names."""
    action, predicate = int(lib.PE_LANES_ARRIVE if "arrive" in op.mods else lib.PE_LANES_SYNC), "0"
    if "red" in op.mods:
        action = lib.PE_LANES_RED + next(REDUCTIONS[mod] for mod in op.mods.values() if mod in REDUCTIONS)
        predicate = ctx.bits_of(_predicate(ctx, op))
    values = [ctx.vector.int(32, 0) if operand is None else ctx.vector_of(operand, U32) for operand in (op["a"], op["b"])]
    ctx.call(
        "void", "pe_barrier_lanes", ("ptr", "%w"), ("i32", ctx.position(op)), *(("ptr", ctx.in_memory("i32", v)) for v in values),
        ("i32", ctx.bits_of(ctx.active)), ("i32", str(action)), ("i32", predicate),
    )  # fmt: skip


@effect("_barrier_leave")
def barrier_leave(ctx: Context, op: Op) -> None:
    """The second half: lanes have their barrier's result."""
    if op.get("d") is None:
        return
    results = ctx.spill("i32", ctx.vector.int(32, 0))
    ctx.call("void", "pe_barrier_results", ("ptr", "%w"), ("ptr", results))
    value = ctx.inst(f"load <{LANES} x i32>, ptr {results}, align 64")
    ctx.define(op, 0, ctx.vector.icmp("ne", "i32", value, ctx.vector.int(32, 0)) if op.type_of("d") is PRED else value)


@effect("wgmma_wait", size=10)
def wgmma_wait(ctx: Context, op: Op) -> None:
    """wgmma.wait_group: the products of a warp are complete, and with this those of the others."""
    ctx.call("void", "pe_warpgroup_wait", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", ctx.bits_of(ctx.active)))


@effect("wgmma_order")
def wgmma_order(ctx: Context, op: Op) -> None:
    """wgmma.fence, wgmma.commit_group: products are complete as soon as they are issued."""


@effect("bar_warp_sync", size=10)
def bar_warp_sync(ctx: Context, op: Op) -> None:
    """bar.warp.sync: the lanes of a warp run in step, so that only memory has to be ordered."""
    tell_order(ctx, op, lib.PE_WARP_SYNC)
    ctx.stmt("fence acq_rel")


def tell_members(ctx: Context, op: Op) -> None:
    """Tell the runtime which membermasks lanes give that execute an instruction together, but for all lanes with one of all."""
    members = membermask(op)
    if members is None:
        return
    bits = ctx.bits_of(ctx.mask_of(op))

    def tell() -> list[str]:
        ctx.call(
            "void", "pe_observe_members", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", bits),
            ("ptr", ctx.in_memory("i32", ctx.vector_of(members, B32))),
        )  # fmt: skip
        return []

    if meets_all(op):
        ctx.when(ctx.scalar.icmp("ne", f"i{LANES}", bits, "-1"), tell, list, [], likely=False)
    else:
        tell()


@effect("fence")
def fence(ctx: Context, op: Op) -> None:
    """membar, fence (PTX ISA "membar, fence"): a full fence serves every level and scope, none is due between proxies."""
    kind = str(op.mods.get("kind", ""))
    if kind.startswith("async"):
        tell_order(ctx, op, lib.PE_FENCE_ASYNC)
    if kind != "async":
        tell_fence(ctx, op)
    ctx.stmt("fence seq_cst")


def note_exit(ctx: Context) -> None:
    """Lanes leave the kernel while others may go on to a barrier, which must not wait for them."""
    offset, _ = ctx.layout.warp_field("exited")
    pointer = ctx.once("exited", f"getelementptr i8, ptr %w, i64 {offset}")
    gone = ctx.scalar.bin("or", "i32", ctx.inst(f"load i32, ptr {pointer}, align 4"), ctx.bits_of(ctx.active))
    ctx.stmt(f"store i32 {gone}, ptr {pointer}, align 4")


def poll(ctx: Context) -> None:
    """Do what the warps of the launch are asked to: leave the kernel, or go on in another thread."""
    if ctx.target.polls:
        ctx.stmt(f'call void asm sideeffect "{POLL}", "r,~{{flags}}"(ptr {ctx.field("asked")}) nounwind {UNSEEN}')
        return
    asked = ctx.inst(f"load volatile i32, ptr {ctx.field('asked')}, align 4")
    stopped = ctx.scalar.icmp("ne", "i32", asked, "0")
    ctx.leave_if(stopped, partial(ctx.call, "void", "pe_stop", ("ptr", "%w"), attributes="cold noreturn"))


POLL = r"\0A".join(
    """cmpl $$0, ($0)
    jne 1f
    2:
    .subsection 1
    1: leaq -128(%rsp), %rsp
    callq pe_attend@PLT
    leaq 128(%rsp), %rsp
    jmp 2b
    .previous""".splitlines()
)
"""Loops have no further block for it, and no call that they would have to keep values for: ``pe_attend`` changes no register. The
call is behind all code. Functions may have values in the 128 bytes below the stack pointer (System V ABI, AMD64, 3.2.2)."""

UNSEEN = "memory(inaccessiblemem: readwrite)"
"""What it changes is no memory of the kernel."""
