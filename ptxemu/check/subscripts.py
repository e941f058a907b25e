"""``array[index]`` as an operand: the address of an element (PTX ISA, "Arrays as Operands")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu.ir import Imm, Op, Reg, SymRef, Variable
from ptxemu.syntax import ast
from ptxemu.types import TYPES, U64

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


def _computed(checker: BodyChecker, start: SymRef, index: Reg, size: int) -> Reg:
    """Appends ``start + index * size``: 32-bit indices are unsigned."""
    narrow = TYPES[f"u{index.type.bits}"]
    base, result = Reg("array", U64), Reg("element", U64)
    forms = checker.forms("mov", ("u64",)), checker.forms("mad", ("wide", "u32") if narrow is not U64 else ("lo", "u64"))
    assert isinstance(forms[0], list) and isinstance(forms[1], list)
    mov, mad = forms[0][0], forms[1][0]
    ins = checker.resolver.instruction
    assert ins is not None
    sources, kinds = (index, Imm(size, narrow), base), (narrow, narrow, U64)
    checker.items.append(Op(mov.row, mov.mods, (base,), (start,), (U64,), (U64,), ins.pos, ins.end, loc=ins.loc))
    checker.items.append(Op(mad.row, mad.mods, (result,), sources, (U64,), kinds, ins.pos, ins.end, loc=ins.loc))
    return result
