"""Counters of small launches, against what follows from the addresses and branches of their threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ptxemu
from ptxemu.interpreter.observer import observing
from ptxemu.profiler import metrics
from ptxemu.profiler.counters import Profiler
from ptxemu.profiler.profile import Profile
from ptxemu.text.listings import Listings
from tests.support.kernel_tools import kernel

THREAD = "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; "
WORDS = 4096


@pytest.fixture(scope="module")
def device() -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="4 MiB", engine="interpreter") as made:
        yield made


def profile(device: ptxemu.Device, body: str, block: int = 32, grid: int = 1, declarations: str = "") -> Profile:
    profiler = Profiler(device.arena.describe)
    data = device.to_device(np.zeros(WORDS, np.uint32), "data")
    with observing(profiler):
        ptxemu.loads(kernel(THREAD + body + " ret;", declarations=declarations), device=device)["k"][grid, block](data)
    [counts] = profiler.launches
    return Profile(counts)


@pytest.mark.parametrize(
    ("stride", "size", "sectors", "ideal"),
    [
        (4, 4, 4, 4),  # 32 words in a row: 128 bytes
        (8, 4, 8, 4),  # every other word
        (32, 4, 32, 4),  # a sector for each thread
        (128, 4, 32, 4),  # a line for each thread
        (0, 4, 1, 1),  # one word for all
        (16, 16, 16, 16),
        (1, 1, 1, 1),
    ],
)
def test_sectors_of_loads(device: ptxemu.Device, stride: int, size: int, sectors: int, ideal: int) -> None:
    load = {1: "ld.global.u8 %r3", 4: "ld.global.u32 %r3", 16: "ld.global.v4.u32 {%r3, %r4, %r5, %r6}"}[size]
    found = profile(device, f"mul.wide.u32 %rd2, %r1, {stride}; add.u64 %rd1, %rd1, %rd2; {load}, [%rd1];")
    assert found.metrics[metrics.SECTORS.format("global", "ld")] == sectors
    assert found.metrics[metrics.SECTORS_PER_REQUEST.format("global", "ld")] == sectors
    assert found.metrics[metrics.BYTES.format("global", "ld")] == (32 * size if stride else size)
    assert found.metrics[metrics.IDEAL] == ideal
    assert found.metrics.get(metrics.EXCESSIVE, 0) == sectors - ideal
    assert found.work.touched == 32 * sectors


def test_an_access_that_is_not_aligned_to_sectors_takes_one_more(device: ptxemu.Device) -> None:
    found = profile(device, "mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.u32 [%rd1+4], %r1;")
    assert found.metrics[metrics.SECTORS.format("global", "st")] == 5


@pytest.mark.parametrize(
    ("stride", "wavefronts"), [(4, 1), (8, 2), (16, 4), (128, 32), (132, 1), (0, 1)], ids=lambda value: str(value)
)
@pytest.mark.parametrize("generic", [False, True])
def test_bank_conflicts(device: ptxemu.Device, stride: int, wavefronts: int, generic: bool) -> None:
    place = f"mov.u32 %r2, s; mad.lo.u32 %r2, %r1, {stride}, %r2; "
    store = "cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd2, %rd2; st.u32 [%rd2], %r1;" if generic else "st.shared.u32 [%r2], %r1;"
    found = profile(device, place + store, declarations=".shared .align 16 .b8 s[8192];")
    assert found.metrics[metrics.WAVEFRONTS.format("st")] == wavefronts
    assert found.metrics.get(metrics.CONFLICTS.format("st"), 0) == wavefronts - 1
    assert found.metrics["launch__shared_mem_per_block"] == 8192 + 1024


def test_a_cluster_is_profiled_as_a_whole(device: ptxemu.Device) -> None:
    """Of 4 clusters the one that block 2 is in. Half of the lanes go to the other block's banks."""
    body = """mov.u32 %r2, %cluster_ctarank; xor.b32 %r2, %r2, 1; and.b32 %r3, %r1, 1; xor.b32 %r2, %r2, %r3; mov.u32 %r4, s;
      mad.lo.u32 %r4, %r1, 4, %r4; mapa.shared::cluster.u32 %r4, %r4, %r2; barrier.cluster.arrive; barrier.cluster.wait;
      st.shared::cluster.u32 [%r4], 1; barrier.cluster.arrive; barrier.cluster.wait; ret;"""
    text = kernel(body.replace("mov.u32 %r2", "mov.u32 %r1, %tid.x; mov.u32 %r2", 1), "", ".shared .b8 s[128];")
    profiler = Profiler(device.arena.describe, sample=slice(2, 3))
    with observing(profiler):
        ptxemu.loads(text.replace("sm_80", "sm_90"), device=device)["k"][8, 32](cluster=2)
    [counts] = profiler.launches
    found = Profile(counts)
    assert counts.blocks == 2 and found.metrics[metrics.WAVEFRONTS.format("st")] == 2 * 2
    assert metrics.CONFLICTS.format("st") not in found.metrics


def test_wide_accesses_go_through_the_banks_in_parts(device: ptxemu.Device) -> None:
    place = "mov.u32 %r2, s; mad.lo.u32 %r2, %r1, {0}, %r2; ld.shared.v{1}.u32 {2}, [%r2];"
    shared = ".shared .align 16 .b8 s[8192];"
    pairs = profile(device, place.format(8, 2, "{%r3, %r4}"), declarations=shared)
    assert pairs.metrics[metrics.WAVEFRONTS.format("ld")] == 2 and metrics.CONFLICTS.format("ld") not in pairs.metrics
    apart = profile(device, place.format(32, 4, "{%r3, %r4, %r5, %r6}"), declarations=shared)
    assert apart.metrics[metrics.WAVEFRONTS.format("ld")] == 8 and apart.metrics[metrics.CONFLICTS.format("ld")] == 4


def test_divergent_branches(device: ptxemu.Device) -> None:
    body = "setp.lt.u32 %p1, %r1, 40; @%p1 bra low; add.u32 %r2, %r1, 1; low: add.u32 %r2, %r1, 2; bra end; end:"
    found = profile(device, body, block=96)  # of the second warp 8 threads take the branch
    assert found.metrics[metrics.DIVERGENT] == 1
    assert found.metrics[metrics.UNIFORM] == 5
    assert found.metrics[metrics.BRANCHES] == 7
    assert found.metrics[metrics.UNIFORM_PERCENT] == pytest.approx(100 * 5 / 6)
    assert found.metrics[metrics.INSTRUCTIONS] == 3 * 7 + 2
    assert found.metrics[metrics.THREADS] == 96 * 7 + 24 + 32


def test_guards_leave_threads_out(device: ptxemu.Device) -> None:
    found = profile(device, "setp.lt.u32 %p1, %r1, 8; @!%p1 add.f32 %f1, %f2, %f3;")
    assert found.metrics[metrics.THREADS] - found.metrics[metrics.ACTIVE] == 8
    assert found.metrics[metrics.OPERATION.format("fadd")] == 24


def test_operations_on_floats(device: ptxemu.Device) -> None:
    body = """
      add.f32 %f1, %f2, %f3; sub.f32 %f1, %f2, %f3; mul.f32 %f1, %f2, %f3; fma.rn.f32 %f1, %f2, %f3, %f4;
      fma.rn.f64 %d1, %d2, %d3, %d4; fma.rn.f16x2 %r3, %r4, %r5, %r6; sqrt.approx.f32 %f1, %f2;
      mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r3, %r4}, {%r5}, {%f1, %f2, %f3, %f4};
    """
    found = profile(device, body)
    assert found.work.operations == {"fp32": 32 * (1 + 1 + 1 + 2), "fp64": 64, "fp16": 128}
    assert found.work.matrix == 2 * 16 * 8 * 8
    assert found.classes == {
        "fp32": 4, "fp64": 1, "fp16": 1, "special function": 1, "matrix": 1, "load param": 1, "move": 1, "control": 1,
    }  # fmt: skip
    assert found.opcodes["fma.f32"] == 1


@pytest.mark.parametrize(("address", "passes"), [("0", 32), ("4", 1), ("and", 16)])
def test_atomics_by_contention(device: ptxemu.Device, address: str, passes: int) -> None:
    places = {
        "0": "mov.u64 %rd2, 0;",
        "4": "mul.wide.u32 %rd2, %r1, 4;",
        "and": "and.b32 %r2, %r1, 1; mul.wide.u32 %rd2, %r2, 4;",
    }
    found = profile(device, f"{places[address]} add.u64 %rd1, %rd1, %rd2; red.global.add.u32 [%rd1], 1;", block=64, grid=2)
    assert found.metrics[metrics.ATOMICS] == 4
    assert found.metrics[metrics.ATOMIC_PASSES] == 4 * passes
    assert found.metrics[metrics.REQUESTS.format("global", "red")] == 4
    place, times = found.counts.hottest[0]
    assert "data" in place and times == 128 // {"0": 1, "4": 64, "and": 2}[address]


def test_local_memory_lies_together_by_words(device: ptxemu.Device) -> None:
    found = profile(device, ".local .align 8 .b8 l[16]; st.local.u32 [l], %r1; ld.local.v2.u32 {%r2, %r3}, [l];", block=40)
    assert found.metrics[metrics.SECTORS.format("local", "st")] == 4 + 1
    assert found.metrics[metrics.SECTORS.format("local", "ld")] == 8 + 2


def test_a_launch_that_faults_is_counted_up_to_there(device: ptxemu.Device) -> None:
    profiler = Profiler(device.arena.describe)
    with observing(profiler), pytest.raises(ptxemu.Fault):
        ptxemu.loads(kernel("mov.u32 %r1, 0; trap; ret;", ""), device=device)["k"][1, 32]()
    found = Profile(profiler.launches[0])
    assert found.stopped and found.metrics[metrics.INSTRUCTIONS] == 2


def test_lines_of_ptx_and_of_the_source(device: ptxemu.Device) -> None:
    body = "\n.loc 1 7 0\nadd.u32 %r2, %r1, 1;\n.loc 1 9 1\nadd.u32 %r2, %r1, 1;\nadd.u32 %r2, %r1, 1;\n"
    text = kernel(THREAD + body + " ret;") + '.file 1 "a.cu"\n'
    profiler = Profiler(device.arena.describe)
    with observing(profiler):
        ptxemu.loads(text, filename="a.ptx", device=device)["k"][1, 32](device.empty(4))
    found = Profile(profiler.launches[0])
    lines = [(str(line.place), line.sums[metrics.INSTRUCTIONS]) for line in found.cuda_lines(Listings())]
    assert lines == [("a.cu:7", 1), ("a.cu:9", 3)]
    assert [line.sums[metrics.INSTRUCTIONS] for line in found.ptx_lines()] == [2, 1, 1, 1, 1]
    assert found.ptx_lines()[1].text == "add.u32 %r2, %r1, 1;"
