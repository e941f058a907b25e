"""Copies of tensors to and from shared memory, next to a model written from the manual."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import ptxemu
from tests.support import tensor_model as model
from tests.tensors.kernels import ROOM, launch, load_text, store_text

START = 128  # where kernels have their box in shared memory


@pytest.fixture(params=["jit", "interpreter"])
def device(request, monkeypatch):
    made = ptxemu.Device(memory="64 MiB", workers=1)
    monkeypatch.setattr(made, "engine", request.param)
    return made


@pytest.fixture
def fast():
    return ptxemu.Device(memory="64 MiB", workers=1)


def numbers(shape, dtype="u4", seed=1):
    return np.random.default_rng(seed).integers(1, 250, shape).astype(dtype)


def expected(rows: np.ndarray, swizzle: str = "none") -> np.ndarray:
    """The bytes of shared memory that has zeros but for a box."""
    data = np.zeros(-(-rows.nbytes // 128) * 128, "u1")
    data[: rows.nbytes] = rows.view("u1")
    out = np.zeros(ROOM, "u1")
    out[START : START + len(data)] = model.swizzled(data, swizzle, START)
    return out


def loaded(device, array, box, coords, steps=None, **options):
    made = device.tensor_map(device.to_device(array), box, steps=steps or (1,) * len(box), **options)
    lengths = [-(-size // step) for size, step in zip(box, steps or (1,) * len(box))]
    got = launch(device, load_text(len(box)), made, coords, bytes=prod(lengths) * array.itemsize)
    rows = model.tile_rows(coords, box, steps or (1,) * len(box))
    nan, swizzle = options.get("fill") == "nan", options.get("swizzle", "none")
    found = model.gathered(array, rows, coords[0], box[-1], nan)
    return got, expected(model.apart(found, box[-1] * array.itemsize, swizzle), swizzle)


TILES = [
    ((64,), (16,), (8,)), ((64,), (16,), (-4,)), ((64,), (16,), (56,)), ((64,), (16,), (64,)), ((64,), (16,), (-(2**31),)),
    ((12, 32), (4, 8), (4, 2)), ((12, 32), (4, 8), (-4, -2)), ((12, 32), (8, 8), (28, 9)), ((12, 32), (4, 8), (2**31 - 16, 0)),
    ((5, 6, 8), (3, 4, 8), (0, 1, 2)), ((5, 6, 8), (3, 4, 4), (4, -1, 4)), ((3, 4, 5, 8), (2, 3, 4, 4), (4, 2, -1, 2)),
    ((2, 3, 4, 5, 8), (2, 2, 3, 2, 8), (4, 4, -1, 2, 1)), ((5, 6, 8), (3, 4, 4), (4, 4, 3)),
    ((2, 3, 4, 5, 8), (2, 2, 3, 2, 8), (4, 4, 2, 2, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "box", "coords"), TILES)
def test_a_box_of_a_tensor(device, shape, box, coords):
    got, wanted = loaded(device, numbers(shape), box, coords)
    assert (got == wanted).all()


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
def test_element_types(fast, dtype):
    got, wanted = loaded(fast, numbers((9, 64), dtype), (4, 16), (-16 // np.dtype(dtype).itemsize, 7))
    assert (got == wanted).all()


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_is_outside_is_nan(fast, dtype):
    before = 16 // np.dtype(dtype).itemsize
    got, wanted = loaded(fast, numbers((9, 16), dtype), (4, 16), (-before, 7), fill="nan")
    assert (got == wanted).all() and np.isnan(wanted[START:].view(dtype)[:before]).all()


@pytest.mark.parametrize("steps", [(1, 2), (2, 1), (3, 8), (8, 1)])
def test_steps_through_a_box(device, steps):
    steps = (*steps, 1)
    got, wanted = loaded(device, numbers((16, 17, 16)), (8, 10, 4), (4, -2, 5), steps)
    assert (got == wanted).all()


SWIZZLES = {
    "32B": 32,
    "64B": 64,
    "96B": 96,
    "128B": 128,
    "128B_atom_32B": 128,
    "128B_atom_32B_flip_8B": 128,
    "128B_atom_64B": 128,
}


@pytest.mark.parametrize("mode", SWIZZLES)
@pytest.mark.parametrize("narrow", [False, True])
def test_swizzled_boxes(fast, mode, narrow):
    width = 16 if narrow else SWIZZLES[mode]
    array = np.random.default_rng(3).integers(0, 256, (40, 256)).astype("u1")
    got, wanted = loaded(fast, array, (32, width), (32, 1), swizzle=mode)
    assert (got == wanted).all()


CUTLASS = {"32B": (1, 4, 3), "64B": (2, 4, 3), "128B": (3, 4, 3), "128B_atom_32B": (2, 5, 2), "128B_atom_64B": (1, 6, 1)}
"""``Swizzle<bits, base, shift>`` of CUTLASS, on addresses in bytes."""


@pytest.mark.parametrize("mode", CUTLASS)
def test_the_tables_of_the_manual_are_what_cutlass_computes(mode):
    bits, base, shift = CUTLASS[mode]
    places = np.arange(4096)
    moved = places ^ (places >> shift & ((1 << bits) - 1) << base)
    data = np.random.default_rng(1).integers(0, 256, 4096).astype("u1")
    out = np.empty_like(data)
    out[moved] = data
    assert (model.swizzled(data, mode) == out).all()


@pytest.mark.parametrize(("shape", "box", "coords"), [tile for tile in TILES if min(tile[2]) >= 0])
def test_a_box_goes_to_global_memory(device, shape, box, coords):
    array, data = numbers(shape), numbers(ROOM // 4, seed=2)
    buffer = device.to_device(array)
    launch(device, store_text(len(box)), device.tensor_map(buffer, box), coords, data)
    assert (np.asarray(buffer.copy_to_host()) == stored(array, box, coords, data)).all()


def stored(array, box, coords, data, change=lambda old, new: new):
    """A tensor after a copy to it."""
    wanted, values = array.copy(), iter(data.view(array.dtype)[START // array.itemsize :])
    for place in np.ndindex(*box):
        at, value = tuple(p + c for p, c in zip(place, reversed(coords))), next(values)
        if all(0 <= p < size for p, size in zip(at, array.shape)):
            wanted[at] = change(wanted[at], value)
    return wanted


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
def test_a_first_coordinate_that_is_no_multiple_of_16_bytes(fast, kind):
    """An illegal instruction of an H200, whatever the copy."""
    made = fast.tensor_map(fast.to_device(numbers((9, 64), kind)), (4, 16))
    for text in (load_text(2), store_text(2)):
        with pytest.raises(ptxemu.Fault, match="the first coordinate is not a multiple of 16 bytes"):
            launch(fast, text, made, (8 // np.dtype(kind).itemsize, 0))


def test_what_is_behind_a_row_is_written(fast):
    """16 bytes at a time, as on an H200: the tensor's rows have 19 of 32."""
    array, data = numbers((9, 32), "u1"), numbers(ROOM, "u1", seed=2)
    buffer, wanted = fast.to_device(array), array.copy()
    made = fast.tensor_map(buffer, (3, 32), shape=(9, 19), strides=(32,))
    launch(fast, store_text(2), made, (16, 5), data)
    wanted[5:8, 16:32] = data[START : START + 96].reshape(3, 32)[:, :16]
    assert (np.asarray(buffer.copy_to_host()) == wanted).all()


@pytest.mark.parametrize("coords", [(-4, 0, 0), (0, -1, 0), (0, 0, -1), (-(2**31), 0, 0)])
@pytest.mark.parametrize("reduce", ["", "add"])
def test_copies_to_global_memory_do_not_begin_before_it(fast, coords, reduce):
    """An illegal instruction of an H200; loads may."""
    made = fast.tensor_map(fast.to_device(numbers((5, 6, 8))), (3, 4, 4))
    with pytest.raises(ptxemu.Fault, match="no negative coordinates"):
        launch(fast, store_text(3, reduce=reduce), made, coords)


@pytest.mark.parametrize("mode", SWIZZLES)
def test_swizzled_boxes_go_to_global_memory(fast, mode):
    box, coords = (16, SWIZZLES[mode]), (32, 3)
    rows, array = np.random.default_rng(5).integers(0, 256, box).astype("u1"), numbers((24, 256), "u1")
    buffer = fast.to_device(array)
    launch(fast, store_text(2), fast.tensor_map(buffer, box, swizzle=mode), coords, expected(rows.reshape(-1), mode))
    array[3:19, 32 : 32 + box[1]] = rows
    assert (np.asarray(buffer.copy_to_host()) == array).all()


def wraps(bits):
    return lambda old, new: (int(old) + int(new)) & (1 << bits) - 1


REDUCTIONS = {
    "add": (
        ("u4", wraps(32)),
        ("u8", wraps(64)),
        ("i4", lambda a, b: a + b),
        ("f4", lambda a, b: a + b),
        ("f8", lambda a, b: a + b),
        ("f2", lambda a, b: a + b),
    ),
    "min": tuple((kind, min) for kind in ("u4", "i4", "u8", "i8", "f2")),
    "max": tuple((kind, max) for kind in ("u4", "i4", "u8", "i8", "f2")),
    "inc": (("u4", lambda old, new: 0 if old >= new else old + 1),),
    "dec": (("u4", lambda old, new: new if old == 0 or old > new else old - 1),),
    "and": tuple((kind, lambda a, b: a & b) for kind in ("u4", "u8", "i4")),
    "or": tuple((kind, lambda a, b: a | b) for kind in ("u4", "u8", "i4")),
    "xor": tuple((kind, lambda a, b: a ^ b) for kind in ("u4", "u8")),
}
CASES = [(op, kind, change) for op, cases in REDUCTIONS.items() for kind, change in cases]


@pytest.mark.parametrize(("op", "kind", "change"), CASES, ids=[f"{op}-{kind}" for op, kind, _ in CASES])
def test_reductions(fast, op, kind, change):
    array, data = numbers((9, 16), kind), numbers(ROOM // np.dtype(kind).itemsize, kind, seed=2)
    if kind[0] == "i":
        array, data = array - 100, data - 100
    buffer = fast.to_device(array)
    launch(fast, store_text(2, reduce=op), fast.tensor_map(buffer, (4, 8)), (8, 6), data)
    assert (np.asarray(buffer.copy_to_host()) == stored(array, (4, 8), (8, 6), data, change)).all()


@pytest.mark.parametrize(
    ("op", "kind"), [("add", "i8"), ("or", "i8"), ("min", "f4"), ("min", "f8"), ("inc", "i4"), ("and", "f4"), ("xor", "u2")]
)
def test_reductions_that_do_not_exist(fast, op, kind):
    made = fast.tensor_map(fast.to_device(numbers((9, 16), kind)), (4, 8))
    with pytest.raises(ptxemu.Fault, match="its elements cannot be reduced in this way"):
        launch(fast, store_text(2, reduce=op), made, (0, 0))


ROWS = (4, 7, 0, -1, 5)


def test_four_rows_are_gathered(device):
    array = numbers((8, 32))
    made = device.tensor_map(device.to_device(array), (1, 16))
    got = launch(device, load_text(2, "tile::gather4"), made, ROWS, bytes=4 * 64)
    assert (got == expected(model.gathered(array, [(row,) for row in ROWS[1:]], 4, 16))).all()


def test_four_rows_are_scattered(device):
    array, data = numbers((8, 32)), numbers(ROOM // 4, seed=2)
    buffer, wanted = device.to_device(array), array.copy()
    launch(device, store_text(2, "tile::scatter4"), device.tensor_map(buffer, (1, 16)), ROWS, data)
    for number, row in enumerate(ROWS[1:]):
        if row >= 0:
            wanted[row, 4:20] = data[32 + 16 * number :][:16]
    assert (np.asarray(buffer.copy_to_host()) == wanted).all()


PICTURES = [
    # shape, lower, upper, steps, coordinates, offsets, channels, pixels: all but these in NumPy's order
    ((3, 9, 8), (0,), (0,), (1, 1, 1), (0, 2, 0), (0,), 8, 16),
    ((3, 9, 16), (-1,), (-1,), (1, 2, 1), (4, 1, 0), (2,), 8, 12),
    ((2, 7, 9, 16), (-1, -1), (-1, -1), (1, 1, 1, 1), (4, 4, 3, 0), (1, 0), 8, 64),
    ((2, 7, 9, 16), (0, 0), (-2, -2), (1, 1, 1, 1), (0, 3, 2, 1), (2, 2), 16, 40),
    ((2, 7, 8, 16), (-1, -1), (-1, -1), (1, 2, 2, 1), (0, 3, 1, 0), (1, 1), 4, 32),
    ((2, 4, 5, 6, 8), (-1, -1, 0), (-1, 0, -1), (1, 1, 1, 1, 1), (0, 2, 1, 0, 0), (1, 1, 1), 8, 100),
]


@pytest.mark.parametrize(("shape", "lower", "upper", "steps", "coords", "offsets", "channels", "count"), PICTURES)
def test_pixels_become_columns(device, shape, lower, upper, steps, coords, offsets, channels, count):
    array = numbers(shape)
    made = device.tensor_map(device.to_device(array), mode="im2col", lower=lower, upper=upper, steps=steps, channels=channels,
                             pixels=count)  # fmt: skip
    got = launch(device, load_text(len(shape), "im2col"), made, coords, offsets=offsets, bytes=4 * count * channels)
    places = model.pixels(shape, coords, lower, upper, steps, offsets, count)
    assert (got == expected(model.gathered(array, places, coords[0], channels))).all()


BOX = {"mode": "im2col", "lower": (-1, -1), "upper": (-1, -1), "channels": 8, "pixels": 60}


@pytest.mark.parametrize("coords", [(0, 8, 0, 0), (0, -2, 0, 0), (0, 5, 6, 1), (12, -3, -3, -1), (0, 20, 20, 0)])
def test_a_first_pixel_outside_of_the_box(fast, coords):
    """An illegal instruction of an H200."""
    made = fast.tensor_map(fast.to_device(numbers((2, 7, 9, 16))), **BOX)
    with pytest.raises(ptxemu.Fault, match="the first pixel is not in the box"):
        launch(fast, load_text(4, "im2col"), made, coords, offsets=(1, 1))


def test_columns_do_not_go_to_boxes_that_begin_outside(fast):
    made = fast.tensor_map(fast.to_device(numbers((2, 7, 9, 16))), **BOX)
    with pytest.raises(ptxemu.Fault, match="no negative coordinates"):
        launch(fast, store_text(4, "im2col_no_offs"), made, (0, 1, 1, 0))


def test_columns_become_pixels(device):
    shape, coords = (2, 5, 6, 16), (4, 3, 2, 0)
    array, data = numbers(shape), numbers(ROOM // 4, seed=2)
    buffer, wanted = device.to_device(array), array.copy()
    made = device.tensor_map(buffer, mode="im2col", channels=8, pixels=40)
    launch(device, store_text(4, "im2col_no_offs"), made, coords, data)
    for number, place in enumerate(model.pixels(shape, coords, (0, 0), (0, 0), (1, 1, 1, 1), (0, 0), 40)):
        wanted[(*place, slice(4, 12))] = data[32 + 8 * number :][:8]
    assert (np.asarray(buffer.copy_to_host()) == wanted).all()
