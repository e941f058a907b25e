"""A new instruction is a row, a lowering and a test: what passes and analyses must know of it follows from the row.

Each test plants one, as a contributor would write it, and takes it away again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import ptxemu
from ptxemu import isa
from ptxemu.driver import compile as pipeline
from ptxemu.ir.ops import Op
from ptxemu.isa.table import ROWS, row
from ptxemu.lower.control import sync
from ptxemu.lower.core.effects import EFFECTS
from ptxemu.lower.core.emit import ELEMENTWISE, Emitter
from ptxemu.lower.core.registry import lowerings
from ptxemu.lower.memory import memory
from tests.support.kernel_tools import kernel, run

TIMEOUT = 30.0


@contextmanager
def planted(
    registry: dict[str, Callable[..., object]], lowering: Callable[..., object], *rows: Callable[[], object]
) -> Iterator[None]:
    """Rows of one new opcode with their lowering of the same name."""
    before = set(ROWS)
    for add in rows:
        add()
    (opcode,) = set(ROWS) - before
    registry[opcode] = lowering
    try:
        isa.verify(lowerings(), ELEMENTWISE)
        yield
    finally:
        del ROWS[opcode], registry[opcode]


@pytest.fixture
def peek() -> Iterator[None]:
    """A load by another name."""
    slots, operands = "space=global,shared type=u32", "d:type, [a]:type"
    with planted(EFFECTS, memory.load, lambda: row("peek", slots, operands, does="reads [a] as d, varying in local")):
        yield


@pytest.fixture
def twice() -> Iterator[None]:
    """A register instruction."""

    def double(e: Emitter, op: Op, a: str) -> str:
        return e.bin("add", op.type().llvm, a, a)

    with planted(ELEMENTWISE, double, lambda: row("twice", "type=u32", "d:type, a:type")):
        yield


@pytest.fixture
def rendezvous() -> Iterator[None]:
    """A barrier of the CTA."""
    with planted(EFFECTS, sync.barrier_sync, lambda: row("rendezvous", "cta", "a:u32, b:u32?", does="meets warp, waits cta")):
        yield


# Lane 31 sets the flag for which the others wait; which branch comes first in linear order should not matter.
WAIT_FIRST = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 31; @%p1 bra SET;
WAIT:
  {load}.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
  bra END;
SET:
  st.global.u32 [%rd1], 1;
END:
  red.global.add.u32 [%rd1+4], 1; ret;
"""
SET_FIRST = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 31; @%p1 bra WAIT;
  st.global.u32 [%rd1], 1; bra END;
WAIT:
  {load}.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
END:
  red.global.add.u32 [%rd1+4], 1; ret;
"""


@pytest.mark.parametrize("body", [WAIT_FIRST, SET_FIRST], ids=["wait-first", "set-first"])
@pytest.mark.parametrize("load", ["ld", "peek"])
@pytest.mark.usefixtures("peek")
def test_a_loop_that_spins_on_a_planted_load_ends(load: str, body: str) -> None:
    out = np.zeros(2, np.uint32)
    run(kernel(body.format(load=load)), 1, 64, out, timeout=TIMEOUT)
    assert list(out) == [1, 64]


@pytest.mark.usefixtures("peek")
def test_a_planted_load_is_not_dropped_or_hoisted_from_its_loop() -> None:
    """Another warp writes between two reads of one place, of which the first result is not used."""
    body = """
      ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; peek.global.u32 %r5, [%rd1]; bar.sync 0;
      setp.eq.u32 %p1, %r1, 40; @%p1 st.global.u32 [%rd1], 7; bar.sync 0;
      peek.global.u32 %r2, [%rd1]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2+4], %r2; ret;
    """
    out = np.zeros(65, np.uint32)
    run(kernel(body), 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, np.full(65, 7))


@pytest.mark.usefixtures("twice")
def test_a_planted_register_instruction_is_pure() -> None:
    body = """
      ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; twice.u32 %r2, %r1; twice.u32 %r3, %r2; twice.u32 %r9, %r2;
      mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r3; ret;
    """
    out = np.zeros(64, np.uint32)
    run(kernel(body), 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, 4 * np.arange(64))
    graph = pipeline.prepare(module := pipeline.front(kernel(body)), module.functions["k"], "row").graphs[0]
    left = [op for block in graph.blocks for op in block.ops if op.opcode == "twice"]
    assert len(left) == 2  # nobody reads the third


@pytest.mark.parametrize("guard", ["", "@%p3 "], ids=["plain", "guarded"])
@pytest.mark.usefixtures("rendezvous")
def test_warps_meet_at_a_planted_barrier(guard: str) -> None:
    body = f"""
      ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.lt.u32 %p3, %r1, 1000;
      mad.wide.u32 %rd2, %r1, 4, %rd1; st.volatile.global.u32 [%rd2], %r1;
      {guard}rendezvous.cta 0;
      xor.b32 %r2, %r1, 32; mad.wide.u32 %rd3, %r2, 4, %rd1; ld.volatile.global.u32 %r3, [%rd3];
      {guard}rendezvous.cta 0;
      st.global.u32 [%rd2], %r3; ret;
    """
    out = np.zeros(64, np.uint32)
    run(kernel(body), 1, 64, out, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, np.arange(64) ^ 32)


@pytest.mark.usefixtures("rendezvous")
def test_a_planted_barrier_that_not_all_reach_is_a_deadlock() -> None:
    body = "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 rendezvous.cta 1, 64; ret;"
    with pytest.raises(ptxemu.Fault, match="deadlock"):
        run(kernel(body, parameters=""), 1, 64, timeout=TIMEOUT)


AFTER_SPINNING = """
.version 7.0
.target sm_80
.address_size 64
.shared .align 128 .b8 tile[512];
.visible .entry k(.param .u64 flags)
{{
  .reg .pred %p; .reg .b32 %r<16>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [flags]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;
WAIT:
  ld.volatile.global.u32 %r2, [%rd2]; setp.eq.u32 %p, %r2, 0; @%p bra WAIT;
  mov.u32 %r3, tile;
  {load}
  ret;
}}
"""


@pytest.mark.parametrize(
    "load",
    [
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r3];",
        "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11}, [%r3];",
    ],
    ids=["ldmatrix", "wmma.load"],
)
def test_loading_a_matrix_is_not_what_lanes_spin_for(load: str) -> None:
    """Lanes that have seen their flag wait for the others in place: what they do next writes nothing."""
    module = pipeline.front(AFTER_SPINNING.format(load=load))
    lowered = pipeline.lower(module, module.functions["k"], "row", pipeline.Options())
    assert (lowered.facts.spins, lowered.independent) == (True, False)
