"""PolyBench-GPU on ptxemu: nvcc builds each CUDA program, which compares its results with those of its own code for the CPU.

``python -m tests.clients.polybench DIRECTORY [NAME ...]``: a checkout of https://github.com/sgrauerg/polybenchGpu. Needs nvcc.
Programs are kept in ``build/clients`` between runs. Exits with 1 if one fails that is not in EXPECTED.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.clients.environment import CLIENTS
from tests.clients.nvcc import Run, compiled, report, run

BUILD = CLIENTS / "polybench"
SECONDS = 120
MISMATCHES = re.compile(r"(?:Non-Matching CPU-GPU Outputs.*|Number of misses): (\d+)$", re.MULTILINE)

PRELUDE = """\
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/time.h>
#define cudaThreadSynchronize cudaDeviceSynchronize /* the name that CUDA 13 has for it */
"""
LEFT_OUT = {
    "DOITGEN": "double rtclock(void) { timeval now; gettimeofday(&now, 0); return now.tv_sec + now.tv_usec * 1e-6; }\n",
}

MATRICES = {"N": 1, "NI": 256, "NJ": 256, "NK": 256, "NL": 256, "NM": 256}
VECTORS = {"N": 1024, "NX": 1024, "NY": 1024}

# name: sizes that a CPU can do. The sources leave all sizes alone where N is defined.
PROGRAMS: dict[str, dict[str, int]] = {
    "2DCONV": {"N": 1, "NI": 1024, "NJ": 1024},
    "2MM": MATRICES,
    "3DCONV": {"N": 1, "NI": 64, "NJ": 64, "NK": 64},
    "3MM": MATRICES,
    "ADI": {"N": 256, "TSTEPS": 1},
    "ATAX": VECTORS,
    "BICG": VECTORS,
    "CORR": {"M": 256, "N": 256},
    "COVAR": {"M": 256, "N": 256},
    "DOITGEN": {},
    "FDTD-2D": {"N": 1, "TMAX": 20, "NX": 512, "NY": 512},
    "GEMM": MATRICES,
    "GEMVER": VECTORS,
    "GESUMMV": VECTORS,
    "GRAMSCHM": {"N": 1, "NI": 128, "NJ": 128},
    "JACOBI1D": {"N": 4096, "TSTEPS": 100},
    "JACOBI2D": {"N": 500, "TSTEPS": 10},
    "LU": {"N": 256},
    "MVT": VECTORS,
    "SYR2K": MATRICES,
    "SYRK": MATRICES,
}

EXPECTED = {
    "MVT": "a race of its own: its blocks are 32 x 8, its kernels ask for x alone, so that 8 threads add to each element",
}
"""Programs that do not pass, with the reason."""


def build(folder: Path, name: str) -> Path:
    (source,) = (folder / "CUDA" / name).glob("*.cu")
    prelude = BUILD / f"{name}.h"
    sizes = "".join(f"#define {size} {value}\n" for size, value in PROGRAMS[name].items())
    text = PRELUDE + LEFT_OUT.get(name, "") + sizes
    if not prelude.exists() or prelude.read_text() != text:
        prelude.parent.mkdir(parents=True, exist_ok=True)
        prelude.write_text(text)
    return compiled(BUILD / name, [source, prelude], ["-O2", "-include", str(prelude)])


def verdict(done: Run) -> str:
    found = [int(number) for number in MISMATCHES.findall(done.output)]
    if done.status or not found:
        return done.failed
    return f"FAILED: {sum(found)} values differ" if any(found) else done.passed


def main() -> int:
    return report(__doc__, PROGRAMS, lambda folder, name: verdict(run([build(folder, name)], BUILD, SECONDS)), EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
