"""``ptxemu run CASE --dask``: one launch on two processes leaves the bytes that it leaves on one machine, also if one is killed.

``python -m tests.clients.launch_on_dask`` also says how long each worker took. Dask is installed as for suite_on_dask.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from tests.clients.environment import packages_of, python_of
from tests.clients.suite_on_dask import DASK, SECONDS

BLOCKS, WORKERS = 4096, 2
KERNEL = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry walk(.param .u64 ends, .param .u64 visits, .param .u64 picture, .param .u64 colours, .param .u32 steps)
{
  .reg .u32 %i, %s, %n, %r<6>; .reg .u64 %d<8>; .reg .pred %p;
  ld.param.u64 %d1, [ends]; ld.param.u64 %d2, [visits]; ld.param.u32 %n, [steps];
  ld.param.u64 %d5, [picture]; ld.param.u64 %d6, [colours];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %i, %r1, 128, %r2;
  mov.u32 %s, %i;
L:
  mad.lo.u32 %s, %s, 1664525, 1013904223;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra L;
  mul.wide.u32 %d3, %i, 4; add.u64 %d3, %d1, %d3; st.global.u32 [%d3], %s;
  shr.u32 %r3, %s, 24; mul.wide.u32 %d4, %r3, 4; add.u64 %d4, %d2, %d4; red.global.add.u32 [%d4], 1;
  shl.b32 %r4, %r2, 2; sust.b.2d.b32.trap [%d5, {%r4, %r1}], %s;
  shl.b32 %r5, %r3, 2; sured.b.1d.max.u32.trap [%d6, {%r5}], %s;
  ret;
}
"""
CLASH = KERNEL.replace("{%r4, %r1}], %s", "{%r4, 7}], %i")
CASE = f"""
ptx = "walk.ptx"
grid = {BLOCKS}
block = 128
[args]
ends = {{ zeros = {{ dtype = "u32", shape = {BLOCKS * 128} }} }}
visits = {{ zeros = {{ dtype = "u32", shape = 256 }} }}
picture = "picture"
colours = "colours"
steps = 100000
[surfaces.picture]
format = "R32_UINT"
layout = "block_linear"
width = 128
height = {BLOCKS}
[surfaces.colours]
geometry = "1d"
format = "R32_UINT"
width = 256
[save]
ends = "ends.npy"
visits = "visits.npy"
picture = "picture.npy"
colours = "colours.npy"
"""
RESULTS = ("ends.npy", "visits.npy", "picture.npy", "colours.npy")


def command(folder: Path, output: str, *options: str) -> list[str | Path]:
    return [sys.executable, "-m", "ptxemu", "run", folder, "--json", "--output-dir", folder / output, *options]


def run(folder: Path, output: str, *options: str) -> tuple[dict[str, Any], str]:
    """What a run of the case says as JSON, and on stderr."""
    done = subprocess.run(command(folder, output, *options), capture_output=True, text=True, timeout=SECONDS, check=False)
    return (json.loads(done.stdout) if done.returncode == 0 else {"code": done.returncode}), done.stderr


def run_and_kill(folder: Path, output: str) -> tuple[bool, str]:
    """Run the case on a cluster, of which a worker is killed while it runs its part; whether that came to pass."""
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        pids = client.run(os.getpid)
        given = command(folder, output, "--dask", cluster.scheduler_address)
        with subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                busy = _in_a_part(client, process)
                if busy is not None:
                    os.kill(pids[busy], signal.SIGKILL)
                said = process.communicate(timeout=SECONDS)[1]
            finally:
                process.kill()
        return busy is not None and process.returncode == 0, said


def _in_a_part(client: Any, process: subprocess.Popen[str]) -> str | None:
    """The worker that is first seen to be in its part."""
    while process.poll() is None:
        for worker, tasks in client.run(_stacks).items():
            if any("run_part" in frame for frame in tasks):
                return str(worker)
        time.sleep(0.05)
    return None


def _stacks() -> list[str]:
    """The functions that the threads of a worker are in."""
    return [entry.name for frame in sys._current_frames().values() for entry in traceback.extract_stack(frame)]


def main() -> int:
    packages = str(packages_of(python_of("dask", DASK)))
    sys.path.append(packages)
    with tempfile.TemporaryDirectory(prefix="ptxemu-") as name:
        folder = Path(name)
        os.environ |= {"PYTHONPATH": packages, "PTXEMU_CACHE": str(folder / "cache")}
        (folder / "walk.ptx").write_text(KERNEL)
        (folder / "case.toml").write_text(CASE)
        alone, _ = run(folder, "alone", "--workers", "1")
        spread, said = run(folder, "spread", "--dask", "local", "-j", str(WORKERS))
        killed, complaints = run_and_kill(folder, "killed")
        same = killed and all(
            (folder / "alone" / file).read_bytes() == (folder / output / file).read_bytes()
            for file in RESULTS
            for output in ("spread", "killed")
        )
        (folder / "walk.ptx").write_text(CLASH)
        clash, conflict = run(folder, "clash", "--dask", "local", "-j", str(WORKERS))
    parts = spread.get("parts", [])
    print(f"one launch of {BLOCKS} blocks: {alone['seconds']:.2f} s on one thread")
    for part in parts:
        print(f"  blocks {part['first']} to {part['end'] - 1} on {part['worker']}: {part['seconds']:.2f} s")
    split = len({part["worker"] for part in parts}) == WORKERS
    named = f"block ({BLOCKS // 2 - 1},0,0) writes texel x=0, y=7 of picture, which block ({BLOCKS - 1},0,0) writes"
    refused = clash == {"code": 1} and named in conflict
    right = same and split and refused
    print(f"a launch on Dask: {'passed' if right else f'FAILED: {killed=}, {same=}, {split=}, {refused=}'}")
    if not right:
        print(said, complaints, conflict)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
