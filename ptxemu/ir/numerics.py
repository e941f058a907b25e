"""What architectures compute where PTX leaves it open: a record for each, which compiled code and the interpreter follow.

Sources: the results of tensor cores that north-numerical-computing/MATLAB-tensor-core measured (BSD-2; V100, A100, A2, Ada, L40S,
H100, H200 and B200), and those of an H200 for all instructions of sm_90 (docs/semantics.md), all of which these records meet; for
what they do not cover, microsoft/MMA-Sim (MIT) and the machine code that NVIDIA's assembler makes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.text.errors import InputError, shown

EXACT = "exact"
ARCHITECTURE = re.compile(r"sm_(\d{2,3})[af]?")
UNKNOWN = 80
"""What a program without a target, or for one before tensor cores, is taken to be for."""

NO_FLOOR = -512  # below all exponents of products
SCALED = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
FIRST = {"bf16": 80, "tf32": 80, "e4m3": 89, "e5m2": 89, "e3m2": 120, "e2m3": 120, "e2m1": 120}
"""The architectures that were the first to multiply a type. Older ones are taken to do it as they do."""


class Summation(NamedTuple):
    """How an instruction adds the products of a row and a column, and an element of C.

    ``block`` products, and what came before, are aligned to the largest exponent among them, which is at least ``least``; each
    keeps ``fraction`` bits behind the point of that exponent and loses the others; their sum is exact, and is rounded to the type
    of the result: f16 to nearest even, f32 to ``result`` bits behind the point, toward zero.  A ``fraction`` of 0: the whole sum
    is exact, and rounded once, to nearest even.

    ``order``: ``plain``; ``pairs``, the elements 0 and 1 of every four first, then the others, and C at the end by an addition;
    ``chain``, multiplications and additions of f32 one after another.

    Of a sparse A these are the products of the elements that it holds.
    """

    fraction: int = 0
    block: int = 0
    least: int = 0
    result: int = 23
    order: Literal["plain", "pairs", "chain"] = "plain"


class Numerics(Struct, frozen=True):
    """``first``: the number of the first architecture.  ``fraction``: of f16, bf16 and tf32.

    ``halves`` and ``words``: the products that are added at once of multiplicands of 16 and 32 bits.  ``least``: the least common
    exponent where the result is f32, and f16.  ``scaled``: how multiplicands of 8 bits are added, if tensor cores have an
    instruction for that.  ``quads``: they have one for m8n8k4.  ``hardware``: approximate functions and NaNs of f64 have
    the bits of the hardware, too.
    """

    first: int
    fraction: int
    halves: int
    words: int
    least: tuple[int, int]
    scaled: Summation | None = None
    quads: bool = False
    exact_sums: bool = False
    hardware: bool = False

    def used_for(self, mods: Mapping[str, str]) -> Numerics:
        """Those of the first architecture that has the instruction, if this one lacks it."""
        needed = max(FIRST.get(mods.get(name, ""), 0) for name in ("atype", "btype"))
        return self if self.first >= needed else NUMERICS[needed]

    @property
    def measured_stores(self) -> bool:
        """Formatted stores to surfaces round as an H200 does (sm_90), where that is asked for by name."""
        return self.hardware and self.first >= 90

    def warpgroup_summation(self, mods: Mapping[str, str]) -> Summation:
        """Of a ``wgmma`` that a warp's part of is an ``mma`` with these modifiers."""
        if mods["atype"] in SCALED and not self.exact_sums:
            return WARPGROUP_SCALED
        return replace(NUMERICS[90], exact_sums=self.exact_sums).summation(mods)

    def tensor_summation(self, type: str, *, half: bool) -> Summation:
        """Of a ``tcgen05.mma`` of such multiplicands, whose result is f16 or f32."""
        first, result = replace(NUMERICS[100], exact_sums=self.exact_sums), "f16" if half else "f32"
        if type in SCALED and not self.exact_sums:
            return TENSOR_SCALED._replace(least=first.least[half])
        return first.summation({"atype": type, "btype": type, "ctype": result, "dtype": result, "shape": ""})

    def summation(self, mods: Mapping[str, str]) -> Summation:
        """Of an ``mma`` with these modifiers, whose result is f16 or f32."""
        kind, half = mods["atype"], mods["dtype"] == mods["ctype"] == "f16"
        if self.exact_sums:
            return Summation()
        if self.used_for(mods) is not self:
            return self.used_for(mods).summation(mods)
        if kind in SCALED and self.scaled is not None:
            return self.scaled
        if mods["shape"] == "m8n8k4" and not self.quads:
            return Summation(self.fraction, block=4, order="chain")
        order: Literal["plain", "pairs"] = "pairs" if kind in SCALED else "plain"
        return Summation(self.fraction, self.words if kind == "tf32" else self.halves, self.least[half], order=order)


_RECORDS = (
    Numerics(70, 23, 4, 0, (NO_FLOOR, -19), quads=True),
    Numerics(75, 24, 8, 0, (-132, -20), quads=True),
    Numerics(80, 24, 8, 4, (-132, -20)),
    Numerics(89, 24, 8, 4, (-132, -20), Summation(13, 16, -132, 13)),
    Numerics(90, 25, 16, 8, (-133, -21)),
    Numerics(100, 25, 16, 8, (-133, -21)),
    Numerics(120, 25, 16, 8, (-133, -21), Summation(25, 32, -133)),
)
WARPGROUP_SCALED = Summation(13, 32, -133, 13)
"""Of multiplicands of 8 bits that a warpgroup multiplies (wgmma), which only sm_90 does."""

TENSOR_SCALED = Summation(25, 32, -133)
"""Of multiplicands of 8 bits and fewer in tensor memory (tcgen05)."""

NUMERICS = {record.first: record for record in _RECORDS}
"""By the first architecture; those that follow compute alike until the next."""


def numerics_of(like: str, target: Sequence[str]) -> Numerics:
    """Those that ``like`` names, or for an empty one or ``exact`` those of a module's ``.target``."""
    named = ARCHITECTURE.fullmatch(like) is not None
    return replace(_record(like if named else next(iter(target), "")), exact_sums=like == EXACT, hardware=named)


def checked_like(like: object) -> str:
    """A text that numerics_of takes. Raises InputError."""
    if isinstance(like, str) and (like in ("", EXACT) or ARCHITECTURE.fullmatch(like)):
        return like
    raise InputError(f"like must be an architecture such as sm_89 or {EXACT}, not {shown(like)}")


def _record(architecture: str) -> Numerics:
    match = ARCHITECTURE.fullmatch(architecture)
    number = int(match[1]) if match else UNKNOWN
    known = [first for first in NUMERICS if first <= number]
    return NUMERICS[max(known, default=UNKNOWN)]
