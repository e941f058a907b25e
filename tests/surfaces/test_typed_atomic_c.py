"""Typed atomic updates of whole warps (pe_typed_atomic), inside launches, against the models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxemu._runtime import ffi, lib
from tests.support import atomic_model
from tests.support.surface_model import ModelSurface
from tests.support.warp_calls import ALL_LANES, LANES, WarpCaller
from tests.surfaces.surface_texels import Texels, context

OPS = {
    "add": "ADD", "sub": "SUB", "inc": "INC", "dec": "DEC", "umin": "UMIN", "umax": "UMAX", "xchg": "XCHG", "cas": "CAS",
    "and": "AND", "or": "OR", "xor": "XOR", "smin": "SMIN", "smax": "SMAX", "predec": "PREDEC", "fmin": "FMIN", "fmax": "FMAX",
    "fcas": "FCAS",
}  # fmt: skip
SHAPES = {
    "1d": (9, 1, 1, 1), "1d_buffer": (9, 1, 1, 1), "2d": (9, 6, 1, 1), "3d": (9, 6, 5, 1), "a1d": (9, 1, 1, 4),
    "a2d": (9, 6, 1, 4), "cube": (6, 6, 1, 6), "acube": (6, 6, 1, 12),
}  # fmt: skip
FORMATS = {2: ("R16_UINT", "u16", "f16"), 4: ("R32_UINT", "u32", "f32")}
HANDLE = 5


@pytest.fixture(scope="module")
def caller() -> Any:
    arena = lib.pe_arena_create(1 << 24)
    yield WarpCaller(arena)
    lib.pe_arena_destroy(arena)


@pytest.fixture
def table() -> Any:
    pointer = lib.pe_surface_table_new()
    yield pointer
    lib.pe_surface_table_free(pointer)


def run(
    caller: WarpCaller, table: Any, op: str, type_: str, mask: int, coordinates: Any, a: Any, b: Any, old: Any, **policy: int
):
    """One instruction of all lanes; ``coordinates`` are the five arrays or None."""
    code, kind = getattr(lib, f"PE_ATOM_{OPS[op]}"), getattr(lib, f"PE_TYPE_{type_.upper()}")
    size = lib.pe_atom_bytes(kind)
    site = ffi.new("pe_surface_site *", [7, lib.PE_SU_TYPED, lib.PE_GEOM_ANY, lib.PE_CLAMP_ZERO, size, 1, code, kind, 0])
    handles = np.full(LANES, HANDLE, np.uint64)
    lanes = ffi.new("pe_typed_lanes *")
    lanes.handle = ffi.cast("uint64_t *", handles.ctypes.data)
    for name, array in zip(("x", "y", "z", "layer", "level"), coordinates, strict=True):
        setattr(lanes, name, ffi.NULL if array is None else ffi.cast("uint32_t *", array.ctypes.data))
    for name, array in (("a", a), ("b", b), ("old", old)):
        setattr(lanes, name, ffi.NULL if array is None else ffi.cast("void *", array.ctypes.data))
    return caller.call("pe_typed_atomic", site, mask, lanes, surfaces=context(table, **policy)).fault


@pytest.mark.parametrize("seed", range(34))
def test_typed_atomics_follow_the_models(caller, table, seed):
    """Every operation on 2 and 4 bytes, geometries, layouts and levels in turn; lanes that are off keep what they had."""
    rng = np.random.default_rng(seed)
    op, size = list(OPS)[seed % 17], (2, 4)[seed // 17]
    geometry = list(SHAPES)[seed % 8]
    layout = "block_linear" if seed % 3 and geometry not in ("1d", "1d_buffer") else "pitch"
    extents, levels = SHAPES[geometry], 1 + seed % 2
    format_, integer, floating = FORMATS[size]
    type_ = floating if op.startswith("f") else integer.replace("u", "s") if op.startswith("s") and op != "sub" else integer
    model = ModelSurface(geometry, size, *extents, layout=layout, bh=1, n_levels=levels)
    real = Texels(format_, *extents, geometry=geometry, layout=layout, levels=levels, block_h_log2=1)
    assert real.total == model.total
    dtype = np.dtype(f"u{size}")
    edges = [0, 1, 2**31 - 1, 2**31, 2**32 - 1]
    real.memory.view(dtype)[:] = rng.integers(0, 1 << 8 * size, real.total // size)
    lib.pe_surface_table_set(table, HANDLE, 0, real.desc)
    limits = (*extents, levels)
    places = [np.where(rng.random(LANES) < 0.1, rng.choice(edges, LANES), rng.integers(0, limit + 1, LANES)) for limit in limits]
    coordinates = [np.ascontiguousarray(column, np.uint32) for column in places]
    given = list(coordinates)
    if levels == 1:
        coordinates[4][:] = 0
        given[4] = None
    a, b = (rng.integers(0, 1 << 8 * size, LANES).astype(dtype) for _ in range(2))
    old = np.full(LANES, 0xEE, dtype)
    mask = int(rng.integers(1, 1 << 32))
    memory, expected = bytearray(real.memory.tobytes()), old.copy()
    for lane in (lane for lane in range(LANES) if mask >> lane & 1):
        x, y, z, layer, level = (int(column[lane]) for column in coordinates)
        at = model.resolve("texel", size, x, y, z, layer, "zero", level=level)
        if not isinstance(at, int):
            expected[lane] = 0
            continue
        before = int.from_bytes(memory[at : at + size], "little")
        if op in ("cas", "fcas") and lane % 2:
            a[lane] = before
        after = atomic_model.apply(op, type_, before, int(a[lane]), int(b[lane]))
        memory[at : at + size] = after.to_bytes(size, "little")
        expected[lane] = after if op == "predec" else before
    results = old if seed % 4 else None
    assert run(caller, table, op, type_, mask, given, a, b, results) is None
    assert real.memory.tobytes() == bytes(memory)
    assert real.guards_intact
    if results is not None:
        assert results.tolist() == expected.tolist()


def test_the_format_must_be_one_component_of_the_size(caller, table):
    zeros = np.zeros(LANES, np.uint32)
    for format_ in ("R16G16_UINT", "R8_UINT", "R32G32_UINT"):
        real = Texels(format_, 8, 8)
        lib.pe_surface_table_set(table, HANDLE, 0, real.desc)
        fault = run(caller, table, "add", "u32", ALL_LANES, [zeros, zeros, None, None, None], zeros + 1, None, None)
        assert (fault.kind, fault.lane, fault.pos) == (lib.PE_FORMAT_MISMATCH, 0, 7)
        assert not real.memory.any()


def test_an_empty_slot_reads_as_out_of_bounds(caller, table):
    zeros, old = np.zeros(LANES, np.uint32), np.full(LANES, 9, np.uint32)
    fault = run(caller, table, "add", "u32", 0xF, [zeros] * 5, zeros, None, old, invalid_header=lib.PE_HEADER_DROP)
    assert fault is None and old.tolist() == [0] * 4 + [9] * 28
    fault = run(caller, table, "add", "u32", 0xF, [zeros] * 5, zeros, None, old)
    assert fault.kind == lib.PE_INVALID_SURFACE


def test_equal_quiet_nans_of_two_sides(caller, table):
    """With PE_ATOM_QUIET_NAN unset two NaNs give CUDA's canonical one; subnormals are kept."""
    real = Texels("R32_FLOAT", 2, 1)
    real.memory.view(np.uint32)[:2] = [0x7FC00001, 3]
    lib.pe_surface_table_set(table, HANDLE, 0, real.desc)
    x, zeros = np.arange(LANES, dtype=np.uint32), np.zeros(LANES, np.uint32)
    a = np.array([0x7F800001, 2] + [0] * 30, np.uint32)
    assert run(caller, table, "fmin", "f32", 3, [x, zeros, None, None, None], a, None, None) is None
    assert real.memory.view(np.uint32)[:2].tolist() == [0x7FFFFFFF, 2]
