"""Accesses of single lanes to memory that is sure to be there.

The register that an address starts from, the same for all lanes, is a pointer as a rule.  The runtime is asked once how far the
allocation reaches that it points into.  Below that end an access needs neither the test of other accesses nor a position for the
handler of faults, nor need checkers of memory be told of it: one comparison, which is exact, decides.  All others are made as
usual.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ptxemu.ir.observed import tells_accesses
from ptxemu.ir.ops import Reg
from ptxemu.lower.core.access import NOTED, Access, assure, note_position
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.known import Reach


def find(ctx: Context, start: str, wanted: Collection[tuple[int, int]]) -> Reach:
    """What is sure to be there from an address on, for accesses of so many bytes of such an alignment. The runtime is asked when
    the address is not what it was before."""
    ctx.declare("llvm.usub.sat.i64", "declare i64 @llvm.usub.sat.i64(i64, i64)")
    last, bytes = _slot(ctx), _slot(ctx)
    places = {size: _slot(ctx) for size in wanted}
    changed = ctx.scalar.icmp("ne", "i64", start, _load(ctx, last))

    def look_up() -> list[str]:
        found = ctx.call("i64", "pe_reach", ("ptr", "%w"), ("i64", start))
        _store(ctx, start, last)
        _store(ctx, found, bytes)
        for (size, align), slot in places.items():
            _store(ctx, _places(ctx, start, found, size, align), slot)
        return []

    ctx.when(changed, look_up, None, [], likely=False)
    return Reach(start, _load(ctx, bytes), {size: _load(ctx, slot) for size, slot in places.items()})


def _slot(ctx: Context) -> str:
    """A variable of the warps that the function runs in turn."""
    slot = ctx.alloca("i64")
    ctx.at_entry(f"store i64 0, ptr {slot}, align 64")
    return slot


def _load(ctx: Context, slot: str) -> str:
    return ctx.inst(f"load i64, ptr {slot}, align 64")


def _store(ctx: Context, value: str, slot: str) -> None:
    ctx.stmt(f"store i64 {value}, ptr {slot}, align 64")


def _places(ctx: Context, start: str, bytes: str, size: int, align: int) -> str:
    """None if it does not start at a multiple of the alignment."""
    behind = -(-size // align) * align - align
    room = ctx.scalar.intrinsic("usub.sat", "i64", bytes, str(behind)) if behind else bytes
    count = ctx.scalar.bin("lshr", "i64", room, _shift(align))
    aligned = ctx.scalar.icmp("eq", "i64", ctx.scalar.bin("and", "i64", start, str(align - 1)), "0")
    return ctx.scalar.select(aligned, "i64", count, "0")


def _shift(align: int) -> str:
    return str(align.bit_length() - 1)


def covers(ctx: Context, reach: Reach, address: str, size: int, align: int) -> str:
    """i1: ``size`` bytes at an address, a multiple of ``align``, lie in it.

    Of an address that is computed anew LLVM knows that it is a multiple, and drops that test; rotating makes one of both tests of
    the others.
    """
    offset, places = ctx.scalar.bin("sub", "i64", address, reach.start), reach.places[size, align]
    if reach.marching:
        place = ctx.scalar.intrinsic("fshr", "i64", offset, offset, _shift(align)) if align > 1 else offset
        return ctx.scalar.icmp("ult", "i64", place, places)
    inside = ctx.scalar.icmp("ult", "i64", ctx.scalar.bin("ashr", "i64", offset, _shift(align)), places)
    aligned = ctx.scalar.icmp("eq", "i64", ctx.scalar.bin("and", "i64", offset, str(align - 1)), "0")
    return ctx.scalar.bin("and", "i1", aligned, inside)


def _reach_of(ctx: Context, found: Access) -> Reach | None:
    base = found.address.base
    return ctx.reaches.get(base) if isinstance(base, Reg) and found.space in NOTED else None


def _again(ctx: Context, address: str, reach: Reach, align: int) -> str:
    """An address, computed for code that is rare from the place that has been compared, in a way that LLVM does not see through:
    so the access itself needs no register for it, but has the index as an operand."""
    offset = ctx.scalar.bin("sub", "i64", address, reach.start)
    place = ctx.inst(f'call i64 asm "", "=r,0"(i64 {ctx.scalar.bin("ashr", "i64", offset, _shift(align))})')
    rest = ctx.scalar.bin("and", "i64", offset, str(align - 1))
    whole = ctx.scalar.bin("or", "i64", ctx.scalar.bin("shl", "i64", place, _shift(align)), rest)
    return ctx.scalar.bin("add", "i64", reach.start, whole)


def is_near(ctx: Context, found: Access) -> str | None:
    """i1: the memory of an access is sure to be there; None: nothing is known of it."""
    reach = _reach_of(ctx, found)
    return covers(ctx, reach, found.base, found.size, found.size) if reach is not None else None


def foresee(ctx: Context, found: Access) -> None:
    """Before an access: leave its position for the handler of faults, and test it, unless its memory is sure to be there. Code
    that tells of accesses does that where it tells of them (telling.py)."""
    if found.space not in NOTED:
        return
    reach = _reach_of(ctx, found)
    if reach is None:
        note_position(ctx, found.op, found.space)
        return
    if found.op in ctx.trusted or tells_accesses(ctx.unit.observed):
        return

    def with_care() -> list[str]:
        note_position(ctx, found.op, found.space)
        if not found.safe:
            again = _again(ctx, found.base, reach, found.size)
            assure(ctx, replace(found, made=lambda: (again, "")))
        return []

    near = covers(ctx, reach, found.base, found.size, found.size)
    ctx.when(ctx.scalar.bin("xor", "i1", near, "true"), with_care, None, [], likely=False)
    found.safe = True
