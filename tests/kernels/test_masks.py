"""Masks and predicates that are kept as bits."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel


def test_masks_do_not_come_bit_by_bit():
    """What a warp takes along past a barrier: a predicate, and lanes that have not exited."""
    body = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 4; setp.gt.u32 %p2, %r1, 90;
  @%p2 bra OVER; bar.sync 0; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; mov.u32 %r3, 9; @%p1 bra ON; bra DONE;
ON:
  ld.global.u32 %r3, [%rd1];
DONE:
  st.global.u32 [%rd1], %r3;
OVER:"""
    text, lanes, out = kernel(body), np.arange(96), np.full(96, 7, "u4")
    code = compile.emit(compile.front(text), "k", compile.Options(cpu="x86-64-v3"), "asm")
    assert "vpinsrb" not in str(code)
    ptxemu.loads(text)["k"][1, 96](out)
    assert np.array_equal(out, np.where((lanes & 5 == 4) | (lanes > 90), 7, 9))


COMPARED = {"u32": (np.uint32, "r"), "s64": (np.int64, "rd"), "f32": (np.float32, "f"), "f64": (np.float64, "d")}


def ballots(type: str, comparison: str) -> str:
    """The lanes in which words lie in some order with 5, of all or of some lanes; and each lane's, which a branch asks for."""
    kind, register = COMPARED[type]
    size, bound = kind().itemsize, {"f32": "0f40A00000", "f64": "0d4014000000000000"}.get(type, "5")
    return kernel(
        f"""
  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r5, 0; mov.u32 %r6, 0;
  mul.wide.u32 %rd3, %r1, {size}; add.u64 %rd1, %rd1, %rd3; mul.wide.u32 %rd3, %r1, 8; add.u64 %rd2, %rd2, %rd3;
  ld.global.{type} %{register}11, [%rd1];
  setp.{comparison}.{type} %p1, %{register}11, {bound};
  vote.sync.ballot.b32 %r5, %p1, %r9; @!%p1 bra OTHERS; add.u32 %r6, %r1, 1;
OTHERS:
  st.global.v2.u32 [%rd2], {{%r5, %r6}};""".replace("%r9", "-1"),
        ".param .u64 words, .param .u64 out",
    )


@pytest.mark.parametrize("comparison", ["lt", "eq", "ge"])
@pytest.mark.parametrize("type", COMPARED)
def test_the_bits_of_comparisons(type: str, comparison: str) -> None:
    kind, _ = COMPARED[type]
    random, compare = np.random.default_rng(5), {"lt": np.less, "eq": np.equal, "ge": np.greater_equal}[comparison]
    k = ptxemu.loads(ballots(type, comparison))["k"]
    for _ in range(20):
        words = random.integers(4, 7, 64).astype(kind)
        out = np.zeros((64, 2), np.uint32)
        k[1, 64](words, out)
        found = compare(words, 5)
        wanted = np.packbits(found, bitorder="little").view(np.uint32)
        np.testing.assert_array_equal(out[:, 0], np.repeat(wanted, 32))
        np.testing.assert_array_equal(out[:, 1], np.where(found, np.arange(1, 65), 0))


@pytest.mark.parametrize("type", COMPARED)
def test_bits_are_put_in_order_once(type: str) -> None:
    text = ballots(type, "lt").replace("@!%p1 bra OTHERS; add.u32 %r6, %r1, 1;", "")
    code = str(compile.emit(compile.front(text), "k", compile.Options(cpu="x86-64-v3"), "asm"))
    assert code.count("vpacksswb") == 1 and code.count("vperm") == 1
