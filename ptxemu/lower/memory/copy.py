"""Asynchronous copies: complete as soon as they are issued (PTX ISA "cp.async" ...); csrc/memory/copy.c moves the bytes.

The manual lets a copy complete at any time up to the wait for it.  At once is the simplest such time, and a fault then
points at the copy.
"""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Imm, Op, Operand, Vec
from ptxemu.ir.types import B64, PRED, TYPES, U32
from ptxemu.lower.core.access import SPACES, access, space_of, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.memory.atomics import atomic, operation, type_code
from ptxemu.lower.memory.mbarrier import lane_words, update
from ptxemu.lower.memory.memory import store


def _site(ctx: Context, op: Op, size: int = 0, code: int = 0, kind: int = 0) -> str:
    target, source = (SPACES[space_of(op, slot)] for slot in ("dst", "src"))
    return ctx.site(op, "pe_copy_site", target=target, source=source, size=size, op=code, type=kind)


def _sides(ctx: Context, op: Op) -> list[tuple[str, str]]:
    """Target and source addresses of all lanes, as arguments."""
    found = [access(ctx, op, op.srcs[0], 1, "dst"), access(ctx, op, op.srcs[1], 1, "src")]
    return [("ptr", ctx.spill("i64", vector_addresses(ctx, one))) for one in found]


@effect("copy", size=60)
def copy(ctx: Context, op: Op) -> None:
    """cp.async: 4, 8 or 16 bytes a lane; what is not read (``src-size``, ``ignore-src``) becomes zeros."""
    size = op.srcs[2]
    assert isinstance(size, Imm)
    given = "null"
    parts = op.srcs[3:-1] if "hint" in op.mods else op.srcs[3:]
    if parts and op.src_types[3] is PRED:
        negated = bool(op.negs) and op.negs[3]
        ignored = ctx.predicate(parts[0], negated, True)
        given = ctx.spill("i32", ctx.vector.select(ignored, "i32", ctx.vector.int(32, 0), ctx.vector.int(32, size.bits)))
    elif parts:
        given = lane_words(ctx, parts[0])
    ctx.call(
        "void", "pe_copy", ("ptr", "%w"), ("ptr", _site(ctx, op, size.bits)), ("i32", ctx.bits_of(ctx.mask_of(op))),
        *_sides(ctx, op), ("ptr", given),
    )  # fmt: skip


@effect("copies_done")
def copies_done(ctx: Context, op: Op) -> None:
    """Groups and waits: every copy issued so far is complete."""


@effect("bulk_copy", size=60)
def bulk_copy(ctx: Context, op: Op) -> None:
    """cp.async.bulk: a block of memory for each active lane, then its bytes are taken off the mbarrier's count."""
    mask = ctx.mask_of(op)
    if "multicast" in op.mods:
        mask = ctx.conjunction(mask, _includes_self(ctx, op.srcs[4]))
    chosen = ctx.spill("i16", ctx.vector_of(op.srcs[-1], TYPES["u16"])) if "mask" in op.mods else "null"
    ctx.call(
        "void", "pe_bulk_copy", ("ptr", "%w"), ("ptr", _site(ctx, op)), ("i32", ctx.bits_of(mask)), *_sides(ctx, op),
        ("ptr", lane_words(ctx, op.srcs[2])), ("ptr", chosen),
    )  # fmt: skip
    _complete(ctx, op, mask)


def _includes_self(ctx: Context, ctas: Operand) -> str:
    """Multicast to the only CTA there is: bit 0 of the set of ranks."""
    return ctx.vector.cast("trunc", "i16", ctx.vector_of(ctas, TYPES["b16"]), "i1")


@effect("bulk_reduce", size=60)
def bulk_reduce(ctx: Context, op: Op) -> None:
    """cp.reduce.async.bulk: every element of the target is updated with the source's."""
    kind = op.type()
    site = _site(ctx, op, 0, operation(op.mods["op"], kind), type_code(kind))
    mask = ctx.mask_of(op)
    ctx.call(
        "void", "pe_bulk_reduce", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(mask)), *_sides(ctx, op),
        ("ptr", lane_words(ctx, op.srcs[2])),
    )  # fmt: skip
    _complete(ctx, op, mask)


def _complete(ctx: Context, op: Op, mask: str) -> None:
    if op.mods["completion"].startswith("mbarrier"):
        update(ctx, op, lib.PE_MBARRIER_COMPLETE_TX, op.srcs[3], op.srcs[2], "null", "dst", mask)


def _bytes_arrived(ctx: Context, op: Op, size: int) -> None:
    """``size`` bytes a lane have arrived for the mbarrier that the last operand names."""
    if op.mods.get("completion", "").startswith("mbarrier"):
        update(ctx, op, lib.PE_MBARRIER_COMPLETE_TX, op.srcs[-1], Imm(size, U32), "null")


@effect("st_async")
def st_async(ctx: Context, op: Op) -> None:
    """st.async: a store that tells an mbarrier."""
    store(ctx, op)
    kind = op.type()
    _bytes_arrived(ctx, op, kind.bytes * (len(op.srcs[1].items) if isinstance(op.srcs[1], Vec) else 1))


@effect("red_async")
def red_async(ctx: Context, op: Op) -> None:
    """red.async: a reduction that tells an mbarrier."""
    atomic(ctx, op)
    _bytes_arrived(ctx, op, op.type().bytes)


@effect("st_bulk")
def st_bulk(ctx: Context, op: Op) -> None:
    """st.bulk: a block of shared memory becomes zeros."""
    site = ctx.site(op, "pe_copy_site", target=SPACES[space_of(op)], source=0, size=0, op=0, type=0)
    lanes = ctx.spill("i64", vector_addresses(ctx, access(ctx, op, op.srcs[0], 1)))
    ctx.call(
        "void", "pe_bulk_zero", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))), ("ptr", lanes),
        ("ptr", ctx.spill("i64", ctx.vector_of(op.srcs[1], B64))),
    )  # fmt: skip
