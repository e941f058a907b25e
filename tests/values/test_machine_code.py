"""The model of machine code, with which ``tests.clients.machine_code`` judges what ptxemu computes, and what was found so."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.elementwise_oracle import F32, F64, arithmetic, float_edges, random_bits
from tests.support.machine import conversions, floats, halves, integers, special  # noqa: F401, for their instructions
from tests.support.machine.text import functions
from tests.support.machine.thread import NotModelled, Thread

# What ptxas 13.5 makes of sqrt.rp.f32 for sm_80: branches, a call, directed rounding, and a function of the hardware.
SQUARE_ROOT = """
.text.f0:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   LDS R0, [0x10] ;
        /*0020*/                   IADD3 R2, R0, -0xd000000, RZ ;
        /*0030*/                   ISETP.GT.U32.AND P0, PT, R2, 0x727fffff, PT ;
        /*0040*/              @!P0 BRA `(.L_x_119) ;
        /*0050*/                   MOV R4, 0x70 ;
        /*0060*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_sqrt_ru_f32_slowpath) ;
        /*0070*/                   MOV R2, R0 ;
        /*0080*/                   BRA `(.L_x_120) ;
.L_x_119:
        /*0090*/                   MUFU.RSQ R3, R0 ;
        /*00a0*/                   FMUL.FTZ R5, R0, R3 ;
        /*00b0*/                   FMUL.FTZ R3, R3, 0.5 ;
        /*00c0*/                   FADD.FTZ R2, -R5, -RZ ;
        /*00d0*/                   FFMA R2, R5, R2, R0 ;
        /*00e0*/                   FFMA.RP R2, R2, R3, R5 ;
.L_x_120:
        /*00f0*/                   STS [0x800], R2 ;
        /*0100*/                   EXIT ;
$__internal_0_$__cuda_sm20_sqrt_ru_f32_slowpath:
        /*0110*/                   LOP3.LUT P0, RZ, R0, 0x7fffffff, RZ, 0xc0, !PT ;
        /*0120*/              @!P0 MOV R2, R0 ;
        /*0130*/              @!P0 BRA `(.L_x_121) ;
        /*0140*/                   FSETP.GEU.FTZ.AND P0, PT, R0, RZ, PT ;
        /*0150*/              @!P0 MOV R2, 0x7fffffff ;
        /*0160*/              @!P0 BRA `(.L_x_121) ;
        /*0170*/                   FSETP.GTU.FTZ.AND P0, PT, |R0|, +INF , PT ;
        /*0180*/               @P0 FADD.FTZ R2, R0, 1 ;
        /*0190*/               @P0 BRA `(.L_x_121) ;
        /*01a0*/                   FSETP.NEU.FTZ.AND P0, PT, |R0|, +INF , PT ;
        /*01b0*/              @!P0 MOV R2, R0 ;
        /*01c0*/              @!P0 BRA `(.L_x_121) ;
        /*01d0*/                   FFMA R0, R0, 1.84467440737095516160e+19, RZ ;
        /*01e0*/                   MUFU.RSQ R3, R0 ;
        /*01f0*/                   FMUL.FTZ R5, R0, R3 ;
        /*0200*/                   FMUL.FTZ R3, R3, 0.5 ;
        /*0210*/                   FADD.FTZ R2, -R5, -RZ ;
        /*0220*/                   FFMA R2, R5, R2, R0 ;
        /*0230*/                   FFMA.RP R2, R2, R3, R5 ;
        /*0240*/                   FMUL.FTZ R2, R2, 2.3283064365386962891e-10 ;
.L_x_121:
        /*0250*/                   HFMA2.MMA R3, -RZ, RZ, 0, 0 ;
        /*0260*/                   MOV R0, R2 ;
        /*0270*/                   MOV R2, R4 ;
        /*0280*/                   RET.REL.NODEC R2 `(f0) ;
"""
NEGATED = """
.text.f0:
        /*0000*/                   LDS R0, [0x10] ;
        /*0010*/                   {} ;
        /*0020*/                   STS [0x800], R0 ;
        /*0030*/                   EXIT ;
"""
OPERANDS = [int(bits) for bits in (*float_edges(F32), *random_bits(32, 200))]


def machine(listing: str, operand: int) -> int:
    ((_, function),) = functions(listing)
    shared = bytearray(4096)
    shared[16:20] = operand.to_bytes(4, "little")
    Thread(function, shared, {}).run()
    return int.from_bytes(shared[2048:2052], "little")


def test_roots_of_machine_code_are_rounded() -> None:
    """The sequence is right only if all of its instructions are modelled right."""
    for operand in OPERANDS:
        assert machine(SQUARE_ROOT, operand) == arithmetic("sqrt", F32, (operand,), "rp"), hex(operand)


@pytest.mark.parametrize(
    "text", ["FADD3 R0, R0, R0", "FADD.QUICK R0, R0, R0", "FADD R0, R0.H1, R0", "IADD3 R0, SR_CLOCK, R0, RZ"]
)
def test_what_is_not_modelled_is_said(text: str) -> None:
    with pytest.raises(NotModelled):
        machine(NEGATED.format(text), 0)


def computed(instruction: str, operands: np.ndarray) -> np.ndarray:
    """An instruction on the bits of floats, whose result is stored."""
    bits = operands.dtype.itemsize * 8
    text = f""".version 8.8\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 a, .param .u64 d)
{{
  .reg .b32 %i; .reg .b{bits} %x, %y; .reg .b64 %o, %p;
  mov.u32 %i, %tid.x; mul.wide.u32 %o, %i, {bits // 8};
  ld.param.u64 %p, [a]; add.u64 %p, %p, %o; ld.global.b{bits} %x, [%p];
  {instruction} %y, %x;
  ld.param.u64 %p, [d]; add.u64 %p, %p, %o; st.global.b{bits} [%p], %y;
  ret;
}}
"""
    results = np.zeros_like(operands)
    ptxemu.loads(text)["k"][1, len(operands)](operands, results)
    return results


@pytest.mark.parametrize(
    ("instruction", "listed"),
    [("neg.f32", "FADD R0, -R0, -RZ"), ("abs.f32", "FADD R0, |R0|, -RZ"), ("neg.ftz.f32", "FADD.FTZ R0, -R0, -RZ"),
     ("abs.ftz.f32", "FADD.FTZ R0, |R0|, -RZ"), ("cvt.f32.f32", "NOP"), ("cvt.ftz.f32.f32", "FADD.FTZ R0, R0, -RZ")],
)  # fmt: skip
def test_signs_and_moves_are_those_of_machine_code(instruction: str, listed: str) -> None:
    """A stored sign is that of a sum, whose NaN is the canonical one; a conversion that changes nothing keeps a NaN."""
    operands = np.array(OPERANDS, np.uint32)
    wanted = [machine(NEGATED.format(listed), operand) for operand in OPERANDS]
    np.testing.assert_array_equal(computed(instruction, operands), np.array(wanted, np.uint32))


def test_reciprocal_roots_of_doubles_are_one_step_from_an_estimate() -> None:
    """The step, in exact arithmetic, from both estimates of 20 bits that are next to the root."""
    operands = np.random.default_rng(5).uniform(1.0, 4.0, 256)
    got = computed("rsqrt.approx.f64", operands.view(np.uint64))
    for bits, result in zip(operands.view(np.uint64).tolist(), got.tolist(), strict=True):
        exact = arithmetic("rcp", F64, (arithmetic("sqrt", F64, (bits,)),))
        assert result in {_stepped(bits, (exact >> 32) + above << 32) for above in (0, 1)}


def _stepped(x: int, y: int) -> int:
    half, factor = 0x3FE0000000000000, 0x3FD8000000000000
    square = arithmetic("mul", F64, (y, y))
    error = arithmetic("fma", F64, (x, square ^ F64.sign, F64.one))
    return arithmetic("fma", F64, (arithmetic("fma", F64, (error, factor, half)), arithmetic("mul", F64, (y, error)), y))
