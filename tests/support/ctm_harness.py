"""Running CTM instructions: one point for each row of register values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptxemu
from ptxemu.device.surface_object import SurfaceObject

Words = NDArray[np.uint32]
FORMATS = {
    "UINT16_1": "R16_UNORM", "UINT8_4": "R8G8B8A8_UNORM", "FLOAT32_1": "R32_FLOAT", "FLOAT32_2": "R32G32_FLOAT",
    "FLOAT32_4": "R32G32B32A32_FLOAT",
}  # fmt: skip
BLOCK = 32


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("512 MiB", workers=1)


@cache
def module(text: str, strict: bool = False, options: tuple[tuple[str, str | int | bool], ...] = ()) -> ptxemu.Module:
    return ptxemu.loads(text, dialect="ctm", device=device(), strict=strict, options=dict(options), opt=0)


def bits(values: Any) -> Words:
    """Floats as words; words as they are."""
    array = np.asarray(values)
    return array.astype(np.uint32) if array.dtype.kind in "iu" else array.astype(np.float32).view(np.uint32)


def kernel_text(lines: Sequence[str], inputs: Sequence[str], outputs: Sequence[str], kind: str, head: Sequence[str]) -> str:
    files = [f".in {name} in_{name}" for name in inputs] + [f".out {name} out_{name}" for name in outputs]
    return "\n".join([f".kernel k {kind}", *head, *files, *lines]) + "\n"


def run(
    lines: Sequence[str] | str,
    registers: Mapping[str, Any],
    outputs: Sequence[str] = (),
    *,
    kind: str = "cached",
    surfaces: Mapping[str, SurfaceObject] | None = None,
    head: Sequence[str] = (),
    strict: bool = False,
    options: Mapping[str, str | int | bool] | None = None,
    grid: Any = None,
    block: Any = None,
) -> dict[str, Words]:
    """Run with a point for each row of the registers (``pred``: one word a point); the output registers as words.

    ``result`` of the answer is what the launch reports.
    """
    listed = [lines] if isinstance(lines, str) else list(lines)
    files = {name: bits(value) for name, value in registers.items()}
    count = max((len(file) for file in files.values()), default=1)
    shape = {name: (count,) if name == "pred" else (count, 4) for name in {*files, *outputs}}
    given = [np.ascontiguousarray(np.broadcast_to(file, shape[name])) for name, file in files.items()]
    loaded = module(kernel_text(listed, list(files), outputs, kind, head), strict, tuple((options or {}).items()))
    for name, surface in (surfaces or {}).items():
        loaded.bind(name, surface)
    results: dict[str, Any] = {name: np.zeros(shape[name], np.uint32) for name in outputs}
    size = (min(count, BLOCK), 1) if block is None else block
    blocks = -(-count // BLOCK) if grid is None else grid
    assert grid is not None or count <= BLOCK or count % BLOCK == 0
    answer = loaded["k"][blocks, size](*given, *results.values())
    return {**results, "result": answer}


def target(format: str, data: Any = None, width: int = 4, height: int = 1, *, pitch: int = 0) -> SurfaceObject:
    """A surface of a format of CTM: zeros, or the components given."""
    components = 4 if format.endswith("4") else int(format[-1])
    dtype = {"UINT16_1": np.uint16, "UINT8_4": np.uint8}.get(format, np.float32)
    shape = (height, width, components) if components > 1 else (height, width)
    texels = np.zeros(shape, dtype) if data is None else np.ascontiguousarray(np.broadcast_to(np.asarray(data, dtype), shape))
    align = 16 if pitch == 0 else texels.itemsize * components
    return device().surface(texels, format=FORMATS[format], pitch=pitch, pitch_align=align)
