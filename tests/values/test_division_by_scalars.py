"""Quotients and remainders where all lanes have one divisor, of which the code makes one reciprocal, against exact arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support import processors
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

ENDS = [0, 1, 2, 3, 5, 7, 10, 12345, 65535, 65536, 65537, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 2, (1 << 32) - 1]
TYPES = {"u32": np.uint32, "s32": np.int32}


def text(type: str) -> str:
    return kernel(
        GLOBAL_INDEX
        + f"""
  ld.param.u64 %rd1, [numbers]; ld.param.u64 %rd2, [out]; ld.param.{type} %r2, [divisor]; mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3; add.u64 %rd2, %rd2, %rd3; ld.global.{type} %r1, [%rd1];
  div.{type} %r3, %r1, %r2; rem.{type} %r4, %r1, %r2; st.global.v2.u32 [%rd2], {{%r3, %r4}};""",
        ".param .u64 numbers, .param .u64 out, .param .u32 divisor",
    )


def expected(numbers: np.ndarray, divisor: int, type: str) -> np.ndarray:
    """Quotients are rounded toward zero; the lowest integer by -1 is itself, and what is divided by zero is all ones."""
    wide = numbers.astype(TYPES[type]).astype(np.int64)
    by = int(np.uint32(divisor).astype(TYPES[type]))
    if by == 0:
        return np.full((len(numbers), 2), -1, np.int64).astype(np.uint32)
    quotients = np.sign(wide) * np.sign(by) * (abs(wide) // abs(by))
    return np.stack([quotients, wide - quotients * by], axis=1).astype(np.uint32)


@pytest.mark.parametrize("type", TYPES)
def test_quotients_and_remainders(type: str) -> None:
    random = np.random.default_rng(5)
    launch = ptxemu.loads(text(type), tier="best")["k"]
    divisors = ENDS + [int(value) for value in random.integers(1, 1 << 32, 60) >> random.integers(0, 32, 60)]
    for divisor in divisors:
        multiples = np.arange(1, 400, dtype=np.uint64) * np.uint64(max(divisor, 1))
        near = np.concatenate([multiples - np.uint64(1), multiples, multiples + np.uint64(1)])
        numbers = np.concatenate([ENDS, random.integers(0, 1 << 32, 800), near]).astype(np.uint64).astype(np.uint32)
        numbers = np.resize(numbers, 64 * 32)
        out = np.zeros((len(numbers), 2), np.uint32)
        launch[32, 64](numbers, out, np.uint32(divisor))
        np.testing.assert_array_equal(out, expected(numbers, divisor, type), f"by {divisor}")


@pytest.mark.parametrize("type", TYPES)
def test_on_other_processors(type: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    processors.without_avx512(monkeypatch, tmp_path)
    test_quotients_and_remainders(type)


def test_there_is_one_reciprocal() -> None:
    code = str(compile.emit(compile.front(text("u32")), "k", compile.Options(cpu="x86-64-v4"), "asm"))
    assert "vdivsd" in code and "vdivpd" not in code
