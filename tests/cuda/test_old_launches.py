"""libcuda.so.1: the functions by which programs launched before CUDA 4."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.cuda.test_driver import DATA, fails, own_context  # noqa: F401
from tests.support.driver_api import ADDRESS, POINTER, call, function, get, load, to_device, to_host

# out[block * 6 + thread] = (x, k, bytes of dynamic shared memory, 10 * tid.y + tid.x)
TELL = """.version 7.0
.target sm_75
.address_size 64
.visible .entry tell(.param .u64 out, .param .f32 x, .param .u32 k)
{
  .reg .u32 %r<9>;
  .reg .f32 %x;
  .reg .u64 %at;
  ld.param.u64 %at, [out];
  ld.param.f32 %x, [x];
  ld.param.u32 %r1, [k];
  mov.u32 %r2, %dynamic_smem_size;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %tid.y;
  mad.lo.u32 %r5, %r4, 10, %r3;
  mad.lo.u32 %r6, %r4, 3, %r3;
  mov.u32 %r7, %ctaid.x;
  mov.u32 %r8, %ctaid.y;
  mad.lo.u32 %r7, %r8, 2, %r7;
  mad.lo.u32 %r6, %r7, 6, %r6;
  mad.wide.u32 %at, %r6, 16, %at;
  mov.b32 %r7, %x;
  st.global.v4.u32 [%at], {%r7, %r1, %r2, %r5};
  ret;
}
"""
ROW = np.dtype("f4,u4,u4,u4")
FLOAT = ctypes.c_float


def told(address: int, blocks: int) -> list[tuple[float, int, int, int]]:
    return [tuple(row) for row in to_host(address, blocks * 6 * 4, "u4").view(ROW).tolist()]


@pytest.fixture
def tell() -> int:
    """The kernel, set up for blocks of 3 by 2 threads, with all arguments."""
    kernel = function(load(TELL), "tell")
    call("cuFuncSetBlockShape", kernel, 3, 2, 1)
    call("cuFuncSetSharedSize", kernel, 64)
    call("cuParamSetf", kernel, 8, FLOAT(1.5))
    call("cuParamSeti", kernel, 12, 7)
    call("cuParamSetSize", kernel, 16)
    return kernel


def give(kernel: int, address: int) -> int:
    value = ADDRESS(address)
    call("cuParamSetv", kernel, 0, ctypes.byref(value), 8)
    return address


def wanted(x: float, k: int, shared: int) -> list[tuple[float, int, int, int]]:
    return [(x, k, shared, 10 * y + x_) for y in range(2) for x_ in range(3)]


def test_a_set_up_kernel_is_launched(tell):
    out = give(tell, get(ADDRESS, "cuMemAlloc_v2", 4 * 6 * 16))
    call("cuLaunchGrid", tell, 2, 2)
    assert told(out, 4) == wanted(1.5, 7, 64) * 4


def test_it_stays_set_up_but_for_what_is_changed(tell):
    first, second = (get(ADDRESS, "cuMemAlloc_v2", 6 * 16) for _ in range(2))
    give(tell, first)
    call("cuLaunch", tell)
    give(tell, second)
    call("cuParamSeti", tell, 12, 8)
    call("cuFuncSetSharedSize", tell, 0)
    stream = get(POINTER, "cuStreamCreate", 0)
    call("cuLaunchGridAsync", tell, 1, 1, stream)
    call("cuStreamSynchronize", stream)
    assert (told(first, 1), told(second, 1)) == (wanted(1.5, 7, 64), wanted(1.5, 8, 0))


def test_each_kernel_has_its_own(tell):
    other = function(load(TELL), "tell")
    with fails("INVALID_VALUE"):
        call("cuLaunch", other)
    out = give(tell, to_device(np.zeros(24, "u4")))
    call("cuLaunch", tell)
    assert told(out, 1) == wanted(1.5, 7, 64)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cuFuncSetBlockShape", (0, 1, 1)),
        ("cuFuncSetBlockShape", (1, -1, 1)),
        ("cuParamSetSize", (4097,)),
        ("cuParamSeti", (-4, 0)),
        ("cuParamSeti", (4093, 0)),
        ("cuParamSetv", (0, None, 4)),
        ("cuParamSetv", (8, b"x", 0xFFFFFFFF)),
        ("cuLaunchGrid", (0, 1)),
        ("cuLaunchGrid", (1, -1)),
    ],
)
def test_wrong_numbers_are_errors(tell, name, arguments):
    give(tell, to_device(np.zeros(24, "u4")))
    with fails("INVALID_VALUE"):
        call(name, tell, *arguments)
    call("cuLaunch", tell)


def test_arguments_that_are_not_given_are_an_error(tell):
    give(tell, to_device(np.zeros(24, "u4")))
    call("cuParamSetSize", tell, 12)
    with fails("INVALID_VALUE"):
        call("cuLaunch", tell)


def test_no_kernel_is_an_error():
    with fails("INVALID_HANDLE"):
        call("cuFuncSetBlockShape", None, 1, 1, 1)


def test_a_kernel_has_the_textures_of_its_module():
    module = load(DATA / "references.ptx")
    kernel, image = function(module, "read_image"), get(POINTER, "cuModuleGetTexRef", module, b"image")
    call("cuParamSetTexRef", kernel, -1, image)
    with fails("INVALID_VALUE"):
        call("cuParamSetTexRef", kernel, 0, image)
