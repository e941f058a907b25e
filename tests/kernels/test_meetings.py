"""Lanes of one warp that wait for each other at different instructions: barriers that count threads."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile as pipeline
from tests.support.kernel_tools import kernel, run

TIMEOUT = 30.0
START = """
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd1; and.b32 %r1, %r0, 1;
  setp.eq.u32 %p1, %r1, 1; mov.u32 %r20, shared; shl.b32 %r2, %r0, 2; add.u32 %r21, %r20, %r2; xor.b32 %r3, %r2, 4;
  add.u32 %r22, %r20, %r3;
"""
SHARED = ".shared .align 16 .b8 shared[4096];\n"


def made(body: str, functions: str = "") -> str:
    return kernel(START + body + "\n  ret;", declarations=SHARED + functions)


def is_independent(text: str) -> bool:
    module = pipeline.front(text)
    return "lap:" in pipeline.lower(module, module.functions["k"], "row", pipeline.Options()).text


# Odd and even lanes leave a value for each other and meet at barriers of different instructions.
@pytest.mark.parametrize("barrier", ["barrier.sync 1, 64", "barrier.cta.sync 0", "barrier.sync %r30", "barrier.sync %r30, %r31"])
def test_both_branches_of_a_warp_come_to_a_barrier(barrier: str) -> None:
    text = made(f"""
  mov.u32 %r30, 3; mov.u32 %r31, %ntid.x;
  @%p1 bra ODD;
  add.u32 %r5, %r0, 1000; st.shared.u32 [%r21], %r5; {barrier}; ld.shared.u32 %r6, [%r22]; bra JOIN;
ODD:
  add.u32 %r5, %r0, 2000; st.shared.u32 [%r21], %r5; {barrier}; ld.shared.u32 %r6, [%r22];
JOIN:
  st.global.u32 [%rd2], %r6;""")
    out = np.zeros(64, np.uint32)
    run(text, 3, 64, out, timeout=TIMEOUT)
    other = np.arange(64) ^ 1
    np.testing.assert_array_equal(out, other + np.where(other & 1, 2000, 1000))
    assert is_independent(text)


def test_producer_and_consumer_lanes() -> None:
    """Even lanes produce and arrive; odd ones of the same warps wait; ten rounds over two barriers."""
    text = made("""
  mov.u32 %r8, 0; mov.u32 %r9, 0;
  @%p1 bra CONSUME;
PRODUCE:
  barrier.sync 2, 64;
  mad.lo.u32 %r5, %r0, 3, %r8; st.shared.u32 [%r21], %r5; barrier.arrive 1, 64;
  add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 10; @%p2 bra PRODUCE;
  bra JOIN;
CONSUME:
  barrier.arrive 2, 64; barrier.sync 1, 64;
  ld.shared.u32 %r6, [%r22]; add.u32 %r9, %r9, %r6;
  add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 10; @%p2 bra CONSUME;
JOIN:
  st.global.u32 [%rd2], %r9;""")
    out = np.zeros(64, np.uint32)
    run(text, 2, 64, out, timeout=TIMEOUT)
    tid = np.arange(64)
    np.testing.assert_array_equal(out, np.where(tid & 1, 10 * 3 * (tid ^ 1) + 45, 0))


@pytest.mark.parametrize(("threads", "count"), [(64, ""), (50, ""), (64, ", 64")])
def test_reductions_in_different_branches(threads: int, count: str) -> None:
    """One reduction of all threads; popc, and, or may be asked for side by side; a last warp that is not full counts whole."""
    text = made(f"""
  setp.ne.u32 %p3, %r0, 7; setp.eq.u32 %p4, %r0, 4096;
  @%p1 bra ODD;
  barrier.red.popc.u32 %r6, 0{count}, %p3; barrier.red.or.pred %p5, 1{count}, !%p3; bra JOIN;
ODD:
  barrier.red.popc.u32 %r6, 0{count}, !%p4; barrier.red.and.pred %p5, 1{count}, %p4;
JOIN:
  selp.u32 %r7, 1000, 0, %p5; add.u32 %r6, %r6, %r7; st.global.u32 [%rd2], %r6;""")
    out = np.zeros(threads, np.uint32)
    run(text, 1, threads, out, timeout=TIMEOUT)
    # thread 7 is odd: all predicates of the first barrier hold, and none of the second
    assert list(out) == [threads] * threads


def test_lanes_at_different_barriers_of_one_instruction() -> None:
    """The barrier's number varies among the lanes of a warp."""
    text = made("""
  add.u32 %r5, %r0, 7; xor.b32 %r3, %r2, 8; add.u32 %r22, %r20, %r3;
  @%p1 bra LATE;
MEET:
  st.shared.u32 [%r21], %r5; barrier.sync %r1, 32; ld.shared.u32 %r6, [%r22]; st.global.u32 [%rd2], %r6; ret;
LATE:
  add.u32 %r5, %r5, 100; barrier.sync 5, 32; bra MEET;""")
    out = np.zeros(64, np.uint32)
    run(text, 1, 64, out, timeout=TIMEOUT)
    other = np.arange(64) ^ 2
    np.testing.assert_array_equal(out, other + 7 + 100 * (other & 1))


@pytest.mark.parametrize("branch", ["bra OUT", "exit"])
def test_a_barrier_after_an_early_exit_stays_fast(branch: str) -> None:
    """Whether they have left or are about to: nobody waits for the lanes that go."""
    text = made(f"""
  setp.gt.u32 %p2, %r0, 40; @%p2 {branch};
  st.shared.u32 [%r21], %r0; barrier.sync 0; xor.b32 %r3, %r0, 32; setp.gt.u32 %p3, %r3, 40; @%p3 bra OUT;
  shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r20; ld.shared.u32 %r6, [%r3]; st.global.u32 [%rd2], %r6;
OUT:""")
    out = np.full(64, 99, np.uint32)
    run(text, 2, 64, out, timeout=TIMEOUT)
    tid = np.arange(64)
    np.testing.assert_array_equal(out, np.where((tid > 40) | (tid ^ 32 > 40), 99, tid ^ 32))
    assert not is_independent(text)


def test_a_true_deadlock_is_reported() -> None:
    text = made("@%p1 bra ODD; barrier.sync 1, 64; bra JOIN; ODD: barrier.sync 2, 64; JOIN:")
    with pytest.raises(
        ptxemu.Fault, match=r"deadlock in kernel `k`.*barrier 1 waits for 64 threads, 32 arrived and no warp can run"
    ):
        run(text, 1, 64, np.zeros(64, np.uint32), timeout=TIMEOUT)
    with pytest.raises(ptxemu.Fault, match=r"barrier misuse in kernel `k`.*differs from that of an earlier arrival"):
        run(text.replace("2, 64", "1, 32"), 1, 64, np.zeros(64, np.uint32), timeout=TIMEOUT)


# ---- device functions

SWAP = """.func (.reg .b32 got) swap(.reg .b32 mine, .reg .b32 theirs, .reg .b32 value)
{ st.shared.u32 [mine], value; %s; ld.shared.u32 got, [theirs]; ret; }
.func (.reg .b32 got) peek(.reg .b32 mine, .reg .b32 theirs, .reg .b32 value)
{ st.shared.u32 [mine], value; barrier.sync 1, 64; ld.shared.u32 got, [theirs]; add.u32 got, got, 1; ret; }
"""
CHOICE = """
  {.reg .b64 %%f; .reg .b64 %%g;
  P: .callprototype (.reg .b32 d) _ (.reg .b32 a, .reg .b32 b, .reg .b32 c);
  mov.u64 %%f, swap; mov.u64 %%g, %s; selp.u64 %%f, %%f, %%g, %%p1; call (%%r6), %%f, (%%r21, %%r22, %%r0), P;}
  st.global.u32 [%%rd2], %%r6;"""


@pytest.mark.parametrize("other", ["swap", "peek"])
def test_functions_called_through_addresses_meet(other: str) -> None:
    """Half of each warp calls another function; both have a barrier."""
    out = np.zeros(64, np.uint32)
    run(made(CHOICE % other, SWAP % "barrier.sync 1, 64"), 2, 64, out, timeout=TIMEOUT)
    tid = np.arange(64)
    np.testing.assert_array_equal(out, (tid ^ 1) + ((tid & 1 == 0) if other == "peek" else 0))


def test_a_function_with_a_barrier_in_a_kernel_whose_lanes_wait() -> None:
    """Lane 0 of a warp waits for lane 1 before it comes to the barrier, which is of whole warps."""
    wait = """
  setp.eq.u32 %p4, %r0, 0; setp.eq.u32 %p5, %r0, 1; @!%p4 bra SET;
WAIT: ld.volatile.shared.u32 %r4, [%r20+4000]; setp.ne.u32 %p2, %r4, 77; @%p2 bra WAIT; bra MEET;
SET: @%p5 st.volatile.shared.u32 [%r20+4000], 77;
MEET:"""
    out = np.zeros(64, np.uint32)
    text = made(wait + CHOICE % "swap", SWAP % "bar.sync 0")
    run(text, 2, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, np.arange(64) ^ 1)
    assert is_independent(text)


RECURSIVE = """.func deep(.reg .b32 n, .reg .b32 address)
{ .reg .pred %p; .reg .b32 %v; setp.eq.u32 %p, n, 0; @%p ret;
  @%p bra OTHER; SPIN
OTHER:
  st.volatile.shared.u32 [address], n; sub.u32 n, n, 1; call deep, (n, address); ret; }
"""


@pytest.mark.parametrize(
    "wait",
    [
        "W: atom.shared.cas.b32 %v, [address], 0, 1; setp.ne.u32 %p, %v, 0; @%p bra W;",
        "setp.eq.u32 %p, n, 2; @%p bra Y; barrier.sync 1, 64; bra OTHER; Y: barrier.sync 1, 64;",
    ],
)
def test_recursive_functions_in_which_lanes_wait_are_refused(wait: str) -> None:
    text = made("call deep, (%r1, %r21);", RECURSIVE.replace("SPIN", wait))
    with pytest.raises(ptxemu.UnsupportedError, match=r"test.ptx:\d+: the function 'deep' is not supported: its lanes"):
        run(text, 1, 64, np.zeros(64, np.uint32), timeout=TIMEOUT)


# ---- .sync instructions of a warp

BRANCHES = """
  {p}@%p1 bra ODD;
  add.u32 %r5, %r0, 1000; {even}; bra JOIN;
ODD:
  add.u32 %r5, %r0, 2000; {odd};
JOIN:
  st.global.u32 [%rd2], %r6;"""
TID = np.arange(64)
LANE = TID & 31
VALUE = TID + np.where(TID & 1, 2000, 1000)
NEXT = VALUE[(TID & ~31) | (LANE ^ 1)]
HALVES = "and.b32 %r30, %r0, 16; shl.b32 %r30, 0xffff, %r30; "


@pytest.mark.parametrize(
    ("even", "odd", "expected"),
    [
        ("shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1", "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1", NEXT),
        ("shfl.sync.idx.b32 %r6, %r5, 3, 31, -1", "shfl.sync.idx.b32 %r6, %r5, 2, 31, -1", VALUE[(TID & ~31) + 3 - (TID & 1)]),
        ("shfl.sync.bfly.b32 %r6, %r5, 1, 31, %r30", "shfl.sync.bfly.b32 %r6, %r5, 1, 31, %r30", NEXT),
        ("vote.sync.ballot.b32 %r6, %p1, -1", "vote.sync.ballot.b32 %r6, %p1, -1", np.full(64, 0xAAAAAAAA)),
        ("vote.sync.ballot.b32 %r6, !%p1, %r30", "vote.sync.ballot.b32 %r6, !%p1, -1", None),
        ("redux.sync.max.u32 %r6, %r5, -1", "redux.sync.max.u32 %r6, %r5, -1", np.repeat([2031, 2063], 32)),
        ("redux.sync.min.u32 %r6, %r5, %r30", "redux.sync.min.u32 %r6, %r5, %r30", np.repeat([1000, 1016, 1032, 1048], 16)),
        ("match.any.sync.b32 %r6, %r1, -1", "match.any.sync.b32 %r6, %r1, -1", np.where(TID & 1, 0xAAAAAAAA, 0x55555555)),
        ("elect.sync %r6|%p6, -1", "elect.sync %r6|%p6, -1", np.zeros(64)),
    ],
)  # fmt: skip
def test_members_in_both_branches(even: str, odd: str, expected: np.ndarray | None) -> None:
    text = made(BRANCHES.format(p=HALVES, even=even, odd=odd)).replace("sm_80", "sm_90")
    out = np.zeros(64, np.uint32)
    assert is_independent(text)
    if expected is None:  # not the same membermask, as it must be
        with pytest.raises(ptxemu.Fault, match=r"deadlock.*lanes 0x.* wait for lanes that exited or wait elsewhere"):
            run(text, 1, 64, out, timeout=TIMEOUT)
        return
    run(text, 2, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, expected)


UP = "shfl.sync.up.b32 %r6{}, %r5, 1, 0, -1"
ABOVE = VALUE[TID - (LANE > 0)]
CHOSEN = "; selp.b32 %r7, 10000, 0, %p6; add.u32 %r6, %r6, %r7"


@pytest.mark.parametrize(
    ("even", "odd", "expected"),
    [
        (UP.format("|%p6") + CHOSEN, UP.format(""), ABOVE + np.where((TID % 2 == 0) & (LANE > 0), 10000, 0)),
        (UP.format(""), UP.format("|%p6") + CHOSEN, ABOVE + 10000 * (TID & 1)),
        ("match.all.sync.b32 %r6, 5, -1", "match.all.sync.b32 %r6|%p6, 5, -1; selp.b32 %r6, 1, 0, %p6",
         np.where(TID & 1, 1, 2**32 - 1)),
        ("mov.b32 %r6, 3; elect.sync _|%p6, -1" + CHOSEN, "elect.sync %r6|%p6, -1" + CHOSEN,
         np.where(TID & 1, 0, 3) + 10000 * (LANE == 0)),
    ],
)  # fmt: skip
def test_results_that_only_one_branch_takes(even: str, odd: str, expected: np.ndarray) -> None:
    text = made(BRANCHES.format(p="", even=even, odd=odd)).replace("sm_80", "sm_90")
    out = np.zeros(64, np.uint32)
    run(text, 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, expected)
    assert is_independent(text)


def test_lanes_meet_again_and_again_from_loops_of_their_own() -> None:
    """A lane that is quick is at its next meeting while others still have to take what the last one gave them."""
    loop = """mov.u32 %r8, 0; mov.u32 %r6, 0;
{name}: mad.lo.u32 %r7, %r8, {step}, %r5; shfl.sync.bfly.b32 %r9, %r7, 1, 31, -1; add.u32 %r6, %r6, %r9;
  add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 9; @%p2 bra {name}"""
    out = np.zeros(64, np.uint32)
    both = {"even": loop.format(name="E", step=10), "odd": loop.format(name="O", step=7)}
    run(made(BRANCHES.format(p="", **both)), 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, 9 * NEXT + 36 * np.where(TID & 1, 10, 7))


def test_one_barrier_of_a_warp_in_each_branch() -> None:
    swap = "st.shared.u32 [%r21], %r5; bar.warp.sync -1; ld.shared.u32 %r6, [%r22]"
    text = made(BRANCHES.format(p="", even=swap, odd=swap))
    out = np.zeros(64, np.uint32)
    run(text, 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, NEXT)
    assert is_independent(text)


def test_guards_that_exclude_each_other() -> None:
    guarded = (
        "@%p1 shfl.sync.bfly.b32 %r6, %r0, 1, 31, -1; @!%p1 shfl.sync.bfly.b32 %r6, %r0, 1, 31, -1; st.global.u32 [%rd2], %r6;"
    )
    text = made(guarded)
    out = np.zeros(64, np.uint32)
    run(text, 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, TID ^ 1)
    assert is_independent(text)


SHUFFLE = "shfl.sync.bfly.b32 %r6, %r5, 1, 31, {}"


@pytest.mark.parametrize(
    ("before", "even", "odd"),
    [
        ("", SHUFFLE.format(0x55555555), SHUFFLE.format(0xAAAAAAAA)),  # other members
        ("", SHUFFLE.format(-1), "redux.sync.add.u32 %r6, %r5, -1"),  # another instruction
        ("", SHUFFLE.format(-1), "mov.u32 %r6, %r5"),
        ("", "activemask.b32 %r30; " + SHUFFLE.format("%r30"), "activemask.b32 %r30; " + SHUFFLE.format("%r30")),
        ("vote.sync.ballot.b32 %r30, %p1, -1; not.b32 %r31, %r30;", SHUFFLE.format("%r31"), SHUFFLE.format("%r30")),
        ("match.any.sync.b32 %r30, %r1, -1;", SHUFFLE.format("%r30"), SHUFFLE.format("%r30")),
        ("setp.lt.u32 %p1, %r0, 32;", SHUFFLE.format(-1), SHUFFLE.format(-1)),  # whole warps
        ("setp.gt.s32 %p1, %r0, 31;", SHUFFLE.format(-1), SHUFFLE.format(-1)),
        ("shr.u32 %r4, %r0, 5; setp.eq.s32 %p1, %r4, 1;", SHUFFLE.format(-1), SHUFFLE.format(-1)),
    ],
)
def test_branches_that_do_not_meet_stay_fast(before: str, even: str, odd: str) -> None:
    assert not is_independent(made(BRANCHES.format(p=before, even=even, odd=odd)))


def test_a_member_that_never_comes() -> None:
    """Lanes of one branch meet a second time; the others have gone on to another instruction."""
    text = made(BRANCHES.format(p="", even=f"{SHUFFLE.format(-1)}; {SHUFFLE.format(-1)}", odd=SHUFFLE.format(-1)) + "bar.sync 0;")
    with pytest.raises(
        ptxemu.Fault, match=r"deadlock in kernel `k`.*lanes 0x55555555 wait for lanes that exited or wait elsewhere"
    ):
        run(text, 1, 64, np.zeros(64, np.uint32), timeout=TIMEOUT)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_joint_meetings_compile_for_every_level(cpu: str) -> None:
    body = BRANCHES.format(
        p="", even="barrier.sync 1, 64; " + SHUFFLE.format("%r0"), odd=SHUFFLE.format("%r1") + "; barrier.sync 1, 64"
    )
    assert pipeline.kernel(pipeline.front(made(body)), "k", pipeline.Options(cpu=cpu, opt=0)).object
