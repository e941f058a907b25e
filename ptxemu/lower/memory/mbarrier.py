"""mbarrier objects: one call of the runtime for all lanes (PTX ISA "mbarrier"); csrc/sync/mbarrier.c has the semantics."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Op, Operand
from ptxemu.ir.types import B64, U32
from ptxemu.lower.core.access import SPACES, access, space_of, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise

SIZE = 8
NAMES = {"arrive": "ARRIVE", "arrive_drop": "DROP", "init": "INIT", "inval": "INVAL"}
REFINED = {"expect_tx": "EXPECT_TX", "complete_tx": "COMPLETE_TX", "noComplete": "NO_COMPLETE"}
ONE = Imm(1, U32)


def operation(op: Op) -> int:
    """The runtime's code of an operation on an mbarrier object."""
    if op.opcode == "cp":  # cp.async.mbarrier.arrive: all copies are complete already
        return int(lib.PE_MBARRIER_ARRIVE if "noinc" in op.mods else lib.PE_MBARRIER_ARRIVE_LATER)
    words = [names[mod] for names in (NAMES, REFINED) for mod in op.mods if mod in names]
    return int(getattr(lib, f"PE_MBARRIER_{'_'.join(words)}"))


def object_site(ctx: Context, op: Op, code: int, slot: str = "space") -> str:
    """The constant data of an operation."""
    return ctx.site(op, "pe_mbarrier_site", op=code, space=SPACES[space_of(op, slot)])


def lane_words(ctx: Context, operand: Operand) -> str:
    """The address of a 32-bit operand of every lane."""
    return ctx.spill("i32", ctx.vector_of(operand, U32))


def update(
    ctx: Context, op: Op, code: int, address: Operand, value: Operand, state: str, slot: str = "space", mask: str = ""
) -> None:
    """Operate on the objects of the lanes in ``mask`` (those in which ``op`` takes effect); old contents go to ``state``."""
    lanes = ctx.spill("i64", vector_addresses(ctx, access(ctx, op, address, SIZE, slot)))
    ctx.call(
        "void", "pe_mbarrier", ("ptr", "%w"), ("ptr", object_site(ctx, op, code, slot)),
        ("i32", ctx.bits_of(mask or ctx.mask_of(op))), ("ptr", lanes), ("ptr", lane_words(ctx, value)), ("ptr", state),
    )  # fmt: skip


@effect("mbarrier", size=40)
def mbarrier(ctx: Context, op: Op) -> None:
    """init, inval, arrivals and transaction counts; an arrival's state is the object before it, in lane order."""
    wanted = any(dst is not None for dst in op.dsts)
    state = ctx.temporary(f"<{LANES} x i64>") if wanted else "null"
    update(ctx, op, operation(op), op.srcs[0], op.srcs[1] if len(op.srcs) > 1 else ONE, state)
    if wanted:
        ctx.define(op, 0, ctx.inst(f"load <{LANES} x i64>, ptr {state}, align 64"))


@effect("mbarrier_wait", size=40)
def mbarrier_wait(ctx: Context, op: Op) -> None:
    """test_wait, try_wait: whether the phase is complete. The time limit is the runtime's; a hint does not change it."""
    if "parity" in op.mods:
        parity = ctx.vector_of(op.srcs[1], U32)
    else:
        state = ctx.vector_of(op.srcs[1], B64)
        parity = ctx.vector.bin("lshr", "i64", state, ctx.vector.int(64, lib.PE_MBARRIER_PHASE_BIT))
        parity = ctx.vector.cast("trunc", "i64", parity, "i32")
    code = int(getattr(lib, "PE_MBARRIER_" + next(mod for mod in op.mods if mod.endswith("_wait")).upper()))
    lanes = ctx.spill("i64", vector_addresses(ctx, access(ctx, op, op.srcs[0], SIZE)))
    done = ctx.call(
        "i32", "pe_mbarrier_wait", ("ptr", "%w"), ("ptr", object_site(ctx, op, code)), ("i32", ctx.bits_of(ctx.mask_of(op))),
        ("ptr", lanes), ("ptr", ctx.spill("i32", parity)),
    )  # fmt: skip
    reg = op.dsts[0]
    if reg is not None and ctx.is_scalar(reg):
        ctx.define(op, 0, ctx.scalar.icmp("ne", "i32", done, "0"))
    else:
        ctx.define(op, 0, ctx.mask_from_bits(done))


@elementwise("mbarrier_pending_count")
def pending_count(e: Emitter, op: Op, state: str) -> str:
    """The pending arrivals that a state has recorded."""
    bits = e.bin("and", "i64", state, e.int(64, (1 << lib.PE_MBARRIER_PENDING_BITS) - 1))
    return e.cast("trunc", "i64", bits, "i32")
