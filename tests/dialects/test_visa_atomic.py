"""TYPED_ATOMIC against the notes' examples, rules and vectors, and against the models of surfaces and atomic updates."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import ptxemu
from ptxemu.dialects.operations import OPERATIONS
from tests.support import atomic_model
from tests.support.places import SPEC
from tests.support.surface_model import ModelSurface
from tests.support.visa_harness import device, memory, run

FORMATS = {32: "R32_UINT", 16: "R16_UINT"}
OPS = {entry.visa: entry for entry in OPERATIONS if entry.visa}
NULLS = {"inc": ("V0", "V0"), "dec": ("V0", "V0"), "predec": ("V0", "V0"), "cmpxchg": ("A", "B"), "fcmpwr": ("A", "B")}


def rows(name: str) -> list[dict[str, str]]:
    with (SPEC / name).open(newline="") as file:
        return list(csv.DictReader(file))


def texels(values, format="R32_UINT"):
    dtype = np.uint16 if "16" in format else np.uint32
    data = np.array(values, dtype)
    return device().surface(data.view(np.float16 if "16" in format else np.float32) if "FLOAT" in format else data,
                            format=format, geometry="1d")  # fmt: skip


def atomic(op: str, *, half: bool = False, mask: str = "M1, 8", v: str = "V0", r: str = "V0", lod: str = "V0", dst: str = "D.0"):
    a, b = NULLS.get(op, ("A", "V0"))
    operands = [f"{name}.0" if name in "AB" else name for name in (a, b)]
    return f"TYPED_ATOMIC.{op.upper()}{'.16' if half else ''} ({mask}) T6 U.0 {v} {r} {lod} {' '.join(operands)} {dst}"


LANES = np.arange(8)


def update(op, old, src0=0, src1=0, *, half=False, format=None, options=None, dst="D.0"):
    """One thread: channel n updates texel n; the texels' bits and what is returned."""
    width = 16 if half else 32
    surface = texels(old, format or FORMATS[width])
    got = run(
        atomic(op, half=half, dst=dst), {"U": LANES, "A": src0, "B": src1, "D": 0xEEEEEEEE}, surface, ["D"], options=options
    )
    bits = surface.copy_to_host().view(np.uint16 if half else np.uint32)
    return bits.tolist(), got["D"][0].tolist()


# ---------------------------------------------------------------- operations

VECTOR_OPS = {
    "add": "add", "sub": "sub", "umin": "min", "umax": "max", "smin": "imin", "smax": "imax", "and": "and", "or": "or",
    "xor": "xor", "inc": "inc", "dec": "dec", "predec": "predec", "xchg": "xchg", "cmpxchg_visa": "cmpxchg",
    "fmin_visa": "fmin", "fmax_visa": "fmax", "fcmpwr_visa": "fcmpwr",
}  # fmt: skip
VECTORS = [row for row in rows("vectors_atomics.csv") if row["model_op"] in VECTOR_OPS and row["bits"] != "64"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "bits"), sorted({(row["model_op"], row["bits"]) for row in VECTORS}), ids=str)
@pytest.mark.parametrize("dst", ["D.0", "V0"])
def test_atomic_vectors(name, bits, dst):
    """Every vector that vISA can express, eight channels at a time; memory is the same without a destination."""
    chosen = [row for row in VECTORS if (row["model_op"], row["bits"]) == (name, bits)]
    op, half = VECTOR_OPS[name], bits == "16"
    for start in range(0, len(chosen), 8):
        part = (chosen[start : start + 8] * 8)[:8]
        old, src0, src1, new, returned = (
            [int(row[key] or "0", 16) for row in part] for key in ("old", "src0", "src1", "new", "returned")
        )
        junk = 0xABCD0000 if half else 0
        assert update(op, old, [v | junk for v in src0], [v | junk for v in src1], half=half, dst=dst) == (
            new, returned if dst != "V0" else [0xEEEEEEEE] * 8,
        )  # fmt: skip


EXAMPLES = [
    ("dec", 0, 0, 0, 0xFFFFFFFF, 0),
    ("predec", 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF),
    ("inc", 0xFFFFFFFF, 0, 0, 0, 0xFFFFFFFF),
    ("cmpxchg", 5, 9, 5, 9, 5),
    ("cmpxchg", 6, 9, 5, 6, 6),
    ("fcmpwr", 5, 9, 5, 5, 5),
    ("fcmpwr", 5, 5, 9, 9, 5),
    ("fcmpwr", 0x80000000, 0, 0x40000000, 0x40000000, 0x80000000),
    ("fcmpwr", 0x7FC00000, 0x7FC00000, 1, 0x7FC00000, 0x7FC00000),
    ("fmin", 0x7FC00001, 0xFF800001, 0, 0x7FC00000, 0x7FC00001),
    ("fmax", 0x7FC00001, 0x3F800000, 0, 0x3F800000, 0x7FC00001),
    ("fmin", 0, 0x80000000, 0, 0x80000000, 0),
    ("fmax", 0x80000000, 0, 0, 0, 0x80000000),
    ("fmax", 1, 2, 0, 2, 1),
]


@pytest.mark.parametrize(("op", "old", "src0", "src1", "new", "returned"), EXAMPLES)
def test_examples(op, old, src0, src1, new, returned):
    """examples."""
    assert update(op, [old] * 8, src0, src1) == ([new] * 8, [returned] * 8)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("op", OPS)
def test_every_operation_on_edges(op, half):
    """0, 1, the greatest and the sign boundary against each other, and special floats, against the model."""
    width = 16 if half else 32
    edges = [0, 1, (1 << width - 1) - 1, 1 << width - 1, (1 << width) - 1]
    edges += [0x7C00, 0xFC00, 0x7E00, 0x3C00] if half else [0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000]
    cases = [(old, a, b) for old in edges for a in edges for b in edges[1:4]]
    entry = OPS[op]
    kind = ("f" if entry.classes == "f" else "s" if entry.classes == "s" else "u") + str(width)
    olds, a, b = (np.array(column + (-len(column) % 8) * (0,)).reshape(-1, 8) for column in zip(*cases, strict=True))
    surface = texels(olds.ravel(), FORMATS[width])
    places = np.arange(olds.size).reshape(-1, 8)
    got = run(atomic(op, half=half), {"U": places, "A": a, "B": b, "D": 7}, surface, ["D"])
    after = surface.copy_to_host().tolist()
    for index, (old, src0, src1) in enumerate(cases):
        first, second = (src1, src0) if op == "cmpxchg" else (src0, src1)
        new = atomic_model.apply(entry.name.lower(), kind, old, first, second)
        if new == atomic_model.CANONICAL_NAN.get(kind) and op in ("fmin", "fmax"):
            new = 0x7E00 if half else 0x7FC00000
        assert after[index] == new, (old, src0, src1)
        assert int(got["D"].flat[index]) == (new if op == "predec" else old), (old, src0, src1)


def test_a_nan_may_leave_memory():
    """A nan may leave memory."""
    for op in ("fmin", "fmax"):
        new, _ = update(op, [0x3F800000] * 8, 0x7FC00000, options={"fminmax_nan": "keep_old"})
        assert new == [0x3F800000] * 8


# ---------------------------------------------------------------- 16-bit elements


def test_half_example():
    """Half example."""
    assert update("add", [0xFFFF] * 8, 0x00050002, half=True) == ([1] * 8, [0xFFFF] * 8)


def test_only_the_element_changes():
    """Only the element changes."""
    surface = texels([0x1111] * 16, "R16_UINT")
    run(atomic("add", half=True), {"U": 2 * LANES + 1, "A": 0xFFFF0001, "D": 0}, surface)
    assert surface.copy_to_host().tolist() == [0x1111, 0x1112] * 8


def test_the_upper_half_of_a_result():
    """The upper half of a result."""
    for op in ("imin", "add"):
        assert update(op, [0x8000] * 8, 0, half=True)[1] == [0x8000] * 8
    assert update("imin", [0x8000] * 8, 0, half=True, options={"half_result": "sign"})[1] == [0xFFFF8000] * 8
    assert update("add", [0x8000] * 8, 0, half=True, options={"half_result": "sign"})[1] == [0x8000] * 8


# ---------------------------------------------------------------- sizes, masks, predicates

EM = 0x0F0F00FF
CHANNELS = {f"M{number}": 4 * (number - 1) for number in range(1, 9)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("mask", "no_mask"), [("M1", False), ("M1", True), ("M2", False), ("M3", False), ("M5", False),
                                               ("M5", True), ("M7", False)])  # fmt: skip
@pytest.mark.parametrize("guard", ["", "P1", "!P1", "P1.any", "!P1.any", "P1.all", "!P1.all"])
def test_masks_and_predicates(mask, no_mask, guard):
    """Only enabled channels take part; elements of disabled channels keep what they had."""
    offset = CHANNELS[mask]
    words = [0, 0xFFFFFFFF, 0xFF, 0x5A5A5A5A, 0x00FF0F01]
    text = atomic("add", mask=f"{mask}{'_NM' if no_mask else ''}, 8")
    surface = texels([0] * 8 * len(words))
    places = np.arange(8 * len(words)).reshape(-1, 8)
    got = run(
        f"({guard}) {text}" if guard else text, {"U": places, "A": 5, "D": 9, "P1": words}, surface, ["D"], head=f".em 0x{EM:x}"
    )["D"]
    for thread, word in enumerate(words):
        bits = [bool(word >> offset + n & 1) for n in range(8)]
        if guard.endswith("any"):
            bits = [any(bits)] * 8
        if guard.endswith("all"):
            bits = [all(bits)] * 8
        if not guard:
            bits = [True] * 8
        enabled = [bit != guard.startswith("!") and (no_mask or bool(EM >> offset + n & 1)) for n, bit in enumerate(bits)]
        assert surface.copy_to_host()[places[thread]].tolist() == [5 if on else 0 for on in enabled]
        assert got[thread].tolist() == [0 if on else 9 for on in enabled]


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_execution_sizes(size):
    """Execution sizes."""
    surface = texels([3] * 8)
    got = run(atomic("add", mask=f"M1, {size}"), {"U": LANES, "A": 1, "D": 9}, surface, ["D"])["D"][0]
    assert surface.copy_to_host().tolist() == [4] * size + [3] * (8 - size)
    assert got.tolist() == [3] * size + [9] * (8 - size)


@pytest.mark.parametrize("mask", ["8", "M1, 8", "NoMask, 8", "m1_nm, 8"])
def test_spellings_of_the_execution_size(mask):
    """Spellings of the execution size."""
    surface = texels([0] * 8)
    run(atomic("inc", mask=mask), {"U": LANES, "D": 0}, surface)
    assert surface.copy_to_host().tolist() == [1] * 8


def test_eight_channels_on_one_texel():
    """Ascending channel order."""
    surface = texels([10] * 2)
    got = run(atomic("inc"), {"U": [1] * 8, "D": 0}, surface, ["D"])
    assert surface.copy_to_host().tolist() == [10, 18]
    assert got["D"][0].tolist() == list(range(10, 18))
    got = run(atomic("xchg"), {"U": [0] * 8, "A": LANES, "D": 0}, surface, ["D"])
    assert surface.copy_to_host()[0] == 7 and got["D"][0].tolist() == [10, 0, 1, 2, 3, 4, 5, 6]


def test_the_example_of_the_notes():
    """(P3) TYPED_ATOMIC.CMPXCHG: new values in V42, comparands in V43, old values to V44."""
    surface = device().surface(np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint32), format="R32_UINT")
    values = {
        "V40": [0, 1, 2, 3, 0, 1, 2, 3], "V41": [0, 0, 0, 0, 1, 1, 1, 1], "V42": range(20, 28),
        "V43": [1, 2, 3, 4, 5, 6, 0, 0], "V44": 99, "P3": 0b11101110,
    }  # fmt: skip
    line = "(P3) TYPED_ATOMIC.CMPXCHG (M1, 8) T6 V40.0 V41.0 V0.0 V0.0 V42.0 V43.0 V44.0"
    got = run(line, values, surface, ["V44"])["V44"][0]
    assert surface.copy_to_host().tolist() == [[1, 21, 22, 23], [5, 25, 7, 8]]
    assert got.tolist() == [99, 2, 3, 4, 99, 6, 7, 8]


def test_results_may_overwrite_operands():
    """A message takes all its operands before it returns anything, wherever the result lies."""
    surface = texels(range(100, 116))
    wide = ".decl W v_type=G type=ud num_elts=16\n.decl W0 v_type=G type=ud num_elts=8 alias=<W, 0>"
    lines = ["mov (M1, 8) W(0,0)<1> U(0,0)<8;8,1>", "TYPED_ATOMIC.ADD (M1, 8) T6 W.0 V0 V0 V0 A.0 V0 W.4",
             "mov (M1, 8) D(0,0)<1> W(0,1)<8;8,1>"]  # fmt: skip
    got = run(lines, {"U": LANES, "A": 1, "D": 0}, surface, ["D"], head=wide)["D"][0]
    assert got.tolist() == list(range(100, 108))
    assert surface.copy_to_host().tolist() == [*range(101, 109), *range(108, 116)]


# ---------------------------------------------------------------- surfaces, coordinates, levels

SHAPES = {"1d": (9,), "1d_buffer": (9,), "2d": (6, 9), "3d": (5, 6, 9), "a1d": (4, 9), "a2d": (4, 6, 9), "cube": (6, 6, 6),
          "acube": (12, 6, 6)}  # fmt: skip
AXES = {"1d": "x", "1d_buffer": "x", "2d": "xy", "3d": "xyz", "a1d": "xl", "a2d": "xyl", "cube": "xyl", "acube": "xyl"}
LAYOUTS = {"pitch": {}, "block_linear": {"block_height_log2": 1}}


def model_of(surface, elem=4):
    d = surface.surface.descriptor
    return ModelSurface(surface.surface.geometry, elem, d.width, d.height, d.depth, d.layers, layout=surface.surface.layout,
                        bh=d.block_h_log2, bd=d.block_d_log2, n_levels=d.levels)  # fmt: skip


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("geometry", SHAPES)
def test_surface_types(geometry, layout, half):
    """Every coordinate and the level at 0, last, last + 1 and 0xffffffff: sums at the model's places."""
    axes, size = AXES[geometry], 2 if half else 4
    levels = 3 if geometry != "1d_buffer" else 1
    if geometry in ("1d", "1d_buffer") and layout != "pitch":
        layout = "linear" if geometry == "1d_buffer" else layout
    surface = device().surface(SHAPES[geometry], format=FORMATS[8 * size], geometry=geometry, layout=layout,
                               levels=levels, **(LAYOUTS.get(layout, {})))  # fmt: skip
    model = model_of(surface, size)
    extents = {"x": model.width, "y": model.height, "z": model.depth, "l": model.layers}
    columns = [(0, extents[axis] // 2, extents[axis] - 1, extents[axis], 0xFFFFFFFF) for axis in axes]
    cases = np.array(np.meshgrid(*columns, (0, 1, levels - 1, levels, 0xFFFFFFFF))).reshape(len(axes) + 1, -1).T
    cases = np.concatenate([cases, np.full((-len(cases) % 8, len(axes) + 1), 0xFFFFFFFF)])
    values = {name: cases[:, place].reshape(-1, 8) for place, name in enumerate("UVR"[: len(axes)])}
    values["L"] = cases[:, -1].reshape(-1, 8)
    given = {name.lower(): f"{name}.0" if name in values else "V0" for name in "VR"}
    memory(surface)[:] = 0
    got = run(
        atomic("add", half=half, lod="L.0", **given), {**values, "A": 3, "D": 9}, surface, ["D"]
    )["D"].ravel()  # fmt: skip
    expected = np.zeros(surface.surface.total_bytes, np.uint8).view(f"u{size}")
    for index, case in enumerate(cases.tolist()):
        at = dict(zip(axes, case, strict=False))
        place = model.resolve("texel", size, at["x"], at.get("y", 0), at.get("z", 0), at.get("l", 0), "zero", level=case[-1])
        if isinstance(place, int):
            expected[place // size] += 3
        else:
            assert got[index] == 0
    assert expected.any()
    assert (memory(surface).view(f"u{size}") == expected).all()


def test_level_example():
    """A 10 x 6 surface with three levels: level 1 is 5 x 3."""
    surface = device().surface((6, 10), format="R32_UINT", levels=3)
    values = {"U": [5, 4, 4, 4, 0, 0, 0, 0], "V": [0, 2, 3, 2, 9, 9, 9, 9], "L": [1, 1, 1, 0, 0, 0, 0, 0], "A": 7, "D": 9}
    got = run(atomic("sub", v="V.0", lod="L.0"), values, surface, ["D"])["D"][0]
    assert got.tolist() == [0] * 8
    assert surface.copy_to_host(1).nonzero() == (2, 4) and surface.copy_to_host(0).nonzero() == (2, 4)
    run(atomic("sub", v="V.0"), values, surface)
    assert surface.copy_to_host(1).sum() == 2**32 - 7, "the null variable is level 0"


BOUNDS = [row for row in rows("vectors_bounds.csv") if row["clamp"] == "zero" and row["x_mode"] != "byte"]
BOUNDS = [row for row in BOUNDS if row["access_bytes"] in ("2", "4")]


@pytest.mark.parametrize("key", sorted({(row["geom"], row["access_bytes"]) for row in BOUNDS}), ids="-".join)
def test_bounds_vectors(key):
    """Vectors in units of the access with the policy of vISA; negative numbers are large ones."""
    geometry, size = key[0], int(key[1])
    for row in (row for row in BOUNDS if (row["geom"], row["access_bytes"]) == key):
        width, height, depth, layers = (int(row[name]) for name in ("width_bytes", "height", "depth", "layers"))
        shape = {"1d": (width // size,), "1d_buffer": (width // size,), "2d": (height, width // size),
                 "3d": (depth, height, width // size), "a1d": (layers, width // size),
                 "a2d": (layers, height, width // size)}[geometry]  # fmt: skip
        surface = device().surface(shape, format=FORMATS[8 * size], geometry=geometry)
        axes = {"x": row["x"], "y": row["y"], "z": row["z"], "l": row["layer"]}
        values = {name: int(axes[axis]) for name, axis in zip("UVR", AXES[geometry], strict=False)}
        given = {name.lower(): f"{name}.0" if name in values else "V0" for name in "VR"}
        got = run(atomic("xchg", half=size == 2, mask="M1, 1", **given), {**values, "A": 0x0102, "D": 9}, surface, ["D"])
        expected = np.zeros(surface.surface.total_bytes, np.uint8)
        if row["outcome"] == "ok":
            place = [int(row[name]) for name in ("eff_x_byte", "eff_y", "eff_z", "eff_layer")]
            at = model_of(surface, size).offset(*place)
            expected[at : at + 2] = (2, 1)
        assert (memory(surface) == expected).all(), row
        assert got["D"][0, 0] == 0


@pytest.mark.parametrize("geometry", ["1d", "a1d", "2d", "a2d", "3d", "cube"])
def test_coordinates_must_be_those_of_the_surface(geometry):
    """A variable where the surface has no coordinate, or none where it has one, is an error.

    The options ignore the first and take zero for the second; a surplus coordinate is then never out of bounds.
    """
    right = len(AXES[geometry])
    both = {"surplus_coordinate": "ignore", "missing_coordinate": "zero"}
    for v, r in ((0, 0), (1, 0), (0, 1), (1, 1)):
        surplus, missing = (v and right < 2) or (r and right < 3), (not v and right > 1) or (not r and right > 2)
        text = atomic("inc", v="V.0" if v else "V0", r="R.0" if r else "V0")
        allowed = [both] + [{}] * (not surplus and not missing) + [{"surplus_coordinate": "ignore"}] * (not missing)
        allowed += [{"missing_coordinate": "zero"}] * (not surplus)
        for options in ({}, {"surplus_coordinate": "ignore"}, {"missing_coordinate": "zero"}, both):
            surface = device().surface(SHAPES[geometry], format="R32_UINT", geometry=geometry)
            values = {"U": LANES // 4, "V": LANES % 2 if right > 1 else 100, "R": 2 if right > 2 else 100, "D": 9}
            if options not in allowed:
                with pytest.raises(ptxemu.Fault, match="surface geometry mismatch"):
                    run(text, values, surface, options=options)
                continue
            run(text, values, surface, options=options)
            want = np.zeros(SHAPES[geometry], np.uint32)
            place = (LANES // 4, LANES % 2 if v and right > 1 else 0 * LANES, 2 * bool(r) + 0 * LANES)[:right]
            np.add.at(want, place[::-1], 1)
            assert (surface.copy_to_host() == want).all(), (options, v, r)


# ---------------------------------------------------------------- out of bounds and errors


@pytest.mark.parametrize("op", OPS)
def test_out_of_bounds_returns_zero(op):
    """Out of bounds returns zero."""
    surface = texels([5] * 4)
    got = run(atomic(op), {"U": LANES, "A": 5, "B": 5, "D": 9}, surface, ["D"])["D"][0]
    assert got[4:].tolist() == [0] * 4 and got[0] == (4 if op == "predec" else 5)


def test_an_empty_slot_acts_as_out_of_bounds():
    """An empty slot acts as out of bounds."""
    text = ".kernel k\n.decl U v_type=G type=ud num_elts=8\n.decl T9 v_type=T num_elts=1\n.out U out\n"
    text += "mov (M1, 8) U(0,0)<1> 0x7:ud\nTYPED_ATOMIC.INC (M1, 8) T9 U.0 V0 V0 V0 V0 V0 U.0\n"
    out = np.ones((2, 8), np.uint32)
    ptxemu.loads(text, dialect="visa")["k"][1, 2](out)
    assert not out.any()
    with pytest.raises(ptxemu.Fault, match="unbound surface"):
        ptxemu.loads(text, dialect="visa", options={"invalid_header": "fault"})["k"][1, 2](out)


def test_bindless_surfaces():
    """T252 holds a handle; it starts as one of no surface."""
    text = """.kernel k
    .decl V33 v_type=G type=uq num_elts=1
    .decl V40 v_type=G type=ud num_elts=8
    .input V33
    .in V40 x
    .out V40 old
    TYPED_ATOMIC.INC (M1, 8) T252 V40.0 V0 V0 V0 V0 V0 V0
    movs (M1, 1) T252(0) V33(0,0)<0;1,0>
    TYPED_ATOMIC.INC (M1, 8) T252 V40.0 V0 V0 V0 V0 V0 V40.0"""
    surface, old = texels([5] * 8), np.zeros((1, 8), np.uint32)
    ptxemu.loads(text, dialect="visa", device=device())["k"][1, 1](surface, LANES.astype(np.uint32), old)
    assert surface.copy_to_host().tolist() == [6] * 8 and old.tolist() == [[5] * 8]


@pytest.mark.parametrize("format", ["R32G32_UINT", "R16_UINT", "R8G8B8A8_UINT", "R8_UINT"])
def test_formats(format):
    """formats."""
    surface = device().surface((8,), format=format, geometry="1d")
    with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
        run(atomic("add"), {"U": LANES, "A": 1, "D": 0}, surface)
    if format != "R16_UINT":
        with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
            run(atomic("add", half=True), {"U": LANES, "A": 1, "D": 0}, surface)


def test_integers_on_floats_are_bits_unless_strict():
    """Integers on floats are bits unless strict."""
    assert update("add", [0x3F800000] * 8, 1, format="R32_FLOAT")[0] == [0x3F800001] * 8
    assert update("fmax", [0x3F800000] * 8, 0x40000000, format="R32_FLOAT")[0] == [0x40000000] * 8
    assert update("fmax", [0x3C00] * 8, 0x4000, half=True, format="R16_FLOAT")[0] == [0x4000] * 8
    for op, format, fits in [("add", "R32_FLOAT", False), ("fmax", "R32_FLOAT", True), ("add", "R32_SINT", True),
                             ("fmax", "R32_UINT", False)]:  # fmt: skip
        surface = device().surface((8,), format=format, geometry="1d")
        values = {"U": LANES, "A": 1, "D": 0}
        if fits:
            run(atomic(op), values, surface, strict=True)
            continue
        with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
            run(atomic(op), values, surface, strict=True)


def test_typed_float_operations_may_be_refused():
    """Typed float operations may be refused."""
    with pytest.raises(ptxemu.PtxError, match=r"'\.fmax' is not an operation on typed surfaces"):
        run(atomic("fmax"), {"U": 0, "A": 0, "D": 0}, options={"strict_typed_float": "reject"})


# ---------------------------------------------------------------- raw operands


def test_raw_operands_may_begin_anywhere():
    """An offset that begins no register is tolerated, by an option an error; what does not fit is one always."""
    surface = texels(range(16))
    head = ".decl W v_type=G type=ub num_elts=40\n.decl X v_type=G type=ud num_elts=8 alias=<W, 3>"
    lines = ["mov (M1, 8) X(0,0)<1> U(0,0)<8;8,1>", atomic("add").replace("U.0", "W.3")]
    got = run(lines, {"U": LANES, "A": 1, "D": 0}, surface, ["D"], head=head)["D"][0]
    assert got.tolist() == LANES.tolist() and surface.copy_to_host().tolist() == [*range(1, 9), *range(8, 16)]
    for place, byte in (("W.3", 3), ("X.0", 0)):
        with pytest.raises(ptxemu.PtxError, match=f"byte {byte} of '{place[0]}' begins no register"):
            run(atomic("add").replace("U.0", place), {"A": 1, "D": 0}, head=head, options={"raw_alignment": "register"})
    run(atomic("add"), {"U": LANES, "A": 1, "D": 0}, surface, options={"raw_alignment": "register"})
    with pytest.raises(ptxemu.PtxError, match="8 dwords from byte 9 on do not fit 'W', which has 40 bytes"):
        run(atomic("add").replace("U.0", "W.9"), {"A": 1, "D": 0}, head=head)
