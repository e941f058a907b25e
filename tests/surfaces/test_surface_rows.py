"""suld.b and sust.b whose coordinates form rows of neighbours: whole warps in vector instructions, edges in the runtime.

Every kernel loads from one surface, at a shift, and stores to another; NumPy says what must be there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from tests.support.kernel_tools import kernel

Bytes = NDArray[np.uint8]
Shift, Block = tuple[int, int, int], tuple[int, int]
GEOMETRIES = {  # coordinate tuples; the extents of surfaces, in bytes along x
    "1d": ("{%r4}", (331,)),
    "2d": ("{%r4, %r5}", (23, 331)),
    "3d": ("{%r4, %r5, %r6, %r6}", (3, 21, 331)),
    "a1d": ("{%r6, %r4}", (3, 331)),
    "a2d": ("{%r6, %r4, %r5, %r5}", (3, 21, 331)),
}
FORMS = [("b8", 1), ("b8", 4), ("b16", 1), ("b16", 2), ("b32", 1), ("b32", 2), ("b32", 4), ("b64", 1), ("b64", 2)]
BLOCKS: list[Block] = [(32, 4), (16, 8), (8, 8), (4, 16), (64, 1)]
PARAMETERS = ".param .u64 src, .param .u64 dst, .param .u32 dx, .param .u32 dy, .param .u32 dz, .param .u32 n"


@pytest.fixture(scope="module")
def device() -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="64 MiB") as made:
        yield made


def size_of(element: str, count: int) -> int:
    return int(element[1:]) // 8 * count


def copy(geometry: str, element: str, count: int, clamp: str, guard: str = "") -> str:
    """dst[x, y, z] = src[x + dx, y + dy, z + dz] for accesses of a size that x counts; z is %ctaid.z."""
    size, stem = size_of(element, count), {"b8": "%h", "b16": "%h", "b32": "%r", "b64": "%rd"}[element]
    first = {"%h": 1, "%r": 20, "%rd": 8}[stem]
    names = ", ".join(f"{stem}{first + index}" for index in range(count))
    values, vector = (f"{{{names}}}", f".v{count}") if count > 1 else (names, "")
    at = GEOMETRIES[geometry][0]
    return kernel(
        f"""
  ld.param.u64 %rd1, [src]; ld.param.u64 %rd2, [dst]; ld.param.u32 %r10, [dx]; ld.param.u32 %r11, [dy];
  ld.param.u32 %r12, [dz]; ld.param.u32 %r13, [n];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.s32 %r0, %r1, %r2, %r0;
  mov.u32 %r7, %tid.y; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ntid.y; mad.lo.s32 %r7, %r1, %r2, %r7;
  setp.lt.u32 %p1, %r0, %r13;
  mul.lo.u32 %r3, %r0, {size}; add.s32 %r4, %r3, %r10; add.s32 %r5, %r7, %r11; mov.u32 %r8, %ctaid.z; add.s32 %r6, %r8, %r12;
  {guard}suld.b.{geometry}{vector}.{element}.{clamp} {values}, [%rd1, {at}];
  mov.u32 %r4, %r3; mov.u32 %r5, %r7; mov.u32 %r6, %r8;
  {guard}sust.b.{geometry}{vector}.{element}.zero [%rd2, {at}], {values};
  ret;""",
        PARAMETERS,
    )


def extents(source: Bytes, geometry: str) -> tuple[int, int, int]:
    """Slices or layers, rows, and the bytes of a row."""
    high, deep = geometry in ("2d", "3d", "a2d"), geometry in ("3d", "a1d", "a2d")
    return source.shape[0] if deep else 1, source.shape[-2] if high else 1, source.shape[-1]


def expected(source: Bytes, geometry: str, size: int, clamp: str, shift: Shift, n: int = 1 << 20) -> Bytes:
    """What the copy leaves in a surface of zeros."""
    depth, height, row = extents(source, geometry)
    whole = source.reshape(depth, height, row)
    out = np.zeros_like(whole)
    z, y, x = np.meshgrid(np.arange(depth), np.arange(height), size * np.arange(min(row // size, n)), indexing="ij")
    at = [z + shift[2] * (depth > 1), y + shift[1] * (height > 1), (x + shift[0] + 2**31) % 2**32 - 2**31]
    if geometry[0] == "a":  # a layer is unsigned
        at[0] %= 1 << 32
    last = (depth - 1, height - 1, (row // size - 1) * size)
    nearest = [np.clip(value, 0, limit) for value, limit in zip(at, last)]
    inside = np.logical_and.reduce([value == clipped for value, clipped in zip(at, nearest)])
    for byte in range(size):
        values = whole[nearest[0], nearest[1], nearest[2] + byte]
        out[z, y, x + byte] = values if clamp == "clamp" else np.where(inside, values, 0)
    return out.reshape(source.shape)


def run(
    device: ptxemu.Device, text: str, geometry: str, source: Bytes, block: Block, size: int, shift: Shift = (0, 0, 0),
    n: int = 1 << 20, layout: str = "pitch", **options: int,
) -> Bytes:  # fmt: skip
    """The destination after a launch of more threads than it has texels."""
    src = device.surface(source, format="R8_UINT", geometry=geometry, layout=layout)
    dst = device.surface(np.zeros_like(source), format="R8_UINT", geometry=geometry, layout=layout)
    depth, height, row = extents(source, geometry)
    grid = (row // (size * block[0]) + 1, height // block[1] + 1, depth)
    ptxemu.loads(text, device=device, options=options)["k"][grid, block](src, dst, *(value & 0xFFFFFFFF for value in shift), n)
    return np.asarray(dst.copy_to_host())


def texels(*shape: int) -> Bytes:
    return np.random.default_rng(shape).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("element", "count"), FORMS)
def test_shifted_copies(device: ptxemu.Device, geometry: str, element: str, count: int, layout: str) -> None:
    """Of all forms, into all directions, with blocks whose warps are one row or several."""
    size, source = size_of(element, count), texels(*GEOMETRIES[geometry][1])
    block = BLOCKS[(FORMS.index((element, count)) + list(GEOMETRIES).index(geometry)) % len(BLOCKS)]
    shifts = [(0, 0, 0), (-size, 1, 0), (2 * size, -1, 1), (-3 * size, 2, -1), (size * 100, -40, 0), (-(1 << 31), 1 << 30, 0)]
    for clamp in ("zero", "clamp"):
        text = copy(geometry, element, count, clamp)
        for shift in shifts:
            found = run(device, text, geometry, source, block, size, shift, layout=layout)
            np.testing.assert_array_equal(found, expected(source, geometry, size, clamp, shift), f"{shift} {clamp}")


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(("element", "count"), FORMS)
def test_edges_that_repeat(device: ptxemu.Device, geometry: str, element: str, count: int) -> None:
    """In rows of whole texels, beyond each end and both, farther than a warp, and where x wraps."""
    size, extent = size_of(element, count), (*GEOMETRIES[geometry][1][:-1], 48)
    block = BLOCKS[(FORMS.index((element, count)) + list(GEOMETRIES).index(geometry)) % len(BLOCKS)]
    source, text = texels(*extent), copy(geometry, element, count, "clamp")
    shifts = [(-size, 0, 0), (size, -1, 1), (-3 * size, 60, -5), (60 * size, 1, 0), (-60 * size, 0, 0), (2**31 - 16, 0, 0)]
    for shift in shifts:
        found = run(device, text, geometry, source, block, size, shift)
        np.testing.assert_array_equal(found, expected(source, geometry, size, "clamp", shift), str(shift))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("n", [0, 1, 31, 33, 50])
def test_lanes_that_are_off(device: ptxemu.Device, block: Block, n: int) -> None:
    source = texels(23, 331)
    found = run(device, copy("2d", "b32", 1, "zero", "@%p1 "), "2d", source, block, 4, n=n)
    np.testing.assert_array_equal(found, expected(source, "2d", 4, "zero", (0, 0, 0), n))


FAULTS = {
    (0, 0): "out of bounds",  # in the last column of warps
    (-4, 0): "out of bounds",
    (0, -1): "out of bounds",
    (2, 0): "misaligned",
}


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shift", FAULTS)
def test_faults_name_the_lane(block: Block, shift: tuple[int, int]) -> None:
    """The same as where coordinates are no pattern, as on the interpreter."""
    said = []
    for engine in ("jit", "interpreter"):
        with ptxemu.Device(memory="64 MiB", workers=1, engine=engine) as device, pytest.raises(ptxemu.Fault) as caught:
            run(device, copy("2d", "b32", 1, "trap"), "2d", texels(23, 331), block, 4, (*shift, 0))
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert FAULTS[shift] in said[0]


def test_other_geometries_and_bad_handles_fault(device: ptxemu.Device) -> None:
    surface = device.surface(texels(64), format="R8_UINT", geometry="1d")
    launcher = ptxemu.loads(copy("2d", "b32", 1, "zero"), device=device)["k"][1, 32]
    for handle, message in ((surface, "geometry mismatch"), (0, "invalid surface"), ((1 << 64) - 1, "invalid surface")):
        with pytest.raises(ptxemu.Fault, match=message):
            launcher(handle, surface, 0, 0, 0, 0)


def test_a_layer_may_have_16_bits(device: ptxemu.Device) -> None:
    """Layer 65537 is layer 1 by that policy, whatever the number of layers."""
    source = texels(3, 331)
    for bits, layer in ((16, 1), (32, 2)):
        text, shift = copy("a1d", "b32", 1, "clamp"), (0, 0, 65537)
        found = run(device, text, "a1d", source, (32, 4), 4, shift, layer_bits=bits)
        np.testing.assert_array_equal(found[0, :328], source[layer, :328])


def test_a_surface_that_is_written_is_read_again(device: ptxemu.Device) -> None:
    """Stores and loads of one surface stay in order; lanes of one texel leave the value of the highest."""
    body = """
  ld.param.u64 %rd1, [s]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; shl.b32 %r3, %r1, 2; mov.u32 %r4, 3;
  mad.lo.u32 %r5, %r2, 100, %r1; mov.u32 %r6, 0;
L: suld.b.2d.b32.trap %r7, [%rd1, {%r3, %r4}]; add.u32 %r7, %r7, %r5; sust.b.2d.b32.trap [%rd1, {%r3, %r4}], %r7;
  add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 3; @%p1 bra L;
  suld.b.2d.b32.trap %r7, [%rd1, {%r3, %r4}]; shl.b32 %r8, %r2, 4; add.u32 %r8, %r8, %r1; mul.wide.u32 %rd3, %r8, 4;
  add.u64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r7; ret;"""
    surface = device.surface(np.zeros((8, 16), "u4"), format="R32_UINT")
    out = np.zeros((2, 16), "u4")
    ptxemu.loads(kernel(body, ".param .u64 s, .param .u64 out"), device=device)["k"][1, (16, 2)](surface, out)
    highest = np.zeros(16, "u4")
    for _ in range(3):
        highest += 100 + np.arange(16, dtype="u4")
    np.testing.assert_array_equal(out, [highest, highest])
