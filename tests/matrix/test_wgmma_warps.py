"""The warps of a warpgroup that multiply with wgmma: who waits for whom, what is read, and what is a fault."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault
from tests.checkers.planted import checked_device
from tests.matrix import wgmma_model as wgmma
from tests.matrix.test_wgmma import B_AT, LINE, Kind, given, in_shared, plain
from tests.matrix.wgmma_kernels import HEAD, SHARED

KIND = Kind("f32", "f16", "f16", False, True)
OVERWRITE = f"""
  mov.u32 %s, shared; mul.lo.u32 %x0, %t, {SHARED // 128}; add.u32 %s, %s, %x0; mov.u32 %i, 0;
clear:
  st.shared.b32 [%s], 0; add.u32 %s, %s, 4; add.u32 %i, %i, 4; setp.lt.u32 %more, %i, {SHARED // 128};
  @%more bra clear;
"""
SUMS = "{%d0, %d1, %d2, %d3}"
NAME = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def text_of(a: int, b: int, before: str = "", after: str = WAIT) -> str:
    """A kernel that multiplies once, where C is zero."""
    return f"""{HEAD}{before}
  add.u64 %da, %base, {a}; add.u64 %db, %base, {b};
  {NAME} {SUMS}, %da, %db, 0, 1, 1, 0, 0; {after}
  st.global.b32 [%pd], %d0; st.global.b32 [%pd+512], %d1; st.global.b32 [%pd+1024], %d2; st.global.b32 [%pd+1536], %d3;
  ret;
}}"""


def launch(text: str, memory: np.ndarray, threads: int = 128, device: ptxemu.Device | None = None) -> np.ndarray:
    d, nothing = np.zeros((4, 128), np.uint32), np.zeros(512, np.uint32)
    module = ptxemu.loads(text, filename="k.ptx", **({} if device is None else {"device": device}))
    module["k"][1, threads](memory, nothing, nothing, nothing, d)
    return d


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_who_has_waited_may_overwrite_what_others_read(engine: str) -> None:
    """No barrier follows: wait_group says that the multiplication of all four warps is complete."""
    of = given(KIND, 11)
    a, b = plain(KIND)
    text = text_of(a.bits, b.bits + B_AT // LINE, after=WAIT + OVERWRITE)
    d = launch(text, in_shared(of, a, b), device=ptxemu.Device(engine=engine))
    np.testing.assert_array_equal(wgmma.from_warps(d, "f32", 8), of.sums(np.zeros((64, 8), np.int64)))


device = checked_device("race")


@pytest.mark.parametrize(("after", "races"), [(WAIT + OVERWRITE, False), (OVERWRITE, True)])
def test_checker_of_races_sees_what_is_read(after: str, races: bool, device: ptxemu.Device) -> None:
    a, b = plain(KIND)
    assert device.checks is not None
    device.checks.clear()
    launch(text_of(a.bits, b.bits + B_AT // LINE, after=after), np.zeros(SHARED, np.uint8), device=device)
    assert bool(device.checks.findings) == races


SAFE = (1 << 16 | 8 << 32, 1 << 16 | 8 << 32 | B_AT // LINE)
OUTSIDE = (SHARED - 16) // LINE


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("a", "b"),
    [(OUTSIDE | SAFE[0], SAFE[1]), (SAFE[0], SAFE[0] | 0x3FFF), (SAFE[0], SAFE[1] | 0x3FFF << 16),
     (SAFE[0] | 0x3FFF << 32, SAFE[1]), (0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 3 << 62, SAFE[1])],
)  # fmt: skip
def test_matrices_beyond_shared_memory_are_faults(a: int, b: int, engine: str) -> None:
    with pytest.raises(Fault, match=r"illegal address(.|\n)*k\.ptx:\d+(.|\n)*shared"):
        launch(text_of(a, b), np.zeros(SHARED, np.uint8), device=ptxemu.Device(engine=engine))


def test_any_descriptor_reads_shared_memory_or_faults() -> None:
    """Programs may make them of anything."""
    rng, outcomes = np.random.default_rng(12), set()
    for _ in range(30):
        a, b = (int(x) & ~(int(rng.integers(0, 2)) * 0x3F00_3F00_3F00) for x in rng.integers(0, 1 << 64, 2, np.uint64))
        try:
            launch(text_of(a, b), np.zeros(SHARED, np.uint8))
            outcomes.add("read")
        except Fault as fault:
            outcomes.add(fault.details.kind)
    assert outcomes == {"read", "illegal address"}


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("threads", "before", "message"),
    [(64, "", "deadlock(.|\n)*64 arrived"), (112, "", "partial warp"),
     (128, "setp.eq.u32 %p, %t, 5; @%p exit;", "partial warp")],
)  # fmt: skip
def test_warpgroups_that_are_not_whole_are_faults(threads: int, before: str, message: str, engine: str) -> None:
    with pytest.raises(Fault, match=message):
        launch(text_of(*SAFE, before=before), np.zeros(SHARED, np.uint8), threads, ptxemu.Device(engine=engine))


def test_each_warpgroup_waits_for_itself() -> None:
    """The second one does so once more."""
    of = given(KIND, 13)
    a, b = plain(KIND)
    more = "mov.u32 %x0, %tid.x; setp.lt.u32 %p, %x0, 128; @%p bra once; wgmma.wait_group.sync.aligned 1; once:"
    text = text_of(a.bits, b.bits + B_AT // LINE, after=more + WAIT).replace("%t, %tid.x;", "%t, %tid.x; and.b32 %t, %t, 127;", 1)
    d = launch(text, in_shared(of, a, b), 256)
    np.testing.assert_array_equal(wgmma.from_warps(d, "f32", 8), of.sums(np.zeros((64, 8), np.int64)))


STAGES = 6
COPIES = "\n".join(
    f"  ld.global.v4.b32 {{%x0, %x1, %x2, %x3}}, [%from+{at}]; st.shared.v4.b32 [%s+{at}], {{%x0, %x1, %x2, %x3}};"
    for at in (0, B_AT, B_AT + 4096)  # A, and the first columns of B along both lines
)
PIPELINE = f"""{HEAD.split("  ld.global.b32 %a0")[0].replace("%more;", "%more, %done;")}
  setp.ne.u32 %p, %t, 0; mov.u32 %s, shared; cvt.u64.u32 %base, %s; shr.u64 %base, %base, 4;
  @%p bra ready;
  mbarrier.init.shared.b64 [shared+8192], 128; mbarrier.init.shared.b64 [shared+8200], 1;
ready:
  bar.sync 0; mov.u32 %i, 0;
  mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
  add.u64 %da, %base, {plain(KIND)[0].bits}; add.u64 %db, %base, {plain(KIND)[1].bits + B_AT // LINE};
  setp.ge.u32 %p, %t, 128; @%p bra produce;
consume:
  and.b32 %x0, %i, 1;
wait_full:
  mbarrier.try_wait.parity.shared.b64 %done, [shared+8192], %x0; @!%done bra wait_full;
  setp.lt.u32 %q, %t, 32; @%q bra multiply;
  nanosleep.u32 1000; nanosleep.u32 1000; nanosleep.u32 1000;
multiply:
  wgmma.fence.sync.aligned; {NAME} {SUMS}, %da, %db, 1, 1, 1, 0, 0; {WAIT}
  setp.ne.u32 %q, %t, 0; @%q bra consumed;
  mbarrier.arrive.shared.b64 _, [shared+8200];
consumed:
  add.u32 %i, %i, 1; setp.lt.u32 %more, %i, {STAGES}; @%more bra consume;
  st.global.b32 [%pd], %d0; st.global.b32 [%pd+512], %d1; st.global.b32 [%pd+1024], %d2; st.global.b32 [%pd+1536], %d3;
  ret;
produce:
  sub.u32 %t, %t, 128; mul.wide.u32 %o, %t, 16; add.u64 %from, %from, %o; shl.b32 %x0, %t, 4; add.u32 %s, %s, %x0;
fill:
  xor.b32 %x0, %i, 1; and.b32 %x0, %x0, 1;
wait_empty:
  mbarrier.try_wait.parity.shared.b64 %done, [shared+8200], %x0; @!%done bra wait_empty;
{COPIES}
  add.u64 %from, %from, {SHARED};
  fence.proxy.async; mbarrier.arrive.shared.b64 _, [shared+8192];
  add.u32 %i, %i, 1; setp.lt.u32 %more, %i, {STAGES}; @%more bra fill;
  ret;
}}"""


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_one_thread_may_say_that_a_warpgroup_has_read(engine: str) -> None:
    """As CUTLASS's pipelines do: one warpgroup overwrites the matrices as soon as a thread of the other has waited.

    The warps of the others are late.
    """
    stages = [given(KIND, seed) for seed in range(STAGES)]
    memory = np.concatenate([in_shared(of, *plain(KIND)) for of in stages])
    d = launch(PIPELINE, memory, 256, ptxemu.Device(engine=engine))
    want = np.zeros((64, 8), np.int64)
    for of in stages:
        want = of.sums(want)
    np.testing.assert_array_equal(wgmma.from_warps(d, "f32", 8), want)
