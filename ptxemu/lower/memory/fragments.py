"""The registers that matrix instructions read and write, in memory.

A fragment is many vectors, which the calls of the runtime would force out of the processor's registers anyway.  So each
function has a block of *slots* of 32 words; a block of code fills them one after the other, and ``ctx.homes`` remembers which
operands are there.  The result of one instruction is an operand of the next without being moved, and operands that
several instructions share are stored once.
"""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.context import Context

SLOT_BYTES = 4 * LANES
KEPT = 1024  # slots that are remembered in a block; beyond them an instruction has slots for itself


class Slots:
    """Hands out slots to the operands of one instruction."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.own = 0

    def take(self, count: int) -> tuple[int, bool]:
        """The first of ``count`` neighbouring slots, and whether they stay as they are to the end of the block."""
        if self.ctx.slots_used + count <= KEPT:
            first = self.ctx.slots_used
            self.ctx.slots_used += count
            self.ctx.slots_needed = max(self.ctx.slots_needed, self.ctx.slots_used)
            return first, True
        first = KEPT + self.own
        self.own += count
        self.ctx.slots_needed = max(self.ctx.slots_needed, KEPT + self.own)
        return first, False

    def address(self, slot: int) -> str:
        """The address of a slot."""
        return self.ctx.inst(f"getelementptr i8, ptr {self.ctx.slot_block}, i64 {slot * SLOT_BYTES}")

    def write(self, slot: int, operand: Operand, kind: ScalarType) -> str:
        """Store all lanes of an operand."""
        bits = f"i{kind.bits}"
        value = self.ctx.convert(self.ctx.vector_of(operand, kind), kind.llvm, bits, True)
        address = self.address(slot)
        self.ctx.stmt(f"store <{LANES} x {bits}> {value}, ptr {address}, align 64")
        return address

    def find(self, operand: Operand, kind: ScalarType) -> int:
        """The slot of an operand. Its NaNs are canonical: what f32 arithmetic has made may be taken for integers or pairs."""
        home = self.ctx.home_slots.get(self.ctx.homes.get(operand, ""))
        if home is not None:
            return home
        slot, stays = self.take(kind.bits // 32)
        address = self.write(slot, operand, kind)
        if stays and isinstance(operand, (Reg, Imm)):
            self.keep(operand, slot, address)
        return slot

    def keep(self, operand: Operand, slot: int, address: str) -> None:
        self.ctx.homes[operand] = address
        self.ctx.home_slots[address] = slot

    def define(self, op: Op, first: int, stays: bool) -> None:
        """Give ``op`` its results, which lie in neighbouring slots; those only read from there are not loaded."""
        for index, (dst, kind) in enumerate(zip(op.dsts, op.dst_types)):
            if dst is None:
                continue
            slot = first + index * (kind.bits // 32)
            address = self.address(slot)
            lazy = stays and op.guard is None
            if not lazy or self.ctx.outlives_block(dst):
                self.ctx.define(op, index, self.ctx.inst(f"load <{LANES} x {kind.llvm}>, ptr {address}, align 64"))
            if lazy:
                self.keep(dst, slot, address)
