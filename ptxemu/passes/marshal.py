"""How calls pass parameters and results: as a flat list of registers, the *cells*; large ones in memory.

Cells depend only on the sizes of the formal parameters, so that caller and callee agree without seeing each other: a scalar
or vector of up to 8 bytes is one cell, one of 16 bytes two, and an array is cut into words.  A body may access its parameters
in other pieces, or keep them in memory; this module converts.

An array of more than MOST_BYTES lies at the start of the callee's frame in local memory, before and after the call
alike. The caller writes and reads only the pieces that it has, so that the code for a call is not longer than its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ptxemu.ir.ops import Addr, Function, Imm, Op, Reg, SymRef, Variable, Vec, items_of
from ptxemu.ir.types import TYPES, U64, ScalarType
from ptxemu.isa.table import Row
from ptxemu.passes.internal import (
    ARGUMENTS,
    COPY_BACK,
    COPY_OUT,
    FRAME_LOAD,
    FRAME_STORE,
    OUTGOING,
    PARAM_LOAD,
    PARAM_STORE,
    RESULTS,
    deposit,
    extract,
    load_from,
    marker,
    move,
    store_to,
    transfer,
)

WORD = 4
LARGEST = 8  # bytes of a cell
MOST_BYTES = 64  # of an array that is passed in registers
FRAME_ALIGN = 128  # of a frame with parameters, and of each of these: the most that a parameter may ask for
Piece = tuple[int, int, Reg]  # offset, size, value


def cells(formal: Variable) -> list[tuple[int, int]]:
    """(offset, size in bytes) of the cells of a formal parameter or result."""
    if not formal.dims:
        size = min(formal.size, LARGEST)
        return [(offset, size) for offset in range(0, formal.size, size)]
    found, offset = [], 0
    for size in (WORD, 2, 1):
        while formal.size - offset >= size:
            found.append((offset, size))
            offset += size
    return found


def in_memory(formal: Variable) -> bool:
    """Whether a parameter or result is passed in the callee's frame."""
    return bool(formal.dims) and formal.size > MOST_BYTES


def places(params: Iterable[Variable], results: Iterable[Variable]) -> tuple[dict[Variable, int], int]:
    """Where in the callee's frame large parameters and results lie, and how many bytes they take."""
    found, end = {}, 0
    for formal in (*params, *results):
        if in_memory(formal):
            found[formal] = end
            end += -(-formal.size // FRAME_ALIGN) * FRAME_ALIGN
    return found, end


def elements(actual: Reg | Imm | Vec) -> list[tuple[int, Reg | Imm]]:
    """The registers of what a call passes or returns, by their offsets in the parameter."""
    found: list[tuple[int, Reg | Imm]] = []
    offset = 0
    for value in items_of(actual):
        assert isinstance(value, (Reg, Imm))
        found.append((offset, value))
        offset += value.type.bytes
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
        """A call with its arguments and results as cells, and what moves them."""
        assert op.call is not None
        params, results = op.call.formals
        before: list[Op] = []
        after: list[Op] = []
        arguments, returned = list(zip(params, op.call.args)), list(zip(results, op.call.returns))
        large, size = places(params, results)
        if size and op.call.real:
            frame = Reg("%outgoing", U64)
            before.append(marker(OUTGOING, op, (frame,), (op["stack"], Imm(size, U64))))
            op = replace(op, srcs=(*op.srcs[:-1], frame))
            for formal, actual in arguments:
                if formal in large and isinstance(actual, Variable):
                    before += self._leave(actual, Addr(frame, large[formal]), op)
            for formal, actual in returned:
                if formal in large and isinstance(actual, Variable):
                    after += self._fetch(actual, Addr(frame, large[formal]), op)
        args = [cell for formal, actual in arguments for cell in self._argument(formal, actual, op, before)]
        returns = [cell for formal, actual in returned for cell in self._result(formal, actual, op, after)]
        assert op.call is not None
        return [*before, replace(op, call=replace(op.call, args=tuple(args), returns=tuple(returns))), *after]

    # -- large parameters

    def _leave(self, actual: Variable, at: Addr, like: Op) -> list[Op]:
        """Write an argument to the callee's frame."""
        if actual not in self.registers:
            return [self._copy(COPY_OUT, actual, at, like)]
        places = ((Addr(at.base, at.offset + offset), reg) for offset, _, reg in self._pieces(actual))
        return [store_to(FRAME_STORE, place, reg, "local", like) for place, reg in places]

    def _fetch(self, actual: Variable, at: Addr, like: Op) -> list[Op]:
        """Read a result from the callee's frame."""
        if actual not in self.registers:
            return [self._copy(COPY_BACK, actual, at, like)]
        places = ((Addr(at.base, at.offset + offset), reg) for offset, _, reg in self._pieces(actual))
        return [load_from(FRAME_LOAD, reg, place, "local", like) for place, reg in places]

    def _copy(self, row: Row, variable: Variable, at: Addr, like: Op) -> Op:
        """All of a variable in memory; ``at`` is in the callee's frame."""
        home = self.memory.get(variable, variable)
        sources = (Addr(SymRef(home, 0), 0), at, Imm(variable.size, U64))
        return Op(row, {"space": home.space}, (), sources, (), (None, None, U64), like.pos, like.end, loc=like.loc)

    def arguments(self, function: Function, op: Op) -> list[Op]:
        """``_arguments`` of a device function, and what moves the cells to where the body expects them."""
        after: list[Op] = []
        dsts = [cell for param in function.params for cell in self._result(param.variable, param.variable, op, after)]
        return [marker(ARGUMENTS, op, dsts=tuple(dsts)), *after]

    def results(self, function: Function, op: Op) -> list[Op]:
        before: list[Op] = []
        srcs = [cell for formal in function.returns for cell in self._argument(formal, formal, op, before)]
        return [*before, marker(RESULTS, op, srcs=tuple(srcs))]

    def _argument(self, formal: Variable, actual: Variable | Reg | Imm | Vec, like: Op, ops: list[Op]) -> list[Reg | Imm]:
        """The cells of ``formal`` read from ``actual``."""
        if in_memory(formal):
            return []
        if not isinstance(actual, Variable):
            pieces = [(offset, *_piece(formal, offset, value, like, ops)) for offset, value in elements(actual)]
        elif actual in self.registers:
            pieces = self._pieces(actual)
        else:
            return [self._load(actual, offset, size, like, ops) for offset, size in cells(formal)]
        return [repack(pieces, offset, size, like, ops) for offset, size in cells(formal)]

    def _result(self, formal: Variable, actual: Variable | Reg | Imm | Vec, like: Op, ops: list[Op]) -> list[Reg]:
        """New cells of ``formal``; ``ops`` write them to ``actual``."""
        if in_memory(formal):
            return []
        made = [(offset, size, Reg(f"{formal.name}.{offset}", _bits(size))) for offset, size in cells(formal)]
        if isinstance(actual, Variable) and actual in self.registers:
            for offset, size, piece in self._pieces(actual):
                ops.append(move(piece, repack(made, offset, size, like, ops), _bits(size), like))
        elif isinstance(actual, Variable):
            for offset, _, cell in made:
                address, space = self._place(actual, offset)
                ops.append(store_to(PARAM_STORE, address, cell, space, like))
        else:
            for offset, value in elements(actual):
                assert isinstance(value, Reg)
                size = value.type.bytes
                ops.append(transfer(value, repack(made, offset, size, like, ops), _bits(size), like))
        return [cell for _, _, cell in made]

    def _pieces(self, variable: Variable) -> list[Piece]:
        return [(offset, reg.type.bytes, reg) for offset, reg in self.registers[variable].items()]

    def _load(self, variable: Variable, offset: int, size: int, like: Op, ops: list[Op]) -> Reg:
        cell = Reg(f"{variable.name}.{offset}", _bits(size))
        address, space = self._place(variable, offset)
        ops.append(load_from(PARAM_LOAD, cell, address, space, like))
        return cell

    def _place(self, variable: Variable, offset: int) -> tuple[Addr, str]:
        """The address of bytes of a variable in memory, and its space."""
        home = self.memory.get(variable, variable)
        return Addr(SymRef(home, offset), 0), home.space


def _piece(formal: Variable, offset: int, value: Reg | Imm, like: Op, ops: list[Op]) -> tuple[int, Reg]:
    """The size of an argument or an element of one, and its bits."""
    size = value.type.bytes
    piece = Reg(f"{formal.name}.argument.{offset}", _bits(size))
    ops.append(transfer(piece, value, _bits(size), like))
    return size, piece
