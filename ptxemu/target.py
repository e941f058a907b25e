"""CPUs that code is made for."""

from __future__ import annotations


class Target:
    """What the lowering may assume of the CPU: cheap masked and gathering memory instructions."""

    def __init__(self, features: frozenset[str]) -> None:
        self.avx2 = "avx2" in features
        self.avx512 = {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= features

    def masked(self, bits: int) -> bool:
        return self.avx512 or (self.avx2 and bits in (32, 64))

    def gathers(self, bits: int) -> bool:
        return self.avx512 and bits in (32, 64)
