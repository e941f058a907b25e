"""Limits on what a module may declare (PTX ISA, "Limitations"): shared, constant and parameter memory."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.check.names import written
from ptxemu.ir.ops import Addr, Function, Module, Op, SymRef, Variable
from ptxemu.text.errors import Diagnostics

SHARED, CONSTANT = 48 << 10, 64 << 10
PARAMETERS, LARGE_PARAMETERS = 4352, 32764
LARGE_VERSION, LARGE_TARGET = (8, 1), 70


def check_constants(module: Module, diagnostics: Diagnostics) -> None:
    """The constant bank holds every ``.const`` variable, used or not."""
    constants = [variable for variable in module.variables.values() if variable.space == "const"]
    _exceeds(constants, CONSTANT, "constant data of the module", diagnostics)


def check_parameters(
    function: Function, end: int, version: tuple[int, int], target: int | None, diagnostics: Diagnostics
) -> None:
    """How many bytes of parameters a kernel may have depends on version and target; ``end`` is where it ends."""
    if function.kind != "entry" or not function.params:
        return
    size = function.param_bytes
    large = version >= LARGE_VERSION and (target is None or target >= LARGE_TARGET)
    most = LARGE_PARAMETERS if large else PARAMETERS
    if size > most:
        message = f"kernel '{function.name}' has {size} bytes of parameters; there are {most}"
        diagnostics.error(message, end, end + 1)


def check_shared(functions: Iterable[Function], variables: Iterable[Variable], diagnostics: Diagnostics) -> None:
    """Static shared memory of each kernel: its own variables and those of the module that it or what it calls uses."""
    functions = list(functions)
    declared = [variable for function in functions for variable in function.variables] + list(variables)
    if sum(variable.size + variable.align for variable in declared if variable.space == "shared") <= SHARED:
        return
    for function in functions:
        if function.kind == "entry" and function.body is not None:
            used = {id(variable): variable for called in _reached(function) for variable in _variables(called)}
            shared = [variable for variable in used.values() if variable.space == "shared"]
            _exceeds(shared, SHARED, f"static shared memory of kernel '{function.name}'", diagnostics)


def _reached(function: Function) -> Iterable[Function]:
    """A function and all that it calls by name."""
    found, waiting = {id(function): function}, [function]
    while waiting:
        for op in waiting.pop().body or ():
            callee = op.call.callee if isinstance(op, Op) and op.call is not None else None
            if isinstance(callee, Function) and id(callee) not in found:
                found[id(callee)] = callee
                waiting.append(callee)
    return found.values()


def _variables(function: Function) -> Iterable[Variable]:
    yield from _mentioned(function.body or ())
    yield from function.variables


def _mentioned(body: Iterable[object]) -> Iterable[Variable]:
    for op in body:
        if isinstance(op, Op):
            for operand in op.srcs:
                base = operand.base if isinstance(operand, Addr) else operand
                if isinstance(base, SymRef) and isinstance(base.symbol, Variable):
                    yield base.symbol


def _exceeds(variables: list[Variable], most: int, what: str, diagnostics: Diagnostics) -> None:
    size = 0
    for variable in variables:
        size = -(-size // variable.align) * variable.align + variable.size
    if size > most:
        last = variables[-1]
        name = written(last.name)
        diagnostics.error(f"{what} takes {size} bytes; there are {most}", last.pos, last.pos + len(name))
