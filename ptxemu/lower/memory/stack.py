"""The per-thread stack in local memory: alloca, stacksave, stackrestore (PTX ISA, "Stack Manipulation Instructions").

The stack pointer is an ordinary value, the offset in the local window where free memory starts; passes/build.py makes it an
explicit operand. Each thread has its own; a device function starts with one behind its frame, so that what it allocates
is free again when it returns.
"""

from __future__ import annotations

from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import U64
from ptxemu.lower.core.access import frame_end, note_position
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, source_type

DEFAULT_ALIGN = 8


@effect("_stack_pointer")
def stack_pointer(ctx: Context, op: Op) -> None:
    """The stack at the start of a function: behind its local variables."""
    ctx.define(op, 0, frame_end(ctx))


@effect("stacksave", "stackrestore")
def copy(ctx: Context, op: Op) -> None:
    """stacksave, stackrestore: the stack pointer is read, or written, as the register's type."""
    (dst,), (source,), (kind,) = op.dsts, op.srcs, op.src_types
    assert dst is not None and kind is not None
    if ctx.is_scalar(dst):
        ctx.define(op, 0, _resized(ctx.scalar, op, ctx.scalar_of(source, kind)))
    else:
        ctx.define(op, 0, _resized(ctx.vector, op, ctx.vector_of(source, kind)))


def _resized(e: Emitter, op: Op, value: str) -> str:
    source, target = source_type(op, 0), op.dst_types[0].llvm
    return e.cast("zext" if target == "i64" else "trunc", source, value, target)


@effect("alloca")
def alloca(ctx: Context, op: Op) -> None:
    """alloca: the next aligned bytes of the stack; a fault if the local window does not have enough."""
    vector = any(dst is not None and not ctx.is_scalar(dst) for dst in op.dsts)
    emitter = ctx.vector if vector else ctx.scalar
    read = ctx.vector_of if vector else ctx.scalar_of
    kind = op.type_of("a")
    assert kind is not None
    align = op["immAlign"].bits if isinstance(op["immAlign"], Imm) else DEFAULT_ALIGN
    size = emitter.cast("zext", kind.llvm, read(op["a"], kind), "i64")
    start = emitter.intrinsic("uadd.sat", "i64", read(op["stack"], U64), emitter.int(64, align - 1))
    start = emitter.bin("and", "i64", start, emitter.int(64, -align))
    limit = ctx.field("local_size")
    room = emitter.intrinsic("usub.sat", "i64", ctx.splat("i64", limit) if vector else limit, start)
    _require(ctx, op, emitter.icmp("ugt", "i64", size, room), vector)
    ctx.define(op, 0, emitter.cast("trunc", "i64", start, op.dst_types[0].llvm))
    ctx.define(op, 1, emitter.bin("add", "i64", start, size))


def _require(ctx: Context, op: Op, full: str, vector: bool) -> None:
    """Fault in the lanes where the stack is full."""
    mask = ctx.mask_of(op)
    lacking = ctx.bits_of(ctx.conjunction(mask, full)) if vector else ctx.scalar.select(full, "i32", ctx.bits_of(mask), "0")

    def overflow() -> list[str]:
        note_position(ctx, op)
        ctx.call("void", "pe_stack_overflow", ("ptr", "%w"), ("i32", lacking), attributes="cold")
        return []

    ctx.when(ctx.scalar.icmp("ne", "i32", lacking, "0"), overflow, None, [], likely=False)
