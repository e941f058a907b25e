"""The lesser and the greater of two f32, of every kind, wherever they come from: zeros have signs, and any NaN loses."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel, run
from tests.support.processors import without_avx512

KINDS = np.array(
    [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000,
     0x7F800001, 0xFF800001, 0x7FA00000, 0x7FC00000, 0xFFC00000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32,
)  # fmt: skip
PAIRS = np.array(list(product(KINDS, KINDS)), np.uint32)
SAME = "add.f32 {0}, {0}, 0f80000000;"
FORMS = {
    "loaded": "{op} %f3, %f1, %f2;",
    "computed": f"{SAME.format('%f1')} {SAME.format('%f2')} {{op}} %f3, %f1, %f2;",
    "computed and loaded": f"{SAME.format('%f1')} {{op}} %f3, %f1, %f2;",
    "loaded and computed": f"{SAME.format('%f2')} {{op}} %f3, %f1, %f2;",
    "in turn": "{op} %f3, %f1, %f2; {op} %f3, %f3, %f2; {op} %f3, %f1, %f3;",
}


def text(op: str, form: str, one: bool) -> str:
    """``one``: of a single lane, after a while."""
    alone = "and.b32 %r5, %r60, 31; setp.ne.u32 %p1, %r5, 7; @%p1 bra END;" if one else ""
    return kernel(
        f"""{GLOBAL_INDEX}
  ld.param.u64 %rd1, [pairs]; ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r0, 8; add.u64 %rd3, %rd1, %rd3;
  mul.wide.u32 %rd4, %r0, 4; add.u64 %rd4, %rd2, %rd4; setp.ge.u32 %p2, %r0, {len(PAIRS)}; @%p2 bra END;
  ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd3+4]; {alone}
  {FORMS[form].format(op=op)} st.global.f32 [%rd4], %f3; END:""",
        ".param .u64 pairs, .param .u64 out",
    )


def wanted(greater: bool, ftz: bool) -> np.ndarray:
    bits = PAIRS.copy()
    if ftz:
        bits = np.where(bits & 0x7F800000, bits, bits & 0x80000000)
    nan = bits & 0x7FFFFFFF > 0x7F800000
    order = np.where(bits >> 31, ~bits, bits | 0x80000000)  # as integers, and -0 before +0
    a, b = bits.T
    second = (order[:, 1] > order[:, 0]) == greater
    found = np.where(nan[:, 0], b, np.where(nan[:, 1] | ~second, a, b))
    return np.where(nan.all(axis=1), 0x7FFFFFFF, found).astype(np.uint32)


@pytest.fixture(params=["this processor", "without AVX-512"])
def processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if request.param != "this processor":
        without_avx512(monkeypatch, tmp_path)


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ftz", ["", ".ftz"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_every_pair(name: str, ftz: str, form: str, one: bool) -> None:
    out = np.zeros(len(PAIRS), np.uint32)
    run(text(f"{name}{ftz}.f32", form, one), 12, 32, PAIRS, out)
    there = np.arange(len(PAIRS)) % 32 == 7 if one else np.full(len(PAIRS), True)
    np.testing.assert_array_equal(out, np.where(there, wanted(name == "max", bool(ftz)), 0))


def test_what_is_chosen_from_is_made_quiet_once() -> None:
    code = str(compile.emit(compile.front(text("max.f32", "in turn", one=False)), "k", compile.Options(cpu="x86-64-v4"), "asm"))
    assert code.count("vrangeps") == 12  # in two versions of the block, three times in each half of the warp
    assert code.count("vmulps") == 8  # of what is loaded alone
