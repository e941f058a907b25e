"""Threaded code (lower/functions/threaded.py): what it does otherwise than the best code (test_other_ways.py has the rest)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis import waiting
from ptxemu.ir.ops import Reg
from ptxemu.lower.functions.steps import Steps
from tests.dialects import test_sass as sass
from tests.isa.test_other_ways import threaded
from tests.kernels import test_control_flow as control_flow
from tests.kernels import test_meetings as meetings
from tests.runtime import test_progress as progress
from tests.support.kernel_tools import kernel


@pytest.fixture(autouse=True)
def all_threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    threaded(monkeypatch)


def test_a_guard_may_be_a_constant() -> None:
    sass.test_registers_and_predicates_start_as_zero()


EXCHANGE = """
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; {trips}
  mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3; mov.u32 %r4, 0;
LOOP:
  mov.u32 %r5, %r1; mov.u32 %r1, %r2; mov.u32 %r2, %r3; mov.u32 %r3, %r5;
  add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r6; @%p1 bra LOOP;
  mad.lo.u32 %r1, %r1, 10, %r2; mad.lo.u32 %r1, %r1, 10, %r3;
  mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r1; ret;"""


@pytest.mark.parametrize("trips", ["mov.u32 %r6, 7;", "rem.u32 %r6, %r0, 5;"])
def test_values_that_change_places_on_one_edge(trips: str) -> None:
    """Rotated in a loop, together and by lanes that leave it one after the other."""
    out = np.zeros(32, np.uint32)
    ptxemu.loads(kernel(EXCHANGE.format(trips=trips), ".param .u64 out"))["k"][1, 32](out)
    rounds = [7 if trips.startswith("mov") else max(1, lane % 5) for lane in range(32)]
    np.testing.assert_array_equal(out, [(123, 231, 312)[count % 3] for count in rounds])


@pytest.mark.parametrize("seed", range(3000, 3030))
def test_random_graph_with_independent_lanes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The form of kernels whose lanes wait for each other, which these do not."""
    monkeypatch.setattr(waiting, "needs_independence", lambda linear, spins: True)
    control_flow.test_random_graph(seed)


LANES_WAIT = [
    progress.test_ticket_lock_across_blocks,
    progress.test_lanes_wait_for_each_other_in_turn,
    progress.test_lane_waits_for_the_other_branch,
    progress.test_half_warps_apart,
    progress.test_lanes_meet_at_different_instructions,
    progress.test_lanes_that_wait_in_vain_are_a_deadlock,
    meetings.test_producer_and_consumer_lanes,
    meetings.test_lanes_at_different_barriers_of_one_instruction,
    meetings.test_a_true_deadlock_is_reported,
    meetings.test_a_function_with_a_barrier_in_a_kernel_whose_lanes_wait,
    meetings.test_lanes_meet_again_and_again_from_loops_of_their_own,
    meetings.test_one_barrier_of_a_warp_in_each_branch,
    meetings.test_a_member_that_never_comes,
]


@pytest.mark.parametrize("test", LANES_WAIT, ids=lambda test: test.__name__.removeprefix("test_"))
def test_lanes_that_wait_for_each_other(test: Callable[[], None]) -> None:
    test()


NESTED = """
  ld.param.u64 %rd0, [out]; mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r5, %tid.x;
A: add.u32 %r1, %r1, 1; mov.u32 %r2, 0;
B: add.u32 %r2, %r2, 1; mov.u32 %r3, 0;
C: add.u32 %r3, %r3, 1; mad.lo.u32 %r0, %r1, %r2, %r0;
  setp.lt.u32 %p1, %r3, {ends[2]}; @%p1 bra C;
  setp.lt.u32 %p1, %r2, {ends[1]}; @%p1 bra B;
  setp.lt.u32 %p1, %r1, {ends[0]}; @%p1 bra A;
  mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r0; ret;"""


@pytest.mark.parametrize(("ends", "copies"), [((3, 4, 5), 0), ((3, "%r5", 5), None)])
def test_what_goes_round_in_loops_stays_where_it_is(
    ends: tuple[int | str, ...], copies: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counters and sums are updated in place, unless lanes leave at different times and keep what they left with."""
    copied: list[tuple[Reg, Reg]] = []
    copy = Steps.copy

    def noted(steps: Steps, source: Reg, target: Reg) -> None:
        if steps.ctx.offset_of(source) != steps.ctx.offset_of(target):
            copied.append((source, target))
        copy(steps, source, target)

    monkeypatch.setattr(Steps, "copy", noted)
    out = np.zeros(32, np.uint32)
    ptxemu.loads(kernel(NESTED.format(ends=ends), ".param .u64 out"))["k"][1, 32](out)
    a, b, c = (np.full(32, end) if isinstance(end, int) else np.maximum(1, np.arange(32)) for end in ends)
    np.testing.assert_array_equal(out, c * (a * (a + 1) // 2) * (b * (b + 1) // 2))
    assert copies is None or len(copied) == copies
