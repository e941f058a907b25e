"""Speed against the same kernels in C, and the start-up time of the command line.

    python bench/run.py [--runs N] [--json FILE] [NAME ...]

Runs of both sides alternate, so that a busy machine slows both; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import ptxemu

HERE = Path(__file__).resolve().parent
FLAGS = ["-O3", "-march=native", "-fopenmp", "-fno-math-errno"]  # the last only helps the C side: it vectorizes sqrtf
CC = os.environ.get("CC", "gcc")
SEED = 1


@dataclass(frozen=True)
class Timing:
    """Seconds of every run of one side."""

    name: str
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Pair:
    """The two sides of a benchmark, and a check that they agree."""

    native: Callable[[], object]
    emulated: Callable[[], object]
    check: Callable[[], None]


def native(name: str, folder: Path) -> Callable[..., object]:
    """A function of bench/native, compiled for this machine."""
    library = folder / f"{name}.so"
    command = [CC, *FLAGS, "-shared", "-fPIC", str(HERE / "native" / f"{name}.c"), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = None
    return function


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def saxpy(device: ptxemu.Device, folder: Path) -> Pair:
    n = 1 << 24
    x, y = np.random.default_rng(SEED).random((2, n), np.float32)
    host = y.copy()
    on_device = device.to_device(x), device.to_device(y)
    twin = native("saxpy", folder)
    kernel = ptxemu.load(HERE / "saxpy.ptx", device=device)["saxpy"][n // 256, 256]
    a = 0.5

    def check() -> None:
        np.testing.assert_allclose(on_device[1].array, host, rtol=1e-6)

    return Pair(
        lambda: twin(ctypes.c_uint(n), ctypes.c_float(a), pointer(x), pointer(host)),
        lambda: kernel(n, a, *on_device),
        check,
    )


def matmul(device: ptxemu.Device, folder: Path) -> Pair:
    n = 512
    a, b = np.random.default_rng(SEED).random((2, n, n), np.float32)
    host = np.zeros((n, n), np.float32)
    on_device = device.to_device(a), device.to_device(b), device.empty((n, n))
    twin = native("matmul", folder)
    kernel = ptxemu.load(HERE / "matmul.ptx", device=device)["matmul"][(n // 16, n // 16), (16, 16)]

    def check() -> None:
        np.testing.assert_allclose(on_device[2].array, host, rtol=1e-5)

    return Pair(lambda: twin(ctypes.c_int(n), pointer(a), pointer(b), pointer(host)), lambda: kernel(n, *on_device), check)


def nbody(device: ptxemu.Device, folder: Path) -> Pair:
    n = 8192
    bodies = np.random.default_rng(SEED).random((n, 4), np.float32)
    host = np.zeros((n, 4), np.float32)
    on_device = device.to_device(bodies), device.empty((n, 4))
    twin = native("nbody", folder)
    kernel = ptxemu.load(HERE / "nbody.ptx", device=device)["nbody"][n // 256, 256]
    softening = 1e-3

    def check() -> None:
        np.testing.assert_allclose(on_device[1].array, host, rtol=1e-2, atol=1.0)

    return Pair(
        lambda: twin(ctypes.c_int(n), ctypes.c_float(softening), pointer(bodies), pointer(host)),
        lambda: kernel(n, softening, *on_device),
        check,
    )


BENCHMARKS = {"saxpy": saxpy, "matmul": matmul, "nbody": nbody}


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def measure(name: str, pair: Pair, runs: int) -> tuple[Timing, Timing]:
    """Alternate the two sides, after one run of each that is not counted."""
    pair.native(), pair.emulated()
    pair.check()
    seconds = [(timed(pair.native), timed(pair.emulated)) for _ in range(runs)]
    return Timing(f"{name} C", [pair[0] for pair in seconds]), Timing(f"{name} ptxemu", [pair[1] for pair in seconds])


def start_up(runs: int) -> list[Timing]:
    """Whole processes: ``ptxemu run samples/saxpy`` with an empty and with a full cache."""
    command = [sys.executable, "-m", "ptxemu", "run", str(HERE.parent / "samples" / "saxpy")]

    def process(cache: str) -> float:
        environment = {**os.environ, "PTXEMU_CACHE": cache}
        return timed(lambda: subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL))

    cold, warm = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(process(cache))
            warm.append(process(cache))
    return [Timing("run samples/saxpy, cold", cold), Timing("run samples/saxpy, warm", warm)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join([*BENCHMARKS, 'start'])}")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = options.names or [*BENCHMARKS, "start"]
    results: list[Timing] = []
    print(f"{os.cpu_count()} CPUs; C: {CC} {' '.join(FLAGS)}; medians of {options.runs} alternating runs\n")
    print(f"{'benchmark':<10} {'C':>10} {'ptxemu':>10} {'ratio':>7}")
    device = ptxemu.Device()
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name in names if name in BENCHMARKS):
            pair = measure(name, BENCHMARKS[name](device, Path(folder)), options.runs)
            results += pair
            c, emulated = pair[0].median, pair[1].median
            print(f"{name:<10} {c * 1e3:>7.2f} ms {emulated * 1e3:>7.2f} ms {emulated / c:>6.2f}x")
    if "start" in names:
        for timing in start_up(max(3, options.runs // 3)):
            results.append(timing)
            print(f"{timing.name}: {timing.median:.2f} s")
    if options.json:
        options.json.write_text(json.dumps([asdict(item) for item in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
