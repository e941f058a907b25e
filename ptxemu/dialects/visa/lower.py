"""Lowerings of what vISA has beyond PTX: surfaces, and one channel of a TYPED_ATOMIC in every hardware thread of the warp."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.dialects.visa.table import HALF, element_type, entry_of
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, SymRef
from ptxemu.ir.types import TYPES, U64, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.special import symbol_value
from ptxemu.lower.memory.atomics import type_code
from ptxemu.lower.memory.surfaces import site_constant

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
    entry = entry_of(op.mods["op"])
    kind = element_type(entry, HALF in op.mods)
    flags = lib.PE_SITE_UVR | lib.PE_ATOM_QUIET_NAN
    flags |= lib.PE_SITE_SURPLUS_UVR if op.mods["surplus"] == "ignore" else 0
    flags |= lib.PE_SITE_MISSING_UVR if op.mods["missing"] == "zero" else 0
    site = site_constant(
        ctx, op, lib.PE_SU_TYPED, lib.PE_GEOM_ANY, lib.PE_CLAMP_ZERO, kind.bytes, 1, entry.code, type_code(kind), flags,
        int(op.mods["channel"]),
    )  # fmt: skip
    given = {name for name, there in zip(OPERANDS.values(), op.mods["given"], strict=True) if there == "1"}
    operands = OPERANDS | ({"a": "b", "b": "a"} if entry.name == "CAS" else {})
    block = _Block(ctx)
    block.put("handle", op["s"], U64)
    for field, name in operands.items():
        if name in given:
            block.put(field, op[name], _word(kind) if name in VALUES else TYPES["b32"])
    dst = op["d"]
    if dst is not None:
        block.place("old", LANES * kind.bytes)
    lanes = block.finish()
    ctx.call("void", "pe_typed_atomic", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))), ("ptr", lanes))
    if dst is not None:
        _define_result(ctx, op, kind, block.pointers["old"])


def _word(kind: ScalarType) -> ScalarType:
    return TYPES[f"b{kind.bits}"]


def _define_result(ctx: Context, op: Op, kind: ScalarType, address: str) -> None:
    """Results are dwords: the low half of those of ``.16``, the rest zero or the sign."""
    bits = f"i{kind.bits}"
    value = ctx.inst(f"load <{LANES} x {bits}>, ptr {address}, align 64")
    if kind.bits < 32:
        extend = "sext" if op.mods["result"] == "sign" else "zext"
        value = ctx.vector.cast(extend, bits, value, "i32")
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
