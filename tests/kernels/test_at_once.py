"""Blocks whose accesses are all tested by one test, against the interpreter: where lanes are off, indexes wrap, addresses lead
out of memory or are not aligned, and later accesses read what earlier ones have written."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from tests.support.kernel_tools import HEADER

WORDS = 4096
SEEDS = range(8)
KERNELS = 8

KERNEL = """.visible .entry k{number}(.param .u64 memory, .param .u64 numbers)
{{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<64>; .reg .b32 %v<64>;
  ld.param.u64 %d1, [memory]; ld.param.u64 %d2, [numbers]; mov.u32 %r1, %tid.x; mov.u32 %v0, %r1;
  ld.global.u32 %r2, [%d2]; ld.global.u32 %r3, [%d2+4]; ld.global.u32 %r4, [%d2+8]; ld.global.u64 %d3, [%d2+16];
  setp.{order}.s32 %p1, %r1, %r4; @%p1 bra END;
{lines}
END:
  ret;
}}
"""
INDEXES = (
    "add.s32 %r5, %r1, %r2; mul.wide.s32 %d{n}, %r5, 4; add.u64 %d{n}, %d1, %d{n};",
    "sub.s32 %r5, %r1, %r3; cvt.s64.s32 %d{n}, %r5; shl.b64 %d{n}, %d{n}, 2; add.u64 %d{n}, %d1, %d{n};",
    "add.u32 %r5, %r1, %r3; mul.wide.u32 %d{n}, %r5, 4; add.u64 %d{n}, %d{n}, %d1;",
    "mad.wide.s32 %d{n}, %r1, 4, %d1; add.u64 %d{n}, %d{n}, %d3;",
    "mul.wide.s32 %d{n}, %r2, 4; add.u64 %d{n}, %d1, %d{n};",
    "ld.global.u32 %r5, [%d2]; mul.wide.s32 %d{n}, %r5, 4; add.u64 %d{n}, %d1, %d{n};",
    "and.b32 %r5, %v{v}, 1023; mul.wide.u32 %d{n}, %r5, 4; add.u64 %d{n}, %d1, %d{n};",  # which follows from what is loaded
)
OFFSETS = (0, 0, 4, -4, 128, 2)
"""In bytes; the last is not aligned."""
NUMBERS = ((3, 40, 700), (-5, 1000, 2**31 - 20, 2**31 - 1, 2**30), (0, 10, 40, 64, 1000), (0, 64, 1, 2, 1 << 40))
"""Indexes, those that may wrap or lead astray, a bound for threads, and a distance in bytes."""


def lines(rng: random.Random) -> str:
    """Addresses, loads, sums and stores, each on a line of its own; one access in twelve is by some lanes."""
    made, address = [], 4
    for number in range(1, rng.randint(6, 14)):
        if number == 1 or rng.random() < 0.6:
            address += 1
            made.append(rng.choice(INDEXES).format(n=address, v=number - 1))
        place = f"[%d{rng.randint(5, address)}+{rng.choices(OFFSETS, (9, 9, 9, 9, 9, 1))[0]}]"
        guard = "setp.gt.u32 %p2, %v0, 7; @%p2 " if rng.random() < 1 / 12 else ""
        if rng.random() < 0.3:
            made.append(f"{guard}st.global.u32 {place}, %v{number - 1};")
            made.append(f"add.u32 %v{number}, %v{number - 1}, 1;")
        else:
            made.append(f"mov.u32 %v{number}, 5; {guard}ld.global.u32 %v{number}, {place};")
            made.append(f"mad.lo.u32 %v{number}, %v{number}, 3, %v{number - 1};")
    made.append(f"mul.wide.u32 %d4, %r1, 4; add.u64 %d4, %d1, %d4; st.global.u32 [%d4+8192], %v{number};")
    return "\n".join(made)


def numbers(rng: random.Random) -> NDArray[np.int32]:
    """What the kernel reads of where to go; once in three something that may lead astray."""
    chosen = [rng.choice(some if astray else some[:2]) for some, astray in zip(NUMBERS, (rng.random() < 0.35 for _ in NUMBERS))]
    return np.array([*chosen[:3], 0, *np.array([chosen[3]], np.int64).view(np.int32)], np.int64).astype(np.int32)


def outcome(text: str, given: NDArray[np.int32], engine: str, threads: int) -> tuple[str, NDArray[np.uint32]]:
    """The kind and the line of a fault, and what is in memory afterwards."""
    with ptxemu.Device("64 MiB", engine=engine) as device:
        memory = device.to_device(np.random.default_rng(1).integers(0, 2**32, WORDS, np.uint32))
        launcher = ptxemu.loads(text, device=device, tier="best")["k0"][1, threads]
        try:
            launcher(memory, device.to_device(given))
        except ptxemu.Fault as fault:
            return str(fault).partition(", ")[0], memory.copy_to_host()
        return "", memory.copy_to_host()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_tested_together_does_what_each_would(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(KERNELS):
        text = HEADER + KERNEL.format(number=0, order=rng.choice(("ge", "lt")), lines=lines(rng))
        given, threads = numbers(rng), rng.choice((32, 17))
        said, memory = outcome(text, given, "jit", threads)
        expected, after = outcome(text, given, "interpreter", threads)
        assert said == expected, text
        if not said:  # else some lanes may have stored what others could not
            np.testing.assert_array_equal(memory, after, err_msg=text)
