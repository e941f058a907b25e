"""Texture fetches against the model of the CUDA guide's formulas, over formats, modes and geometries."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault, InputError
from tests.support.texture_cases import ADDRESSES, DIMS, LANES, Case, coordinates, instruction, random_case, run, same

FLAT = ("1d", "2d", "3d", "a1d", "a2d")
CUBES = ("cube", "acube")
CASES = 6


def rng_of(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def check(case: Case, got: np.ndarray, want: list[list[int]], text: str) -> None:
    for lane in range(LANES):
        right = all(same(int(g), w, case.model.reads_floats) for g, w in zip(got[lane], want[lane]))
        hexed = [[f"{int(v):08x}" for v in row] for row in (got[lane], want[lane])]
        assert right, f"{text} lane {lane}: {hexed[0]}, not {hexed[1]}; {case.options}"


def rows_of(rng: np.random.Generator, case: Case, geometry: str) -> dict[str, np.ndarray]:
    if "cube" in geometry:
        values = rng.standard_normal((3, LANES)).astype(np.float32)
        values[:, :4] = rng.integers(-2, 3, (3, 4))
        rows = dict(zip("xyz", values))
    else:
        rows = {name: coordinates(rng, case, axis) for axis, name in enumerate("xyz"[: DIMS[geometry]])}
    rows["l"] = rng.integers(0, 6, LANES).astype(np.uint32)
    rows["l"][0] = 0xFFFFFFFF
    rows["d"] = (rng.uniform(-1, 4, LANES) * 4).round().astype(np.float32) / 4
    for name in ("g0", "g1", "g2", "h0", "h1", "h2"):
        scale = case.model.levels[0].shape[3] if case.model.normalized else 1
        rows[name] = (rng.standard_normal(LANES) * 3 / scale).astype(np.float32)
    for name in ("e0", "e1", "e2"):
        rows[name] = rng.integers(-8, 8, LANES).astype(np.int32)
    return rows


def axes_of(geometry: str) -> int:
    return 3 if "cube" in geometry else DIMS[geometry]


FORMS = [(geometry, form) for geometry in FLAT for form in ("plain", "base", "level", "grad", "plain+offset", "level+offset")]
FORMS += [(geometry, form) for geometry in CUBES for form in ("plain", "level", "grad")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("geometry", "form"), FORMS)
def test_float_coordinates(geometry: str, form: str) -> None:
    rng = rng_of(geometry, form)
    text = instruction(geometry, form)
    for _ in range(CASES):
        case = random_case(rng, geometry)
        rows = rows_of(rng, case, geometry)
        axes = axes_of(geometry)
        if "offset" in form:  # positions have the precision of f64, which the sum would exceed
            rows |= {name: np.where(abs(rows[name]) < 1e-20, np.float32(0), rows[name]) for name in "xyz"[:axes]}
        want = []
        for lane in range(LANES):
            gradients = [[float(rows[f"{g}{axis}"][lane]) for axis in range(axes)] for g in "gh"]
            want.append(
                case.model.fetch(
                    [float(rows[name][lane]) for name in "xyz"[:axes]],
                    int(rows["l"][lane]) if geometry[0] == "a" else 0,
                    float(rows["d"][lane]) if "level" in form else None,
                    gradients if "grad" in form else None,
                    [int(rows[f"e{axis}"][lane]) for axis in range(3)] if "offset" in form else (0, 0, 0),
                )
            )
        check(case, run(text, case.texture, rows), want, text)


@pytest.mark.parametrize("geometry", [*FLAT, "2dms", "a2dms"])
@pytest.mark.parametrize("form", ["plain", "level", "plain+offset"])
def test_integer_coordinates(geometry: str, form: str) -> None:
    if "ms" in geometry and form == "level":
        return
    rng = rng_of(geometry, form)
    text = instruction(geometry, form, "s32")
    for _ in range(CASES):
        case = random_case(rng, geometry)
        shape = case.model.levels[0].shape
        rows = {name: rng.integers(-2, shape[3 - axis] + 2, LANES).astype(np.int32) for axis, name in enumerate("xyz")}
        rows["x"][:2] = (-(2**31), 2**31 - 1)
        rows |= {name: rng.integers(0, 5, LANES).astype(np.uint32) for name in "ls"}
        rows["d"] = rng.integers(-1, 5, LANES).astype(np.int32)
        rows |= {f"e{axis}": rng.integers(-3, 4, LANES).astype(np.int32) for axis in range(3)}
        rows["e0"][:2] = 0
        want = [
            case.model.fetch_texel(
                [int(rows[name][lane]) for name in "xyz"],
                int(rows["l"][lane]) if geometry[0] == "a" else 0,
                int(rows["s"][lane]),
                int(rows["d"][lane]) if form == "level" else None,
                [int(rows[f"e{axis}"][lane]) for axis in range(3)] if "offset" in form else (0, 0, 0),
            )
            for lane in range(LANES)
        ]
        check(case, run(text, case.texture, rows), want, text)


@pytest.mark.parametrize("geometry", ["2d", "a2d", "cube", "acube"])
@pytest.mark.parametrize("component", range(4))
def test_gather(geometry: str, component: int) -> None:
    rng = rng_of(geometry, component)
    offset = "cube" not in geometry and component % 2 == 1
    tuple_ = {"2d": "{%x, %y}", "a2d": "{%l, %x, %y, %y}", "cube": "{%x, %y, %z, %z}", "acube": "{%l, %x, %y, %z}"}[geometry]
    text = f"tld4.{'rgba'[component]}.{geometry}.v4.u32.f32 {{%o0, %o1, %o2, %o3}}, [%t, {tuple_}]"
    text += ", {%e0, %e1};" if offset else ";"
    for _ in range(4):
        case = random_case(rng, geometry)
        rows = rows_of(rng, case, geometry)
        want = [
            case.model.gather(
                [float(rows[name][lane]) for name in "xyz"[: axes_of(geometry)]],
                component,
                int(rows["l"][lane]) if geometry[0] == "a" else 0,
                [int(rows[f"e{axis}"][lane]) for axis in range(2)] if offset else (0, 0),
            )
            for lane in range(LANES)
        ]
        check(case, run(text, case.texture, rows), want, text)


ROW_FORMATS = (
    "R32_FLOAT", "R32G32B32A32_FLOAT", "R8_UNORM", "R8G8_UNORM", "R8G8B8A8_UNORM", "B8G8R8A8_UNORM", "R32G32_UINT",
    "R8G8B8A8_UINT", "R16_SINT", "R16G16B16A16_FLOAT",
)  # fmt: skip
GUARDED = """{{ .reg .pred %p; setp.ne.u32 %p, %s, 0; mov.b32 %o0, 7; mov.b32 %o1, 7; mov.b32 %o2, 7; mov.b32 %o3, 7;
  @%p {} }}"""


def compare(case: Case, other: Any, text: str, rows: dict[str, np.ndarray], want: list[list[int]]) -> None:
    """Both textures give the same bits, in lanes that are on those of the model."""
    got = run(GUARDED.format(text), case.texture, rows)
    np.testing.assert_array_equal(got, run(GUARDED.format(text), other, rows), err_msg=str(case.options))
    check(case, got, [w if on else [7] * 4 for w, on in zip(want, rows["s"])], str(case.options))


def stored_otherwise(case: Case) -> Any:
    fixed = {key: value for key, value in case.options.items() if key not in ("layout", "shape")}
    return ptxemu.default_device().texture(case.texture.copy_to_host(), layout="block_linear", **fixed)


@pytest.mark.parametrize("geometry", ["1d", "2d", "a2d"])
@pytest.mark.parametrize("format", ROW_FORMATS)
def test_levels_that_are_stored_row_by_row(format: str, geometry: str) -> None:
    """They are fetched by code of their own; block-linear textures are not, and give the same bits."""
    rng = rng_of("rows", format, geometry)
    axes, text = "xyz"[: DIMS[geometry]], instruction(geometry, "plain")
    filters = ("point",) if "INT" in format else ("point", "linear")
    for filter, address, normalized in itertools.product(filters, ADDRESSES, (False, True)):
        options = {"format": format, "filter": filter, "mip_filter": "point", "levels": 1, "read_mode": None}
        options |= {"normalized": normalized, "address": [address, str(rng.choice(ADDRESSES))], "layout": "pitch"}
        case = random_case(rng, geometry, width=int(rng.choice([*range(1, 60), 8192, 8193])), **options)
        other, extent = stored_otherwise(case), case.model.levels[0].shape[3]
        for number in range(3):
            rows = {name: coordinates(rng, case, axis) for axis, name in enumerate(axes)}
            rows |= {"s": rng.integers(0, 3, LANES, np.uint32), "l": rng.integers(0, 5, LANES, np.uint32)}
            if normalized or number:  # neighbouring lanes mostly read neighbouring texels
                rows["x"] = (np.arange(LANES) / (extent if normalized else 1) + 0.3).astype(np.float32)
                rows |= {name: np.repeat(rows[name][::16], 16) for name in axes[1:]}
            places = [[float(rows[name][lane]) for name in axes] for lane in range(LANES)]
            layers = [int(layer) if geometry == "a2d" else 0 for layer in rows["l"]]
            want = [case.model.fetch(place, layer) for place, layer in zip(places, layers)]
            compare(case, other, text, rows, want)


@pytest.mark.parametrize("geometry", ["1d", "2d", "a2d"])
@pytest.mark.parametrize("format", ROW_FORMATS)
def test_texels_of_rows_by_integers(format: str, geometry: str) -> None:
    """Likewise where coordinates are counted; neighbours may lie on both sides of an edge."""
    rng = rng_of("counted", format, geometry)
    axes, text = "xyz"[: DIMS[geometry]], instruction(geometry, "plain", "s32")
    for _ in range(CASES):
        options = {"format": format, "levels": 1, "layout": "pitch", "read_mode": None, "mip_filter": "point", "filter": "point"}
        case = random_case(rng, geometry, width=int(rng.integers(1, 60)), **options)
        shape = case.model.levels[0].shape
        rows = {name: rng.integers(-2, shape[3 - axis] + 2, LANES).astype(np.int32) for axis, name in enumerate(axes)}
        rows |= {"s": rng.integers(0, 3, LANES, np.uint32), "l": rng.integers(0, 5, LANES, np.uint32)}
        if rng.integers(2):
            rows["x"] = (np.arange(LANES) + rng.integers(-4, 20)).astype(np.int32)
        rows["x"][:2] = (-(2**31), 2**31 - 1)
        layers = [int(layer) if geometry == "a2d" else 0 for layer in rows["l"]]
        want = [case.model.fetch_texel([int(rows[name][lane]) for name in axes], layers[lane]) for lane in range(LANES)]
        compare(case, stored_otherwise(case), text, rows, want)


# ---------------------------------------------------------------- results, corner cases


def simple(text: str, texture: object, **rows: list[float] | list[int]) -> np.ndarray:
    """Results of an instruction whose rows are padded with their last value."""
    full = {}
    for name, values in rows.items():
        dtype = np.float32 if isinstance(values[0], float) else np.int32
        full[name] = np.array(values + [values[-1]] * (LANES - len(values)), dtype)
    return run(text, texture, full)


def test_half_results() -> None:
    device = ptxemu.default_device()
    data = np.array([[1.5, -2.0, 70000.0, 1e-6]], np.float32)
    texture = device.texture(data, geometry="1d", format="R32G32B32A32_FLOAT")
    text = """{ .reg .b16 %h<4>; tex.1d.v4.f16.s32 {%h0, %h1, %h2, %h3}, [%t, {%x}];
      cvt.u32.u16 %o0, %h0; cvt.u32.u16 %o1, %h1; cvt.u32.u16 %o2, %h2; cvt.u32.u16 %o3, %h3; }"""
    with np.errstate(over="ignore"):
        want = data[0].astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(simple(text, texture, x=[0])[0], want)
    text = "{ tex.1d.v2.f16x2.f32 {%o0, %o1}, [%t, {%x}]; mov.b32 %o2, 0; mov.b32 %o3, 0; }"
    np.testing.assert_array_equal(simple(text, texture, x=[0.5])[0][:2], want.view(np.uint32))
    integers = device.texture((4,), geometry="1d", format="R8_UINT")
    with pytest.raises(Fault, match="texture of integers read as floats"):
        simple(text, integers, x=[0.5])


def test_dead_components_and_guards() -> None:
    texture = ptxemu.default_device().texture(np.arange(16, dtype=np.uint32).reshape(4, 4), geometry="1d")
    text = """{ .reg .pred %p, %q; setp.lt.s32 %p, %x, 2; mov.b32 %o0, 7; mov.b32 %o2, 8; mov.b32 %o1, 9; mov.b32 %o3, 0;
      @%p tex.1d.v4.u32.s32 {%o0, _, %o2, _}|%q, [%t, {%x}]; @%q add.u32 %o3, %o3, 1; }"""
    got = simple(text.replace("_}|", "%o1}|", 1).replace("%o1}", "_}"), texture, x=[0, 1, 2])
    np.testing.assert_array_equal(got[:3, :3], [[0, 9, 2], [4, 9, 6], [7, 9, 8]])


def test_filtering_of_special_texels() -> None:
    """A texel of weight zero has no part in the sum, so that an infinite one does not make its neighbours NaN."""
    data = np.array([np.inf, 1.0, np.nan, 2.0], np.float32)
    texture = ptxemu.default_device().texture(data, geometry="1d", filter="linear")
    got = simple(instruction("1d", "plain", result="f32"), texture, x=[1.5, 3.5, 1.0, 2.0])[:4, 0].view(np.float32)
    np.testing.assert_array_equal(got, [1.0, 2.0, np.inf, np.nan])


def test_constant_image_stays_constant() -> None:
    """Fractions have 8 bits and weights add up to one exactly."""
    rng = rng_of("constant")
    value = np.float32(0.1)
    texture = ptxemu.default_device().texture(
        np.full((5, 6, 7), value), geometry="3d", filter="linear", address="mirror", normalized=True
    )
    got = run(instruction("3d", "plain", result="f32"), texture, {k: rng.random(LANES, np.float32) * 9 for k in "xyz"})
    np.testing.assert_array_equal(got[:, 0].view(np.float32), value)


def test_nan_and_infinite_coordinates() -> None:
    data = np.arange(1, 5, dtype=np.float32)
    nan, inf = float("nan"), float("inf")
    for address, want in (("clamp", [1, 4, 1]), ("border", [1, 0, 0]), ("wrap", [1, 1, 1]), ("mirror", [1, 1, 1])):
        texture = ptxemu.default_device().texture(data, geometry="1d", address=address, normalized=True)
        got = simple(instruction("1d", "plain", result="f32"), texture, x=[nan, inf, -inf])[:3, 0].view(np.float32)
        np.testing.assert_array_equal(got, want, err_msg=address)


def test_lanes_with_different_textures() -> None:
    """Handles are data: each lane may have its own, and a bad one faults in its lane."""
    device = ptxemu.default_device()
    textures = [device.texture(np.full(4, value, np.uint32), geometry="1d") for value in (3, 5, 8)]
    text = """{ .reg .b64 %h; shl.b32 %d, %i, 3; cvt.u64.u32 %h, %d; add.u64 %t, %t, %h; ld.global.u64 %h, [%t];
      tex.1d.v4.u32.s32 {%o0, %o1, %o2, %o3}, [%h, {%x}]; }"""
    handles = np.array([textures[lane % 3].handle for lane in range(LANES)], np.uint64)
    got = simple(text, handles, x=[0], d=[0])
    np.testing.assert_array_equal(got[:, 0], [(3, 5, 8)[lane % 3] for lane in range(LANES)])
    surface = device.surface((4,), format="R32_UINT", geometry="1d")
    for bad in (
        0,
        1,
        2**64 - 1,
        textures[0].handle + (1 << 20),
        textures[0].handle ^ 1 << 40,
        surface.handle,
        int(device.sampler()),
    ):
        handles[7] = bad
        with pytest.raises(Fault, match="invalid texture or sampler handle") as caught:
            simple(text, handles, x=[0], d=[0])
        assert caught.value.record["lane"] == 7
    textures[1].close()
    handles[7] = textures[0].handle
    with pytest.raises(Fault, match="invalid texture"):
        simple(text, handles, x=[0], d=[0])


def test_texture_and_surface_of_one_array() -> None:
    device = ptxemu.default_device()
    data = np.arange(48, dtype=np.uint8).reshape(3, 4, 4)
    surface = device.surface(data, format="R8G8B8A8_UNORM", layout="block_linear")
    texture = device.texture(surface, filter="linear")
    got = simple(instruction("2d", "plain", result="f32"), texture, x=[1.5], y=[2.5])[0].view(np.float32)
    np.testing.assert_array_equal(got, data[2, 1] / np.float32(255))
    surface.copy_from_host(255 - data)
    got = simple(instruction("2d", "plain", result="f32"), texture, x=[1.5], y=[2.5])[0].view(np.float32)
    np.testing.assert_array_equal(got, (255 - data[2, 1]) / np.float32(255))


def test_buffers_as_textures() -> None:
    """tex1Dfetch over linear memory, and a pitched picture inside a buffer."""
    device = ptxemu.default_device()
    buffer = device.to_device(np.arange(100, dtype=np.float32))
    texture = device.texture(buffer, geometry="1d")
    got = simple(instruction("1d", "plain", "s32", "f32"), texture, x=[0, 99, 100, -1])[:4, 0].view(np.float32)
    np.testing.assert_array_equal(got, [0, 99, 0, 0])
    rows = device.to_device(np.arange(64, dtype=np.uint16).reshape(4, 16))
    texture = device.texture(rows, geometry="2d", pitch=32)
    np.testing.assert_array_equal(simple(instruction("2d", "plain", "s32"), texture, x=[5], y=[3])[0, 0], 53)
    with pytest.raises(InputError, match="smaller than the surface"):
        device.texture(rows, geometry="2d", pitch=64)


def test_geometry_must_fit() -> None:
    device = ptxemu.default_device()
    flat = device.texture(np.arange(4, dtype=np.uint32), geometry="1d")
    got = simple(instruction("a2d", "plain", "s32"), flat, x=[2, 2], y=[0, 0], l=[0, 3])  # extents of one are no hindrance
    assert got[0, 0] == 2 and got[1, 0] == 0  # there is no layer 3
    for geometry, other in (("1d", "2d"), ("2d", "a2d"), ("cube", "2d"), ("2d", "cube"), ("acube", "cube")):
        texture = device.texture((6, 2, 2)[-3 if other != "2d" else -2 :], format="R32_FLOAT", geometry=other)
        with pytest.raises(Fault, match="texture geometry mismatch"):
            simple(instruction(geometry, "plain"), texture, x=[0.5], y=[0.5], z=[0.5], l=[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter": "cubic"}, "no filter is named 'cubic'"),
        ({"address": "repeat"}, "no address mode is named 'repeat'"),
        ({"address": ["wrap"] * 4}, "one to three modes"),
        ({"border": [1.0]}, "four numbers"),
        ({"filter": "linear"}, "linear filtering needs texels that read as floats"),
        ({"mip_filter": "linear"}, "linear filtering needs texels that read as floats"),
        ({"read_mode": "normalized_float"}, "only 8- and 16-bit integers"),
        ({"read_mode": "half"}, "no read mode is named 'half'"),
        ({"srgb": True}, "sRGB"),
        ({"mip_bias": float("nan")}, "mip_bias"),
        ({"max_level": float("inf")}, "max_level"),
        ({"border": [1, 0, 0, 0]}, "border colour"),
        ({"geometry": "4d"}, "no texture geometry is named '4d'"),
        ({"geometry": "3d"}, "has the axes depth, height, width"),
        ({"max_anisotropy": 17}, "max_anisotropy is above 16"),
        ({"max_anisotropy": 1.5}, "max_anisotropy must be a whole number"),
        ({"nonsense": 1}, "nonsense"),
        ({"levels": 9}, "too many mip levels"),
    ],
)
def test_bad_descriptions(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ptxemu.default_device().texture(np.zeros((4, 4), np.uint32), **{"geometry": "2d", **options})  # type: ignore[arg-type]


def test_anisotropy_is_unsupported() -> None:
    """Fetches that do not depend on it run, as on an H200: without a level, of one level, gathers, integer coordinates."""
    device = ptxemu.default_device()
    levels = [np.arange(16, dtype=np.float32).reshape(4, 4), np.full((2, 2), 50, np.float32)]
    one, two = (device.texture(data, normalized=True, max_anisotropy=8) for data in (levels[0], levels))
    at: dict[str, list[float]] = {"x": [0.375], "y": [0.625], "d": [1.0], "g0": [1.0], "g1": [0.0], "h0": [0.0], "h1": [0.1]}
    for texture, form in ((one, "plain"), (two, "plain"), (two, "base"), (one, "level")):
        assert simple(instruction("2d", form, result="f32"), texture, **at)[0, 0].view(np.float32) == 9
    for texture, form in ((one, "grad"), (two, "grad"), (two, "level")):
        with pytest.raises(Fault, match="unsupported: anisotropic filtering"):
            simple(instruction("2d", form), texture, **at)
