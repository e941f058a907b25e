"""Parameters of device functions become registers.

A ``.param`` variable of a function body is only a mailbox: stores with constant offsets on one side, loads on the
other.  Where its accesses do not overlap each piece is a register; otherwise the variable moves to local memory, where
accesses through registers find it.
passes/marshal.py does the same for the parameters of calls that are not inlined, those of the runtime's functions among them.
"""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import MAILBOXES, Addr, Function, Op, Operand, Reg, SymRef, Variable, items_of
from ptxemu.ir.types import TYPES
from ptxemu.passes.internal import ARGUMENTS, RESULTS, transfer
from ptxemu.passes.marshal import FRAME_ALIGN, WORD, Marshal, cells, in_memory, places


def promote(graph: Graph, function: Function) -> None:
    """Rewrite every access to a param variable, those of a kernel itself excepted."""
    formals = {param.variable for param in function.params}
    kernel = function.kind == "entry"
    pieces = _collect(graph, formals if kernel else set())
    if not kernel:
        for formal in (*formals, *function.returns):
            pieces.setdefault(formal, set())
    for variable in _handed_on(graph, function):
        pieces[variable] = _without_gaps(variable, pieces.get(variable))
    registers: dict[Variable, dict[int, Reg]] = {}
    memory: dict[Variable, Variable] = {}
    large = {} if kernel else places((param.variable for param in function.params), function.returns)[0]
    for variable, found in pieces.items():
        if variable in large:
            memory[variable] = replace(variable, space="local", align=FRAME_ALIGN)
            graph.incoming[memory[variable]] = large[variable]
        elif found is not None and _disjoint(found):
            registers[variable] = {offset: Reg(f"{variable.name}+{offset}", TYPES[f"b{size * 8}"]) for offset, size in found}
        else:
            memory[variable] = replace(variable, space="local", align=max(variable.align, WORD))
            graph.variables.append(memory[variable])
    marshal = Marshal(registers, memory)
    for block in graph.blocks:
        block.ops = [new for op in block.ops for new in _rewrite(op, registers, memory, marshal, function)]


def through_register(op: Op) -> Op:
    """An op of a device function; there ``.param`` is the function's own, and a register can only hold what is in memory."""
    if len(op.effects.accesses) != 1 or op.mods.get("space") not in MAILBOXES:
        return op
    address = op.access.address
    if not isinstance(address, Addr) or not isinstance(address.base, Reg):
        return op
    return replace(op, mods={**op.mods, "space": "local"})


def _handed_on(graph: Graph, function: Function) -> set[Variable]:
    """Variables of which every byte counts: received as a whole, from a caller or callee, and passed on as such."""
    calls = [op.call for block in graph.blocks for op in block.ops if op.call is not None]
    received = {value for call in calls for value in call.returns if isinstance(value, Variable)}
    passed = {value for call in calls for value in call.args if isinstance(value, Variable)}
    if function.kind != "entry":
        received |= {param.variable for param in function.params}
        passed |= set(function.returns)
    return received & passed


def _without_gaps(variable: Variable, pieces: set[tuple[int, int]] | None) -> set[tuple[int, int]] | None:
    """The pieces and others for the bytes between them; None, which is memory, where these would be too many."""
    if pieces is None or in_memory(variable) or not _disjoint(pieces):
        return None
    if not pieces:
        return set(cells(variable))
    found, end = set(pieces), 0
    for offset, size in [*sorted(pieces), (variable.size, 0)]:
        while end < offset:
            length = next(length for length in (WORD, 2, 1) if end % length == 0 and end + length <= offset)
            found.add((end, length))
            end += length
        end = offset + size
    return found


def _target(op: Op) -> tuple[Variable, int] | None:
    """The param variable, and the offset in it, that an op loads from or stores to."""
    accesses = op.effects.accesses
    if len(accesses) != 1 or accesses[0].kind == "update":
        return None
    address = op[accesses[0].operand]
    base = address.base if isinstance(address, Addr) else None
    if isinstance(base, SymRef) and isinstance(base.symbol, Variable) and base.symbol.space == "param":
        return base.symbol, base.offset + address.offset
    return None


def _elements(op: Op) -> list[tuple[Operand | None, int]]:
    """(register or value, size in bytes) of each element that an access moves."""
    if op.effects.reads:
        return [(dst, kind.bytes) for dst, kind in zip(op.dsts, op.dst_types)]
    value, kind = op["v"], op.type_of("v")
    assert kind is not None
    return [(item, kind.bytes) for item in items_of(value)]


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
                    if isinstance(value, Variable) and value not in kernel_params:
                        found.setdefault(value, set())
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
        return marshal.call(op)
    if op.row is ARGUMENTS:
        return marshal.arguments(function, op)
    if op.row is RESULTS:
        return marshal.results(function, op)
    target = _target(op)
    if target is None:
        op = through_register(op) if function.kind != "entry" else op
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
        if op.effects.reads:
            if isinstance(value, Reg):
                moves.append(transfer(value, reg, op.dst_types[index], op))
        else:
            kind = op.type_of("v")
            assert value is not None and kind is not None
            moves.append(transfer(reg, value, kind, op))
    return moves


def _relocate(operand: Operand, memory: dict[Variable, Variable]) -> Operand:
    if isinstance(operand, Addr) and isinstance(operand.base, SymRef):
        return Addr(_relocate(operand.base, memory), operand.offset)  # type: ignore[arg-type]
    if isinstance(operand, SymRef) and operand.symbol in memory:
        return SymRef(memory[operand.symbol], operand.offset)
    return operand
