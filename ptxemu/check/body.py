"""Function bodies: statements to a flat list of typed operations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct

from ptxemu.check import masked
from ptxemu.check.calls import CallChecker
from ptxemu.check.declarations import Declarer
from ptxemu.check.flow import HANDLERS, label
from ptxemu.check.gates import Gates, gate_errors, gated_limits, special_register_errors
from ptxemu.check.hints import instruction_hint
from ptxemu.check.initialisers import Encoder
from ptxemu.check.matching import match
from ptxemu.check.modifiers import Form, Misfit, sort_modifiers
from ptxemu.check.names import Code, Names, VectorName
from ptxemu.check.operands import Rejected, Resolver, TooManyErrors
from ptxemu.check.plan import Mismatch, Plan
from ptxemu.check.subscripts import element, sum_of
from ptxemu.check.typerules import literal_number, literal_value
from ptxemu.ir.ops import Addr, Function, LabelMark, Op, Reg, SymRef, Variable
from ptxemu.ir.types import PRED, TYPES
from ptxemu.isa import rows
from ptxemu.syntax import ast
from ptxemu.syntax.words import SPACES
from ptxemu.text.errors import Diagnostics, UnsupportedError
from ptxemu.text.suggestions import proposing

ARGUMENTS = frozenset({"[&param]", "[&param+]"})  # kinds of addresses of variables that a call passes or returns
SPECIAL = re.compile(r"%([\w.]+)")  # in the kind of an operand
BARRIERS = 16  # per CTA
WARP = 32
FUSED_TARGET, FUSED_VERSION = 20, (2, 0)  # the first ones that have a fused mad.f32
ROUNDINGS = {"rn", "rz", "rm", "rp"}
ROUNDED_VERSION = (3, 2)  # in which mad.f32 has to say how it rounds
MOST_REGISTERS = (1 << 32) - 1


class Shared(Struct):
    """What the checker of every body of a module shares: symbols and the matches found so far."""

    diagnostics: Diagnostics
    declarer: Declarer
    symbols: dict[str, SymRef]
    gates: Gates | None  # in strict mode
    independent: bool  # samplers are operands of their own
    declared_at: Mapping[str, int]  # in strict mode: where names of the module are declared first
    version: tuple[int, int]
    target: int  # its number
    unsupported: UnsupportedError | None = None  # the first one, to be raised when all is checked
    plans: dict[tuple[Any, ...], Plan] = {}


class BodyChecker:
    """Checks the body of one function."""

    def __init__(self, shared: Shared, function: Function, node: ast.Function) -> None:
        self.shared = shared
        self.diagnostics = shared.diagnostics
        self.function = function
        self.node = node
        self.names = Names(shared.symbols, shared.declared_at)
        self.items: list[Op | LabelMark] = []
        roles = {param.variable: "input" for param in function.params} | dict.fromkeys(function.returns, "output")
        self.opcodes = rows()
        self.resolver = Resolver(self.names, shared.diagnostics, roles, partial(element, self), partial(sum_of, self))
        self.calls = CallChecker(self.resolver, shared.declarer, function.name)
        self.encoder = Encoder(shared.diagnostics, self._symbol)
        self.register_inputs: list[tuple[Reg, SymRef]] = []
        self.register_outputs: list[tuple[Reg, SymRef]] = []

    def check(self, body: ast.Block) -> list[Op | LabelMark]:
        """The body as a flat list; what is wrong is reported and left out. The checker is of no use afterwards."""
        formals = zip((*self.node.params, *self.node.returns), self._formal_variables())
        for index, (node, variable) in enumerate(formals):
            self._formal(node, variable, is_input=index < len(self.node.params))
        if len(self.function.params) < len(self.node.params):
            for node in (*self.node.params, *self.node.returns):
                self.names.forget(node.name)
        for reg, place in self.register_inputs:
            self.items.append(self.transfer(reg, place, load=True, like=None))
        self._statements(body)
        for reg, place in self.register_outputs:
            self.items.append(self.transfer(reg, place, load=False, like=None))
        items = self.items
        vars(self).clear()  # a cycle of references, which only the garbage collector would free
        return items

    # ------------------------------------------------------------ statements

    def _statements(self, body: ast.Block) -> None:
        """Walk nested blocks without recursion."""
        self._labels(body.body)
        stack: list[Iterator[ast.Statement]] = [iter(body.body)]
        while stack:
            for statement in stack[-1]:
                if statement.__class__ is ast.Instruction:
                    self._instruction(statement)
                elif statement.__class__ is ast.Block:
                    self.names.push()
                    self._labels(statement.body)
                    stack.append(iter(statement.body))
                    break
                else:
                    self._declaration(statement)
            else:
                stack.pop()
                if stack:
                    self.names.pop()

    def _labels(self, statements: list[ast.Statement]) -> None:
        """Declare the labels of a block first, as branches may go forward."""
        for statement in statements:
            if isinstance(statement, ast.Label):
                self._code(statement, statement.name + self.names.suffix)

    def _code(self, statement: ast.Label | ast.TargetList | ast.Prototype, entity: Code) -> None:
        if not self.names.declare_code(statement.name, entity, statement.pos):
            self._duplicate(f"label '{statement.name}' is defined twice", statement.name, statement.pos)

    def _duplicate(self, message: str, name: str, pos: int, key: str = "") -> None:
        """Report the later of two declarations; labels count as declared before everything else in their scope."""
        known = self.names.declared_at(key or name)
        first, second = min(known, pos), max(known, pos)
        line = self.diagnostics.source.line(first)
        notes = (f"it is declared on line {line} too",) if first else ()
        self.diagnostics.error(message, second, second + len(name), notes)

    def _declaration(self, statement: ast.Statement) -> None:
        if isinstance(statement, ast.Label):
            entity = self.names.code.get(statement.name)
            if isinstance(entity, str):
                self.items.append(LabelMark(entity, statement.pos))
        elif isinstance(statement, ast.Variable):
            self._variable(statement)
        elif isinstance(statement, (ast.TargetList, ast.Prototype)):
            self._code(statement, statement)
            self.resolver.instruction = None
            self._targets(statement)

    def _targets(self, statement: ast.TargetList | ast.Prototype) -> None:
        """What a list names must exist, used or not."""
        try:
            if isinstance(statement, ast.Prototype):
                self.calls.prototype(statement)
            elif statement.kind == "branchtargets":
                for name in statement.targets:
                    label(self, name)
            else:
                for name in statement.targets:
                    self.calls.function(name)
        except Rejected:
            self._go_on()

    def _go_on(self) -> None:
        """After an error, unless there are enough of them."""
        if self.diagnostics.full:
            raise TooManyErrors from None

    def _variable(self, node: ast.Variable) -> None:
        if not self.shared.declarer.placed(node, "body"):
            self.names.forget(node.name)
            return
        if node.space == "reg":
            fresh = self._register(node)
        else:
            name = f"{self.function.name}.{node.name}{self.names.suffix}"
            variable = self.shared.declarer.variable(node, name, self.function.name)
            if variable is None:
                self.names.forget(node.name)
                return
            if node.init is not None:
                self.shared.declarer.initialise(self.encoder, variable, node.init)
            self.function.variables.append(variable)
            fresh = self.names.declare(node.name, SymRef(variable, 0), node.pos)
        if not fresh:
            key = node.name if node.count is None else node.name + "<"
            self._duplicate(f"'{node.name}' is declared twice in this scope", node.name, node.pos, key)

    def _register(self, node: ast.Variable) -> bool:
        kind = self.shared.declarer.scalar_type(node)
        if kind is None:
            self.names.forget(node.name)
            return True
        if node.count is not None and node.count > MOST_REGISTERS:
            self.diagnostics.error(f"{node.count} registers are too many", node.pos, node.end)
            self.names.forget(node.name)
            return True
        if node.count is not None:
            return self.names.declare_range(node.name, node.count, kind, node.vector, node.pos)
        if node.vector:
            return self.names.declare_vector(node.name, kind, node.vector, node.pos)
        return self.names.declare(node.name, Reg(node.name + self.names.suffix, kind), node.pos)

    def _symbol(self, name: ast.Name) -> SymRef | None:
        try:
            entity = self.resolver.name(name)
        except Rejected:
            return None
        if isinstance(entity, SymRef):
            return entity
        self.diagnostics.error(f"'{name.text}' is not a variable", name.pos, name.end)
        return None

    # ------------------------------------------------------------ parameters declared .reg

    def _formal_variables(self) -> list[Variable]:
        return [param.variable for param in self.function.params] + self.function.returns

    def _formal(self, node: ast.Variable, variable: Variable, *, is_input: bool) -> None:
        """A ``.reg`` parameter is a register, copied from or to parameter memory at entry or return."""
        fresh = self._register(node) if node.space == "reg" else self.names.declare(node.name, SymRef(variable, 0), node.pos)
        if not fresh:
            self._duplicate(f"parameter '{node.name}' is declared twice", node.name, node.pos)
        elif node.space == "reg":
            entity = self.names.entities[node.name]
            elements = entity.items if isinstance(entity, VectorName) else (entity,)
            copied = self.register_inputs if is_input else self.register_outputs
            for index, reg in enumerate(elements):
                assert isinstance(reg, Reg)
                copied.append((reg, SymRef(variable, index * reg.type.bytes)))

    def transfer(self, reg: Reg, place: SymRef, *, load: bool, like: ast.Instruction | None) -> Op:
        kind = reg.type if reg.type is PRED else TYPES[f"b{reg.type.bits}"]
        opcode, address = "ld" if load else "st", Addr(place, 0)
        forms = self.forms(opcode, ("param", f"b{8 * kind.bytes}"))
        assert isinstance(forms, list)
        pos, end = (self.node.pos, self.node.end) if like is None else (like.pos, like.end)
        guard = None if like is None else self.guard(like)
        if load:
            return Op(forms[0].row, forms[0].mods, (reg,), (address,), (kind,), (kind,), pos, end)
        return Op(forms[0].row, forms[0].mods, (), (address, reg), (), (kind, kind), pos, end, (), guard)

    # ------------------------------------------------------------ instructions

    def _instruction(self, ins: ast.Instruction) -> None:
        self.resolver.instruction = ins
        try:
            if ins.opcode not in self.opcodes:
                raise self._unknown(ins)
            handler = HANDLERS.get(ins.opcode)
            op = self.operation(ins) if handler is None else handler(self, ins)
        except Rejected:
            self._go_on()
            return
        except UnsupportedError as error:
            self.shared.unsupported = self.shared.unsupported or error
            return
        self.items.append(op)

    def _unknown(self, ins: ast.Instruction) -> Rejected:
        """Report an unknown opcode. If it is a directive without its dot, declare what the directive would have declared."""
        opcode = ins.opcode
        pos, end = self.resolver.place(ins)
        end = min(end, pos + len(opcode))
        hint = instruction_hint(opcode, self.opcodes)
        if opcode in SPACES:
            hint = proposing(f".{opcode}")
            for operand in ins.operands:
                if isinstance(operand, ast.Name):
                    self.names.forget(operand.text)
        self.diagnostics.error(f"unknown instruction '{opcode}'{hint}", pos, end)
        return Rejected()

    def operation(self, ins: ast.Instruction) -> Op:
        kinds: list[Any] = [ins.opcode, ins.modifiers]
        values: list[Any] = []
        entities, register = self.names.entities, self.names.register
        resolve = self.resolver.resolve
        for operand in ins.operands:
            if operand.__class__ is ast.Name:
                value = entities.get(operand.text) or register(operand.text)
                if value.__class__ is Reg:
                    kinds.append(value.type.name)
                    values.append(value)
                    continue
            kind, value = resolve(operand)
            kinds.append(kind)
            values.append(value)
        plan = self.shared.plans.get(tuple(kinds))
        if plan is None:
            plan = self._plan(ins, tuple(kinds), values)
        if plan.remarks:
            self._remark(plan, ins)
        for index, allowed in plan.limits:
            self._limited(ins, index, allowed)
        for index, other in plan.orders:
            self._limited(ins, index, (range(_literal(ins, other) + 1),))
        dsts: Any
        srcs: Any
        if plan.results >= 0:
            for index, type in plan.literals:
                values[index] = literal_value(type, values[index])
            dsts, srcs = tuple(values[: plan.results]), tuple(values[plan.results :])
        else:
            dsts, srcs = plan.assemble(values)
        guard = None if ins.guard is None else self.guard(ins)
        op = Op(
            plan.row, plan.mods, dsts, srcs, plan.dst_types, plan.src_types, ins.pos, ins.end, plan.negs, guard,
            loc=ins.loc,
        )  # fmt: skip
        return self._last_part(op, plan.stored) if plan.stored else op

    def _last_part(self, op: Op, stored: tuple[bool, ...]) -> Op:
        """The last op of a store that leaves out elements; the others are there."""
        *before, last = masked.parts(op, stored)
        self.items += before
        return last

    def guard(self, ins: ast.Instruction) -> tuple[Reg, bool] | None:
        if ins.guard is None:
            return None
        name, negated = ins.guard
        reg = self.names.entities.get(name.text)
        if reg.__class__ is not Reg:
            reg = self.resolver.name(name)
        if not isinstance(reg, Reg) or reg.type.kind != "pred":
            raise self.resolver.error(f"the guard '{name.text}' is not a predicate register", name)
        return reg, negated

    # ------------------------------------------------------------ matching, once for each shape

    def forms(self, opcode: str, modifiers: tuple[str, ...]) -> list[Form] | Misfit:
        return _forms(opcode, modifiers, self.shared.gates is not None)

    def checked_forms(self, ins: ast.Instruction) -> list[Form]:
        forms = self.forms(ins.opcode, ins.modifiers)
        if isinstance(forms, Misfit) and (rounded := self._default_rounding(ins)):
            forms = self.forms(ins.opcode, rounded)
        if isinstance(forms, Misfit):
            self.diagnostics.error(forms.message, *self._modifier_span(ins, forms.index))
            raise Rejected
        return forms

    def _default_rounding(self, ins: ast.Instruction) -> tuple[str, ...]:
        """The modifiers of a mad of early compilers with the rounding that it has there. Later devices execute that of sm_1x,
        which truncated the product, as fma.rn.ftz.f32 (PTX ISA, "mad").
        """
        if ins.opcode != "mad" or "f32" not in ins.modifiers or not ROUNDINGS.isdisjoint(ins.modifiers):
            return ()
        if self.shared.target < FUSED_TARGET:
            return tuple(dict.fromkeys(("rn", "ftz", *ins.modifiers)))
        return ("rn", *ins.modifiers) if self.shared.version < ROUNDED_VERSION else ()

    def _modifier_span(self, ins: ast.Instruction, index: int | None) -> tuple[int, int]:
        """Where modifier ``index`` stands in the source, with its dot."""
        if index is None:
            return self.resolver.place(ins)
        text, at = self.diagnostics.source.text, ins.opcode_pos + len(ins.opcode)
        for word in ins.modifiers[: index + 1]:
            start = text.find("." + word, at, ins.opcode_end)
            if start < 0:
                return ins.opcode_pos, ins.opcode_end
            at = start + 1 + len(word)
        return start, at

    def _plan(self, ins: ast.Instruction, key: tuple[Any, ...], values: list[Any]) -> Plan:
        forms = self.checked_forms(ins)
        try:
            plan = match(forms, values, self.resolver.roles, self.shared.independent)
        except Mismatch as mismatch:
            node = _operand_at(ins, mismatch.path)
            if node is not None:
                raise self.resolver.error(mismatch.message, node) from None
            self.diagnostics.error(mismatch.message, *self.resolver.place(ins))
            raise Rejected from None
        except UnsupportedError as problem:
            self._gated(ins, forms[0])
            source = self.diagnostics.source
            raise UnsupportedError(f"{source.where(ins.pos)}: {problem}") from None
        plan.remarks = self._remarks(plan, key, self._gates_of(ins))
        if self.shared.gates is not None:
            plan.limits = gated_limits(plan.row, plan.limits, self.shared.gates)
        self.shared.plans[key] = plan
        return plan

    def _gated(self, ins: ast.Instruction, form: Form) -> None:
        """What is wrong with an instruction whose operands are valid but not supported."""
        errors = [] if self.shared.gates is None else gate_errors(form.row, form.mods, self.shared.gates)
        for text in errors:
            self.diagnostics.error(text, *self.resolver.place(ins))
        self.guard(ins)
        if errors:
            raise Rejected

    def _gates_of(self, ins: ast.Instruction) -> Gates | None:
        """Those of the module; a mad whose rounding is not said is there on all targets."""
        gates = self.shared.gates
        if gates is None or not self._default_rounding(ins):
            return gates
        return max(gates[0], FUSED_VERSION), max(gates[1], FUSED_TARGET), gates[2]

    def _remarks(self, plan: Plan, kinds: tuple[Any, ...], gates: Gates | None) -> tuple[tuple[str, str], ...]:
        remarks = [
            ("warning", f"'{plan.row.opcode}' without a {qualifier} modifier means .{plan.mods[qualifier]}")
            for qualifier in plan.defaults
        ]
        if gates is not None:
            remarks += [("error", text) for text in gate_errors(plan.row, plan.mods, gates, plan.given)]
            special = (name for kind in kinds if isinstance(kind, str) for name in SPECIAL.findall(kind))
            remarks += [("error", text) for name in special for text in special_register_errors(name, gates)]
        if plan.row.effects.counts_cta:
            remarks.append(("barrier", ""))
        if "element" in plan.row.traits and not ARGUMENTS.isdisjoint(kinds):
            remarks.append(("guard", "an argument or result of a call must be accessed without a guard"))
        return tuple(remarks)

    def _remark(self, plan: Plan, ins: ast.Instruction) -> None:
        for severity, message in plan.remarks:
            if severity == "barrier":
                self._barrier_literals(plan, ins)
            elif severity == "guard":
                if ins.guard is not None:
                    self.diagnostics.extension(message, *self.resolver.place(ins))
            else:
                self.diagnostics.add(severity, message, *self.resolver.place(ins))

    def _limited(self, ins: ast.Instruction, index: int, allowed: tuple[range, ...]) -> None:
        """A constant must have one of the values that its row lists."""
        operand = ins.operands[index]
        if isinstance(operand, ast.Float):
            least, most = allowed[0][0], allowed[0][-1]
            if not least < literal_number(operand) <= most:
                raise self.resolver.error(f"operand {index + 1} of '{ins.opcode}' must be above {least}, at most {most}", operand)
        elif isinstance(operand, ast.Int) and not any(operand.value in values for values in allowed):
            listed = " or ".join(map(_listed, allowed))
            raise self.resolver.error(f"operand {index + 1} of '{ins.opcode}' must be {listed}", operand)

    def _barrier_literals(self, plan: Plan, ins: ast.Instruction) -> None:
        """A literal barrier number is 0 to 15, a literal thread count a multiple of the warp size."""
        numbers = [operand for operand in ins.operands[len(plan.dst_types) :]]
        number, count = numbers[0], numbers[1] if len(numbers) > 1 else None
        if isinstance(number, ast.Int) and not 0 <= number.value % (1 << 32) < BARRIERS:
            raise self.resolver.error(f"barrier {number.value} does not exist: there are 0 to {BARRIERS - 1}", number)
        if isinstance(count, ast.Int) and count.value % WARP:
            raise self.resolver.error(f"{count.value} threads is not a multiple of the warp size", count)


def _literal(ins: ast.Instruction, index: int) -> int:
    operand = ins.operands[index]
    assert isinstance(operand, ast.Int)
    return operand.value


@lru_cache(maxsize=4096)
def _forms(opcode: str, modifiers: tuple[str, ...], strict: bool) -> list[Form] | Misfit:
    """What modules have in common."""
    return sort_modifiers(rows()[opcode], modifiers, strict)


def _listed(values: range) -> str:
    if len(values) == 1:
        return str(values[0])
    return f"{values[0]} to {values[-1]}" if values.step == 1 else f"a multiple of {values.step} up to {values[-1]}"


def _operand_at(ins: ast.Instruction, path: tuple[int, ...]) -> Any:
    """The operand, or element of one, that a path leads to."""
    if not path:
        return None
    node: Any = ins.operands[path[0]]
    for index in path[1:]:
        if isinstance(node, ast.Pair):
            node = (node.first, node.second)[index]
        elif isinstance(node, ast.Vector):
            node = node.items[index]
    return node
