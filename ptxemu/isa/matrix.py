"""Warp-level matrix instructions (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions").

A fragment's registers are counted from its shape: 32 lanes share the elements of a matrix evenly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from ptxemu.ir.block_shape import LANES
from ptxemu.isa.fidelity import CHAINS, DEFINED, SPARSE_SUMS, SUMS, TENSOR_SUMS
from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "Warp Level Matrix Multiply-Accumulate Instructions"
MULTIPLIES = "meets warp, varying"
LOADS, STORES = "reads [p] for {}, meets warp, varying", "writes [p] for {}, meets warp"
LINES, ROW_BYTES = "?", 16  # a matrix as far as its stride leads; a row of ldmatrix
PACKED_BITS = {"b6x16_p32": 6, "b4x16_p64": 4}

BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8,
    "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f32": 32, "s32": 32,
}  # fmt: skip
# The registers of a fragment, as type checking sees them; any 32-bit register holds the rest.
REGISTERS = {
    "f16": "f16x2", "bf16": "bf16x2", "tf32": "tf32", "f64": "b64", "s8": "u32", "u8": "u32", "f32": "f32", "s32": "s32",
}  # fmt: skip


def rows_of(mods: Mapping[str, str]) -> tuple[int, tuple[int, ...]]:
    """How many lanes of ldmatrix or stmatrix give the addresses of rows, and what its function of the runtime is told of the
    matrices."""
    count, shape = int(mods["num"][1:]), mods["shape"]
    if shape == "m8n8":
        return 8 * count, (count, int("trans" in mods))
    if shape == "m16n8":
        return 8 * count, (count,)
    lines = 16 if shape == "m16n16" else 8
    return lines * count, (count, lines, PACKED_BITS.get(mods.get("src", ""), 8))


def dimensions(shape: str) -> tuple[int, int, int]:
    """m, n and k of ``m16n8k16``."""
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


def registers(elements: int, type: str) -> int:
    """How many registers of each lane hold ``elements`` elements of a matrix."""
    return elements * BITS[type] // (LANES * (64 if type == "f64" else 32))


def _fragment(name: str, type: str, count: int) -> str:
    return f"{name}:{REGISTERS.get(type, 'b32')}*{count}"


# ---------------------------------------------------------------- mma

# shapes, types of a multiplicand, of an accumulator, least version and target
MMA = (
    ("m16n8k8", "f16", "f16 f32", "6.5", 75), ("m16n8k16", "f16", "f16 f32", "7.0", 80),
    ("m16n8k8 m16n8k16", "bf16", "f32", "7.0", 80), ("m16n8k4 m16n8k8", "tf32", "f32", "7.0", 80),
    ("m16n8k32", "e4m3,e5m2", "f32", "8.4", 89), ("m16n8k16", "e4m3,e5m2", "f32", "8.7", 89),
    ("m16n8k16 m16n8k32", "e4m3,e5m2", "f16", "8.7", 89),
    ("m8n8k4", "f64", "f64", "7.0", 80), ("m16n8k4 m16n8k8 m16n8k16", "f64", "f64", "7.8", 90),
    ("m8n8k16", "s8,u8", "s32", "6.5", 75), ("m16n8k16 m16n8k32", "s8,u8", "s32", "7.0", 80),
    ("m8n8k32", "s4,u4", "s32", "6.5", 75), ("m16n8k32 m16n8k64", "s4,u4", "s32", "7.0", 80),
    ("m8n8k128", "b1", "s32", "7.0", 75), ("m16n8k128 m16n8k256", "b1", "s32", "7.0", 80),
)  # fmt: skip
SPARSE = (
    ("m16n8k16 m16n8k32", "f16", "f16 f32", "7.1", 80), ("m16n8k16 m16n8k32", "bf16", "f32", "7.1", 80),
    ("m16n8k8 m16n8k16", "tf32", "f32", "7.1", 80), ("m16n8k64", "e4m3,e5m2", "f32", "8.4", 89),
    ("m16n8k32 m16n8k64", "s8,u8", "s32", "7.1", 80), ("m16n8k64 m16n8k128", "s4,u4", "s32", "7.1", 80),
)  # fmt: skip
OPTIONS = {"f64": " round?=rn,rz,rm,rp", "b1": " op=xor,and popc"}  # by multiplicand
BIT_GATES = "and@7.1@80"


def _selectors(m: int, k: int, type: str) -> int:
    """How many sparsity selectors there are: 4 bits about each chunk of A fill 1, 2 or 4 of every four lanes.

    The assembler takes four for f16 with f32 whatever the shape.
    """
    chunk = {32: 2, 16: 4, 8: 4, 4: 8}[BITS[type]]
    return 4 if type == "f16" else 4 * LANES * 8 // (m * k // chunk * 4)


def _bits(accumulator: str, sparse: bool) -> str:
    """What is known of sums of this type."""
    return {"s32": DEFINED, "f64": CHAINS}.get(accumulator, SPARSE_SUMS if sparse else SUMS)


def _mma(
    shape: str, types: str, accumulator: str, ptx: str, sm: int, sparse: bool, kind: str = "", gates: str = "", flags: str = ""
) -> None:
    m, n, k = dimensions(shape)
    first = types.split(",")[0]
    option = OPTIONS.get(first, " satfinite?" if accumulator == "s32" else "")
    qualifiers = f"sync aligned shape={shape} alayout=row blayout=col{kind}{option} " + (
        f"dtype={accumulator} atype={types} btype={types} ctype={accumulator}"
    )
    operands = [
        _fragment("d", accumulator, registers(m * n, accumulator)),
        _fragment("a", first, registers(m * k, first) // (2 if sparse else 1)),
        _fragment("b", first, registers(n * k, first)),
        _fragment("c", accumulator, registers(m * n, accumulator)),
    ]
    gates = BIT_GATES if first == "b1" else gates
    if sparse:
        qualifiers = f"variant={'' if kind else 'sp,'}sp::ordered_metadata " + qualifiers
        choices = 2 if accumulator == "f16" and k == 32 else _selectors(m, k, first)
        operands += ["e.whole:b32", f"immf:u32(0..{choices - 1})"]
        gates = gates or "sp::ordered_metadata@8.5@80"
    row("mma", qualifiers, ", ".join(operands), ptx=ptx, sm=sm, gates=gates, flags=flags, does=MULTIPLIES,
        bits=_bits(accumulator, sparse), chapter=CHAPTER)  # fmt: skip


for _sparse, _forms in ((False, MMA), (True, SPARSE)):
    for _shapes, _types, _accumulators, _ptx, _sm in _forms:
        for _shape in _shapes.split():
            for _accumulator in _accumulators.split():
                _mma(_shape, _types, _accumulator, _ptx, _sm, _sparse)

# Four multiplications at once, on fragments whose layout depends on the matrices'.
for _dtype, _ctype in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
    row("mma", f"sync aligned shape=m8n8k4 alayout=row,col blayout=row,col dtype={_dtype} atype=f16 btype=f16 ctype={_ctype}",
        f"d:{REGISTERS[_dtype]}*{registers(256, _dtype)}, a:f16x2*2, b:f16x2*2, c:{REGISTERS[_ctype]}*{registers(256, _ctype)}",
        ptx="6.4", sm=70, does=MULTIPLIES, bits=SUMS, chapter=CHAPTER)  # fmt: skip

# Any two types of at most 8 bits, each element in a byte.
NARROW = "e4m3,e5m2,e3m2,e2m3,e2m1"
NARROW_GATES = "e3m2@8.7@120 e2m3@8.7@120 e2m1@8.7@120"
for _sparse, _shape in ((False, "m16n8k32"), (True, "m16n8k64")):
    for _accumulator in ("f16", "f32"):
        _mma(_shape, NARROW, _accumulator, "8.7", 100, _sparse, " kind=kind::f8f6f4", NARROW_GATES, "accelerated")

# Block scaling: factors of A and of B, and where they are.
FACTORS = "fa:b32, ia:u16*2, fb:b32, ib:u16*2"
FOUR_BITS = "dtype=f32 atype=e2m1 btype=e2m1 ctype=f32"
SCALED = (
    ("m16n8k32", "mxf8f6f4", "?=scale_vec::1X", f"dtype=f32 atype={NARROW} btype={NARROW} ctype=f32 stype=ue8m0"),
    ("m16n8k64", "mxf4", "?=scale_vec::2X", f"{FOUR_BITS} stype=ue8m0"),
    ("m16n8k64", "mxf4nvf4", "=scale_vec::2X", f"{FOUR_BITS} stype=ue8m0"),
    ("m16n8k64", "mxf4nvf4", "=scale_vec::4X", f"{FOUR_BITS} stype=ue8m0,ue4m3"),
)
DOUBLED = {"m16n8k32": "m16n8k64", "m16n8k64": "m16n8k128"}  # shapes of a sparse A that holds as many elements
for _shape, _kind, _scale, _types in SCALED:
    _kinds = f"alayout=row blayout=col kind=kind::{_kind} block_scale scale{_scale} {_types}"
    _row = partial(row, "mma", ptx="8.7", sm=120, gates="scale_vec::4X&ue8m0@9.1@120", lower="mma_scaled", does=MULTIPLIES,
                   bits=TENSOR_SUMS, chapter=CHAPTER)  # fmt: skip
    _row(f"sync aligned shape={_shape} {_kinds}", f"d:f32*4, a:b32*4, b:b32*2, c:f32*4, {FACTORS}", flags="accelerated")
    _row(f"variant=sp::ordered_metadata sync aligned shape={DOUBLED[_shape]} {_kinds}",
         f"d:f32*4, a:b32*4, b:b32*4, c:f32*4, e.whole:b32, immf:u32(0), {FACTORS}",
         flags="accelerated" if _kind == "mxf8f6f4" else "accelerated specific")  # fmt: skip

# ---------------------------------------------------------------- wmma

SPACE = "space?=global,shared,shared::cta"
CTA_GATE = "shared::cta@7.8@30"
HALF_SHAPES = "m16n16k16,m8n32k16,m32n8k16"
HALF_REGISTERS = 8  # of every f16 multiplicand, whatever its shape
LAYOUTS = {"s4": ("row", "col"), "u4": ("row", "col"), "b1": ("row", "col")}  # of a and b, where they are fixed

# shapes, types of both multiplicands, accumulator, least version and target
WMMA = (
    (HALF_SHAPES, ("bf16",), "f32", "7.0", 80), (HALF_SHAPES, ("s8", "u8"), "s32", "6.3", 72),
    ("m16n16k8", ("tf32",), "f32", "7.0", 80), ("m8n8k4", ("f64",), "f64", "7.0", 80),
    ("m8n8k32", ("s4", "u4"), "s32", "6.3", 75), ("m8n8k128", ("b1",), "s32", "6.3", 75),
)  # fmt: skip


def _load(role: str, layout: str, shape: str, type: str, count: int, ptx: str, sm: int, gates: str = CTA_GATE) -> None:
    row("wmma", f"load role={role} sync aligned layout={layout} shape={shape} {SPACE} type={type}",
        f"{_fragment('d', type, count)}, [p]:, stride:u32?", ptx=ptx, sm=sm, gates=gates, lower="wmma_load",
        flags="widened", does=LOADS.format(LINES), chapter=CHAPTER)  # fmt: skip


def _in_memory(shape: str, type: str, count: int, ptx: str, sm: int, gates: str = CTA_GATE) -> None:
    """wmma.load.c and wmma.store.d of an accumulator."""
    _load("c", "row,col", shape, type, count, ptx, sm, gates)
    row("wmma", f"store role=d sync aligned layout=row,col shape={shape} {SPACE} type={type}",
        f"[p]:, a:{REGISTERS[type]}*{count}, stride:u32?", ptx=ptx, sm=sm, gates=gates, lower="wmma_store", flags="widened",
        does=STORES.format(LINES), chapter=CHAPTER)  # fmt: skip


def _wmma(shape: str, type: str, accumulator: str, ptx: str, sm: int) -> None:
    m, n, k = dimensions(shape)
    layouts = LAYOUTS.get(type, ("row,col", "row,col"))
    counts = registers(m * k, type), registers(n * k, type), registers(m * n, accumulator)
    _load("a", layouts[0], shape, type, counts[0], ptx, sm)
    _load("b", layouts[1], shape, type, counts[1], ptx, sm)
    option = OPTIONS.get(type, " satfinite?" if accumulator == "s32" else "")
    d, c = (_fragment(name, accumulator, counts[2]) for name in "dc")
    row("wmma", f"mma sync aligned alayout={layouts[0]} blayout={layouts[1]} shape={shape}{option} "
        f"dtype={accumulator} atype={type} btype={type} ctype={accumulator}",
        f"{d}, {_fragment('a', type, counts[0])}, {_fragment('b', type, counts[1])}, {c}", ptx=ptx, sm=sm,
        gates=BIT_GATES if type == "b1" else "", lower="mma", does=MULTIPLIES, bits=_bits(accumulator, False),
        chapter=CHAPTER)  # fmt: skip


_load("a,b", "row,col", HALF_SHAPES, "f16", HALF_REGISTERS, "6.3", 70)
for _accumulator, _sm in (("f16", 70), ("f32", 70), ("s32", 72)):
    _in_memory(HALF_SHAPES, _accumulator, registers(256, _accumulator), "6.3", _sm)
for _dtype in ("f16", "f32"):
    for _ctype in ("f16", "f32"):
        row("wmma", f"mma sync aligned alayout=row,col blayout=row,col shape={HALF_SHAPES} dtype={_dtype} ctype={_ctype}",
            f"d:{REGISTERS[_dtype]}*{registers(256, _dtype)}, a:f16x2*8, b:f16x2*8, "
            f"c:{REGISTERS[_ctype]}*{registers(256, _ctype)}", ptx="6.3", sm=70, lower="mma",
            does=MULTIPLIES, bits=SUMS, chapter=CHAPTER)  # fmt: skip
for _shapes, _pair, _accumulator, _ptx, _sm in WMMA:
    for _shape in _shapes.split(","):
        for _type in _pair:
            _wmma(_shape, _type, _accumulator, _ptx, _sm)
_in_memory("m16n16k8", "f32", registers(256, "f32"), "7.0", 80)
_in_memory("m8n8k4", "f64", registers(64, "f64"), "7.0", 80)
_in_memory("m8n8k32,m8n8k128", "s32", registers(64, "s32"), "6.3", 75)

# ---------------------------------------------------------------- ldmatrix, stmatrix, movmatrix

for _num in (1, 2, 4):
    row("ldmatrix", f"sync aligned shape=m8n8 num=x{_num} trans? space?=shared,shared::cta type=b16", f"d:b32*{_num}, [p]:",
        ptx="6.5", sm=75, gates=CTA_GATE, flags="widened", does=LOADS.format(ROW_BYTES), chapter=CHAPTER)  # fmt: skip
    row("stmatrix", f"sync aligned shape=m8n8 num=x{_num} trans? space?=shared,shared::cta type=b16", f"[p]:, a:b32*{_num}",
        ptx="7.8", sm=90, flags="widened", does=STORES.format(ROW_BYTES), chapter=CHAPTER)  # fmt: skip
_NARROW, _LINES = "dst=b8x16 src=b6x16_p32,b4x16_p64", "ldmatrix.lines"  # lines of sixteen elements of 8 bits and less
for _types in ("type=b8", _NARROW):
    for _num, _registers in ((1, 2), (2, 4)):
        row("ldmatrix", f"sync aligned shape=m16n16 num=x{_num} trans space?=shared,shared::cta {_types}",
            f"d:b32*{_registers}, [p]:", ptx="8.6", sm=100, flags="widened accelerated", lower=_LINES,
            does=LOADS.format(ROW_BYTES), chapter=CHAPTER)  # fmt: skip
for _num in (1, 2, 4):
    row("ldmatrix", f"sync aligned shape=m8n16 num=x{_num} space?=shared,shared::cta {_NARROW}", f"d:b32*{_num}, [p]:",
        ptx="8.6", sm=100, flags="widened accelerated", lower=_LINES, does=LOADS.format(ROW_BYTES), chapter=CHAPTER)  # fmt: skip
    row("stmatrix", f"sync aligned shape=m16n8 num=x{_num} trans space?=shared,shared::cta type=b8", f"[p]:, a:b32*{_num}",
        ptx="8.6", sm=100, flags="widened accelerated", lower="stmatrix.lines", does=STORES.format(ROW_BYTES),
        chapter=CHAPTER)  # fmt: skip
row("movmatrix", "sync aligned shape=m8n8 trans type=b16", "d:b32, a.whole:b32", ptx="7.8", sm=75, does=MULTIPLIES,
    chapter=CHAPTER)  # fmt: skip

traits("fragments", "mma", "wmma")
traits("opaque:texref opaque:surfref", "ldmatrix", "stmatrix")
name_words("load store mma a b c d", "wmma")
