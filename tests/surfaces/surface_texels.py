"""Descriptors, guarded texels and single accesses through the surface engine's C entry points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxemu._runtime import ffi, lib
from ptxemu.device.surface_format import FORMATS
from tests.support.surface_model import MISALIGNED, NONE, TRAP, ModelSurface

GEOMETRY = {
    name: getattr(lib, f"PE_GEOM_{name.upper()}") for name in ("1d", "1d_buffer", "2d", "3d", "a1d", "a2d", "cube", "acube")
}
LAYOUT = {"linear": lib.PE_LAYOUT_LINEAR, "pitch": lib.PE_LAYOUT_PITCH, "block_linear": lib.PE_LAYOUT_BLOCK_LINEAR}
COORD = {"byte": lib.PE_COORD_BYTE, "scaled": lib.PE_COORD_SCALED, "texel": lib.PE_COORD_TEXEL}
CLAMP = {"trap": lib.PE_CLAMP_TRAP, "clamp": lib.PE_CLAMP_NEAREST, "zero": lib.PE_CLAMP_ZERO}
BY_BYTES = {1: "R8_UINT", 2: "R16_UINT", 4: "R32_UINT", 8: "R32G32_UINT", 16: "R32G32B32A32_UINT"}
GUARD = 256


def describe(
    format: str = "R32_UINT",
    width: int = 1,
    height: int = 1,
    depth: int = 1,
    layers: int = 1,
    *,
    geometry: str = "2d",
    layout: str = "pitch",
    levels: int = 1,
    **fields: int,
) -> Any:
    """A descriptor before its layout is computed."""
    texel = FORMATS[format]
    desc = ffi.new("pe_surface_desc *")
    desc.state, desc.geom, desc.layout = lib.PE_SURFACE_VALID, GEOMETRY[geometry], LAYOUT[layout]
    desc.width, desc.height, desc.depth, desc.layers, desc.levels = width, height, depth, layers, levels
    desc.components, desc.bits = texel.components, texel.bits
    desc.kind, desc.order = getattr(lib, f"PE_KIND_{texel.kind}"), getattr(lib, f"PE_ORDER_{texel.order}")
    for name, value in fields.items():
        setattr(desc, name, value)
    return desc


def wrong(message: Any) -> str:
    return ffi.string(message).decode() if message else ""


class Texels:
    """A surface in the middle of a guarded NumPy buffer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.desc = describe(*args, **kwargs)
        assert wrong(lib.pe_surface_layout(self.desc)) == ""
        self.total = int(self.desc.total_bytes)
        raw = np.full(self.total + 2 * GUARD + 64, 0xA5, np.uint8)
        start = GUARD + (-raw.ctypes.data - GUARD) % 64
        self.all = raw
        self.start = start
        self.memory = raw[start : start + self.total]
        self.memory[:] = 0
        self.desc.base = ffi.cast("uint8_t *", self.memory.ctypes.data)
        self.desc.size = self.total
        assert wrong(lib.pe_surface_check(self.desc)) == ""

    @property
    def guards_intact(self) -> bool:
        outside = np.concatenate([self.all[: self.start], self.all[self.start + self.total :]])
        return bool((outside == 0xA5).all())


def context(table: Any = None, **policy: int) -> Any:
    ctx = ffi.new("pe_su_context *")
    for name, value in policy.items():
        setattr(ctx.policy, name, value)
    if table is not None:
        ctx.table = table
    return ctx


def access(geometry: str = "2d", size: int = 4, clamp: str = "trap", mode: str = "byte", format: int = 0) -> Any:
    geom = lib.PE_GEOM_ANY if geometry == "any" else GEOMETRY[geometry]
    return ffi.new("pe_su_access *", [geom, COORD[mode], size, CLAMP[clamp], format])


def coord(x: int = 0, y: int = 0, z: int = 0, layer: int = 0, level: int = 0) -> Any:
    return ffi.new("pe_su_coord *", [x, y, z, layer, level])


def resolve(desc: Any, how: Any, where: Any, **policy: int) -> int | str:
    """The byte offset, or an outcome in the model's words."""
    out = ffi.new("uint8_t **")
    status = lib.pe_su_resolve(context(**policy), desc, how, where, out)
    if status == lib.PE_OK:
        return int(ffi.cast("uintptr_t", out[0])) - int(ffi.cast("uintptr_t", desc.base))
    return {lib.PE_SU_NONE: NONE, lib.PE_SURFACE_TRAP: TRAP, lib.PE_MISALIGNED: MISALIGNED}.get(status, status)


def random_model(rng: np.random.Generator, lod: bool = False) -> tuple[ModelSurface, Texels]:
    geometry = str(rng.choice(["1d", "1d_buffer", "2d", "3d", "a1d", "a2d", "cube", "acube"]))
    layout = str(
        rng.choice(["pitch", "block_linear", "linear"] if geometry in ("1d", "1d_buffer") else ["pitch", "block_linear"])
    )
    elem = int(rng.choice([1, 2, 4, 8, 16]))
    width, height, depth = (int(value) for value in rng.integers(1, 40, 3))
    layers = {"a1d": 5, "a2d": 3, "cube": 6, "acube": 12}.get(geometry, 1)
    if geometry in ("1d", "1d_buffer", "a1d"):
        height = 1
    if geometry in ("cube", "acube"):
        height = width
    depth = depth if geometry == "3d" else 1
    levels = 1
    if lod and layout != "linear":
        levels = int(rng.integers(1, max(width, height, depth).bit_length() + 1))
    bh, bd = (int(value) for value in rng.integers(0, 6, 2))
    order = str(rng.choice(["swizzled", "linear"]))
    pitch = -(-width * elem // 16) * 16 + 16 * int(rng.integers(0, 3)) if layout == "pitch" else 0
    model = ModelSurface(geometry, elem, width, height, depth, layers, layout, pitch, bh, bd, order, levels)
    real = Texels(
        BY_BYTES[elem],
        width,
        height,
        depth,
        layers,
        geometry=geometry,
        layout=layout,
        levels=levels,
        pitch=pitch,
        block_h_log2=bh,
        block_d_log2=bd,
        gob_order=int(order == "linear"),
    )
    return model, real
