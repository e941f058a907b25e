"""The checker ``init`` at arrays of CUDA: texels that nobody has written."""

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
COPY = """ld.param.u64 %rd1, [s];
mov.u32 %r1, %tid.x;
shl.b32 %r2, %r1, 2;
suld.b.2d.b32.trap %r3, [%rd1, {%r2, 0}];
sust.b.2d.b32.trap [%rd1, {%r2, 1}], %r3;
suld.b.2d.b32.trap %r4, [%rd1, {%r2, 1}];
ret;"""
PROGRAM = """
import ctypes
import numpy as np
from tests.support.driver_api import POINTER, call, context, function, get, load

class Descriptor(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("format", ctypes.c_int), ("channels", ctypes.c_uint)]

with context():
    array = get(POINTER, "cuArrayCreate_v2", ctypes.byref(Descriptor(32, 2, 3, 1)))
    row = np.ones(COLUMNS, "u4")
    call("cuMemcpyHtoA_v2", array, ctypes.c_size_t(0), row.ctypes.data, ctypes.c_size_t(row.nbytes))
    resource = (ctypes.c_uint64 * 18)(0, array)
    surface = ctypes.c_uint64(get(ctypes.c_uint64, "cuSurfObjectCreate", ctypes.byref(resource)))
    places = (POINTER * 1)(ctypes.cast(ctypes.byref(surface), POINTER))
    call("cuLaunchKernel", function(load(open("k.ptx").read()), "k"), 1, 1, 1, 32, 1, 1, 0, None, places, None)
    call("cuCtxSynchronize")
"""
BLANK = "init: 4-byte read of texel (20,0) of `allocation 1 of cudaArray`, which nobody has written"


@pytest.mark.parametrize(("columns", "said"), [(32, ["checked init in 1 launch: nothing found"]), (20, [BLANK])])
def test_texels_of_arrays(tmp_path: Path, columns: int, said: list[str]) -> None:
    """The host writes the first texels of row 0; the kernel reads them, writes row 1, and reads that."""
    (tmp_path / "k.ptx").write_text(kernel(COPY, ".param .u64 s"))
    given = environment({**os.environ, "PTXEMU_CHECK": "init", "PYTHONPATH": str(ROOT)})
    command = [sys.executable, "-c", PROGRAM.replace("COLUMNS", str(columns))]
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stderr.splitlines()[:1] == said and done.returncode == (5 if columns < 32 else 0)
    assert columns == 32 or "12 times" in done.stderr
