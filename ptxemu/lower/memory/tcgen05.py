"""tcgen05: tensor memory and multiplications into it (PTX ISA, "TensorCore 5th Generation Family Instructions").

All of it is complete when it was issued, so that what waits for it, or orders it, does nothing.
"""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Vec, items_of
from ptxemu.ir.types import B32, B64, U32
from ptxemu.isa.multiplication import ctas_of, tensor_columns_of, tensor_constants_of, tensor_copy_of
from ptxemu.lower.core.access import access
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.memory.fragments import Slots
from ptxemu.lower.memory.matrix import first_address, first_of, mask_of, result_of
from ptxemu.lower.memory.mbarrier import update, update_peers

ONE = Imm(1, U32)


def _lane(ctx: Context, place: Operand) -> str:
    """An address in tensor memory, as lane 0 has it."""
    assert isinstance(place, Addr)
    base = str(place.base.bits) if isinstance(place.base, Imm) else first_of(ctx, place.base, B32)
    return ctx.scalar.bin("add", "i32", base, str(place.offset)) if place.offset else base


def _lanes(ctx: Context, place: Operand) -> str:
    """Where the addresses of all lanes are."""
    assert isinstance(place, Addr)
    value = ctx.vector_of(place.base, B32)
    return ctx.spill("i32", ctx.vector.bin("add", "i32", value, ctx.vector.int(32, place.offset)) if place.offset else value)


def _call(ctx: Context, op: Op, function: str, *arguments: tuple[str, str]) -> None:
    ctx.call("void", function, ("ptr", "%w"), ("i32", ctx.position(op)), *arguments)


@effect("tmem_alloc", size=20)
def alloc(ctx: Context, op: Op) -> None:
    """tcgen05.alloc: the first of so many columns goes to shared memory."""
    found = access(ctx, op, "a")
    arguments = ("i32", first_of(ctx, op["columns"], U32)), ("i64", first_address(ctx, found))
    ctas, space = ("i32", str(ctas_of(op))), ("i32", str(found.space_code))
    warp, position = ("ptr", "%w"), ("i32", ctx.position(op))
    ctx.call("i32", "pe_tmem_alloc", warp, position, ctas, space, mask_of(ctx, op), *arguments)


@effect("tmem_dealloc", size=20)
def dealloc(ctx: Context, op: Op) -> None:
    """tcgen05.dealloc."""
    arguments = ("i32", first_of(ctx, op["at"], B32)), ("i32", first_of(ctx, op["columns"], U32))
    _call(ctx, op, "pe_tmem_dealloc", mask_of(ctx, op), *arguments)


@effect("tmem_give_up", size=10)
def give_up(ctx: Context, op: Op) -> None:
    """tcgen05.relinquish_alloc_permit."""
    _call(ctx, op, "pe_tmem_give_up", mask_of(ctx, op))


@effect("tmem_order")
def order(ctx: Context, op: Op) -> None:
    """tcgen05.wait, tcgen05.fence."""


@effect("tmem_commit", size=40)
def commit(ctx: Context, op: Op) -> None:
    """tcgen05.commit: an arrival, as all that was issued is complete."""
    found, code = access(ctx, op, "a"), int(lib.PE_MBARRIER_ARRIVE)
    if "multicast" in op.mods:
        update_peers(ctx, found, code, ONE, op["ctas"])
    else:
        update(ctx, found, code, ONE)


def _move(ctx: Context, op: Op, function: str, fragment: str) -> None:
    site = ctx.site(op, "pe_tmem_site", **tensor_columns_of(op))
    ctx.call("void", function, ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), ("i32", _lane(ctx, op["t"])), ("ptr", fragment))


@effect("tmem_load", size=60)
def load(ctx: Context, op: Op) -> None:
    """tcgen05.ld, and ld.red, whose last result is what the others are reduced to."""
    slots = Slots(ctx)
    first, stays = result_of(op, slots)
    _move(ctx, op, "pe_tmem_load_reduced" if "red" in op.mods else "pe_tmem_load", slots.address(first))
    slots.define(op, first, stays)


@effect("tmem_store", size=60)
def store(ctx: Context, op: Op) -> None:
    """tcgen05.st."""
    items, slots = items_of(op["v"]), Slots(ctx)
    first, _ = slots.take(len(items))
    for index, item in enumerate(items):
        slots.write(first + index, item, B32)
    _move(ctx, op, "pe_tmem_store", slots.address(first))


@effect("tmem_copy", size=60)
def copy(ctx: Context, op: Op) -> None:
    """tcgen05.cp: each thread copies."""
    site = ctx.site(op, "pe_tmem_copy_site", **tensor_copy_of(op))
    matrices = ctx.spill("i64", ctx.vector_of(op["s"], B64))
    ctx.call(
        "void", "pe_tmem_copy", ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), ("ptr", _lanes(ctx, op["t"])), ("ptr", matrices)
    )


@effect("tmem_shift", size=20)
def shift(ctx: Context, op: Op) -> None:
    """tcgen05.shift: each thread moves rows."""
    _call(ctx, op, "pe_tmem_shift", ("i32", str(ctas_of(op))), mask_of(ctx, op), ("ptr", _lanes(ctx, op["t"])))


@effect("tmem_mma", size=60)
def mma(ctx: Context, op: Op) -> None:
    """tcgen05.mma: one thread's multiplication of whole matrices."""
    a = op["a"]
    in_columns = isinstance(a, Addr)
    site = ctx.site(op, "pe_tmem_mma_site", a_columns=int(in_columns), **tensor_constants_of(op, ctx.unit.numerics))
    if isinstance(a, Addr):
        columns = ctx.vector.bin("add", "i32", ctx.vector_of(a.base, B32), ctx.vector.int(32, a.offset))
        left = ctx.vector.cast("zext", "i32", columns, "i64")
    else:
        left = ctx.vector_of(a, B64)
    zeros = op.get("zeros")
    adds = ctx.bits_of(ctx.predicate(op["p"], op.negated("p"), True))
    ctx.call(
        "void", "pe_tmem_mma", ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), ("ptr", _lanes(ctx, op["t"])),
        ("ptr", ctx.spill("i64", left)), ("ptr", ctx.spill("i64", ctx.vector_of(op["b"], B64))),
        ("ptr", ctx.spill("i32", ctx.vector_of(op["format"], U32))), ("i32", adds), ("ptr", _disabled(ctx, op)),
        *(("ptr", _lanes(ctx, op[name]) if name in op.row.names else "null") for name in ("fa", "fb", "metadata")),
        ("ptr", "null" if zeros is None else ctx.spill("i64", ctx.vector_of(zeros, B64))),
    )  # fmt: skip


def _disabled(ctx: Context, op: Op) -> str:
    """Where the words are that tell which lanes of the result stay as they are: of a lane after those of another."""
    words = op.get("off")
    if not isinstance(words, Vec):
        return "null"
    slots = Slots(ctx)
    first, _ = slots.take(len(words.items))
    for index, item in enumerate(words.items):
        slots.write(first + index, item, B32)
    return slots.address(first)
