"""From a dialect's statements to typed IR: ops of PTX rows, and of the dialect's own."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ptxemu.check.matching import match
from ptxemu.check.modifiers import Form, Misfit, sort_modifiers
from ptxemu.ir.ops import Addr, Function, LabelMark, Module, Op, Operand, Param, Reg, SReg, SymRef, Variable
from ptxemu.ir.types import TYPES, ScalarType
from ptxemu.isa import rows
from ptxemu.isa.table import Row
from ptxemu.syntax.ast import Int
from ptxemu.text.source import SourceFile

HANDLE = TYPES["surfref"]
Guard = tuple[Reg, bool]


def module_of(source: SourceFile, title: str) -> Module:
    """An empty module; ``title`` stands for the target."""
    return Module(source, (0, 0), (title,), {}, {})


def surface(module: Module, name: str, pos: int, count: int = 1) -> Variable:
    """Declare a surface, or an array of them, that the host binds by ``Module.bind`` as it binds a PTX ``.surfref``."""
    dims = (count,) if count > 1 else ()
    variable = Variable(name, "global", HANDLE, 1, dims, 8 * count, 8, [], [], "visible", pos)
    module.variables[name] = variable
    return variable


class Builder:
    """A kernel being built. ``at`` says which statement the ops that follow belong to."""

    def __init__(self, module: Module, name: str, pos: int) -> None:
        self.items: list[Op | LabelMark] = []
        self.function = Function(name, "entry", "visible", [], [], self.items, [], {}, pos)
        module.functions[name] = self.function
        self.pos = self.end = pos
        self._temps = 0

    def at(self, pos: int, end: int) -> None:
        """The source of the ops that follow: faults name its line."""
        self.pos, self.end = pos, end

    def param(self, name: str, type: str, pos: int, offset: int | None = None, row: tuple[int, int] | None = None) -> Variable:
        """Add a parameter, which launches and cases pass as they pass those of PTX kernels.

        ``offset`` is its place in the parameter buffer, by default the next one that is aligned;
        ``row`` the size and the number of each thread's elements, if the parameter is a register file.
        """
        kind = TYPES[type]
        size = kind.bytes
        end = self.function.param_bytes
        variable = Variable(name, "param", kind, 1, (), size, size, [], [], "", pos, owner=self.function.name)
        at = -(-end // size) * size if offset is None else offset
        self.function.params.append(Param(variable, at, row=row))
        return variable

    def limit(self, name: str, *values: int) -> None:
        """What binds launches: the performance directives ``reqntid`` and ``maxntid`` of PTX, or ``domain``."""
        self.function.limits[name] = values

    def variable(self, name: str, space: str, size: int, align: int = 16) -> Variable:
        """Local or shared memory of the kernel."""
        kind = TYPES["b8"]
        made = Variable(f"{self.function.name}.{name}", space, kind, 1, (size,), size, align, [], [], "", self.pos,
                        owner=self.function.name)  # fmt: skip
        self.function.variables.append(made)
        return made

    def temp(self, type: str) -> Reg:
        """A fresh register."""
        self._temps += 1
        return Reg(f".t{self._temps}", TYPES[type])

    def label(self, name: str) -> None:
        self.items.append(LabelMark(name, self.pos))

    def emit(self, text: str, *operands: Any, guard: Guard | None = None) -> Op:
        """Append a PTX instruction, ``text`` being its opcode and modifiers.

        Operands are registers, special registers, addresses, variables, integers and tuples of these (vectors).
        """
        forms = _forms(text)
        values = [_value(operand) for operand in operands]
        plan = match(forms, values, {})
        dsts, srcs = plan.assemble(values)
        return self.add(plan.row, plan.mods, dsts, srcs, plan.dst_types, plan.src_types, guard=guard, negs=plan.negs)

    def add(
        self,
        row: Row,
        mods: dict[str, str],
        dsts: tuple[Reg | None, ...],
        srcs: tuple[Operand, ...],
        dst_types: tuple[ScalarType, ...],
        src_types: tuple[ScalarType | None, ...],
        *,
        guard: Guard | None = None,
        negs: tuple[bool, ...] = (),
    ) -> Op:
        """Append an op of any row."""
        op = Op(row, mods, dsts, srcs, dst_types, src_types, self.pos, self.end, negs, guard)
        self.items.append(op)
        return op

    def branch(self, label: str, guard: Guard | None = None) -> None:
        """Jump to a label of the body."""
        row = rows()["bra"][0]
        self.items.append(Op(row, {}, (), (), (), (), self.pos, self.end, (), guard, (label,)))

    def load_param(self, variable: Variable, type: str, offset: int = 0) -> Reg:
        """The value of a parameter, or of a part of it."""
        value = self.temp(type)
        self.emit(f"ld.param.{type}", value, Addr(SymRef(variable, offset), 0))
        return value

    def thread_index(self) -> Reg:
        """The thread's number in the grid: threads of a block by x, y, z, then blocks by x, y, z."""
        index = self._special("ctaid.z")
        for place, extent in (("ctaid.y", "nctaid.y"), ("ctaid.x", "nctaid.x"), ("tid.z", "ntid.z"), ("tid.y", "ntid.y"),
                              ("tid.x", "ntid.x")):  # fmt: skip
            here, index_before = self._special(place), index
            index = self.temp("u32")
            self.emit("mad.lo.u32", index, index_before, self._special(extent), here)
        return index

    def element(self, array: Variable, index: Reg, size: int) -> Addr:
        """The address of an element of an array that a parameter points to."""
        address = self.temp("u64")
        self.emit("mad.wide.u32", address, index, size, self.load_param(array, "u64"))
        return Addr(address, 0)

    def _special(self, name: str) -> Reg:
        value = self.temp("u32")
        self.emit("mov.u32", value, SReg(name))
        return value


@lru_cache(maxsize=1024)
def _forms(text: str) -> list[Form]:
    """The rows of PTX that take an opcode with its modifiers: the fronts emit few, over and over."""
    opcode, *modifiers = text.split(".")
    forms = sort_modifiers(rows()[opcode], tuple(modifiers), True)
    assert not isinstance(forms, Misfit), f"{text}: {forms}"
    return forms


def _value(operand: Any) -> Any:
    if isinstance(operand, bool | int):
        return Int(int(operand), False, 0, 0)
    if isinstance(operand, Variable):
        return SymRef(operand, 0)
    if isinstance(operand, tuple):
        return tuple(_value(item) for item in operand)
    return operand
