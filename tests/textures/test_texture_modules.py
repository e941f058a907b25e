"""Modules that use textures: compiled ones, both texturing modes, variables bound by name, samplers of their own."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault, InputError, UnsupportedError
from tests.support.places import CORPUS
from tests.support.texture_model import Model

LANES = 32


def real(bits: list[int]) -> np.ndarray:
    return np.array(bits, np.uint32).view(np.float32)


def test_compiled_module() -> None:
    """``textures.cu``: every kind of fetch that CUDA has."""
    device, rng = ptxemu.default_device(), np.random.default_rng(5)
    shapes = {"t1": (16,), "t2": (8, 8, 4), "t3": (4, 4, 4), "tl": (3, 16), "tc": (6, 4, 4), "lin": (40,)}
    geometries = {"t1": "1d", "t2": "2d", "t3": "3d", "tl": "a1d", "tc": "cube", "lin": "1d"}
    data = {name: rng.random(shape, np.float32) for name, shape in shapes.items()}
    mips = [rng.random((16 >> level, 16 >> level), np.float32) for level in range(3)]
    options = {"filter": "linear", "normalized": True}
    made = {name: device.texture(data[name], geometry=geometries[name], **options) for name in shapes if name != "lin"}
    made["tm"] = device.texture(mips, mip_filter="linear", **options)
    made["lin"] = device.texture(device.to_device(data["lin"]), geometry="1d")
    o, f, s = np.zeros((64, 4), np.float32), np.zeros((8, LANES), np.float32), np.zeros((2, LANES), np.int32)
    module = ptxemu.load(CORPUS / "textures.ptx")
    order = ("t1", "t2", "t3", "tl", "tc", "tm", "lin")
    module["texs"][1, LANES](*(made[name] for name in order), o, f, s)

    shared = {"filter": "linear", "normalized": True, "order": "R", "kind": "FLOAT"}
    t1 = Model([data["t1"].reshape(1, 1, 1, -1, 1)], dims=1, **shared)  # type: ignore[arg-type]
    t2 = Model([data["t2"].reshape(1, 1, 8, 8, 4)], dims=2, **{**shared, "order": "RGBA"})  # type: ignore[arg-type]
    t3 = Model([data["t3"].reshape(1, 4, 4, 4, 1)], dims=3, **shared)  # type: ignore[arg-type]
    tl = Model([data["tl"].reshape(3, 1, 1, 16, 1)], dims=2, **shared)  # type: ignore[arg-type]
    tc = Model([data["tc"].reshape(6, 1, 4, 4, 1)], dims=2, cube=True, **shared)  # type: ignore[arg-type]
    tm = Model([level.reshape(1, 1, *level.shape, 1) for level in mips], dims=2, mip_filter="linear", **shared)  # type: ignore[arg-type]
    for i in range(LANES):
        u = i / 32
        fetches = [
            t1.fetch([u]), t3.fetch([u, u, u]), tl.fetch([u, 0.5], 1), tl.fetch([u, u], 2), tc.fetch([u, 1 - u, 0.5]),
            tm.fetch([u, u], lod=1.5), tm.fetch([u, u], along=((np.float32(0.1), 0), (0, np.float32(0.1)))),
        ]  # fmt: skip
        np.testing.assert_array_max_ulp(f[:7, i], real([fetch[0] for fetch in fetches]), 1)
        np.testing.assert_array_max_ulp(o[i], real(t2.fetch([u, 1 - u])), 1)
        np.testing.assert_array_equal(o[32 + i], real(t2.gather([u, u], 2)))
        assert s[1, i] == sum(bits & 255 for bits in t2.fetch([u, u]))
    np.testing.assert_array_equal(f[7], data["lin"][:LANES])
    np.testing.assert_array_equal(s[0], data["lin"][:LANES].view(np.int32))


def test_named_variables() -> None:
    """``hand_surfref.ptx``: a surface, a texture and an initialised sampler by name, in independent mode."""
    device = ptxemu.default_device()
    module = ptxemu.load(CORPUS / "hand_surfref.ptx")
    texels = np.arange(16 * 8, dtype=np.uint32).reshape(16, 8)
    surface = device.surface(texels, format="R32_UINT")
    line = device.surface(np.full(8, 99, np.uint32), format="R32_UINT", geometry="1d")
    picture = np.random.default_rng(1).random((12, 10), np.float32)
    module.bind("gs", surface)
    module.bind("gt", device.texture(picture))
    out = np.zeros(3, np.uint32)
    module["named_surf"][1, 1](out, line, 4)
    value = texels[8, 1] + 1
    texels[8, 1] = 2 * value
    np.testing.assert_array_equal(surface.copy_to_host(), texels)
    np.testing.assert_array_equal(line.copy_to_host(), [*[99] * 4, value, 99, 99, 99])
    assert out[:2].tolist() == [10, 16]
    assert out[2:].view(np.float32) == picture[8, 4]


INDEPENDENT = """.version 8.8
.target sm_90, texmode_independent
.address_size 64
.global .texref t;
.global .texref ts[2];
.global .samplerref s;
.global .samplerref fixed = { addr_mode_0 = mirror, filter_mode = linear, force_unnormalized_coords = 0 };
.global .samplerref raw = { addr_mode_0 = clamp_to_border, filter_mode = nearest, force_unnormalized_coords = 1 };
.global .u64 stored[2] = { t, s };
.visible .entry k(.param .u64 x, .param .u64 out, .param .samplerref given)
{
  .reg .f32 %x, %v<4>; .reg .b32 %i, %q; .reg .b64 %p, %at, %h, %g;
  mov.u32 %i, %tid.x; mul.wide.u32 %at, %i, 4;
  ld.param.u64 %p, [x]; add.u64 %p, %p, %at; ld.global.f32 %x, [%p];
  ld.param.u64 %p, [out]; add.u64 %p, %p, %at;
  tex.1d.v4.f32.f32 {%v0, _, _, _}, [t, s, {%x}]; st.global.f32 [%p], %v0;
  tex.1d.v4.f32.f32 {%v0, _, _, _}, [t, fixed, {%x}]; st.global.f32 [%p+32], %v0;
  tex.1d.v4.f32.f32 {%v0, _, _, _}, [t, raw, {%x}]; st.global.f32 [%p+64], %v0;
  tex.1d.v4.f32.f32 {%v0, _, _, _}, [t, given, {%x}]; st.global.f32 [%p+96], %v0;
  mov.u64 %h, ts; add.u64 %h, %h, 8; ld.global.u64 %g, [stored+8];
  tex.1d.v4.f32.f32 {%v0, _, _, _}, [%h, %g, {%x}]; st.global.f32 [%p+128], %v0;
  txq.filter_mode.b32 %q, [fixed]; st.global.b32 [%p+160], %q;
  txq.addr_mode_0.b32 %q, [fixed]; st.global.b32 [%p+192], %q;
  txq.force_unnormalized_coords.b32 %q, [raw]; st.global.b32 [%p+224], %q;
  ret;
}
"""


def test_samplers_of_their_own() -> None:
    device = ptxemu.default_device()
    module = ptxemu.loads(INDEPENDENT)
    data = np.array([1, 2, 4, 8], np.float32)
    module.bind("t", device.texture(data, geometry="1d", normalized=True))
    module.bind("ts", device.texture(-data, geometry="1d", normalized=True), 1)
    module.bind("s", device.sampler(address="wrap"))
    x = np.array([0.3, 1.25, -0.4, 0.9, 0.5, 2.0, 3.5, -1.0], np.float32)
    out = np.zeros((8, 8), np.float32)
    module["k"][1, 8](x, out, device.sampler(filter="linear", address="clamp"))

    def expected(normalized: bool, **options: str) -> np.ndarray:
        address = (options.pop("address"),) * 3
        model = Model([data.reshape(1, 1, 1, 4, 1)], "R", "FLOAT", 1, address=address, normalized=normalized, **options)
        return real([model.fetch([value])[0] for value in x])

    np.testing.assert_array_equal(out[0], expected(True, address="wrap"))
    np.testing.assert_array_equal(out[1], expected(True, address="mirror", filter="linear"))
    np.testing.assert_array_equal(out[2], expected(False, address="border"))
    np.testing.assert_array_equal(out[3], expected(True, address="clamp", filter="linear"))
    np.testing.assert_array_equal(out[4], -expected(True, address="wrap"))
    assert out[5:, 0].view(np.uint32).tolist() == [1, 3, 1]


def test_unbound_and_misbound_variables() -> None:
    device = ptxemu.default_device()
    module = ptxemu.loads(INDEPENDENT)
    x, out, sampler = np.zeros(8, np.float32), np.zeros((8, 8), np.float32), device.sampler()
    texture = device.texture(np.zeros(4, np.float32), geometry="1d")
    with pytest.raises(Fault, match="unbound texture or sampler"):
        module["k"][1, 8](x, out, sampler)
    module.bind("t", texture)
    with pytest.raises(Fault, match="unbound texture or sampler"):
        module["k"][1, 8](x, out, sampler)
    for name, item, message in (
        ("s", texture, "open sampler"), ("t", sampler, "open texture"), ("nothing", texture, "no surface, texture or sampler"),
        ("t", device.surface((4,), format="R8_UINT", geometry="1d"), "open texture"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            module.bind(name, item)
    with pytest.raises(InputError, match="no element 2"):
        module.bind("ts", texture, 2)
    with pytest.raises(InputError, match="cannot hold a texture handle"):
        module["k"][1, 8](x, out, texture)
    texture.close()
    with pytest.raises(InputError, match="open texture"):
        module.bind("t", texture)


def test_what_cannot_be_defined_is_unsupported() -> None:
    head = ".version 8.8\n.target sm_90\n.address_size 64\n.global .texref t;\n.visible .entry k()\n{\n"
    for text in (
        "tex.grad.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [t, {%f4}], {%f4}, {%f5}, %f6;",
        "tex.grad.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [t, {%r0}], {%f4}, {%f5};",
    ):
        with pytest.raises(UnsupportedError, match=r":7: instruction 't.* is not supported"):
            ptxemu.loads(f"{head} .reg .f32 %f<8>; .reg .b32 %r<4>; {text}\nret; }}")["k"][1, 1]()
    clamped = head.replace("texref t;", "samplerref t = { addr_mode_0 = clamp_ogl };").replace(
        "sm_90", "sm_90, texmode_independent"
    )
    with pytest.raises(UnsupportedError, match="clamp_ogl"):
        ptxemu.loads(clamped + "ret; }")["k"][1, 1]()
