"""CTM output and PTX ``sust.p`` leave the same bytes, those of NumPy; padding stays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxemu
from tests.support.ctm_harness import FORMATS, device, module

GUARD = 0xA5
SPECIAL = np.array(
    [0, 0x80000000, 1, 0x807FFFFF, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0xBF800000, 0x40000000, 0x7F800000, 0xFF800000,
     0x7FC00000, 0xFFC12345, 0x7F800001, 0x3B008081, 0x37800080, 0x3F000080, 0x3EFFFF00],
    np.uint32,
)  # fmt: skip
CTM = """.kernel k cached
.output A image
.in r0 values
OUTPUT MOV.OMOD_DISABLED.RNDR_TGT_A out{mask}, r0
"""
PTX = """.version 8.0
.target sm_80
.address_size 64
.global .surfref image;
.entry k(.param .u64 values)
{{
    .reg .b32 %r<6>; .reg .b32 %v<4>; .reg .b64 %rd<2>;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0;
    mov.u32 %r1, %nctaid.x; mul.lo.u32 %r2, %r1, %r2; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r4, %r3, %r2, %r0;
    ld.param.u64 %rd0, [values]; mad.wide.u32 %rd0, %r4, 16, %rd0; ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%rd0];
    sust.p.2d{vector}.b32.zero [image, {{%r0, %r3}}], {registers};
    ret;
}}
"""
FORMS = {"r": ("", "%v0"), "rg": (".v2", "{%v0, %v1}"), "rgba": (".v4", "{%v0, %v1, %v2, %v3}")}
"""Channels of an output, and the vector of ``sust.p`` that gives them."""


def ctm(channels: str) -> ptxemu.Module:
    return module(CTM.format(mask=f".{channels}"))


@cache
def ptx(channels: str) -> ptxemu.Module:
    vector, registers = FORMS[channels]
    text = PTX.format(vector=vector, registers=registers)
    return ptxemu.loads(text, device=device(), opt=0, options={"missing_component": "preserve"})


def expected_components(name: str, words: np.ndarray) -> np.ndarray:
    """What a format stores of registers; the products with 255 and 65535 are exact in binary64."""
    if name.startswith("FLOAT"):
        return words
    most = 65535 if name == "UINT16_1" else 255
    floats = words.view(np.float32)
    values = np.where(np.isnan(floats), 0, floats).astype(np.float64)
    return np.rint(np.clip(values, 0, 1) * most).astype(np.uint16 if most > 255 else np.uint8)


def memory_after(
    load: Callable[[str], ptxemu.Module], name: str, channels: str, shape: tuple[int, int], pitch: int, values
) -> np.ndarray:
    """All bytes of a guarded surface after a store of every point of a grid that is wider and higher."""
    height, width = shape
    surface = device().surface(shape, format=FORMATS[name], pitch=pitch, pitch_align=16)
    memory = device().arena.view(surface.surface.address, surface.surface.total_bytes)
    memory[:] = GUARD
    loaded = load(channels)
    loaded.bind("image", surface)
    loaded["k"][(1, height + 2), width + 3](values)
    return np.array(memory)


def check(name: str, channels: str, width: int, height: int, padding: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = (height + 2, width + 3, 4)
    uniform = rng.uniform(-0.5, 1.5, points).astype(np.float32).view(np.uint32)
    words = np.where(rng.integers(0, 3, points) > 0, uniform, rng.choice(SPECIAL, points)).astype(np.uint32)
    words = np.where(rng.integers(0, 5, points) > 0, words, rng.integers(0, 2**32, points, np.uint32)).astype(np.uint32)
    components = int(name[-1])
    converted = expected_components(name, words)
    element = converted.itemsize * components
    pitch = -(-width * element // 16) * 16 + 16 * padding
    expected = np.full((height, pitch), GUARD, np.uint8)
    given_channels = min(len(channels), components)
    for y in range(height):
        for x in range(width):
            part = converted[y, x, :given_channels].tobytes()
            expected[y, x * element : x * element + len(part)] = np.frombuffer(part, np.uint8)
    for load in (ctm, ptx):
        found = memory_after(load, name, channels, (height, width), pitch, words)
        assert (found == expected.ravel()[: len(found)]).all(), (load.__name__, name, channels, width, height, pitch)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("channels", FORMS)
def test_formatted_stores(name, channels):
    """Cached output of some channels is the formatted store of so many components; the others are preserved."""
    check(name, channels, 29, 9, 0, 1)
    check(name, channels, 13, 5, 3, 2)


@settings(max_examples=40)
@given(
    st.sampled_from(list(FORMATS)), st.sampled_from(list(FORMS)), st.integers(1, 29), st.integers(1, 6), st.integers(0, 4),
    st.integers(0, 2**20),
)  # fmt: skip
def test_random_stores(name, channels, width, height, padding, seed):
    check(name, channels, width, height, padding, seed)
