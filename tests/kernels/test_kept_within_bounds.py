"""Indexes that bounds, remainders and quotients leave as they are in some warps and not in others, against the interpreter; and
grids with edges that repeat or are closed, against NumPy."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import HEADER

KERNELS = 6
THREADS, WORDS = 256, 8192

KERNEL = """.visible .entry k(.param .u64 memory, .param .u64 out, .param .s32 shift, .param .s32 bound)
{{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<64>; .reg .b32 %v<64>;
  ld.param.u64 %d1, [memory]; add.u64 %d1, %d1, 1024;
  ld.param.u64 %d2, [out]; ld.param.s32 %r2, [shift]; ld.param.s32 %r3, [bound];
  mov.u32 %r1, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r1, %r4, %r5; sub.s32 %r4, %r3, 1;
  mul.wide.u32 %d3, %r1, 4; add.u64 %d3, %d2, %d3; mov.u32 %v0, %r1; mov.u32 %r8, 0;
  setp.{order}.u32 %p1, %r1, 250; @%p1 bra END;
{lines}
  {wait} setp.eq.u32 %p2, %v0, 7; @%p2 bra END;
  xor.b32 %v0, %v0, %r8; st.global.u32 [%d3], %v0;
END:
  ret;
}}
"""
INDEXES = (
    "add.s32 %r8, %r1, %r2; max.s32 %r8, %r8, 0; min.s32 %r8, %r8, %r4;",
    "add.s32 %r8, %r1, %r2; min.s32 %r8, %r4, %r8; max.s32 %r8, %r8, 0;",
    "add.s32 %r8, %r1, %r2; add.s32 %r8, %r8, %r3; rem.s32 %r8, %r8, %r3;",
    "add.s32 %r8, %r1, %r2; rem.s32 %r8, %r8, %r3;",
    "add.u32 %r8, %r1, %r2; add.u32 %r8, %r8, %r3; rem.u32 %r8, %r8, %r3;",
    "sub.s32 %r8, %r3, %r1; max.s32 %r8, %r8, 0;",
    "add.u32 %r8, %r1, %r2; max.u32 %r8, %r8, 3; min.u32 %r8, %r8, %r4;",
    "add.u32 %r8, %r1, %r2; min.u32 %r8, %r8, %r4;",
    "add.s32 %r8, %r1, 2147483600; max.s32 %r8, %r8, 7; sub.s32 %r8, %r8, 2147483600;",
    "sub.s32 %r8, -2147483600, %r1; min.s32 %r8, %r8, 7; add.s32 %r8, %r8, 2147483600; add.s32 %r8, %r8, 300;",
    "add.u32 %r8, %r1, 4294967200; max.u32 %r8, %r8, 7; add.u32 %r8, %r8, 96;",
    "sub.s32 %r8, 1000, %r1; rem.s32 %r8, %r8, %r3;",
    "sub.u32 %r8, 100, %r1; rem.u32 %r8, %r8, 1000; and.b32 %r8, %r8, 4095;",
    "mul.lo.s32 %r8, %r1, 3; add.s32 %r8, %r8, %r2; max.s32 %r8, %r8, 1; rem.u32 %r8, %r8, %r3;",
    "add.s32 %r8, %r1, %r3; rem.s32 %r8, %r8, %r3; add.s32 %r8, %r8, 1; rem.s32 %r8, %r8, %r3;",
    "div.u32 %r8, %r1, 36; mul.lo.u32 %r9, %r8, 36; sub.u32 %r9, %r1, %r9; mad.lo.u32 %r8, %r8, 40, %r9; min.u32 %r8, %r8, %r4;",
    "rem.s32 %r9, %r1, 20; div.s32 %r8, %r1, 20; mad.lo.s32 %r8, %r8, %r3, %r9; max.s32 %r8, %r8, 0; and.b32 %r8, %r8, 4095;",
    "mul.hi.u32 %r8, %r1, 954437177; shr.u32 %r8, %r8, 3; mul.lo.u32 %r9, %r8, 36; sub.u32 %r9, %r1, %r9; add.s32 %r8, %r8, %r2; "
    "max.s32 %r8, %r8, 0; mad.lo.u32 %r8, %r8, 100, %r9; and.b32 %r8, %r8, 4095;",
    "div.s32 %r9, %r1, %r3; rem.s32 %r8, %r1, %r3; mad.lo.s32 %r8, %r9, 64, %r8; and.b32 %r8, %r8, 4095;",
    "mul.hi.s32 %r9, %r1, 1431655766; mad.lo.s32 %r8, %r9, 4, %r1; mul.hi.u32 %r9, %r8, -2147483648; add.u32 %r8, %r8, %r9;",
    "min.s32 %r8, %r1, %r4; add.s32 %r8, %r8, 2147483520; sub.s32 %r8, %r8, 2147483520;",
)
ADDRESSES = (
    "mad.wide.s32 %d{n}, %r8, 4, %d1;",
    "cvt.s64.s32 %d{n}, %r8; shl.b64 %d{n}, %d{n}, 2; add.u64 %d{n}, %d1, %d{n};",
    "shl.b32 %r9, %r8, 2; cvt.s64.s32 %d{n}, %r9; add.u64 %d{n}, %d{n}, %d1;",
    "add.s32 %r9, %r8, 2147483520; cvt.s64.s32 %d{n}, %r9; shl.b64 %d{n}, %d{n}, 2; add.u64 %d{n}, %d{n}, %d1; "
    "sub.u64 %d{n}, %d{n}, 8589934080;",
)
"""The last wraps beyond an index of 127, and then leads out of memory."""
SHIFTS = (-40, -33, -1, 0, 1, 31, 32, 90)
BOUNDS = (5, 31, 32, 33, 64, 100, 224, 255, 1000)


def lines(rng: random.Random, index: str) -> str:
    """Loads at an index, and in one kernel of three at another one, too: in many warps all are patterns."""
    made, indexes = [], [index, index, rng.choice(INDEXES)] if rng.random() < 0.3 else [index]
    for n in range(5, rng.randint(9, 12)):
        address = rng.choices(ADDRESSES, (6, 6, 3, 1))[0].format(n=n)
        made.append(f"{rng.choice(indexes)} {address}")
        made.append(f"ld.global.u32 %v{n}, [%d{n}+{rng.choice((0, 4, -4))}]; mad.lo.u32 %v0, %v0, 3, %v{n};")
        if rng.random() < 0.1:
            made.append("st.global.u32 [%d3+2048], %v0;")
    return "\n".join(made)


def outcome(text: str, shift: int, bound: int, engine: str) -> tuple[str, np.ndarray]:
    with ptxemu.Device("64 MiB", engine=engine, workers=1) as device:
        memory = device.to_device(np.random.default_rng(1).integers(0, 2**32, WORDS, np.uint32))
        out = device.empty(1024, np.uint32)
        launcher = ptxemu.loads(text, device=device, tier="best")["k"][THREADS // 64, 64]
        try:
            launcher(memory, out, shift, bound)
        except ptxemu.Fault as fault:
            return re.sub(r" at .*(block \(\d+).*", r" \1", str(fault)), out.copy_to_host()
        return "", out.copy_to_host()


@pytest.mark.parametrize("number", range(len(INDEXES)))
def test_each_lane_has_its_own_index(number: int) -> None:
    rng = random.Random(number)
    for _ in range(KERNELS):
        text = HEADER + KERNEL.format(
            order=rng.choice(("gt", "ge")), wait=rng.choice(("", "bar.sync 0;")), lines=lines(rng, INDEXES[number])
        )
        shift, bound = rng.choice(SHIFTS), rng.choice(BOUNDS)
        said, found = outcome(text, shift, bound, "jit")
        expected, right = outcome(text, shift, bound, "interpreter")
        assert said == expected, (shift, bound, text)
        if not said:  # else it is not said which warps have run
            np.testing.assert_array_equal(found, right, err_msg=f"{shift} {bound} {text}")


STENCIL = """.visible .entry k(.param .u32 width, .param .u32 height, .param .u64 in, .param .u64 out)
{{
  .reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %d<64>; .reg .b16 %h<32>;
  ld.param.u32 %r1, [width]; ld.param.u32 %r2, [height]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.s32 %r3, %r3, %r4, %r5; mov.u32 %r4, %ctaid.y;
  setp.ge.s32 %p1, %r3, %r1; @%p1 bra END;
  sub.s32 %r6, %r1, 1; sub.s32 %r7, %r2, 1; mov.u32 %r10, 0;
{lines}
  mad.lo.s32 %r8, %r4, %r1, %r3; mad.wide.s32 %d3, %r8, 4, %d2; st.global.u32 [%d3], %r10;
END:
  ret;
}}
"""
EDGES = {
    "edge": "add.s32 %r{to}, %r{at}, {by}; max.s32 %r{to}, %r{to}, 0; min.s32 %r{to}, %r{to}, %r{last};",
    "wrap": "add.s32 %r{to}, %r{at}, {by}; add.s32 %r{to}, %r{to}, %r{extent}; rem.s32 %r{to}, %r{to}, %r{extent};",
}


@pytest.mark.parametrize("mode", EDGES)
@pytest.mark.parametrize("width", [1, 2, 31, 32, 33, 64, 96, 129])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_neighbours_beyond_an_edge(mode: str, width: int, dtype: type[np.unsignedinteger]) -> None:
    """The sum of nine texels, each times a number of its own."""
    made, bits = [], 8 * np.dtype(dtype).itemsize
    for number, (dy, dx) in enumerate((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)):
        made.append(EDGES[mode].format(to=8, at=3, by=dx, last=6, extent=1))
        made.append(EDGES[mode].format(to=9, at=4, by=dy, last=7, extent=2))
        made.append(f"mad.lo.s32 %r8, %r9, %r1, %r8; mad.wide.s32 %d3, %r8, {bits // 8}, %d1;")
        made.append(f"ld.global.u{bits} %r11, [%d3]; mad.lo.s32 %r10, %r11, {number + 1}, %r10;")
    height = 5
    picture = np.random.default_rng(width).integers(0, 2**bits, (height, width), np.uint64).astype(dtype)
    found = np.zeros((height, width), np.uint32)
    ptxemu.loads(HEADER + STENCIL.format(lines="\n".join(made)))["k"][(-(-width // 32), height), 32](
        width, height, picture, found
    )
    wide = np.pad(picture.astype(np.uint32), 1, mode=mode)
    shifted = [wide[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    expected = sum((number + 1) * part for number, part in enumerate(shifted))
    np.testing.assert_array_equal(found, np.asarray(expected, np.uint32))
