"""wmma, mma, ldmatrix, stmatrix, movmatrix: one call of the runtime for the warp (PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions").

Fragments are handed over register-major, through stack slots that all instructions of a kernel share.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu._runtime import lib
from ptxemu.ir import Imm, Op, Operand, Vec
from ptxemu.isa.matrix import BITS, dimensions
from ptxemu.lower.context import Context
from ptxemu.lower.effects import effect
from ptxemu.lower.memory import SPACES, Access, access, note_position, space_of, vector_addresses
from ptxemu.types import B32, ScalarType
from ptxemu.variant import LANES

ROUNDING = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
ROLES = {"a": lib.PE_WMMA_A, "b": lib.PE_WMMA_B, "c": lib.PE_WMMA_C, "d": lib.PE_WMMA_C}


def _slot(ctx: Context, name: str, bits: int, count: int) -> str:
    return ctx.scratch(name, f"[{count} x <{LANES} x i{bits}>]")


def _at(ctx: Context, slot: str, bits: int, index: int) -> str:
    return ctx.inst(f"getelementptr i8, ptr {slot}, i64 {index * LANES * bits // 8}") if index else slot


def _items(operand: Operand) -> Sequence[Operand]:
    return operand.items if isinstance(operand, Vec) else (operand,)


def _write(ctx: Context, name: str, operand: Operand, kind: ScalarType | None, *, raw: bool = True) -> str:
    """The address of a fragment's registers; ``raw``: which NaN an element is does not matter."""
    assert kind is not None
    items = _items(operand)
    slot = _slot(ctx, name, kind.bits, len(items))
    for index, item in enumerate(items):
        value = ctx.convert(ctx.vector_of(item, kind, raw=raw), kind.llvm, f"i{kind.bits}", True)
        ctx.stmt(f"store <{LANES} x i{kind.bits}> {value}, ptr {_at(ctx, slot, kind.bits, index)}, align 64")
    return slot


def _result(ctx: Context, op: Op) -> str:
    return _slot(ctx, "d", op.dst_types[0].bits, len(op.dsts))


def _read(ctx: Context, op: Op, slot: str) -> None:
    """Define the destinations from a fragment's registers."""
    for index, dst in enumerate(op.dsts):
        if dst is None:
            continue
        kind = op.dst_types[index]
        whole = f"<{LANES} x {kind.llvm}>"
        value = ctx.inst(f"load {whole}, ptr {_at(ctx, slot, kind.bits, index)}, align 64")
        ctx.define(op, index, value)


def _mask(ctx: Context, op: Op) -> tuple[str, str]:
    return "i32", ctx.bits_of(ctx.mask_of(op))


# ---------------------------------------------------------------- multiplication


def _type_code(name: str) -> int:
    return int(getattr(lib, f"PE_TYPE_{name.upper()}"))


def _flags(op: Op) -> int:
    mods = op.mods
    flags = 0
    if mods["shape"] == "m8n8k4" and mods["atype"] == "f16":
        flags |= lib.PE_MMA_QUADS
        flags |= lib.PE_MMA_A_COL if mods["alayout"] == "col" else 0
        flags |= lib.PE_MMA_B_ROW if mods["blayout"] == "row" else 0
    if "variant" in mods:
        flags |= lib.PE_MMA_SPARSE
    if "satfinite" in mods:
        flags |= lib.PE_MMA_SATURATE
    if mods.get("op") == "and":
        flags |= lib.PE_MMA_AND
    return flags


@effect("mma")
def mma(ctx: Context, op: Op) -> None:
    """mma, mma.sp and wmma.mma. The layouts of wmma were a matter of the loads."""
    mods = {"atype": "f16", "btype": "f16"} | op.mods
    selector = op.srcs[4] if "variant" in mods else None
    fields = (
        *dimensions(mods["shape"]), *(_type_code(mods[slot]) for slot in ("atype", "btype", "ctype", "dtype")),
        _flags(op), ROUNDING[mods.get("round", "rn")], selector.bits & 3 if isinstance(selector, Imm) else 0,
    )  # fmt: skip
    types = ", ".join(["i32", *["i16"] * len(fields)])
    site = ctx.constant(f"{{ {types} }} {{ i32 {op.pos}, {', '.join(f'i16 {value}' for value in fields)} }}")
    fragments = [("ptr", _write(ctx, name, op.srcs[i], op.src_types[i])) for i, name in enumerate("abc")]
    metadata = ctx.spill("i32", ctx.vector_of(op.srcs[3], B32)) if "variant" in mods else "null"
    result = _result(ctx, op)
    ctx.call("void", "pe_mma", ("ptr", "%w"), ("ptr", site), _mask(ctx, op), *fragments, ("ptr", metadata), ("ptr", result))
    _read(ctx, op, result)


# ---------------------------------------------------------------- wmma in memory


def _first(ctx: Context, operand: Operand) -> str:
    """A 32-bit operand of lane 0; all lanes must have the same."""
    shape = ctx.shape(operand)
    if shape is not None and shape.uniform:
        return ctx.scalar_of(operand, B32)
    return ctx.inst(f"extractelement <{LANES} x i32> {ctx.vector_of(operand, B32)}, i64 0")


def _address(ctx: Context, found: Access) -> str:
    if found.shape is not None and found.shape.uniform:
        return found.base
    return ctx.inst(f"extractelement <{LANES} x i64> {vector_addresses(ctx, found)}, i64 0")


def _matrix(op: Op, count: int) -> tuple[tuple[int, ...], int]:
    """The fields of a site, and the default stride: the length of a line."""
    m, n, k = dimensions(op.mods["shape"])
    role, column_major = op.mods["role"], op.mods["layout"] == "col"
    rows, columns = {"a": (m, k), "b": (n, k)}.get(role, (m, n))
    across = column_major != (role == "b")  # a fragment of b has the columns of the matrix as its rows
    fields = (SPACES[space_of(op)], rows, columns, BITS[op.mods["type"]], ROLES[role], int(across), count, 0)
    return fields, rows if across else columns


def _move(ctx: Context, op: Op, function: str, count: int, stride: Operand | None, fragment: str) -> None:
    fields, default = _matrix(op, count)
    types = ", ".join(["i32", *["i16"] * len(fields)])
    site = ctx.constant(f"{{ {types} }} {{ i32 {op.pos}, {', '.join(f'i16 {value}' for value in fields)} }}")
    found = access(ctx, op, op.srcs[0], 1)
    note_position(ctx, op)
    step = _first(ctx, stride) if stride is not None else str(default)
    ctx.call(
        "void", function, ("ptr", "%w"), ("ptr", site), _mask(ctx, op), ("i64", _address(ctx, found)), ("i32", step),
        ("ptr", fragment),
    )  # fmt: skip


@effect("wmma_load")
def wmma_load(ctx: Context, op: Op) -> None:
    """wmma.load: a matrix whose lines are ``stride`` elements apart."""
    result = _result(ctx, op)
    _move(ctx, op, "pe_wmma_load", len(op.dsts), op.srcs[1] if len(op.srcs) > 1 else None, result)
    _read(ctx, op, result)


@effect("wmma_store")
def wmma_store(ctx: Context, op: Op) -> None:
    """wmma.store."""
    fragment = _write(ctx, "a", op.srcs[1], op.src_types[1], raw=False)
    _move(ctx, op, "pe_wmma_store", len(_items(op.srcs[1])), op.srcs[2] if len(op.srcs) > 2 else None, fragment)


# ---------------------------------------------------------------- matrices of 8x8 elements


def _rows(ctx: Context, op: Op, function: str, fragment: str) -> None:
    """ldmatrix, stmatrix: every lane may give the address of a row."""
    found = access(ctx, op, op.srcs[0], 1)
    note_position(ctx, op)
    ctx.call(
        "void", function, ("ptr", "%w"), ("i32", str(op.pos)), ("i32", str(SPACES[space_of(op)])), ("i32", op.mods["num"][1:]),
        ("i32", str(int("trans" in op.mods))), _mask(ctx, op), ("ptr", ctx.spill("i64", vector_addresses(ctx, found))),
        ("ptr", fragment),
    )  # fmt: skip


@effect("ldmatrix")
def ldmatrix(ctx: Context, op: Op) -> None:
    """ldmatrix of b16 elements."""
    result = _result(ctx, op)
    _rows(ctx, op, "pe_ldmatrix", result)
    _read(ctx, op, result)


@effect("stmatrix")
def stmatrix(ctx: Context, op: Op) -> None:
    """stmatrix of b16 elements."""
    _rows(ctx, op, "pe_stmatrix", _write(ctx, "a", op.srcs[1], op.src_types[1], raw=False))


@effect("movmatrix")
def movmatrix(ctx: Context, op: Op) -> None:
    """movmatrix: the transposed fragment."""
    result = _result(ctx, op)
    source = _write(ctx, "a", op.srcs[0], op.src_types[0], raw=False)
    ctx.call("void", "pe_movmatrix", ("ptr", "%w"), ("i32", str(op.pos)), _mask(ctx, op), ("ptr", source), ("ptr", result))
    _read(ctx, op, result)
