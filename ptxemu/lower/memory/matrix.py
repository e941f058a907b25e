"""wmma, mma, wgmma, ldmatrix, stmatrix, movmatrix: one call of the runtime for the warp (PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions").

Fragments are handed over in memory (:mod:`ptxemu.lower.memory.fragments`).
"""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, Operand, Vec, items_of
from ptxemu.ir.types import B32, B64, TYPES, ScalarType
from ptxemu.isa.matrix import BITS, dimensions, rows_of
from ptxemu.isa.multiplication import constant_of, constants_of, scaled_constants_of, warpgroup_constants_of
from ptxemu.lower.core.access import Access, access, note_position, vector_addresses
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.literals import vector_literal
from ptxemu.lower.core.site import Value
from ptxemu.lower.memory.fragments import Slots

U16 = TYPES["u16"]
NO_SLOTS = [[0] * lib.PE_MMA_REGISTERS] * lib.PE_MMA_OPERANDS
ROLES = {"a": lib.PE_WMMA_A, "b": lib.PE_WMMA_B, "c": lib.PE_WMMA_C, "d": lib.PE_WMMA_C}


def _contiguous(ctx: Context, op: Op, slots: Slots) -> str:
    """The address of the registers of the fragment ``a``, one after the other."""
    items, kind = items_of(op["a"]), _kind(op, "a")
    units = kind.bits // 32
    first, _ = slots.take(len(items) * units)
    for index, item in enumerate(items):
        slots.write(first + index * units, item, kind)
    return slots.address(first)


def result_of(op: Op, slots: Slots) -> tuple[int, bool]:
    return slots.take(len(op.dsts) * _kind(op, "d").bits // 32)


def _first_lanes(count: int) -> str:
    return vector_literal("i1", [lane < count for lane in range(LANES)])


def _kind(op: Op, name: str) -> ScalarType:
    kind = op.type_of(name)
    assert kind is not None
    return kind


def mask_of(ctx: Context, op: Op) -> tuple[str, str]:
    return "i32", ctx.bits_of(ctx.mask_of(op))


# ---------------------------------------------------------------- multiplication


@effect("mma", size=40)
def mma(ctx: Context, op: Op) -> None:
    """mma, mma.sp and wmma.mma. The loads of wmma have dealt with its layouts."""
    slots = Slots(ctx)
    sources = [[slots.find(item, _kind(op, name)) for item in items_of(op[name])] for name in "abc"]
    metadata = slots.find(op["e"], B32) if "variant" in op.mods else 0
    first, stays = result_of(op, slots)
    units = _kind(op, "d").bits // 32
    registers = [[first + index * units for index in range(len(op.dsts))], *sources]
    site = ctx.site(
        op, "pe_mma_site", **constants_of(op, ctx.unit.numerics), metadata=metadata,
        slots=[[*used, *[0] * (lib.PE_MMA_REGISTERS - len(used))] for used in registers],
    )  # fmt: skip
    ctx.call("void", "pe_mma", ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), ("ptr", ctx.slot_block))
    slots.define(op, first, stays)


@effect("mma_scaled", size=60)
def mma_scaled(ctx: Context, op: Op) -> None:
    """mma and mma.sp with .block_scale."""
    slots = Slots(ctx)
    sources = [[slots.find(item, _kind(op, name)) for item in items_of(op[name])] for name in "abc"]
    factors = [slots.find(op[name], B32) for name in ("fa", "fb")]
    metadata = slots.find(op["e"], B32) if "variant" in op.mods else 0
    first, stays = result_of(op, slots)
    registers = [[first + index for index in range(len(op.dsts))], *sources]
    site = ctx.site(
        op, "pe_scaled_site", **scaled_constants_of(op), factors=factors, metadata=metadata,
        slots=[[*used, *[0] * (4 - len(used))] for used in registers],
    )  # fmt: skip
    chosen = [
        ctx.scalar.cast("zext", "i16", first_of(ctx, item, U16), "i32") for name in ("ia", "ib") for item in items_of(op[name])
    ]
    ctx.call(
        "void", "pe_mma_scaled", ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), ("ptr", ctx.slot_block),
        *(("i32", one) for one in chosen),
    )  # fmt: skip
    slots.define(op, first, stays)


@effect("wgmma", size=60)
def wgmma(ctx: Context, op: Op) -> None:
    """wgmma.mma_async: the rows of this warp."""
    slots = Slots(ctx)
    sums = [slots.find(item, _kind(op, "d")) for item in items_of(op["accumulator"])]
    in_memory = not isinstance(op["a"], Vec)
    rows = [0] * 4 if in_memory else [slots.find(item, _kind(op, "a")) for item in items_of(op["a"])]
    metadata = slots.find(op["e"], B32) if "sp" in op.mods else 0
    first, stays = result_of(op, slots)
    rest = [0] * (lib.PE_WGMMA_REGISTERS - len(sums))
    mma: dict[str, Value] = {
        **warpgroup_constants_of(op, ctx.unit.numerics),
        "pos": op.pos,
        "metadata": metadata,
        "slots": NO_SLOTS,
    }
    site = ctx.site(
        op, "pe_wgmma_site", in_memory=int(in_memory), a_across=constant_of(op, "immta"), b_across=constant_of(op, "immtb"),
        d=[*range(first, first + len(sums)), *rest], c=[*sums, *rest], a=rows, mma=mma,
    )  # fmt: skip
    scale = ctx.bits_of(ctx.predicate(op["p"], op.negated("p"), True))
    a = "0" if not in_memory else first_of(ctx, op["a"], B64)
    arguments = ("i32", scale), ("i64", a), ("i64", first_of(ctx, op["b"], B64)), ("ptr", ctx.slot_block)
    ctx.call("void", "pe_wgmma", ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), *arguments)
    slots.define(op, first, stays)


def first_of(ctx: Context, operand: Operand, kind: ScalarType) -> str:
    """An operand of lane 0; all lanes must have the same."""
    shape = ctx.shape(operand)
    if shape is not None and shape.uniform:
        return ctx.scalar_of(operand, kind)
    return ctx.inst(f"extractelement <{LANES} x {kind.llvm}> {ctx.vector_of(operand, kind)}, i64 0")


# ---------------------------------------------------------------- wmma in memory


def first_address(ctx: Context, found: Access) -> str:
    if found.shape is not None and found.shape.uniform:
        return found.base
    return ctx.inst(f"extractelement <{LANES} x i64> {vector_addresses(ctx, found)}, i64 0")


def _matrix(op: Op, count: int) -> tuple[dict[str, int], int]:
    """The fields of a ``pe_wmma_site``, and the default stride: the length of a line."""
    m, n, k = dimensions(op.mods["shape"])
    role, column_major = op.mods["role"], op.mods["layout"] == "col"
    rows, columns = {"a": (m, k), "b": (n, k)}.get(role, (m, n))
    across = column_major != (role == "b")  # a fragment of b has the columns of the matrix as its rows
    fields = {
        "rows": rows,
        "columns": columns,
        "bits": BITS[op.mods["type"]],
        "role": ROLES[role],
        "across": int(across),
        "registers": count,
    }
    return fields, rows if across else columns


def _move(ctx: Context, op: Op, function: str, count: int, fragment: str) -> None:
    """The matrix whose address lane 0 gives, which all lanes execute."""
    fields, default = _matrix(op, count)
    found = access(ctx, op, "p", _first_lanes(1))
    note_position(ctx, op, found.space)
    step = first_of(ctx, op["stride"], B32) if op["stride"] is not None else str(default)
    site = ctx.site(op, "pe_wmma_site", space=found.space_code, **fields)
    arguments = [("i64", first_address(ctx, found)), ("i32", step), ("ptr", fragment)]
    ctx.call("void", function, ("ptr", "%w"), ("ptr", site), mask_of(ctx, op), *arguments)


@effect("wmma_load", size=60)
def wmma_load(ctx: Context, op: Op) -> None:
    """wmma.load: a matrix whose lines are ``stride`` elements apart."""
    slots = Slots(ctx)
    first, stays = result_of(op, slots)
    _move(ctx, op, "pe_wmma_load", len(op.dsts), slots.address(first))
    slots.define(op, first, stays)


@effect("wmma_store", size=60)
def wmma_store(ctx: Context, op: Op) -> None:
    """wmma.store."""
    _move(ctx, op, "pe_wmma_store", len(items_of(op["a"])), _contiguous(ctx, op, Slots(ctx)))


# ---------------------------------------------------------------- matrices in rows of 16 bytes


def _rows(ctx: Context, op: Op, function: str, fragment: str) -> None:
    lanes, constants = rows_of(op.mods)
    found = access(ctx, op, "p", _first_lanes(lanes))
    note_position(ctx, op, found.space)
    ctx.call(
        "void", function, ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(found.space_code)),
        *(("i32", str(constant)) for constant in constants), mask_of(ctx, op),
        ("ptr", ctx.spill("i64", vector_addresses(ctx, found))), ("ptr", fragment),
    )  # fmt: skip


def _load_rows(ctx: Context, op: Op, function: str) -> None:
    slots = Slots(ctx)
    first, stays = result_of(op, slots)
    _rows(ctx, op, function, slots.address(first))
    slots.define(op, first, stays)


@effect("ldmatrix", size=60)
def ldmatrix(ctx: Context, op: Op) -> None:
    """ldmatrix of b16 elements."""
    _load_rows(ctx, op, "pe_ldmatrix")


@effect("ldmatrix.lines", size=60)
def ldmatrix_lines(ctx: Context, op: Op) -> None:
    """ldmatrix of lines of elements of 8 bits and less."""
    _load_rows(ctx, op, "pe_ldmatrix_lines")


@effect("stmatrix", size=60)
def stmatrix(ctx: Context, op: Op) -> None:
    """stmatrix of b16 elements."""
    _rows(ctx, op, "pe_stmatrix", _contiguous(ctx, op, Slots(ctx)))


@effect("stmatrix.lines", size=60)
def stmatrix_lines(ctx: Context, op: Op) -> None:
    """stmatrix of b8 elements."""
    _rows(ctx, op, "pe_stmatrix_lines", _contiguous(ctx, op, Slots(ctx)))


@effect("movmatrix")
def movmatrix(ctx: Context, op: Op) -> None:
    """movmatrix: the transposed fragment."""
    slots = Slots(ctx)
    source = _contiguous(ctx, op, slots)
    first, stays = result_of(op, slots)
    ctx.call(
        "void", "pe_movmatrix", ("ptr", "%w"), ("i32", ctx.position(op)), mask_of(ctx, op), ("ptr", source),
        ("ptr", slots.address(first)),
    )  # fmt: skip
    slots.define(op, first, stays)
