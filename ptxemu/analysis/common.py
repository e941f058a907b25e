"""What all warps of a CTA have in common, as it follows from parameters, from where the CTA is and from how many there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ptxemu.analysis.uniformity import Uniformity
from ptxemu.analysis.walks import only_loads
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, SReg, SymRef, items_of

PLACES = {"ctaid", "nctaid", "ntid"}


def common_ops(blocks: Iterable[Block], uniformity: Uniformity, common: Collection[Reg]) -> Iterator[Op]:
    """Ops whose results are, if those in ``common`` are, to which those of each op may be added before the next one is asked for.
    A block comes behind those that dominate it."""
    for op in (op for block in blocks for op in block.ops):
        if _follows(op, common) and all(_is_uniform(uniformity, reg) for reg in op.results):
            yield op


def _follows(op: Op, common: Collection[Reg]) -> bool:
    """Whether an op always gives the same if what it reads is the same for all warps, and it is."""
    if op.guard is not None or not op.results:
        return False
    return _is_param(op) or (op.effects.pure and all(_is_common(source, common) for source in op.srcs))


def _is_uniform(uniformity: Uniformity, reg: Reg) -> bool:
    shape = uniformity.shape(reg)
    return shape is not None and shape.uniform


def _is_param(op: Op) -> bool:
    """Whether an op loads a parameter of the kernel."""
    if not only_loads(op) or len(op.accesses) != 1 or op.access.space != "param":
        return False
    address = op.access.address
    return isinstance(address, Addr) and isinstance(address.base, SymRef)


def _is_common(source: Operand, common: Collection[Reg]) -> bool:
    return all(
        isinstance(item, (Imm, SymRef)) or item in common or (isinstance(item, SReg) and item.name.partition(".")[0] in PLACES)
        for item in items_of(source)
    )
