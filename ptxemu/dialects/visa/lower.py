"""Lowerings of what vISA has beyond PTX: surfaces, and one channel of a TYPED_ATOMIC in every hardware thread of the warp."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.dialects.visa.table import HALF, element_type, entry_of
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, Operand, SymRef
from ptxemu.ir.types import TYPES, U64, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.special import symbol_value
from ptxemu.lower.memory.atomics import type_code

FIELDS = ("handle", "x", "y", "z", "layer", "level", "a", "b", "old")
"""The pointers of a ``pe_typed_lanes``."""
OPERANDS = {"x": "u", "y": "v", "z": "r", "level": "lod", "a": "a", "b": "b"}
"""Which operand they take."""
VALUES = ("a", "b")


@effect("visa_surface")
def surface(ctx: Context, op: Op) -> None:
    """The handle of the surface that the host has bound to a variable."""
    symbol = op["s"]
    assert isinstance(symbol, SymRef)
    ctx.define_same(op, 0, symbol_value(ctx, symbol))


@effect("visa_typed_atomic")
def typed_atomic(ctx: Context, op: Op) -> None:
    """One channel. The engine's CAS takes the comparand first, vISA's cmpxchg second (fcmpwr has it first)."""
    kind, site = atomic_kind(op), ctx.site(op, "pe_surface_site", **atomic_site(op))
    block = _Block(ctx)
    for field, operand, type in operands_of(op):
        block.put(field, operand, type)
    dst = op["d"]
    if dst is not None:
        block.place("old", LANES * kind.bytes)
    lanes = block.finish()
    ctx.call("void", "pe_typed_atomic", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))), ("ptr", lanes))
    if dst is not None:
        _define_result(ctx, op, kind, block.pointers["old"])


def atomic_kind(op: Op) -> ScalarType:
    """The type that the engine updates."""
    return element_type(entry_of(op.mods["op"]), HALF in op.mods)


def atomic_site(op: Op) -> dict[str, int]:
    """The fields of a ``pe_surface_site``."""
    kind, flags = atomic_kind(op), lib.PE_SITE_UVR | lib.PE_ATOM_QUIET_NAN
    flags |= lib.PE_SITE_SURPLUS_UVR if op.mods["surplus"] == "ignore" else 0
    flags |= lib.PE_SITE_MISSING_UVR if op.mods["missing"] == "zero" else 0
    return {
        "kind": lib.PE_SU_TYPED, "geom": lib.PE_GEOM_ANY, "clamp": lib.PE_CLAMP_ZERO, "element": kind.bytes, "count": 1,
        "op": entry_of(op.mods["op"]).code, "type": type_code(kind), "flags": flags, "channel": int(op.mods["channel"]),
    }  # fmt: skip


def operands_of(op: Op) -> list[tuple[str, Operand, ScalarType]]:
    """What is given, by the names of FIELDS."""
    given = {name for name, there in zip(OPERANDS.values(), op.mods["given"], strict=True) if there == "1"}
    operands = OPERANDS | ({"a": "b", "b": "a"} if entry_of(op.mods["op"]).name == "CAS" else {})
    word = TYPES[f"b{atomic_kind(op).bits}"]
    found = [(field, op[name], word if name in VALUES else TYPES["b32"]) for field, name in operands.items() if name in given]
    return [("handle", op["s"], U64), *found]


def result_is_signed(op: Op) -> bool:
    """Whether results of less than 32 bits have their sign in the upper bits."""
    return op.mods["result"] == "sign"


def _define_result(ctx: Context, op: Op, kind: ScalarType, address: str) -> None:
    """Results are dwords: the low half of those of ``.16``, the rest zero or the sign."""
    bits = f"i{kind.bits}"
    value = ctx.inst(f"load <{LANES} x {bits}>, ptr {address}, align 64")
    if kind.bits < 32:
        value = ctx.vector.cast("sext" if result_is_signed(op) else "zext", bits, value, "i32")
    ctx.define(op, 0, value)


class _Block:
    """A ``pe_typed_lanes`` and its arrays, in the block of memory that serves all calls."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._end = 128  # after the pointers, aligned
        self.pointers: dict[str, str] = {}

    def place(self, name: str, size: int) -> str:
        """Memory for the array that a field points to."""
        self.pointers[name] = self._at(self._end)
        self._end += -(-size // 64) * 64
        return self.pointers[name]

    def put(self, name: str, operand: object, kind: ScalarType) -> None:
        """The operand of all lanes."""
        ctx = self._ctx
        value = ctx.vector_of(operand, kind)  # type: ignore[arg-type]
        ctx.stmt(f"store <{LANES} x {kind.llvm}> {value}, ptr {self.place(name, LANES * kind.bytes)}, align 64")

    def finish(self) -> str:
        """Store the pointers; the address of the structure."""
        for index, name in enumerate(FIELDS):
            self._ctx.stmt(f"store ptr {self.pointers.get(name, 'null')}, ptr {self._at(8 * index)}, align 8")
        return self._at(0)

    def _at(self, offset: int) -> str:
        block = self._ctx.call_block(self._end + 64 * LANES)
        return self._ctx.inst(f"getelementptr i8, ptr {block}, i64 {offset}")
