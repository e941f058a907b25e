"""Accesses that compiled code makes with others (lower/memory/pairs.py, lower/functions/lane_ahead.py) are looked at like any."""

from __future__ import annotations

import re
from itertools import pairwise

import llvmlite.binding as llvm
import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.checkers.planted import found, program
from tests.kernels.test_lane_ahead import PAGE_WORDS, text

FIRST = [4 * (2 * thread - thread % 2) for thread in range(32)]
"""Of 64 words, lanes have those whose number has no bit 1, and 8 bytes behind each another one."""
ADDRESS = "and.b32 %r4, %r1, 1; add.u32 %r3, %r1, %r1; sub.u32 %r3, %r3, %r4; shl.b32 %r3, %r3, 2;"
LOADS = "ld.shared.u32 %r5, [%r3+8]; ld.shared.u32 %r6, [%r3];"
FIXED = "ld.shared.u32 %r5, [s+4]; ld.shared.u32 %r6, [s];"
STORES = "st.shared.u32 [%r3], %r1; st.shared.u32 [%r3+8], %r2;"


@pytest.mark.parametrize("check", ["memory", "memory,init", "all"])
@pytest.mark.parametrize("accesses", [LOADS, STORES])
@pytest.mark.parametrize("size", [256, 252, 248, 200, 20, 4])
def test_beyond_shared_memory(check: str, accesses: str, size: int) -> None:
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        seen = found(device, program(ADDRESS + accesses, ".extern .shared .align 8 .b8 s[];"), 0, 0, shared=size)
    beyond = [sum(first + more + 4 > size for first in FIRST) for more in (0, 8)]
    assert sorted(one.count for one in seen if one.check == "memory") == sorted(count for count in beyond if count)


@pytest.mark.parametrize("check", ["init", "memory,init", "all"])
@pytest.mark.parametrize("written", [0, 1, 5, 17, 31, 32])
def test_blanks(check: str, written: int) -> None:
    """Some threads have written two words each."""
    write = f"setp.lt.u32 %p1, %r1, {written}; shl.b32 %r5, %r1, 3; @%p1 st.shared.v2.u32 [%r5], {{%r1, %r2}}; bar.sync 0;"
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        seen = found(device, program(write + ADDRESS + LOADS, ".shared .align 8 .b8 s[256];"), 0, 0)
    blank = [sum(first + more >= 8 * written for first in FIRST) for more in (0, 8)]
    assert sorted(one.count for one in seen) == sorted(count for count in blank if count)


@pytest.mark.parametrize("check", ["race", "memory,race", "race,init", "all"])
@pytest.mark.parametrize("order", [(0, 8), (8, 0)])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("cut", ["", "cvt.u64.u32 %rd5, %r3; add.u64 %rd5, %rd5, 0x700000000; cvt.u32.u64 %r3, %rd5;"])
def test_races_with_words_of_a_neighbour(check: str, order: tuple[int, int], written: bool, cut: str) -> None:
    """Each lane reads two words, and writes two, or the other way round, of which one half is of its neighbour."""
    reads = [f"ld.shared.u32 %r5, [%r3+{offset}];" for offset in order]
    writes = [f"st.shared.u32 [%r6+{offset}], %r1;" for offset in order]
    fill = "shl.b32 %r5, %r1, 3; st.shared.v2.u32 [%r5], {%r1, %r2}; bar.sync 0;"
    parts = [*writes, *reads] if written else [*reads, *writes]
    body = fill + ADDRESS + cut + "xor.b32 %r6, %r3, 4;" + "".join(parts)
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        seen = found(device, program(body, ".shared .align 8 .b8 s[256];"), 0, 0)
    assert sorted(one.count for one in seen if one.check == "race") == [32, 32]


@pytest.mark.parametrize("observed", ["stamps", "strays, stamps", "blanks, stamps"])
@pytest.mark.parametrize("accesses", [LOADS, STORES, LOADS + "ld.shared.u32 %r7, [%r3+8];", FIXED])
def test_accesses_are_listed_once(observed: Observed, accesses: str) -> None:
    program_of_pair = compile.front(program(ADDRESS + accesses + "bar.sync 0", ".extern .shared .align 8 .b8 s[];"))
    code = str(compile.emit(program_of_pair, "k", compile.Options(observed=observed), "llvm"))
    assert len(re.findall("call .*@pe_observe_claimed", code)) == 1
    llvm.parse_assembly(code).verify()


@pytest.mark.parametrize("check", ["memory", "init", "sync"])
def test_what_indexes_ahead_lead_to(check: str) -> None:
    """A lane that reads beyond the last index, where no memory follows, is told, and asks for nothing."""
    random, threads = np.random.default_rng(7), 64
    starts = np.linspace(0, PAGE_WORDS + 3, threads + 1).astype(np.uint32)
    table = random.integers(0, 1 << 20, 5000).astype(np.uint32)
    indexes = random.integers(0, len(table), PAGE_WORDS + 3).astype(np.uint32)
    short = PAGE_WORDS if check == "memory" else len(indexes)
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        arrays = [device.to_device(array) for array in (np.zeros(threads, np.uint32), indexes[:short], starts, table)]
        ptxemu.loads(text(), device=device)["k"][1, threads](*arrays)
        assert device.checks is not None
        assert [one.count for one in device.checks.findings] == ([3] if check == "memory" else [])
        indexes[short:] = 0  # what a load that is left out gives
        expected = [int(table[indexes[start:end]].sum()) for start, end in pairwise(starts)]
        np.testing.assert_array_equal(arrays[0].copy_to_host(), expected)
