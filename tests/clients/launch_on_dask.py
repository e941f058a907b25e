"""``ptxemu run CASE --dask local``: one launch on two processes leaves the bytes that it leaves on one machine.

``python -m tests.clients.launch_on_dask`` also says how long each worker took. Dask is installed as for suite_on_dask.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.environment import packages_of, python_of
from tests.clients.suite_on_dask import DASK, SECONDS

BLOCKS, WORKERS = 4096, 2
KERNEL = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry walk(.param .u64 ends, .param .u64 visits, .param .u32 steps)
{
  .reg .u32 %i, %s, %n, %r<6>; .reg .u64 %d<6>; .reg .pred %p;
  ld.param.u64 %d1, [ends]; ld.param.u64 %d2, [visits]; ld.param.u32 %n, [steps];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %i, %r1, 128, %r2;
  mov.u32 %s, %i;
L:
  mad.lo.u32 %s, %s, 1664525, 1013904223;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra L;
  mul.wide.u32 %d3, %i, 4; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %s;
  shr.u32 %r3, %s, 24; mul.wide.u32 %d4, %r3, 4; add.u64 %d4, %d2, %d4; red.global.add.u32 [%d4], 1;
  ret;
}
"""
CLASH = KERNEL.replace("add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %s;", "st.global.u32 [%d1], %i;")
CASE = f"""
ptx = "walk.ptx"
grid = {BLOCKS}
block = 128
[args]
ends = {{ zeros = {{ dtype = "u32", shape = {BLOCKS * 128} }} }}
visits = {{ zeros = {{ dtype = "u32", shape = 256 }} }}
steps = 100000
[save]
ends = "ends.npy"
visits = "visits.npy"
"""


def run(folder: Path, output: str, environment: dict[str, str], *options: str) -> tuple[dict[str, Any], str]:
    """What a run of the case says as JSON, and on stderr."""
    command = [sys.executable, "-m", "ptxemu", "run", str(folder), "--json", "--output-dir", str(folder / output), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    return (json.loads(done.stdout) if done.returncode == 0 else {"code": done.returncode}), done.stderr


def main() -> int:
    python = python_of("dask", DASK)
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as name:
        folder = Path(name)
        environment = {**os.environ, "PYTHONPATH": str(packages_of(python)), "PTXEMU_CACHE": str(folder / "cache")}
        (folder / "walk.ptx").write_text(KERNEL)
        (folder / "case.toml").write_text(CASE)
        alone, _ = run(folder, "alone", environment, "--workers", "1")
        spread, said = run(folder, "spread", environment, "--dask", "local", "-j", str(WORKERS))
        same = all((folder / "alone" / file).read_bytes() == (folder / "spread" / file).read_bytes()
                   for file in ("ends.npy", "visits.npy"))  # fmt: skip
        parts = spread.get("parts", [])
        (folder / "walk.ptx").write_text(CLASH)
        clash, conflict = run(folder, "clash", environment, "--dask", "local", "-j", str(WORKERS))
    print(f"one launch of {BLOCKS} blocks: {alone['seconds']:.2f} s on one thread")
    for part in parts:
        print(f"  blocks {part['first']} to {part['end'] - 1} on {part['worker']}: {part['seconds']:.2f} s")
    split = len({part["worker"] for part in parts}) == WORKERS
    refused = clash == {"code": 1} and f"block ({BLOCKS // 2 - 1},0,0)" in conflict and f"block ({BLOCKS - 1},0,0)" in conflict
    right = same and split and refused
    print(f"a launch on Dask: {'passed' if right else f'FAILED: same {same}, split {split}, refused {refused}'}")
    if not right:
        print(said, conflict)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
