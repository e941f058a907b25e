"""Shadows of registers that nobody has written, and what is told of them (ptxemu/passes/definedness.py)."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.ir.types import B64
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise


@elementwise("_any_of")
def any_of(e: Emitter, op: Op, a: str, b: str) -> str:
    return e.bin("or", "i1", a, b)


@elementwise("_all_of")
def all_of(e: Emitter, op: Op, a: str, b: str) -> str:
    return e.bin("and", "i1", a, b)


@elementwise("_but_not")
def but_not(e: Emitter, op: Op, a: str, b: str) -> str:
    return e.bin("and", "i1", a, e.bin("xor", "i1", b, e.int(1, 1)))


def _tell(ctx: Context, op: Op, use: int, place: str = "null") -> None:
    """``place``: a pointer to 32 addresses that must be in global memory, else there is nothing to tell."""
    bits = ctx.bits_of(ctx.mask_of(op))

    def tell() -> list[str]:
        given = ("i32", ctx.position(op)), ("i32", str(use)), ("i32", bits), ("ptr", place)
        ctx.call("void", "pe_observe_unset", ("ptr", "%w"), *given)
        return []

    ctx.when(ctx.scalar.icmp("ne", f"i{LANES}", bits, "0"), tell, list, [], likely=False)


@effect("_unset_choice")
def unset_choice(ctx: Context, op: Op) -> None:
    """A branch or a guard depends on such a register in the lanes of the op's guard."""
    _tell(ctx, op, lib.PE_UNSET_CHOICE)


@effect("_unset_address")
def unset_address(ctx: Context, op: Op) -> None:
    """The same of an address."""
    _tell(ctx, op, lib.PE_UNSET_ADDRESS)


@effect("_unset_value")
def unset_value(ctx: Context, op: Op) -> None:
    """The same of a value that is stored, at an address that may be generic."""
    place = "null" if op["a"] is None else ctx.in_memory("i64", ctx.vector_of(op["a"], B64))
    _tell(ctx, op, lib.PE_UNSET_VALUE, place)
