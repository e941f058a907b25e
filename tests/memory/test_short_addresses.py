"""Addresses of constants and parameters in registers of 32 bits, as LLVM makes them with ``nvptx-short-ptr``."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel

TABLE = np.arange(100, 164, dtype=np.uint32)
DECLARED = f".const .align 16 .b32 table[64] = {{{', '.join(map(str, TABLE))}}};"
PARAMETERS = ".param .u64 out, .param .align 16 .b8 pack[64], .param .u32 n"
THREAD = "ld.param.u64 %rd0, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd0, %r1, 4, %rd0;"
ENGINES = [{"engine": "jit"}, {"engine": "interpreter"}, {"engine": "jit", "host_memory": True}]


def run(body: str, **options: object) -> np.ndarray:
    """What 48 threads store."""
    device = ptxemu.Device(memory="16 MiB", **options)  # type: ignore[arg-type]
    module = ptxemu.loads(kernel(f"{THREAD}\n{body}\nst.global.u32 [%rd0], %r9; ret;", PARAMETERS, DECLARED), device=device)
    out = np.zeros(48, np.uint32)
    module["k"][1, 48](out, np.arange(16, dtype=np.uint32).tobytes(), 7)
    return out


LANES = np.arange(48)
BODIES = {
    "uniform": ("mov.b32 %r2, table; ld.const.u32 %r9, [%r2+12];", TABLE[[3] * 48]),
    "pattern": ("mov.b32 %r2, table; mad.lo.u32 %r2, %r1, 4, %r2; ld.const.u32 %r9, [%r2+4];", TABLE[LANES + 1]),
    "behind": ("mov.b32 %r2, table; mad.lo.u32 %r2, %r1, 4, %r2; sub.u32 %r2, %r2, 4; setp.ne.u32 %p1, %r1, 0;"
               "mov.u32 %r9, 5; @%p1 ld.const.u32 %r9, [%r2];", np.where(LANES, TABLE[LANES - 1], 5)),
    "varying": ("mov.b32 %r2, table; mul.lo.u32 %r3, %r1, 5; and.b32 %r3, %r3, 63; mad.lo.u32 %r2, %r3, 4, %r2;"
                "ld.const.u32 %r9, [%r2];", TABLE[LANES * 5 % 64]),
    "vector": ("mov.b32 %r2, table; mov.u32 %r3, %tid.x; and.b32 %r3, %r3, 15; mad.lo.u32 %r2, %r3, 16, %r2;"
               "ld.const.v4.u32 {%r4, %r5, %r6, %r7}, [%r2]; add.u32 %r9, %r4, %r7;",
               TABLE[LANES % 16 * 4] + TABLE[LANES % 16 * 4 + 3]),
    "parameter": ("mov.b32 %r2, pack; and.b32 %r3, %r1, 15; mad.lo.u32 %r2, %r3, 4, %r2; ld.param.u32 %r9, [%r2];", LANES % 16),
    "scalar": ("mov.b32 %r2, n; ld.param.u32 %r9, [%r2];", [7] * 48),
    "generic": ("mov.b32 %r2, table; cvt.u64.u32 %rd2, %r2; cvta.const.u64 %rd3, %rd2; mad.wide.u32 %rd3, %r1, 4, %rd3;"
                "ld.u32 %r9, [%rd3];", TABLE[LANES]),
    "generic behind": ("mov.b32 %r2, table; mad.lo.u32 %r2, %r1, 4, %r2; sub.u32 %r2, %r2, 8; cvt.u64.u32 %rd2, %r2;"
                       "cvta.const.u64 %rd3, %rd2; ld.u32 %r9, [%rd3+8];", TABLE[LANES]),
    "generic parameter": ("mov.b32 %r2, pack; cvt.u64.u32 %rd2, %r2; cvta.param.u64 %rd3, %rd2;"
                          "ld.u32 %r9, [%rd3+20];", [5] * 48),
    "there and back": ("mov.b64 %rd2, table; cvta.const.u64 %rd3, %rd2; cvta.to.const.u64 %rd4, %rd3; cvt.u32.u64 %r2, %rd4;"
                       "ld.const.u32 %r9, [%r2+8];", TABLE[[2] * 48]),
}  # fmt: skip


@pytest.mark.parametrize("options", ENGINES, ids=["jit", "interpreter", "host memory"])
@pytest.mark.parametrize("name", BODIES)
def test_reads(name: str, options: dict[str, object]) -> None:
    body, want = BODIES[name]
    assert np.array_equal(run(body, **options), want)


@pytest.mark.parametrize("name", [name for name in BODIES if name != "parameter"])
def test_reads_are_told_as_they_are(name: str) -> None:
    """The checkers find nothing wrong."""
    body, want = BODIES[name]
    device = ptxemu.Device(memory="16 MiB", check="memory,init,race")
    module = ptxemu.loads(kernel(f"{THREAD}\n{body}\nst.global.u32 [%rd0], %r9; ret;", PARAMETERS, DECLARED), device=device)
    out = np.zeros(48, np.uint32)
    module["k"][1, 48](out, np.arange(16, dtype=np.uint32).tobytes(), 7)
    assert np.array_equal(out, want)
    assert device.checks is not None and [str(finding) for finding in device.checks.findings] == []


@pytest.mark.parametrize("options", ENGINES[:2], ids=["jit", "interpreter"])
@pytest.mark.parametrize("beyond", [256, -4, 1 << 16, -(1 << 31)])
def test_what_lies_beyond_is_a_fault(beyond: int, options: dict[str, object]) -> None:
    body = f"mov.b32 %r2, table; add.u32 %r2, %r2, {beyond % 2**32}; ld.const.u32 %r9, [%r2];"
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        run(body, **options)
