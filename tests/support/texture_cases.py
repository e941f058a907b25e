"""Random textures and fetches: kernels that run one texture instruction, and the model that says what they give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import ptxemu
from ptxemu.device.surface_format import FORMATS, SurfaceFormat
from ptxemu.ir.geometry import GEOMETRIES
from tests.support.texture_model import Model

LANES = 32
DIMS = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2, "2dms": 2, "a2dms": 2}
TUPLES = {
    "1d": "{%x}", "2d": "{%x, %y}", "3d": "{%x, %y, %z, %z}", "a1d": "{%l, %x}", "a2d": "{%l, %x, %y, %y}",
    "cube": "{%x, %y, %z, %z}", "acube": "{%l, %x, %y, %z}", "2dms": "{%s, %x, %y, %y}", "a2dms": "{%s, %l, %x, %y}",
}  # fmt: skip
ROWS = ("x", "y", "z", "l", "s", "d", "g0", "g1", "g2", "h0", "h1", "h2", "e0", "e1", "e2")
ADDRESSES = ("wrap", "clamp", "mirror", "border")
HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"


def vector(letter: str, count: int) -> str:
    names = [f"%{letter}{index}" for index in range(count)]
    return "{" + ", ".join(names + names[-1:] * (count == 3)) + "}"


def entry(instruction: str, name: str = "k") -> str:
    """A kernel that runs an instruction with ``%o0`` to ``%o3`` as results on the rows of its inputs, one lane each."""
    lines = [f".visible .entry {name}(.param .u64 t, .param .u64 in, .param .u64 out)", "{", "  .reg .b32 %i, %o<4>;"]
    lines += ["  .reg .b64 %t, %in, %out, %at;", "  ld.param.u64 %t, [t]; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];"]
    lines.append("  mov.u32 %i, %tid.x; mul.wide.u32 %at, %i, 4; add.u64 %in, %in, %at; add.u64 %out, %out, %at;")
    for index, row in enumerate(ROWS):
        if f"%{row}" in instruction:
            lines.append(f"  .reg .b32 %{row}; ld.global.b32 %{row}, [%in+{128 * index}];")
    lines.append(f"  {instruction}")
    lines += [f"  st.global.b32 [%out+{128 * index}], %o{index};" for index in range(4)]
    return "\n".join([*lines, "  ret;", "}", ""])


@cache
def module(instruction: str) -> ptxemu.Module:
    return ptxemu.loads(HEADER + entry(instruction))


def run(instruction: str, texture: Any, rows: dict[str, np.ndarray]) -> np.ndarray:
    """The results, [lane][component], as bits."""
    inputs = np.zeros((len(ROWS), LANES), np.uint32)
    for name, values in rows.items():
        inputs[ROWS.index(name)] = np.asarray(values).view(np.uint32)
    out = np.zeros((4, LANES), np.uint32)
    module(instruction)["k"][1, LANES](texture, inputs, out)
    return out.T


def instruction(geometry: str, form: str, coordinates: str = "f32", result: str = "u32") -> str:
    """``tex`` in a form: plain, base, level, grad; with ``+offset``."""
    mode, _, extra = form.partition("+")
    axes = 3 if "cube" in geometry else DIMS[geometry]
    operands = {"level": ", %d", "grad": f", {vector('g', axes)}, {vector('h', axes)}"}.get(mode, "")
    operands += f", {vector('e', axes)}" if extra else ""
    word = "" if mode == "plain" else f".{mode}"
    return f"tex{word}.{geometry}.v4.{result}.{coordinates} {{%o0, %o1, %o2, %o3}}, [%t, {TUPLES[geometry]}]{operands};"


# ---------------------------------------------------------------- textures


@dataclass
class Case:
    """A texture and its model."""

    texture: Any
    model: Model
    options: dict[str, Any]


def texels(rng: np.random.Generator, shape: tuple[int, ...], format: SurfaceFormat) -> np.ndarray:
    if format.kind == "FLOAT":
        return (rng.standard_normal(shape) * 8).astype(format.dtype)
    bounds = np.iinfo(format.dtype)
    return rng.integers(bounds.min, int(bounds.max) + 1, shape, format.dtype)


def read_kind(format: SurfaceFormat, read_mode: str | None) -> str:
    if read_mode == "element":
        return format.kind.replace("UNORM", "UINT").replace("SNORM", "SINT")
    if read_mode == "normalized_float":
        return {"UINT": "UNORM", "SINT": "SNORM"}.get(format.kind, format.kind)
    return format.kind


def extents(rng: np.random.Generator, geometry: str) -> dict[str, int]:
    width = int(rng.integers(1, 12))
    sizes = {"width": width}
    sizes |= {name: int(rng.integers(1, most)) for name, most in (("height", 9), ("depth", 5), ("layers", 4), ("samples", 5))}
    if "cube" in geometry:
        sizes["height"] = width
        sizes["layers"] = 6 if geometry == "cube" else 6 * sizes["layers"]
    return sizes


def random_case(rng: np.random.Generator, geometry: str, **fixed: Any) -> Case:
    """A texture of random format, extents, contents and sampler; ``fixed`` options are taken as they are."""
    width = fixed.pop("width", None)
    format = FORMATS[fixed.pop("format", None) or str(rng.choice([name for name in FORMATS if not FORMATS[name].packed]))]
    options: dict[str, Any] = {
        "filter": str(rng.choice(["point", "linear"])),
        "address": [str(mode) for mode in rng.choice(ADDRESSES, 3)],
        "normalized": bool(rng.integers(2)) or "cube" in geometry,
        "read_mode": [None, "element", "normalized_float"][int(rng.integers(3))],
        "mip_filter": str(rng.choice(["point", "linear"])),
        "mip_bias": float(rng.integers(-4, 5)) / 4,
        "min_level": float(rng.integers(0, 3)) / 2,
        "max_level": float(rng.integers(0, 8)) / 2,
        "border": [float(value) / 8 for value in rng.integers(-8, 9, 4)],
        "seamless": "cube" in geometry and bool(rng.integers(2)),
        "layout": str(rng.choice(["pitch", "block_linear"])),
        "levels": 1 if geometry.endswith("ms") else int(rng.integers(1, 4)),
    }  # fmt: skip
    options |= fixed
    if format.bits == 32 and options["read_mode"] == "normalized_float" and format.kind != "FLOAT":
        options["read_mode"] = None
    kind = read_kind(format, options["read_mode"])
    if kind in ("UINT", "SINT"):
        options |= {"filter": "point", "mip_filter": "point", "border": [0.0] * 4}
    options["srgb"] = kind == "UNORM" and format.bits == 8 and bool(rng.integers(2))
    sizes = extents(rng, geometry) | ({"width": width} if width else {})
    axes = GEOMETRIES[geometry].extents
    components = (format.components,) if format.components > 1 else ()
    shape = tuple(sizes[axis] for axis in axes) + components
    largest = max(sizes[axis] for axis in axes if axis in ("width", "height", "depth"))
    options["levels"] = min(options["levels"], largest.bit_length())
    texture = ptxemu.default_device().texture(shape, format=format.name, geometry=geometry, **options)
    levels = []
    for index in range(options["levels"]):
        data = texels(rng, texture.surface.shape(index), format)
        texture.surface.upload(data, index)
        levels.append(canonical(data, geometry, format))
    names = ("filter", "address", "normalized", "mip_filter", "mip_bias", "min_level", "max_level", "border", "srgb", "seamless")
    model = Model(
        levels, format.order, kind, DIMS[geometry], cube="cube" in geometry,
        samples=sizes["samples"] if geometry.endswith("ms") else 1, line=geometry == "1d",
        **{name: options[name] for name in names},
    )  # fmt: skip
    return Case(texture, model, {"format": format.name, "geometry": geometry, "shape": shape, **options})


def canonical(data: np.ndarray, geometry: str, format: SurfaceFormat) -> np.ndarray:
    """Texels as [layer, z, y, x, component]."""
    if format.components == 1:
        data = data[..., None]
    *outer, width, components = data.shape
    if geometry in ("1d", "a1d"):
        return data.reshape(outer[0] if geometry == "a1d" else 1, 1, 1, width, components)
    if geometry == "3d":
        return data.reshape(1, *data.shape)
    return data.reshape(-1, 1, *data.shape[-3:])


def coordinates(rng: np.random.Generator, case: Case, axis: int) -> np.ndarray:
    """Coordinates inside and outside, on texel edges and centres, and special values."""
    extent = case.model.levels[0].shape[3 - axis]
    values = rng.uniform(-1.5, 2.5, LANES) * extent
    values[:8] = rng.integers(-2 * extent, 3 * extent + 1, 8)  # edges
    values[8:16] = rng.integers(-2 * extent, 3 * extent + 1, 8) + 0.5  # centres
    if case.model.normalized:
        values /= extent
    result = values.astype(np.float32)
    result[16:20] = rng.choice(np.array([-0.0, 1.0, -1.0, 1e-30, -1e-30, 3.0, 1e9, -1e9], np.float32), 4)
    return result


def same(got: int, want: int, floats: bool) -> bool:
    """Equal, or neighbours as f32: the runtime's double sum may round the other way."""
    if not floats or got == want:
        return got == want
    a, b = (np.uint32(bits).view(np.float32) for bits in (got, want))
    return bool(abs(float(a) - float(b)) <= np.spacing(max(abs(a), abs(b))))
