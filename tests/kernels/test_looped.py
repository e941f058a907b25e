"""Kernels whose code runs all warps of a block: which they are, and that barriers, exits and faults stay what they were."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxemu
from ptxemu.device.code import Facts
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import GLOBAL_INDEX, kernel, run

SHARED = ".shared .align 16 .b8 words[8192];\n"
OUT = "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2;"
MUCH = "mul.lo.u32 %r9, %r0, %r0;" + "\n".join(f"mad.lo.u32 %r{10 + i}, %r9, {2 * i + 3}, {i};" for i in range(40))
READ = "mov.u32 %r5, 0;" + "\n".join(f"mad.lo.u32 %r5, %r5, 31, %r{10 + i};" for i in range(40))


def text(body: str, **options: str) -> str:
    return kernel(GLOBAL_INDEX + OUT + body, declarations=SHARED, **options)


def facts(body: str, observed: Observed = "") -> Facts:
    return compile.kernel(compile.front(text(body)), "k", compile.Options(observed=observed)).facts


BARRIER = "bar.sync 0;"
LOOPED = {
    "no barrier": "st.global.u32 [%rd1], %r0;",
    "one": BARRIER,
    "two of one number": "bar.sync 3; barrier.sync 3; barrier.cta.sync.aligned 3;",
    "arm of a branch": "setp.lt.u32 %p1, %r0, 40; @%p1 bra A; bra B; A: bar.sync 0; B:",
    "loop": "mov.u32 %r5, 0; L: bar.sync 0; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 9; @%p1 bra L;",
}
FIBERS = {
    "two numbers": "bar.sync 0; bar.sync 1;",
    "a number that is not constant": "and.b32 %r5, %r0, 0; bar.sync %r5;",
    "a count": "bar.sync 0, 64;",
    "an arrival": "bar.arrive 1, 64; bar.sync 0;",
    "a reduction": "setp.lt.u32 %p1, %r0, 4; bar.red.popc.u32 %r5, 0, %p1; st.global.u32 [%rd1], %r5;",
    "a pause": "bar.sync 0; nanosleep.u32 20;",
    "a spin loop": "L: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 0; @%p1 bra L;",
    "65 barriers": "bar.sync 0; " * 65,
    "a barrier with much behind it": f"{MUCH} bar.sync 0; {READ} st.global.u32 [%rd1], %r5;",
}


@pytest.mark.parametrize("name", LOOPED)
def test_looped(name: str) -> None:
    found = facts(LOOPED[name])
    assert found.looped
    assert found.suspends == ("bar" in LOOPED[name])


@pytest.mark.parametrize("name", FIBERS)
def test_not_looped(name: str) -> None:
    assert not facts(FIBERS[name]).looped


@pytest.mark.parametrize("observed", ["strays", "all"])
def test_code_that_is_observed_is_looped(observed: Observed) -> None:
    assert facts(BARRIER, observed=observed).looped


@pytest.mark.parametrize(
    ("variant", "observed", "count"), [("row", "", 1), ("warp", "", 0), ("warp", "strays", 0), ("warp", "all", 1)]
)
def test_nobody_waits_in_a_block_of_one_warp(variant: str, observed: Observed, count: int) -> None:
    """Unless somebody is to be told that all warps have come together."""
    lowered = compile.emit(compile.front(text(BARRIER)), "k", compile.Options(variant=variant, observed=observed), "llvm")
    assert str(lowered).count("resume1:") == count


def launch(body: str, block: int, grid: int = 2, **options: object) -> np.ndarray:
    out = np.zeros(grid * block, np.uint32)
    assert facts(body).looped
    run(text(body), grid, block, out, **options)
    return out


EXCHANGE = """
mov.u32 %r6, %tid.x; mov.u32 %r7, %ntid.x; mov.u32 %r9, words;
shl.b32 %r8, %r6, 2; add.u32 %r8, %r8, %r9;
st.shared.u32 [%r8], %r0;
bar.sync 0;
sub.u32 %r8, %r7, %r6; sub.u32 %r8, %r8, 1; shl.b32 %r8, %r8, 2; add.u32 %r8, %r8, %r9;
ld.shared.u32 %r5, [%r8];
st.global.u32 [%rd1], %r5;
"""


@pytest.mark.parametrize("block", [1, 31, 32, 33, 64, 300, 1024])
def test_words_of_the_thread_at_the_other_end(block: int) -> None:
    expected = np.arange(3 * block, dtype=np.uint32).reshape(3, block)[:, ::-1].ravel()
    np.testing.assert_array_equal(launch(EXCHANGE, block, 3), expected)


TURNS = """
mov.u32 %r6, %tid.x; shr.u32 %r7, %r6, 5; mov.u32 %r5, 0; mov.u32 %r9, words;
L: setp.ge.u32 %p1, %r5, %r7; @%p1 bra DONE;
bar.sync 0;
add.u32 %r5, %r5, 1;
bra L;
DONE: mov.u32 %r8, 1; atom.shared.add.u32 %r8, [%r9], %r8;
st.global.u32 [%rd1], %r8;
"""


def test_warps_exit_one_after_another() -> None:
    """Warp w passes w barriers: the others wait for no warp that has exited, and those before have all come."""
    out = launch(TURNS, 256, 2).reshape(2, 8, 32)
    for block in out:
        order = block.max(axis=1)
        assert list(order) == sorted(order)
        assert set(block.ravel() - block.min()) == set(range(256))


APART = """
mov.u32 %r6, %tid.x; and.b32 %r7, %r6, 3; mul.lo.u32 %r5, %r6, 7;
setp.lt.u32 %p1, %r7, 2; @%p1 bra FEW;
add.u32 %r5, %r5, 1000;
bar.sync 0;
add.u32 %r5, %r5, %r7;
bra JOIN;
FEW: mul.lo.u32 %r5, %r5, 3;
JOIN: st.global.u32 [%rd1], %r5;
"""


def test_lanes_that_wait_in_another_arm() -> None:
    """They keep their values and their turn while the rest of the warp waits at a barrier."""
    thread = np.tile(np.arange(96, dtype=np.uint32), 2)
    expected = np.where(thread % 4 < 2, thread * 21, thread * 7 + 1000 + thread % 4)
    np.testing.assert_array_equal(launch(APART, 96), expected)


COUNTED = """
mov.u32 %r6, %tid.x; and.b32 %r7, %r6, 7; mov.u32 %r5, 0; mov.u32 %r8, 0;
L: setp.ge.u32 %p1, %r5, %r7; @%p1 bra SKIP; mad.lo.u32 %r8, %r5, %r7, %r8;
SKIP: bar.sync 0;
add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 10; @%p1 bra L;
st.global.u32 [%rd1], %r8;
"""


def test_values_of_a_loop_with_barriers() -> None:
    of = [sum(i * n for i in range(n)) for n in range(8)]
    np.testing.assert_array_equal(launch(COUNTED, 128), [of[t % 8] for t in range(128)] * 2)


PLACES = """
mul.lo.u32 %r5, %r0, 3; xor.b32 %r6, %r0, 0x55; and.b32 %r7, %r0, 1; setp.eq.u32 %p1, %r7, 0;
bar.sync 0;
mov.u32 %r7, 0;
L: mul.lo.u32 %r8, %r6, %r7; cvt.u64.u32 %rd3, %r8; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 5; @%p2 bra L;
bar.sync 0;
add.u32 %r9, %r8, %r5;
bar.sync 0;
selp.u32 %r9, %r9, %r5, %p1; cvt.u32.u64 %r8, %rd3; add.u32 %r9, %r9, %r8;
st.global.u32 [%rd1], %r9;
"""


def test_values_outlive_different_barriers() -> None:
    """Of several sizes, in places that they share, one of them made in a loop between two barriers."""
    index = np.arange(256, dtype=np.uint32)
    made = (index ^ 0x55) * 4
    np.testing.assert_array_equal(launch(PLACES, 128), np.where(index % 2, index * 3, made + index * 3) + made)


LOCAL = """
.local .align 4 .b8 own[16];
mov.u32 %r6, 0; st.local.u32 [own], %r0; st.local.u32 [own+4], %r6;
bar.sync 0;
ld.local.u32 %r5, [own]; st.global.u32 [%rd1], %r5;
"""


def test_local_memory_of_warps_that_wait() -> None:
    np.testing.assert_array_equal(launch(LOCAL, 128), np.arange(256))


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_wrapped_addresses(barrier: str) -> None:
    """Offsets of lanes that wrap in 32 bits, in some warps, before a barrier that comes before the access."""
    body = f"""
    sub.u32 %r6, %r0, 40; mul.wide.u32 %rd3, %r6, 4; {barrier} ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, 160;
    shl.b64 %rd4, %rd3, 0; setp.lt.u32 %p1, %r6, 4096; @!%p1 bra NEG; add.u64 %rd1, %rd1, %rd3; bra PUT;
    NEG: sub.u64 %rd3, %rd3, 17179869184; add.u64 %rd1, %rd1, %rd3;
    PUT: st.global.u32 [%rd1], %r0;"""
    np.testing.assert_array_equal(launch(body, 128, 1), np.arange(128))


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_one_of_two_indexes_wraps(barrier: str) -> None:
    """Both do in the first block, so that what the code keeps of the other one is not zero in memory."""
    body = f"""
    mov.u32 %r5, %tid.x; mov.u32 %r6, %ctaid.x; mad.lo.u32 %r7, %r6, 4096, %r5; sub.u32 %r7, %r7, 40; sub.u32 %r8, %r5, 40;
    cvt.u64.u32 %rd3, %r7; cvt.u64.u32 %rd4, %r8; {barrier}
    shl.b64 %rd4, %rd4, 1; add.u64 %rd3, %rd3, %rd4; shr.u64 %rd3, %rd3, 16; st.global.u32 [%rd1], %rd3;"""
    block, lane = np.divmod(np.arange(256), 128)
    expected = ((block * 4096 + lane - 40) % 2**32 + (lane - 40) % 2**32 * 2) >> 16
    np.testing.assert_array_equal(launch(body, 128, 2), expected)


@pytest.mark.parametrize("how", ["trap", "address", "unmapped"])
@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_faults_name_the_thread(barrier: str, how: str) -> None:
    what = {"trap": "trap;", "address": "ld.global.u32 %r5, [%rd4+1];", "unmapped": "ld.global.u32 %r5, [%rd4];"}[how]
    body = f"{barrier} setp.ne.u32 %p1, %r0, 70; @%p1 bra OVER; mov.u64 %rd4, 4096; {what} OVER: st.global.u32 [%rd1], %r0;"
    with pytest.raises(ptxemu.Fault, match=re.escape("(70,0,0)")):
        launch(body, 128, 1)


def test_a_fault_of_the_hardware_is_that_of_the_warp() -> None:
    device = ptxemu.Device(memory="64 MiB")
    buffer = device.to_device(np.zeros(128, np.uint32))
    body = "bar.sync 0; setp.lt.u32 %p1, %r0, 64; @%p1 bra OVER; add.u64 %rd1, %rd1, 65536; OVER: st.global.u32 [%rd1], %r0;"
    with pytest.raises(ptxemu.Fault, match="warp 2"):
        ptxemu.loads(text(body), device=device)["k"][1, 128](buffer)


def test_timeout() -> None:
    with pytest.raises(ptxemu.LaunchTimeout):
        launch("L: bar.sync 0; bra L;", 128, timeout=0.2)


def test_the_end_of_some_lanes() -> None:
    body = "and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 0; @%p1 exit; bar.sync 0; st.global.u32 [%rd1], %r0;"
    index = np.arange(192)
    np.testing.assert_array_equal(launch(body, 96), np.where(index % 2, index, 0))


def test_functions_are_called_for_each_warp() -> None:
    declarations = (
        SHARED
        + """
.visible .func (.param .u32 r) fact(.param .u32 n) {
 .reg .u32 %r<6>; .reg .pred %p1;
 ld.param.u32 %r1, [n]; mov.u32 %r2, 1; setp.lt.u32 %p1, %r1, 2; @%p1 bra E;
 sub.u32 %r3, %r1, 1; call (%r4), fact, (%r3); mul.lo.u32 %r2, %r1, %r4;
 E: st.param.u32 [r], %r2; ret; }
"""
    )
    body = "and.b32 %r5, %r0, 7; bar.sync 0; call (%r6), fact, (%r5); bar.sync 0; st.global.u32 [%rd1], %r6;"
    out = np.zeros(96, np.uint32)
    run(kernel(GLOBAL_INDEX + OUT + body, declarations=declarations), 1, 96, out)
    of = [1, 1, 2, 6, 24, 120, 720, 5040]
    np.testing.assert_array_equal(out, [of[t % 8] for t in range(96)])


STRIDES = """
mov.u32 %r6, %tid.x; mov.u32 %r7, %ntid.x; mov.u32 %r9, words; mov.u32 %r12, 0;
st.shared.u32 [%r9], %r12; bar.sync 0;
mov.u32 %r10, %r0; mov.u32 %r11, %nctaid.x; mul.lo.u32 %r11, %r11, %r7;
setp.ge.u32 %p1, %r10, COUNT; @%p1 bra DONE;
L: ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r10, 4; add.u64 %rd2, %rd2, %rd3;
ld.global.u32 %r5, [%rd2]; atom.shared.add.u32 %r13, [%r9], 1; mad.lo.u32 %r5, %r5, 65536, %r13; st.global.u32 [%rd2], %r5;
add.u32 %r12, %r12, 1; add.u32 %r10, %r10, %r11; setp.lt.u32 %p1, %r10, COUNT; @%p1 bra L;
DONE: bar.sync 0;
ld.shared.u32 %r5, [%r9]; setp.ge.u32 %p1, %r0, %r11; @%p1 exit;
ld.param.u64 %rd2, [out]; add.u32 %r10, %r0, COUNT; mul.wide.u32 %rd3, %r10, 4; add.u64 %rd2, %rd2, %rd3;
mad.lo.u32 %r5, %r5, 65536, %r12; st.global.u32 [%rd2], %r5;
"""


@pytest.mark.parametrize("stride", ["%r11", "192"])
def test_warps_go_through_strides_together(stride: str) -> None:
    """Each takes eight trips of the loop at a time, and none passes the barrier before all have left it."""
    block, grid, count = 96, 2, 192 * 19 + 40
    body = STRIDES.replace("COUNT", str(count)).replace("%r10, %r10, %r11", f"%r10, %r10, {stride}")
    assert facts(body).looped
    words = np.ones(count + block * grid, np.uint32)
    run(text(body), grid, block, words)
    assert set(words[:count] >> 16) == {1}
    tickets = words[:count] & 0xFFFF
    index = np.arange(count)
    for cta in range(grid):
        own = index // block % grid == cta
        assert sorted(tickets[own]) == list(range(own.sum()))
    trip, warp = index // (block * grid), index % block // 32
    early = (trip < 16) & (index // block % grid == 0)
    turns = (trip[early] // 8 * 3 + warp[early]) * 8 + trip[early] % 8
    np.testing.assert_array_equal(tickets[early], turns * 32 + index[early] % 32)
    trips = [len(range(thread, count, block * grid)) for thread in range(block * grid)]
    total = [(index // block % grid == cta).sum() for cta in range(grid) for _ in range(block)]
    np.testing.assert_array_equal(words[count:], np.multiply(total, 65536) + trips)


LOCAL_STRIDES = """
.local .align 4 .b8 own[16];
mov.u32 %r5, own; and.b32 %r6, %r0, 3; shl.b32 %r6, %r6, 2; add.u32 %r5, %r5, %r6; st.local.u32 [%r5], %r0;
mov.u32 %r7, %ntid.x; mov.u32 %r11, %nctaid.x; mul.lo.u32 %r11, %r11, %r7; mov.u32 %r10, %r0;
L: ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r10, 4; add.u64 %rd2, %rd2, %rd3;
ld.global.u32 %r12, [%rd2]; ld.local.u32 %r13, [%r5]; add.u32 %r12, %r12, %r13; st.global.u32 [%rd2], %r12;
add.u32 %r10, %r10, %r11; setp.lt.u32 %p1, %r10, COUNT; @%p1 bra L;
"""


@pytest.mark.parametrize("block", [32, 96])
def test_local_memory_of_warps_in_strides(block: int) -> None:
    """Each warp comes back to its own, though none of them waits for another."""
    grid, count = 2, block * 2 * 19
    body = LOCAL_STRIDES.replace("COUNT", str(count))
    assert facts(body).looped
    words = np.ones(count, np.uint32)
    run(text(body), grid, block, words)
    np.testing.assert_array_equal(words, np.arange(count) % (block * grid) + 1)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
def test_the_mask_of_a_warp_is_not_made_bit_by_bit(cpu: str) -> None:
    body = """ld.param.u64 %rd5, [out]; setp.ge.u32 %p1, %r0, 1000; @%p1 bra DONE;
      mul.wide.u32 %rd6, %r0, 4; add.u64 %rd5, %rd5, %rd6; ld.global.u32 %r1, [%rd5]; st.global.u32 [%rd5+4096], %r1; DONE:"""
    code = str(compile.emit(compile.front(text(body)), "k", compile.Options(cpu=cpu), "asm"))
    assert "pinsrb" not in code


COMMON = """
ld.param.u32 %r5, [n]; ld.param.f32 %f1, [x]; mov.u32 %r6, %ctaid.x; mov.u32 %r8, %nctaid.x; mov.u32 %r9, 0;
mul.lo.u32 %r7, %r6, %r5; setp.gt.u32 %p1, %r6, 1;
AGAIN:
bar.sync 0;
@%p1 bra OVER;
rcp.rn.f32 %f2, %f1; mad.lo.u32 %r10, %r8, 100, %r7; cvt.rn.f32.u32 %f3, %r10; fma.rn.f32 %f4, %f2, %f3, %f4;
OVER:
bar.sync 0;
add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r5; @%p2 bra AGAIN;
bar.sync 0;
add.f32 %f4, %f4, %f1; mov.b32 %r11, %f4; add.u32 %r11, %r11, %r0;
st.global.u32 [%rd1], %r11;
"""
NUMBERS = ".param .u64 out, .param .u32 n, .param .f32 x"


def test_what_all_warps_have_in_common() -> None:
    """It is computed once for a block, in arms that only some blocks take as well."""
    body = "mov.f32 %f4, 0f00000000;" + COMMON
    lowered = str(compile.emit(compile.front(text(body, parameters=NUMBERS)), "k", compile.Options(), "llvm"))
    before, _, turns = lowered.partition("\nturn:")
    assert before.count("fdiv") == 1 and "fdiv" not in turns
    grid, block, n, x = 5, 100, 3, np.float32(1.7)
    out = np.zeros(grid * block, np.uint32)
    run(text(body, parameters=NUMBERS), grid, block, out, n, x)
    index = np.arange(grid * block, dtype=np.uint32)
    place = index // block
    each = (np.float64(np.float32(1) / x) * (grid * 100 + place * n)).astype(np.float64)
    total = np.zeros(grid * block, np.float32)
    for _ in range(n):
        total = np.where(place > 1, total, (total + each).astype(np.float32))
    np.testing.assert_array_equal(out, (total + x).view(np.uint32) + index)


def test_what_a_warp_has_is_its_own() -> None:
    """The number of a warp, and the address of its local memory, are the same in all lanes, not in all warps."""
    body = f"mov.u32 %r5, %warpid; add.u32 %r5, %r5, 3; {BARRIER * 3} st.global.u32 [%rd1], %r5;"
    np.testing.assert_array_equal(launch(body, 96, 1), np.repeat([3, 4, 5], 32))
