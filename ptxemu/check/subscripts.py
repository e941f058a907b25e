"""Operands that the checker computes: ``array[index]``, the address of an element, and ``register+constant``
(PTX ISA, "Arrays as Operands", "Addresses as Operands").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu.check.operands import Computed
from ptxemu.ir.ops import Imm, Op, Reg, SymRef, Variable
from ptxemu.ir.types import TYPES, U64
from ptxemu.syntax import ast

if TYPE_CHECKING:
    from ptxemu.check.body import BodyChecker


def element(checker: BodyChecker, node: ast.Index, symbol: Variable) -> SymRef | Reg:
    """The address of an element, computed now if the index is constant and by the kernel if not."""
    size = symbol.type.bytes * (symbol.vector or 1)
    for extent in symbol.dims[1:]:
        size *= extent or 0
    index = node.index
    if isinstance(index, ast.Int):
        return SymRef(symbol, index.value * size)
    base, offset = (index.base, index.offset) if isinstance(index, ast.Offset) else (index, 0)
    assert isinstance(base, ast.Name)
    reg = checker.resolver.name(base)
    if not isinstance(reg, Reg) or reg.type.kind not in "usb" or reg.type.bits not in (32, 64):
        raise checker.resolver.error(f"the subscript '{base.text}' is not a 32- or 64-bit integer register", node)
    return _computed(checker, SymRef(symbol, offset * size), reg, size)


def sum_of(checker: BodyChecker, reg: Reg, offset: int) -> Reg:
    """Appends ``reg + offset``, as wide as the register."""
    kind = TYPES[f"u{reg.type.bits}"]
    forms, ins = checker.forms("add", (kind.name,)), checker.resolver.instruction
    assert isinstance(forms, list) and ins is not None
    add, result = forms[0], Computed("sum", reg.type)
    sources = (reg, Imm(offset & ((1 << kind.bits) - 1), kind))
    checker.items.append(Op(add.row, add.mods, (result,), sources, (kind,), (kind, kind), ins.pos, ins.end, loc=ins.loc))
    return result


def _computed(checker: BodyChecker, start: SymRef, index: Reg, size: int) -> Reg:
    """Appends ``start + index * size``: 32-bit indices are unsigned."""
    narrow = TYPES[f"u{index.type.bits}"]
    base, result = Reg("array", U64), Computed("element", U64)
    forms = checker.forms("mov", ("u64",)), checker.forms("mad", ("wide", "u32") if narrow is not U64 else ("lo", "u64"))
    assert isinstance(forms[0], list) and isinstance(forms[1], list)
    mov, mad = forms[0][0], forms[1][0]
    ins = checker.resolver.instruction
    assert ins is not None
    sources, kinds = (index, Imm(size, narrow), base), (narrow, narrow, U64)
    checker.items.append(Op(mov.row, mov.mods, (base,), (start,), (U64,), (U64,), ins.pos, ins.end, loc=ins.loc))
    checker.items.append(Op(mad.row, mad.mods, (result,), sources, (U64,), kinds, ins.pos, ins.end, loc=ins.loc))
    return result
