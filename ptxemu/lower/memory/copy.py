"""Asynchronous copies: complete as soon as they are issued (PTX ISA "cp.async" ...); csrc/memory/copy.c moves the bytes.

The manual lets a copy complete at any time up to the wait for it.  At once is the simplest such time, and a fault then
points at the copy.
"""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import B64, TYPES, U32
from ptxemu.lower.core.access import access, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.telling import tell_order
from ptxemu.lower.memory.atomics import atomic, operation, type_code
from ptxemu.lower.memory.mbarrier import lane_words, mbarrier_site, update
from ptxemu.lower.memory.memory import store

MOST_GROUPS = (1 << 23) - 1  # that are told apart


def _copied(ctx: Context, op: Op, mask: str, size: int = 0, code: int = 0, kind: int = 0) -> list[tuple[str, str]]:
    """What the runtime's functions take first: the constant data, the lanes, and their target and source addresses."""
    target, source = access(ctx, op, "d", mask), access(ctx, op, "s", mask)
    addresses = [("ptr", ctx.spill("i64", vector_addresses(ctx, one))) for one in (target, source)]
    site = ctx.site(op, "pe_copy_site", target=target.space_code, source=source.space_code, size=size, op=code, type=kind)
    return [("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(target.mask)), *addresses]


@effect("copy", size=60)
def copy(ctx: Context, op: Op) -> None:
    """cp.async: 4, 8 or 16 bytes a lane; what is not read (``src-size``, ``ignore-src``) becomes zeros."""
    size, given = op["immsize"], "null"
    assert isinstance(size, Imm)
    if "ignore" in op.row.names:
        ignored = ctx.predicate(op["ignore"], op.negated("ignore"), True)
        given = ctx.spill("i32", ctx.vector.select(ignored, "i32", ctx.vector.int(32, 0), ctx.vector.int(32, size.bits)))
    elif op["given"] is not None:
        given = lane_words(ctx, op["given"])
    ctx.call("void", "pe_copy", *_copied(ctx, op, ctx.mask_of(op), size=size.bits), ("ptr", given))


@effect("copies_done")
def copies_done(ctx: Context, op: Op) -> None:
    """Groups and waits: every copy issued so far is complete, which observers do not know."""
    bulk = int(lib.PE_OF_BULK) if "bulk" in op.mods else 0
    if "wait_group" in op.mods:
        count = op["immN"]
        assert isinstance(count, Imm)
        waits = int(lib.PE_COPIES_WAIT_READ if "read" in op.mods else lib.PE_COPIES_WAIT)
        tell_order(ctx, op, waits | bulk | min(count.bits, MOST_GROUPS) << int(lib.PE_BUT_AT))
        return
    tell_order(ctx, op, int(lib.PE_COPIES_GROUP) | bulk)
    if "wait_all" in op.mods:
        tell_order(ctx, op, int(lib.PE_COPIES_WAIT))


@effect("bulk_copy", size=60)
def bulk_copy(ctx: Context, op: Op) -> None:
    """cp.async.bulk: a block of memory for each active lane, then its bytes are taken off the mbarrier's count."""
    mask = ctx.mask_of(op)
    if "multicast" in op.mods:
        _multicast(ctx, op, mask)
        return
    chosen = ctx.spill("i16", ctx.vector_of(op["bytes"], TYPES["u16"])) if "mask" in op.mods else "null"
    ctx.call("void", "pe_bulk_copy", *_copied(ctx, op, mask), ("ptr", lane_words(ctx, op["size"])), ("ptr", chosen))
    _complete(ctx, op, mask)


@effect("bulk_copy_within", size=60)
def bulk_copy_within(ctx: Context, op: Op) -> None:
    """cp.async.bulk.ignore_oob: the bytes at both ends that may be out of bounds are not copied."""
    mask = ctx.mask_of(op)
    numbers = [("ptr", lane_words(ctx, op[name])) for name in ("size", "left", "right")]
    ctx.call("void", "pe_bulk_copy_within", *_copied(ctx, op, mask), *numbers)
    _complete(ctx, op, mask)


def _multicast(ctx: Context, op: Op, mask: str) -> None:
    """The same in every CTA of the cluster that the operand names, and its mbarrier."""
    found = access(ctx, op, "m", mask)
    completion = mbarrier_site(ctx, found, int(lib.PE_MBARRIER_COMPLETE_TX))
    warp, site, *sides = _copied(ctx, op, mask)
    ranks = ("ptr", ctx.spill("i16", ctx.vector_of(op["ctas"], TYPES["b16"])))
    objects = ("ptr", ctx.spill("i64", vector_addresses(ctx, found)))
    size = ("ptr", lane_words(ctx, op["size"]))
    ctx.call("void", "pe_bulk_multicast", warp, site, completion, *sides, size, ranks, objects)


@effect("bulk_reduce", size=60)
def bulk_reduce(ctx: Context, op: Op) -> None:
    """cp.reduce.async.bulk: every element of the target is updated with the source's."""
    kind = op.type()
    mask = ctx.mask_of(op)
    sides = _copied(ctx, op, mask, code=operation(op.mods["op"], kind), kind=type_code(kind))
    ctx.call("void", "pe_bulk_reduce", *sides, ("ptr", lane_words(ctx, op["size"])))
    _complete(ctx, op, mask)


def _complete(ctx: Context, op: Op, mask: str) -> None:
    """The bytes of a copy have arrived."""
    if "m" in op.row.names:
        update(ctx, access(ctx, op, "m", mask), lib.PE_MBARRIER_COMPLETE_TX, op["size"])


def _bytes_arrived(ctx: Context, op: Op) -> None:
    """The bytes of a store or a reduction have arrived."""
    if "m" in op.row.names:
        update(ctx, access(ctx, op, "m"), lib.PE_MBARRIER_COMPLETE_TX, Imm(op.access_of("a").bytes or 0, U32))


@effect("st_async")
def st_async(ctx: Context, op: Op) -> None:
    """st.async: a store that tells an mbarrier."""
    store(ctx, op)
    _bytes_arrived(ctx, op)


@effect("red_async")
def red_async(ctx: Context, op: Op) -> None:
    """red.async: a reduction that tells an mbarrier."""
    atomic(ctx, op)
    _bytes_arrived(ctx, op)


@effect("st_bulk")
def st_bulk(ctx: Context, op: Op) -> None:
    """st.bulk: a block of shared memory becomes zeros."""
    found = access(ctx, op, "a")
    site = ctx.site(op, "pe_copy_site", target=found.space_code, source=0, size=0, op=0, type=0)
    lanes = ctx.spill("i64", vector_addresses(ctx, found))
    ctx.call(
        "void", "pe_bulk_zero", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(found.mask)), ("ptr", lanes),
        ("ptr", ctx.spill("i64", ctx.vector_of(op["size"], B64))),
    )  # fmt: skip
