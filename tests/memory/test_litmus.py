"""Litmus tests of the memory consistency model (PTX ISA, "Memory Consistency Model").

Threads in given roles run thousands of rounds, each on memory of its own, in batches that they start together.  Roles are
lanes of a warp, warps of a CTA, or CTAs on worker threads of their own.  An outcome that the model forbids must never be
seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.kernel_tools import kernel, run

Results = NDArray[np.uint32]  # [round, role, register]

ROUNDS = 2000
BATCH = 100  # rounds that begin together
PATIENCE = 200_000  # tries: who waits at the start does not let others run, so that they start within nanoseconds
STRIDE = 256  # bytes of a round: x, y at 0 and 64; of a batch: how many have met at 128, and are at the start at 192
X, Y = "[%rd4]", "[%rd4+64]"
TIMEOUT = 120.0


@dataclass(frozen=True)
class Litmus:
    """``roles``: what each does with x and y, results in %r20 and %r21; ``forbidden`` tells for every round."""

    roles: tuple[str, ...]
    forbidden: Callable[[Results], NDArray[np.bool_]]


def st(sem: str, place: str, value: int) -> str:
    return f"st{sem}.global.u32 {place}, {value};"


def ld(sem: str, register: int, place: str) -> str:
    return f"ld{sem}.global.u32 %r{20 + register}, {place};"


def message_passing(store: str, publish: str, acquire: str, load: str) -> Litmus:
    """Who sees the flag sees the data."""
    return Litmus(
        (f"{st(store, X, 1)} {publish}", f"{acquire} {ld(load, 1, X)}"),
        lambda r: (r[:, 1, 0] == 1) & (r[:, 1, 1] == 0),
    )


def store_buffering(fence: str, sem: str = ".relaxed.gpu") -> Litmus:
    """One of the two loads sees the other thread's store."""
    first = f"{st(sem, X, 1)} {fence} {ld(sem, 0, Y)}"
    second = f"{st(sem, Y, 1)} {fence} {ld(sem, 0, X)}"
    return Litmus((first, second), lambda r: (r[:, 0, 0] == 0) & (r[:, 1, 0] == 0))


def read_coherence(stores: str, loads: str) -> Litmus:
    """Two loads of one location see its values in the order in which they were stored."""
    writer = f"{st(stores, X, 1)} {st(stores, X, 2)} {st(stores, X, 3)}"
    reader = f"{ld(loads, 0, X)} {ld(loads, 1, X)}"
    return Litmus((writer, reader, reader), lambda r: (r[:, 1:, 0] > r[:, 1:, 1]).any(axis=1))


# Two writers to two locations; two readers that each see one write before the other do not disagree on the order.
INDEPENDENT_READS = Litmus(
    (
        st(".relaxed.gpu", X, 1),
        st(".relaxed.gpu", Y, 1),
        f"{ld('.relaxed.gpu', 0, X)} fence.sc.gpu; {ld('.relaxed.gpu', 1, Y)}",
        f"{ld('.relaxed.gpu', 0, Y)} fence.sc.gpu; {ld('.relaxed.gpu', 1, X)}",
    ),
    lambda r: (r[:, 2:] == (1, 0)).all(axis=(1, 2)),
)
# Write-to-read causality: what the second thread saw before it published, the third sees.
CAUSALITY = Litmus(
    (
        st(".relaxed.gpu", X, 1),
        f"{ld('.relaxed.gpu', 0, X)} st.release.gpu.global.u32 {Y}, %r20;",
        f"{ld('.acquire.gpu', 0, Y)} {ld('.relaxed.gpu', 1, X)}",
    ),
    lambda r: (r[:, 2, 0] == 1) & (r[:, 2, 1] == 0),
)
# Every update of an atomic counter sees another value.
COUNTER = Litmus(
    ("atom.relaxed.gpu.global.add.u32 %r20, [%rd4], 1; atom.relaxed.gpu.global.add.u32 %r21, [%rd4], 1;",) * 3,
    lambda r: np.sort(r.reshape(len(r), -1), axis=1) != np.arange(6),
)

TESTS: dict[str, Litmus] = {
    "mp_release_acquire": message_passing(
        "", st(".release.gpu", Y, 1), ld(".acquire.gpu", 0, Y), ""),
    "mp_fences": message_passing(
        ".relaxed.gpu", f"fence.acq_rel.gpu; {st('.relaxed.gpu', Y, 1)}", f"{ld('.relaxed.gpu', 0, Y)} fence.acq_rel.gpu;",
        ".relaxed.gpu"),
    "mp_volatile": message_passing(
        ".volatile", f"membar.gl; {st('.volatile', Y, 1)}", f"{ld('.volatile', 0, Y)} membar.gl;", ".volatile"),
    "mp_atomics": message_passing(
        "", "atom.release.gpu.global.exch.b32 %r22, [%rd4+64], 1;", "atom.acquire.gpu.global.or.b32 %r20, [%rd4+64], 0;", ""),
    "mp_reduction": message_passing(
        ".relaxed.gpu", "red.release.gpu.global.add.u32 [%rd4+64], 1;", ld(".acquire.gpu", 0, Y), ".relaxed.gpu"),
    "sb_fence_sc": store_buffering("fence.sc.gpu;"),
    "sb_membar": store_buffering("membar.gl;", ".volatile"),
    "coherence_relaxed": read_coherence(".relaxed.gpu", ".relaxed.gpu"),
    "coherence_volatile": read_coherence(".volatile", ".volatile"),
    "coherence_acquire": read_coherence(".release.gpu", ".acquire.gpu"),
    "independent_reads": INDEPENDENT_READS,
    "causality": CAUSALITY,
    "counter": COUNTER,
}  # fmt: skip

# The number of a thread's role, and whether it has one.
PLACEMENTS = {
    "lanes": ("mov.u32 %r1, %laneid; shr.u32 %r1, %r1, 2; mov.u32 %r2, %laneid; and.b32 %r2, %r2, 3;", (1, 32)),
    "warps": ("mov.u32 %r3, %tid.x; shr.u32 %r1, %r3, 5; and.b32 %r2, %r3, 31;", (1, 128)),
    "blocks": ("mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;", (4, 32)),
}


def program(litmus: Litmus, role: str) -> str:
    """All rounds of one thread: start, act, store the results; all threads start each batch of rounds at one time."""
    count = len(litmus.roles)
    bodies = "\n".join(f"ROLE{i}: {body} bra STORED;" for i, body in enumerate(litmus.roles))
    switch = " ".join(f"setp.eq.u32 %p2, %r1, {i}; @%p2 bra ROLE{i};" for i in range(count))
    return kernel(
        f"""{role}
  setp.ne.u32 %p1, %r2, 0; @%p1 exit; setp.ge.u32 %p1, %r1, {count}; @%p1 exit;
  ld.param.u64 %rd4, [cells]; ld.param.u64 %rd5, [out]; mul.wide.u32 %rd6, %r1, 8; add.u64 %rd5, %rd5, %rd6;
  mov.u32 %r10, 0;
BATCH:
  red.release.gpu.global.add.u32 [%rd4+128], 1;
MEET:
  ld.acquire.gpu.global.u32 %r11, [%rd4+128]; setp.lt.u32 %p1, %r11, {count}; @%p1 bra MEET;
  red.relaxed.gpu.global.add.u32 [%rd4+192], 1; mov.u32 %r13, 0;
START:
  ld.relaxed.gpu.global.u32 %r11, [%rd4+192]; setp.lt.u32 %p1, %r11, {count};
  add.u32 %r13, %r13, 1; setp.lt.and.u32 %p1, %r13, {PATIENCE}, %p1; @%p1 bra START;
  add.u32 %r12, %r10, {BATCH};
ROUND:
  mov.u32 %r20, 0; mov.u32 %r21, 0;
  {switch}
{bodies}
STORED:
  st.global.v2.u32 [%rd5], {{%r20, %r21}};
  add.u64 %rd4, %rd4, {STRIDE}; add.u64 %rd5, %rd5, {8 * count}; add.u32 %r10, %r10, 1;
  setp.lt.u32 %p1, %r10, %r12; @%p1 bra ROUND;
  setp.lt.u32 %p1, %r10, {ROUNDS}; @%p1 bra BATCH;
  ret;""",
        ".param .u64 cells, .param .u64 out",
    )


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("name", TESTS)
def test_forbidden_outcomes_are_never_seen(name: str, placement: str) -> None:
    litmus = TESTS[name]
    role, (grid, block) = PLACEMENTS[placement]
    cells = np.zeros(ROUNDS * STRIDE // 4, np.uint32)
    out = np.full((ROUNDS, len(litmus.roles), 2), 99, np.uint32)
    run(program(litmus, role), grid, block, cells, out, timeout=TIMEOUT)
    bad = litmus.forbidden(out)
    assert not bad.any(), f"round {np.argwhere(bad)[0][0]}: {out[np.argwhere(bad)[0][0]].tolist()}"
