"""Running single SASS instructions: one thread for each row of register values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptxemu
from ptxemu.device.surface_object import SurfaceObject

Words = NDArray[np.uint32]


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("512 MiB", workers=1)


@cache
def module(text: str, options: tuple[tuple[str, str | int | bool], ...] = ()) -> ptxemu.Module:
    return ptxemu.loads(text, dialect="sass", device=device(), options=dict(options), opt=0)


def kernel_text(instructions: Sequence[str], inputs: Sequence[str], outputs: Sequence[str] = (), head: str = "") -> str:
    """A kernel ``k`` whose register files are parameters in written order."""
    lines = [head, ".header 3 image", ".const c[0x0][0x148] = 0xABC00003", ".kernel k"]
    lines += [f".in {name} in_{name}" for name in inputs] + [f".out {name} out_{name}" for name in outputs]
    return "\n".join([*lines, *instructions, "EXIT"]) + "\n"


def run(
    instructions: Sequence[str] | str,
    registers: Mapping[str, Any],
    surface: SurfaceObject | None = None,
    outputs: Sequence[str] = (),
    *,
    head: str = "",
    block: int | None = None,
    options: Mapping[str, str | int | bool] | None = None,
) -> dict[str, Words]:
    """Run with a thread for each value of the registers, which are broadcast; the output registers.

    ``block`` is the number of threads of a block, by default all of them (up to 1024).
    """
    listed = [instructions] if isinstance(instructions, str) else list(instructions)
    files = [np.atleast_1d(np.asarray(value)).astype(np.int64) & 0xFFFFFFFF for value in registers.values()]
    count = max((len(file) for file in files), default=1)
    inputs = [np.ascontiguousarray(np.broadcast_to(file, count), np.uint32) for file in files]
    loaded = module(kernel_text(listed, list(registers), outputs, head), tuple((options or {}).items()))
    if surface is not None:
        loaded.bind("image", surface)
    results = {name: np.zeros(count, np.uint32) for name in outputs}
    threads = block or min(count, 1024)
    assert count % threads == 0
    loaded["k"][count // threads, threads](*inputs, *results.values())
    return results


def pairs(values: Any) -> dict[str, Any]:
    """64-bit operands in R8 and R9."""
    wide = np.atleast_1d(np.asarray(values, dtype=object))
    return {"R8": [int(v) & 0xFFFFFFFF for v in wide], "R9": [int(v) >> 32 & 0xFFFFFFFF for v in wide]}


def memory(surface: SurfaceObject) -> NDArray[np.uint8]:
    """The bytes of a surface, padding included."""
    inner = surface.surface
    view: NDArray[np.uint8] = inner.arena.view(inner.address, inner.total_bytes)
    return view
