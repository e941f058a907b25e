"""Speed of the dialects against the same kernels in PTX: a reduction, a store to a computed place, a formatted store of
every texel of a surface.

    python bench/dialects.py [--runs N]

Runs alternate, so that a busy machine slows both sides; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ptxemu

HERE = Path(__file__).resolve().parent
SIDE, BLOCK = 4096, 256  # 16 Mi texels
CHANNELS = {".visa": 8}  # of one thread of a launch; 1 elsewhere
PROGRAMS = {"reduction": "R32_UINT", "scatter": "R32_FLOAT", "output": "R8G8B8A8_UNORM"}
"""Files and the format of their surface; all but the reduction take a grid of rows."""


def launcher(device: ptxemu.Device, path: Path) -> tuple[Callable[[], object], ptxemu.SurfaceObject]:
    """A launch of the file's kernel on a surface of its own."""
    module = ptxemu.load(path, device=device)
    surface = device.surface((SIDE, SIDE), format=PROGRAMS[path.stem])
    blocks = SIDE // BLOCK // CHANNELS.get(path.suffix, 1)
    kernel = next(iter(module.values()))[blocks * SIDE if path.stem == "reduction" else (blocks, SIDE), BLOCK]
    module.bind("image", surface)
    return kernel, surface


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def compare(device: ptxemu.Device, path: Path, runs: int) -> None:
    """Print the medians of a dialect's file and of its PTX; both leave the same texels."""
    (ptx, expected), (other, surface) = launcher(device, path.with_suffix(".ptx")), launcher(device, path)
    ptx(), other()
    pairs = [(seconds(ptx), seconds(other)) for _ in range(runs)]
    assert expected.copy_to_host().any() and np.array_equal(expected.copy_to_host(), surface.copy_to_host())
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{path.name:<16} {ours * 1e3:>7.1f} ms {theirs * 1e3:>7.1f} ms {theirs / ours:>6.2f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    device = ptxemu.Device()
    print(f"{'program':<16} {'PTX':>10} {'dialect':>10} {'ratio':>7}   {SIDE * SIDE} lanes, medians of {runs} runs")
    for name in PROGRAMS:
        for path in sorted(HERE.glob(f"{name}.*")):
            if path.suffix != ".ptx":
                compare(device, path, runs)


if __name__ == "__main__":
    main()
