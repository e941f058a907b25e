"""Rodinia on ptxemu: nvcc builds each CUDA program; its results are compared with the OpenMP version's, or checked otherwise.

``python -m tests.clients.rodinia DIRECTORY [NAME ...]``: a checkout of https://github.com/yuhc/gpu-rodinia. Needs nvcc and gcc.
Programs are kept in ``build/clients`` between runs. Exits with 1 if one fails that is not in EXPECTED.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.clients import rodinia_data
from tests.clients.environment import CLIENTS
from tests.clients.nvcc import Run, compiled, report, run

BUILD = CLIENTS / "rodinia"
DATA = "../../../data"  # from the folder where a program runs: one of Rodinia's names its file so
SECONDS = 240
SEEDED = ("-include", "{build}/seeded.h")
HEADERS = {
    "seeded.h": "#include <time.h>\n#define time(x) 7\n",
    "solution.h": """\
#include <stdio.h>
#include <stdlib.h>
extern float *finalVec;
extern int Size;
static void tell(void) {
  puts("The final solution is:");
  for (int i = 0; i < Size; i++) printf("%.6f ", finalVec[i]);
}
static const int told = atexit(tell);
""",
}
"""What programs are compiled behind that take their seed from the clock, or keep their results to themselves."""
CUDA_FLAGS = [
    "-O2",
    "-DcudaThreadSynchronize=cudaDeviceSynchronize",
    "-DcudaThreadExit=cudaDeviceReset",
    "-DclockRate=major",
    "-DdeviceOverlap=asyncEngineCount",
    "-DcomputeMode=integrated",
]
"""Names that CUDA 13 has for what programs call, and for properties that they only print."""
CPU_FLAGS = ["-O2", "-w", "-fopenmp"]
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)", re.IGNORECASE)


class Wrong(Exception):
    """Results that are not what they should be."""


@dataclass(frozen=True)
class Version:
    """A program: its sources below ``cuda`` or ``openmp``, its arguments, and flags of its own."""

    sources: str
    arguments: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A CUDA program and what its results, the (last) numbers in a file or in some lines of its output, must be near to.

    That is either what another version of it says, or what ``check`` says of its output.
    """

    cuda: Version
    cpu: Version | None = None
    results: str = ""
    lines: str = ".*"
    last: int = 0
    tolerance: float = 0.0
    check: Callable[[str], None] | None = None


def solved(output: str) -> None:
    """gaussian's matrix is Toeplitz with entries ten times the powers of exp(-0.01); its right side is all ones."""
    found = np.array([float(text) for text in output.partition("The final solution is:")[2].split()])
    order = np.arange(64)
    matrix = 10 * np.exp(-0.01 * abs(order[:, None] - order))
    if len(found) != 64 or abs(found - np.linalg.solve(matrix, np.ones(64))).max() > 1e-4:
        raise Wrong("the solution is not that of the equations")


def cooled(output: str, data: Path = BUILD / "data", cells: int = 64, steps: int = 20) -> None:
    """hotspot's temperatures; the OpenMP version takes other ones at the borders of its tiles, and shorter steps."""
    found = np.array([float(value) for value in re.findall(r"^\d+\t(\S+)$", output, re.MULTILINE)])
    files = (data / name for name in ("temperatures.txt", "powers.txt"))
    heat, power = (np.loadtxt(file, max_rows=cells**2).reshape(cells, cells) for file in files)
    side, thickness, capacity, conductivity = 0.016 / cells, 0.0005, 1.75e6, 100
    held = 0.5 * capacity * thickness * side * side
    step = 0.001 / (3e6 / (0.5 * thickness * capacity)) / held
    for _ in range(steps):
        near = np.pad(heat, 1, mode="edge")
        flows = (near[2:, 1:-1] + near[:-2, 1:-1] + near[1:-1, 2:] + near[1:-1, :-2] - 4 * heat) * 2 * conductivity * thickness
        heat = heat + step * (power + flows + (80 - heat) * conductivity * side * side / thickness)
    if found.size != heat.size or not np.allclose(found, heat.ravel(), rtol=1e-5):
        raise Wrong(f"temperatures differ by {abs(found[: heat.size] - heat.ravel()[: found.size]).max()}")


def nearest(output: str) -> None:
    """nn's answer: the five records next to 30, 90, in order."""
    found = [float(text) for text in re.findall(r"Distance=(\S+)", output)]
    records = (BUILD / "data" / "hurricanes.db").read_text().splitlines()
    places = np.array([[float(record[28:33]), float(record[33:38])] for record in records])
    if not np.allclose(found, np.sort(np.hypot(*(places - (30, 90)).T))[:5], atol=1e-4):
        raise Wrong("others are nearer")


def says(wanted: str, never: str = "FAIL") -> Callable[[str], None]:
    """A check of programs that check themselves."""

    def check(output: str) -> None:
        if not re.search(wanted, output) or re.search(never, output):
            raise Wrong(f"it does not say {wanted!r}, or says {never!r}")

    return check


PARTICLES = "-x 64 -y 64 -z 6 -np 500"
PROGRAMS = {
    "b+tree": Program(
        Version(
            "b+tree/main.c b+tree/kernel/kernel_gpu_cuda_wrapper.cu b+tree/kernel/kernel_gpu_cuda_wrapper_2.cu"
            " b+tree/util/timer/timer.c b+tree/util/num/num.c b+tree/util/cuda/cuda.cu",
            f"file {DATA}/tree.txt command {DATA}/tree.commands",
        ),
        Version(
            "b+tree/main.c b+tree/kernel/kernel_cpu.c b+tree/kernel/kernel_cpu_2.c b+tree/util/timer/timer.c"
            " b+tree/util/num/num.c",
            f"core 2 file {DATA}/tree.txt command {DATA}/tree.commands",
        ),
        results="output.txt",
    ),
    "bfs": Program(
        Version("bfs/bfs.cu", f"{DATA}/graph.txt"), Version("bfs/bfs.cpp", f"2 {DATA}/graph.txt"), results="result.txt"
    ),
    "cfd": Program(
        Version("cfd/euler3d.cu", f"{DATA}/mesh.txt", ("-I{cuda}/hybridsort",)),
        Version("cfd/euler3d_cpu.cpp", f"{DATA}/mesh.txt", ("-Dblock_length=2",)),
        results="density_energy",
        tolerance=1e-3,
    ),
    "gaussian": Program(Version("gaussian/gaussian.cu", "-s 64", ("-include", "{build}/solution.h")), check=solved),
    "hotspot": Program(
        Version("hotspot/hotspot.cu", f"64 2 20 {DATA}/temperatures.txt {DATA}/powers.txt /dev/stdout"),
        check=cooled,
    ),
    "hotspot3D": Program(
        Version("hotspot3D/3D.cu", f"64 8 10 {DATA}/powers.txt {DATA}/temperatures.txt out.txt"),
        Version("hotspot3D/3D.c", f"64 8 10 {DATA}/powers.txt {DATA}/temperatures.txt out.txt"),
        results="out.txt",
        tolerance=1e-4,
    ),
    "huffman": Program(
        Version("huffman/main_test_cu.cu huffman/cpuencode.cpp huffman/stats_logger.cpp", f"{DATA}/symbols.bin", ("-DTESTING",)),
        check=says("PASS! vectors are matching"),
    ),
    "lavaMD": Program(
        Version(
            "lavaMD/main.c lavaMD/kernel/kernel_gpu_cuda_wrapper.cu lavaMD/util/num/num.c lavaMD/util/timer/timer.c"
            " lavaMD/util/device/device.cu",
            "-boxes1d 3",
            ("-DOUTPUT", *SEEDED),
        ),
        Version(
            "lavaMD/main.c lavaMD/kernel/kernel_cpu.c lavaMD/util/num/num.c lavaMD/util/timer/timer.c",
            "-cores 2 -boxes1d 3",
            ("-DOUTPUT", *SEEDED),
        ),
        results="result.txt",
        tolerance=1e-5,
    ),
    "lud": Program(
        Version("lud/cuda/lud.cu lud/cuda/lud_kernel.cu lud/common/common.c", "-s 128 -v", ("-I{cuda}/lud/common",)),
        check=says(">>>Verify<<<<", never="dismatch"),
    ),
    "nn": Program(Version("nn/nn_cuda.cu", f"{DATA}/hurricanes.txt -r 5 -lat 30 -lng 90"), check=nearest),
    "nw": Program(
        Version("nw/needle.cu", "256 10", ("-DTRACEBACK",)), Version("nw/needle.cpp", "256 10 2"), results="result.txt"
    ),
    "particlefilter_float": Program(
        Version("particlefilter/ex_particle_CUDA_float_seq.cu", PARTICLES, SEEDED),
        Version("particlefilter/ex_particle_OPENMP_seq.c", PARTICLES, SEEDED),
        lines="[XY]E: .*",
        last=2,
        tolerance=1e-3,
    ),
    "particlefilter_naive": Program(
        Version("particlefilter/ex_particle_CUDA_naive_seq.cu", PARTICLES, SEEDED),
        Version("particlefilter/ex_particle_OPENMP_seq.c", PARTICLES, SEEDED),
        lines="[XY]E: .*",
        tolerance=1e-3,
    ),
    "pathfinder": Program(
        Version("pathfinder/pathfinder.cu", "1000 50 10", ("-DBENCH_PRINT",)),
        Version("pathfinder/pathfinder.cpp", "1000 50"),
        lines=r"(?:\d+ ){1000}",
    ),
    "srad_v1": Program(
        Version("srad/srad_v1/main.cu", "10 0.5 64 64"),
        Version("srad/srad_v1/main.c", "10 0.5 64 64 2", ("-Dfloat=double",)),  # its sums lose digits
        results="image_out.pgm",
        tolerance=1 / 64,  # grey values are cut off
    ),
    "srad_v2": Program(
        Version("srad/srad_v2/srad.cu", "64 64 0 31 0 31 0.5 4", ("-DOUTPUT",)),
        Version("srad/srad_v2/srad.cpp", "64 64 0 31 0 31 2 0.5 4", ("-DOUTPUT",)),
        lines=r"(?:\d+\.\d+ ){64}",
        tolerance=1e-4,
    ),
    "streamcluster": Program(
        Version(
            "streamcluster/streamcluster_cuda_cpu.cpp streamcluster/streamcluster_cuda.cu streamcluster/streamcluster_header.cu",
            "10 20 16 1024 1024 100 none output.txt 1",
        ),
        Version("streamcluster/streamcluster_omp.cpp", "10 20 16 1024 1024 100 none output.txt 1"),
        results="output.txt",
        tolerance=1e-4,
    ),
}

EXPECTED: dict[str, str] = {}
"""Programs that do not pass, with the reason."""


def built(checkout: Path, name: str, kind: str, version: Version) -> Path:
    sources = [checkout / kind / source for source in version.sources.split()]
    flags = [flag.format(cuda=checkout / "cuda", build=BUILD) for flag in version.flags]
    program = BUILD / "programs" / f"{name}-{kind}"
    if kind == "cuda":
        return compiled(program, sources, [*CUDA_FLAGS, *flags])
    compiler = "gcc" if all(source.suffix == ".c" for source in sources) else "g++"
    return compiled(program, sources, [*CPU_FLAGS, *flags], compiler, ["-lm"])


def ran(checkout: Path, name: str, kind: str, version: Version) -> tuple[Run, Path]:
    """What a version did, and the folder with its files."""
    folder = BUILD / "runs" / name / kind
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    return run([built(checkout, name, kind, version), *version.arguments.split()], folder, SECONDS), folder


def numbers(program: Program, done: Run, folder: Path) -> np.ndarray:
    """The results of a run."""
    if not program.results:
        text = "\n".join(line for line in done.output.splitlines() if re.fullmatch(program.lines, line))
    elif (folder / program.results).exists():
        text = (folder / program.results).read_text()
    else:
        raise Wrong(f"it has not written {program.results}: {done.failed}")
    return np.array(NUMBER.findall(text)[-program.last :], dtype=np.float64)


def compare(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    if found.size == 0 or found.size != wanted.size:
        raise Wrong(f"{found.size} numbers for {wanted.size}")
    wrong = ~np.isclose(found, wanted, rtol=tolerance, atol=tolerance)
    if not np.isfinite(wanted).all() or wrong.any():
        where = int(wrong.argmax())
        raise Wrong(f"{wrong.sum()} of {found.size} numbers differ, the first is {found[where]} for {wanted[where]}")


def outcome(checkout: Path, name: str) -> str:
    """What came of a program, in a few words."""
    program = PROGRAMS[name]
    done, folder = ran(checkout, name, "cuda", program.cuda)
    try:
        if program.check:
            program.check(done.output)
        if program.cpu:
            wanted = numbers(program, *ran(checkout, name, "openmp", program.cpu))
            compare(numbers(program, done, folder), wanted, program.tolerance)
    except Wrong as problem:
        return f"FAILED: {problem}"
    return done.failed if done.status < 0 or "ptxemu:" in done.errors else done.passed


def write_headers() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    for header, text in HEADERS.items():
        (BUILD / header).write_text(text)


def main() -> int:
    rodinia_data.write(BUILD / "data")
    write_headers()
    return report(__doc__, PROGRAMS, outcome, EXPECTED)


if __name__ == "__main__":
    sys.exit(main())
