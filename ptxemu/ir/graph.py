"""The control-flow graph of one kernel: blocks of :class:`ptxemu.ir.ops.Op`, phis and terminators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import compress

from msgspec import Struct, field
from msgspec.structs import replace

from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, Symbol, SymRef, Variable, Vec


class Phi(Struct, eq=False):
    """``dst = phi(args[pred] ...)``, keyed by predecessor block: one of :class:`Phis`, to be read. ``dst`` tells which."""

    dst: Reg
    args: dict[Block, Reg | Imm]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Phi) and other.dst is self.dst

    def __hash__(self) -> int:
        return hash(self.dst)

    @property
    def only(self) -> Reg | Imm | None:
        """The argument, if all edges bring the same."""
        args = list(self.args.values())
        return args[0] if args and args.count(args[0]) == len(args) else None


class Phis(Struct, eq=False):
    """The phis of a block in columns, as there may be very many: their results ``dsts``, and for each predecessor what they are
    to those who come from there."""

    dsts: list[Reg] = []  # each has its own
    args: dict[Block, list[Reg | Imm]] = {}

    def __len__(self) -> int:
        return len(self.dsts)

    def __iter__(self) -> Iterator[Phi]:
        for index, dst in enumerate(self.dsts):
            yield Phi(dst, {pred: column[index] for pred, column in self.args.items()})

    def rows(self) -> Iterable[tuple[Reg, tuple[Reg | Imm, ...]]]:
        """The result of each, with its arguments."""
        return zip(self.dsts, zip(*self.args.values()))

    def drop(self, unwanted: Set[Reg | Imm | None]) -> None:
        """Drop those whose results are not wanted."""
        if not unwanted.isdisjoint(self.dsts):
            kept = [dst not in unwanted for dst in self.dsts]
            self.dsts = list(compress(self.dsts, kept))
            self.args = {pred: list(compress(column, kept)) for pred, column in self.args.items()}


class Block(Struct, eq=False):
    """A basic block. It ends in a jump (one successor), a branch (two: taken, not taken), a computed branch (any number), or
    the thread's end (none).

    ``cond`` is the branch predicate, ``negated`` inverts it.  Of a computed branch it is the index, and ``table`` says which of
    the successors, that are all different, each value leads to; its last entry is for all greater values.  ``pos`` is the source
    offset of the terminator.
    """

    name: str
    ops: list[Op] = []
    phis: Phis = field(default_factory=Phis)
    succs: list[Block] = []
    preds: list[Block] = []
    cond: Reg | None = None
    negated: bool = False
    pos: int = 0
    table: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return self.name


class Graph(Struct, eq=False):
    """A function body as blocks; ``blocks[0]`` is the entry. ``variables`` are the local and shared variables in use.

    ``spins``: the latches of loops that wait for other threads (:mod:`ptxemu.analysis.spinning`).
    ``incoming``: where in its frame a device function finds large parameters, and leaves large results.
    ``joint``: for blocks that begin with an instruction of several places, the blocks of all these
    (:mod:`ptxemu.passes.merge_syncs`).
    """

    name: str
    blocks: list[Block]
    variables: list[Variable]
    incoming: dict[Variable, int] = {}
    spins: set[Block] = set()
    joint: dict[Block, list[Block]] = {}

    @property
    def entry(self) -> Block:
        return self.blocks[0]

    def link(self) -> None:
        """Recompute ``preds`` and drop unreachable blocks, keeping the order of the rest."""
        reached = {self.entry}
        work = [self.entry]
        while work:
            for succ in work.pop().succs:
                if succ not in reached:
                    reached.add(succ)
                    work.append(succ)
        self.blocks = [block for block in self.blocks if block in reached]
        for block in self.blocks:
            block.preds = []
        for block in self.blocks:
            _merge_edges(block)
            for succ in block.succs:
                succ.preds.append(block)


def _merge_edges(block: Block) -> None:
    """Make the successors of a block different ones."""
    if len(block.succs) < 2:
        return
    different = list(dict.fromkeys(block.succs))
    if len(different) == len(block.succs):
        return
    number = {succ: index for index, succ in enumerate(different)}
    block.table = tuple(number[block.succs[entry]] for entry in block.table)
    block.succs = different
    if len(different) == 1:
        block.cond, block.table = None, ()


def redirect(block: Block, old: Block, new: Block) -> None:
    """Make every edge ``block -> old`` go to ``new``."""
    block.succs = [new if succ is old else succ for succ in block.succs]


def registers(operand: Operand) -> Iterator[Reg]:
    """The registers that a source operand reads."""
    if isinstance(operand, Reg):
        yield operand
    elif isinstance(operand, Addr):
        if isinstance(operand.base, Reg):
            yield operand.base
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from registers(item)


def reads(op: Op) -> Iterator[Reg]:
    """The registers that an op reads: sources, guard, call arguments and kept old values."""
    for source in op.srcs:
        if isinstance(source, Reg):  # most are
            yield source
        elif not isinstance(source, Imm):
            yield from registers(source)
    if op.guard is not None:
        yield op.guard[0]
    for kept in op.old:
        if isinstance(kept, Reg):
            yield kept
    if op.call is not None:
        for argument in op.call.args:
            if not isinstance(argument, Variable):
                yield from registers(argument)


def writes(op: Op) -> Iterator[Reg]:
    """The registers that an op writes, the results of a call included."""
    yield from (dst for dst in op.dsts if dst is not None)
    if op.call is not None:
        for value in op.call.returns:
            if not isinstance(value, Variable):
                yield from registers(value)


def given(block: Block) -> list[Reg]:
    """The registers that a block's end hands over to phis of its successors."""
    return [arg for succ in block.succs for arg in succ.phis.args.get(block, ()) if isinstance(arg, Reg)]


def symbols(operand: Operand) -> Iterator[Symbol]:
    """The variables and functions that a source operand names."""
    if isinstance(operand, SymRef):
        yield operand.symbol
    elif isinstance(operand, Addr):
        yield from symbols(operand.base)
    elif isinstance(operand, Vec):
        for item in operand.items:
            yield from symbols(item)


def substitute(operand: Operand, mapping: dict[Reg, Operand]) -> Operand:
    """``operand`` with its registers replaced."""
    if isinstance(operand, Reg):
        return mapping.get(operand, operand)
    if isinstance(operand, Addr) and isinstance(operand.base, Reg):
        base = mapping.get(operand.base, operand.base)
        return operand if base is operand.base else Addr(base, operand.offset)  # type: ignore[arg-type]
    if isinstance(operand, Vec):
        return Vec(tuple(substitute(item, mapping) for item in operand.items))
    return operand


def reading(op: Op, mapping: dict[Reg, Operand]) -> Op:
    """``op`` with the registers that it reads replaced; a guard is replaced by a register only."""
    if mapping.keys().isdisjoint(reads(op)):
        return op
    guard, call = op.guard, op.call
    if guard is not None and isinstance(predicate := mapping.get(guard[0], guard[0]), Reg):
        guard = (predicate, guard[1])
    if call is not None:
        args = tuple(mapping.get(value, value) if isinstance(value, Reg) else value for value in call.args)
        call = replace(call, args=args)
    old = tuple(mapping.get(value, value) if isinstance(value, Reg) else value for value in op.old)
    srcs = tuple(substitute(source, mapping) for source in op.srcs)
    return replace(op, srcs=srcs, guard=guard, call=call, old=old)
