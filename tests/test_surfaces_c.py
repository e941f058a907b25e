"""The surface engine's C entry points: creation, handles, geometry and format rules, worked examples, queries."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from surface_model import MISALIGNED, NONE, TRAP
from surface_texels import GEOMETRY, Texels, access, context, coord, describe, resolve, wrong

from ptxemu._runtime import ffi, lib


@pytest.fixture
def table() -> Any:
    pointer = lib.pe_surface_table_new()
    yield pointer
    lib.pe_surface_table_free(pointer)


# ---- creation ------------------------------------------------------------------------------------------------------

BAD = [
    (dict(width=0), "every extent must be at least 1"),
    (dict(width=4, height=2, geometry="1d"), "1d surface"),
    (dict(width=4, height=2, depth=2), "2d surface"),
    (dict(width=4, layers=2, geometry="3d"), "3d surface"),
    (dict(width=4, height=2, layers=2, geometry="a1d"), "1d array"),
    (dict(width=4, depth=2, layers=2, geometry="a2d"), "2d array"),
    (dict(width=4, height=4, layers=5, geometry="cube"), "cube surface"),
    (dict(width=4, height=5, layers=6, geometry="cube"), "cube surface"),
    (dict(width=4, height=4, layers=9, geometry="acube"), "cube array"),
    (dict(width=4, height=4, layout="linear"), "linear layout is for 1d"),
    (dict(width=4, geometry="1d", layout="linear", levels=2), "one mip level"),
    (dict(width=4, height=4, levels=4), "too many mip levels"),
    (dict(width=4, levels=0), "too many mip levels"),
    (dict(width=4, pitch=24), "multiples of the pitch alignment"),
    (dict(width=16, pitch=48), "pitch is smaller"),
    (dict(width=4, height=4, pitch=16, slice_stride=48), "slice stride is smaller"),
    (dict(width=4, height=4, layers=2, geometry="a2d", layer_stride=48), "layer stride is smaller"),
    (dict(width=4, height=4, layers=2, geometry="a2d", layer_stride=72), "layer stride is not aligned"),
    (dict(width=4, layout="block_linear", block_h_log2=6), "block size"),
    (dict(width=4, bits=24), "no such surface format"),
    (dict(width=4, components=3), "no such surface format"),
    (dict(width=4, kind=0), "no such surface format"),
    (dict(width=2**32 - 1, height=2**32 - 1, depth=2**32 - 1, geometry="3d"), "larger than the address space"),
    (
        dict(width=2**31, height=2**31, layers=2**31, geometry="a2d", layout="block_linear"),
        "larger than the address space",
    ),
    (dict(width=4, height=4, pitch=2**63), "larger than the address space"),
    (dict(width=4, pitch_align=3), "powers of two"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_bad_descriptor(fields: dict[str, Any], message: str) -> None:
    assert message in wrong(lib.pe_surface_layout(describe(**fields)))


def test_bad_memory() -> None:
    surface = Texels("R32_UINT", 16, 4)
    surface.desc.size -= 1
    assert "smaller" in wrong(lib.pe_surface_check(surface.desc))
    surface.desc.size += 1
    surface.desc.base += 8
    assert "aligned" in wrong(lib.pe_surface_check(surface.desc))
    surface.desc.base = ffi.NULL
    assert "no memory" in wrong(lib.pe_surface_check(surface.desc))


def test_short_pitch_alignment() -> None:
    """CTM pitches are multiples of the texel only."""
    desc = describe("R16_UNORM", 4, 3, pitch=8, pitch_align=2)
    assert wrong(lib.pe_surface_layout(desc)) == ""
    assert (desc.level[0].pitch, desc.total_bytes) == (8, 24)


# ---- handles, state, geometry, format ------------------------------------------------------------------------------


def test_handle_table(table: Any) -> None:
    desc = Texels("R32_UINT", 4).desc
    assert lib.pe_surface_table_set(table, 0, 1, desc) == -1
    assert lib.pe_surface_table_set(table, 0x100000, 1, desc) == -1
    for slot in (1, 5, 0xFFFFF):
        assert lib.pe_surface_table_set(table, slot, 7, desc) == 0
        assert lib.pe_surface_lookup(table, slot | 7 << 32).width == 4
        assert lib.pe_surface_lookup(table, slot).width == 4  # tag 0 is not checked
        assert lib.pe_surface_lookup(table, slot | 0xABC << 20 | 7 << 32).width == 4  # sampler bits are ignored
        assert not lib.pe_surface_lookup(table, slot | 8 << 32)
    for handle in (0, 2, 4, 6, 0x80000):
        assert not lib.pe_surface_lookup(table, handle)
    lib.pe_surface_table_clear(table, 5)
    assert not lib.pe_surface_lookup(table, 5 | 7 << 32)


def test_states() -> None:
    surface = Texels("R32_UINT", 4)
    how, where = access("3d"), coord(2)  # a wrong geometry and a misaligned coordinate: state comes first
    surface.desc.state = lib.PE_SURFACE_DISABLED
    assert resolve(surface.desc, how, where) == NONE
    surface.desc.state = lib.PE_SURFACE_INVALID
    assert resolve(surface.desc, how, where) == lib.PE_INVALID_SURFACE
    assert resolve(ffi.NULL, how, where) == lib.PE_INVALID_SURFACE
    surface.desc.state = lib.PE_SURFACE_UNBOUND
    assert resolve(surface.desc, how, where) == lib.PE_UNBOUND_SURFACE
    drop = context(invalid_header=lib.PE_HEADER_DROP)
    out = ffi.new("uint8_t **")
    assert lib.pe_su_resolve(drop, ffi.NULL, how, where, out) == lib.PE_SU_NONE
    assert drop.dropped == 1


@pytest.mark.parametrize("used", [*GEOMETRY, "any"])
@pytest.mark.parametrize("bound", GEOMETRY)
def test_geometry_match(bound: str, used: str) -> None:
    layers = {"cube": 6, "acube": 6}.get(bound, 1)
    surface = Texels("R32_UINT", 4, 4 if layers == 6 else 1, 1, layers, geometry=bound)
    fits = used in (bound, "any") or (used == "a2d" and layers == 6) or (used == "1d" and bound == "1d_buffer")
    assert resolve(surface.desc, access(used), coord(4)) == (4 if fits else lib.PE_GEOMETRY_MISMATCH)


def test_format_rules() -> None:
    single = lib.PE_FORMAT_SINGLE
    for name, size, fits in [
        ("R32_UINT", 4, True),
        ("R8G8B8A8_UNORM", 4, False),
        ("R16_FLOAT", 2, True),
        ("R16_UINT", 4, False),
        ("R32G32_UINT", 4, False),
    ]:
        desc = Texels(name, 4).desc
        expected = 0 if fits else lib.PE_FORMAT_MISMATCH
        assert resolve(desc, access(size=size, mode="texel", format=single), coord()) == expected
    desc = Texels("R32_FLOAT", 4).desc
    how = access(format=lib.PE_FORMAT_INTEGER)
    assert resolve(desc, how, coord()) == 0
    assert resolve(desc, how, coord(), strict=1) == lib.PE_FORMAT_MISMATCH


# ---- worked examples -----------------------------------------------------------------------------------------------


def test_load_example() -> None:
    surface = Texels("R8G8B8A8_UNORM", 60, 30, pitch=256)
    surface.memory[:] = np.arange(surface.total) % 251
    data = ffi.new("uint16_t[2]")
    assert lib.pe_su_load(context(), surface.desc, access(), coord(20, 3), data) == lib.PE_OK
    assert list(data) == [9251, 9765]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("R8G8B8A8_UNORM", "ff800040"),
        ("B8G8R8A8_UNORM", "0080ff40"),
        ("R16G16_UNORM", "ffff0080"),
        ("R32_FLOAT", "0000803f"),
        ("R16G16B16A16_FLOAT", "003c003800000034"),
        ("A8_UNORM", "40"),
    ],
)
def test_formatted_store_examples(name: str, expected: str) -> None:
    surface = Texels(name, 4, geometry="1d")
    values = ffi.new("uint32_t[4]", [struct.unpack("<I", struct.pack("<f", v))[0] for v in (1.0, 0.5, 0.0, 0.25)])
    assert lib.pe_su_store_fmt(context(), surface.desc, access("1d", mode="texel"), coord(0), values, 0xF) == lib.PE_OK
    assert bytes(surface.memory[: len(expected) // 2]).hex() == expected


@pytest.mark.parametrize(
    ("policy", "name", "count", "expected"),
    [
        (0, "R8G8B8A8_UINT", 1, "01000000"),
        (1, "R8G8B8A8_UINT", 1, "01777777"),
        (2, "R8G8B8A8_UINT", 1, "01cdcdcd"),
        (0, "R8G8B8A8_UINT", 2, "01020000"),
        (1, "B8G8R8A8_UINT", 2, "77020177"),
        (2, "B8G8R8A8_UINT", 2, "cd0201cd"),
        (0, "A8_UNORM", 2, "00"),
        (1, "A8_UNORM", 2, "77"),
        (1, "R16G16_UINT", 1, "01007777"),
    ],
)
def test_missing_components(policy: int, name: str, count: int, expected: str) -> None:
    surface = Texels(name, 4, geometry="1d")
    surface.memory[:] = 0x77
    values = ffi.new("uint32_t[4]", [1, 2, 3, 4])
    ctx = context(missing_component=policy)
    lib.pe_su_store_fmt(ctx, surface.desc, access("1d", mode="texel"), coord(0), values, (1 << count) - 1)
    assert bytes(surface.memory[: len(expected) // 2]).hex() == expected


def test_integer_components_from_floats() -> None:
    surface = Texels("R8G8B8A8_UINT", 4, geometry="1d")
    values = ffi.new("uint32_t[4]", [struct.unpack("<I", struct.pack("<f", v))[0] for v in (2.5, 300.0, -1.0, 3.5)])
    lib.pe_su_store_fmt(context(float_to_uint=1), surface.desc, access("1d", mode="texel"), coord(0), values, 0xF)
    assert bytes(surface.memory[:4]) == bytes([2, 255, 0, 4])


SURED_EXAMPLES = [
    # scaled, 64 bits, clamp, x, y: byte that changes, or what happens
    ("byte", 4, "zero", 8, 1, 72),
    ("scaled", 4, "zero", 8, 1, 96),
    ("scaled", 8, "zero", 7, 0, 56),
    ("scaled", 8, "zero", 8, 0, NONE),
    ("byte", 4, "clamp", 64, -3, 60),
    ("byte", 8, "clamp", 64, 9, 248),
    ("byte", 4, "trap", -4, 0, TRAP),
    ("byte", 4, "zero", 6, 0, MISALIGNED),
]


@pytest.mark.parametrize(("mode", "size", "clamp", "x", "y", "expected"), SURED_EXAMPLES)
def test_reduction_examples(mode: str, size: int, clamp: str, x: int, y: int, expected: int | str) -> None:
    surface = Texels("R32_UINT", 16, 4, pitch=64)
    type_ = lib.PE_TYPE_U32 if size == 4 else lib.PE_TYPE_U64
    five = (5).to_bytes(8, "little")
    lib.pe_su_atomic(
        context(),
        surface.desc,
        access(size=size, clamp=clamp, mode=mode),
        coord(x, y),
        lib.PE_ATOM_ADD,
        type_,
        0,
        five,
        b"",
        ffi.NULL,
    )
    assert list(np.flatnonzero(surface.memory)) == ([expected] if isinstance(expected, int) else [])
    if isinstance(expected, int):
        assert surface.memory[expected] == 5


@pytest.mark.parametrize(("name", "expected"), [("R32_SINT", 0xFFFFFFFF), ("R32_UINT", 3), ("R32_FLOAT", 3)])
def test_untyped_minimum_takes_its_sign_from_the_format(name: str, expected: int) -> None:
    surface = Texels(name, 4, geometry="1d")
    words = surface.memory.view(np.uint32)
    words[:] = [5, 0xFFFFFFFF, 7, 0]
    ctx = context()
    how = access("1d", mode="scaled")
    update = (ctx, surface.desc, how, coord(1), lib.PE_ATOM_UMIN, lib.PE_TYPE_B32, 0, (3).to_bytes(4, "little"), b"")
    assert lib.pe_su_atomic(*update, ffi.NULL) == lib.PE_OK
    assert words[1] == expected
    assert ctx.format_mismatches == (name == "R32_FLOAT")
    ctx.policy.strict = 1
    strict = lib.PE_FORMAT_MISMATCH if name == "R32_FLOAT" else lib.PE_OK
    assert lib.pe_su_atomic(*update, ffi.NULL) == strict


def test_one_buffer_four_front_ends() -> None:
    """Texel (2, 1) is byte 72 for byte, scaled and texel coordinates and for a flat address."""
    surface = Texels("R32_UINT", 16, 4, pitch=64)
    one, ctx = (1).to_bytes(4, "little"), context()
    for mode, x in (("byte", 8), ("scaled", 2), ("texel", 2)):
        how = access("2d", 4, "zero", mode)
        lib.pe_su_atomic(ctx, surface.desc, how, coord(x, 1), lib.PE_ATOM_ADD, lib.PE_TYPE_U32, 0, one, b"", ffi.NULL)
    flat = ffi.cast("void *", surface.memory.ctypes.data + 72)
    lib.pe_atom_update(flat, lib.PE_ATOM_ADD, lib.PE_TYPE_U32, 0, one, b"", ffi.NULL, 1)
    assert surface.memory[72] == 4
    assert np.count_nonzero(surface.memory) == 1


# ---- suq -----------------------------------------------------------------------------------------------------------


def queries(desc: Any, **policy: int) -> list[int]:
    return [lib.pe_su_query(context(**policy), desc, which) for which in range(lib.PE_SUQ_COUNT)]


def test_queries() -> None:
    assert queries(Texels("R8G8B8A8_UNORM", 7, 5).desc) == [7, 5, 0, 0x10D2, 0x10B5, 0, 1]
    assert queries(Texels("B8G8R8A8_UNORM", 7, 5).desc, absent_dim=1) == [7, 5, 1, 0x10D2, 0x10B6, 0, 1]
    assert queries(Texels("R16_FLOAT", 7, geometry="1d", layout="linear").desc) == [7, 0, 0, 0x10DD, 0x10B0, 0, 1]
    deep = Texels("R32G32_FLOAT", 7, 5, 3, geometry="3d", layout="block_linear")
    assert queries(deep.desc) == [7, 5, 3, 0x10DE, 0x10B2, 0, 0]
    assert queries(Texels("A8_UNORM", 7, 7, 1, 6, geometry="cube").desc) == [7, 7, 0, 0x10D2, 0x10B1, 6, 1]
    assert queries(Texels("R32_SINT", 7, 1, 1, 2, geometry="a1d", enum_family=lib.PE_ENUM_CUDA).desc) == [
        7,
        0,
        0,
        0x0A,
        1,
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("name", "opencl", "cuda"),
    [
        ("R8_SNORM", 0x10D0, 0x08),
        ("R16_SNORM", 0x10D1, 0x09),
        ("R8_UNORM", 0x10D2, 0x01),
        ("R16_UNORM", 0x10D3, 0x02),
        ("R8_SINT", 0x10D7, 0x08),
        ("R16_SINT", 0x10D8, 0x09),
        ("R32_SINT", 0x10D9, 0x0A),
        ("R8_UINT", 0x10DA, 0x01),
        ("R16_UINT", 0x10DB, 0x02),
        ("R32_UINT", 0x10DC, 0x03),
        ("R16_FLOAT", 0x10DD, 0x10),
        ("R32_FLOAT", 0x10DE, 0x20),
    ],
)
def test_channel_types(name: str, opencl: int, cuda: int) -> None:
    desc = Texels(name, 4).desc
    assert lib.pe_su_query(context(), desc, lib.PE_SUQ_CHANNEL_DATA_TYPE) == opencl
    desc.enum_family = lib.PE_ENUM_CUDA
    assert lib.pe_su_query(context(), desc, lib.PE_SUQ_CHANNEL_DATA_TYPE) == cuda


def test_query_overrides() -> None:
    desc = Texels("R32_UINT", 4, 4).desc
    desc.suq_mask = 1 << lib.PE_SUQ_WIDTH | 1 << lib.PE_SUQ_ARRAY_SIZE
    desc.suq_value[lib.PE_SUQ_WIDTH], desc.suq_value[lib.PE_SUQ_ARRAY_SIZE] = 99, 3
    assert queries(desc) == [99, 4, 0, 0x10DC, 0x10B0, 3, 1]
    desc.state = lib.PE_SURFACE_UNBOUND
    assert queries(desc) == [99, 0, 0, 0, 0, 3, 0]
