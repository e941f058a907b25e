"""How real calls pass parameters and results: as a flat list of registers, the *cells*.

Cells depend only on the formal parameters, so that caller and callee agree without seeing each other: a scalar is one
cell, an array is cut into words.  A body may access its parameters in other pieces, or keep them in memory; this module
converts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ptxemu.ir import Addr, Function, Imm, Op, Reg, SymRef, Variable
from ptxemu.passes.internal import ARGUMENTS, PARAM_LOAD, PARAM_STORE, RESULTS, deposit, extract, marker, move
from ptxemu.types import TYPES, ScalarType

WORD = 4
Piece = tuple[int, int, Reg]  # offset, size, value


def cells(formal: Variable) -> list[tuple[int, int]]:
    """(offset, size in bytes) of the cells of a formal parameter or result."""
    if not formal.dims and formal.size in (1, 2, 4, 8, 16):
        return [(0, formal.size)]
    found, offset = [], 0
    for size in (WORD, 2, 1):
        while formal.size - offset >= size:
            found.append((offset, size))
            offset += size
    return found


def _bits(size: int) -> ScalarType:
    return TYPES[f"b{size * 8}"]


def repack(pieces: Iterable[Piece], offset: int, size: int, like: Op, ops: list[Op]) -> Reg | Imm:
    """The ``size`` bytes at ``offset`` of a value that is kept in ``pieces``; bytes in no piece are zero."""
    result: Reg | Imm = Imm(0, _bits(size))
    for start, length, value in pieces:
        if start + length <= offset or offset + size <= start:
            continue
        if (start, length) == (offset, size):
            return value
        part = Reg(f"{value.name}>{offset}", _bits(size))
        ops.append(extract(part, value, 8 * max(0, offset - start), like))
        joined = Reg(f"{value.name}|{offset}", _bits(size))
        ops.append(deposit(joined, result, part, 8 * max(0, start - offset), like))
        result = joined
    return result


class Marshal:
    """Completes the calls, the start and the end of one body.

    ``registers`` gives the pieces of param variables by offset; ``memory`` those that live in local memory instead. Others
    are parameters of the kernel.
    """

    def __init__(self, registers: Mapping[Variable, Mapping[int, Reg]], memory: Mapping[Variable, Variable]) -> None:
        self.registers = registers
        self.memory = memory

    def call(self, op: Op) -> list[Op]:
        """A real call with its arguments and results as cells, and what moves them."""
        assert op.call is not None
        params, results = op.call.formals
        before: list[Op] = []
        after: list[Op] = []
        args = [cell for formal, actual in zip(params, op.call.args) for cell in self._argument(formal, actual, op, before)]
        returns = [cell for formal, actual in zip(results, op.call.returns) for cell in self._result(formal, actual, op, after)]
        return [*before, replace(op, call=replace(op.call, args=tuple(args), returns=tuple(returns))), *after]

    def arguments(self, function: Function, op: Op) -> list[Op]:
        """``_arguments`` of a device function, and what moves the cells to where the body expects them."""
        after: list[Op] = []
        dsts = [cell for param in function.params for cell in self._result(param.variable, param.variable, op, after)]
        return [marker(ARGUMENTS, op, dsts=tuple(dsts)), *after]

    def results(self, function: Function, op: Op) -> list[Op]:
        before: list[Op] = []
        srcs = [cell for formal in function.returns for cell in self._argument(formal, formal, op, before)]
        return [*before, marker(RESULTS, op, srcs=tuple(srcs))]

    def _argument(self, formal: Variable, actual: Variable | Reg | Imm, like: Op, ops: list[Op]) -> list[Reg | Imm]:
        """The cells of ``formal`` read from ``actual``."""
        if isinstance(actual, Variable):
            if actual in self.registers:
                pieces = self._pieces(actual)
                return [repack(pieces, offset, size, like, ops) for offset, size in cells(formal)]
            return [self._load(actual, offset, size, like, ops) for offset, size in cells(formal)]
        cell = Reg(f"{formal.name}.argument", _bits(formal.size))
        ops.append(move(cell, actual, _bits(formal.size), like))
        return [cell]

    def _result(self, formal: Variable, actual: Variable | Reg | Imm, like: Op, ops: list[Op]) -> list[Reg]:
        """New cells of ``formal``; ``ops`` write them to ``actual``."""
        made = [(offset, size, Reg(f"{formal.name}.{offset}", _bits(size))) for offset, size in cells(formal)]
        if isinstance(actual, Variable) and actual in self.registers:
            for offset, size, piece in self._pieces(actual):
                ops.append(move(piece, repack(made, offset, size, like, ops), _bits(size), like))
        elif isinstance(actual, Variable):
            for offset, _, cell in made:
                ops.append(self._access(actual, offset, like, value=cell))
        elif isinstance(actual, Reg):
            ops.append(move(actual, made[0][2], _bits(formal.size), like))
        return [cell for _, _, cell in made]

    def _pieces(self, variable: Variable) -> list[Piece]:
        return [(offset, reg.type.bytes, reg) for offset, reg in self.registers[variable].items()]

    def _load(self, variable: Variable, offset: int, size: int, like: Op, ops: list[Op]) -> Reg:
        cell = Reg(f"{variable.name}.{offset}", _bits(size))
        ops.append(self._access(variable, offset, like, result=cell))
        return cell

    def _access(self, variable: Variable, offset: int, like: Op, *, result: Reg | None = None, value: Reg | None = None) -> Op:
        home = self.memory.get(variable, variable)
        address = Addr(SymRef(home, offset), 0)
        mods = {"space": home.space}
        if result is not None:
            return Op(PARAM_LOAD, mods, (result,), (address,), (result.type,), (None,), like.pos, like.end, loc=like.loc)
        assert value is not None
        return Op(PARAM_STORE, mods, (), (address, value), (), (None, value.type), like.pos, like.end, loc=like.loc)
