"""How many warps of a launch a multiprocessor holds.

Limits are those of the CUDA C++ programming guide, "Technical Specifications per Compute Capability", units of allocation
those of NVIDIA's occupancy calculator.
"""

from __future__ import annotations

from msgspec import Struct

REGISTERS = 65536  # of a multiprocessor
REGISTER_UNIT = 256  # in which warps get registers
MOST_REGISTERS = 255  # of a thread
PARTS = 4  # of a multiprocessor, each with a scheduler and a quarter of the registers
KIB = 1024


class Multiprocessor(Struct, frozen=True):
    """Limits of one: ``shared`` bytes in all, of which a block gets whole ``unit`` bytes and the system ``reserved`` for each.

    ``gpu`` is one that has it, with its peaks: operations of fp32 and bytes of memory in a second, as its data sheet says.
    """

    sm: int
    warps: int
    blocks: int
    shared: int
    gpu: str
    flops: float
    bandwidth: float

    @property
    def reserved(self) -> int:
        return KIB if self.sm >= 80 else 0

    @property
    def unit(self) -> int:
        return 128 if self.sm >= 80 else 256


MULTIPROCESSORS = (
    Multiprocessor(70, 64, 32, 96 * KIB, "V100", 15.7e12, 0.9e12),
    Multiprocessor(75, 32, 16, 64 * KIB, "T4", 8.1e12, 0.32e12),
    Multiprocessor(80, 64, 32, 164 * KIB, "A100", 19.5e12, 1.555e12),
    Multiprocessor(86, 48, 16, 100 * KIB, "RTX 3090", 35.6e12, 0.936e12),
    Multiprocessor(87, 48, 16, 164 * KIB, "Jetson AGX Orin", 5.3e12, 0.205e12),
    Multiprocessor(89, 48, 24, 100 * KIB, "RTX 4090", 82.6e12, 1.008e12),
    Multiprocessor(90, 64, 32, 228 * KIB, "H100 SXM", 66.9e12, 3.35e12),
    Multiprocessor(100, 64, 32, 228 * KIB, "B200", 75e12, 8e12),
    Multiprocessor(120, 48, 24, 100 * KIB, "RTX 5090", 104.8e12, 1.792e12),
)


def multiprocessor_of(sm: int) -> Multiprocessor:
    """That of an architecture, or of the last one before it that is known; of the first for older ones."""
    return max((one for one in MULTIPROCESSORS if one.sm <= sm), key=lambda one: one.sm, default=MULTIPROCESSORS[0])


class Occupancy(Struct, frozen=True):
    """Blocks that fit a multiprocessor by each limit, and the warps of those that fit them all."""

    limits: dict[str, int]
    warps: int
    most: int

    @property
    def blocks(self) -> int:
        return min(self.limits.values())

    @property
    def percent(self) -> float:
        return 100 * self.warps / self.most

    @property
    def limited_by(self) -> list[str]:
        return [name for name, blocks in self.limits.items() if blocks == self.blocks]


def occupancy(device: Multiprocessor, threads: int, registers: int, shared: int) -> Occupancy:
    """Of blocks of so many ``threads``, with ``registers`` each and ``shared`` bytes for all of them."""
    warps = -(-threads // 32)
    limits = {"warps": device.warps // warps, "blocks": device.blocks}
    of_warp = _up(min(max(registers, 1), MOST_REGISTERS) * 32, REGISTER_UNIT)
    fits = of_warp * _up(warps, PARTS) <= REGISTERS
    limits["registers"] = REGISTERS // PARTS // of_warp * PARTS // warps if fits else 0
    limits["shared memory"] = device.shared // max(1, _up(shared + device.reserved, device.unit))
    return Occupancy(limits, min(limits.values()) * warps, device.warps)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
