"""Formatted stores where an architecture is asked for: what an H200 (driver of CUDA 13.0) left in arrays of each format.

``tests/data/formatted_stores_sm_90.npz`` has the values, four in a store, and the texels.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.places import DATA

WORDS = DATA / "formatted_stores_sm_90.npz"
FORMATS = ("R16G16B16A16_FLOAT", "R8G8B8A8_UNORM", "R16G16B16A16_UNORM", "R8G8B8A8_SNORM", "R16G16B16A16_SNORM")
TEXT = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 s, .param .u64 values)
{
  .reg .b32 %x, %v<4>; .reg .b64 %s, %a, %at;
  ld.param.u64 %s, [s]; ld.param.u64 %a, [values]; mov.u32 %x, %ctaid.x;
  mul.wide.u32 %at, %x, 16; add.u64 %a, %a, %at; ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%a];
  sust.p.1d.v4.b32.trap [%s, {%x}], {%v0, %v1, %v2, %v3};
  ret;
}
"""


def stored(format: str, values: np.ndarray, engine: str, like: str | None) -> np.ndarray:
    """The texels' bits, [store][component]."""
    with ptxemu.Device(memory="16 MiB", engine=engine) as device:
        surface = device.surface((len(values),), format=format, geometry="1d")
        ptxemu.loads(TEXT, device=device, like=like)["k"][len(values), 1](surface, values.copy())
        texels = np.ascontiguousarray(surface.copy_to_host())
        return texels.view(f"u{texels.dtype.itemsize}")


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("format", FORMATS)
def test_texels_are_those_of_the_gpu(format: str, engine: str) -> None:
    with np.load(WORDS) as data:
        np.testing.assert_array_equal(stored(format, data["values"], engine, "sm_90"), data[format])


@pytest.mark.parametrize("format", FORMATS)
def test_else_they_are_rounded_to_nearest(format: str) -> None:
    """0.5 is halfway between two texels of each normalized format, and 65519 rounds to 65504 or to infinity."""
    values = np.array([[0.5, 0.1, 65519.996, 65520]], np.float32).view(np.uint32)
    plain, measured = (stored(format, values, "jit", like)[0].tolist() for like in (None, "sm_90"))
    if format.endswith("FLOAT"):
        assert plain[2:] == [0x7BFF, 0x7C00] and measured[2:] == [0x7BFF, 0x7BFF]
    else:
        assert plain[0] == measured[0] + 1
