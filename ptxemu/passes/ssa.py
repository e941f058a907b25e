"""Static single assignment: pruned phi placement (Cytron et al.) plus loop-closed form.

Loop-closed: a register that a loop assigns and that is live after it gets a phi at every exit of the loop, unless all lanes are
sure to leave it together.  Lanes leave a divergent loop in different iterations, and these phis are where each lane keeps the
value it left with.
"""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir.dominators import Dominance, Loop, exits_of, members
from ptxemu.ir.graph import Block, Graph, reading, reads, writes
from ptxemu.ir.ops import Imm, Op, Reg
from ptxemu.passes.divergence import uneven_loops
from ptxemu.passes.internal import MOVE, move


def construct(graph: Graph) -> None:
    """Bring ``graph`` into loop-closed SSA form in place. A register read before any write is zero."""
    dominance = Dominance(graph)
    _Places(graph, dominance, live_in(graph)).run()
    _Renamer(dominance).run()


def live_in(graph: Graph) -> dict[Block, set[Reg]]:
    """Registers live at the start of each block, before SSA."""
    used: dict[Block, set[Reg]] = {}
    killed: dict[Block, set[Reg]] = {}
    for block in graph.blocks:
        use: set[Reg] = set()
        kill: set[Reg] = set()
        for op in block.ops:
            use.update(reg for reg in reads(op) if reg not in kill)
            if op.guard is not None:
                use.update(dst for dst in op.dsts if dst is not None and dst not in kill)
            kill.update(writes(op))
        if block.cond is not None and block.cond not in kill:
            use.add(block.cond)
        used[block], killed[block] = use, kill
    live = {block: set(used[block]) for block in graph.blocks}
    work = list(graph.blocks)
    queued = set(work)
    while work:
        block = work.pop()
        queued.discard(block)
        out: set[Reg] = set()
        for succ in block.succs:
            out |= live[succ]
        new = used[block] | (out - killed[block])
        if len(new) != len(live[block]):
            live[block] = new
            for pred in block.preds:
                if pred not in queued:
                    queued.add(pred)
                    work.append(pred)
    return live


class _Places:
    """Puts phis into blocks: where definitions of a register meet, and then where they leave a loop."""

    def __init__(self, graph: Graph, dominance: Dominance, live: dict[Block, set[Reg]]) -> None:
        self.dominance = dominance
        self.frontiers = dominance.frontiers()
        self.live = [live[block] for block in dominance.order]
        self.homes: dict[Reg, int] = {}
        for block in graph.blocks:
            bit = 1 << dominance.number[block]
            for op in block.ops:
                for reg in writes(op):
                    self.homes[reg] = self.homes.get(reg, 0) | bit
        self.placed: dict[Reg, int] = {}

    def run(self) -> None:
        self._spread(self.frontiers)
        loops = self.dominance.loops()
        uneven = uneven_loops(self.dominance, self.frontiers, loops)
        if uneven:
            exits = self._exits(loops, uneven)
            self._spread([frontier | outside for frontier, outside in zip(self.frontiers, exits)])

    def _spread(self, ways: list[int]) -> None:
        """Add the phis that are missing: ``ways`` lead from each block with a definition to those that need one."""
        order, live = self.dominance.order, self.live
        for reg, definitions in self.homes.items():
            seen, dead = self.placed.get(reg, 0), 0
            work = list(members(definitions | seen))
            while work:
                new = ways[work.pop()] & ~seen
                seen |= new
                for target in members(new):
                    if reg in live[target]:
                        order[target].phis.dsts.append(reg)
                        work.append(target)
                    else:
                        dead |= 1 << target
            self.placed[reg] = seen ^ dead

    def _exits(self, loops: dict[Block, Loop], uneven: set[Loop]) -> list[int]:
        """For each block, as a set of numbers: those just outside its innermost uneven loop, where its values leave that loop.

        If it leaves the loops around that one too, the phi there is a definition in them.
        """
        number, exits = self.dominance.number, exits_of(loops)
        outside: dict[Loop | None, int] = {None: 0}
        for loop in dict.fromkeys(loops.values()):  # those around it come first
            mine = sum(1 << number[exit] for exit in exits[loop])
            outside[loop] = mine if loop in uneven else outside[loop.parent]
        return [outside[loops.get(block)] for block in self.dominance.order]


class _Versions(dict[Reg, list[Reg | Imm]]):
    """What each register stands for, the last is valid: zero before anything is written."""

    def __missing__(self, reg: Reg) -> list[Reg | Imm]:
        return self.setdefault(reg, [Imm(0, reg.type)])


class _Renamer:
    """Walks the dominator tree and gives every definition a register of its own."""

    def __init__(self, dominance: Dominance) -> None:
        self.dominance = dominance
        self.versions = _Versions()
        self.counts: dict[str, int] = {}
        self.joined = {block: [self.versions[reg] for reg in block.phis.dsts] for block in dominance.order}

    def run(self) -> None:
        undo: list[list[list[Reg | Imm]]] = []
        stack: list[tuple[int, bool]] = [(0, False)]
        while stack:
            node, done = stack.pop()
            if done:
                for versions in undo.pop():
                    versions.pop()
                continue
            undo.append(self.block(self.dominance.order[node]))
            stack.append((node, True))
            stack.extend((child, False) for child in self.dominance.children[node])

    def define(self, reg: Reg, defined: list[list[Reg | Imm]]) -> Reg:
        number = self.counts.get(reg.name, 0)
        self.counts[reg.name] = number + 1
        new = Reg(f"{reg.name}#{number}", reg.type)
        versions = self.versions[reg]
        versions.append(new)
        defined.append(versions)
        return new

    def current(self, reg: Reg) -> Reg | Imm:
        return self.versions[reg][-1]

    def block(self, block: Block) -> list[list[Reg | Imm]]:
        """Rename what a block defines, and reads; gives the stack of versions of each."""
        defined: list[list[Reg | Imm]] = []
        block.phis.dsts = [self.define(reg, defined) for reg in block.phis.dsts]
        block.ops = [self.op(op, defined) for op in block.ops]
        if block.cond is not None:
            cond = self.current(block.cond)
            block.cond = cond if isinstance(cond, Reg) else self.materialize(block, cond)
        for succ in block.succs:
            if succ.phis:
                succ.phis.args[block] = [versions[-1] for versions in self.joined[succ]]
        return defined

    def materialize(self, block: Block, value: Imm) -> Reg:
        """A branch predicate that was never written, as a register."""
        reg = Reg(f"%never.{block.name}", value.type)
        like = Op(MOVE, {}, (), (), (), (), block.pos, block.pos)
        block.ops.append(move(reg, value, value.type, like))
        return reg

    def op(self, op: Op, defined: list[list[Reg | Imm]]) -> Op:
        made = reading(op, {reg: self.current(reg) for reg in reads(op)})
        guard, call, old = made.guard, made.call, made.old
        if op.guard is not None:
            guard = (self.current(op.guard[0]), op.guard[1])  # type: ignore[assignment]  # zero if it was never written
            old = tuple(None if dst is None else self.current(dst) for dst in op.dsts)  # type: ignore[misc]
        dsts = tuple(None if dst is None else self.define(dst, defined) for dst in op.dsts)
        if call is not None:
            returns = tuple(self.define(r, defined) if isinstance(r, Reg) else r for r in call.returns)
            call = replace(call, returns=returns)
        return replace(made, dsts=dsts, guard=guard, call=call, old=old)
