"""Multiplications of warpgroups (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions").

The accepted set is the one measured with ptxas.
"""

from __future__ import annotations

from ptxemu.isa.fidelity import DEFINED, WARPGROUP_SUMS
from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words

CHAPTER = "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions"
MULTIPLIES = "reads accumulator, meets warp, fences, varying"

COLUMNS = range(8, 257, 8)
INTEGER_COLUMNS = tuple(n for n in COLUMNS if n in (8, 24) or n % 16 == 0)
_SIGNS, _A_TRANSPOSED, _B_TRANSPOSED = ", immsa:s32(-1,1), immsb:s32(-1,1)", ", immta:u32(0,1)", ", immtb:u32(0,1)"
_ROWS = "a:u32*4"


def _row(qualifiers: str, operands: str, lower: str, does: str, bits: str = DEFINED, ptx: str = "8.0", gates: str = "") -> None:
    row("wgmma", qualifiers, operands, ptx=ptx, sm=90, gates=gates, lower=lower, flags="accelerated hopper", does=does,
        bits=bits, chapter=CHAPTER)  # fmt: skip


for _word in ("fence", "commit_group"):
    _row(f"{_word} sync aligned?", "", "wgmma_order", "nothing")
_row("wait_group sync aligned?", "immN:u32(0..2147483647)", "wgmma_wait", "meets warp, waits warpgroup")


def _wgmma(
    dtypes: str, types: str, k: int, columns: tuple[int, ...], selected: str, constants: str, *, transposed: bool = False
) -> None:
    """A product of dense and of sparse matrices, the first of which is in shared memory or in registers.

    ``transposed``: matrices in shared memory may be.
    """
    of_b = _B_TRANSPOSED if transposed else ""
    of_both = _A_TRANSPOSED + of_b if transposed else ""
    for dtype in dtypes.split(","):
        result = {"f32": "d:f32*shape/2", "f16": "d:u32*shape/4", "s32": "d:s32*shape/2"}[dtype]
        for sparse in (False, True):
            shapes = ",".join(f"m64n{n}k{2 * k if sparse else k}" for n in columns)
            qualifiers = f"mma_async {'sp ' if sparse else ''}sync aligned? shape={shapes} dtype={dtype} {types}"
            metadata = f", e:u32, immsel:u32({selected})" if sparse else ""
            for first, more in (("a:u64", of_both), (_ROWS, of_b)):
                if sparse and " op=" in types:
                    continue
                operands = f"{result}, {first}, b:u64{metadata}, p:pred<0..1>{constants}{more}"
                bits, gates = DEFINED if dtype == "s32" else WARPGROUP_SUMS, "s8&u8@8.4@90" if "s8" in types else ""
                _row(qualifiers, operands, "wgmma", MULTIPLIES, bits, "8.2" if sparse else "8.0", gates)


_wgmma("f16,f32", "atype=f16 btype=f16", 16, tuple(COLUMNS), "0,1", _SIGNS, transposed=True)
_wgmma("f32", "atype=bf16 btype=bf16", 16, tuple(COLUMNS), "0,1", _SIGNS, transposed=True)
_wgmma("f32", "atype=tf32 btype=tf32", 8, tuple(COLUMNS), "0,1", _SIGNS)
_wgmma("f16,f32", "atype=e4m3,e5m2 btype=e4m3,e5m2", 32, tuple(COLUMNS), "0", _SIGNS)
_wgmma("s32", "atype=s8,u8 btype=s8,u8 satfinite?", 32, INTEGER_COLUMNS, "0", "")
_wgmma("s32", "atype=b1 btype=b1 op=and popc", 256, INTEGER_COLUMNS, "0", "")

name_words("fence commit_group wait_group mma_async sp", "wgmma")
