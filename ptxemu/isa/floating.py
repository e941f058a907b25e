"""f32 and f64 arithmetic (PTX ISA 9.7.3)."""

from __future__ import annotations

from ptxemu.isa.fidelity import MUFU, MUFU_90
from ptxemu.isa.table import UNSUPPORTED, row
from ptxemu.isa.traits import name_words, traits
from ptxemu.isa.words import THREE

CHAPTER = "9.7.3 Floating-Point Instructions"
MIXED = "9.7.5 Mixed Precision Floating-Point Instructions"
RAW, QUIET, ANY = "raw nan", "quiet nan", "any nan"
ROUND = "round=rn,rz,rm,rp"
OPTIONAL_ROUND = "round?=rn,rz,rm,rp"
DIRECTED_GATES = "rm@1.4@20 rp@1.4@20"
TWO = "d:type, a:type, b:type"

for opcode in ("add", "sub", "mul"):
    lower = f"{opcode}.fp"
    row(opcode, OPTIONAL_ROUND + " ftz? sat? type=f32", TWO, lower=lower, does=RAW, gates=DIRECTED_GATES, chapter=CHAPTER)
    row(opcode, OPTIONAL_ROUND + " type=f64", TWO, sm=13, lower=lower, chapter=CHAPTER)
    row(opcode, OPTIONAL_ROUND + " ftz? type=f32x2", TWO, ptx="8.6", sm=100, lower=f"{opcode}.f32x2", chapter=CHAPTER)
row("fma", ROUND + " ftz? sat? type=f32", THREE, ptx="2.0", sm=20, lower="fma.fp", does=RAW, chapter=CHAPTER)
row("fma", ROUND + " type=f64", THREE, ptx="1.4", sm=13, lower="fma.fp", chapter=CHAPTER)
row("fma", ROUND + " ftz? type=f32x2", THREE, ptx="8.6", sm=100, lower="fma.f32x2", chapter=CHAPTER)
row("mad", ROUND + " ftz? sat? type=f32", THREE, ptx="2.0", sm=20, lower="fma.fp", does=RAW, chapter=CHAPTER)
row("mad", ROUND + " type=f64", THREE, ptx="1.4", sm=13, lower="fma.fp", chapter=CHAPTER)

for opcode in ("add", "sub"):
    row(
        opcode,
        OPTIONAL_ROUND + " sat? type=f32 atype=f16,bf16",
        "d:type, a:atype, c:type",
        ptx="8.6",
        sm=100,
        lower=f"{opcode}.mixed",
        chapter=MIXED,
    )
row(
    "fma",
    ROUND + " sat? type=f32 atype=f16,bf16",
    "d:type, a:atype, b:atype, c:type",
    ptx="8.6",
    sm=100,
    lower="fma.mixed",
    chapter=MIXED,
)

row("div", "mode=approx ftz? type=f32", TWO, ptx="1.4", lower="div.approx", does=RAW, bits=MUFU, chapter=CHAPTER)
row("div", "mode=full ftz? type=f32", TWO, ptx="1.4", lower="div.full", does=RAW, bits=MUFU, chapter=CHAPTER)
row("div", ROUND + " ftz? type=f32", TWO, ptx="1.4", sm=20, lower="div.fp", does=RAW, chapter=CHAPTER)
row("div", ROUND + " type=f64", TWO, ptx="1.4", sm=13, lower="div.fp", gates=DIRECTED_GATES, chapter=CHAPTER)
for opcode in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"):
    row(
        opcode,
        "approx ftz? type=f32",
        "d:type, a:type",
        ptx="1.4",
        lower=f"{opcode}.approx",
        does=RAW,
        bits=MUFU,
        chapter=CHAPTER,
    )
for opcode in ("rcp", "sqrt"):
    row(opcode, ROUND + " ftz? type=f32", "d:type, a:type", ptx="1.4", sm=20, lower=f"{opcode}.fp", does=RAW, chapter=CHAPTER)
    row(
        opcode,
        ROUND + " type=f64",
        "d:type, a:type",
        ptx="1.4",
        sm=13,
        lower=f"{opcode}.fp",
        gates=DIRECTED_GATES,
        chapter=CHAPTER,
    )
# ptxas takes a flush of subnormals here, which the manual does not describe, and makes the same machine code as without.
row("rcp", ROUND + " ftz type=f64", "d:type, a:type", ptx="1.4", sm=13, lower="rcp.double", gates=DIRECTED_GATES, chapter=CHAPTER)
row("rcp", "approx ftz type=f64", "d:type, a:type", ptx="2.1", sm=20, lower="rcp.approx.f64", bits=MUFU_90, chapter=CHAPTER)

row("rsqrt", "approx type=f64", "d:type, a:type", ptx="1.4", sm=13, lower="rsqrt.approx", bits=MUFU_90, chapter=CHAPTER)
row("rsqrt", "approx ftz type=f64", "d:type, a:type", ptx="4.0", sm=20, lower="rsqrt.approx.f64", bits=MUFU_90, chapter=CHAPTER)
row("tanh", "approx type=f32", "d:type, a:type", ptx="7.0", sm=75, lower="tanh.approx", bits=MUFU_90, chapter=CHAPTER)

for opcode in ("abs", "neg"):
    row(opcode, "ftz? type=f32", "d:type, a:type", lower=f"{opcode}.fp", does=RAW, chapter=CHAPTER)
    row(opcode, "type=f64", "d:type, a:type", sm=13, lower=f"{opcode}.fp", chapter=CHAPTER)
row("copysign", "type=f32,f64", TWO, ptx="2.0", sm=20, chapter=CHAPTER)
row(
    "testp",
    "op=finite,infinite,number,notanumber,normal,subnormal type=f32,f64",
    "d:pred, a:type",
    ptx="2.0",
    sm=20,
    chapter=CHAPTER,
)
# ptxas takes one without an operation, which the manual does not describe, and its machine code leaves the result undefined.
row("testp", "type=f32,f64", "d:pred, a:type", ptx="2.0", sm=20, lower=UNSUPPORTED, chapter=CHAPTER)
for opcode in ("min", "max"):
    lower = f"{opcode}.fp"
    nan = "NaN@7.0@80"
    row(opcode, "ftz? NaN? type=f32", TWO, lower=lower, does=QUIET, gates=nan, chapter=CHAPTER)
    row(opcode, "ftz? NaN? xorsign abs type=f32", TWO, ptx="7.2", sm=86, lower=lower, does=RAW, chapter=CHAPTER)
    row(opcode, "ftz? NaN? abs? type=f32", THREE, ptx="8.8", sm=100, lower=lower, does=RAW, chapter=CHAPTER)
    row(opcode, "type=f64", TWO, sm=13, lower=lower, chapter=CHAPTER)

traits("steps", "fma")
name_words("full", "div")
