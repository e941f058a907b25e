"""Which values of threaded code are kept in one place, so that nothing has to be copied from one to the other.

Those that are the same can be, and those that come one after the other, as the values of a loop's counter do: none of them is
needed while another is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxemu.analysis.lifetimes import Lifetime, Lifetimes
from ptxemu.analysis.linear import Linear
from ptxemu.ir.graph import Block, Phi
from ptxemu.ir.ops import Imm, Reg

Alike = Callable[[Reg, Reg], bool]
"""Whether two registers can take each other's place."""


def same_values(linear: Linear, alike: Alike) -> dict[Reg, Reg]:
    """The results of phis that give lanes what all of them have in one register already, with that register.

    Not those for which lanes wait, as others may write the register again in the meantime.
    """
    found: dict[Reg, Reg] = {}
    for block in linear.structure.order:
        if not block.phis or _lanes_wait(linear, block):
            continue
        for phi in block.phis:
            arg = phi.only
            if isinstance(arg, Reg) and alike(arg, phi.dst):
                found[phi.dst] = found.get(arg, arg)
    return found


def _lanes_wait(linear: Linear, block: Block) -> bool:
    """Whether lanes may wait at a block already when others arrive."""
    return any(linear.waits(pred, block) for pred in block.preds)


_Handed = tuple[Lifetime, Reg | Imm | None, Reg | Imm | None]
"""For how long something is handed over; what comes from before a loop and from its latch, if it can stay where it is."""


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
        self._handed: dict[Reg, _Handed] = {}  # to the phis with these results
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
                found[reg] = _both(life, self._handed[reg][0]) if reg in self._handed else life
        return found

    def takers(self, block: Block) -> list[Phi]:
        """The phis of a block that something is handed over to."""
        return [phi for phi in block.phis if phi.dst not in self._free and phi.dst not in self._same]

    def _look_at_phis(self, lifetimes: Lifetimes) -> None:
        same, latches = self._same, {loop.header: latch for latch, loop in self._linear.structure.latches.items()}
        for block in self._linear.structure.order:
            phis = [phi for phi in block.phis if phi.dst not in same]
            if not phis:
                continue
            handed, latch = lifetimes.handed[block], latches.get(block)
            if latch is not None and (apart := self._exchanged(phis, latch)):
                self.apart.update((phi, handed) for phi in phis if phi.dst in apart)
                phis = [phi for phi in phis if phi.dst not in apart]
            if latch is None or _lanes_wait(self._linear, block):
                self._handed.update((phi.dst, (handed, None, None)) for phi in phis)
            else:
                (entry,) = (pred for pred in block.preds if pred is not latch)
                for phi in phis:
                    before, back = phi.args[entry], phi.args[latch]
                    self._handed[phi.dst] = handed, same.get(before, before), same.get(back, back)  # type: ignore[arg-type]

    def _exchanged(self, phis: list[Phi], latch: Block) -> set[Reg]:
        """The results of a header's phis that others of these take from the trip before."""
        same = self._same
        given = {arg for phi in phis if (arg := phi.args[latch]) is not phi.dst}
        return {phi.dst for phi in phis}.intersection(same.get(arg, arg) for arg in given)  # type: ignore[arg-type]

    # -- values that come one after the other

    def _settle(self) -> None:
        """Give what goes round in loops one home for all that it becomes there."""
        for reg, (handed, before, back) in self._handed.items():
            if back is not None:
                self._join(reg, handed, before, back)
        inhabitants: dict[Reg, list[Reg]] = {}
        for value, home in self.of.items():
            inhabitants.setdefault(home, []).append(value)  # type: ignore[arg-type]
        for home, registers in inhabitants.items():
            if not self._move_in(home, registers):
                for reg in registers:
                    del self.of[reg]

    def _join(self, reg: Reg, handed: Lifetime, before: Reg | Imm | None, back: Reg | Imm) -> None:
        """Put the result of a header's phi where its arguments are, those that are not needed beside it."""
        life, homes = self._life, self.of
        follows = back if isinstance(back, Reg) and self._comes(back) >= life[reg].last else None
        precedes = before if isinstance(before, Reg) and life[before].last == handed.first else None
        home = homes.get(reg) or homes.get(follows) or homes.get(precedes) or reg
        if reg not in homes and self._alike(reg, home):
            homes[reg] = home
        if follows is not None and follows not in homes and self._alike(follows, home):
            homes[follows] = home
        if precedes is not None and precedes not in homes and self._alike(precedes, home):
            homes[precedes] = home

    def _comes(self, reg: Reg) -> int:
        """When something is written to a register for the first time."""
        return self._handed[reg][0].first if reg in self._handed else self._life[reg].first

    def _move_in(self, home: Reg, registers: list[Reg]) -> bool:
        """Give registers a home, if they can be there one after the other."""
        free: list[Reg] = []
        stays = sorted([self._stay(reg, home, free) for reg in registers])
        end = -1
        for first, last, follows in stays:
            if first < end or (first == end and not follows):
                return False
            end = last
        self._spans[home] = Lifetime(stays[0][0], end)
        self._free.update(free)
        return True

    def _stay(self, reg: Reg, home: Reg, free: list[Reg]) -> tuple[int, int, bool]:
        """The first and the last position of a stay, and whether what was there before may be read at the first.

        A phi's result comes when the first edge hands it over. If all edges would find it there already, it is ``free``.
        """
        life = self._life[reg]
        if reg not in self._handed:
            return life.first, life.last, reg in self._in_place
        handed, before, back = self._handed[reg]
        stays, returns = self.of.get(before) is home, self.of.get(back) is home
        if stays and returns:
            free.append(reg)
        return handed.first, life.last if returns else max(life.last, handed.last), stays


def _both(one: Lifetime, other: Lifetime) -> Lifetime:
    return one if one is other else Lifetime(min(one.first, other.first), max(one.last, other.last))
