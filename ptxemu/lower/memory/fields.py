"""Accesses to several fields of the structures in an array, of which each lane has the next one: pixels of three bytes, or points
of three coordinates.

One by one they go through the same memory again, by gathers and scatters as a rule. The first of some loads loads the structures
of all lanes, and each field takes its own elements; the last of the stores to all fields stores whole structures. Where they may
not, each is made alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Op, items_of
from ptxemu.lower.core.access import Access, host_pointer, pattern_test
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import Effect
from ptxemu.lower.core.known import Neighbours
from ptxemu.lower.core.parts import joined
from ptxemu.lower.core.telling import untold_range
from ptxemu.lower.memory import patterns, together

LARGEST = 8
"""Elements of a structure: those of larger ones are in so many registers that gathers are faster."""
WIDEST = 8
"""Bytes of an element."""


def loads_of(ctx: Context, off_one_base: Iterable[together.Loads]) -> dict[Op, Neighbours]:
    """Those among some loads, each of which asks :func:`load`."""
    found: dict[Op, Neighbours] = {}
    for loads in off_one_base:
        for size in {op.access.bytes for op in loads.values()}:
            own = {offset: op for offset, op in loads.items() if op.access.bytes == size and serves(ctx, op)}
            for group in _of_one_structure(ctx, own):
                found.update(dict.fromkeys(group, Neighbours(group, f"<{LANES} x i{8 * _size(group[0])}>")))
    return found


def stores_of(ctx: Context, ops: Sequence[Op], storing: Collection[Effect]) -> dict[Op, Sequence[Op]]:
    """Stores to all fields, among ops that are lowered one after another: they are under the last one, which asks :func:`store`,
    and nothing is under the others."""
    found: dict[Op, Sequence[Op]] = {}
    for run in together.stores_off_one_base(ctx, ops, storing):
        for group in _of_all_fields(ctx, run):
            found.update({op: () for op in group} | {group[-1]: group})
    return found


def serves(ctx: Context, op: Op) -> bool:
    """Whether an access is to a field of a structure that is not too large."""
    return bool(_stride(ctx, op))


def _stride(ctx: Context, op: Op) -> int:
    """The bytes of the structure, which is what an access of neighbouring lanes is apart; or 0."""
    shape, size = ctx.shape(op.access.address), op.access.bytes
    if shape is None or not size or size > WIDEST or ("v" in op.row.names and len(items_of(op["v"])) > 1):
        return 0
    return shape.stride if shape.stride % size == 0 and size < shape.stride <= LARGEST * size else 0


def _size(op: Op) -> int:
    assert op.access.bytes is not None
    return op.access.bytes


def _offset(op: Op) -> int:
    address = op.access.address
    assert isinstance(address, Addr)
    return address.offset


def _of_one_structure(ctx: Context, loads: Mapping[int, Op]) -> Iterator[list[Op]]:
    """Two or more that are of one structure, in the order of its fields."""
    group: list[Op] = []
    for offset in sorted(loads):
        if group and not _are_in_one(ctx, [group[0], loads[offset]]):
            yield from [group] if len(group) > 1 else []
            group = []
        group.append(loads[offset])
    yield from [group] if len(group) > 1 else []


def _of_all_fields(ctx: Context, stores: Sequence[Op]) -> Iterator[list[Op]]:
    """Those side by side that are to all fields of one structure, in the order of the program."""
    group: list[Op] = []
    for op in stores:
        if not serves(ctx, op):
            group = []
            continue
        if group and (_size(op) != _size(group[0]) or not _are_in_one(ctx, [*group, op])):
            group = []
        group.append(op)
        if len(group) * _size(op) == _stride(ctx, op):
            yield group
            group = []


def _are_in_one(ctx: Context, ops: Sequence[Op]) -> bool:
    """Whether accesses off one base are to different fields of one structure."""
    size, offsets = _size(ops[0]), {_offset(op) for op in ops}
    low = min(offsets)
    apart = all((offset - low) % size == 0 for offset in offsets)
    return apart and len(offsets) == len(ops) and max(offsets) + size - low <= _stride(ctx, ops[0])


# ---------------------------------------------------------------- lowering


def load(ctx: Context, found: Access, alone: together.Load) -> list[str]:
    """The value of one of them, as integers; ``alone`` loads it without the others."""

    def prepare(group: Neighbours) -> tuple[str, together.Load]:
        first = min(map(_offset, group.ops))
        return _may_be_whole(ctx, found, first), lambda: _load_all(ctx, found, group.ops)

    return together.load(ctx, found.op, alone, prepare)


def store(ctx: Context, found: Access, ops: Sequence[Op], values: Sequence[str], alone: Callable[[Op], None]) -> None:
    """Store vectors of integers to all fields; ``found`` is the access of the first op, which ``alone`` makes without the
    others, as it does those."""

    def whole() -> list[str]:
        _store_all(ctx, found, ops, values)
        return []

    def one_by_one() -> list[str]:
        for op in ops:
            alone(op)
        return []

    ctx.when(_may_be_whole(ctx, found, min(map(_offset, ops))), whole, one_by_one, [], likely=True)


def _may_be_whole(ctx: Context, found: Access, first: int) -> str:
    """i1: all lanes are on, and the structures, from the first field on, are there if what the access is to is, which comes first
    in the program. Where accesses are told, nobody need be told of these."""
    assert found.shape is not None
    full = patterns.full(ctx, found.mask)
    (low, high), before, stride = found.shape.spread, found.address.offset - first, _stride(ctx, found.op)
    behind = stride - before - found.size
    untold = untold_range(ctx, found.op)
    if untold is not None:
        window = Shape((low - before, high + behind), widenings=found.shape.widenings)
        return ctx.scalar.conjunction([full, pattern_test(ctx, replace(found.span, shape=window), untold)])
    tested = [] if found.safe else [pattern_test(ctx, found.span)]
    pages = [_in_one_page(ctx, found, *item) for item in ((low - before, before), (high + found.size - 1, behind)) if item[1]]
    return ctx.scalar.conjunction([full, *tested, *pages])


def _in_one_page(ctx: Context, found: Access, offset: int, distance: int) -> str:
    """i1: a byte so far from the base of an access, and the one at a distance behind it."""
    place = ctx.scalar.bin("and", "i64", ctx.scalar.bin("add", "i64", found.base, str(offset)), str(together.PAGE_BYTES - 1))
    return ctx.scalar.icmp("ult", "i64", place, str(together.PAGE_BYTES - distance))


def _whole(ctx: Context, found: Access, ops: Sequence[Op]) -> tuple[str, str, list[int]]:
    """The structures of all lanes as an LLVM vector, where they begin, and the numbers of the fields of some ops."""
    assert found.shape is not None
    first = min(map(_offset, ops))
    pointer = host_pointer(ctx, found, found.shape.offsets[0] + first - found.address.offset)
    numbers = [(_offset(op) - first) // found.size for op in ops]
    return f"<{LANES * _stride(ctx, found.op) // found.size} x i{8 * found.size}>", pointer, numbers


def _load_all(ctx: Context, found: Access, ops: Sequence[Op]) -> list[str]:
    whole, pointer, numbers = _whole(ctx, found, ops)
    structures, count = ctx.inst(f"load {whole}, ptr {pointer}, align {found.size}"), _stride(ctx, found.op) // found.size
    picks = [", ".join(f"i32 {lane * count + number}" for lane in range(LANES)) for number in numbers]
    return [ctx.inst(f"shufflevector {whole} {structures}, {whole} poison, <{LANES} x i32> <{pick}>") for pick in picks]


def _store_all(ctx: Context, found: Access, ops: Sequence[Op], values: Sequence[str]) -> None:
    whole, pointer, numbers = _whole(ctx, found, ops)
    parts = [value for _, value in sorted(zip(numbers, values, strict=True))]
    parts += ["poison"] * ((1 << (len(ops) - 1).bit_length()) - len(ops))
    side_by_side, joint = joined(ctx.vector, f"i{8 * found.size}", parts, LANES), f"<{LANES * len(parts)} x i{8 * found.size}>"
    picks = ", ".join(f"i32 {field * LANES + lane}" for lane in range(LANES) for field in range(len(ops)))
    structures = ctx.inst(f"shufflevector {joint} {side_by_side}, {joint} poison, <{LANES * len(ops)} x i32> <{picks}>")
    ctx.stmt(f"store {whole} {structures}, ptr {pointer}, align {found.size}")
