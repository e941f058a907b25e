"""Which values of threaded code are kept in one place, so that nothing has to be copied from one to the other.

Those that are the same can be, and those that come one after the other, as the values of a loop's counter do: none of them is
needed while another is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from operator import is_

from ptxemu.analysis.lifetimes import Lifetime, Lifetimes
from ptxemu.analysis.linear import Linear
from ptxemu.ir.graph import Block, Phi, Phis
from ptxemu.ir.ops import Imm, Reg

Alike = Callable[[Reg, Reg], bool]
"""Whether two registers can take each other's place."""


def same_values(linear: Linear, alike: Alike) -> dict[Reg, Reg]:
    """The results of phis that give lanes what all of them have in one register already, with that register.

    Not those for which lanes wait, as others may write the register again in the meantime.
    """
    found: dict[Reg, Reg] = {}
    for block in linear.structure.order:
        phis = block.phis
        if not phis or _lanes_wait(linear, block):
            continue
        first, *others = phis.args.values()
        if others and not any(map(is_, first, others[0])):
            continue
        for dst, args in phis.rows():
            arg = args[0]
            if isinstance(arg, Reg) and args.count(arg) == len(args) and alike(arg, dst):
                found[dst] = found.get(arg, arg)
    return found


def _lanes_wait(linear: Linear, block: Block) -> bool:
    """Whether lanes may wait at a block already when others arrive."""
    return any(linear.waits(pred, block) for pred in block.preds)


class Homes:
    """Where values are kept that share a place: ``of`` has one of them for each, which stands for it; others are alone.

    ``same`` is that of :func:`same_values`; ``lifetimes`` are those of all others.  ``in_place``: registers whose instructions
    may write them over what they read.  ``apart``: phis for which what is handed over must not be where their results are, each
    with the time for which it is kept; to all others it is handed over there.
    """

    def __init__(self, linear: Linear, alike: Alike, same: Mapping[Reg, Reg], lifetimes: Lifetimes, in_place: set[Reg]) -> None:
        self._linear = linear
        self._alike = alike
        self._same = same
        self._life = lifetimes.of
        self._in_place = in_place
        self._handed: dict[Reg, Lifetime] = {}  # of what is handed over to the phis with these results
        self._before: dict[Reg, Reg | Imm] = {}  # what they are when a loop begins, if it can stay where it is
        self._back: dict[Reg, Reg | Imm] = {}  # and after a trip
        self._free: set[Reg] = set()  # results that are already where they are to be
        self._spans: dict[Reg | Phi, Lifetime] = {}  # of homes
        self.apart: dict[Phi, Lifetime] = {}
        self.of: dict[Reg | Imm | None, Reg] = {}
        self._look_at_phis(lifetimes)
        self._settle()

    def home(self, reg: Reg) -> Reg:
        reg = self._same.get(reg, reg)
        return self.of.get(reg, reg)

    def lifetimes(self) -> dict[Reg | Phi, Lifetime]:
        """How long each place is in use."""
        found = self._spans.copy()
        found.update((phi, life) for phi, life in self.apart.items())
        for reg, life in self._life.items():
            if reg not in self.of:
                found[reg] = _both(life, self._handed[reg]) if reg in self._handed else life
        return found

    def takers(self, block: Block) -> list[Phi]:
        """The phis of a block that something is handed over to."""
        if self._free.issuperset(block.phis.dsts):
            return []
        return [phi for phi in block.phis if phi.dst not in self._free and phi.dst not in self._same]

    def _look_at_phis(self, lifetimes: Lifetimes) -> None:
        latches = {loop.header: latch for latch, loop in self._linear.structure.latches.items()}
        for block in self._linear.structure.order:
            if not block.phis:
                continue
            handed, latch = lifetimes.handed[block], latches.get(block)
            apart = self._exchanged(block.phis, latch) if latch is not None else set()
            self.apart.update((phi, handed) for phi in (block.phis if apart else ()) if phi.dst in apart)
            dsts, args = block.phis.dsts, block.phis.args
            self._handed.update(zip(dsts, repeat(handed)))
            if latch is not None and not _lanes_wait(self._linear, block):
                (entry,) = (pred for pred in block.preds if pred is not latch)
                self._before.update(zip(dsts, self._values(args[entry])))
                self._back.update(zip(dsts, self._values(args[latch])))
            for reg in self._same.keys() & dsts | apart:
                for found in (self._handed, self._before, self._back):
                    found.pop(reg, None)

    def _values(self, args: Iterable[Reg | Imm]) -> Iterable[Reg | Imm]:
        """Arguments of phis, as what they are the same as."""
        same = self._same
        return [same.get(arg, arg) for arg in args] if same else args  # type: ignore[arg-type]

    def _exchanged(self, phis: Phis, latch: Block) -> set[Reg]:
        """The results of a header's phis that others of these take from the trip before."""
        given = [arg for dst, arg in zip(phis.dsts, phis.args[latch]) if arg is not dst]
        return set(phis.dsts).intersection(self._values(given)) - self._same.keys()

    # -- values that come one after the other

    def _settle(self) -> None:
        """Give what goes round in loops one home for all that it becomes there."""
        for reg, back in self._back.items():
            self._join(reg, self._before[reg], back)
        crowded: set[Reg] = set()
        for home, stays in self._stays().items():
            stays.sort()
            end = -1
            for first, last, follows in stays:
                if first < end or (first == end and not follows):
                    crowded.add(home)
                    break
                end = last
            else:
                self._spans[home] = Lifetime(stays[0][0], end)
        if crowded:
            self.of = {reg: home for reg, home in self.of.items() if home not in crowded}
        homes, befores, backs = self.of, self._before, self._back
        self._free = {reg for reg in befores if None is not homes.get(reg) is homes.get(befores[reg]) is homes.get(backs[reg])}

    def _join(self, reg: Reg, before: Reg | Imm, back: Reg | Imm) -> None:
        """Put the result of a header's phi where its arguments are, those that are not needed beside it."""
        life, handed, homes = self._life, self._handed, self.of
        follows = back if isinstance(back, Reg) and (handed.get(back) or life[back]).first >= life[reg].last else None
        precedes = before if isinstance(before, Reg) and life[before].last == handed[reg].first else None
        home = homes.get(reg) or homes.get(follows) or homes.get(precedes) or reg
        if reg not in homes and self._alike(reg, home):
            homes[reg] = home
        if follows is not None and follows not in homes and self._alike(follows, home):
            homes[follows] = home
        if precedes is not None and precedes not in homes and self._alike(precedes, home):
            homes[precedes] = home

    def _stays(self) -> dict[Reg, list[tuple[int, int, bool]]]:
        """The first and the last position of each stay in a home, and whether what was there before may be read at the first.

        A phi's result comes when the first edge hands it over.
        """
        found: defaultdict[Reg, list[tuple[int, int, bool]]] = defaultdict(list)
        homes, life, phis = self.of, self._life, self._handed
        befores, backs = map(homes.get, map(self._before.get, phis)), map(homes.get, map(self._back.get, phis))
        for (reg, handed), home, before, back in zip(phis.items(), map(homes.get, phis), befores, backs):
            if home is not None:
                last = life[reg].last if back is home else max(life[reg].last, handed.last)
                found[home].append((handed.first, last, before is home))
        for value, home in homes.items():
            if value not in phis:
                found[home].append((life[value].first, life[value].last, value in self._in_place))  # type: ignore[index]
        return found


def _both(one: Lifetime, other: Lifetime) -> Lifetime:
    return one if one is other else Lifetime(min(one.first, other.first), max(one.last, other.last))
