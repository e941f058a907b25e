"""Approximate functions of an architecture that is asked for have the bits of the hardware.

``tests/data/mufu.npz`` has what bcarlet/ptx-math (MIT) makes of some thousand operands, a model that its author found to agree
with sm_70 and sm_75 in all 2**32, as it does with an NVIDIA H200 (sm_90); ``tests/fuzz/functions.py`` compares them all.
``tests/data/h200.npz`` has words of that H200 for ``tanh`` and f64.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.places import DATA

FUNCTIONS = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos")
DIVISIONS = ("div.approx", "div.full", "div.approx.ftz", "div.full.ftz")
WORDS = dict(np.load(DATA / "mufu.npz"))
HARDWARE = np.load(DATA / "h200.npz")
HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
CANONICAL_NAN = 0x7FFFFFFF
Array = np.ndarray


def module_text() -> str:
    """A kernel for each instruction: ``d[i] = f(a[i], b[i])``."""
    names = [*(f"{name}.approx{ftz}" for name in FUNCTIONS for ftz in ("", ".ftz")), "tanh.approx", *DIVISIONS]
    return HEAD + "".join(kernel(name) for name in names)


def kernel(name: str) -> str:
    operands = "%x, %y" if name.startswith("div") else "%x"
    return f""".visible .entry {name.replace(".", "_")}(.param .u64 a, .param .u64 b, .param .u64 d)
{{
  .reg .b32 %i, %t; .reg .f32 %x, %y, %z; .reg .b64 %o, %p;
  mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, 256, %t; mul.wide.u32 %o, %i, 4;
  ld.param.u64 %p, [a]; add.u64 %p, %p, %o; ld.global.f32 %x, [%p];
  ld.param.u64 %p, [b]; add.u64 %p, %p, %o; ld.global.f32 %y, [%p];
  {name}.f32 %z, {operands};
  ld.param.u64 %p, [d]; add.u64 %p, %p, %o; st.global.f32 [%p], %z;
  ret;
}}
"""


def run(name: str, a: Array, b: Array, **options: object) -> Array:
    """Bit patterns of bit patterns."""
    d = np.zeros(len(a), np.float32)
    module = ptxemu.loads(module_text(), **({"like": "sm_80"} | options))  # type: ignore[arg-type]
    module[name.replace(".", "_")][len(a) // 256, 256](a.view(np.float32), b.view(np.float32), d)
    return d.view(np.uint32)


def flushed(bits: Array) -> Array:
    return np.where(bits & 0x7F800000 == 0, bits & 0x80000000, bits).astype(np.uint32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_words_of_the_hardware(name: str) -> None:
    operands = WORDS["operands"]
    np.testing.assert_array_equal(run(f"{name}.approx", operands, operands), WORDS[name])


def test_words_of_the_hyperbolic_tangent() -> None:
    operands = HARDWARE["tanh/operands"]
    np.testing.assert_array_equal(run("tanh.approx", operands, operands, like="sm_90"), HARDWARE["tanh/words"])


@pytest.mark.parametrize("name", ["rcp", "rsqrt"])
def test_upper_words_of_doubles(name: str) -> None:
    """Whatever the lower words are; those of results are 0."""
    upper = HARDWARE[f"{name}64/operands"]
    operands = upper.astype(np.uint64) << 32 | np.random.default_rng(3).integers(0, 1 << 32, len(upper), np.uint64)
    results = np.zeros_like(operands)
    text = kernel(f"{name}.approx.ftz").replace("i, 4;", "i, 8;").replace("f32", "f64")
    module = ptxemu.loads(HEAD + text, like="sm_90")
    module[f"{name}_approx_ftz"][len(upper) // 256, 256](operands, operands, results)
    np.testing.assert_array_equal(results, HARDWARE[f"{name}64/words"].astype(np.uint64) << 32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_flushing_takes_zeros_and_leaves_the_rest(name: str) -> None:
    """Where neither operand nor result is subnormal, and the operand is not scaled, it is the same instruction."""
    operands = WORDS["operands"]
    got, whole = run(f"{name}.approx.ftz", operands, operands), WORDS[name]
    zeros = run(f"{name}.approx", flushed(operands), operands)
    plain = (flushed(operands) == operands) & (flushed(whole) == whole)
    if name == "ex2":
        plain &= ~(operands.view(np.float32) < -126)
    np.testing.assert_array_equal(got[plain], whole[plain])
    subnormal = flushed(operands) != operands
    np.testing.assert_array_equal(got[subnormal], zeros[subnormal])
    assert np.all(flushed(got) == got)


@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_multiply_by_a_reciprocal(name: str) -> None:
    """By the machine code that NVIDIA's assembler makes, on reciprocals that the first test has compared."""
    a, b = WORDS["operands"], np.roll(WORDS["operands"], 1)
    flush = flushed if name.endswith("ftz") else np.copy
    x, y = flush(a).view(np.float32), flush(b).view(np.float32)
    scale = np.ones(len(a), np.float32)
    with np.errstate(all="ignore"):
        if ".full" in name:
            scale[np.abs(y) > np.float32(2.0**126)] = 0.25
        if not name.endswith("ftz"):
            scale[np.abs(y) < np.float32(2.0**-126)] = 2.0**24
        divisor = (y * scale).view(np.uint32)
        quotient = run("rcp.approx.ftz", divisor, divisor).view(np.float32) * (x * scale)
    want = flush(np.where(np.isnan(quotient), CANONICAL_NAN, quotient.view(np.uint32)).astype(np.uint32))
    np.testing.assert_array_equal(run(name, a, b), want)


def test_both_engines_agree() -> None:
    operands = WORDS["operands"][:256]
    with ptxemu.Device(memory="64 MiB", engine="interpreter") as device:
        for name in (*(f"{function}.approx" for function in (*FUNCTIONS, "tanh")), *DIVISIONS):
            other = np.roll(operands, 1)
            np.testing.assert_array_equal(run(name, operands, other, device=device), run(name, operands, other))


def test_only_who_asks_gets_them() -> None:
    """By default polynomials, which are faster and closer to the function."""
    operands = WORDS["operands"]
    got = run("ex2.approx", operands, operands, like="")
    assert np.mean(got == WORDS["ex2"]) < 0.9
    np.testing.assert_array_equal(run("ex2.approx", operands, operands, like="exact"), got)
