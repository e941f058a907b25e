"""Control flow: instructions whose operands are labels, lists of targets and functions (PTX ISA, "Control Flow")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxemu.check.gates import gate_errors
from ptxemu.check.modifiers import Form
from ptxemu.check.operands import Rejected
from ptxemu.ir.ops import Op, Reg
from ptxemu.ir.types import TYPES
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError
from ptxemu.text.suggestions import closest

if TYPE_CHECKING:
    from ptxemu.check.body import BodyChecker


def label(checker: BodyChecker, operand: ast.Operand) -> str:
    """The unique name of the label that an operand names."""
    names, resolver = checker.names, checker.resolver
    if isinstance(operand, ast.Name):
        found = names.code.get(operand.text)
        if isinstance(found, str) and not names.is_numbered(operand.text):
            return found
        if found is None and names.lookup(operand.text) is None:
            damage = checker.diagnostics.damage
            if damage.holds(operand.pos):
                raise Rejected
            if damage.hides(operand.text) or damage.unbalances(checker.node.pos, checker.node.end):
                raise Rejected  # it may stand in what was not read
            if damage.labels(operand.text, checker.diagnostics.source.text, checker.node.pos, checker.node.end):
                raise Rejected
            known = [name for name, entity in names.code.items() if isinstance(entity, str)]
            raise resolver.error(f"unknown label '{operand.text}'{closest(operand.text, known)}", operand)
    raise resolver.error("the target of a branch must be a label", operand)


def _form(checker: BodyChecker, ins: ast.Instruction, count: int) -> Form:
    """The form of an instruction whose operands are names of code."""
    form = checker.checked_forms(ins)[0]
    if count and len(ins.operands) != count:
        plural = "s" if count > 1 else ""
        message = f"'{ins.opcode}' takes {count} operand{plural}, not {len(ins.operands)}"
        checker.diagnostics.error(message, *checker.resolver.place(ins))
        raise Rejected
    if checker.shared.gates is not None:
        for text in gate_errors(form.row, form.mods, checker.shared.gates):
            checker.diagnostics.error(text, *checker.resolver.place(ins))
    return form


def branch(checker: BodyChecker, ins: ast.Instruction) -> Op:
    """``bra label;``"""
    form = _form(checker, ins, 1)
    labels = (label(checker, ins.operands[0]),)
    return Op(form.row, form.mods, (), (), (), (), ins.pos, ins.end, (), checker.guard(ins), labels, loc=ins.loc)


def indexed_branch(checker: BodyChecker, ins: ast.Instruction) -> Op:
    """``brx.idx index, list;``"""
    form, resolver = _form(checker, ins, 2), checker.resolver
    index, table = ins.operands
    entry = checker.names.code.get(table.text) if isinstance(table, ast.Name) else None
    if not isinstance(entry, ast.TargetList) or entry.kind != "branchtargets":
        raise resolver.error("brx.idx needs the name of a .branchtargets list", table)
    labels = tuple(label(checker, name) for name in entry.targets)
    _, value = resolver.resolve(index)
    if isinstance(value, ast.Int):
        return _constant_branch(checker, ins, value, labels)
    if not isinstance(value, Reg) or value.type.bits != 32 or value.type.kind not in "usb":
        raise resolver.error("the index of brx.idx must be a 32-bit integer register", index)
    srcs, kinds, guard = (value,), (TYPES["u32"],), checker.guard(ins)
    return Op(form.row, form.mods, (), srcs, (), kinds, ins.pos, ins.end, (), guard, labels, loc=ins.loc)


def _constant_branch(checker: BodyChecker, ins: ast.Instruction, index: ast.Int, labels: tuple[str, ...]) -> Op:
    """A literal index chooses its label now."""
    if not 0 <= index.value < len(labels):
        source = checker.diagnostics.source
        raise UnsupportedError(f"{source.where(index.pos)}: the index of brx.idx lies outside of its list")
    forms = checker.forms("bra", ())
    assert isinstance(forms, list)
    target, guard = (labels[index.value],), checker.guard(ins)
    return Op(forms[0].row, forms[0].mods, (), (), (), (), ins.pos, ins.end, (), guard, target, loc=ins.loc)


def call(checker: BodyChecker, ins: ast.Instruction) -> Op:
    """``call (results), function, (arguments);``"""
    form = _form(checker, ins, 0)
    data = checker.calls.check(ins)
    return Op(form.row, form.mods, (), (), (), (), ins.pos, ins.end, (), checker.guard(ins), (), data, loc=ins.loc)


def leave(checker: BodyChecker, ins: ast.Instruction) -> Op:
    """``ret``: results declared .reg are copied out first."""
    for reg, place in checker.register_outputs:
        checker.items.append(checker.transfer(reg, place, load=False, like=ins))
    return checker.operation(ins)


HANDLERS: dict[str, Callable[[BodyChecker, ast.Instruction], Op]] = {
    "bra": branch, "brx": indexed_branch, "call": call, "ret": leave,
}  # fmt: skip
