"""Loops that wait for what other threads write to memory.

A *spin loop* has an exit that depends on a location that the loop reads over and over and does not itself change to the
awaited value: a flag polled with ``ld``, a lock taken with ``atom.cas`` or ``atom.exch``.  Loops that make progress on their
own are not spin loops: an index that counts, a pointer that advances, a ``cas`` that is tried again with the value found.  Nor
are loops with a barrier, which waits properly.

An index counts if it does on every way around the loop.  A way that keeps it is none if it must leave the loop, as the branches
along it have found (:mod:`ptxemu.analysis.comparisons`).

Other warps must run while one spins, so such loops yield.  And other *lanes* must: lanes that have left the loop, or taken
another branch, wait in the linearized code until the spinning lanes are out (:mod:`ptxemu.analysis.linear`).  If one of them
may write what is awaited, the kernel needs the scheme in which lanes progress independently
(:mod:`ptxemu.lower.functions.independent`).
"""

from __future__ import annotations

from msgspec import Struct

from ptxemu.analysis.comparisons import leads_out
from ptxemu.analysis.linear import Linear, Structure
from ptxemu.ir.convergence import meets_all
from ptxemu.ir.dominators import Loop
from ptxemu.ir.graph import Block, Phi, reads, registers, writes
from ptxemu.ir.operations import OPERATIONS
from ptxemu.ir.ops import OWN_OR_CONSTANT, STRONG, Imm, MemoryAccess, Op, Operand, Reg
from ptxemu.isa.table import CLUSTER
from ptxemu.process.lazy import lazy_property

# Atomic operations that leave memory as it is when they fail again; ``add`` does with a zero.
IDEMPOTENT = {entry.word for entry in OPERATIONS if entry.idempotent}
MBARRIER = "mbarrier"
GENERIC = "generic"


class SpinLoop(Struct, eq=False):
    """A spin loop and the state spaces of the locations that it polls, or MBARRIER for objects of that kind."""

    loop: Loop
    spaces: set[str] = set()

    @property
    def latch(self) -> Block:
        return self.loop.latches[0]


def spin_loops(structure: Structure) -> list[SpinLoop]:
    """The spin loops of a kernel in SSA form."""
    finder = _Finder(structure)
    unique = {id(loop): loop for loop in structure.loops.values()}
    found = [finder.spin_loop(loop) for loop in unique.values()]
    return [spin for spin in found if spin.spaces]


def needs_independence(linear: Linear, spins: list[SpinLoop]) -> bool:
    """Whether lanes that wait for a spin loop to end may be what it waits for."""
    return any(_awaits_pending_lanes(linear, spin) for spin in spins)


def _awaits_pending_lanes(linear: Linear, spin: SpinLoop) -> bool:
    inside = spin.loop.blocks
    # lanes that have left because the phase of an mbarrier is complete are not what the others wait for
    left = set(spin.loop.exits()) if spin.spaces == {MBARRIER} else set()
    work = [block for member in inside for block in linear.pending(member) if block not in inside and block not in left]
    seen = set(work)
    while work:
        block = work.pop()
        for op in block.ops:
            if _stops_all(op):
                break  # no lane gets past it before the spinning lanes arrive
            if _writes(op, spin.spaces):
                return True
        else:
            for succ in block.succs:
                if succ not in seen and succ not in inside:
                    seen.add(succ)
                    work.append(succ)
    return False


def _stops_all(op: Op) -> bool:
    """Whether no lane gets past an op before the others arrive: a barrier of the whole CTA or warp."""
    whole_cta = op.effects.waits == "cta" and op["b"] is None
    return whole_cta or meets_all(op)


def _writes(op: Op, spaces: set[str]) -> bool:
    """Whether an op may write what is polled in one of the spaces, or let others go on to do so."""
    if op.effects.calls or op.effects.leaves == "function":
        return True  # a lane that returns may do anything
    written = [_place(access) for access in op.accesses if access.stated.writes and access.space not in OWN_OR_CONSTANT]
    if spaces == {MBARRIER}:
        return MBARRIER in written
    return bool(op.effects.arrives) or any(_may_be(place, spaces) for place in written)


def _may_be(place: str, spaces: set[str]) -> bool:
    """Whether a write to a place may be what is polled in one of the spaces."""
    if place not in ("shared", "global"):
        return True
    return not spaces.isdisjoint({place, GENERIC, MBARRIER})


def _place(access: MemoryAccess) -> str:
    """What is accessed: a space, or an mbarrier object. Surfaces may be in memory of any space."""
    if access.stated.is_of_mbarrier:
        return MBARRIER
    return GENERIC if access.stated.opaque or access.space == CLUSTER else access.space


def _polled_places(op: Op) -> set[str]:
    """Where an op reads; a function, anywhere."""
    return {_place(access) for access in op.accesses if access.stated.reads} or {GENERIC}


def _reads_memory(op: Op) -> bool:
    """An op whose result other threads may change."""
    if op.call is not None:
        return op.call.real
    return any(access.stated.reads and access.shared_with_others for access in op.accesses)


def _looks_out(op: Op) -> bool:
    """A load that is made for others to write meanwhile."""
    return not STRONG.isdisjoint(op.mods.values()) and not any(access.stated.writes for access in op.accesses)


class _Finder:
    """Follows values backwards within a loop, to the reads of memory that they come from."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.waiting = {block for block in structure.order if any(op.effects.waits == "cta" for op in block.ops)}
        self.reading = {block for block in structure.order if any(map(_reads_memory, block.ops))}
        self.leading_out: dict[tuple[Block, Block, Block], bool] = {}  # by the header of the loop, and from where to where

    @lazy_property
    def home(self) -> dict[Reg, tuple[Block, Op | Phi]]:
        """Where each value comes from. Most kernels have no loop for which somebody asks."""
        found: dict[Reg, tuple[Block, Op | Phi]] = {}
        for block in self.structure.order:
            for phi in block.phis:
                found[phi.dst] = (block, phi)
            for op in block.ops:
                for dst in writes(op):
                    found[dst] = (block, op)
        return found

    def spin_loop(self, loop: Loop) -> SpinLoop:
        result = SpinLoop(loop)
        if not loop.blocks.isdisjoint(self.waiting) or loop.blocks.isdisjoint(self.reading):
            return result
        for block in loop.blocks:
            leaves = block.cond is not None and any(succ not in loop.blocks for succ in block.succs)
            if leaves and block.cond is not None:
                result.spaces |= self._polled(loop, block.cond)
        return result

    def _polled(self, loop: Loop, cond: Reg) -> set[str]:
        """The spaces of the locations that an exit polls; none if the loop reaches that exit by itself."""
        reached = self._slice(loop, [cond])
        polls = [op for op in reached if isinstance(op, Op) and _reads_memory(op)]
        strong = any(map(_looks_out, polls))
        if any(self._counts(loop, phi, strong) for phi in reached if isinstance(phi, Phi)):
            return set()
        return {place for op in polls if self._repeats(loop, op, strong) for place in _polled_places(op)}

    def _slice(self, loop: Loop, roots: list[Reg]) -> list[Op | Phi]:
        """What the registers are computed from inside the loop, up to reads of memory, which are the last included.

        Values merged at a join also depend on the branch that chose.
        """
        found: list[Op | Phi] = []
        seen: set[Reg] = set()
        work = list(roots)
        while work:
            reg = work.pop()
            block, item = self.home.get(reg, (None, None))
            if reg in seen or block is None or item is None or block not in loop.blocks:
                continue
            seen.add(reg)
            found.append(item)
            if isinstance(item, Phi):
                work += [arg for arg in item.args.values() if isinstance(arg, Reg)]
                work += self._choice(loop, block)
            elif not _reads_memory(item):
                work += reads(item)
            elif item.guard is not None:
                work.append(item.guard[0])
        return found

    def _choice(self, loop: Loop, block: Block) -> list[Reg]:
        """The condition of the branch above a join."""
        if block is loop.header:
            return []
        dominance = self.structure.dominance
        above = dominance.order[dominance.idom[dominance.number[block]]]
        return [above.cond] if above in loop.blocks and above.cond is not None else []

    def _counts(self, loop: Loop, phi: Phi, strong: bool) -> bool:
        """A value that every trip around the loop computes from itself, so that it cannot be kept or only read anew."""
        if self.home[phi.dst][0] is not loop.header or self._may_keep(loop, phi, strong):
            return False
        latch = phi.args[loop.latches[0]]
        cycle = self._slice(loop, [latch]) if isinstance(latch, Reg) else []
        steps = (op for op in cycle if isinstance(op, Op) and "steps" in op.row.traits)
        return phi in cycle and any(phi in self._slice(loop, list(reads(op))) for op in steps)

    def _may_keep(self, loop: Loop, phi: Phi, strong: bool) -> bool:
        """Whether there is a way around the loop that leaves the value as it is, as to the inner of two loops in one.

        If there are loads that look out for what others write (``strong``), selections choose ways, too.  They do not
        otherwise: a merge of two lists selects which index it steps, but steps one of them."""
        return phi.dst in self._chosen(loop, phi.args[loop.latches[0]], strong)

    def _chosen(self, loop: Loop, value: Operand, strong: bool) -> set[Reg]:
        """What a value may be, as the ways through a loop choose, and selections if ``strong``."""
        found = set[Reg]()
        work: list[Operand | None] = [value]
        while work:
            reg = work.pop()
            if not isinstance(reg, Reg) or reg in found:
                continue
            found.add(reg)
            block, item = self.home.get(reg, (None, None))
            if block is None or block not in loop.blocks:
                continue
            if isinstance(item, Phi):
                work += [arg for pred, arg in item.args.items() if not self._leads_out(loop, pred, block)]
            elif isinstance(item, Op) and strong:
                work += self._selected(loop, item, reg)
        return found

    def _selected(self, loop: Loop, op: Op, result: Reg) -> list[Operand | None]:
        """The values that an op may leave as they are: the old one, one of two, or one to which it may add nothing."""
        kept: list[Operand | None] = [old for dst, old in zip(op.dsts, op.old) if dst is result]
        if "selects" in op.row.traits:
            kept += [op["a"], op["b"]]
        elif "steps" in op.row.traits:
            sides = [(name, other) for name, other in ("ab", "ba") if f"base:{name}" in op.row.traits]
            kept += [op[name] for name, other in sides if self._may_be_zero(loop, op[other])]
        return kept

    def _may_be_zero(self, loop: Loop, value: Operand) -> bool:
        """Whether a value is chosen in a loop, with zero for a choice."""
        block, item = self.home.get(value, (None, None)) if isinstance(value, Reg) else (None, None)
        choices: list[Operand] = []
        if isinstance(item, Phi) and block in loop.blocks and block is not loop.header:
            choices += item.args.values()
        elif isinstance(item, Op) and "selects" in item.row.traits:
            choices += [item["a"], item["b"]]
        return any(isinstance(choice, Imm) and choice.bits == 0 for choice in choices)

    def _leads_out(self, loop: Loop, pred: Block, block: Block) -> bool:
        """Whether the way from one block to another is part of none around the loop, as the next branch leaves it then."""
        edge = loop.header, pred, block
        if edge not in self.leading_out:
            self.leading_out[edge] = leads_out(self.home, loop, pred, block)
        return self.leading_out[edge]

    def _repeats(self, loop: Loop, op: Op, strong: bool) -> bool:
        """The same access in every iteration, leaving memory unchanged when it fails."""
        watched = [reg for access in op.accesses for reg in registers(access.address)]
        if op.call is not None:
            watched += [value for value in op.call.args if isinstance(value, Reg)]
        if any(access.stated.kind == "update" for access in op.accesses) and (operation := op.mods.get("op")):
            zero = isinstance(op["b"], Imm) and op["b"].bits == 0
            if operation not in IDEMPOTENT and not (operation == "add" and zero):
                return False
            if operation == "cas":
                watched += registers(op["b"])
        carried = [item for item in self._deep_slice(loop, watched) if isinstance(item, Phi)]
        return all(self.home[phi.dst][0] is not loop.header or self._may_keep(loop, phi, strong) for phi in carried)

    def _deep_slice(self, loop: Loop, roots: list[Reg]) -> list[Op | Phi]:
        """As :meth:`_slice`, and on through addresses of reads."""
        found: list[Op | Phi] = []
        work, seen = roots, set[int]()
        while work:
            items = [item for item in self._slice(loop, work) if id(item) not in seen]
            seen.update(map(id, items))
            found += items
            work = [reg for item in items if isinstance(item, Op) and _reads_memory(item) for reg in reads(item)]
        return found
