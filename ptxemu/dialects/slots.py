"""Numbered slots that hold surfaces: the texture header pool of SASS, the binding table of vISA.

Which slots there are is known when the whole file has been read; what a program finds in one, when it runs.
"""

from __future__ import annotations

from ptxemu.dialects.build import Builder
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Module, Op, Operand, Reg, SymRef, Variable
from ptxemu.ir.types import U32, U64
from ptxemu.isa.table import internal_row
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.special import symbol_value

LOOKUP = internal_row("_surface_slot", "d, index, s...", lower="surface_slot", does="pure")
INDEX_BITS = 20


class Slots:
    """Surface variables by index. A lookup of a slot that nobody declared gives the handle of no surface."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.variables: dict[int, Variable] = {}
        self._lookups: list[Op] = []

    def lookup(self, body: Builder, handle: Reg, index: Operand) -> None:
        """Append the op that turns an index, of which the low 20 bits count, into a handle."""
        self._lookups.append(body.add(LOOKUP, {}, (handle,), (index,), (U64,), (U32,)))

    def finish(self, maximum: int | None = None) -> None:
        """Tell every lookup the slots up to a maximum: their indices, ascending, and their surfaces."""
        live = [index for index in sorted(self.variables) if maximum is None or index <= maximum]
        for op in self._lookups:
            op.mods = {"slots": ",".join(map(str, live))}
            op.srcs = (op["index"], *(SymRef(self.variables[index], 0) for index in live))
            op.src_types = (U32, *(U64 for _ in live))


def indices_of(lookup: Op) -> list[int]:
    """The slots that a lookup knows, in the order of its surfaces."""
    return [int(word) for word in lookup.mods["slots"].split(",") if word]


@effect("surface_slot")
def surface_slot(ctx: Context, op: Op) -> None:
    """The surface handle of an index, 0 for an empty slot."""
    dst = op["d"]
    assert dst is not None
    indices, word, surfaces = indices_of(op), op["index"], op["s"]
    if isinstance(word, Imm):
        index = word.bits & (1 << INDEX_BITS) - 1
        found = surfaces[indices.index(index)] if index in indices else None
        value = symbol_value(ctx, found) if isinstance(found, SymRef) else "0"
        ctx.define(op, 0, value if ctx.is_scalar(dst) else ctx.splat("i64", value))
        return
    table = _table(ctx, op, indices)
    lanes = 1 if ctx.is_scalar(dst) else LANES
    whole = f"<{lanes} x i32>" if lanes > 1 else "i32"
    words, out = ctx.temporary(whole), ctx.temporary(f"<{lanes} x i64>")
    source = ctx.scalar_of(word, U32) if lanes == 1 else ctx.vector_of(word, U32)
    ctx.stmt(f"store {whole} {source}, ptr {words}, align 64")
    ctx.call("void", "pe_headers", ("ptr", "%w"), ("ptr", table), ("i32", str(lanes)), ("ptr", words), ("ptr", out))
    ctx.define(op, 0, ctx.inst(f"load {'i64' if lanes == 1 else f'<{lanes} x i64>'}, ptr {out}, align 64"))


def _table(ctx: Context, op: Op, indices: list[int]) -> str:
    """What ``pe_headers`` searches: the count, then index and place in the module's table of handles of each."""
    places = [ctx.layout.module.handle_index[item.symbol] for item in op["s"] if isinstance(item, SymRef)]  # type: ignore[index]
    values = [len(indices), *(value for pair in zip(indices, places, strict=True) for value in pair)]
    return ctx.constant(f"[{len(values)} x i32] [{', '.join(f'i32 {value}' for value in values)}]")
