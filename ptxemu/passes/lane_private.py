"""Prepares a kernel for the scheme in which lanes progress independently (:mod:`ptxemu.lower.functions.independent`).

There, lanes of a warp may be in different blocks, and in different iterations of a loop.  So a value that another block
reads must be kept for each lane by itself, unless it is the same whenever it is computed; and an instruction at which
lanes meet begins a block, because that is where lanes wait.
"""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir.convergence import counts_threads, meets
from ptxemu.ir.graph import Block, Graph, given, reading, reads, writes
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, SReg, SymRef, Vec
from ptxemu.passes.internal import KEEP, halves, keep
from ptxemu.passes.merge_syncs import share

# Registers of the launch or the thread; all others change.
CONSTANT_SREGS = {
    "tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "nwarpid", "lanemask_eq", "lanemask_lt", "lanemask_le",
    "lanemask_gt", "lanemask_ge",
}  # fmt: skip


def separate(graph: Graph) -> None:
    """Rewrite a graph in SSA form, in place."""
    shared = share(graph)
    for block in list(graph.blocks):
        block.ops = [part for op in block.ops for part in _halves(op)]
        _split(graph, block)
    graph.link()
    beginning = {block.ops[0]: block for block in graph.blocks if block.ops}
    for group in shared:
        places = [beginning[op] for op in group if op in beginning]  # others cannot be reached
        graph.joint |= dict.fromkeys(places, places)
    _keep_values(graph)


def _halves(op: Op) -> list[Op]:
    """A barrier that counts threads as its two halves: lanes arrive when they come, and go on when it is complete."""
    if not counts_threads(op):
        return [op]
    arriving, leaving = halves(op.row)
    join = replace(op, row=arriving, dsts=(), dst_types=(), mods={k: v for k, v in op.mods.items() if k != "sync"})
    leave = replace(op, row=leaving, srcs=(), src_types=(), negs=(), mods={})
    return [join] if op.effects.arrives else [join, leave]


def _split(graph: Graph, block: Block) -> None:
    """Begin a block at every meeting."""
    for index, op in enumerate(block.ops):
        if meets(op) and (index or block.phis):
            ends = {"succs": block.succs, "cond": block.cond, "negated": block.negated, "pos": block.pos, "table": block.table}
            rest = Block(f"{block.name}.meet", block.ops[index:], **ends)  # type: ignore[arg-type]
            block.ops, block.succs, block.cond, block.table = block.ops[:index], [rest], None, ()
            for succ in rest.succs:
                if succ.phis:
                    succ.phis.args[rest] = succ.phis.args.pop(block)
            graph.blocks.insert(graph.blocks.index(block) + 1, rest)
            if block in graph.spins:
                graph.spins ^= {block, rest}
            _split(graph, rest)
            return


def _keep_values(graph: Graph) -> None:
    fixed = _fixed_values(graph)
    wanted = _wanted_elsewhere(graph)
    for block in graph.blocks:
        here: dict[Reg, Operand] = {}
        ops: list[Op] = []
        for op in block.ops:
            op = reading(op, here)
            kept: dict[Reg, Reg] = {}
            for reg in writes(op):
                if reg in wanted and reg not in fixed and op.row is not KEEP:
                    here[reg] = kept[reg] = Reg(f"{reg.name}.here", reg.type)
            ops.append(_with_results(op, kept))
            ops += [keep(reg, copy, op) for reg, copy in kept.items()]
        block.ops = ops
        if block.cond is not None:
            block.cond = here.get(block.cond, block.cond)  # type: ignore[assignment]
        for succ in block.succs:
            column = succ.phis.args.get(block, [])
            column[:] = [here.get(arg, arg) if isinstance(arg, Reg) else arg for arg in column]  # type: ignore[misc]


def _with_results(op: Op, mapping: dict[Reg, Reg]) -> Op:
    if not mapping:
        return op
    call = op.call
    if call is not None:
        returns = tuple(mapping.get(value, value) if isinstance(value, Reg) else value for value in call.returns)
        call = replace(call, returns=returns)
    return replace(op, dsts=tuple(None if dst is None else mapping.get(dst, dst) for dst in op.dsts), call=call)


def _wanted_elsewhere(graph: Graph) -> set[Reg]:
    """Registers that a block other than the one that defines them reads."""
    home = {reg: block for block in graph.blocks for op in block.ops for reg in writes(op)}
    wanted: set[Reg] = set()
    for block in graph.blocks:
        used = [reg for op in block.ops for reg in reads(op)]
        used += [block.cond] if block.cond is not None else []
        used += given(block)
        wanted.update(reg for reg in used if home.get(reg) is not block)
    return wanted


def _fixed_values(graph: Graph) -> set[Reg]:
    """Registers whose value follows from constants of the launch, whichever lanes run when."""
    fixed: set[Reg] = set()
    changed = True
    while changed:
        changed = False
        for block in graph.blocks:
            for op in block.ops:
                if not _is_fixed(op, fixed):
                    continue
                new = {dst for dst in op.dsts if dst is not None} - fixed
                fixed |= new
                changed |= bool(new)
    return fixed


def _is_fixed(op: Op, fixed: set[Reg]) -> bool:
    if op.guard is not None:
        return False
    if not op.effects.pure:
        return _loads_parameter(op)
    return op.effects.results not in ("varying", "uniform") and all(_is_fixed_operand(source, fixed) for source in op.srcs)


def _loads_parameter(op: Op) -> bool:
    """Whether an op only reads a place in the parameters that follows from the text."""
    if [access.kind for access in op.effects.accesses] != ["read"] or op.access.space != "param":
        return False
    return isinstance(op.access.address, Addr) and isinstance(op.access.address.base, SymRef)


def _is_fixed_operand(operand: Operand, fixed: set[Reg]) -> bool:
    if isinstance(operand, SReg):
        return operand.name.partition(".")[0] in CONSTANT_SREGS
    if isinstance(operand, Vec):
        return all(_is_fixed_operand(item, fixed) for item in operand.items)
    return isinstance(operand, Imm | SymRef) or operand in fixed
