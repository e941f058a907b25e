"""Hostile arguments of the Python interface: an error of ptxemu's own that says what is wrong, and everything works on."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

import ptxemu
from ptxemu import InputError
from ptxemu.device import surface
from tests.support import api_kernels as ptx

HUGE = 10**5000
NUMBERS = (HUGE, -HUGE, 2**64, -1, -(2**63) - 1, 2**70, math.inf, math.nan, -0.5)
OTHERS = (None, "", "\0", "\udcff", b"x", [], {}, object(), [[]], True, 1j, np.array(None), np.float16(2), "x" * 100_000)


class Unprintable:
    """A value whose text cannot be had."""

    def __repr__(self) -> str:
        raise ValueError


VALUES = (*NUMBERS, *OTHERS, Unprintable())


@pytest.fixture(scope="module")
def device():
    with ptxemu.Device(memory="16 MiB", workers=1) as made:
        yield made


def attempt(function) -> None:
    """Call a function: it may work; it fails with an error of input, whose message is short."""
    try:
        function()
    except (InputError, ptxemu.UnsupportedError) as error:
        text = str(error)
    else:
        return
    assert 5 < len(text) < 2000


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_one_hostile_value_anywhere(device, value):
    module = ptxemu.loads(ptx.SAXPY, device=device)
    saxpy, x = module["saxpy"], np.zeros(4, np.float32)
    buffer, surface = device.empty(4), device.surface((2, 2), format="R8_UINT")
    variables = ptxemu.loads(ptx.VARIABLES, device=device)
    surfaces = ptxemu.loads(ptx.SURFACES, device=device)
    tries = [
        lambda: ptxemu.Device(memory=value).close(),
        lambda: ptxemu.Device(memory="1 MiB", workers=value).close(),
        lambda: ptxemu.Device(memory="1 MiB", heap=value).close(),
        lambda: ptxemu.Device(memory="1 MiB", stack=value).close(),
        lambda: device.empty(value),
        lambda: device.empty((2, value)),
        lambda: device.empty(4, value),
        lambda: device.to_device(value),
        lambda: device.to_device([value]),
        lambda: buffer.copy_from_host(value),
        lambda: buffer.copy_to_host(value),
        lambda: device.surface(value, format="R8_UINT"),
        lambda: device.surface((2, value), format="R8_UINT"),
        lambda: device.surface((2, 2), format=value),
        lambda: device.surface((2, 2), format="R8_UINT", geometry=value),
        lambda: device.texture(value, format="R8_UNORM"),
        lambda: device.texture(surface, geometry=value),
        lambda: device.texture(buffer, geometry="1d", border=value),
        lambda: device.texture(x, geometry="1d", border=[value] * 4),
        lambda: device.texture(x, geometry="1d", address=value),
        lambda: device.texture((2, value, 2), geometry="2dms", format="R8_UNORM"),
        lambda: device.texture([x, value], geometry="1d"),
        lambda: surface.copy_from_host(value),
        lambda: surface.copy_to_host(value),
        lambda: module[value],
        lambda: module.get(value),
        lambda: value in module,
        lambda: variables.get_global(value),
        lambda: surfaces.bind(value, surface),
        lambda: surfaces.bind(next(iter(surfaces.info.handles)), value),
        lambda: surfaces.bind(next(iter(surfaces.info.handles)), surface, value),
        lambda: saxpy[value, 1],
        lambda: saxpy[1, (1, value)],
        lambda: saxpy[value],
        lambda: saxpy[1, 1](value, 1.0, x, x.copy()),
        lambda: saxpy[1, 1](0, value, x, x.copy()),
        lambda: saxpy[1, 1](0, 1.0, value, x),
        lambda: saxpy[1, 1](0, 1.0, x, x.copy(), shared=value),
        lambda: saxpy[1, 1](0, 1.0, x, x.copy(), timeout=value),
        lambda: ptxemu.loads(ptx.HELLO, opt=value, device=device),
        lambda: ptxemu.loads(ptx.HELLO, dialect=value, device=device),
        lambda: ptxemu.loads(ptx.HELLO, options={"invalid_header": value}, device=device),
        lambda: ptxemu.loads(ptx.HELLO, options={"nothing": value}, device=device),
    ]
    for option in ("levels", "pitch", "pitch_align", "slice_stride", "layer_stride", "address", "size", "block_height_log2",
                   "gob_order", "layout", "enabled", "name", "queries", "enum_family", "nothing", "depth"):  # fmt: skip
        tries.append(lambda option=option: device.surface((2, 2), format="R8_UINT", **{option: value}))
    for option in ("filter", "mip_filter", "mip_bias", "min_level", "max_level", "max_anisotropy", "normalized", "seamless"):
        tries.append(lambda option=option: device.sampler(**{option: value}))
    for function in tries:
        attempt(function)
    saxpy[1, 4](4, 1.0, x, buffer)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda device: device.empty(2**70), "out of device memory"),
        (lambda device: device.empty(HUGE), r"out of device memory: about 2\^16611 bytes wanted"),
        (lambda device: device.empty(-1), "has a negative extent"),
        (lambda device: device.empty((1,) * 40), "up to 32 extents"),
        (lambda device: device.empty(itertools.repeat(1)), "up to 32 extents"),
        (lambda device: device.empty(4, object), "cannot be held in device memory"),
        (lambda device: device.empty(4, ">f4"), "byte order"),
        (lambda device: device.empty(4, "nothing"), "is not a type of array elements"),
        (lambda device: device.to_device(np.zeros(4, ">i2")), "byte order"),
        (lambda device: device.to_device([[1], [2, 3]]), "expects an array"),
        (lambda device: device.surface((2, 2), format="R8_UINT", address=-1, size=4), "is not an address"),
        (lambda device: device.surface((2, 2), format="R8_UINT", address=2**64, size=4), "is not an address"),
        (lambda device: ptxemu.Device(memory=2**70), "memory must be"),
        (lambda device: ptxemu.loads(ptx.SAXPY)["saxpy"][1, 1](0, HUGE, None, None), "out of range of f32"),
        (
            lambda device: ptxemu.loads(ptx.SAXPY)["saxpy"][1, 1](HUGE, 0.0, None, None),
            r"about 2\^16609 is out of range",
        ),
        (lambda device: ptxemu.loads(ptx.SAXPY)["saxpy"][itertools.count(1), 1], "1 to 3 dimensions"),
        (lambda device: ptxemu.load("a\0b"), "null"),
        (lambda device: ptxemu.load(5), "a path is a text"),
        (lambda device: ptxemu.loads(ptx.SAXPY, opt=9), "opt must be 0 to 3"),
    ],
)
def test_what_is_said(device, call, message):
    with pytest.raises(InputError, match=message):
        call(device)


@pytest.mark.parametrize("seconds", [math.inf, 1e300, HUGE, np.float64(math.inf)], ids=["inf", "float", "int", "numpy"])
def test_no_limit_of_time(seconds):
    module = ptxemu.loads(ptx.HELLO)
    module["hello"][1, 1](timeout=seconds, printf=lambda text: None)


def test_variables_that_do_not_fit():
    device = ptxemu.Device(memory="1 MiB")
    module = ptxemu.loads(ptx.HEAD + ".global .b8 a[2000000];\n.visible .entry k() { ret; }", device=device)
    with pytest.raises(InputError, match="out of device memory"):
        module["k"][1, 1]()


def test_buffers_are_arrays_for_numpy(device):
    buffer = device.to_device(np.arange(6, dtype=np.int32).reshape(2, 3))
    view = np.asarray(buffer)
    assert view.shape == (2, 3) and view.dtype == np.int32
    view[0, 0] = 7
    assert buffer.array[0, 0] == 7  # the memory itself
    copy = np.array(buffer)
    copy[0, 0] = 9
    assert buffer.array[0, 0] == 7
    assert np.asarray(buffer, np.float64).dtype == np.float64
    np.testing.assert_array_equal(buffer, [[7, 1, 2], [3, 4, 5]])
    assert np.asarray(device.to_device(np.ones(2, ml_dtypes.bfloat16))).dtype == ml_dtypes.bfloat16
    buffer.free()
    with pytest.raises(InputError, match="freed"):
        np.asarray(buffer)


def test_surfaces_are_arrays_for_numpy(device):
    texels = np.arange(16, dtype=np.uint8).reshape(4, 4)
    surface = device.surface(texels, format="R8_UINT", layout="block_linear")
    texture = device.texture(texels, format="R8_UINT")
    for item in (surface, texture):
        np.testing.assert_array_equal(np.asarray(item), texels)
        assert np.array(item, np.int32).dtype == np.int32


def test_modules_have_defaults_as_mappings_do():
    module = ptxemu.loads(ptx.SAXPY)
    assert module.get("nothing") is None and module.get("nothing", 5) == 5
    assert module.get("saxpy") == module["saxpy"]


@pytest.mark.parametrize("given", [5, None, [b"x"], Ellipsis, {"a": 1}])
def test_file_names_are_texts(given):
    with pytest.raises(InputError, match="filename is a text"):
        ptxemu.loads(ptx.SAXPY, filename=given)
    with pytest.raises(InputError):
        ptxemu.load(given)


@pytest.mark.parametrize("wrong", [{"strict": np.zeros(3)}, {"strict": "no"}, {"options": 5}, {"options": np.zeros(3)}])
def test_settings_have_types(wrong):
    with pytest.raises(InputError, match=r"is True or False|are names with values"):
        ptxemu.loads(ptx.SAXPY, **wrong)


def test_a_struct_is_measured_before_it_is_copied(device):
    kernel = ptxemu.loads(ptx.HEAD + ".visible .entry k(.param .b8 s[16]) { ret; }", device=device)["k"][1, 1]
    with pytest.raises(InputError, match="expects 16 bytes, not 281474976710656"):
        kernel(np.broadcast_to(np.zeros(1, np.uint8), (1 << 48,)))
    kernel(memoryview(np.zeros((2, 8), np.uint8).T))


def test_a_shape_is_no_memory(device):
    with pytest.raises(InputError, match="a shape is an integer or several"):
        device.empty(memoryview(np.zeros((2, 2))))


def test_a_flag_is_no_array(device):
    kernel = ptxemu.loads(ptx.HELLO, device=device)["hello"][1, 1]
    with pytest.raises(InputError, match="cooperative is True or False"):
        kernel(cooperative=np.zeros(0), printf=lambda text: None)


@pytest.mark.parametrize("kind", [np.matrix, np.ma.MaskedArray, np.recarray, np.char.chararray])
def test_subclasses_of_arrays_are_their_memory(device, kind):
    x, y = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    given = x.view("S4" if kind is np.char.chararray else x.dtype).reshape(2, 4).view(kind)
    if kind is np.ma.MaskedArray:
        given.mask = x.reshape(2, 4) > 3
    ptxemu.loads(ptx.SAXPY, device=device)["saxpy"][1, 32](8, 2.0, given, y)
    np.testing.assert_array_equal(y, 1 + 2 * x)


def test_texels_are_taken_from_arrays_alone(device):
    texture = device.texture((4, 4), format="R32_FLOAT")
    for given in ([[1, 2], [3]], {1}, "texels"):
        with pytest.raises(InputError):
            texture.copy_from_host(given)
        with pytest.raises(InputError):
            texture.surface.upload(given)
    with pytest.raises(InputError, match="expects NumPy arrays"):
        device.texture(memoryview(np.zeros((4, 4), np.float32)))


@pytest.mark.parametrize("name", ["pe_surface_upload", "pe_surface_download"])
def test_memory_stays_while_texels_are_copied(device, monkeypatch, name):
    """Another thread may close the surface, as Python does not hold its lock meanwhile."""
    closing = device.surface((64, 64), format="R32_UINT").surface
    array, used = closing.download(), device.arena.used
    seen = []

    def close(*arguments):
        closing.close()
        seen.append(device.arena.used)
        return getattr(runtime, name)(*arguments) if seen == [used] else None

    runtime = surface.lib
    monkeypatch.setattr(surface, "lib", type("Lib", (), {name: staticmethod(close)}))
    closing.upload(array) if name == "pe_surface_upload" else closing.download()
    assert seen == [used] and device.arena.used < used
    with pytest.raises(InputError, match="closed"):
        closing.download()


@pytest.mark.parametrize(("type", "name"), [("b16", "float16"), ("b32", "float32"), ("b64", "float64")])
def test_floats_for_bits(device, type, name):
    text = f".version 7.8\n.target sm_70\n.address_size 64\n.entry k(.param .{type} h) {{ ret; }}"
    kernel = ptxemu.loads(text, device=device)["k"]
    with pytest.raises(InputError, match=rf"pass np.{name}\(x\) for its bits"):
        kernel[1, 1](1.5)
    kernel[1, 1](getattr(np, name)(1.5))


def test_cuda_is_no_ptx():
    with pytest.raises(InputError, match=r"k\.cu: is CUDA C.*compile it with nvcc -ptx k\.cu"):
        ptxemu.load("k.cu")
