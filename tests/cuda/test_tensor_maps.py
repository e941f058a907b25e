"""cuTensorMapEncode*: the maps they make, and the arguments that they refuse."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ptxemu.process.cuda import library_path
from tests.support import tensor_model as model
from tests.support.driver_api import context, function, launch, load, result, to_device, to_host
from tests.support.places import TESTS
from tests.tensors.kernels import ROOM, load_text

U8, U16, U32, U64, F16, F32 = 0, 1, 2, 4, 6, 7
U4_ALIGN8, U4_ALIGN16, U6_ALIGN16 = 13, 14, 15
SWIZZLES = ("none", "32B", "64B", "128B")


class Map(ctypes.Structure):
    """CUtensorMap, with room to move it to any alignment."""

    _fields_ = [("words", ctypes.c_uint64 * 32)]


def place(room: Map, more: int = 0) -> ctypes.c_void_p:
    start = ctypes.addressof(room)
    return ctypes.c_void_p(start + -start % 64 + more)


def array(kind, values):
    return None if values is None else (kind * max(1, len(values)))(*values)


TILED = {
    "type": U32, "rank": 3, "address": 1 << 20, "dim": (64, 16, 4), "stride": (256, 4096), "box": (16, 8, 2), "step": (1, 1, 1),
    "interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0,
}  # fmt: skip
IM2COL = {
    "type": U16, "rank": 4, "address": 1 << 20, "dim": (64, 14, 9, 4), "stride": (128, 1792, 16128), "lower": (-1, -1),
    "upper": (-1, -1), "channels": 64, "pixels": 128, "step": (1, 1, 1, 1), "interleave": 0, "swizzle": 3, "promotion": 0,
    "fill": 0,
}  # fmt: skip
WIDE = {
    "type": U16, "rank": 4, "address": 1 << 20, "dim": (64, 14, 9, 4), "stride": (128, 1792, 16128), "lower": -1,
    "upper": -1, "channels": 64, "pixels": 128, "step": (1, 1, 1, 1), "interleave": 0, "mode": 0, "swizzle": 3, "promotion": 0,
    "fill": 0,
}  # fmt: skip
NAMES = {"Tiled": TILED, "Im2col": IM2COL, "Im2colWide": WIDE}
ARRAYS = {"dim": ctypes.c_uint64, "stride": ctypes.c_uint64, "box": ctypes.c_uint32, "step": ctypes.c_uint32,
"lower": ctypes.c_int,
          "upper": ctypes.c_int}  # fmt: skip


def encoded(name, at=None, **changes):
    """The error of a call with some arguments changed, and the map."""
    given, room = NAMES[name] | changes, Map()
    assert given.keys() == NAMES[name].keys()
    arguments = [
        array(ARRAYS[key], value) if isinstance(value, tuple) or value is None else ctypes.c_uint64(value & 2**64 - 1)
        for key, value in given.items()
    ]
    where = place(room) if at is None else at(room)
    return result(f"cuTensorMapEncode{name}", where, *arguments), ctypes.string_at(place(room), 128)


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


@pytest.mark.parametrize("number", range(len(SWIZZLES)))
def test_a_kernel_copies_as_its_map_says(number):
    data = np.random.default_rng(number).integers(0, 2**32, (8, 32)).astype("u4")
    error, made = encoded(
        "Tiled", rank=2, address=to_device(data), dim=(32, 8), stride=(128,), box=(8, 6), step=(1, 1), swizzle=number
    )
    assert error == "SUCCESS"
    out, words = to_device(np.zeros(ROOM, "u1")), to_device(np.array([-4, 4, 0, 0, 0, 0, 0], "i4"))
    kernel = function(load(load_text(2, filled=True)), "k")
    launch(kernel, (1, 1, 1), (32, 1, 1), (ctypes.c_char * 128).from_buffer_copy(made), out, words, ctypes.c_uint32(192))
    rows = model.apart(model.gathered(data, model.tile_rows((-4, 4), (6, 8), (1, 1)), -4, 8), 32, SWIZZLES[number])
    box = model.swizzled(np.concatenate([rows, np.zeros(-len(rows) % 128, "u1")]), SWIZZLES[number], 128)
    assert (to_host(out, ROOM, "u1")[128 : 128 + len(box)] == box).all()


VALID = [
    ("Tiled", {}), ("Tiled", {"rank": 1, "stride": None}), ("Tiled", {"dim": (2**32, 1, 1)}), ("Tiled", {"step": (9 - 1, 8, 1)}),
    ("Tiled", {"type": F32, "fill": 1}), ("Tiled", {"promotion": 3}), ("Tiled", {"box": (16, 228, 16)}),
    ("Tiled", {"address": 0}),
    ("Tiled", {"interleave": 1}), ("Tiled", {"interleave": 2, "swizzle": 3}), ("Tiled", {"stride": (2**40 - 16, 16)}),
    ("Im2col", {}), ("Im2col", {"lower": (-128, 127), "upper": (127, 127), "dim": (64, 500, 9, 4)}),
    ("Im2col", {"rank": 3, "lower": (-32768,), "upper": (32767,)}), ("Im2col", {"pixels": 1024}),
    ("Im2colWide", {}), ("Im2colWide", {"mode": 1}), ("Im2colWide", {"rank": 3, "lower": -32768}), ("Im2colWide", {"swizzle": 0}),
]  # fmt: skip
OF_BLACKWELL = [
    ("Tiled", {"type": U6_ALIGN16, "dim": (128, 1, 1), "box": (128, 1, 1), "stride": (96, 96), "swizzle": 3}),
    ("Tiled", {"type": U4_ALIGN16, "dim": (256, 1, 1), "box": (128, 1, 1), "swizzle": 4}),
    ("Tiled", {"type": U4_ALIGN8, "box": (64, 1, 1)}), ("Tiled", {"swizzle": 6}),
    ("Im2colWide", {"swizzle": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes"), VALID)
def test_what_is_valid(name, changes):
    assert encoded(name, **changes)[0] == "SUCCESS"


ALL_OF_BLACKWELL = """
from tests.cuda import test_tensor_maps as tests
with tests.context():
    print(*sorted({tests.encoded(name, **changes)[0] for name, changes in tests.OF_BLACKWELL}))
"""


@pytest.mark.parametrize(("arch", "error"), [("90", "INVALID_VALUE"), ("100", "SUCCESS")])
def test_what_blackwell_added(arch, error):
    command = [sys.executable, "-c", ALL_OF_BLACKWELL]
    variables = os.environ | {"PTXEMU_ARCH": arch}
    done = subprocess.run(command, env=variables, cwd=TESTS.parent, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == f"{error}\n", done.stderr


BOTH = [
    {"type": 16}, {"type": -1}, {"rank": 0}, {"rank": 6}, {"rank": 2**32 - 1}, {"address": (1 << 20) + 8}, {"address": 2**63},
    {"dim": (0, 16, 4, 4)}, {"dim": (2**32 + 1, 16, 4, 4)}, {"dim": (64, 16, 4, 0), "rank": 4}, {"dim": None},
    {"stride": (264, 4096, 4096)}, {"stride": (256, 2**40, 256)}, {"stride": None}, {"step": (1, 0, 1, 1)}, {"step": (1, 1, 9,
    1)},
    {"step": (1, 256, 1, 1)}, {"step": None}, {"interleave": 3}, {"swizzle": 7}, {"swizzle": -1}, {"promotion": 4}, {"fill": 2},
    {"fill": 1, "type": U32}, {"fill": 1, "type": U4_ALIGN8}, {"interleave": 2, "address": (1 << 20) + 16, "swizzle": 1},
]  # fmt: skip
WRONG = [
    *(("Tiled", changes) for changes in BOTH if "dim" not in changes or changes.get("rank") != 4),
    *((name, changes) for name in ("Im2col", "Im2colWide") for changes in BOTH),
    *(("Tiled", changes) for changes in (
        {"box": (0, 8, 2)}, {"box": (16, 0, 2)}, {"box": (16, 8, 257)}, {"box": (260, 8, 2)}, {"box": (2**16 + 16, 8, 2)},
        {"box": (6, 8, 2)}, {"box": (4, 8, 2), "interleave": 1, "type": U8}, {"box": (16, 229, 16)}, {"box": None},
        {"swizzle": 1}, {"box": (32, 8, 2), "swizzle": 2}, {"box": (64, 8, 2), "swizzle": 3},
        {"box": (64, 8, 2), "swizzle": 6}, {"interleave": 1, "rank": 2}, {"type": U6_ALIGN16, "dim": (64, 1, 1), "box": (128, 1,
        1)},
        {"type": U6_ALIGN16, "dim": (128, 1, 1), "box": (64, 1, 1)}, {"type": U4_ALIGN16, "dim": (128, 1, 1), "box": (64, 1, 1)},
        {"type": U4_ALIGN8, "dim": (63, 1, 1), "box": (32, 1, 1)}, {"type": U4_ALIGN8, "box": (48, 1, 1)},
        {"type": U6_ALIGN16, "dim": (128, 1, 1), "box": (128, 1, 1), "address": 1 << 20 | 16},
        {"type": U6_ALIGN16, "dim": (128, 1, 1), "box": (128, 1, 1), "stride": (112, 96)},
        {"type": U6_ALIGN16, "dim": (128, 1, 1), "box": (128, 1, 1), "swizzle": 5},
        {"type": U6_ALIGN16, "dim": (128, 1, 1), "box": (128, 1, 1), "interleave": 1},
    )),
    *(("Im2col", changes) for changes in (
        {"rank": 2}, {"lower": (-129, 0)}, {"upper": (0, 128)}, {"lower": (2**31 - 1, 0)}, {"upper": (-(2**31), 0)},
        {"lower": None},
        {"upper": None}, {"lower": (13, 0)}, {"upper": (0, -10)}, {"channels": 0}, {"channels": 257}, {"pixels": 0},
        {"pixels": 1025},
        {"channels": 128}, {"rank": 5, "dim": (64, 9, 9, 9, 1), "stride": (128,) * 4, "step": (1,) * 5, "lower": (-17, 0, 0),
                            "upper": (0, 0, 0)},
    )),
    *(("Im2colWide", changes) for changes in (
        {"rank": 2}, {"lower": -129}, {"upper": 128}, {"lower": 13, "upper": -1}, {"mode": 2}, {"swizzle": 1}, {"channels": 128},
        {"pixels": 1025}, {"mode": 1, "pixels": 5000},
    )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes"), WRONG)
def test_what_is_not_valid(name, changes):
    error, made = encoded(name, **changes)
    assert error == "INVALID_VALUE" and made == bytes(128)


@pytest.mark.parametrize("name", NAMES)
def test_where_a_map_cannot_be(name):
    assert encoded(name, at=lambda room: None)[0] == "INVALID_VALUE"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("more", [1, 16, 32])
def test_a_map_anywhere(name, more):
    """The driver does not ask for the alignment that the type has."""
    room = Map()
    assert encoded(name, at=lambda _: place(room, more))[0] == "SUCCESS"
    assert ctypes.string_at(ctypes.addressof(room) + -ctypes.addressof(room) % 64 + more, 128) == encoded(name)[1]


def test_another_address():
    room = Map()
    _, made = encoded("Tiled")
    _, other = encoded("Tiled", address=5 << 20)
    ctypes.memmove(place(room), made, 128)
    assert result("cuTensorMapReplaceAddress", place(room), 5 << 20) == "SUCCESS"
    assert ctypes.string_at(place(room), 128) == other
    assert result("cuTensorMapReplaceAddress", place(room), (5 << 20) + 8) == "INVALID_VALUE"
    assert result("cuTensorMapReplaceAddress", None, 5 << 20) == "INVALID_VALUE"
    assert result("cuTensorMapReplaceAddress", place(room), 0) == "INVALID_VALUE"
    assert result("cuTensorMapReplaceAddress", place(room), 1 << 57) == "INVALID_VALUE"
    assert ctypes.string_at(place(room), 128) == other


def test_another_address_of_what_is_no_map():
    """Nobody looks at the rest, and bits beyond those of addresses stay."""
    room = Map()
    ctypes.memset(place(room), 0xFF, 128)
    assert result("cuTensorMapReplaceAddress", place(room), 5 << 20) == "SUCCESS"
    assert ctypes.string_at(place(room), 128) == bytes.fromhex("00005000000000fe") + b"\xff" * 120


def test_threads_without_a_context_make_none():
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(encoded, "Tiled").result()[0] == "INVALID_CONTEXT"


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not here")
def test_a_program_with_tiles_in_shared_memory(tmp_path):
    made, folder = tmp_path / "tiles", library_path()
    options = ["-cudart", "shared", "-std=c++17", "-gencode", "arch=compute_90,code=compute_90", f"-L{folder}", "-l:libcuda.so.1"]
    subprocess.run(["nvcc", *options, "-o", made, TESTS / "cuda" / "data" / "tiles.cu"], check=True, timeout=200)
    variables = os.environ | {"LD_LIBRARY_PATH": str(folder), "PTXEMU_ARCH": "90"}
    done = subprocess.run([made], env=variables, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "0 wrong\n", done.stderr
