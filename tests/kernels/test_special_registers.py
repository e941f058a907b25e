"""Special registers that no array of expected values can describe: clocks, identifiers of launches and workers, sizes."""

from __future__ import annotations

import time

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel

KERNEL = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 d)
{{
  .reg .b32 %r<40>; .reg .b64 %d, %l<40>; .shared .align 16 .b8 data[48];
  ld.param.u64 %d, [d];
{code}
  ret;
}}
"""


def read(*registers: str, **options: int) -> list[int]:
    """The 64-bit registers, read in order by one thread."""
    reads = [f"  mov.u64 %l{i}, %{name};" for i, name in enumerate(registers)]
    stores = [f"  st.global.u64 [%d+{8 * i}], %l{i};" for i in range(len(registers))]
    return launch([*reads, *stores], len(registers), **options)


def words(*registers: str, **options: int) -> list[int]:
    """The same for 32-bit registers."""
    reads = [f"  mov.u32 %r{i}, %{name}; cvt.u64.u32 %l{i}, %r{i};" for i, name in enumerate(registers)]
    stores = [f"  st.global.u64 [%d+{8 * i}], %l{i};" for i in range(len(registers))]
    return launch([*reads, *stores], len(registers), **options)


def launch(lines: list[str], count: int, **options: int) -> list[int]:
    out = np.zeros(count, np.uint64)
    ptxemu.loads(KERNEL.format(code="\n".join(lines)))["k"][1, 1](out, **options)
    return [int(x) for x in out]


def test_clocks_advance() -> None:
    ticks = read(*["clock64"] * 8)
    assert ticks == sorted(ticks) and ticks[0] < ticks[-1]
    low, high, later = words("clock", "clock_hi", "clock")
    assert low != later
    assert abs((high << 32 | low) - ticks[-1]) < 1 << 40


def test_global_timer_is_the_host_s() -> None:
    before = time.time_ns()
    (now,) = read("globaltimer")
    high, low, again = words("globaltimer_hi", "globaltimer_lo", "globaltimer_hi")
    after = time.time_ns()
    assert before - 10**9 <= now <= after + 10**9
    assert again - high in (0, 1)
    assert abs((high << 32 | low) - now) < 60 * 10**9


def test_every_launch_has_its_number() -> None:
    first, second = read("gridid", "gridid"), read("gridid", "gridid")
    assert first[0] == first[1] < second[0]
    assert words("gridid")[0] > second[0]


def test_workers_are_multiprocessors() -> None:
    smid, nsmid, warpid, nwarpid = words("smid", "nsmid", "warpid", "nwarpid")
    assert smid < nsmid and warpid < nwarpid


@pytest.mark.parametrize("dynamic", [0, 1024])
def test_sizes_of_shared_memory(dynamic: int) -> None:
    names = ("dynamic_smem_size", "total_smem_size", "aggr_smem_size")
    touch = ["  st.shared.u8 [data], %r0;"]
    reads = [f"  mov.u32 %r{i}, %{name}; cvt.u64.u32 %l{i}, %r{i};" for i, name in enumerate(names)]
    stores = [f"  st.global.u64 [%d+{8 * i}], %l{i};" for i in range(3)]
    assert launch([*reads, *touch, *stores], 3, shared=dynamic) == [dynamic, 48 + dynamic, 48 + dynamic]


def test_what_there_is_none_of() -> None:
    names = [f"envreg{i}" for i in (0, 1, 2, 31)] + [f"pm{i}" for i in range(8)]
    names += [f"reserved_smem_offset_{name}" for name in ("begin", "end", "cap", "0", "1")]
    assert words(*names) == [0] * len(names)
    assert read("current_graph_exec", "pm0_64", "pm7_64") == [0, 0, 0]


def test_clusters_have_one_block() -> None:
    ones = [f"{name}.{axis}" for name in ("nclusterid", "cluster_nctaid") for axis in "xyz"]
    zeros = [f"{name}.{axis}" for name in ("clusterid", "cluster_ctaid") for axis in "xyz"]
    assert words(*ones, "cluster_nctarank") == [1] * 7
    assert words(*zeros, "cluster_ctarank") == [0] * 7


def test_code_knows_where_warps_begin() -> None:
    """The place of a thread in its warp is a constant of its lane, where it is computed, too."""

    def code(lane: str) -> list[str]:
        place = "mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r1, 4, %rd1;"
        text = str(
            compile.emit(compile.front(kernel(f"{place} {lane} st.global.u32 [%rd1], %r2;")), "k", compile.Options(), "asm")
        )
        return [line.split()[0] for line in text.splitlines() if line.startswith("\t") and not line.startswith("\t.")]

    assert sorted(code("and.b32 %r2, %r1, 31;")) == sorted(code("mov.u32 %r2, %laneid;"))
