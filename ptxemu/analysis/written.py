"""By which of its parameters a kernel may write memory that all threads reach.

An address is followed back to what it is made of.  Whole parameters of 64 bits are pointers, or numbers that are added to one.
Products and what is shifted are numbers, as are registers of fewer bits that are extended; what else is read from memory may
be a pointer to anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ptxemu.analysis.trips import Makers, makers
from ptxemu.ir.graph import Graph, Phi, reads, symbols
from ptxemu.ir.ops import Addr, MemoryAccess, Op, Reg, SymRef, Variable
from ptxemu.ir.types import B64

OWN = frozenset({"shared", "local", "param", "param::func", "const", "cluster"})
"""Spaces in which there is no device memory that all threads reach."""
PRODUCTS = frozenset({"mul", "shl", "shr"})
UNKNOWN = "?"  # the size of what lies elsewhere than at the address: an array that a tensor map describes


class Way(Struct, frozen=True):
    """What a write goes by: the offsets of parameters of which one at least is a pointer, or the handle of a surface."""

    surface: bool
    params: tuple[int, ...]


def ways(graph: Graph, params: Mapping[Variable, int]) -> list[Way] | None:
    """Those of all writes of a kernel, whose parameters lie at these offsets. None: it may write anywhere."""
    search, found = _Search(makers(graph.blocks), params), dict[Way, None]()
    for op in (op for block in graph.blocks for op in block.ops):
        if op.call is not None or op.effects.calls:
            return None
        for access in op.accesses:
            if not access.stated.writes or access.stated.is_of_mbarrier or access.space in OWN:
                continue
            way = search.way(access)
            if way is None:
                return None
            found[way] = None
    return list(found)


class _Search:
    def __init__(self, made: Makers, params: Mapping[Variable, int]) -> None:
        self._made, self._params = made, params

    def way(self, access: MemoryAccess) -> Way | None:
        """What an access goes by, if that is known."""
        surface = access.space == "surface"
        start = access.address.base if isinstance(access.address, Addr) else access.address
        if not (surface or access.space in ("global", "generic")) or access.stated.size == UNKNOWN:
            return None
        found = self._followed(start) if isinstance(start, Reg) and start.type.bits == B64.bits else None
        return Way(surface, tuple(sorted(found))) if found else None

    def _followed(self, start: Reg) -> set[int] | None:
        """The parameters that a register is made of; None: of something else, too."""
        found, seen, work = set[int](), {start}, [start]
        while work:
            reg = work.pop()
            maker = self._made.get(reg)
            if isinstance(maker, Phi):
                sources = [arg for arg in maker.args.values() if isinstance(arg, Reg)]
            elif maker is None or maker.call is not None:
                return None
            elif maker.accesses:
                offset = self._param(maker)
                if offset is None:
                    return None
                found.add(offset)
                continue
            elif any(True for source in maker.srcs for _ in symbols(source)):
                return None
            else:
                sources = list(_parts(maker, reg))
            work += [source for source in sources if source not in seen]
            seen.update(sources)
        return found

    def _param(self, op: Op) -> int | None:
        """The offset of the parameter of 64 bits that an op reads."""
        place = op.access.address
        if len(op.accesses) > 1 or op.access.bytes != B64.bytes or len(op.dsts) > 1 or not isinstance(place, Addr):
            return None
        base = place.base
        if op.access.space != "param" or not isinstance(base, SymRef) or not isinstance(base.symbol, Variable):
            return None
        first = self._params.get(base.symbol)
        return None if first is None else first + base.offset + place.offset


def _parts(op: Op, made: Reg) -> Iterator[Reg]:
    """The registers that may hold an address, or a part of one, if what the op makes of them does."""
    if op.opcode in PRODUCTS:
        return
    joined = op.row.lower == "mov.vector" or made.type.bits < B64.bits
    sources = [op["c"]] if op.opcode == "mad" else reads(op)
    for reg in sources:
        if isinstance(reg, Reg) and (reg.type.bits == B64.bits or (joined and reg.type.bits > 1)):
            yield reg
