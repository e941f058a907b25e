"""f16 and bf16 arithmetic (PTX ISA 9.7.4, and the half forms of ``ex2`` and ``tanh``)."""

from __future__ import annotations

from functools import partial

from ptxemu.isa.fidelity import MUFU_90
from ptxemu.isa.table import row
from ptxemu.isa.words import THREE

CHAPTER = "9.7.4 Half Precision Floating-Point Instructions"
TWO = "d:type, a:type, b:type"
HALF = "type=f16,f16x2"
BRAIN = "type=bf16,bf16x2"

for opcode in ("add", "sub", "mul"):
    lower = f"{opcode}.half"
    row(opcode, f"round?=rn ftz? sat? {HALF}", TWO, ptx="4.2", sm=53, lower=lower, chapter=CHAPTER)
    row(opcode, f"round?=rn {BRAIN}", TWO, ptx="7.8", sm=90, lower=lower, chapter=CHAPTER)
fma = partial(row, "fma", lower="fma.half", chapter=CHAPTER)
fma(f"round=rn ftz? sat? {HALF}", THREE, ptx="4.2", sm=53)
fma(f"round=rn ftz? relu {HALF}", THREE, ptx="7.0", sm=80)
fma(f"round=rn relu? {BRAIN}", THREE, ptx="7.0", sm=80)
fma("round=rn oob relu? type=f16,f16x2,bf16,bf16x2", THREE, ptx="8.1", sm=90)

for opcode, ptx in (("abs", "6.5"), ("neg", "6.0")):
    row(opcode, f"ftz? {HALF}", "d:type, a:type", ptx=ptx, sm=53, lower=f"{opcode}.half", chapter=CHAPTER)
    row(opcode, BRAIN, "d:type, a:type", ptx="7.0", sm=80, lower=f"{opcode}.half", chapter=CHAPTER)
for opcode in ("min", "max"):
    lower = f"{opcode}.half"
    row(opcode, f"ftz? NaN? {HALF}", TWO, ptx="7.0", sm=80, lower=lower, chapter=CHAPTER)
    row(opcode, f"ftz? NaN? xorsign abs {HALF}", TWO, ptx="7.2", sm=86, lower=lower, chapter=CHAPTER)
    row(opcode, f"NaN? {BRAIN}", TWO, ptx="7.0", sm=80, lower=lower, chapter=CHAPTER)
    row(opcode, f"NaN? xorsign abs {BRAIN}", TWO, ptx="7.2", sm=86, lower=lower, chapter=CHAPTER)
row("ex2", f"approx {HALF}", "d:type, a:type", ptx="7.0", sm=75, lower="ex2.half", bits=MUFU_90, chapter=CHAPTER)
row("ex2", f"approx ftz {BRAIN}", "d:type, a:type", ptx="7.8", sm=90, lower="ex2.half", bits=MUFU_90, chapter=CHAPTER)
row("tanh", f"approx {HALF}", "d:type, a:type", ptx="7.0", sm=75, lower="tanh.half", bits=MUFU_90, chapter=CHAPTER)
row("tanh", f"approx {BRAIN}", "d:type, a:type", ptx="7.8", sm=90, lower="tanh.half", bits=MUFU_90, chapter=CHAPTER)
