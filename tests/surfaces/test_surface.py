"""Surfaces from Python: formats, creation checks, copies, handles, policies."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu._runtime import lib
from ptxemu.device.arena import Arena
from ptxemu.device.handle_slots import Slots
from ptxemu.device.surface import FORMATS, Surface, SurfacePolicy, SurfaceTable, surface_format
from ptxemu.text.errors import InputError


@pytest.fixture(scope="module")
def arena() -> Any:
    made = Arena(1 << 26)
    yield made
    made.close()


def test_formats() -> None:
    assert len(FORMATS) == 3 * (4 + 5 + 3) + 4 + 1 + 4
    for name, texel in FORMATS.items():
        if texel.packed:
            assert (texel.components, texel.elements, texel.texel_bytes, texel.dtype) == (4, 1, 4, np.uint32)
            continue
        assert texel.texel_bytes == texel.components * texel.bits // 8 == texel.components * texel.dtype.itemsize
        assert str(texel) == texel.name == name
    assert FORMATS["B8G8R8A8_UNORM"].order == "BGRA"
    assert FORMATS["R16G16_FLOAT"].dtype == np.float16
    assert FORMATS["R8_SNORM"].dtype == np.int8
    assert surface_format("r32_sint") is FORMATS["R32_SINT"]
    with pytest.raises(InputError, match=r"no surface format is named 'R8G8B8_UNORM'"):
        surface_format("R8G8B8_UNORM")


SHAPES = [
    ("1d", "linear", dict(width=9), (9,)),
    ("1d_buffer", "linear", dict(width=9), (9,)),
    ("2d", "pitch", dict(width=9, height=5), (5, 9)),
    ("2d", "block_linear", dict(width=70, height=21), (21, 70)),
    ("3d", "block_linear", dict(width=9, height=5, depth=3), (3, 5, 9)),
    ("a1d", "pitch", dict(width=9, layers=4), (4, 9)),
    ("a2d", "block_linear", dict(width=9, height=5, layers=4), (4, 5, 9)),
    ("cube", "pitch", dict(width=9, height=9), (6, 9, 9)),
    ("acube", "pitch", dict(width=9, height=9, layers=12), (12, 9, 9)),
]


@pytest.mark.parametrize("format", ["R8_UINT", "R32_FLOAT", "R16G16_SNORM", "R32G32B32A32_FLOAT"])
@pytest.mark.parametrize(("geometry", "layout", "extents", "shape"), SHAPES)
def test_round_trip(geometry: str, layout: str, extents: dict[str, int], shape: Any, format: str, arena: Arena) -> None:
    surface = Surface(arena, format, geometry=geometry, layout=layout, **extents)
    if surface.format.components > 1:
        shape = (*shape, surface.format.components)
    assert surface.shape() == shape
    array = np.arange(np.prod(shape)).reshape(shape).astype(surface.format.dtype)
    surface.upload(array)
    assert (surface.download() == array).all()
    flipped = array[::-1]  # not contiguous
    surface.upload(flipped)
    assert (surface.download() == flipped).all()
    surface.close()


def test_texels_lie_where_offset_says(arena: Arena) -> None:
    surface = Surface(arena, "R32_UINT", 20, 10, layers=4, geometry="a2d", layout="block_linear")
    array = np.arange(800, dtype=np.uint32).reshape(4, 10, 20)
    surface.upload(array)
    memory = arena.view(surface.address, surface.total_bytes).view(np.uint32)
    assert surface.offset(7, 9, layer=3) == 6716
    for x, y, layer in [(0, 0, 0), (19, 9, 3), (7, 9, 3), (5, 8, 2)]:
        assert memory[surface.offset(x, y, layer=layer) // 4] == array[layer, y, x]
    with pytest.raises(InputError, match="outside the surface"):
        surface.offset(20)


def test_mip_levels(arena: Arena) -> None:
    surface = Surface(arena, "R8_UINT", 10, 6, levels=4)
    assert [surface.shape(level) for level in range(4)] == [(6, 10), (3, 5), (1, 2), (1, 1)]
    for level in range(4):
        surface.upload(np.full(surface.shape(level), level, np.uint8), level)
    assert [int(surface.download(level).max()) for level in range(4)] == [0, 1, 2, 3]
    with pytest.raises(InputError, match="no mip level 4"):
        surface.download(4)


def test_one_component_axis_is_optional(arena: Arena) -> None:
    surface = Surface(arena, "R8_UINT", 4, 3)
    surface.upload(np.ones((3, 4, 1), np.uint8))
    assert surface.download().shape == (3, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(format="R8_UINT", width=4, height=0), "every extent"),
        (dict(format="R8_UINT", width=-4), "out of range"),
        (dict(format="R8_UINT", width=1 << 32), "out of range"),
        (dict(format="R8_UINT", width=2.5), "out of range"),
        (dict(format="R8_UINT", width=4, geometry="4d"), "no surface geometry is named '4d'"),
        (dict(format="R8_UINT", width=4, layout="tiled"), "no surface layout"),
        (dict(format="R8_UINT", width=4, gob_order="random"), "no GOB order"),
        (dict(format="R8_UINT", width=4, enum_family="vulkan"), "no enumeration family"),
        (dict(format="R8_UINT", width=4, queries={"size": 1}), "no surface query"),
        (dict(format="R8_UINT", width=4, pitch=24), "2d surface of R8_UINT: pitch"),
        (dict(format="R8_UINT", width=1 << 27), "out of device memory"),
        (dict(format="R8_UINT", width=4, height=5, geometry="cube"), "cube surface is square"),
    ],
)
def test_bad_surface(arguments: dict[str, Any], message: str, arena: Arena) -> None:
    with pytest.raises(InputError, match=message):
        Surface(arena, **arguments)


def test_bad_arrays(arena: Arena) -> None:
    surface = Surface(arena, "R32_FLOAT", 4, 3)
    with pytest.raises(InputError, match="takes float32 components, not float64"):
        surface.upload(np.zeros((3, 4)))
    with pytest.raises(InputError, match=r"shape is \(3, 4\), the array's \(4, 3\)"):
        surface.upload(np.zeros((4, 3), np.float32))


def test_borrowed_memory(arena: Arena) -> None:
    address = arena.alloc(4096)
    surface = Surface(arena, "R32_UINT", 16, 4, pitch=128, address=address, size=4096)
    surface.upload(np.arange(64, dtype=np.uint32).reshape(4, 16))
    assert arena.view(address, 512).view(np.uint32)[32 + 5] == 16 + 5
    with pytest.raises(InputError, match="smaller than the surface"):
        Surface(arena, "R32_UINT", 16, 4, pitch=128, address=address, size=256)
    with pytest.raises(InputError, match="not aligned"):
        Surface(arena, "R32_UINT", 16, 4, address=address + 8)
    with pytest.raises(InputError, match="do not lie in one allocation"):
        Surface(arena, "R32_UINT", 16, 4, address=address + 4096)
    arena.free(address)
    surface.download()  # the memory stays as long as the surface


def test_close_gives_memory_back() -> None:
    arena = Arena(1 << 22)
    surface = Surface(arena, "R8_UINT", 1000, 1000)
    used = arena.used
    surface.close()
    surface.close()
    assert arena.used < used
    with pytest.raises(InputError, match="closed"):
        surface.download()
    Surface(arena, "R8_UINT", 1000, 1000)
    gc.collect()
    assert arena.used < used
    late = Surface(arena, "R8_UINT", 10)
    arena.close()
    late.download()
    late.close()


def lookup(table: SurfaceTable, handle: int) -> Any:
    return lib.pe_surface_lookup(table.pointer, handle)


def test_handles(arena: Arena) -> None:
    table = SurfaceTable()
    surfaces = [Surface(arena, "R8_UINT", 10 + index) for index in range(4)]
    first = table.add(surfaces[0])
    array = table.add_array(surfaces[1:])
    last = table.add(surfaces[3])
    assert lookup(table, first).width == 10
    assert [lookup(table, array + 8 * k).width for k in range(3)] == [11, 12, 13]
    assert lookup(table, last).width == 13
    for stray in (first + 1, array + 4, array - 8, array + 24, last + 8, 0):
        assert not lookup(table, stray)
        assert not table.is_live(stray)
    table.remove(first)
    assert not table.is_live(first)
    again = table.add(surfaces[1])
    assert again & 0xFFFFF == first & 0xFFFFF
    assert table.is_live(again)
    assert not table.is_live(first)
    with pytest.raises(InputError, match="not a surface handle"):
        table.remove(first)


def test_unbound_handles() -> None:
    """The module's own handles: suq answers what their initialisers say until something is bound to them."""
    device = ptxemu.Device(memory="1 MiB")
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.global .surfref s[2] = { { width = 64, height = 32 } };"
    module = ptxemu.loads(text, device=device)
    resident = module.resident()
    table, handle = device.surface_table, resident.handle("s")
    context = table.context()
    assert not table.is_live(handle)
    assert lib.pe_su_query(context.pointer, lookup(table, handle), lib.PE_SUQ_HEIGHT) == 32
    assert lib.pe_su_query(context.pointer, lookup(table, handle + 8), lib.PE_SUQ_WIDTH) == 0
    surface = Surface(device.arena, "R8_UINT", 10, 4)
    table.bind(handle, surface, 1)
    assert table.is_live(handle + 8)
    assert not table.is_live(handle)
    with pytest.raises(InputError, match="no element 2"):
        table.bind(handle, surface, 2)
    surface.close()
    with pytest.raises(InputError, match="closed"):
        table.bind(handle, surface)
    del module, resident
    gc.collect()
    assert not lookup(table, handle)


def test_a_bound_surface_stays_alive(arena: Arena) -> None:
    table = SurfaceTable()
    handle = table.add(Surface(arena, "R8_UINT", 10, 4))
    used = arena.used
    gc.collect()
    assert arena.used == used
    table.remove(handle)
    gc.collect()
    assert arena.used < used


def test_the_table_has_an_end() -> None:
    table = SurfaceTable()
    slots = Slots("surface", table.pointer)
    slots.take(1)
    with pytest.raises(InputError, match="full"):
        slots.take(1 << 18)
    with pytest.raises(InputError, match="at least one"):
        SurfaceTable().add_array([])


def test_policies() -> None:
    table = SurfaceTable()
    assert bytes(lib_bytes(table.context())) == bytes(9)
    chosen = SurfacePolicy(
        align="mask",
        partial_edge="allow",
        layer_bits=16,
        invalid_header="drop",
        missing_component="poison",
        strict=True,
        absent_dim=1,
        fminmax_nan="keep_old",
        float_to_uint="integer",
    )
    assert list(lib_bytes(table.context(chosen))) == [1, 1, 1, 1, 2, 1, 1, 1, 1]
    with pytest.raises(InputError, match="layer_bits is 8, not one of 32, 16"):
        table.context(SurfacePolicy(layer_bits=8))


def lib_bytes(context: Any) -> list[int]:
    policy = context.pointer.policy
    names = (
        "align",
        "partial_edge",
        "layer_16bit",
        "invalid_header",
        "missing_component",
        "strict",
        "absent_dim",
        "fminmax_keep_old",
        "float_to_uint",
    )
    return [getattr(policy, name) for name in names]
