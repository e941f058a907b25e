"""What is known of accesses to memory where code for them is emitted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from ptxemu.ir.ops import Op, Reg


class Neighbours(Struct):
    """Loads, in this order, that the first of them in the program makes for all (lower/memory/together.py): vectors of an LLVM
    type. An i1 whether it has, and what they are."""

    ops: Sequence[Op]
    type: str
    together: str = ""
    loaded: dict[Op, str] = {}


class Lines(Struct, frozen=True):
    """Lines of the cache that lanes hold (lower/memory/lines.py): slots of the address at which that of the first lane begins,
    and of how many bytes from there on a part may begin, 0 if none are held; and their copy, one line after another."""

    start: str
    bytes: str
    copy: str


class Pairs(Struct):
    """Ops that are lowered together (lower/memory/pairs.py): the second of each first and the first of each second, and what
    loads of the second kind have got already. Loads that have neighbours. And stores that the last of several makes for all, in
    the order of the program; for the others there is nothing to do (lower/memory/fields.py)."""

    second: dict[Op, Op] = {}
    first: dict[Op, Op] = {}
    loaded: dict[Op, str] = {}
    neighbours: Mapping[Op, Neighbours] = {}
    stores: Mapping[Op, Sequence[Op]] = {}


class Reach(Struct, frozen=True):
    """Memory that is sure to be there: ``bytes`` from ``start`` on, two i64.

    ``places``: how many multiples of an alignment, the second number, are offsets of so many bytes in it, the first one.
    ``marching``: addresses in it come from those of an earlier trip of a loop.
    """

    start: str
    bytes: str
    places: dict[tuple[int, int], str]
    marching: bool = False


class Family(Struct, frozen=True):
    """Accesses off one base that give no word to two lanes (families.py): where the first word is from the base, in bytes, and a
    number that others have with the same words of the same lanes alone; 0: there are words of two lanes."""

    first: int
    number: int


class Together(Struct):
    """Plain accesses of shared memory off one base, all reads or all writes, between which nothing touches that: they are listed
    at once (families.py), if ``listed`` is set, an i1."""

    ops: list[Op] = []
    listed: str = ""


class SharedAccesses(Struct):
    """What is known of those of a function in code that leaves stamps: their families, by their bases, and in each segment what
    is listed together."""

    families: Mapping[Reg, Family] = {}
    together: Mapping[Op, Together] = {}


class SureTrips(Struct, frozen=True):
    """In trips of a loop that are run without tests (functions/sure_trips.py): widenings that do not wrap, and by how many bytes
    addresses go on in a trip, as i64, by the names of their bases."""

    exact: Collection[Op] = ()
    steps: Mapping[str, str] = {}
