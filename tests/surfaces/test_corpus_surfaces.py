"""Surface kernels as nvcc writes them, launched and compared with NumPy; their sources lie in ``data/corpus``."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from tests.support.places import CORPUS

WIDTH, HEIGHT, DEPTH, BLOCK = 48, 5, 4, 32
AXES = {"1d": (WIDTH,), "2d": (HEIGHT, WIDTH), "3d": (DEPTH, HEIGHT, WIDTH), "a1d": (DEPTH, WIDTH), "a2d": (DEPTH, HEIGHT, WIDTH)}
FORMATS = {1: "R32_UINT", 2: "R32G32_UINT", 4: "R32G32B32A32_UINT"}
REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
}  # fmt: skip


def kernels(module: str, pattern: str) -> list[str]:
    names = re.findall(r"\.entry\s+([\w$]+)", (CORPUS / f"{module}.ptx").read_text())
    found = [name for name in names if re.fullmatch(pattern, name)]
    assert found
    return found


def texel(geometry: str, x: int, y: int, z: int) -> tuple[int, ...]:
    """The index of a texel in an array with the axes of ``AXES``."""
    return {"1d": (x,), "2d": (y, x), "3d": (z, y, x), "a1d": (z, x), "a2d": (z, y, x)}[geometry]


def launch(module: str, kernel: str, device: ptxemu.Device, *args: object, block: int = BLOCK) -> None:
    ptxemu.load(CORPUS / f"{module}.ptx", device=device)[kernel][1, block](*args)


@pytest.fixture(scope="module")
def device() -> ptxemu.Device:
    return ptxemu.Device(memory="256 MiB", workers=1)


GEOMETRIES = {"surf1d": "1d", "surf2d": "2d", "surf3d": "3d", "surf1dl": "a1d", "surf2dl": "a2d"}
MODULES = {"surf1dl": "surf1d_layered", "surf2dl": "surf2d_layered"}
READ_WRITE = [
    (prefix, mode, x)
    for prefix in GEOMETRIES
    for mode, x in [("trap", 3), ("clamp", 3), ("clamp", 30), ("zero", 30), ("zero", -7)]
]


@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize(("prefix", "mode", "x"), READ_WRITE)
def test_read_and_write(prefix: str, mode: str, x: int, layout: str, device: ptxemu.Device) -> None:
    """Lane i reads texel x + i, then writes a hash of it; beyond the edge .clamp takes the last texel, .zero none."""
    geometry, y, z = GEOMETRIES[prefix], 2, 3
    texels = np.random.default_rng(x & 7).integers(0, 2**32, AXES[geometry], dtype=np.uint32)
    surface = device.surface(texels, format="R32_UINT", geometry=geometry, layout=layout)
    out = np.zeros(BLOCK, np.uint32)
    launch(MODULES.get(prefix, prefix), f"{prefix}_{mode}", device, surface, out, x, y, z)
    row = texels[texel(geometry, 0, y, z)[:-1]]
    at, lanes = x + np.arange(BLOCK), np.arange(BLOCK, dtype=np.uint32)
    inside = (at >= 0) & (at < WIDTH)
    expected = row[np.clip(at, 0, WIDTH - 1)] * (inside | (mode == "clamp")).astype(np.uint32)
    np.testing.assert_array_equal(out, expected)
    written = expected * np.uint32(2654435761) + lanes
    after, found = texels.copy(), surface.copy_to_host()
    row = after[texel(geometry, 0, y, z)[:-1]]
    row[at[inside]] = written[inside]
    if mode == "clamp" and not inside.all():
        last = texel(geometry, WIDTH - 1, y, z)
        assert found[last] in written[at >= WIDTH - 1]
        after[last] = found[last]
    np.testing.assert_array_equal(found, after)


@pytest.mark.parametrize("prefix", GEOMETRIES)
def test_trap_beyond_the_edge(prefix: str, device: ptxemu.Device) -> None:
    surface = device.surface(AXES[GEOMETRIES[prefix]], format="R32_UINT", geometry=GEOMETRIES[prefix])
    with pytest.raises(ptxemu.Fault, match="surface"):
        launch(MODULES.get(prefix, prefix), f"{prefix}_trap", device, surface, np.zeros(BLOCK, np.uint32), WIDTH - 2, 0, 0)


BYTES = {"char": 1, "short": 2, "int": 4, "float": 4, "long_long": 8, "longlong": 8}


@pytest.mark.parametrize("kernel", kernels("surf_types", "copy2d_.*"))
def test_copies(kernel: str, device: ptxemu.Device) -> None:
    base, lanes = re.fullmatch(r"copy2d_(?:unsigned_|u)?([a-z_]+?)(\d?)", kernel).groups()  # type: ignore[union-attr]
    size = BYTES[base] * int(lanes or 1)
    rows = np.random.default_rng(size).integers(0, 256, (21, 37 * size), dtype=np.uint8)
    source = device.surface(rows, format="R8_UINT", layout="block_linear")
    target = device.surface(rows.shape, format="R8_UINT")
    ptxemu.load(CORPUS / "surf_types.ptx", device=device)[kernel][(3, 3), (16, 8)](source, target, 37, 20)
    np.testing.assert_array_equal(target.copy_to_host(), np.where(np.arange(21)[:, None] < 20, rows, 0))


def test_queries(device: ptxemu.Device) -> None:
    answers = {"channel_data_type": 0x10DA, "channel_order": 0x10B0}
    out = np.zeros(7, np.uint32)
    surface = device.surface((DEPTH, HEIGHT, WIDTH), format="R32_UINT", geometry="a2d", layout="pitch", queries=answers)
    launch("suq_sustp_asm", "suq_all", device, surface, out, block=1)
    assert out.tolist() == [WIDTH, HEIGHT, out[2], 0x10DA, 0x10B0, DEPTH, 1]
    solid = device.surface((DEPTH, HEIGHT, WIDTH), format="R32_UINT", geometry="3d", layout="block_linear", queries=answers)
    launch("suq_sustp_asm", "suq_all", device, solid, out, block=1)
    assert out.tolist() == [WIDTH, HEIGHT, DEPTH, 0x10DA, 0x10B0, out[5], 0]


@pytest.mark.parametrize("kernel", kernels("suq_sustp_asm", "sust_p_.*"))
def test_formatted_stores(kernel: str, device: ptxemu.Device) -> None:
    geometry, vector = re.fullmatch(r"sust_p_(a?\dd)(?:_v(\d))?", kernel).groups()  # type: ignore[union-attr]
    channels, at = int(vector or 1), texel(geometry, 7, 3, 2)
    surface = device.surface(
        (*AXES[geometry], channels) if vector else AXES[geometry], format=FORMATS[channels], geometry=geometry
    )
    launch("suq_sustp_asm", kernel, device, surface, 7, 3, 2, 900)
    expected = np.zeros((*AXES[geometry], channels), np.uint32)
    expected[at] = 900 + np.arange(channels)
    np.testing.assert_array_equal(surface.copy_to_host().reshape(expected.shape), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", kernels("sured_asm", "sured_.*"))
def test_reductions(kernel: str, device: ptxemu.Device) -> None:
    """Every lane applies the operation three times to one texel; ``.p`` counts coordinates in texels."""
    how, operation, geometry, kind = re.fullmatch(r"sured_([bp])_(\w+?)_(\dd)(?:_(\w+))?", kernel).groups()  # type: ignore[union-attr]
    kind = kind or "b32"
    dtype = np.dtype(("int" if kind[0] == "s" else "uint") + kind[1:])
    texels: NDArray[np.integer] = np.random.default_rng(3).integers(0, 2**31, AXES[geometry]).astype(dtype)
    surface = device.surface(
        texels.view(f"u{dtype.itemsize}") if dtype.itemsize == 4 else texels.view(np.uint32).reshape(*texels.shape, 2),
        format=FORMATS[dtype.itemsize // 4],
        geometry=geometry,
    )
    value, at = 0x2AAAAAAB, texel(geometry, 7, 3, 2)
    launch("sured_asm", kernel, device, surface, 7 * (dtype.itemsize if how == "b" else 1), 3, 2, value)
    old = int(texels[at])
    new = old + 3 * BLOCK * value if operation == "add" else REDUCTIONS[operation](old, value)
    texels[at] = np.array(new % 2**64, np.uint64).astype(dtype)
    np.testing.assert_array_equal(surface.copy_to_host().reshape(-1).view(dtype), texels.reshape(-1))
