"""CPUs that code is made for."""

from __future__ import annotations


class Target:
    """What the lowering may assume of the CPU: cheap masked and gathering memory instructions; of x86 the mode DAZ, and
    ``pe_attend``, which changes no registers (``polls``). Some, such as Zen 3, do not read ahead behind masked loads, as they do
    behind others, and behind lines that are asked for (``overlooks_masked``)."""

    def __init__(self, features: frozenset[str], x86: bool = False) -> None:
        self.daz = self.polls = x86
        self.avx2 = "avx2" in features
        self.avx512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= features
        self.packs_masks = self.avx2 and not self.avx512  # comparisons leave as many bits as they compare in each lane
        self.overlooks_masked = self.avx2 and not self.avx512
        self.dots = self.avx512 and "avx512vnni" in features  # products of bytes, added to words
        self.deposits = self.avx512 and "bmi2" in features  # bits to places in one fast instruction

    @property
    def vector_bytes(self) -> int:
        """The size of a vector register."""
        return 64 if self.avx512 else 32 if self.avx2 else 16

    def masked(self, bits: int, count: int) -> bool:
        """Of ``count`` elements a lane: where lanes share registers, only masks that are registers keep the code small."""
        return self.avx512 or (self.avx2 and bits in (32, 64) and count == 1)

    def gathers(self, bits: int) -> bool:
        return self.avx512 and bits in (32, 64)

    def gathers_near(self, bits: int) -> bool:
        """Elements less than 2**31 bytes from one place: AVX2 is slower with whole addresses than one load after the other."""
        return self.avx2 and bits in (32, 64)
