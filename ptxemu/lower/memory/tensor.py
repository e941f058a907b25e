"""Copies between tensors and shared memory, and tensor maps (PTX ISA "Tensor copy"); csrc/tensor/ has the semantics."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, items_of
from ptxemu.ir.tensors import COORDINATES, OFFSETS, copy_site, field_site, field_value
from ptxemu.ir.types import B64, TYPES, U32
from ptxemu.lower.core.access import access, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.memory.mbarrier import mbarrier_site, update_from


def _addresses(ctx: Context, op: Op, name: str, mask: str) -> tuple[str, str]:
    return "ptr", ctx.spill("i64", vector_addresses(ctx, access(ctx, op, name, mask)))


def _words(ctx: Context, type_: str, values: Sequence[str], count: int) -> str:
    """Vectors one after another in memory, with room for ``count``."""
    room = ctx.temporary(f"<{count * LANES} x {type_}>")
    for number, value in enumerate(values):
        place = ctx.inst(f"getelementptr <{LANES} x {type_}>, ptr {room}, i32 {number}")
        ctx.stmt(f"store <{LANES} x {type_}> {value}, ptr {place}, align 64")
    return room


def _tensor(ctx: Context, op: Op, mask: str) -> list[tuple[str, str]]:
    """The maps of the lanes, and their coordinates."""
    coordinates = [ctx.vector_of(item, U32) for item in items_of(op["coordinates"])]
    return [_addresses(ctx, op, "t", mask), ("ptr", _words(ctx, "i32", coordinates, COORDINATES))]


def _site(ctx: Context, op: Op, box: str, mask: str) -> str:
    spaces = {"box": access(ctx, op, box, mask).space_code, "map": access(ctx, op, "t", mask).space_code}
    return ctx.site(op, "pe_tensor_site", **spaces, **copy_site(op))


def _head(ctx: Context, op: Op, box: str, mask: str) -> list[tuple[str, str]]:
    return [("ptr", "%w"), ("ptr", _site(ctx, op, box, mask)), ("i32", ctx.bits_of(mask))]


def _offsets(ctx: Context, op: Op) -> tuple[str, str]:
    if "o" not in op.row.names:
        return "ptr", "null"
    given = [ctx.vector_of(item, TYPES["u16"]) for item in items_of(op["o"])]
    return "ptr", _words(ctx, "i16", given + ["zeroinitializer"] * (OFFSETS - len(given)), OFFSETS)


@effect("tensor_load", size=80)
def tensor_load(ctx: Context, op: Op) -> None:
    """To shared memory; then the bytes of the box are taken off the mbarrier's count."""
    mask = ctx.mask_of(op)
    warp, site, lanes = _head(ctx, op, "d", mask)
    box = (_addresses(ctx, op, "d", mask), *_tensor(ctx, op, mask), _offsets(ctx, op))
    found = access(ctx, op, "m", mask)
    if "multicast" not in op.mods:
        counts = ctx.temporary(f"<{LANES} x i32>")
        ctx.call("void", "pe_tensor_load", warp, site, lanes, *box, ("ptr", counts))
        update_from(ctx, found, lib.PE_MBARRIER_COMPLETE_TX, counts)
        return
    completion = mbarrier_site(ctx, found, int(lib.PE_MBARRIER_COMPLETE_TX))
    ranks = ("ptr", ctx.spill("i16", ctx.vector_of(op["ctas"], TYPES["b16"])))
    objects = ("ptr", ctx.spill("i64", vector_addresses(ctx, found)))
    pairs = ("i32", str(int(op.mods.get("group") == "cta_group::2")))
    ctx.call("void", "pe_tensor_multicast", warp, site, completion, lanes, *box, ranks, objects, pairs)


@effect("tensor_store", size=80)
def tensor_store(ctx: Context, op: Op) -> None:
    """To global memory, or what is there is updated."""
    mask = ctx.mask_of(op)
    ctx.call("void", "pe_tensor_store", *_head(ctx, op, "s", mask), _addresses(ctx, op, "s", mask), *_tensor(ctx, op, mask))


@effect("tensor_replace", size=40)
def tensor_replace(ctx: Context, op: Op) -> None:
    """A field of a tensor map gets a new value."""
    found, value = access(ctx, op, "a"), field_value(op)
    wide = op.mods["type"] == "b64"
    words = ctx.vector_of(value, B64 if wide else U32)
    if not wide:
        words = ctx.vector.cast("zext", "i32", words, "i64")
    site = ctx.site(op, "pe_tensor_field_site", space=found.space_code, **field_site(op))
    ctx.call("void", "pe_tensor_replace", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(found.mask)),
             ("ptr", ctx.spill("i64", vector_addresses(ctx, found))), ("ptr", ctx.spill("i64", words)))  # fmt: skip


@effect("tensor_publish", size=40)
def tensor_publish(ctx: Context, op: Op) -> None:
    """A tensor map goes from shared to global memory."""
    mask = ctx.mask_of(op)
    ctx.call("void", "pe_tensor_publish", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", ctx.bits_of(mask)),
             _addresses(ctx, op, "d", mask), _addresses(ctx, op, "s", mask))  # fmt: skip
