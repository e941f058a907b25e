"""Threaded code (lower/functions/threaded.py): what it does otherwise than the best code (test_other_ways.py has the rest)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis import waiting
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
