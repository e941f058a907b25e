"""The surface engine's C entry points: creation, handles, geometry and format rules, worked examples, queries."""

from __future__ import annotations

from typing import Any

import pytest

import ptxemu
from ptxemu._runtime import ffi, lib
from tests.support import api_kernels as ptx
from tests.support.surface_model import NONE
from tests.surfaces.surface_texels import GEOMETRY, Texels, access, context, coord, describe, resolve, wrong


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


def test_what_a_launch_has_found_stays_whole(table: Any) -> None:
    """A slot may be set while kernels run: what they have found does not change before they end."""
    wide, narrow = Texels("R32_UINT", 64).desc, Texels("R32_UINT", 4).desc
    lib.pe_surface_table_set(table, 1, 7, wide)
    found: list[Any] = []

    def change(text: str) -> None:
        found.append(lib.pe_surface_lookup(table, 1 | 7 << 32))
        for tag in range(8, 1000):
            lib.pe_surface_table_set(table, 1, tag, narrow)
        lib.pe_surface_table_clear(table, 1)
        found.extend([found[0].width, lib.pe_surface_lookup(table, 1)])

    endless = ptx.HELLO.replace("  ret;", "AGAIN:\n  bra AGAIN;")
    module = ptxemu.loads(endless, device=ptxemu.Device(memory="16 MiB", workers=1))
    with pytest.raises(ptxemu.LaunchTimeout):
        module["hello"][1, 1](timeout=0.5, printf=change)
    assert found[1:] == [64, ffi.NULL]
    lib.pe_surface_table_set(table, 1, 7, narrow)
    assert lib.pe_surface_lookup(table, 1).width == 4


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
