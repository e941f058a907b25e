"""From a flat list of ops and labels to a control-flow graph.

Guards stay on plain ops; on anything that transfers control, waits or calls they become branches.
"""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.ops import Call, LabelMark, Op, Reg, Vec
from ptxemu.ir.types import PRED, U64
from ptxemu.passes.internal import ARGUMENTS, CALL, ENTER, INDIRECT_CALL, RESULTS, STACK_POINTER, invalid_branch, marker
from ptxemu.passes.routines import Routine

CARRY = Reg("%cc", PRED)
STACK = Reg("%stack", U64)  # where the next alloca or call may place its local memory


def build(routine: Routine) -> Graph:
    """The graph of one body. Control that falls off the end returns; that of the kernel itself leaves it."""
    return _Builder(routine).run(routine.body)


class _Builder:
    def __init__(self, routine: Routine) -> None:
        function = routine.function
        self.graph = Graph(function.name, [Block("entry")], routine.variables)
        self.named: dict[str, Block] = {}
        self.fresh = 0
        self.current: Block | None = self.graph.entry
        self.home = None if function.kind == "entry" else Block(".return", pos=function.pos)
        self.start_op = Op(ENTER, {}, (), (), (), (), function.pos, function.pos)

    def run(self, body: list[Op | LabelMark]) -> Graph:
        self.prologue()
        for item in body:
            if isinstance(item, LabelMark):
                self.start(self.label(item.name))
                continue
            if self.current is None:
                self.start(self.new("dead"))
            self.add(item)
        if self.home is not None:
            self.start(self.home)
            self.home.ops.append(marker(RESULTS, self.start_op))
        self.graph.link()
        return self.graph

    def prologue(self) -> None:
        """What a body starts with; passes/params.py completes ``_arguments`` and ``_results``."""
        ops = self.graph.entry.ops
        if self.home is not None:
            ops += [self.start_op, marker(ARGUMENTS, self.start_op)]
        ops.append(marker(STACK_POINTER, self.start_op, dsts=(STACK,)))

    def label(self, name: str) -> Block:
        if name not in self.named:
            self.named[name] = Block(name)
        return self.named[name]

    def new(self, stem: str) -> Block:
        self.fresh += 1
        return Block(f".{stem}{self.fresh}")

    def start(self, block: Block) -> None:
        """Make ``block`` current, falling into it from the block before."""
        if self.current is not None:
            self.current.succs = [block]
        self.graph.blocks.append(block)
        self.current = block

    def close(self, targets: list[Block], cond: Reg | None, negated: bool, pos: int) -> None:
        assert self.current is not None
        self.current.succs, self.current.cond, self.current.negated, self.current.pos = targets, cond, negated, pos
        self.current = None

    def branch(self, target: Block, guard: tuple[Reg, bool] | None, pos: int) -> None:
        if guard is None:
            return self.close([target], None, False, pos)
        after = self.new("next")
        self.close([target, after], guard[0], guard[1], pos)
        self.start(after)
        return None

    def leave(self, guard: tuple[Reg, bool] | None, pos: int) -> None:
        """Threads leave the kernel."""
        if guard is None:
            return self.close([], None, False, pos)
        end = self.new("exit")
        self.graph.blocks.append(end)
        return self.branch(end, guard, pos)

    def add(self, op: Op) -> None:
        leaves = op.effects.leaves
        if leaves in ("function", "kernel"):
            self.end(op)
        elif leaves == "block" and not op.srcs:
            self.branch(self.label(op.labels[0]), op.guard, op.pos)
        elif op.guard is not None and (op.effects.together or leaves == "block"):
            self.guarded(op, op.guard)
        elif leaves == "block":
            self.switch(op)
        elif op.call is not None and op.call.real:
            self.call(op, op.call)
        else:
            assert self.current is not None
            self.current.ops.append(with_implicit(op))
            if leaves == "launch":
                self.close([], None, False, op.pos)

    def end(self, op: Op) -> None:
        """Control leaves the kernel, or the function: that of a copied body goes on at a label."""
        if op.labels:
            self.branch(self.label(op.labels[0]), op.guard, op.pos)
        elif op.effects.leaves == "function" and self.home is not None:
            self.branch(self.home, op.guard, op.pos)
        else:
            self.leave(op.guard, op.pos)

    def guarded(self, op: Op, guard: tuple[Reg, bool]) -> None:
        """An op that cannot run for an empty set of lanes: its guard is a branch."""
        after = self.new("next")
        inside = self.new("guarded")
        self.close([inside, after], guard[0], guard[1], op.pos)
        self.start(inside)
        self.add(replace(op, guard=None))
        self.start(after)

    def call(self, op: Op, call: Call) -> None:
        """A real call reads the stack pointer and, if it is indirect, the address; threads that exit inside leave."""
        assert self.current is not None
        if isinstance(call.callee, Reg):
            made = marker(INDIRECT_CALL, op, srcs=(call.callee, STACK))
        else:
            made = marker(CALL, op, srcs=(STACK,))
        if not call.exits:
            self.current.ops.append(replace(made, call=call))
            return
        alive = Reg(f"%alive{len(self.graph.blocks)}", PRED)
        self.current.ops.append(replace(made, call=call, dsts=(alive,), dst_types=(PRED,)))
        self.leave((alive, True), op.pos)

    def switch(self, op: Op) -> None:
        """``brx.idx``: a fault where the index is past the list."""
        index = op["a"]
        assert isinstance(index, Reg) and self.current is not None
        block, invalid = self.current, self.new("invalid")
        self.close([*map(self.label, op.labels), invalid], index, False, op.pos)
        block.table = tuple(range(len(block.succs)))
        self.start(invalid)
        invalid.ops.append(invalid_branch(op))
        self.close([], None, False, op.pos)


IMPLICIT = {"cc": CARRY, "stack": STACK}


def with_implicit(op: Op) -> Op:
    """Make the carry flag CC.CF, the stack pointer and accumulators explicit sources and destinations."""
    for name in op.row.implicit.reads:
        read, kind = (Vec(op.results), op.dst_types[0]) if name == "accumulator" else (IMPLICIT[name], IMPLICIT[name].type)
        op = replace(op, srcs=(*op.srcs, read), src_types=(*op.src_types, kind))
    for name in op.row.implicit.writes:
        op = replace(op, dsts=(*op.dsts, IMPLICIT[name]), dst_types=(*op.dst_types, IMPLICIT[name].type))
    return op
