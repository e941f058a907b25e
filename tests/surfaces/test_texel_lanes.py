"""suld.b, sust.b and sured.b whose coordinates are anything: lanes in vector instructions, faults and edges in the runtime.

A kernel is told its coordinates by an array; NumPy, or the interpreter, says what must come of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from ptxemu._runtime import ffi, lib
from tests.support.kernel_tools import GLOBAL_INDEX, kernel
from tests.surfaces.surface_texels import describe
from tests.surfaces.test_surface_rows import FORMS, GEOMETRIES, extents, size_of, texels

Ints = NDArray[np.int32]
THREADS, CTAS = 96, 5
COUNT = THREADS * CTAS
PARAMETERS = ".param .u64 surface, .param .u64 at, .param .u64 data"
STEMS = {"b8": "%h", "b16": "%h", "b32": "%r", "b64": "%rd"}
FIRST = {"%h": 1, "%r": 20, "%rd": 8}


@pytest.fixture(scope="module", params=[1, 2])
def device(request: pytest.FixtureRequest) -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="64 MiB", workers=request.param) as made:
        yield made


def values_of(element: str, count: int) -> tuple[str, str]:
    """The registers of an access, and its vector."""
    stem = STEMS[element]
    names = ", ".join(f"{stem}{FIRST[stem] + index}" for index in range(count))
    return (f"{{{names}}}", f".v{count}") if count > 1 else (names, "")


def program(body: str, size: int) -> str:
    """Of a thread: coordinates in r4, r5 and r6, p1 if it takes part, the place of its data in rd3, the surface in rd1."""
    return kernel(
        GLOBAL_INDEX
        + f"""
  ld.param.u64 %rd1, [surface]; ld.param.u64 %rd2, [at]; ld.param.u64 %rd3, [data];
  mul.wide.u32 %rd4, %r0, 16; add.u64 %rd2, %rd2, %rd4; ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%rd2];
  setp.ne.u32 %p1, %r7, 0; mul.wide.u32 %rd4, %r0, {size}; add.u64 %rd3, %rd3, %rd4;
  {body}""",
        PARAMETERS,
    )


def places(geometry: str, size: int, seed: int, beyond: int, repeated: bool = True) -> Ints:
    """Random x, y and z, with 1 for those that take part, up to so many texels outside; or each texel once, in any order."""
    random, limits = np.random.default_rng(seed), extents(texels(*GEOMETRIES[geometry][1]), geometry)
    depth, height, row = limits
    if repeated:
        drawn = [random.integers(-beyond, limit + beyond, COUNT) for limit in (row // size, height, depth)]
    else:
        chosen = random.permutation(row // size * height * depth)[:COUNT]
        chosen = np.append(chosen, np.full(COUNT - len(chosen), -1))
        drawn = [chosen % (row // size), chosen // (row // size) % height, chosen // (row // size * height)]
    on = (random.integers(0, 4, COUNT) > 0) & (drawn[0] >= -beyond)
    return np.stack([drawn[0] * size, drawn[1], drawn[2], on], axis=1).astype(np.int32)


def inside(at: Ints, geometry: str, size: int) -> NDArray[np.bool_]:
    depth, height, row = extents(texels(*GEOMETRIES[geometry][1]), geometry)
    x, y, z = at[:, 0], at[:, 1], at[:, 2]
    found = (x >= 0) & (x + size <= row)
    if geometry in ("2d", "3d", "a2d"):
        found &= (y >= 0) & (y < height)
    if geometry in ("3d", "a1d", "a2d"):
        found &= (z >= 0) & (z < depth)
    return found


def indexes(at: Ints, geometry: str) -> tuple[NDArray[Any], ...]:
    """Of the first byte of each texel."""
    x, y, z = at[:, 0], at[:, 1], at[:, 2]
    return {"1d": (x,), "2d": (y, x), "3d": (z, y, x), "a1d": (z, x), "a2d": (z, y, x)}[geometry]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("element", "count"), FORMS)
@pytest.mark.parametrize("clamp", ["trap", "zero", "clamp"])
def test_loads(device: ptxemu.Device, geometry: str, element: str, count: int, layout: str, clamp: str) -> None:
    size, source = size_of(element, count), texels(*GEOMETRIES[geometry][1])
    values, vector = values_of(element, count)
    load = f"suld.b.{geometry}{vector}.{element}.{clamp} {values}, [%rd1, {GEOMETRIES[geometry][0]}];"
    text = program(f"@%p1 {load} @%p1 st.global{vector}.{element} [%rd3], {values};", size)
    at = places(geometry, size, COUNT, 0 if clamp == "trap" else 3)
    surface = device.surface(source, format="R8_UINT", geometry=geometry, layout=layout)
    data = np.full((COUNT, size), 0xEE, np.uint8)
    ptxemu.loads(text, device=device)["k"][CTAS, THREADS](surface, at, data)

    depth, height, row = extents(source, geometry)
    nearest, on = at.copy(), at[:, 3] != 0
    nearest[:, 0] = np.clip(at[:, 0], 0, (row // size - 1) * size)
    nearest[:, 1] = np.clip(at[:, 1], 0, height - 1)
    z = at[:, 2].astype(np.uint32) if geometry[0] == "a" else at[:, 2]  # a layer is unsigned
    nearest[:, 2] = np.clip(z, 0, depth - 1)
    *others, x = indexes(nearest, geometry)
    wanted = np.stack([source[(*others, x + byte)] for byte in range(size)], axis=1)
    if clamp == "zero":
        wanted[~inside(at, geometry, size)] = 0
    np.testing.assert_array_equal(data, np.where(on[:, None], wanted, 0xEE))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("element", "count"), FORMS)
def test_stores(device: ptxemu.Device, geometry: str, element: str, count: int, layout: str) -> None:
    """Each texel once; threads for which there is none store outside."""
    size, before = size_of(element, count), texels(*GEOMETRIES[geometry][1])
    values, vector = values_of(element, count)
    store = f"sust.b.{geometry}{vector}.{element}.zero [%rd1, {GEOMETRIES[geometry][0]}], {values};"
    text = program(f"ld.global{vector}.{element} {values}, [%rd3]; @%p1 {store}", size)
    at = places(geometry, size, COUNT, 1, repeated=False)
    data = np.random.default_rng(3).integers(0, 256, (COUNT, size), dtype=np.uint8)
    surface = device.surface(before, format="R8_UINT", geometry=geometry, layout=layout)
    ptxemu.loads(text, device=device)["k"][CTAS, THREADS](surface, at, data)

    stored = inside(at, geometry, size) & (at[:, 3] != 0)
    wanted = before.copy()
    *others, x = indexes(at[stored], geometry)
    for byte in range(size):
        wanted[(*others, x + byte)] = data[stored, byte]
    np.testing.assert_array_equal(surface.copy_to_host(), wanted)


def test_lanes_of_one_texel_leave_the_value_of_the_highest(device: ptxemu.Device) -> None:
    text = program("sust.b.1d.b32.trap [%rd1, {%r4}], %r0;", 4)
    at = np.zeros((COUNT, 4), np.int32)
    at[:, 0] = np.arange(COUNT) // 32 * 4
    surface = device.surface(np.zeros(COUNT // 32, np.uint32), format="R32_UINT", geometry="1d")
    ptxemu.loads(text, device=device)["k"][CTAS, THREADS](surface, at, np.zeros(1, np.uint8))
    np.testing.assert_array_equal(surface.copy_to_host(), np.arange(COUNT // 32) * 32 + 31)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64"])
@pytest.mark.parametrize("clamp", ["trap", "zero", "clamp"])
@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize("check", ["", "all"])
@pytest.mark.parametrize("geometry", ["1d", "2d", "3d"])
def test_sums(geometry: str, kind: str, clamp: str, layout: str, check: str) -> None:
    """Also where several threads add to one texel, and more of them than workers make sums without a twin."""
    size, times = int(kind[1:]) // 8, 40
    value, number = ("%rd8", "cvt.u64.u32 %rd8, %r0;") if size == 8 else ("%r8", "mov.u32 %r8, %r0;")
    text = program(f"{number} @%p1 sured.b.add.{geometry}.{kind}.{clamp} [%rd1, {GEOMETRIES[geometry][0]}], {value};", size)
    at = np.tile(places(geometry, size, 9, 0 if clamp == "trap" else 3), (times, 1))
    shape = (*GEOMETRIES[geometry][1][:-1], GEOMETRIES[geometry][1][-1] // size)
    form = {4: "R32_UINT", 8: "R32G32_UINT"}[size]
    zeros = np.zeros(shape if size == 4 else (*shape, 2), np.uint32)
    with ptxemu.Device(memory="64 MiB", workers=2, check=check or None) as device:
        surface = device.surface(zeros, format=form, geometry=geometry, layout=layout)
        ptxemu.loads(text, device=device)["k"][times * CTAS, THREADS](surface, at, np.zeros(1, np.uint8))
        found = np.asarray(surface.copy_to_host()).view(f"u{size}").reshape(shape)

    wanted, on = np.zeros(shape, f"u{size}"), at[:, 3] != 0
    chosen = at.copy()
    if clamp == "clamp":
        limits = extents(texels(*GEOMETRIES[geometry][1]), geometry)[::-1]
        for axis, limit in enumerate((limits[0] // size * size - size + 1, *limits[1:])):
            chosen[:, axis] = np.clip(chosen[:, axis], 0, limit - 1)
    else:
        on &= inside(at, geometry, size)
    *others, x = indexes(chosen[on], geometry)
    np.add.at(wanted, (*others, x // size), np.arange(len(at), dtype=f"u{size}")[on])
    np.testing.assert_array_equal(found, wanted)


FAULTY = {
    "load": "@%p1 suld.b.2d.b32.{clamp} %r8, [%rd1, {{%r4, %r5}}]; @%p1 st.global.u32 [%rd3], %r8;",
    "store": "@%p1 sust.b.2d.b32.{clamp} [%rd1, {{%r4, %r5}}], %r0;",
    "sum": "@%p1 sured.b.add.2d.u32.{clamp} [%rd1, {{%r4, %r5}}], %r0;",
}


@pytest.mark.parametrize("place", [(-4, 0), (332, 0), (0, 23), (0, -1), (2, 0), (-2, 0), (333, 40), (-(1 << 31), 0)])
@pytest.mark.parametrize("clamp", ["trap", "zero", "clamp"])
@pytest.mark.parametrize("what", FAULTY)
@pytest.mark.parametrize("on", [0, 1])
def test_one_lane_beyond_an_edge(what: str, clamp: str, place: tuple[int, int], on: int) -> None:
    """Does, or says, what it does on the interpreter; nothing if it is off."""
    at = places("2d", 4, 11, 0)
    at[40] = (*place, 0, on)
    outcomes = []
    for engine in ("jit", "interpreter"):
        with ptxemu.Device(memory="64 MiB", workers=1, engine=engine) as device:
            surface = device.surface(np.zeros((23, 83), np.uint32), format="R32_UINT", geometry="2d")
            data, said = np.zeros(COUNT, np.uint32), ""
            try:
                ptxemu.loads(program(FAULTY[what].format(clamp=clamp), 4), device=device)["k"][CTAS, THREADS](surface, at, data)
            except ptxemu.Fault as fault:
                said = str(fault)
            kept = "" if said else (data.tobytes(), np.asarray(surface.copy_to_host()).tobytes())
            outcomes.append((said, kept))
    assert outcomes[0] == outcomes[1]
    faults = on and (place[0] % 4 != 0 or clamp == "trap")
    assert bool(outcomes[0][0]) == faults


@pytest.mark.parametrize(("height", "near"), [((1 << 21) - 1, True), (1 << 21, False)])
def test_lanes_of_surfaces_of_two_gigabytes_are_for_the_runtime(height: int, near: bool) -> None:
    """Their offsets do not take 31 bits."""
    desc = describe("R32_UINT", 256, height, geometry="2d")
    assert lib.pe_surface_layout(desc) == ffi.NULL
    assert desc.total_bytes == height * 1024
    table = lib.pe_surface_table_new()
    try:
        assert lib.pe_surface_table_set(table, 1, 0, desc) == 0
        view = lib.pe_surface_lookup(table, 1).view
        assert (view.row, view.near_row) == (1024, 1024 if near else 0)
    finally:
        lib.pe_surface_table_free(table)
