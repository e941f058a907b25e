"""Calls: direct, through a register with a prototype or a target list (PTX ISA, "call")."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ptxemu.check import typerules
from ptxemu.check.declarations import Declarer
from ptxemu.check.names import written
from ptxemu.check.operands import Rejected, Resolver
from ptxemu.ir.ops import Call, Function, Imm, Reg, SymRef, Variable, Vec
from ptxemu.ir.types import PRED, TYPES, ScalarType
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError

Actual = Variable | Reg | Imm | Vec


class _Signature(Struct):
    params: tuple[Variable, ...]
    returns: tuple[Variable, ...]
    targets: tuple[Function, ...] | None


class CallChecker:
    """Makes the :class:`ptxemu.ir.ops.Call` of a call instruction."""

    def __init__(self, resolver: Resolver, declarer: Declarer, owner: str) -> None:
        self.resolver = resolver
        self.declarer = declarer
        self.owner = owner

    def check(self, ins: ast.Instruction) -> Call:
        """``call (ret), callee, (args), prototype``: all but the callee may be left out."""
        operands = list(ins.operands)
        returns = _group(operands)
        callee = operands.pop(0) if operands else None
        if not isinstance(callee, ast.Name):
            place = callee or ins
            raise self.misplaced("call needs the name of a function or a register", place.pos, place.end)
        args = _group(operands)
        if len(operands) > 1:
            raise self.misplaced("call has too many operands", operands[0].end, operands[1].end)
        for operand in (*returns, *args):
            if isinstance(operand, ast.Offset) and self.declarer.gates is not None:
                raise self.misplaced("what is passed to a call cannot be a sum", operand.pos, operand.end)
            if isinstance(operand, ast.Name) and "." in operand.text and self.declarer.gates is not None:
                raise self.misplaced("what is passed to a call cannot be an element of a vector", operand.pos, operand.end)
        target = self.resolver.name(callee)
        uniform = "uni" in ins.modifiers
        if isinstance(target, Reg):
            signature = self.indirect(callee, target, operands)
            prototype = (signature.params, signature.returns)
            results, actuals = self.bind(callee, signature, returns, args)
            return Call(target, results, actuals, uniform, signature.targets, prototype)
        function = target.symbol if isinstance(target, SymRef) else None
        if not isinstance(function, Function) or function.kind != "func":
            raise self.resolver.error(f"'{callee.text}' is not a device function", callee)
        if operands:
            raise self.resolver.error("a direct call takes no prototype", operands[0])
        results, actuals = self.bind(callee, _signature(function), returns, args)
        return Call(function, results, actuals, uniform)

    def misplaced(self, message: str, pos: int, end: int) -> Rejected:
        """Report what the syntax of ptxas does not allow where it stands; other errors are reported at the instruction."""
        self.resolver.diagnostics.error(message, pos, end)
        return Rejected()

    # ------------------------------------------------------------ indirect calls

    def indirect(self, callee: ast.Name, register: Reg, operands: list[ast.Operand]) -> _Signature:
        if register.type.kind not in "usb" or register.type.bits not in (32, 64):
            raise self.resolver.error(f"a function address has 64 bits; '{callee.text}' has {register.type}", callee)
        if not operands or not isinstance(operands[0], ast.Name):
            raise self.resolver.error("an indirect call needs a .callprototype or .calltargets", callee)
        entry = self.resolver.names.code.get(operands[0].text)
        if isinstance(entry, ast.Prototype):
            return self.prototype(entry)
        if isinstance(entry, ast.TargetList) and entry.kind == "calltargets":
            return self.targets([self.function(name) for name in entry.targets], operands[0])
        table = None if entry is not None else self.resolver.name(operands[0])
        if isinstance(table, SymRef) and isinstance(table.symbol, Variable) and table.symbol.dims:
            functions = [reloc.target for reloc in table.symbol.relocs if isinstance(reloc.target, Function)]
            if functions and len(functions) == table.symbol.dims[0]:
                return self.targets(functions, operands[0])
        message = f"'{operands[0].text}' is not a .callprototype, .calltargets or a table of functions"
        raise self.resolver.error(message, operands[0])

    def targets(self, functions: list[Function], operand: ast.Name) -> _Signature:
        """The signature of all the functions that a call lists."""
        first = _signature(functions[0])
        for function in functions[1:]:
            other = _signature(function)
            for formals, others in ((first.params, other.params), (first.returns, other.returns)):
                if len(formals) != len(others) or not all(map(_same_shape, formals, others)):
                    message = (
                        f"'{operand.text}' lists functions of different signatures: '{functions[0].name}', '{function.name}'"
                    )
                    raise self.resolver.error(message, operand)
        return _Signature(first.params, first.returns, tuple(functions))

    def prototype(self, node: ast.Prototype) -> _Signature:
        formals = []
        if len(node.returns) > 1 and any(item.space != "reg" for item in node.returns):
            raise self.resolver.error(f"'{node.name}' has several results, which must be .reg", node.returns[1])
        for group in (node.params, node.returns):
            made = [self.declarer.formal(formal, self.owner, "prototype") for formal in group]
            if None in made:
                raise Rejected
            formals.append(tuple(variable for variable in made if variable is not None))
        return _Signature(formals[0], formals[1], None)

    def function(self, name: ast.Name) -> Function:
        entity = self.resolver.name(name)
        if isinstance(entity, SymRef) and isinstance(entity.symbol, Function):
            return entity.symbol
        raise self.resolver.error(f"'{name.text}' is not a function", name)

    # ------------------------------------------------------------ arguments

    def bind(
        self, callee: ast.Name, signature: _Signature, returns: Sequence[ast.Operand], args: Sequence[ast.Operand]
    ) -> tuple[tuple[Variable | Reg | Vec, ...], tuple[Actual, ...]]:
        """The actual results and arguments, checked against the formal ones."""
        for what, formals, actuals in (("argument", signature.params, args), ("result", signature.returns, returns)):
            if len(formals) == len(actuals) + 1 and None in formals[-1].dims:
                raise UnsupportedError(f"calls of '{callee.text}' without its last argument are not supported")
            if len(formals) != len(actuals):
                plural = "" if len(formals) == 1 else "s"
                message = f"'{callee.text}' has {len(formals)} {what}{plural}, not {len(actuals)}"
                raise self.resolver.error(message, actuals[0] if actuals else callee)
        results = tuple(self.result(formal, operand) for formal, operand in zip(signature.returns, returns))
        values = tuple(self.actual(formal, operand) for formal, operand in zip(signature.params, args))
        return results, values

    def result(self, formal: Variable, operand: ast.Operand) -> Variable | Reg | Vec:
        if isinstance(operand, ast.Sink) and not formal.dims:
            dropped = Reg("_", PRED if formal.type is PRED else TYPES[f"b{formal.type.bits}"])
            return Vec((dropped,) * formal.vector) if formal.vector else dropped
        if isinstance(operand, ast.Float):
            raise self.resolver.error("a result must be a register or a .param variable", operand)
        result = self.actual(formal, operand)
        if isinstance(result, Imm):
            raise self.resolver.error("a result must be a register or a .param variable", operand)
        return result

    def actual(self, formal: Variable, operand: ast.Operand) -> Actual:
        """A ``.param`` variable of the same shape, or a register or literal."""
        _, value = self.resolver.resolve(operand)
        if formal.type.bits == 8 and not formal.dims and not formal.vector:
            raise self.resolver.error("a scalar of 8 bits cannot be passed; the parameter must have 16 bits or more", operand)
        if isinstance(value, SymRef) and isinstance(operand, ast.Offset):
            raise self.resolver.error("a parameter is passed whole, without an offset", operand)
        if isinstance(value, SymRef) and isinstance(value.symbol, Variable) and value.symbol.space == "param":
            strict = self.declarer.gates is not None
            if not _same_shape(formal, value.symbol) or (strict and _alignment(formal) != _alignment(value.symbol)):
                name, given = written(value.symbol.name), _describe(value.symbol)
                raise self.resolver.error(f"'{name}' is {given}; the parameter is {_describe(formal)}", operand)
            return value.symbol
        elements = value if isinstance(value, tuple) else (value,)
        registers = tuple(element for element in elements if isinstance(element, Reg))
        if len(registers) == len(elements) and _fits(formal, registers):
            return Vec(registers) if isinstance(value, tuple) else registers[0]
        kind: ScalarType | None = None if formal.dims or formal.vector or formal.type is PRED else formal.type
        if kind is not None and isinstance(value, (ast.Int, ast.Float)) and typerules.literal_fits(kind, value):
            return typerules.literal_value(kind, value)
        if kind is not None and kind.kind == "b" and isinstance(value, ast.Float):
            raise UnsupportedError(f"a floating-point literal is not supported as a parameter of type {kind}")
        raise self.resolver.error(f"this does not fit the parameter, which is {_describe(formal)}", operand)


def _group(operands: list[ast.Operand]) -> tuple[ast.Operand, ...]:
    """Take a parenthesised list from the front, if there is one."""
    if not operands or not isinstance(operands[0], ast.Group):
        return ()
    group = operands.pop(0)
    assert isinstance(group, ast.Group)
    return group.items


def _signature(function: Function) -> _Signature:
    return _Signature(tuple(param.variable for param in function.params), tuple(function.returns), None)


def _fits(formal: Variable, registers: tuple[Reg, ...]) -> bool:
    """Whether a register, or the elements of one, can be passed; like ptxas, accept a vector for anything of its size."""
    if formal.dims:
        return False
    if len(registers) == 1 and not formal.vector:
        return typerules.register_fits(formal.type, registers[0].type, relaxed=False)
    untyped = PRED not in (formal.type, *(register.type for register in registers))
    return untyped and sum(register.type.bytes for register in registers) == formal.size


def _same_shape(formal: Variable, actual: Variable) -> bool:
    if bool(formal.dims) != bool(actual.dims) or (formal.size != actual.size and None not in formal.dims):
        return False
    if (formal.dims and actual.align < formal.align) or (formal.type is PRED) != (actual.type is PRED):
        return False
    return formal.type.kind == "b" or actual.type.kind == "b" or formal.type.is_float == actual.type.is_float


def _alignment(variable: Variable) -> int:
    """The alignment declared, or that of the type if it is greater. ptxas requires parameter and argument to agree in it."""
    return max(variable.align, _natural_alignment(variable))


def _natural_alignment(variable: Variable) -> int:
    return variable.type.bytes * (variable.vector or 1)


def _describe(variable: Variable) -> str:
    extent = "".join(f"[{extent}]" for extent in variable.dims)
    align = f".align {variable.align} " if variable.dims or variable.align != _natural_alignment(variable) else ""
    vector = f".v{variable.vector} " if variable.vector else ""
    return f"{align}{vector}.{variable.type}{extent}"
