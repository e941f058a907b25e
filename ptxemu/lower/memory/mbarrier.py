"""mbarrier objects: one call of the runtime for all lanes (PTX ISA "mbarrier"); csrc/sync/mbarrier.c has the semantics."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Op, Operand
from ptxemu.ir.types import B64, TYPES, U32
from ptxemu.lower.core.access import Access, access, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise

NAMES = {"arrive": "ARRIVE", "arrive_drop": "DROP", "init": "INIT", "inval": "INVAL"}
REFINED = {"expect_tx": "EXPECT_TX", "complete_tx": "COMPLETE_TX", "noComplete": "NO_COMPLETE"}
TRANSACTIONS = {lib.PE_MBARRIER_EXPECT_TX, lib.PE_MBARRIER_COMPLETE_TX}
V1 = "layout::v1"
ONE = Imm(1, U32)


def operation(op: Op) -> int:
    """The runtime's code of an operation on an mbarrier object."""
    if "async" in op.mods:  # cp.async.mbarrier.arrive: all copies are complete already
        return int(lib.PE_MBARRIER_ARRIVE_NOINC if "noinc" in op.mods else lib.PE_MBARRIER_ARRIVE_LATER)
    if op.mods.get("layout") == V1:
        return int(lib.PE_MBARRIER_INIT_V1)
    words = [names[mod] for names in (NAMES, REFINED) for mod in op.mods if mod in names]
    return int(getattr(lib, f"PE_MBARRIER_{'_'.join(words)}"))


def mbarrier_site(ctx: Context, found: Access, code: int, relaxed: bool = False) -> tuple[str, str]:
    """The constant data of an operation. What is not ``relaxed`` releases what its thread did before."""
    return "ptr", ctx.site(found.op, "pe_mbarrier_site", op=code, space=found.space_code, relaxed=int(relaxed))


def _object(ctx: Context, found: Access, code: int, relaxed: bool = False) -> list[tuple[str, str]]:
    """What the runtime's functions take first: the constant data of an operation, its lanes and their objects."""
    lanes = ctx.spill("i64", vector_addresses(ctx, found))
    return [("ptr", "%w"), mbarrier_site(ctx, found, code, relaxed), ("i32", ctx.bits_of(found.mask)), ("ptr", lanes)]


def lane_words(ctx: Context, operand: Operand) -> str:
    """The address of a 32-bit operand of every lane."""
    return ctx.spill("i32", ctx.vector_of(operand, U32))


def update(ctx: Context, found: Access, code: int, value: Operand, state: str = "null") -> None:
    """Operate on the objects that an access finds; old contents go to ``state``."""
    update_from(ctx, found, code, lane_words(ctx, value), state)


def update_peers(ctx: Context, found: Access, code: int, value: Operand, ctas: Operand) -> None:
    """Operate on the objects in the same places of all CTAs of the cluster whose ranks are bits of an operand."""
    ranks = ctx.spill("i16", ctx.vector_of(ctas, TYPES["b16"]))
    ctx.call("void", "pe_mbarrier_multicast", *_object(ctx, found, code), ("ptr", lane_words(ctx, value)), ("ptr", ranks))


def update_from(ctx: Context, found: Access, code: int, values: str, state: str = "null", relaxed: bool = False) -> None:
    """The same with 32-bit values of the lanes in memory."""
    ctx.call("void", "pe_mbarrier", *_object(ctx, found, code, relaxed), ("ptr", values), ("ptr", state))


@effect("mbarrier", size=40)
def mbarrier(ctx: Context, op: Op) -> None:
    """init, inval, arrivals and transaction counts; an arrival's state is the object before it, in lane order."""
    wanted = any(dst is not None for dst in op.dsts)
    state = ctx.temporary(f"<{LANES} x i64>") if wanted else "null"
    value = next((operand for name in ("count", "tx") if (operand := op.get(name)) is not None), ONE)
    code = operation(op)
    relaxed = op.mods.get("sem") == "relaxed" or code in TRANSACTIONS
    update_from(ctx, access(ctx, op, "a"), code, lane_words(ctx, value), state, relaxed)
    if wanted:
        ctx.define(op, 0, ctx.inst(f"load <{LANES} x i64>, ptr {state}, align 64"))


@effect("mbarrier_layout", size=40)
def mbarrier_layout(ctx: Context, op: Op) -> None:
    """check_layout."""
    state = ctx.temporary(f"<{LANES} x i64>")
    update(ctx, access(ctx, op, "a"), int(lib.PE_MBARRIER_LOOK), ONE, state)
    objects = ctx.inst(f"load <{LANES} x i64>, ptr {state}, align 64")
    bit = ctx.vector.bin("and", "i64", objects, ctx.vector.int(64, 1 << lib.PE_MBARRIER_LAYOUT_BIT))
    ctx.define(op, 0, ctx.vector.icmp("ne" if op.mods["layout"] == V1 else "eq", "i64", bit, ctx.vector.int(64, 0)))


@effect("mbarrier_wait", size=40)
def mbarrier_wait(ctx: Context, op: Op) -> None:
    """test_wait, try_wait: whether the phase is complete. The time limit is the runtime's; a hint does not change it."""
    if "parity" in op.mods:
        parity = ctx.vector_of(op["phase"], U32)
    else:
        state = ctx.vector_of(op["state"], B64)
        parity = ctx.vector.bin("lshr", "i64", state, ctx.vector.int(64, lib.PE_MBARRIER_PHASE_BIT))
        parity = ctx.vector.cast("trunc", "i64", parity, "i32")
    code = int(getattr(lib, "PE_MBARRIER_" + next(mod for mod in op.mods if mod.endswith("_wait")).upper()))
    target = _object(ctx, access(ctx, op, "a"), code)
    done = ctx.call("i32", "pe_mbarrier_wait", *target, ("ptr", ctx.spill("i32", parity)))
    if op["d"] is not None and ctx.is_scalar(op["d"]):
        ctx.define(op, 0, ctx.scalar.icmp("ne", "i32", done, "0"))
    else:
        ctx.define(op, 0, ctx.mask_from_bits(done))


@elementwise("mbarrier_pending_count")
def pending_count(e: Emitter, op: Op, state: str) -> str:
    """The pending arrivals that a state has recorded."""
    bits = e.bin("and", "i64", state, e.int(64, (1 << lib.PE_MBARRIER_PENDING_BITS) - 1))
    return e.cast("trunc", "i64", bits, "i32")
