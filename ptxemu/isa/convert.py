"""``cvt`` (PTX ISA 9.7.9): one row for each pair of kinds of types and set of modifiers."""

from __future__ import annotations

from functools import partial

from ptxemu.ir.types import TYPES
from ptxemu.isa.fidelity import DEFINED, MEASURED, UNCHECKED
from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "9.7.9 Data Movement and Conversion Instructions"
INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
ALL_INTEGERS = ",".join(INTEGERS)
WORDS = "u16,u32,u64,s16,s32,s64"
INTEGER_ROUND = "round=rni,rzi,rmi,rpi"
FLOAT_ROUND = "round=rn,rz,rm,rp"
NEAR_ROUND = "round=rn,rz"
ONE = "d:dtype, a:atype"
TWO = "d:b32, a:atype, b:atype"
PAIR = "d:dtype, a:atype, b:atype"
BRAIN_FTZ = "ftz@7.8@90"
SATFINITE = "satfinite@8.1@80"
EIGHT, SMALL = "e4m3x2,e5m2x2", "e2m1x2,e2m3x2,e3m2x2"
NARROW = f"{EIGHT},{SMALL}"
SCALED = "scaled=scaled::n2::ue8m0"  # one factor for each element
SCALED_ALIKE = "scaled=scaled::n1::ue8m0"


def cvt(
    qualifiers: str,
    operands: str = ONE,
    *,
    lower: str,
    ptx: str = "1.0",
    sm: int = 10,
    flags: str = "",
    does: str = "",
    bits: str = DEFINED,
) -> None:
    gates = SATFINITE if "satfinite?" in qualifiers and sm == 80 else ""
    gates += BRAIN_FTZ if "ftz? dtype=f32 atype=bf16" in qualifiers else ""
    row("cvt", qualifiers, operands, ptx=ptx, sm=sm, lower=lower, chapter=CHAPTER, gates=gates, flags=flags, does=does, bits=bits)


def _saturable(source: str) -> str:
    """The integer types that do not hold every value of ``source``: others allow no ``.sat``."""
    a = TYPES[source]
    holds = {d for d in INTEGERS if (TYPES[d].kind == a.kind and TYPES[d].bits >= a.bits)
             or (a.kind == "u" and TYPES[d].is_signed and TYPES[d].bits > a.bits)}  # fmt: skip
    return ",".join(d for d in INTEGERS if d not in holds)


def _integers() -> None:
    cvt(f"dtype={ALL_INTEGERS} atype={ALL_INTEGERS}", lower="cvt.int", flags="specials")
    for source in INTEGERS:
        if targets := _saturable(source):
            cvt(f"sat dtype={targets} atype={source}", lower="cvt.int", flags="specials")
    cvt("pack sat dtype=u16,s16 atype=s32", TWO, lower="cvt.pack", flags="integer", ptx="6.5", sm=72)
    cvt("pack sat dtype=u8,s8 atype=s32 ctype=b32", TWO + ", c:b32", lower="cvt.pack", flags="integer", ptx="6.5", sm=72)
    cvt("pack sat dtype=u2,s2,u4,s4 atype=s32 ctype=b32", TWO + ", c:b32", lower="cvt.pack", flags="integer", ptx="6.5", sm=75)


def _integers_and_floats() -> None:
    cvt(f"{FLOAT_ROUND} sat? dtype=f16,f64 atype={ALL_INTEGERS}", lower="cvt.int_to_float")
    cvt(f"{INTEGER_ROUND} sat? dtype={ALL_INTEGERS} atype=f16,f64", lower="cvt.float_to_int")
    cvt(f"{FLOAT_ROUND} dtype=bf16 atype={WORDS}", lower="cvt.int_to_float", ptx="7.8", sm=90)
    cvt(f"{INTEGER_ROUND} dtype={WORDS} atype=bf16", lower="cvt.float_to_int", ptx="7.8", sm=90)
    cvt(f"{FLOAT_ROUND} ftz? sat? dtype=f32 atype={ALL_INTEGERS}", lower="cvt.int_to_float")
    cvt(f"{INTEGER_ROUND} ftz? sat? dtype={ALL_INTEGERS} atype=f32", lower="cvt.float_to_int", does="any nan")


def _floats() -> None:
    cvt("ftz? sat? dtype=f32 atype=f32", lower="cvt.float")
    cvt(f"{INTEGER_ROUND} ftz? sat? dtype=f32 atype=f32", lower="cvt.float")
    for t, sm in (("f16", 10), ("f64", 13)):
        cvt(f"round?=rni,rzi,rmi,rpi sat? dtype={t} atype={t}", lower="cvt.float", sm=sm)
    cvt("ftz? sat? dtype=f32 atype=f16", lower="cvt.float")
    cvt("sat? dtype=f64 atype=f16", lower="cvt.float", sm=13)
    cvt("ftz? sat? dtype=f64 atype=f32", lower="cvt.float", sm=13)
    cvt(f"{FLOAT_ROUND} ftz? sat? dtype=f32 atype=f64", lower="cvt.float", sm=13)
    cvt(f"{FLOAT_ROUND} ftz? sat? dtype=f16 atype=f32", lower="cvt.float")
    cvt(f"{FLOAT_ROUND} sat? dtype=f16 atype=f64", lower="cvt.float", sm=13)


def _brain_floats() -> None:
    cvt("ftz? dtype=f32 atype=bf16", lower="cvt.float", ptx="7.1", sm=80)
    cvt(f"{FLOAT_ROUND} ftz? dtype=f32 atype=bf16", lower="cvt.float", ptx="7.1", sm=80)
    cvt(f"{NEAR_ROUND} satfinite dtype=f16 atype=f32", lower="cvt.float", ptx="8.1", sm=70)
    cvt(f"{NEAR_ROUND} relu satfinite? dtype=f16 atype=f32", lower="cvt.float", ptx="7.0", sm=80)
    cvt(f"{NEAR_ROUND} relu? satfinite? dtype=bf16 atype=f32", lower="cvt.float", ptx="7.0", sm=80)
    cvt(f"{FLOAT_ROUND} ftz? dtype=bf16 atype=f32", lower="cvt.float", ptx="7.0", sm=80)
    cvt(f"{FLOAT_ROUND} dtype=bf16 atype=f16,f64", lower="cvt.float", ptx="7.8", sm=90)
    cvt(f"{FLOAT_ROUND} dtype=f16 atype=bf16", lower="cvt.float", ptx="7.8", sm=90)
    cvt("round?=rn,rz,rm,rp dtype=f64 atype=bf16", lower="cvt.float", ptx="7.8", sm=90)
    cvt("round?=rni,rzi,rmi,rpi dtype=bf16 atype=bf16", lower="cvt.float", ptx="7.8", sm=90)
    cvt(f"{NEAR_ROUND} relu? satfinite? dtype=f16x2,bf16x2 atype=f32", PAIR, lower="cvt.pair", ptx="7.0", sm=80)


def _tensor_floats() -> None:
    cvt("round=rna satfinite? dtype=tf32 atype=f32", lower="cvt.tf32", ptx="7.0", sm=80)
    cvt(f"{NEAR_ROUND} relu? dtype=tf32 atype=f32", lower="cvt.tf32", ptx="7.8", sm=90)
    cvt(f"{NEAR_ROUND} satfinite relu? dtype=tf32 atype=f32", lower="cvt.tf32", ptx="8.6", sm=100)


def _narrow_floats() -> None:
    """The formats of eight bits and fewer, always in pairs."""
    newer = partial(cvt, sm=100, flags="accelerated")
    for types, ptx, sm, flags in ((EIGHT, "7.8", 89, "ada"), (SMALL, "8.6", 100, "accelerated")):
        cvt(f"round=rn satfinite relu? dtype={types} atype=f32", PAIR, lower="cvt.to_narrow", ptx=ptx, sm=sm, flags=flags)
        cvt(f"round=rn relu? dtype=f16x2 atype={types}", lower="cvt.from_narrow", ptx=ptx, sm=sm, flags=flags)
    cvt(f"round=rn satfinite relu? dtype={EIGHT} atype=f16x2", lower="cvt.to_narrow", ptx="7.8", sm=89, flags="ada")
    for pair, source in ((SMALL, "f16x2"), (NARROW, "bf16x2")):
        newer(f"round=rn satfinite relu? dtype={pair} atype={source}", lower="cvt.to_narrow", ptx="9.1")
    newer(f"round=rn satfinite? relu? dtype=bf16x2 atype={NARROW}", lower="cvt.from_narrow", ptx="9.2")
    newer(f"round=rn satfinite? relu? {SCALED} dtype=bf16x2 atype={NARROW}", f"{ONE}, e.whole:b16", lower="cvt.from_narrow",
          ptx="9.2", bits=UNCHECKED)  # fmt: skip
    scale = partial(newer, ptx="8.6")
    scale("round=rz,rp satfinite? dtype=ue8m0x2 atype=f32", PAIR, lower="cvt.to_scale")
    scale("round=rz,rp satfinite? dtype=ue8m0x2 atype=bf16x2", "d:dtype, a:b32", lower="cvt.to_scale")
    scale("round=rn dtype=bf16x2 atype=ue8m0x2", "d:b32, a:atype", lower="cvt.from_scale")


def _fixed_point() -> None:
    """s2f6, with scale factors or without."""
    fixed = partial(cvt, ptx="9.1", sm=100, flags="accelerated specific", bits=UNCHECKED)
    cut = partial(fixed, ptx="9.4", sm=107, flags="accelerated specific rubin")
    for scaled, scales in (("", ""), (SCALED, ", e.whole:b16")):
        for operands, source in ((PAIR, "f32"), (ONE, "bf16x2")):
            for add, mode in ((fixed, "rn"), (cut, "rz")):
                add(f"round={mode} satfinite relu? {scaled} dtype=s2f6x2 atype={source}", operands + scales, lower="cvt.to_fixed")
        fixed(f"round=rn satfinite? relu? {scaled} dtype=bf16x2 atype=s2f6x2", ONE + scales, lower="cvt.from_fixed")


def _rubin() -> None:
    """What sm_107 has: ue5m3, narrow floats that are cut, one scale factor for both, no negative zeros."""
    rubin = partial(cvt, sm=107, ptx="9.4", flags="accelerated rubin")
    for operands, source in ((PAIR, "f32"), (ONE, "f16x2,bf16x2")):
        pair = partial(rubin, lower="cvt.to_narrow")
        pair(f"round=rz satfinite relu? pzo? dtype={NARROW} atype={source}", operands)
        pair(f"round=rn satfinite relu? pzo dtype={NARROW} atype={source}", operands)
        scaled = partial(pair, operands=f"{operands}, e.whole:b8", bits=UNCHECKED)
        scaled(f"round=rn,rz satfinite relu? pzo? {SCALED_ALIKE} dtype={NARROW} atype={source}")
        pair(f"round=rn,rz,rp satfinite? dtype=ue5m3x2 atype={source}", operands, bits=UNCHECKED)
        scaled(f"round=rn,rz satfinite? {SCALED_ALIKE} dtype=ue5m3x2 atype={source}")
    wider = partial(rubin, lower="cvt.from_narrow")
    wider("round=rn dtype=f16x2 atype=ue5m3x2")
    wider("round=rn satfinite? dtype=bf16x2 atype=ue5m3x2")
    wider(f"round=rn satfinite? {SCALED} dtype=bf16x2 atype=ue5m3x2", f"{ONE}, e.whole:b16", bits=UNCHECKED)
    rubin(f"{NEAR_ROUND} relu? satfinite? pzo dtype=f16x2,bf16x2 atype=f32", PAIR, lower="cvt.pair")
    rubin(f"{NEAR_ROUND} relu? satfinite? pzo dtype=f16,bf16 atype=f32", lower="cvt.float")
    rubin(f"{FLOAT_ROUND} pzo dtype=f16 atype=f32", lower="cvt.float")
    rubin(f"{FLOAT_ROUND} ftz? pzo dtype=bf16 atype=f32", lower="cvt.float")
    rubin(f"{NEAR_ROUND} satfinite? relu? pzo dtype=tf32 atype=f32", lower="cvt.tf32")


def _stochastic() -> None:
    rounded = partial(cvt, ptx="8.7", sm=100, flags="accelerated blackwell")
    rounded("round=rs relu? satfinite? dtype=f16x2,bf16x2 atype=f32", PAIR + ", e:random", lower="cvt.stochastic")
    # How four elements share the random bits was measured of some formats.
    for quads, bits in (("e4m3x4,e5m2x4,e2m1x4", MEASURED), ("e2m3x4,e3m2x4", UNCHECKED)):
        four = partial(rounded, lower="cvt.stochastic_quad", bits=bits)
        four(f"round=rs satfinite relu? dtype={quads} atype=f32", "d:dtype, a:atype*4, e:random")


_integers()
_integers_and_floats()
_floats()
_brain_floats()
_tensor_floats()
_narrow_floats()
_fixed_point()
_rubin()
_stochastic()

traits("relaxed specials assembles", "cvt")
name_words("pack", "cvt")
