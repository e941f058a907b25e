"""What hostile programs take of the host's memory: local memory and stacks count against the device's, and are given back."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import ptxemu
from tests.support.hostile_tools import HANG
from tests.support.kernel_tools import kernel

RESIDENT = """
import json, resource, sys
import ptxemu
text, grid, block, arguments, memory = json.load(sys.stdin)
device = ptxemu.Device(memory=memory, workers=1)
launcher = ptxemu.loads(text, device=device)["k"][grid, block]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
said = "ended"
try:
    launcher(*arguments, timeout=4)
except ptxemu.Error as error:
    said = f"{type(error).__name__}: {error}"
print(json.dumps([said, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10, device.arena.used]))
"""

RECURSION = """
.global .u32 flag;
.func f(.param .b32 n);
.func f(.param .b32 n)
{
  .reg .b32 %r<3>; .reg .pred %p;
  ld.param.b32 %r1, [n];
  setp.eq.u32 %p, %r1, 0;
  @%p bra E;
  sub.u32 %r2, %r1, 1;
  { .param .b32 a; st.param.b32 [a], %r2; call f, (a); }
E:
  ret;
}
"""
DEEP = kernel(
    """
  ld.param.u32 %r1, [n];
  { .param .b32 a; st.param.b32 [a], %r1; call f, (a); }
W:
  ld.volatile.global.u32 %r2, [flag];
  setp.ne.u32 %p1, %r2, 0;
  ld.param.u32 %r3, [waits];
  setp.eq.or.u32 %p1, %r3, 0, %p1;
  @!%p1 bra W;
  ret;""",
    ".param .u32 n, .param .u32 waits",
    RECURSION,
)


def taken(text: str, *arguments: int, grid: int, block: int, memory: int) -> tuple[str, int, int]:
    """How a launch ends, what the process takes for it, and what is in use afterwards; in bytes."""
    given = json.dumps([text, grid, block, arguments, memory])
    command = [sys.executable, "-c", RESIDENT]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.returncode == 0, done.stderr
    said, resident, used = json.loads(done.stdout)
    return said, resident, used


MEMORY = 16 << 20
REST = 48 << 20  # the compiler and the interpreter, with much to spare


@pytest.mark.parametrize("grid", [1, 64])
def test_stacks_count(grid):
    """Without a bound the stacks of every block would take 220 MiB."""
    said, resident, used = taken(DEEP, 20000, 1, grid=grid, block=1024, memory=MEMORY)
    assert said.startswith("InputError: out of device memory for the stacks of `k`")
    assert resident < MEMORY + REST
    assert used < MEMORY // 4


def test_stacks_of_waiting_blocks_count():
    """Blocks that wait are taken in as long as there is memory for their stacks."""
    said, resident, _ = taken(DEEP, 100, 1, grid=64, block=1024, memory=MEMORY)
    assert said.startswith("LaunchTimeout")
    assert resident < MEMORY + REST


def test_deep_recursion_within_the_memory():
    device = ptxemu.Device(memory="512 MiB", workers=1)
    launcher = ptxemu.loads(DEEP, device=device)["k"]
    for block in (1, 1024, 32):
        launcher[1, block](5000, 0, timeout=60)
        assert device.arena.used < 1 << 20


def test_local_memory_counts():
    size = 512 << 10
    body = f"""
  .local .align 16 .b8 x[{size}];
  mov.u32 %r0, 0;
L:
  st.local.u32 [%r0], %r0;
  add.u32 %r0, %r0, 4096;
  setp.lt.u32 %p1, %r0, {size};
  @%p1 bra L;
  bar.sync 0;
  ret;"""
    text = kernel(body, "")
    said, resident, used = taken(text, grid=1, block=1024, memory=MEMORY)
    assert (
        said == f"InputError: out of device memory for the launch of `k`: {size} bytes of local memory for each of 1024 threads"
    )
    assert resident < REST and used == 0
    said, resident, used = taken(text, grid=8, block=32, memory=2 * MEMORY)
    assert said == "ended"
    assert resident < 2 * MEMORY + REST and used == 0


def test_fewer_blocks_at_once_where_memory_is_short():
    """Each block takes 16 MiB: four workers share what there is for one."""
    size = 512 << 10
    body = f"""
  .local .align 16 .b8 x[{size}];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  st.local.u32 [x+{size - 4}], %r1;
  bar.sync 0;
  ld.local.u32 %r2, [x+{size - 4}];
  st.global.u32 [%rd1], %r2;
  ret;"""
    device = ptxemu.Device(memory="20 MiB", workers=4)
    out = np.zeros(16, np.uint32)
    result = ptxemu.loads(kernel(body), device=device)["k"][16, 32](out)
    assert (out == np.arange(16)).all() and result.workers == 1


def test_memory_for_launches_is_that_for_buffers():
    """What buffers have taken is not there for local memory, and comes back when they go."""
    size = 256 << 10
    text = kernel(f".local .align 16 .b8 x[{size}]; mov.u32 %r1, 1; st.local.u32 [x], %r1; bar.sync 0; ret;", "")
    device = ptxemu.Device(memory="20 MiB", workers=1)
    launcher = ptxemu.loads(text, device=device)["k"][1, 32]
    buffer = device.empty(16 << 20, np.uint8)
    with pytest.raises(ptxemu.InputError, match="out of device memory"):
        launcher()
    buffer.free()
    launcher()
    device.empty(19 << 20, np.uint8)
