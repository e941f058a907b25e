"""Kernels whose code runs all warps of several blocks: which they are, and that each block stays what it is alone."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest

import ptxemu
from ptxemu.device.code import Facts
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

PARAMETERS = ".param .u32 count, .param .u64 data, .param .u64 out"
START = """
ld.param.u32 %r1, [count]; ld.param.u64 %rd1, [data]; ld.param.u64 %rd5, [out];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x;
mov.u32 %r10, %r0; mul.lo.u32 %r11, %r3, %r5; mov.u32 %r12, 0;
"""
TRIP = """
setp.ge.u32 %p1, %r10, %r1; @%p1 bra DONE;
L: mul.wide.u32 %rd2, %r10, 4; add.u64 %rd2, %rd1, %rd2; ld.global.u32 %r13, [%rd2];
{work}
add.u32 %r10, %r10, {step}; setp.lt.u32 %p1, %r10, %r1; @%p1 bra L;
DONE:
"""
PUT = "mul.wide.u32 %rd3, %r0, 4; add.u64 %rd3, %rd5, %rd3; st.global.u32 [%rd3], %r12;"
SUM = TRIP.format(work="mad.lo.u32 %r12, %r12, 3, %r13;", step="%r11")


def text(body: str, declarations: str = "") -> str:
    return kernel(GLOBAL_INDEX + START + body, PARAMETERS, declarations)


def facts(body: str, observed: Observed = "", declarations: str = "") -> Facts:
    return compile.kernel(compile.front(text(body, declarations)), "k", compile.Options(observed=observed)).facts


def launch(
    source: str, grid: int | tuple[int, int, int], block: int, data: np.ndarray, results: int, workers: int = 1, shared: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """What is in the data and in the results afterwards."""
    device = ptxemu.Device(memory="64 MiB", workers=workers)
    there, out = device.to_device(data), device.to_device(np.zeros(results, np.uint32))
    ptxemu.loads(source, device=device)["k"][grid, block](data.size, there, out, shared=shared)
    return there.copy_to_host(), out.copy_to_host()


def test_threads_that_go_on_by_the_grid() -> None:
    assert facts(SUM + PUT).abreast
    assert facts(SUM + "bar.sync 0;" + PUT).abreast


@pytest.mark.parametrize("step", ["%r3", "4096"])
def test_threads_that_go_on_by_something_else(step: str) -> None:
    assert not facts(TRIP.format(work="add.u32 %r12, %r12, %r13;", step=step) + PUT).abreast


def test_without_a_loop() -> None:
    assert not facts("ld.global.u32 %r12, [%rd1];" + PUT).abreast


@pytest.mark.parametrize("observed", ["strays", "all"])
def test_whoever_observes_sees_one_block_at_a_time(observed: Observed) -> None:
    assert not facts(SUM + PUT, observed=observed).abreast


def test_blocks_with_tensor_memory_come_one_after_another() -> None:
    """There is one for all that a call runs."""
    found = facts(SUM + "tcgen05.wait::ld.sync.aligned;" + PUT)
    assert found.looped and not found.abreast


@pytest.mark.parametrize(("kind", "asks"), [("u8", False), ("u16", False), ("u32", True), ("u64", True)])
def test_pieces_of_several_lines_are_asked_for(kind: str, asks: bool) -> None:
    body = SUM.replace("ld.global.u32", f"ld.global.{kind}").replace("%r10, 4;", f"%r10, {int(kind[1:]) // 8};")
    if kind == "u64":
        body = body.replace("%r13, [%rd2];", "%rd6, [%rd2]; cvt.u32.u64 %r13, %rd6;")
    code = str(compile.emit(compile.front(text(body + PUT)), "k", compile.Options(), "llvm"))
    assert ("llvm.prefetch" in code) == asks


def sums(data: np.ndarray, threads: int) -> np.ndarray:
    """Of each thread, in the order of its trips."""
    found = np.zeros(threads, np.uint32)
    for start in range(0, data.size, threads):
        part = data[start : start + threads]
        found[: part.size] = found[: part.size] * np.uint32(3) + part
    return found


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("block", [1, 32, 33, 256, 300, 1024])
@pytest.mark.parametrize("grid", [1, 7, 40])
def test_sums_of_threads(grid: int, block: int, workers: int) -> None:
    """Some leave the loop after more than two turns, others after a trip less, or without one."""
    threads = grid * block
    for size in (threads * 19 + threads // 3, threads // 2 + 1):
        data = np.random.default_rng(grid * block).integers(0, 2**32, size, np.uint32)
        _, out = launch(text(SUM + PUT), grid, block, data, threads, workers)
        np.testing.assert_array_equal(out, sums(data, threads))


TURNS = TRIP.format(work="atom.global.add.u32 %r14, [%rd5], 1; st.global.u32 [%rd2], %r14;", step="%r11")


@pytest.mark.parametrize(
    ("block", "shared", "together"), [(256, 0, 4), (96, 0, 10), (32, 0, 32), (256, 24 << 10, 2), (256, 48 << 10, 1), (1024, 0, 1)]
)
def test_turns_of_warps(block: int, shared: int, together: int) -> None:
    """Each takes eight trips; the blocks that run together have no more warps than one may have, and no more shared memory."""
    grid, trips, warps = 2 * together, 16, block // 32
    order, _ = launch(text(TURNS), grid, block, np.zeros(grid * block * trips, np.uint32), 1, shared=shared)
    tickets = order.reshape(trips // 8, 8, 2, together, warps, 32).transpose(2, 0, 3, 4, 1, 5)
    np.testing.assert_array_equal(tickets.ravel(), np.arange(order.size))


EXCHANGE = """
mov.u32 %r6, words; shl.b32 %r7, %r2, 2; add.u32 %r7, %r6, %r7; st.shared.u32 [%r7], %r12;
bar.sync 0;
sub.u32 %r8, %r3, 1; sub.u32 %r8, %r8, %r2; shl.b32 %r8, %r8, 2; add.u32 %r8, %r6, %r8; ld.shared.u32 %r12, [%r8];
bar.sync 0;
st.shared.u32 [%r7], %r4;
bar.sync 0;
ld.shared.u32 %r9, [%r8]; mad.lo.u32 %r12, %r9, 1000, %r12;
"""
FIXED = ".shared .align 4 .b8 words[4096];\n"
GIVEN = ".extern .shared .align 4 .b8 words[];\n"


@pytest.mark.parametrize("declarations", [FIXED, GIVEN])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("grid", [13, 70])
@pytest.mark.parametrize("block", [31, 32, 96, 256, 1024])
def test_shared_memory_is_that_of_the_block(block: int, grid: int, declarations: str, workers: int) -> None:
    threads, body = grid * block, SUM + EXCHANGE + PUT
    assert facts(body, declarations=declarations).abreast
    data = np.random.default_rng(block).integers(0, 2**20, threads * 11 + block * 2 + 5, np.uint32)
    _, out = launch(text(body, declarations), grid, block, data, threads, workers, 0 if declarations is FIXED else 4 * block)
    expected = sums(data, threads).reshape(grid, block)[:, ::-1] + 1000 * np.arange(grid, dtype=np.uint32)[:, None]
    np.testing.assert_array_equal(out.reshape(grid, block), expected)


def test_generic_addresses_of_shared_memory() -> None:
    """They lead to that of the block, in a space that must be found out, too."""
    body = SUM + """
    mov.u32 %r6, words; cvt.u64.u32 %rd6, %r6; cvta.shared.u64 %rd6, %rd6; mul.wide.u32 %rd7, %r2, 4; add.u64 %rd6, %rd6, %rd7;
    st.u32 [%rd6], %r12; bar.sync 0; isspacep.shared %p2, %rd6; cvta.to.shared.u64 %rd8, %rd6; cvt.u32.u64 %r7, %rd8;
    ld.shared.u32 %r12, [%r7]; selp.u32 %r12, %r12, 0, %p2; atom.add.u32 %r9, [%rd6], 1; add.u32 %r12, %r12, %r9;
    """ + PUT  # fmt: skip
    data = np.arange(1000, dtype=np.uint32)
    _, out = launch(text(body, FIXED), 6, 64, data, 384)
    np.testing.assert_array_equal(out, 2 * sums(data, 384))


def test_local_memory_is_that_of_the_thread() -> None:
    local = ".local .align 4 .b8 own[16]; mov.u32 %r6, own; and.b32 %r7, %r0, 3; shl.b32 %r7, %r7, 2; add.u32 %r6, %r6, %r7;"
    work = "ld.local.u32 %r14, [%r6]; add.u32 %r12, %r12, %r13; add.u32 %r14, %r14, %r12; st.local.u32 [%r6], %r14;"
    end = "ld.local.u32 %r12, [%r6];"
    body = local + "st.local.u32 [%r6], %r0;" + TRIP.format(work=work, step="%r11") + end + PUT
    _, out = launch(text(body), 9, 64, np.ones(64 * 9 * 20, np.uint32), 64 * 9)
    np.testing.assert_array_equal(out, np.arange(64 * 9) + 20 * 21 // 2)


def test_threads_that_have_left() -> None:
    """Barriers of a block do not wait for them, nor for those of other blocks."""
    body = "and.b32 %r6, %r4, 1; and.b32 %r7, %r2, 33; setp.eq.u32 %p2, %r7, 33; setp.eq.and.u32 %p2, %r6, 1, %p2; @%p2 exit;"
    data = np.random.default_rng(1).integers(0, 2**20, 4000, np.uint32)
    _, out = launch(text(body + SUM + EXCHANGE + PUT, FIXED), 6, 96, data, 576)
    thread = np.arange(576)
    gone = (thread // 96 % 2 == 1) & (thread % 96 & 33 == 33)
    words = np.where(gone, 0, sums(data, 576)).reshape(6, 96)
    numbers = np.where(gone, 0, thread // 96).reshape(6, 96)
    seen = (words[:, ::-1] + 1000 * numbers[:, ::-1]).ravel()
    left = ~gone & ~gone.reshape(6, 96)[:, ::-1].ravel()
    np.testing.assert_array_equal(out[left], seen[left])
    assert not out[gone].any()


def test_blocks_of_a_grid_of_three_dimensions() -> None:
    grid = (3, 2, 3)
    body = """mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; mad.lo.u32 %r8, %r7, 2, %r6; mad.lo.u32 %r8, %r8, 3, %r4;
    mad.lo.u32 %r0, %r8, %r3, %r2; mov.u32 %r12, %r8;""" + SUM + PUT  # fmt: skip
    data = np.arange(96 * 5, dtype=np.uint32)
    _, out = launch(text(body), grid, 32, data, prod(grid) * 32)
    expected = np.repeat(np.arange(18, dtype=np.uint32), 32).reshape(6, 96)
    for row in data.reshape(5, 96):
        expected = expected * np.uint32(3) + row
    np.testing.assert_array_equal(out.reshape(6, 96), expected)


@pytest.mark.parametrize("how", ["trap", "address", "shared"])
def test_faults_name_the_block(how: str) -> None:
    what = {"trap": "trap;", "address": "ld.global.u32 %r5, [%rd1+1];", "shared": "ld.shared.u32 %r5, [%r10+65536];"}[how]
    body = SUM + f"setp.ne.u32 %p2, %r0, 235; @%p2 bra OVER; {what} OVER:" + PUT
    with pytest.raises(ptxemu.Fault, match=re.escape("(43,0,0)")) as found:
        launch(text(body), 6, 64, np.ones(2000, np.uint32), 384)
    assert found.value.details.block == (3, 0, 0)


def test_shared_memory_of_another_block_is_out_of_reach() -> None:
    """Though it lies behind that of the block."""
    body = SUM + "mov.u32 %r6, words; st.shared.u32 [%r6+4096], %r12;" + PUT
    with pytest.raises(ptxemu.Fault, match="shared"):
        launch(text(body, FIXED), 8, 64, np.ones(2000, np.uint32), 512)


def test_shared_memory_of_the_cluster_is_that_of_the_block() -> None:
    """Which is a cluster of its own."""
    body = SUM + """
    mov.u32 %r6, words; shl.b32 %r7, %r2, 2; add.u32 %r7, %r7, %r6; st.shared.u32 [%r7], %r12; bar.sync 0;
    mapa.shared::cluster.u32 %r8, %r7, 0; ld.shared::cluster.u32 %r12, [%r8]; red.shared::cluster.add.u32 [%r8], 1;
    ld.shared.u32 %r9, [%r7]; mad.lo.u32 %r12, %r9, 3, %r12;
    """ + PUT  # fmt: skip
    assert facts(body, declarations=FIXED).abreast
    data = np.arange(1000, dtype=np.uint32)
    _, out = launch(text(body, FIXED), 6, 64, data, 384)
    np.testing.assert_array_equal(out, 4 * sums(data, 384) + 3)


def test_a_loop_without_an_end_is_stopped() -> None:
    device = ptxemu.Device(memory="64 MiB")
    data, out = (device.to_device(np.zeros(4096, np.uint32)) for _ in range(2))
    body = "xor.b32 %r11, %r5, 8;" + SUM + PUT  # threads of a grid of 8 blocks do not go on
    assert facts(body).abreast
    with pytest.raises(ptxemu.LaunchTimeout):
        ptxemu.loads(text(body), device=device)["k"][8, 64](4096, data, out, timeout=0.2)
