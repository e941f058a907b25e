"""Checkers of programs on libptxemu_embed.so and libgpuocelot.so: PTXEMU_CHECK."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ptxemu.process.cuda import environment
from tests.support.kernel_tools import kernel
from tests.support.places import ROOT

SECONDS = 120
PARAMETERS = ".param .u64 x, .param .u32 at"
# One thread reads x[0] and stores it at x[at]; then half of a warp waits at a barrier.
KERNEL = kernel(
    """ld.param.u64 %rd1, [x];
ld.param.u32 %r1, [at];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.u64 %rd2, %rd1, %rd2;
setp.eq.u32 %p1, %r2, 0;
@%p1 ld.global.u32 %r3, [%rd1];
@%p1 st.global.u32 [%rd2], %r3;
setp.lt.u32 %p2, %r2, 16;
@%p2 bar.sync 0;
ret;""",
    PARAMETERS,
)
EMBED = """
import ctypes
from tests.cuda.test_embed import find, launch, library, load
module = load(open("k.ptx").read())
x = library().ptxemu_alloc(40)
ctypes.memset(x, 1, 4)
launch(find(module, "k"), 1, 32, ctypes.c_uint64(x), ctypes.c_uint32({at}))
{rest}
"""
FREE = "library().ptxemu_free(ctypes.c_void_p(x)); library().ptxemu_unload(module)"
OCELOT = """
import ctypes, sys
import numpy as np
from ptxemu.process.cuda import library_path
x = np.arange(7, 17, dtype="u4")
values = (ctypes.c_void_p * 2)(x.ctypes.data, 3)
run = ctypes.CDLL(str(library_path() / "libgpuocelot.so")).ptx_run
run(open("k.ptx").read().encode(), 2, values, 32, 1, 1, 1, 1, 1, 0)
print(x[3])
"""
STRAY = """\
memory: 4-byte write 8 bytes after allocation 1 of ptxemu_alloc (40 bytes)
  <module>:{line}: @%p1 st.global.u32 [%rd2], %r3;
  in `k`: block (0,0,0), thread (0,0,0)
"""
BARRIER = """\
sync: barrier 0: 16 of the 32 threads of warp 0 do not come to it with the others
  <module>:{line}: @%p2 bar.sync 0;
  in `k`: block (0,0,0), thread (0,0,0)
"""
KEPT = "leak: 40 bytes in 1 allocation of ptxemu_alloc is never freed: number 1\n"
UNKNOWN = (
    "ptxemu: PTXEMU_CHECK: nothing is known of the program's memory, on which kernels work: only sync and leak are checked\n"
)


def line_of(text: str) -> int:
    return KERNEL.splitlines().index(text) + 1


STRAY = STRAY.format(line=line_of("@%p1 st.global.u32 [%rd2], %r3;"))
BARRIER = BARRIER.format(line=line_of("@%p2 bar.sync 0;"))


def run(folder: Path, program: str, checks: str) -> tuple[int, str, str]:
    (folder / "k.ptx").write_text(KERNEL)
    given = environment({**os.environ, "PTXEMU_CHECK": checks, "PYTHONPATH": str(ROOT)})
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def test_embedded(tmp_path: Path) -> None:
    """What the host writes through its pointer is written; what is not freed is told."""
    said = f"{STRAY}{BARRIER}checked memory, sync, race, leak, init in 1 launch: 2 findings\n"
    assert run(tmp_path, EMBED.format(at=12, rest=FREE), "all") == (5, "", said)
    summary = "checked leak in 1 launch: 1 finding\n"
    assert run(tmp_path, EMBED.format(at=2, rest=""), "leak") == (5, "", KEPT + summary)


def test_embedded_without_findings(tmp_path: Path) -> None:
    said = "checked memory, init in 1 launch: nothing found\n"
    assert run(tmp_path, EMBED.format(at=2, rest=FREE), "memory,init") == (0, "", said)


@pytest.mark.parametrize(("checks", "said"), [("sync", ""), ("sync,memory", UNKNOWN)])
def test_ocelot(tmp_path: Path, checks: str, said: str) -> None:
    """It works on memory of which nothing is known: what can be checked there is."""
    summary = "checked sync in 1 launch: 1 finding\n"
    assert run(tmp_path, OCELOT, checks) == (5, "7\n", said + BARRIER + summary)


def test_a_checker_that_there_is_not(tmp_path: Path) -> None:
    code, _, errors = run(tmp_path, EMBED.format(at=2, rest=""), "memroy")
    assert code == 1 and "there is no checker 'memroy'" in errors
