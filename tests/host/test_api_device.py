"""Devices, buffers and surfaces through the Python interface."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

import ptxemu
from ptxemu import Fault, InputError
from ptxemu.device.device import parse_size
from tests.support import api_kernels as ptx


@pytest.fixture
def device():
    with ptxemu.Device("64 MiB", workers=2) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "size"), [("4 GiB", 4 << 30), ("1.5MiB", 3 << 19), (1 << 20, 1 << 20), ("2000000", 2000000), ("1 GB", 10**9)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "four", "4 QiB", "-1 GiB", "1 B", 12, 2.5e9])
def test_wrong_sizes(text):
    with pytest.raises(InputError, match="memory"):
        parse_size(text)


@pytest.mark.parametrize("workers", [0, -1, 1.5, 10**6])
def test_wrong_workers(workers):
    with pytest.raises(InputError, match="workers must be"):
        ptxemu.Device("1 MiB", workers=workers)


def test_buffers_hold_arrays(device):
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    buffer = device.to_device(array)
    assert (buffer.shape, buffer.dtype, buffer.nbytes, len(buffer)) == ((3, 4), np.int16, 24, 3)
    np.testing.assert_array_equal(buffer.copy_to_host(), array)
    buffer.array[1] = 5
    out = np.zeros((3, 4), np.int16)
    assert buffer.copy_to_host(out) is out
    np.testing.assert_array_equal(out[1], [5] * 4)
    assert int(buffer) == buffer.address
    np.testing.assert_array_equal(device.empty((2, 2)).array, np.zeros((2, 2), np.float32))
    assert device.to_device(np.ones(3, ml_dtypes.bfloat16)).array.dtype == ml_dtypes.bfloat16
    assert device.empty(0).address == 0


def test_wrong_copies(device):
    buffer = device.empty(4)
    with pytest.raises(InputError, match=r"the array is float64\[4\], the buffer float32\[4\]"):
        buffer.copy_from_host(np.zeros(4))
    with pytest.raises(InputError, match=r"float32\[5\]"):
        buffer.copy_to_host(np.zeros(5, np.float32))
    with pytest.raises(InputError, match="cannot be held in device memory"):
        device.to_device(np.array([object()]))
    with pytest.raises(InputError, match="negative extent"):
        device.empty(-1)


def test_memory_comes_back(device):
    before = device.arena.used
    for _ in range(20):
        device.empty(8 << 20, np.uint8)
    gc.collect()
    assert device.arena.used == before
    with pytest.raises(InputError, match="out of device memory"):
        device.empty(128 << 20, np.uint8)


def test_parts_of_buffers_are_buffers(device):
    buffer = device.to_device(np.arange(24, dtype=np.int32).reshape(4, 6))
    for index in (0, 3, -1, slice(1, 3), slice(None), slice(2, None), slice(-3, -1), slice(3, 3), np.int64(2)):
        part, want = buffer[index], buffer.array[index]
        assert (part.shape, part.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(part.array, want)
    buffer[1].array[:] = 7
    np.testing.assert_array_equal(buffer.array[1], np.full(6, 7))
    assert buffer[1][2].shape == ()
    for index in (4, -5, 2**70):
        with pytest.raises(IndexError):
            buffer[index]
    assert len(list(buffer)) == 4
    with pytest.raises(InputError, match=r"a part of a buffer has no step: use buffer.array\[0:4:2\]"):
        buffer[::2]


def test_a_part_keeps_the_memory(device):
    part = device.to_device(np.arange(6, dtype=np.int32))[2:4]
    gc.collect()
    np.testing.assert_array_equal(part.array, [2, 3])


def test_buffers_share_their_memory_by_dlpack(device):
    buffer = device.to_device(np.arange(6, dtype=np.float32))
    shared = np.from_dlpack(buffer)
    buffer.array[0] = 9
    np.testing.assert_array_equal(shared, [9, 1, 2, 3, 4, 5])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("f32", np.float32), ("u8", np.uint8), ("b64", np.uint64), ("int", np.int32), ("half", np.float16), ("int64", np.int64),
     ("bf16", ml_dtypes.bfloat16), ("e4m3", ml_dtypes.float8_e4m3fn), ("<f4", np.float32), (float, np.float64)],
)  # fmt: skip
def test_types_by_name(device, name, dtype):
    assert device.empty(3, name).dtype == dtype


@pytest.mark.parametrize("name", ["f33", "object", "U4", "", ">f4", 7])
def test_what_is_no_type(device, name):
    with pytest.raises(InputError):
        device.empty(3, name)


def test_freed_buffers_are_refused(device):
    kernel = ptxemu.loads(ptx.SAXPY, device=device)["saxpy"]
    x, y = device.empty(32), device.empty(32)
    x.free()
    with pytest.raises(InputError, match="the buffer is freed"):
        kernel[1, 32](32, 1.0, x, y)
    with pytest.raises(InputError, match="has been freed"):
        x.copy_to_host()
    with pytest.raises(InputError, match="belongs to another device"):
        kernel[1, 32](32, 1.0, ptxemu.default_device().empty(32), y)


def test_a_pointer_past_a_buffer_faults_and_names_it(device):
    kernel = ptxemu.loads(ptx.SAXPY, device=device)["saxpy"]
    x = device.to_device(np.ones(1024, np.float32), name="inputs")
    with pytest.raises(Fault, match="illegal address") as caught:
        kernel[64, 1024](65536, 1.0, x, device.empty(65536))
    assert caught.value.record["address"] >= x.address + 4096


@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize(
    ("geometry", "shape"),
    [("2d", (7, 33)), ("3d", (3, 7, 33)), ("a2d", (3, 7, 33)), ("a1d", (3, 33)), ("2d", (7, 33, 4))],
)
def test_surfaces_hold_arrays(device, geometry, shape, layout):
    format = "R16G16B16A16_SINT" if shape[-1] == 4 else "R16_SINT"
    array = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    surface = device.surface(array, format=format, geometry=geometry, layout=layout)
    assert surface.shape == shape
    np.testing.assert_array_equal(surface.copy_to_host(), array)
    surface.copy_from_host(-array)
    np.testing.assert_array_equal(surface.copy_to_host(), -array)
    np.testing.assert_array_equal(
        device.surface(shape, format=format, geometry=geometry, layout=layout).copy_to_host(), np.zeros(shape)
    )


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ((4, 4), {"format": "R33_FLOAT"}, "no surface format is named 'R33_FLOAT'"),
        ((4, 4), {"format": "R32_UINT", "geometry": "4d"}, "no surface geometry is named '4d'"),
        ((4, 4), {"format": "R32_UINT", "layout": "tiled"}, "no surface layout is named 'tiled'"),
        ((4,), {"format": "R32_UINT"}, "has the axes height, width"),
        ((4, 0), {"format": "R32_UINT"}, "shape of positive integers"),
        ((4, 4, 3), {"format": "R8G8B8A8_UNORM"}, "has 4 components, not 3"),
        ((4, 4), {"format": "R32_UINT", "colour": 1}, "unexpected keyword argument 'colour'"),
        (np.zeros((4, 4)), {"format": "R32_UINT"}, "takes uint32 components, not float64"),
        ((4, 4), {"format": "R32_UINT", "pitch": 8}, "pitch"),
    ],
)
def test_wrong_surfaces(device, data, options, message):
    with pytest.raises(InputError, match=message):
        device.surface(data, **options)


def test_closed_devices_refuse_everything():
    device = ptxemu.Device("16 MiB")
    buffer = device.empty(4)
    device.close()
    with pytest.raises(InputError, match="closed"):
        device.empty(4)
    del buffer
    gc.collect()


def test_module_survives_its_device_being_shared():
    with ptxemu.Device("64 MiB") as device:
        module = ptxemu.loads(ptx.VARIABLES, device=device)
        assert module.device is device
        out = device.empty(3, np.int32)
        module["step"][1, 1](out)
        assert out.array[0] == 41
