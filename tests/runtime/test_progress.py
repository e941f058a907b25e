"""Forward progress: threads that wait for each other through memory, in one warp, one CTA and across the grid.

The sources lie beside the PTX in ``data/kernels/progress.cu``.  Every launch has a timeout: a hang is a failure.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile as pipeline
from tests.support.kernel_tools import kernel, run
from tests.support.places import CORPUS, KERNELS, SAMPLES

TIMEOUT = 60.0
PROGRESS = KERNELS / "progress.ptx"


def launch(kernel: str, grid: int, block: int, *args: object, workers: int = 2, **options: object) -> None:
    module = ptxemu.load(PROGRESS, device=ptxemu.Device(memory="64 MiB", workers=workers))
    module[kernel][grid, block](*args, timeout=TIMEOUT, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [1, 3])
def test_decoupled_look_back(workers: int) -> None:
    values = np.random.default_rng(1).integers(0, 1000, 128 * 1000, np.uint32)
    out, state = np.zeros_like(values), np.zeros(1001, np.uint64)
    launch("look_back", 1000, 128, values, out, state, workers=workers)
    np.testing.assert_array_equal(out, np.cumsum(values, dtype=np.uint32))


@pytest.mark.parametrize("workers", [1, 2])
def test_blocks_that_wait_for_later_ones(workers: int) -> None:
    """More blocks than workers; each is taken in while all before it spin."""
    done, order = np.zeros(40, np.uint32), np.zeros(41, np.uint32)
    launch("backwards", 40, 32, done, order, workers=workers)
    assert done.all() and list(order[:40]) == list(range(39, -1, -1))


def test_ticket_lock_across_blocks() -> None:
    ticket, serving, counter = (np.zeros(1, np.uint32) for _ in range(3))
    launch("ticket_lock", 500, 64, ticket, serving, counter, workers=4)
    assert (ticket[0], serving[0], counter[0]) == (500, 500, 500)


def test_producer_and_consumer_warps() -> None:
    out = np.zeros(32, np.uint32)
    launch("producer_consumer", 1, 64, out, 300)
    np.testing.assert_array_equal(out, np.arange(32) * (300 * 301 // 2))


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 70)])
def test_lock_taken_by_all_lanes(grid: int, block: int) -> None:
    lock, counter = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    launch("spin_lock", grid, block, lock, counter, 5)
    assert (lock[0], counter[0]) == (0, 5 * grid * block)


@pytest.mark.parametrize(("grid", "block", "workers"), [(40, 64, 2), (3, 1024, 1), (64, 33, 3)])
def test_grid_synchronization(grid: int, block: int, workers: int) -> None:
    """More blocks than workers, all in a barrier at once."""
    values = np.random.default_rng(2).integers(-50, 50, 5000, np.int32)
    partial, out = np.zeros(3 * grid, np.int32), np.zeros(4, np.int32)
    launch("grid_sync", grid, block, values, partial, out, len(values), 3, workers=workers, cooperative=True)
    assert list(out) == [values.sum()] * 3 + [0]


def test_grid_synchronization_needs_a_cooperative_launch() -> None:
    """The kernel finds no workspace and traps, as compiled."""
    with pytest.raises(ptxemu.Fault, match="trap in kernel `grid_sync`"):
        launch("grid_sync", 2, 32, np.zeros(4, np.int32), np.zeros(4, np.int32), np.zeros(4, np.int32), 4, 1)


def test_cooperative_launch_has_a_limit() -> None:
    with pytest.raises(ptxemu.InputError, match="too large for a cooperative launch"):
        launch("backwards", 1 << 20, 32, np.zeros(4, np.uint32), np.zeros(4, np.uint32), cooperative=True)


@pytest.mark.parametrize("cooperative", [False, True])
def test_endless_spinning_is_stopped(cooperative: bool) -> None:
    """What is awaited never comes."""
    module = ptxemu.load(PROGRESS, device=ptxemu.Device(memory="64 MiB", workers=2))
    flag, out = np.ones(50, np.uint32), np.zeros(1, np.uint32)
    with pytest.raises(ptxemu.LaunchTimeout):
        module["ticket_lock"][50, 64](flag, flag, out, timeout=0.1, cooperative=cooperative)
    assert module["spin_lock"][1, 32](np.zeros(1, np.uint32), out, 1, timeout=TIMEOUT).ctas == 1


def test_lanes_wait_for_each_other_in_turn() -> None:
    token, order = np.zeros(1, np.uint32), np.zeros(32 * 20, np.uint32)
    launch("lane_ring", 1, 32, token, order, 20)
    np.testing.assert_array_equal(order, np.tile(np.arange(31, -1, -1), 20))


def test_lane_waits_for_the_other_branch() -> None:
    flag, out = np.zeros(1, np.uint32), np.zeros(32, np.uint32)
    launch("branches", 1, 32, flag, out)
    assert flag[0] == 31
    assert out[1] == 1001, "lane 1 is given lane 0's value, and one lane has 1000"
    assert sorted(np.delete(out, 1)) == [1 + value for value in range(31)]


MERGED = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; setp.ge.u32 %p1, %r1, 32; @%p1 bra WRITE;
WAIT:
  mad.wide.u32 %rd2, %r2, 4, %rd1; ld.volatile.global.u32 %r3, [%rd2]; setp.ne.u32 %p1, %r3, 0;
  STEP
  setp.lt.u32 %p1, %r2, 16; @%p1 bra WAIT;
  st.global.u32 [%rd1+64], %r3;
  ret;
WRITE:
  mad.wide.u32 %rd2, %r2, 4, %rd1; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%rd2], %r2; nanosleep.u32 10;
  setp.lt.u32 %p1, %r2, 16; @%p1 bra WRITE;
  ret;"""
STEPS = {
    "branch": "@!%p1 bra SAME; add.u32 %r2, %r2, 1; SAME:",
    "guard": "@%p1 add.u32 %r2, %r2, 1;",
    "selection": "add.u32 %r4, %r2, 1; selp.u32 %r2, %r4, %r2, %p1;",
    "summand": "selp.u32 %r4, 1, 0, %p1; add.u32 %r2, %r4, %r2;",
    "subtrahend": "selp.s32 %r4, -1, 0, %p1; sub.u32 %r2, %r2, %r4;",
    "chosen summand": "mov.u32 %r4, 0; @!%p1 bra SAME; mov.u32 %r4, 1; SAME: add.u32 %r2, %r2, %r4;",
}


@pytest.mark.parametrize("step", STEPS)
def test_flags_awaited_in_turn_by_one_loop(step: str) -> None:
    """It counts only where a flag has come: the warp that sets them has its turn."""
    out = np.zeros(17, np.uint32)
    run(kernel(MERGED.replace("STEP", STEPS[step])), 1, 64, out, timeout=TIMEOUT)
    assert list(out) == [*range(1, 17), 16]


def test_half_warps_apart() -> None:
    flag, out = np.zeros(1, np.uint32), np.zeros(32, np.uint32)
    launch("half_warps", 1, 32, flag, out)
    assert list(out) == [15 - lane + 1 for lane in range(16)] + [0xAAAA0001] * 16


@pytest.mark.parametrize("workers", [1, 4])
def test_a_lock_for_each_bucket(workers: int) -> None:
    keys = np.random.default_rng(3).integers(0, 7, 3000, np.uint32)
    locks, sums = np.zeros(7, np.uint32), np.zeros(7, np.uint32)
    launch("buckets", 24, 128, keys, locks, sums, len(keys), workers=workers)
    np.testing.assert_array_equal(sums, np.bincount(keys, np.arange(3000)).astype(np.uint32))


GRID_CALLS = kernel(
    """
  ld.param.u64 %rd1, [out]; ld.param.u32 %r9, [scope];
  { .param .b32 s; .param .b64 h; st.param.b32 [s], %r9; call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd2, [h]; }
  setp.ne.u64 %p1, %rd2, 0; selp.u32 %r1, 1, 0, %p1;
  atom.global.add.u32 %r2, [%rd1], %r1;
  { .param .b64 h; .param .b32 f; .param .b32 e; st.param.b64 [h], %rd2; st.param.b32 [f], 0;
    call.uni (e), cudaCGSynchronizeGrid, (h, f); ld.param.b32 %r3, [e]; }
  ld.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, %r3;
  atom.global.max.u32 %r5, [%rd1+4], %r4; atom.global.min.u32 %r5, [%rd1+8], %r4;
  ret;""",
    ".param .u64 out, .param .u32 scope",
    """.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 s);
.extern .func (.param .b32 r) cudaCGSynchronizeGrid (.param .b64 h, .param .b32 f);
""",
)


@pytest.mark.parametrize(("scope", "present"), [(1, 1), (2, 0)])
def test_grid_barrier_as_a_call(scope: int, present: int) -> None:
    """As separate compilation of cooperative groups leaves it: every thread sees what all did before."""
    out = np.array([0, 0, 1 << 30], np.uint32)
    run(GRID_CALLS, 20, 96, out, scope, cooperative=True, timeout=TIMEOUT)
    assert list(out) == [20 * 96 * present] * 3


def test_grid_barrier_as_a_call_needs_a_cooperative_launch() -> None:
    with pytest.raises(ptxemu.Fault, match=r"barrier misuse in kernel `k`.*grid synchronization needs a cooperative launch"):
        run(GRID_CALLS, 2, 32, np.zeros(3, np.uint32), 1, timeout=TIMEOUT)


# Lanes of both branches meet at their own bar.warp.sync, twice, while lane 0 spins in between.
APART = kernel(
    """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 16; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1;
  @%p1 bra LOW;
  st.global.u32 [%rd2+128], %r1;
  bar.warp.sync 0xffffffff;
  xor.b32 %r2, %r1, 31; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd1; ld.global.u32 %r3, [%rd3+128];
  st.volatile.global.u32 [%rd1+256], 1;
  bra JOIN;
LOW:
  st.global.u32 [%rd2+128], %r1;
  bar.warp.sync 0xffffffff;
  xor.b32 %r2, %r1, 31; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd1; ld.global.u32 %r3, [%rd3+128];
WAIT:
  ld.volatile.global.u32 %r4, [%rd1+256]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT;
JOIN:
  add.u32 %r3, %r3, 100; st.global.u32 [%rd2], %r3; ret;"""
)


def test_lanes_meet_at_different_instructions() -> None:
    out = np.zeros(65, np.uint32)
    run(APART, 1, 32, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out[:32], 131 - np.arange(32))


# Lane 0 waits for a warp that it is part of, whose other lanes are at the barrier of the block.
STUCK = kernel(
    """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  st.volatile.global.u32 [%rd1], 1;
  bar.sync 0;
  bra DONE;
WAIT:
  ld.volatile.global.u32 %r4, [%rd1]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT;
DONE:
  bar.warp.sync 0xffffffff;
  ret;"""
)


def test_lanes_that_wait_in_vain_are_a_deadlock() -> None:
    with pytest.raises(ptxemu.Fault, match=r"deadlock in kernel `k`.*lanes 0x.* wait for lanes that exited or wait elsewhere"):
        run(STUCK, 1, 32, np.zeros(1, np.uint32), timeout=TIMEOUT)


@pytest.mark.parametrize("kernel_name", ["ticket_lock", "lane_ring"])
def test_interrupt_ends_spinning(kernel_name: str) -> None:
    module = ptxemu.load(PROGRESS, device=ptxemu.Device(memory="64 MiB", workers=2))
    never = np.full(64, 99, np.uint32)
    launcher = module[kernel_name][4, 32]
    arguments = [never, never, 1] if kernel_name == "lane_ring" else [never, never.copy(), never]
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        launcher(*arguments, timeout=TIMEOUT)
    timer.join()


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_independent_form_compiles_for_every_level(cpu: str) -> None:
    module = pipeline.front(PROGRESS.read_text())
    for name in module.functions:
        made = pipeline.kernel(module, name, pipeline.Options(cpu=cpu, opt=0))
        assert made.facts.spins and made.object


def test_spin_loops_are_told_from_others() -> None:
    """Which kernels get the slower form: a table, so that a change of the analysis shows."""
    module = pipeline.front(PROGRESS.read_text())
    independent = {
        name
        for name, function in module.functions.items()
        if "lap:" in pipeline.lower(module, function, "row", pipeline.Options()).text
    }
    assert independent == {"ticket_lock", "lane_ring", "branches", "half_warps", "buckets"}


def test_ordinary_kernels_keep_the_fast_form() -> None:
    slower = set()
    for path in [*CORPUS.glob("*.ptx"), *SAMPLES.glob("*/*.ptx")]:
        module = ptxemu.load(path)
        for name in module:
            with suppress(ptxemu.UnsupportedError):
                text = pipeline.lower(module.program.ir, module.program.ir.functions[name], "row", pipeline.Options()).text
                if "lap:" in text:
                    slower.add(name)
    assert slower == {"mb"}, "its thread 0 polls a counter, which the other threads of its warp change meanwhile"


def test_a_nap_lets_other_warps_run() -> None:
    """A hundred attempts to see what a warp writes that has not had a turn before."""
    text = kernel("""
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; mov.u32 %r2, 0;
  @%p1 bra SET;
TRY:
  ld.volatile.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, 0; @%p2 bra SEEN;
  nanosleep.u32 20; add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 100; @%p3 bra TRY; ret;
SEEN:
  st.global.u32 [%rd1+4], 5; ret;
SET:
  st.volatile.global.u32 [%rd1], 1; ret;""")
    out = np.zeros(2, np.uint32)
    run(text, 1, 64, out, timeout=TIMEOUT)
    assert list(out) == [1, 5]
