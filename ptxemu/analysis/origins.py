"""Which register the addresses of a stretch of code start from: the same for all lanes, 64 bits wide, and the only such register
that goes into them.  In most programs that is a pointer to an array.  Nothing relies on it."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.analysis.lane_regions import LaneRegion
from ptxemu.analysis.trips import Makers, makers
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import Block, Phi, reads
from ptxemu.ir.ops import Reg


class Origin(Struct, frozen=True):
    """``marching``: the addresses follow from those of earlier trips."""

    start: Reg
    marching: bool


def origins(uniformity: Uniformity, region: LaneRegion) -> dict[Reg, Origin]:
    """Those of the registers off which a stretch of code accesses memory."""
    accesses = (op.access for block in region.blocks for op in block.ops if op.accesses)
    bases = dict.fromkeys(access.address.base for access in accesses if isinstance(access.address.base, Reg))
    search = _Search(uniformity, region)
    return {base: origin for base in bases if base.type.bits == 64 and (origin := search.origin(base)) is not None}


class _Search:
    def __init__(self, uniformity: Uniformity, region: LaneRegion) -> None:
        structure = uniformity.structure
        before = [block for block in structure.order if structure.dominance.dominates(block, region.entry)]
        self._uniformity = uniformity
        self._inside = makers(region.blocks)
        self._before = _made_before(before, region)

    def origin(self, base: Reg) -> Origin | None:
        """What goes into an address, back to values that all lanes share from before the stretch."""
        seen, work, starts, marching = {base}, [base], set(), False
        while work:
            reg = work.pop()
            maker = self._inside.get(reg) or self._before.get(reg)
            if reg not in self._inside and self._is_start(reg):
                starts.add(reg)
                continue
            if maker is None or (not isinstance(maker, Phi) and maker.accesses):
                continue
            if isinstance(maker, Phi):
                marching = marching or reg in self._inside
                sources = [arg for arg in maker.args.values() if isinstance(arg, Reg)]
            else:
                sources = list(reads(maker))
            work.extend(source for source in sources if source not in seen)
            seen.update(sources)
        return Origin(starts.pop(), marching) if len(starts) == 1 else None

    def _is_start(self, reg: Reg) -> bool:
        shape = self._uniformity.shape(reg)
        return reg.type.bits == 64 and shape is not None and shape.uniform and reg in self._before


def _made_before(blocks: list[Block], region: LaneRegion) -> Makers:
    """What makes registers that lanes have when they come to a stretch of code."""
    return makers(block for block in blocks if block not in region.blocks)
