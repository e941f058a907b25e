"""Tensor memory and the multiplications of one thread (PTX ISA, "TensorCore 5th Generation Family Instructions").

Forms that are not here are not run: the row of ``ptxemu/isa/unsupported.py`` takes them.
"""

from __future__ import annotations

from itertools import product

from ptxemu.isa.fidelity import DEFINED, TENSOR_SUMS, UNCHECKED
from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words

CHAPTER = "TensorCore 5th Generation Family Instructions"
ONE, PAIR = (f"cta_group=cta_group::{ctas}" for ctas in (1, 2))
GROUP = "cta_group=cta_group::1,cta_group::2"
MEETS = "faults, meets warp, varying"
REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}  # of x1
MOST_REGISTERS = 128


def _row(qualifiers: str, operands: str, lower: str, does: str, bits: str = DEFINED, flags: str = "",
         ptx: str = "8.6") -> None:  # fmt: skip
    row("tcgen05", qualifiers, operands, ptx=ptx, sm=100, lower=lower, flags=f"accelerated tensors {flags}", does=does,
        bits=bits, chapter=CHAPTER)  # fmt: skip


for _group, _waits in ((ONE, ""), (PAIR, ", waits pair")):
    _row(f"alloc {_group} sync aligned space?=shared::cta type=b32", "[a]:type, columns:u32", "tmem_alloc",
         f"writes [a] for 4, meets warp, varying{_waits}")  # fmt: skip
_row(f"dealloc {GROUP} sync aligned type=b32", "at:type, columns:u32", "tmem_dealloc", MEETS)
_row(f"relinquish_alloc_permit {GROUP} sync aligned", "", "tmem_give_up", MEETS)
for _word in ("wait::ld", "wait::st"):
    _row(f"{_word} sync aligned", "", "tmem_order", "nothing")
for _word in ("fence::before_thread_sync", "fence::after_thread_sync"):
    _row(_word, "", "tmem_order", "nothing")
for _multicast, _ctas in (("", ""), ("multicast=multicast::cluster ", ", ctas:b16")):
    _row(f"commit {GROUP} arrive=mbarrier::arrive::one space?=shared::cluster {_multicast}type=b64", f"[a]:type{_ctas}",
         "tmem_commit", "updates mbarrier [a]")  # fmt: skip

for _shape, _registers in REGISTERS.items():
    for _number in (2**_power for _power in range(8)):
        _count = _registers * _number
        if _count > MOST_REGISTERS:
            continue
        _moved = f"sync aligned shape={_shape} num=x{_number}"
        _row(f"ld {_moved} pack?=pack::16b type=b32", f"d:type*{_count}, [t]@tensor:", "tmem_load", MEETS)
        _row(f"st {_moved} unpack?=unpack::16b type=b32", f"[t]@tensor:, v:type*{_count}", "tmem_store", MEETS)
for _number in (2**_power for _power in range(8)):
    _moved = f"sync aligned shape=16x32bx2 num=x{_number}"
    _row(f"ld {_moved} pack?=pack::16b type=b32", f"d:type*{_number}, [t]@tensor:, immapart:u32(0..511)", "tmem_load", MEETS)
    _row(f"st {_moved} unpack?=unpack::16b type=b32", f"[t]@tensor:, immapart:u32(0..511), v:type*{_number}", "tmem_store", MEETS)

for (_shape, _apart), _number in product(
    (("32x32b", ""), ("16x32bx2", ", immapart:u32(0..511)")), (2**_power for _power in range(1, 8))
):
    for _reduced in ("abs? NaN? type=f32", "type=u32,s32"):
        _row(f"ld red sync aligned shape={_shape} num=x{_number} op=min,max {_reduced}",
             f"d:b32*{_number}, q:b32, [t]@tensor:{_apart}", "tmem_load", MEETS, flags="ultra", ptx="8.8")  # fmt: skip

for _shape, _warps in (
    ("128x256b,128x128b,4x256b", ""),
    ("64x128b", "warps=warpx2::02_13,warpx2::01_23"),
    ("32x128b", "warps=warpx4"),
):
    for _formats in ("", "to=b8x16 from=b6x16_p32,b4x16_p64"):
        _row(f"cp {GROUP} shape={_shape} {_warps} {_formats}", "[t]@tensor:, s:b64", "tmem_copy", "faults")
_row(f"shift {GROUP} down", "[t]@tensor:", "tmem_shift", "faults", UNCHECKED, "specific")


def _collectors(*buffers: str, words: str = "fill use lastuse discard") -> str:
    return "collector?=" + ",".join(f"collector::{buffer}::{word}" for buffer in buffers for word in words.split())


COLLECTOR = _collectors("a")
SHIFTED = f"ashift {_collectors('a', words='lastuse discard')}"
KINDS = (("kind::f16,kind::tf32", ", immscale:u32(0..15)?", TENSOR_SUMS, ""), ("kind::f8f6f4", "", TENSOR_SUMS, ""),
         ("kind::i8", "", DEFINED, "specific integers"))  # fmt: skip
SCALED = (("mxf8f6f4", "?=scale_vec::1X,block32"), ("mxf4", "?=scale_vec::2X,block32"),
          ("mxf4nvf4", "=scale_vec::2X,scale_vec::4X,block16,block32"))  # fmt: skip
SPARSE = (("", ""), (" sp", ", [metadata]@tensor:"))
GROUPS = ((GROUP, ""), (ONE, ", off:b32*4"), (PAIR, ", off:b32*8"))
for _a, _uses in (("a:b64", (COLLECTOR,)), ("[a]@tensor:", (COLLECTOR, SHIFTED))):
    for (_sp, _metadata), (_kinds, _scale, _bits, _flags) in product(SPARSE, KINDS):
        _sides = f"[t]@tensor:, {_a}, b:b64{_metadata}, format:u32"
        for _use, (_group, _disabled) in product(_uses, GROUPS):
            _row(f"mma{_sp} {_group} kind={_kinds} {_use}", f"{_sides}{_disabled}, p:pred{_scale}", "tmem_mma", "faults", _bits,
                 _flags)  # fmt: skip
        _row(f"mma ws{_sp} {ONE} kind={_kinds} {_collectors('b0', 'b1', 'b2', 'b3')}",
             f"{_sides}, p:pred, zeros:b64?", "tmem_mma", "faults", _bits, _flags)  # fmt: skip
    for (_sp, _metadata), (_kind, _scale) in product(SPARSE, SCALED):
        _row(f"mma{_sp} {GROUP} kind=kind::{_kind} block_scale scale{_scale} {COLLECTOR}",
             f"[t]@tensor:, {_a}, b:b64{_metadata}, format:u32, [fa]@tensor:, [fb]@tensor:, p:pred", "tmem_mma", "faults",
             TENSOR_SUMS)  # fmt: skip

name_words("alloc dealloc relinquish_alloc_permit ld red st mma commit cp shift wait fence sp ws wait::ld wait::st "
           "fence::before_thread_sync fence::after_thread_sync", "tcgen05")  # fmt: skip
