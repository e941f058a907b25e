"""Words from a place for each lane, where the processor has no good instruction for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.support.processors import without_avx512


def text(bits: int) -> str:
    """Each of the threads that an array chooses reads the word at an index."""
    size, register = bits // 8, "%r7" if bits == 32 else "%rd7"
    body = f"""ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [indexes]; ld.param.u64 %rd4, [on];
    mul.wide.u32 %rd5, %r0, 4; add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5;
    ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p1, %r5, 0; @%p1 bra E;
    ld.global.s32 %r6, [%rd3]; mul.wide.s32 %rd6, %r6, {size}; add.u64 %rd6, %rd6, %rd2; ld.global.u{bits} {register}, [%rd6];
    mul.wide.u32 %rd5, %r0, {size}; add.u64 %rd1, %rd1, %rd5; st.global.u{bits} [%rd1], {register}; E:"""
    return kernel(GLOBAL_INDEX + body, ".param .u64 out, .param .u64 words, .param .u64 indexes, .param .u64 on")


@pytest.mark.parametrize(("cpu", "count"), [("x86-64-v3", 1), ("x86-64-v4", 0)])
def test_code(cpu: str, count: int) -> None:
    code = str(compile.emit(compile.front(text(32)), "k", compile.Options(cpu=cpu), "llvm"))
    assert code.count("call void @lanes.gather.32") == count


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("chosen", ["all", "some", "none"])
def test_values(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bits: int, chosen: str) -> None:
    without_avx512(monkeypatch, tmp_path)
    random, threads = np.random.default_rng(bits), 128
    words = random.integers(0, 1 << bits, 1000, dtype=f"u{bits // 8}")
    indexes = random.integers(0, len(words), threads, dtype=np.int32)
    on = {"all": np.ones(threads), "some": random.integers(0, 2, threads), "none": np.zeros(threads)}[chosen].astype(np.uint32)
    indexes[on == 0] = 1 << 30  # where nothing is
    out = np.zeros(threads, words.dtype)
    ptxemu.loads(text(bits))["k"][2, threads // 2](out, words, indexes, on)
    np.testing.assert_array_equal(out, np.where(on == 1, words[np.where(on == 1, indexes, 0)], 0))


def test_a_wild_index_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_avx512(monkeypatch, tmp_path)
    indexes = np.arange(32, dtype=np.int32)[::-1].copy()
    indexes[7] = 1 << 30
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        ptxemu.loads(text(32))["k"][1, 32](np.zeros(32, np.uint32), np.zeros(32, np.uint32), indexes, np.ones(32, np.uint32))
