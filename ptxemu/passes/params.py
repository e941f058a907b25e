"""Parameters of device functions become registers.

A ``.param`` variable of a function body is only a mailbox: stores with constant offsets on one side, loads on the
other.  Where its accesses do not overlap each piece is a register; otherwise the variable moves to local memory.
passes/marshal.py does the same for the parameters of calls that are not inlined.
"""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir import Addr, Call, Function, Op, Operand, Reg, SymRef, Variable, Vec
from ptxemu.passes.graph import Graph
from ptxemu.passes.internal import ARGUMENTS, RESULTS, move
from ptxemu.passes.marshal import WORD, Marshal
from ptxemu.types import TYPES


def promote(graph: Graph, function: Function) -> None:
    """Rewrite every access to a param variable, those of a kernel itself excepted."""
    formals = {param.variable for param in function.params}
    kernel = function.kind == "entry"
    pieces = _collect(graph, formals if kernel else set())
    if not kernel:
        for formal in (*formals, *function.returns):
            pieces.setdefault(formal, set())
    registers: dict[Variable, dict[int, Reg]] = {}
    memory: dict[Variable, Variable] = {}
    for variable, found in pieces.items():
        if found is not None and _disjoint(found):
            registers[variable] = {offset: Reg(f"{variable.name}+{offset}", TYPES[f"b{size * 8}"]) for offset, size in found}
        else:
            memory[variable] = replace(variable, space="local", align=max(variable.align, WORD))
            graph.variables.append(memory[variable])
    marshal = Marshal(registers, memory)
    for block in graph.blocks:
        block.ops = [new for op in block.ops for new in _rewrite(op, registers, memory, marshal, function)]


def _target(op: Op) -> tuple[Variable, int] | None:
    if op.row.lower not in ("ld", "st") or not op.srcs or not isinstance(op.srcs[0], Addr):
        return None
    base = op.srcs[0].base
    if isinstance(base, SymRef) and isinstance(base.symbol, Variable) and base.symbol.space == "param":
        return base.symbol, base.offset + op.srcs[0].offset
    return None


def _elements(op: Op) -> list[tuple[Operand | None, int]]:
    """(register or value, size in bytes) of each element that an access moves."""
    if op.row.lower == "ld":
        return [(dst, kind.bytes) for dst, kind in zip(op.dsts, op.dst_types)]
    value, kind = op.srcs[1], op.src_types[1]
    assert kind is not None
    items = value.items if isinstance(value, Vec) else (value,)
    return [(item, kind.bytes) for item in items]


def _collect(graph: Graph, kernel_params: set[Variable]) -> dict[Variable, set[tuple[int, int]] | None]:
    """The (offset, size) pieces of every param variable; None where its address escapes."""
    found: dict[Variable, set[tuple[int, int]] | None] = {}

    def add(variable: Variable, offset: int, size: int) -> None:
        if variable in kernel_params:
            return
        pieces = found.setdefault(variable, set())
        if pieces is not None:
            pieces.add((offset, size))

    for block in graph.blocks:
        for op in block.ops:
            target = _target(op)
            if target is not None:
                offset = target[1]
                for _, size in _elements(op):
                    add(target[0], offset, size)
                    offset += size
            else:
                for variable in _escapes(op):
                    if variable not in kernel_params:
                        found[variable] = None
            if op.call is not None:
                for value in (*op.call.args, *op.call.returns):
                    if isinstance(value, Variable) and op.call.real and value not in kernel_params:
                        found.setdefault(value, set())
                    elif isinstance(value, Variable):
                        add(value, 0, value.size)
    return found


def _escapes(op: Op) -> list[Variable]:
    found = []
    for source in op.srcs:
        base = source.base if isinstance(source, Addr) else source
        if isinstance(base, SymRef) and isinstance(base.symbol, Variable) and base.symbol.space == "param":
            found.append(base.symbol)
    return found


def _disjoint(pieces: set[tuple[int, int]]) -> bool:
    end = 0
    for offset, size in sorted(pieces):
        if offset < end or size not in (1, 2, 4, 8, 16):
            return False
        end = offset + size
    return True


def _rewrite(
    op: Op,
    registers: dict[Variable, dict[int, Reg]],
    memory: dict[Variable, Variable],
    marshal: Marshal,
    function: Function,
) -> list[Op]:
    if op.call is not None:
        return marshal.call(op) if op.call.real else [replace(op, call=_call(op.call, registers))]
    if op.row is ARGUMENTS:
        return marshal.arguments(function, op)
    if op.row is RESULTS:
        return marshal.results(function, op)
    target = _target(op)
    if target is None:
        return [replace(op, srcs=tuple(_relocate(source, memory) for source in op.srcs))] if memory else [op]
    variable, offset = target
    if variable in memory:
        address = Addr(SymRef(memory[variable], offset), 0)
        return [replace(op, srcs=(address, *op.srcs[1:]), mods={**op.mods, "space": "local"})]
    if variable not in registers:
        return [op]
    return _moves(op, registers[variable], offset)


def _moves(op: Op, pieces: dict[int, Reg], offset: int) -> list[Op]:
    moves = []
    for index, (value, size) in enumerate(_elements(op)):
        reg = pieces[offset]
        offset += size
        if op.row.lower == "ld":
            if isinstance(value, Reg):
                moves.append(move(value, reg, op.dst_types[index], op))
        else:
            kind = op.src_types[1]
            assert value is not None and kind is not None
            moves.append(move(reg, value, kind, op))
    return moves


def _relocate(operand: Operand, memory: dict[Variable, Variable]) -> Operand:
    if isinstance(operand, Addr) and isinstance(operand.base, SymRef):
        return Addr(_relocate(operand.base, memory), operand.offset)  # type: ignore[arg-type]
    if isinstance(operand, SymRef) and operand.symbol in memory:
        return SymRef(memory[operand.symbol], operand.offset)
    return operand


def _call(call: Call, registers: dict[Variable, dict[int, Reg]]) -> Call:
    def value(actual: object) -> object:
        if isinstance(actual, Variable) and actual in registers:
            return registers[actual][0]
        return actual

    return replace(call, args=tuple(map(value, call.args)), returns=tuple(map(value, call.returns)))
