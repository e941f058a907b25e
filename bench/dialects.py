"""Speed of the dialects: a reduction on every texel of a surface, against the same kernel in PTX.

    python bench/dialects.py [--runs N]

Runs alternate, so that a busy machine slows both sides; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import ptxemu

HERE = Path(__file__).resolve().parent
SIDE, BLOCK = 4096, 256  # 16 Mi texels
CHANNELS = {".visa": 8}  # of one thread of a launch; 1 elsewhere


def launcher(device: ptxemu.Device, file: str) -> tuple[Callable[[], object], ptxemu.SurfaceObject]:
    """A launch of the file's kernel on a surface of its own."""
    module = ptxemu.load(HERE / file, device=device)
    surface = device.surface((SIDE, SIDE), format="R32_UINT")
    kernel = next(iter(module.values()))[SIDE * SIDE // BLOCK // CHANNELS.get(Path(file).suffix, 1), BLOCK]
    module.bind("image", surface)
    return kernel, surface


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    runs = parser.parse_args().runs
    device = ptxemu.Device()
    ptx, expected = launcher(device, "reduction.ptx")
    ptx()
    print(f"{'dialect':<8} {'PTX':>10} {'dialect':>10} {'ratio':>7}   {SIDE * SIDE} lanes, medians of {runs} runs")
    for path in sorted(HERE.glob("reduction.*")):
        if path.suffix == ".ptx":
            continue
        other, surface = launcher(device, path.name)
        other()
        pairs = [(seconds(ptx), seconds(other)) for _ in range(runs)]
        ptx_median, median = (statistics.median(side) for side in zip(*pairs, strict=True))
        assert surface.copy_to_host()[1, 2] == runs + 1
        print(f"{path.suffix[1:]:<8} {ptx_median * 1e3:>7.1f} ms {median * 1e3:>7.1f} ms {median / ptx_median:>6.2f}x")
    assert expected.copy_to_host()[1, 2] >= runs + 1


if __name__ == "__main__":
    main()
