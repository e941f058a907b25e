"""SURED against the notes' examples and vectors, and against the models of surfaces and atomic updates."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.dialects.operations import OPERATIONS
from tests.support import atomic_model
from tests.support.sass_harness import device, memory, pairs, run
from tests.support.spec_vectors import rows, sass_accepts
from tests.support.surface_model import MISALIGNED, NONE, TRAP, ModelSurface

DIMS = {"1d": "1D", "1d_buffer": "1D_BUFFER", "a1d": "1D_ARRAY", "2d": "2D", "a2d": "2D_ARRAY", "3d": "3D"}
CLAMPS = {"trap": ".TRAP", "clamp": "", "zero": ".IGN"}
OUTCOMES = {"trap": TRAP, "misaligned": MISALIGNED, "zero_or_drop": NONE}
FAULTS = {TRAP: "surface access out of bounds", MISALIGNED: "misaligned address"}


def coordinates(dim: str, x: int, y: int = 0, z: int = 0, layer: int = 0) -> dict[str, int]:
    """Ra as SASS packs it: the layer comes last."""
    places = {"1D": (x,), "1D_BUFFER": (x,), "1D_ARRAY": (x, layer), "2D": (x, y), "2D_ARRAY": (x, y, layer), "3D": (x, y, z)}
    return {f"R{4 + place}": value for place, value in enumerate(places[dim])}


def words(surface):
    return memory(surface).view(np.uint32)


# ---------------------------------------------------------------- worked examples


@pytest.fixture
def example():
    """R32_UINT, width 16, height 4, pitch 64, all zero."""
    return device().surface((4, 16), format="R32_UINT")


EXAMPLES = [
    ("SURED.D.BA.2D.ADD.IGN", 8, 1, 72, 4),
    ("SURED.D.2D.ADD.IGN", 8, 1, 96, 4),
    ("SURED.D.2D.ADD.U64.IGN", 7, 0, 56, 8),
    ("SURED.D.2D.ADD.U64.IGN", 8, 0, None, 8),
    ("SURED.D.BA.2D.ADD", 64, -3, 60, 4),
    ("SURED.D.BA.2D.ADD.U64", 64, 9, 248, 8),
]


@pytest.mark.parametrize(("text", "x", "y", "byte", "size"), EXAMPLES, ids=lambda value: str(value))
def test_example(example, text, x, y, byte, size):
    """example."""
    run(f"{text} [R4], R8, 0x52", {"R4": x, "R5": y, **pairs(5)}, example)
    expected = np.zeros(256, np.uint8)
    if byte is not None:
        expected[byte : byte + size] = np.frombuffer((5).to_bytes(size, "little"), np.uint8)
    assert (memory(example) == expected).all()


def test_example_trap(example):
    """Example trap."""
    with pytest.raises(ptxemu.Fault, match=r"surface access out of bounds.*x=-4, y=0"):
        run("SURED.D.BA.2D.ADD.TRAP [R4], R8, 0x52", {"R4": -4, "R5": 0, "R8": 5}, example)
    assert not memory(example).any()


def test_example_misaligned(example):
    """Example misaligned."""
    with pytest.raises(ptxemu.Fault, match="misaligned"):
        run("SURED.D.BA.2D.ADD.IGN [R4], R8, 0x52", {"R4": 6, "R5": 0, "R8": 5}, example)
    assert not memory(example).any()
    run("SURED.D.BA.2D.ADD.IGN [R4], R8, 0x52", {"R4": 6, "R5": 0, "R8": 5}, example, options={"align": "mask"})
    assert words(example)[1] == 5 and words(example).sum() == 5


def test_the_reference_example():
    """The reference example."""
    surface = device().surface((8, 8), format="R32_UINT")
    registers = {"R2": [1, 2, 1], "R3": [3, 3, 3], "R4": [10, 20, 30], "R6": 3}
    run("SURED.D.2D.ADD.U32 [R2], R4, R6; # surface header in R6", registers, surface)
    assert surface.copy_to_host()[3].tolist() == [0, 40, 20, 0, 0, 0, 0, 0]


# ---------------------------------------------------------------- vectors

BOUNDS = [row for row in rows("bounds") if sass_accepts(row)]


def form(row: dict[str, str]) -> tuple[str, ...]:
    return tuple(row[name] for name in ("geom", "x_mode", "access_bytes", "clamp", "align_policy"))


@pytest.mark.parametrize("key", sorted({form(row) for row in BOUNDS}), ids="-".join)
def test_bounds_vectors(key):
    """Every vector of 4- and 8-byte accesses; SASS takes 16 bits of the layer."""
    geom, mode, size, clamp, align = key
    assert geom in DIMS
    words_ = [f"SURED.D{'.BA' if mode == 'byte' else ''}", DIMS[geom], "ADD", *(["U64"] if size == "8" else [])]
    text = f"{'.'.join(words_)}{CLAMPS[clamp]} [R4], R8, 0x52"
    for row in (row for row in BOUNDS if form(row) == key):
        extents = [int(row[name]) for name in ("width_bytes", "height", "depth", "layers")]
        model = ModelSurface(geom, 1, *extents)
        surface = device().surface(_shape(geom, extents), format="R8_UINT", geometry=geom)
        where = [int(row[name]) for name in ("x", "y", "z", "layer")]
        expected: int | str
        if row["outcome"] == "ok":
            expected = model.offset(*(int(row[name]) for name in ("eff_x_byte", "eff_y", "eff_z", "eff_layer")))
        else:
            expected = OUTCOMES[row["outcome"]]
        if where[3] != where[3] & 0xFFFF:
            scaled = "byte" if mode == "byte" else "scaled"
            expected = model.resolve(scaled, int(size), *where, clamp, align, layer_bits=16)
        registers = {**coordinates(DIMS[geom], *where), **pairs(0x0102030405060708)}
        check(text, registers, surface, expected, int(size), 0x0102030405060708, {"align": align})


def check(text, registers, surface, expected, size, value, options):
    """Run one lane on zeros: the sum lies at the expected place, or the expected fault comes and nothing is written."""
    if expected in FAULTS:
        with pytest.raises(ptxemu.Fault, match=FAULTS[expected]):
            run(text, registers, surface, options=options)
    else:
        run(text, registers, surface, options=options)
    wanted = np.zeros(surface.surface.total_bytes, np.uint8)
    if isinstance(expected, int):
        wanted[expected : expected + size] = np.frombuffer(value.to_bytes(8, "little")[:size], np.uint8)
    assert (memory(surface) == wanted).all(), (text, registers)


def _shape(geom: str, extents: list[int]) -> tuple[int, ...]:
    width, height, depth, layers = extents
    return {
        "1d": (width,), "1d_buffer": (width,), "2d": (height, width), "3d": (depth, height, width), "a1d": (layers, width),
        "a2d": (layers, height, width),
    }[geom]  # fmt: skip


# ---------------------------------------------------------------- against the models

LAYOUTS = [("pitch", {}), ("block_linear", {"block_height_log2": 1}), ("block_linear", {"gob_order": "linear"})]
ENGINE = {"U32": "u32", "S32": "s32", "SD32": "u32", "U64": "u64", "S64": "s64", "SD64": "u64", "F32.FTZ.RN": "f32",
          "F16x2.RN": "f16x2", "F16x2.FTZ.RN": "f16x2"}  # fmt: skip
CASES = [(entry, size) for entry in OPERATIONS for size in entry.sured]


@pytest.mark.parametrize(("entry", "size"), CASES, ids=lambda value: getattr(value, "name", value))
def test_every_operation_and_size(entry, size):
    """40 lanes with equal and different texels, in lane order, in every dim, layout and clamp in turn."""
    seed = CASES.index((entry, size))
    rng = np.random.default_rng(seed)
    dim = list(DIMS.values())[seed % 6]
    geom = next(name for name, word in DIMS.items() if word == dim)
    layout, more = LAYOUTS[seed % 3] if dim not in ("1D", "1D_BUFFER") else ("pitch", {})
    clamp = [".IGN", ".NEAR", ""][seed // 6 % 3]
    byte = seed % 2 == 1
    type_ = ENGINE[size]
    width = atomic_model.bits_of(type_) // 8
    extents = [12, 5, 3, 4] if geom == "3d" else [12, 5, 1, 4]
    if geom in ("1d", "1d_buffer", "a1d"):
        extents[1] = 1
    if geom not in ("a1d", "a2d"):
        extents[3] = 1
    shape = _shape(geom, extents)
    start = rng.integers(0, 2**32, shape, dtype=np.uint32)
    start.flat[::3] = rng.choice([0, 1, 0x80000000, 0x7F800001, 0xFFFFFFFF, 0x7C007E00, 0x00010001], start[...].flat[::3].shape)
    surface = device().surface(start, format="R32_UINT", geometry=geom, layout=layout, **more)
    model = ModelSurface(geom, 4, *extents, layout=layout, bh=more.get("block_height_log2", 4),
                         gob_order=more.get("gob_order", "swizzled"))  # fmt: skip
    lanes = 40
    unit = width if byte else 1
    place = {
        "x": rng.integers(-1, extents[0] * 4 // width + 2, lanes) * unit,
        "y": rng.integers(-1, extents[1] + 1, lanes), "z": rng.integers(-1, extents[2] + 1, lanes),
        "layer": rng.integers(0, extents[3] + 1, lanes) + rng.choice([0, 65536], lanes),
    }  # fmt: skip
    values = [int(v) for v in rng.integers(0, 2**64, lanes, dtype=np.uint64)]
    mask = (1 << 8 * width) - 1
    expected = bytearray(memory(surface).tobytes())
    for lane in range(lanes):
        at = model.resolve(
            "byte" if byte else "scaled", width, *(int(place[axis][lane]) for axis in ("x", "y", "z", "layer")),
            "zero" if clamp == ".IGN" else "clamp", layer_bits=16,
        )  # fmt: skip
        if isinstance(at, int):
            old = int.from_bytes(expected[at : at + width], "little")
            new = updated(entry.name.lower(), type_, old, values[lane] & mask, ftz="FTZ" in size)
            expected[at : at + width] = new.to_bytes(width, "little")
    registers = {name: place[axis] for name, axis in zip(("R4", "R5", "R6"), _axes(dim), strict=False)}
    text = f"SURED.D{'.BA' if byte else ''}.{dim}.{entry.sass}.{size}{clamp} [R4], R8, 0x52"
    run(text, {**registers, **pairs(values)}, surface, block=lanes)
    assert memory(surface).tobytes() == bytes(expected), text


def updated(op: str, type_: str, old: int, value: int, ftz: bool) -> int:
    """The model's update; minimum and maximum flush before they compare."""
    if ftz and op in ("fmin", "fmax"):
        old, value = (sum(atomic_model.flushed("f16", bits >> at & 0xFFFF) << at for at in (0, 16)) for bits in (old, value))
    new = atomic_model.apply(op, type_, old, value, ftz=ftz)
    assert new is not None
    return new


def _axes(dim: str) -> tuple[str, ...]:
    return {"1D": ("x",), "1D_BUFFER": ("x",), "1D_ARRAY": ("x", "layer"), "2D": ("x", "y"), "2D_ARRAY": ("x", "y", "layer"),
            "3D": ("x", "y", "z")}[dim]  # fmt: skip


# ---------------------------------------------------------------- signedness by format


@pytest.mark.parametrize(
    ("format", "size", "old", "value", "new"),
    [
        ("R32_SINT", "SD32", 0xFFFFFFFF, 1, 0xFFFFFFFF),
        ("R32_UINT", "SD32", 0xFFFFFFFF, 1, 1),
        ("R32G32_SINT", "SD64", 0xFFFFFFFFFFFFFFFF, 1, 0xFFFFFFFFFFFFFFFF),
        ("R32G32_UINT", "SD64", 0xFFFFFFFFFFFFFFFF, 1, 1),
        ("R32_FLOAT", "SD32", 0xFFFFFFFF, 1, 1),
    ],
)
@pytest.mark.parametrize("byte", ["", ".BA"])
def test_the_format_gives_the_sign(format, size, old, value, new, byte):
    """The format gives the sign."""
    surface = device().surface((4,), format=format, geometry="1d")
    memory(surface)[:8] = np.frombuffer(old.to_bytes(8, "little"), np.uint8)
    run(f"SURED.D{byte}.1D.MIN.{size} [R4], R8, 0x52", {"R4": 0, **pairs(value)}, surface)
    width = 8 if size == "SD64" else 4
    assert int.from_bytes(memory(surface)[:width].tobytes(), "little") == new


def test_a_format_without_a_sign_is_counted_or_refused():
    """A format without a sign is counted or refused."""
    surface = device().surface((4,), format="R32_FLOAT", geometry="1d")
    text = ".header 3 image\n.const c[0][0x148] = 3\n.kernel k\nSURED.D.1D.MIN.SD32 [R4], R8, 0x52\nEXIT\n"
    module = ptxemu.loads(text, dialect="sass", device=device())
    module.bind("image", surface)
    result = module["k"][1, 1]()
    assert result.format_mismatches == 1 and "non-integer format" in result.warnings[0]
    strict = ptxemu.loads(text, dialect="sass", device=device(), strict=True)
    strict.bind("image", surface)
    with pytest.raises(ptxemu.Fault, match="surface format mismatch"):
        strict["k"][1, 1]()


@pytest.mark.parametrize("op", ["ADD", "AND", "OR", "XOR"])
def test_sd32_is_u32_where_the_sign_does_not_matter(op):
    """Sd32 is u32 where the sign does not matter."""
    results = []
    for size in ("SD32", "U32", "S32"):
        surface = device().surface(np.full(1, 0x80000001, np.uint32), format="R32_UINT", geometry="1d")
        run(f"SURED.D.1D.{op}.{size} [R4], R8, 0x52", {"R4": 0, "R8": 0xFFFF0003}, surface)
        results.append(int(words(surface)[0]))
    assert len(set(results)) == 1


# ---------------------------------------------------------------- layers, headers, states


@pytest.mark.parametrize(("value", "layer"), [(65538, 2), (2, 2), (-65536, 0)])
def test_the_layer_has_16_bits(value, layer):
    """The layer has 16 bits."""
    surface = device().surface((3, 4), format="R32_UINT", geometry="a1d")
    run("SURED.D.1D_ARRAY.ADD.IGN [R4], R8, 0x52", {"R4": 1, "R5": value, "R8": 7}, surface)
    assert surface.copy_to_host()[layer, 1] == 7


@pytest.mark.parametrize("clamp", ["IGN", "NEAR", "TRAP"])
def test_a_layer_beyond_the_count(clamp):
    """A layer beyond the count."""
    surface = device().surface((3, 4), format="R32_UINT", geometry="a1d")
    run_it = lambda: run(f"SURED.D.1D_ARRAY.ADD.{clamp} [R4], R8, 0x52", {"R4": 1, "R5": -1, "R8": 7}, surface)  # noqa: E731
    if clamp == "TRAP":
        with pytest.raises(ptxemu.Fault, match="out of bounds"):
            run_it()
    else:
        run_it()
    assert surface.copy_to_host().sum() == (7 if clamp == "NEAR" else 0)
    assert surface.copy_to_host()[2, 1] == (7 if clamp == "NEAR" else 0)


def test_sampler_bits_do_not_count():
    """Sampler bits do not count."""
    surface = device().surface((4,), format="R32_UINT", geometry="1d")
    words_ = [0x00000003, 0xABC00003, 0xFFF00003]
    run("SURED.D.1D.ADD [R4], R8, R10", {"R4": [0, 1, 2], "R8": 5, "R10": words_}, surface)
    assert surface.copy_to_host().tolist() == [5, 5, 5, 0]


def test_lanes_may_use_different_headers():
    """Lanes may use different headers."""
    text = """.header 0 first
    .header 0xfffff last
    .kernel k
    .in R4 x
    .in R10 header
    MOV32I R8, 0x1
    SURED.D.1D.ADD [R4], R8, R10
    EXIT"""
    module = ptxemu.loads(text, dialect="sass", device=device())
    surfaces = [device().surface((4,), format="R32_UINT", geometry="1d") for _ in range(2)]
    module.bind("first", surfaces[0])
    module.bind("last", surfaces[1])
    headers = np.array([0, 0xFFFFF, 7, 0, 0xFFFFF, 1], np.uint32)
    result = module["k"][1, 6](np.array([0, 0, 0, 1, 3, 2], np.uint32), headers)
    assert [surface.copy_to_host().tolist() for surface in surfaces] == [[1, 1, 0, 0], [1, 0, 0, 1]]
    assert result.surface_drops == 2 and "invalid header" in result.warnings[0]


def test_headers_beyond_the_maximum_index_are_invalid():
    """Headers beyond the maximum index are invalid."""
    surface = device().surface((4,), format="R32_UINT", geometry="1d")
    registers = {"R4": 0, "R8": 5}
    run("SURED.D.1D.ADD.TRAP [R4], R8, 0x52", registers, surface, head=".maxheader 2")
    assert not surface.copy_to_host().any()
    run("SURED.D.1D.ADD.TRAP [R4], R8, 0x52", registers, surface, head=".maxheader 3")
    assert surface.copy_to_host()[0] == 5
    with pytest.raises(ptxemu.Fault, match="invalid surface handle"):
        run("SURED.D.1D.ADD [R4], R8, 0x52", registers, surface, head=".maxheader 2", options={"invalid_header": "fault"})


def test_a_disabled_surface_drops_before_any_other_check():
    """A disabled surface drops before any other check."""
    surface = device().surface((4,), format="R32_UINT", geometry="1d", enabled=False)
    for text in ("SURED.D.BA.1D.ADD.TRAP", "SURED.D.3D.ADD.TRAP", "SURED.D.1D.MIN.SD32"):
        run(f"{text} [R4], R8, 0x52", {"R4": 3, "R5": 9, "R6": 9, "R8": 5}, surface, options={"strict": True})
    assert not memory(surface).any()


def test_the_bank_of_the_index():
    """The bank of the index."""
    surface = device().surface((4,), format="R32_UINT", geometry="1d")
    head = ".bank 2\n.const c[0x2][0x10] = 0x3"
    run("SURED.D.1D.ADD [R4], R8, 0x4", {"R4": 0, "R8": 5}, surface, head=head)
    assert surface.copy_to_host()[0] == 5


def test_a_header_word_may_be_a_parameter():
    """A header word may be a parameter."""
    text = ".header 1 one\n.header 2 two\n.kernel k\n.param u32 word 0x148\nSURED.D.1D.INC [R4], R8, 0x52\nEXIT"
    module = ptxemu.loads(text.replace("SURED", "MOV32I R8, 0x9\nSURED"), dialect="sass", device=device())
    surfaces = [device().surface((4,), format="R32_UINT", geometry="1d") for _ in range(2)]
    module.bind("one", surfaces[0])
    module.bind("two", surfaces[1])
    module["k"][1, 4](2)
    assert [int(surface.copy_to_host()[0]) for surface in surfaces] == [0, 4]


def test_geometry_mismatch():
    """Geometry mismatch."""
    surface = device().surface((4, 4), format="R32_UINT")
    with pytest.raises(ptxemu.Fault, match="surface geometry mismatch"):
        run("SURED.D.3D.ADD [R4], R8, 0x52", {"R4": 0, "R5": 0, "R6": 0, "R8": 1}, surface)


@pytest.mark.parametrize(("clamp", "index"), [("IGN", None), ("NEAR", 0)])
def test_a_buffer_coordinate_is_signed_only_with_near(clamp, index):
    """A buffer coordinate is signed only with near."""
    surface = device().surface((8,), format="R32_UINT", geometry="1d_buffer", layout="linear")
    run(f"SURED.D.BA.1D_BUFFER.ADD.{clamp} [R4], R8, 0x52", {"R4": -4, "R8": 5}, surface)
    assert surface.copy_to_host().tolist() == [5 if place == index else 0 for place in range(8)]


def test_a_buffer_beyond_2_gib():
    """x in [2^31, 2^32) is valid there for the clamps that read x as unsigned."""
    big = ptxemu.Device("4 GiB", workers=1)
    surface = big.surface((0x80000100,), format="R8_UINT", geometry="1d_buffer", layout="linear")
    text = ".header 3 image\n.const c[0][0x148] = 3\n.kernel k\n.in R4 x\nMOV32I R8, 0x5\n{0} [R4], R8, 0x52\nEXIT"
    for clamp, place in (("IGN", 0x80000010), ("NEAR", 0), ("TRAP", 0x80000010)):
        module = ptxemu.loads(text.format(f"SURED.D.BA.1D_BUFFER.ADD.{clamp}"), dialect="sass", device=big)
        module.bind("image", surface)
        module["k"][1, 1](np.array([0x80000010], np.uint32))
        view = memory(surface)
        assert view[place] == 5
        view[place] = 0


@pytest.mark.parametrize("x", [0x40000001, 0x40000000, -0x40000000])
def test_scaling_does_not_wrap(x):
    """x times the operation size is beyond 32 bits: out of bounds, not texel 1 or 0."""
    surface = device().surface((8,), format="R32_UINT", geometry="1d")
    run("SURED.D.1D.ADD.IGN [R4], R8, 0x52", {"R4": x, "R8": 5}, surface)
    assert not surface.copy_to_host().any()
    run("SURED.D.1D.ADD.NEAR [R4], R8, 0x52", {"R4": x, "R8": 5}, surface)
    assert surface.copy_to_host()[0 if x < 0 else 7] == 5


def test_programs_see_level_0():
    """Programs see level 0."""
    surface = device().surface((8, 8), format="R32_UINT", levels=3)
    run("SURED.D.2D.ADD.IGN [R4], R8, 0x52", {"R4": [0, 7, 8], "R5": [0, 7, 0], "R8": 5}, surface)
    assert [int(surface.copy_to_host(level).sum()) for level in range(3)] == [10, 0, 0]


# ---------------------------------------------------------------- guards, lanes


def test_a_lane_whose_guard_is_false_makes_no_access():
    """A lane whose guard is false makes no access."""
    surface = device().surface((4,), format="R32_UINT", geometry="1d")
    setup = ["ISETP.EQ.AND P0, PT, R4, 0x1, PT", "@P0 SURED.D.1D.ADD.TRAP [R4], R8, 0x52", "@!P0 NOP"]
    run(setup, {"R4": [1, 99, -1], "R8": 5}, surface)
    run(["@!PT SURED.D.1D.ADD.TRAP [R4], R8, 0x52", "@PT NOP"], {"R4": [99], "R8": 5}, surface)
    assert surface.copy_to_host().tolist() == [0, 5, 0, 0]


def test_helper_lanes_do_nothing():
    """Helper lanes do nothing."""
    surface = device().surface((4,), format="R32_UINT", geometry="1d")
    lines = [".helper 0x5", "SURED.D.1D.ADD.TRAP [R4], R8, 0x52"]
    run(lines, {"R4": [99, 1, 99, 3], "R8": 5}, surface)
    assert surface.copy_to_host().tolist() == [0, 5, 0, 5]


def test_rb_may_be_rz():
    """Rb may be rz."""
    surface = device().surface(np.full(4, 7, np.uint32), format="R32_UINT", geometry="1d")
    run(["SURED.D.1D.AND [R4], RZ, 0x52", "SURED.D.1D.MIN.U64 [R5], RZ, 0x52"], {"R4": 0, "R5": 1}, surface)
    assert surface.copy_to_host().tolist() == [0, 7, 0, 0]


@pytest.mark.parametrize("workers", [1, 4])
def test_many_lanes_on_one_texel(workers):
    """Many lanes on one texel."""
    own = ptxemu.Device("64 MiB", workers=workers)
    text = """.header 3 image
    .const c[0][0x148] = 3
    .kernel k
    MOV R4, RZ
    MOV32I R5, 0x1
    MOV32I R8, 0x2
    SURED.D.1D.ADD [R4], R8, 0x52
    MOV32I R8, 0x63
    SURED.D.1D.INC [R5], R8, 0x52
    EXIT"""
    module = ptxemu.loads(text, dialect="sass", device=own)
    surface = own.surface((2,), format="R32_UINT", geometry="1d")
    module.bind("image", surface)
    module["k"][50, 256]()
    assert surface.copy_to_host().tolist() == [2 * 50 * 256, 50 * 256 % 100]
