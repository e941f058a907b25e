"""Bad handles and coordinates of surfaces and textures in every form of access, and descriptors that no device has."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ptxemu
from tests.support.hostile_tools import outcomes
from tests.support.kernel_tools import kernel

HANDLES = [0, 1, 0xFFFFF, 1 << 32, (1 << 64) - 1, 0x100000001, 0xDEADBEEF12345678]
VECTORS = {"": "%r1", ".v2": "{%r1, %r2}", ".v4": "{%r1, %r2, %r3, %r4}"}
GEOMETRIES = {"1d": "{%r5}", "2d": "{%r5, %r5}", "3d": "{%r5, %r5, %r5, %r5}", "a1d": "{%r5, %r5}", "a2d": "{%r5, %r5, %r5, %r5}"}


def accesses() -> list[str]:
    forms = []
    for (geometry, at), (vector, data), clamp in itertools.product(GEOMETRIES.items(), VECTORS.items(), ("trap", "zero")):
        forms += [
            f"sust.p.{geometry}{vector}.b32.{clamp} [%rd1, {at}], {data};",
            f"sust.b.{geometry}{vector}.b32.{clamp} [%rd1, {at}], {data};",
            f"suld.b.{geometry}{vector}.b32.{clamp} {data}, [%rd1, {at}];",
        ]
        if not vector and geometry[0] != "a":
            forms += [
                f"sured.b.add.{geometry}.u32.{clamp} [%rd1, {at}], %r1;",
                f"sured.p.add.{geometry}.b32.{clamp} [%rd1, {at}], %r1;",
            ]
    return forms


def test_bad_handles_in_every_surface_instruction():
    body = "ld.param.u64 %rd1, [s]; ld.param.u32 %r10, [which]; mov.u32 %r5, 0;"
    body += "".join(f"mov.u32 %r{i}, 1;" for i in range(1, 5))
    forms = accesses()
    for index, form in enumerate(forms):
        body += f"\nsetp.ne.u32 %p1, %r10, {index}; @%p1 bra L{index}; {form}\nL{index}:"
    program = kernel(body + " ret;", ".param .u64 s, .param .u32 which")
    tries = [(HANDLES[index % len(HANDLES)], index) for index in range(len(forms))]
    tries += [(handle, 0) for handle in HANDLES]
    for said, (handle, index) in zip(outcomes(program, tries), tries, strict=True):
        assert said[0].startswith("Fault: invalid surface handle"), (hex(handle), forms[index])


@pytest.mark.parametrize("instruction", ["sust.p.2d.v4.b32.trap [image, {%r1, %r1}], {%r1, %r1, %r1, %r1};"])
def test_unbound_surfaces(instruction):
    program = kernel(f"mov.u32 %r1, 0; {instruction} ret;", "", ".global .surfref image;\n")
    assert outcomes(program, [[]])[0][0].startswith("Fault: unbound surface")


LEVELS = kernel(
    """
  ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [out]; mov.f32 %f1, 0f3F000000; ld.param.f32 %f5, [level];
  tex.level.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f1}], %f5;
  st.global.f32 [%rd2], %f1; ret;""",
    ".param .u64 t, .param .u64 out, .param .f32 level",
)


@pytest.mark.parametrize("filters", list(itertools.product(("point", "linear"), repeat=2)))
@pytest.mark.parametrize("bounds", [(0, -3), (-3, -1), (0, -1024), (5, -5), (1024, -1024), (0, 1024), (1024, 1024), (0, 0.25)])
def test_levels_stay_within_the_texture(bounds, filters):
    """A texture of one value for each level shows which ones were read: those that there are; of the bounds, the least wins."""
    least, most = bounds
    device = ptxemu.Device(memory="16 MiB", workers=1)
    texture = device.texture(
        [np.full((16 >> level, 16 >> level), level, np.float32) for level in range(3)],
        min_level=least, max_level=most, filter=filters[0], mip_filter=filters[1], normalized=True,
    )  # fmt: skip
    launcher = ptxemu.loads(LEVELS, device=device)["k"][1, 32]
    for level in (-1e30, -1.0, 0.0, 1.0, 2.0, 77.0, 1e30, float("inf"), float("-inf"), float("nan")):
        out = np.zeros(1, np.float32)
        launcher(texture, out, level)
        wanted = min(max(min(0.0 if level != level else level, most), least, 0), 2)
        assert out[0] == (wanted if filters[1] == "linear" else np.floor(wanted + 0.5)), level


@pytest.mark.parametrize(
    "geometry", ["1d", "1d_buffer", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms", "none", "any"]
)
@pytest.mark.parametrize("stored", ["1d", "2d", "3d", "a2d", "cube"])
def test_a_texture_of_a_surface_has_its_geometry(stored, geometry):
    shapes = {"1d": (8,), "2d": (8, 8), "3d": (2, 8, 8), "a2d": (3, 8, 8), "cube": (6, 8, 8)}
    device = ptxemu.Device(memory="16 MiB", workers=1)
    surface = device.surface(shapes[stored], format="R32_FLOAT", geometry=stored)
    if geometry == stored or (stored == "a2d" and geometry == "a2dms"):
        device.texture(surface, geometry=geometry)
        return
    with pytest.raises(ptxemu.InputError):
        device.texture(surface, geometry=geometry)


@pytest.mark.parametrize(
    "options",
    [
        {"pitch": -1}, {"pitch": 1 << 64}, {"pitch": (1 << 64) - 16}, {"pitch": 1 << 62}, {"pitch": 16.5}, {"pitch": 1},
        {"slice_stride": (1 << 64) - 16}, {"slice_stride": 1}, {"layer_stride": (1 << 64) - 16}, {"layer_stride": 1},
        {"levels": 0}, {"levels": -1}, {"levels": 17}, {"levels": 1 << 32}, {"levels": 2.5}, {"pitch_align": 3},
        {"pitch_align": 1 << 31}, {"layout": "linear"}, {"layout": "block_linear", "block_height_log2": 33},
        {"layout": "block_linear", "block_depth_log2": 1 << 31}, {"geometry": "any"}, {"geometry": "cube"},
    ],
)  # fmt: skip
def test_strides_and_levels_that_no_surface_has(options):
    device = ptxemu.Device(memory="16 MiB", workers=1)
    with pytest.raises(ptxemu.InputError):
        device.surface((8, 8), format="R32_FLOAT", **options)
    with pytest.raises(ptxemu.InputError):
        device.texture((8, 8), format="R32_FLOAT", **options)


@pytest.mark.parametrize("shape", [(1 << 31, 1 << 31), (1 << 32, 1), (1, 1 << 32), (0, 8), (-1, 8), ((1 << 63), 8)])
def test_extents_that_no_surface_has(shape):
    device = ptxemu.Device(memory="16 MiB", workers=1)
    for make in (device.surface, device.texture):
        with pytest.raises(ptxemu.InputError):
            make(shape, format="R32G32B32A32_FLOAT")


@pytest.mark.parametrize("name", ["mip_bias", "min_level", "max_level"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e30, 1025.0, "3", None, 10**400])
def test_numbers_that_no_sampler_has(name, value):
    device = ptxemu.Device(memory="16 MiB", workers=1)
    with pytest.raises(ptxemu.InputError, match=name):
        device.sampler(**{name: value})
