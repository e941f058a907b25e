"""From a flat list of ops and labels to a control-flow graph.

Guards stay on plain ops; on anything that transfers control, waits or calls they become branches.
"""

from __future__ import annotations

from dataclasses import replace

from ptxemu.ir import LabelMark, Op, Reg, Variable
from ptxemu.passes.graph import Block, Graph
from ptxemu.passes.internal import equal, invalid_branch
from ptxemu.types import PRED

# Lowerings whose guard must be a branch: they cannot run for an empty set of lanes.
SPLIT = {"call", "trap", "brkpt", "barrier_sync", "barrier_arrive", "barrier_red", "bar_warp_sync", "vote", "shfl",
         "match", "redux", "activemask", "nanosleep"}  # fmt: skip
CARRY = Reg("%cc", PRED)


def build(name: str, body: list[Op | LabelMark], variables: list[Variable]) -> Graph:
    """The graph of one inlined body. Control that falls off the end leaves the kernel."""
    return _Builder(name, variables).run(body)


class _Builder:
    def __init__(self, name: str, variables: list[Variable]) -> None:
        self.graph = Graph(name, [Block("entry")], variables)
        self.named: dict[str, Block] = {}
        self.fresh = 0
        self.current: Block | None = self.graph.entry

    def run(self, body: list[Op | LabelMark]) -> Graph:
        for item in body:
            if isinstance(item, LabelMark):
                self.start(self.label(item.name))
                continue
            if self.current is None:
                self.start(self.new("dead"))
            self.add(item)
        self.graph.link()
        return self.graph

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
        if guard is None:
            return self.close([], None, False, pos)
        end = self.new("exit")
        self.graph.blocks.append(end)
        return self.branch(end, guard, pos)

    def add(self, op: Op) -> None:
        kind = op.row.lower
        if kind == "bra":
            self.branch(self.label(op.labels[0]), op.guard, op.pos)
        elif kind in ("ret", "exit"):
            if kind == "ret" and op.labels:
                self.branch(self.label(op.labels[0]), op.guard, op.pos)
            else:
                self.leave(op.guard, op.pos)
        elif op.guard is not None and (kind in SPLIT or kind == "brx"):
            after = self.new("next")
            inside = self.new("guarded")
            self.close([inside, after], op.guard[0], op.guard[1], op.pos)
            self.start(inside)
            self.add(replace(op, guard=None))
            self.start(after)
        elif kind == "brx":
            self.switch(op)
        else:
            assert self.current is not None
            self.current.ops.append(with_carry(op))
            if kind == "trap":
                self.close([], None, False, op.pos)

    def switch(self, op: Op) -> None:
        """``brx.idx``: a chain of compares, and a fault when no entry matches."""
        index = op.srcs[0]
        kind = op.src_types[0]
        assert isinstance(index, Reg) and kind is not None
        for value, name in enumerate(op.labels):
            hit = Reg(f"{index.name}.is{value}", PRED)
            assert self.current is not None
            self.current.ops.append(equal(hit, index, value, kind, op))
            self.branch(self.label(name), (hit, False), op.pos)
        assert self.current is not None
        self.current.ops.append(invalid_branch(op))
        self.close([], None, False, op.pos)


def with_carry(op: Op) -> Op:
    """Make the implicit carry flag CC.CF an explicit source and destination."""
    if "reads_cc" in op.row.flags:
        op = replace(op, srcs=(*op.srcs, CARRY), src_types=(*op.src_types, PRED))
    if "writes_cc" in op.row.flags:
        op = replace(op, dsts=(*op.dsts, CARRY), dst_types=(*op.dst_types, PRED))
    return op
