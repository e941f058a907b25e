"""Inlining of device functions: a body becomes one flat list in which only the calls that stay calls are left."""

from __future__ import annotations

from collections.abc import Callable, Set
from itertools import count

from msgspec.structs import replace

from ptxemu.ir.ops import Addr, Call, Function, Imm, LabelMark, Op, Operand, Reg, SymRef, Variable, Vec
from ptxemu.ir.types import PRED
from ptxemu.passes.internal import INVALID_CALL, PARAM_LOAD, PARAM_STORE, branch, is_function, load_from, marker, store_to
from ptxemu.passes.marshal import elements
from ptxemu.passes.params import through_register

Item = Op | LabelMark
Actual = Variable | Reg | Imm | Vec
Choices = Callable[[Call], list[Function]]


class Inliner:
    """Copies callee bodies with fresh registers, labels and variables; parameters share the caller's storage."""

    def __init__(self, root: Function, kept: Set[Function], choices: Choices) -> None:
        self.root = root
        self.kept = kept
        self.choices = choices
        self.instances = count(1)
        self.variables: list[Variable] = list(root.variables)

    def run(self) -> list[Item]:
        return self._expand(list(self.root.body or ()))

    def _expand(self, body: list[Item]) -> list[Item]:
        out: list[Item] = []
        for item in body:
            callee = item.call.callee if isinstance(item, Op) and item.call is not None else None
            if isinstance(callee, Function) and callee.body is not None and callee not in self.kept:
                assert isinstance(item, Op)
                out += self._expand(self._instance(item, callee))
            elif isinstance(item, Op) and item.call is not None and (targets := self.choices(item.call)):
                out += self._expand(self._choose(item, targets))
            else:
                out.append(item)
        return out

    def _choose(self, op: Op, targets: list[Function]) -> list[Item]:
        """An indirect call as a direct one of each target, where the address is the target's."""
        number = next(self.instances)
        assert op.call is not None and isinstance(op.call.callee, Reg)
        done = LabelMark(f".call.{number}.done", op.pos)
        out: list[Item] = []
        if op.guard is not None:
            out.append(branch(done.name, (op.guard[0], not op.guard[1]), op))
        for index, target in enumerate(targets):
            hit, other = Reg(f"%call.{number}.{index}", PRED), LabelMark(f".call.{number}.{index}", op.pos)
            out += [*is_function(hit, op.call.callee, target, replace(op, guard=None)), branch(other.name, (hit, True), op)]
            out.append(replace(op, guard=None, call=replace(op.call, callee=target, targets=None, prototype=None)))
            out += [branch(done.name, None, op), other]
        return [*out, marker(INVALID_CALL, op, srcs=(op.call.callee,)), done]

    def _instance(self, op: Op, callee: Function) -> list[Item]:
        """The callee's body for one call site, ending at its continuation label."""
        number = next(self.instances)
        call = op.call
        assert call is not None and callee.body is not None
        copier = _Copier(number, self.variables, callee)
        formals = [param.variable for param in callee.params]
        plain = replace(op, guard=None)
        head = copier.bind(formals, call.args, plain, store=True)
        tail = copier.bind(callee.returns, call.returns, plain, store=False)
        body: list[Item] = [copier.item(item) for item in callee.body]
        done = LabelMark(f"{callee.name}.{number}.return", op.pos)
        inlined: list[Item] = [*head, *body, done, *tail]
        if op.guard is None:
            return inlined
        skip = LabelMark(f"{callee.name}.{number}.skip", op.pos)
        return [branch(skip.name, (op.guard[0], not op.guard[1]), op), *inlined, skip]


def inline(root: Function, kept: Set[Function], choices: Choices) -> tuple[list[Item], list[Variable]]:
    """The body of ``root`` with all calls of functions that are not ``kept`` expanded, and all variables it then uses.

    ``choices`` gives the targets of an indirect call that is to become direct calls, or none.
    """
    inliner = Inliner(root, kept, choices)
    return inliner.run(), inliner.variables


class _Copier:
    def __init__(self, number: int, variables: list[Variable], callee: Function) -> None:
        self.number = number
        self.callee = callee
        self.registers: dict[Reg, Operand] = {}
        self.symbols: dict[Variable, Variable] = {}
        for variable in callee.variables:
            if variable.space in ("local", "param"):
                self.symbols[variable] = self._clone(variable)
                variables.append(self.symbols[variable])
            elif variable not in variables:
                variables.append(variable)
        self.variables = variables

    def _clone(self, variable: Variable) -> Variable:
        return replace(variable, name=f"{variable.name}.{self.number}")

    def bind(self, formals: list[Variable], actuals: tuple[object, ...], op: Op, *, store: bool) -> list[Item]:
        """Share storage with param Variables; copy registers and constants into (or out of) the formal's storage."""
        moves: list[Item] = []
        for formal, actual in zip(formals, actuals):
            if isinstance(actual, Variable):
                self.symbols[formal] = actual
                continue
            storage = self._clone(formal)
            self.symbols[formal] = storage
            self.variables.append(storage)
            assert isinstance(actual, (Reg, Imm, Vec))
            for offset, value in elements(actual):
                place = Addr(SymRef(storage, offset), 0)
                if store:
                    moves.append(store_to(PARAM_STORE, place, value, "param", op))
                else:
                    assert isinstance(value, Reg)
                    moves.append(load_from(PARAM_LOAD, value, place, "param", op))
        return moves

    def item(self, item: Item) -> Item:
        if isinstance(item, LabelMark):
            return LabelMark(self.label(item.name), item.pos)
        dsts = tuple(None if dst is None else self.register(dst) for dst in item.dsts)
        guard = None if item.guard is None else (self.register(item.guard[0]), item.guard[1])
        labels = tuple(self.label(name) for name in item.labels)
        if item.effects.leaves == "function":
            labels = (f"{self.callee.name}.{self.number}.return",)
        call = None if item.call is None else self.call(item.call)
        srcs = tuple(self.operand(source) for source in item.srcs)
        return through_register(replace(item, dsts=dsts, srcs=srcs, guard=guard, labels=labels, call=call))

    def label(self, name: str) -> str:
        return f"{name}.{self.number}"

    def register(self, reg: Reg) -> Reg:
        copy = self.registers.get(reg)
        if copy is None:
            copy = self.registers[reg] = Reg(f"{reg.name}.{self.number}", reg.type)
        assert isinstance(copy, Reg)
        return copy

    def operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Reg):
            return self.register(operand)
        if isinstance(operand, SymRef) and isinstance(operand.symbol, Variable):
            return SymRef(self.symbols.get(operand.symbol, operand.symbol), operand.offset)
        if isinstance(operand, Addr) and not isinstance(operand.base, Imm):
            return Addr(self.operand(operand.base), operand.offset)  # type: ignore[arg-type]
        if isinstance(operand, Vec):
            return Vec(tuple(self.operand(item) for item in operand.items))
        return operand

    def call(self, call: Call) -> Call:
        def actual(value: Actual) -> Actual:
            if isinstance(value, Variable):
                return self.symbols.get(value, value)
            if isinstance(value, Vec):
                return Vec(tuple(map(self.operand, value.items)))
            return self.register(value) if isinstance(value, Reg) else value

        callee = self.register(call.callee) if isinstance(call.callee, Reg) else call.callee
        returns = tuple(value for value in map(actual, call.returns) if not isinstance(value, Imm))
        return replace(call, callee=callee, returns=returns, args=tuple(map(actual, call.args)))
