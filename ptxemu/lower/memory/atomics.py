"""atom and red: one call of the runtime for all lanes (PTX ISA "atom", "red"), after a test of addresses of shared memory.

Sums and the like in places of their own in shared memory, whose old values nobody wants, are a plain loop
(:mod:`ptxemu.lower.memory.updates`); so are sums in a worker's copy of an array (:mod:`ptxemu.lower.memory.twins`).
"""

from __future__ import annotations

from functools import partial

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import leaves_stamps
from ptxemu.ir.operations import find, variant
from ptxemu.ir.ops import Op, items_of
from ptxemu.ir.strength import of_system, strength
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import NOTED, Access, access, failing, note_position, physical_lanes, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.sum_stamps import SumStamps
from ptxemu.lower.core.telling import kept_in_shared, tell_release
from ptxemu.lower.memory import twins, updates
from ptxemu.lower.memory.lane_major import lane_data, load_lane_data


def operation(name: str, kind: ScalarType) -> int:
    """The runtime's operation code of a PTX operation on a type."""
    return find(name, kind).code


def type_code(kind: ScalarType) -> int:
    return int(getattr(lib, f"PE_TYPE_{kind.name.upper()}"))


def _inline(ctx: Context, found: Access, op: Op, kind: ScalarType, count: int) -> bool:
    """Whether compiled code may test the addresses: those of the CTA's own memory, which stays on one thread."""
    plain = found.space == "shared" and count == 1 and found.bytes == kind.bytes and kind.bytes <= 8
    legal = bool(lib.pe_atom_legal(operation(op.mods["op"], kind), type_code(kind)))
    return plain and legal and ctx.unit.observed != "all" and (ctx.fenceless or not leaves_stamps(ctx.unit.observed))


def _in_twin(ctx: Context, found: Access, count: int) -> bool:
    """Whether compiled code may add to the worker's own copy of the array, places of each lane's."""
    places = found.shape is None or not found.shape.uniform
    return ctx.strays is not None and found.space in NOTED and places and count == 1 and ctx.unit.observed != "all"


def _frozen(ctx: Context, offsets: str) -> str:
    """The i32 offsets of lanes that are off may be anything, but one thing for all who ask."""
    return ctx.inst(f"freeze <{LANES} x i32> {offsets}")


def _is_told(ctx: Context) -> bool:
    """Whether somebody may have to be told of an update of shared memory that is within bounds."""
    return leaves_stamps(ctx.unit.observed) or kept_in_shared(ctx) is not None


def _may_update(ctx: Context, op: Op, offsets: str, size: int) -> str:
    """i1: the words of a size at the i32 offsets of all lanes, on or off, are in the shared window, and nobody need be told."""
    kept = kept_in_shared(ctx)
    if kept is None:
        fine = _in_window(ctx, offsets, size)
    else:
        first, end = (ctx.scalar.cast("trunc", "i64", value, "i32") for value in (kept.first, kept.size))
        inside = ctx.vector.bin("sub", "i32", offsets, ctx.splat("i32", first))
        fine = updates.are_words(ctx, "i32", inside, ctx.scalar.bin("and", "i32", end, str(-size)), size)
    if not leaves_stamps(ctx.unit.observed):
        return fine
    return ctx.scalar.bin("and", "i1", fine, SumStamps(ctx, op).may_be_left_in_shared())


def _in_window(ctx: Context, offsets: str, size: int) -> str:
    """i1: the words of a size at the i32 offsets of all lanes, on or off, are in the shared window."""
    end = ctx.once("shared words", f"trunc i64 {ctx.field('shared_size')} to i32")
    whole = ctx.once(f"shared words of {size}", f"and i32 {end}, {-size}")
    return updates.are_words(ctx, "i32", offsets, whole, size)


def _apart(ctx: Context, found: Access, offsets: str) -> str:
    """i1: all lanes are on, and not all have one i32 offset, as far as the first two tell."""
    first, second = (ctx.inst(f"extractelement <{LANES} x i32> {offsets}, i32 {lane}") for lane in (0, 1))
    full = ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(found.mask), "-1")
    return ctx.scalar.bin("and", "i1", full, ctx.scalar.icmp("ne", "i32", first, second))


@effect("atom", size=60)
@effect("red", size=50)
def atomic(ctx: Context, op: Op) -> None:
    """Lanes of one address are served in lane order; an ``atom`` whose result is never read becomes a ``red``."""
    kind = op.type()
    operands = [operand for name in "bc" if (operand := op.get(name)) is not None]
    count = len(items_of(operands[0]))
    found = access(ctx, op, "a")
    site = ctx.site(
        op, "pe_atom_site", op=operation(op.mods["op"], kind), type=type_code(kind), space=found.space_code, count=count,
        system=int(of_system(op)), order=strength(op), sums=int(ctx.strays is not None),
        flags=variant(op.mods),
    )  # fmt: skip
    note_position(ctx, op, found.space)
    tell_release(ctx, found)
    wanted = any(dst is not None for dst in op.dsts)
    old = ctx.temporary(f"<{LANES * count} x i{kind.bits}>") if wanted else "null"

    def addresses() -> str:
        """Of all lanes, made where they are wanted: as a rule the narrow ones are enough."""
        return ctx.vector.cast("zext", "i32", found.narrow, "i64") if found.narrow else vector_addresses(ctx, found)

    def call(name: str, place: str) -> list[str]:
        data = [lane_data(ctx, operand, kind) for operand in operands] + ["null"] * (2 - len(operands))
        ctx.call(
            "void", name, ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(found.mask)),
            ("ptr", ctx.in_memory("i64", place)), ("ptr", data[0]), ("ptr", data[1]), ("ptr", old),
        )  # fmt: skip
        return []

    def tested() -> list[str]:
        fine = ctx.scalar.icmp("eq", f"i{LANES}", failing(ctx, found, addresses), "0")
        shared = partial(call, "pe_atomic_shared")
        return ctx.when(fine, lambda: shared(physical_lanes(ctx, found, addresses())), untested, [], likely=True)

    def untested() -> list[str]:
        return call("pe_atomic", addresses())

    def apart(offsets: str) -> list[str]:
        stamped = leaves_stamps(ctx.unit.observed)
        beside = SumStamps(ctx, op).leaving_in_shared(kind.bytes) if stamped else None
        updates.each(ctx, offsets, op.mods["op"], kind, operands[0], beside)
        return []

    if _inline(ctx, found, op, kind, count):
        otherwise = untested if _is_told(ctx) else tested
        if not wanted and found.narrow and updates.serves(ctx, op.mods["op"], kind):
            offsets = _frozen(ctx, found.narrow)
            fine = ctx.scalar.bin("and", "i1", _apart(ctx, found, offsets), _may_update(ctx, op, offsets, found.size))
            ctx.when(fine, partial(apart, offsets), otherwise, [], likely=True)
        else:
            otherwise()
    elif not wanted and _in_twin(ctx, found, count):
        place = addresses()
        twins.add(ctx, twins.Sums(op, kind, place, found.mask, operands[0]), "true", partial(call, "pe_atomic", place))
    else:
        untested()
    if wanted:
        for index, value in enumerate(load_lane_data(ctx, old, kind, count)):
            ctx.define(op, index, value)
