"""Approximate functions of all 2**32 operands against a library of bcarlet/ptx-math.

    python -m tests.fuzz.functions [--every N] libptxm.so [FUNCTION ...]

The library is that project's, built as shared (``-DBUILD_SHARED_LIBS=ON``).  Takes some minutes for each function; the exit code
is 1 if a word differs.  ``--every``: only so many operands, evenly spaced.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.values.test_mufu import FUNCTIONS, run

CHUNK = 1 << 22
SUFFIXES = {"sqrt": "sm6x", "sin": "sm70", "cos": "sm70"}
LOOP = """
#include <stdint.h>
void all(float (*f)(float), uint32_t n, const float *x, float *y) { for (uint32_t i = 0; i < n; i++) y[i] = f(x[i]); }
"""


def loop(folder: Path) -> ctypes.CDLL:
    """A function that calls one of the library's for many operands."""
    (folder / "loop.c").write_text(LOOP)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", folder / "loop.c", "-o", folder / "loop.so"], check=True)
    return ctypes.CDLL(str(folder / "loop.so"))


def differing(library: ctypes.CDLL, loops: ctypes.CDLL, name: str, every: int) -> int:
    """How many words differ."""
    function = getattr(library, f"ptxm_{name}_{SUFFIXES.get(name, 'sm5x')}")
    count = 0
    for start in range(0, 1 << 32, CHUNK * every):
        operands = (start + every * np.arange(CHUNK, dtype=np.uint64)).astype(np.uint32)
        want = np.zeros(CHUNK, np.float32)
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (operands, want))
        loops.all(function, ctypes.c_uint32(CHUNK), *pointers)
        words = np.where(np.isnan(want), np.uint32(0x7FFFFFFF), want.view(np.uint32))
        count += int(np.count_nonzero(run(f"{name}.approx", operands, operands) != words))
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=ctypes.CDLL)
    parser.add_argument("names", nargs="*", default=FUNCTIONS)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        loops = loop(Path(folder))
        for name in options.names:
            found = differing(options.library, loops, name, options.every)
            print(f"{name}: {found} of {(1 << 32) // options.every} words differ", flush=True)
            wrong += found
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
