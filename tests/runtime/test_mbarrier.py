"""Waits for mbarriers that do not end: deadlocks, timeouts, and waits that only look like one."""

from __future__ import annotations

import time

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault, LaunchTimeout

TEXT = """
.version 8.0
.target sm_90
.address_size 64

// In every block the first warp arrives once, and all warps wait for two arrivals; block `missing` has only one.
.visible .entry waits(.param .u32 missing)
{
  .reg .b32 %t, %b, %m; .reg .pred %p, %q; .shared .b64 bar;
  ld.param.u32 %m, [missing]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
  setp.eq.u32 %p, %t, 0; setp.ne.and.u32 %q, %b, %m, %p;
  @%p mbarrier.init.shared.b64 [bar], 2;
  bar.sync 0;
  @%p mbarrier.arrive.shared.b64 _, [bar];
  @%q mbarrier.arrive.shared.b64 _, [bar];
LOOP:
  mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
  @!%p bra LOOP;
  ret;
}

// Warp 0 waits for warp 1, which waits for the flag that block 1 sets after it has counted.
.visible .entry relay(.param .u64 flag)
{
  .reg .b32 %t, %b, %v; .reg .b64 %f; .reg .pred %p; .shared .b64 bar;
  ld.param.u64 %f, [flag]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;
  setp.eq.u32 %p, %b, 1; @%p bra OTHER;
  setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [bar], 32;
  bar.sync 0;
  setp.lt.u32 %p, %t, 32; @%p bra WAIT;
SPIN:
  ld.volatile.global.u32 %v, [%f]; setp.eq.u32 %p, %v, 0; @%p bra SPIN;
  mbarrier.arrive.shared.b64 _, [bar];
  ret;
WAIT:
  mbarrier.test_wait.parity.shared.b64 %p, [bar], 0; @!%p bra WAIT;
  st.global.u32 [%f+4], 7;
  ret;
OTHER:
  mov.u32 %v, 0;
COUNT:
  add.u32 %v, %v, 1; st.volatile.global.u32 [%f+8], %v; setp.lt.u32 %p, %v, 1000000; @%p bra COUNT;
  st.volatile.global.u32 [%f], 1;
  ret;
}

// Each round the first warp arrives, and all warps wait; the first waits for nobody else.
.visible .entry rounds(.param .u64 out)
{
  .reg .b32 %t, %i, %x; .reg .b64 %out, %o; .reg .pred %p, %q; .shared .b64 bar;
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mov.u32 %i, 0;
  @%p mbarrier.init.shared.b64 [bar], 1;
  bar.sync 0;
ROUND:
  @%p mbarrier.arrive.shared.b64 _, [bar];
  and.b32 %x, %i, 1;
AGAIN:
  mbarrier.WAIT.parity.shared.b64 %q, [bar], %x;
  @!%q bra AGAIN;
  add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 9;
  @%q bra ROUND;
  mul.wide.u32 %o, %t, 4; add.u64 %out, %out, %o; st.global.u32 [%out], %i;
  ret;
}
"""


@pytest.fixture(scope="module")
def module() -> ptxemu.Module:
    return ptxemu.loads(TEXT.replace("WAIT", "try_wait"))


def test_all_arrive(module: ptxemu.Module) -> None:
    module["waits"][20, 96](99, timeout=60)


@pytest.mark.parametrize("missing", [0, 3])
def test_one_block_waits_for_ever(module: ptxemu.Module, missing: int) -> None:
    with pytest.raises(Fault, match="the mbarrier waits for 1 of 2 arrivals and 0 bytes") as caught:
        module["waits"][4, 96](missing, timeout=60)
    assert "deadlock" in str(caught.value)
    module["waits"][4, 96](99, timeout=60)


def test_timeout_comes_first(module: ptxemu.Module) -> None:
    started = time.monotonic()
    with pytest.raises(LaunchTimeout):
        module["waits"][1, 64](0, timeout=0.1)
    assert time.monotonic() - started < 30


def test_another_block_ends_the_wait(module: ptxemu.Module) -> None:
    flags = np.zeros(4, np.uint32)
    module["relay"][2, 64](flags, timeout=60)
    assert flags[0] == 1 and flags[1] == 7


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
def test_no_warp_completes_phases_before_others_see_them(wait: str, engine: str) -> None:
    """Programs rely on that where copies and multiplications take their time (CUTLASS's tutorial of sm_100)."""
    out = np.zeros(128, np.uint32)
    ptxemu.loads(TEXT.replace("WAIT", wait), device=ptxemu.Device(engine=engine))["rounds"][1, 128](out, timeout=60)
    assert (out == 9).all()
