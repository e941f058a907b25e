"""Rules that all instruction sets share (docs/semantics.md): errors and their codes, order of checks, policies, guard bands."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import ptxemu
from ptxemu.device.device import Device
from ptxemu.device.surface import Surface
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.dialects import operations
from ptxemu.ir.operations import OPERATIONS, find
from ptxemu.ir.types import TYPES
from ptxemu.isa import rows
from tests.dialects.cross_fronts import FRONTS, Step
from tests.dialects.cross_fronts import device as cross_device
from tests.support import sass_harness, visa_harness
from tests.support.sass_harness import memory


def device() -> Device:
    return sass_harness.device()


@cache
def ptx(body: str, head: str = "", options: tuple[tuple[str, str | int], ...] = ()) -> ptxemu.Module:
    """A kernel ``k`` of one thread that takes a surface handle %d0 and an array at %d1."""
    text = f""".version 8.8
    .target sm_90
    .address_size 64
    {head}
    .entry k(.param .u64 s, .param .u64 p) {{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .align 8 .b8 own[64];
    ld.param.u64 %d0, [s]; ld.param.u64 %d1, [p];
    {body}
    ret; }}"""
    return ptxemu.loads(text, device=device(), options=dict(options))


def run_ptx(body: str, surface: object, head: str = "", **options: str | int) -> list[int]:
    """The array of four words, which starts as 1, 2, 3, 4, after the kernel."""
    words = np.arange(1, 5, dtype=np.uint32)
    ptx(body, head, tuple(options.items()))["k"][1, 1](surface, words)
    return words.tolist()


def run_sass(text: str, surface: SurfaceObject | None = None, **options: str | int) -> None:
    """One lane with the coordinates 0, 2, 1 and the value 5."""
    registers = {"R4": 0, "R5": 2, "R6": 1, "R8": 5, "R9": 0, "R10": 7, "R12": 0x01000000, "R14": 0x10000001, "R15": 0xFFFF}
    sass_harness.run(text, registers, surface, options=options)


def run_visa(surface: SurfaceObject) -> None:
    visa_harness.run("TYPED_ATOMIC.ADD (M1, 8) T6 U.0 V0 V0 V0 A.0 V0 V0", {"U": np.arange(8), "A": 1}, surface)


# ---------------------------------------------------------------- errors

OUTSIDE = "mov.u64 %d2, 0x7fffffff0000;"
ERRORS = {
    "surface access out of bounds": (719, [
        lambda s: run_sass("SURED.D.2D.ADD.TRAP [R10], R8, 0x52".replace("R10", "R14"), s),
        lambda s: run_ptx("sust.b.2d.b32.trap [%d0, {64, 0}], 1;", s),
        lambda s: run_ptx("sured.b.add.2d.u32.trap [%d0, {0, -1}], 1;", s),
    ]),
    "misaligned address": (716, [
        lambda s: run_sass("SURED.D.BA.2D.ADD.IGN [R14], R8, 0x52", s),
        lambda s: run_sass("RED.E.ADD [R14], R8", s),
        lambda s: run_ptx("suld.b.2d.b32.zero %r1, [%d0, {2, 0}];", s),
        lambda s: run_ptx("red.global.add.u32 [%d1+2], 1;", s),
        lambda s: run_ptx("atom.shared.add.u32 %r1, [own+2], 1;", s),
    ]),
    "illegal address": (700, [
        lambda s: run_sass("RED.E.ADD [R14-1], R8", s),
        lambda s: run_ptx(f"{OUTSIDE} red.global.add.u32 [%d2], 1;", s),
    ]),
    "invalid address space": (717, [
        lambda s: run_sass("RED.ADD [R12], R8", s),
    ]),
    "invalid surface handle": (400, [
        lambda s: run_sass("SURED.D.2D.ADD [R4], R8, R10", s, invalid_header="fault"),
        lambda s: run_ptx("sust.b.2d.b32.trap [%d0, {0, 0}], 1;", 12345),
    ]),
    "unbound surface": (400, [
        lambda s: run_ptx("sust.b.2d.b32.trap [image, {0, 0}], 1;", s, ".global .surfref image;"),
    ]),
    "surface geometry mismatch": (719, [
        lambda s: run_sass("SURED.D.3D.ADD [R4], R8, 0x52", s),
        lambda s: run_ptx("sust.b.3d.b32.zero [%d0, {0, 0, 0, 0}], 1;", s),
    ]),
    "surface format mismatch": (719, [
        lambda s: run_sass("SURED.D.2D.MIN.SD32 [R4], R8, 0x52", s, strict=1),
        lambda s: run_ptx("sured.p.min.2d.b32.zero [%d0, {0, 0}], %r0;", s, strict=1),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_and_their_codes(kind):
    """the table of kinds: each kind, what raises it in PTX and SASS, its code; the lane writes nothing."""
    code, programs = ERRORS[kind]
    for program in programs:
        surface = device().surface((4, 16), format="R32_FLOAT")
        with pytest.raises(ptxemu.Fault) as caught:
            program(surface)
        record = caught.value.record
        assert (record["kind"], record["code"]) == (kind, code)
        assert record["kernel"] == "k" and record["where"].startswith("<string>:")
        assert record["block"] == record["thread"] == (0, 0, 0) and record["size"] in (0, 4)
        if "surface" in kind and "handle" not in kind and "unbound" not in kind:
            assert len(record["coordinates"]) == 4
        assert not memory(surface).any()


def test_errors_of_visa():
    """A wrong geometry or format is an error in vISA without strict mode; an empty qualifier is none."""
    for options, kind in (({"format": "R32G32_UINT", "geometry": "1d"}, "format"), ({"format": "R32_UINT"}, "geometry")):
        surface = visa_harness.device().surface((8,) if kind == "format" else (8, 8), **options)
        with pytest.raises(ptxemu.Fault) as caught:
            run_visa(surface)
        assert (caught.value.record["kind"], caught.value.record["code"]) == (f"surface {kind} mismatch", 719)


def test_an_operation_on_a_type_that_lacks_it_is_an_error_of_the_text():
    """ILLEGAL_OP_TYPE comes from the assembler in every instruction set."""
    for text, dialect in (("RED.INC.S32 [R4], R5", "sass"), ("SURED.D.1D.MAX.F32.FTZ.RN [R4], R5, R6", "sass"),
                          ("TYPED_ATOMIC.FADD (M1, 8) T6 V0 V0 V0 V0 V0 V0 V0", "visa")):  # fmt: skip
        (found,) = ptxemu.lint(f".kernel k\n{text}\n", dialect=dialect)
        assert (found.severity, found.line) == ("error", 2)
    with pytest.raises(ptxemu.PtxError):
        ptx("red.global.inc.s32 [%d1], 1;")


def test_the_order_of_the_checks():
    """State, geometry, alignment, bounds, clamp; the first that fails decides."""
    misaligned = {"R4": 2, "R5": 99, "R6": 0, "R8": 1}
    disabled = device().surface((4, 16), format="R32_FLOAT", enabled=False)
    sass_harness.run("SURED.D.BA.3D.MIN.SD32.TRAP [R4], R8, 0x52", misaligned, disabled, options={"strict": True})
    enabled = device().surface((4, 16), format="R32_UINT")
    for text, kind in (("SURED.D.BA.3D.ADD.TRAP", "geometry mismatch"), ("SURED.D.BA.2D.ADD.TRAP", "misaligned"),
                       ("SURED.D.2D.ADD.TRAP", "out of bounds")):  # fmt: skip
        with pytest.raises(ptxemu.Fault, match=kind):
            sass_harness.run(f"{text} [R4], R8, 0x52", misaligned, enabled)
    assert not memory(disabled).any() and not memory(enabled).any()


def test_nearest_needs_a_row_that_holds_the_access():
    """With NEAREST, rows shorter than the access have no nearest place; nothing is written."""
    for size, width in (("U32", 3), ("U64", 7)):
        surface = device().surface((width,), format="R8_UINT", geometry="1d")
        sass_harness.run(f"SURED.D.BA.1D.OR.{size}.NEAR [R4], R8, 0x52", {"R4": [0, 8, -8], "R8": -1, "R9": -1}, surface)
        assert not memory(surface).any()


# ---------------------------------------------------------------- policies

STORE = "sust.b.2d.b32.zero [%d0, {4, 0}], %r1;"


def test_partial_edge():
    """partial_edge: an access that ends in the padding of its row."""
    for policy, expected in (("reject", []), ("allow", [4, 5, 6, 7])):
        surface = device().surface((2, 6), format="R8_UINT", pitch=16)
        run_ptx(f"mov.u32 %r1, -1; {STORE}", surface, partial_edge=policy)
        assert np.flatnonzero(memory(surface)).tolist() == expected


def test_layer_bits():
    """layer_bits: PTX takes 32 bits by default; SASS always 16."""
    for bits, expected in ((32, 0), (16, 9)):
        surface = device().surface((2, 4), format="R32_UINT", geometry="a1d")
        run_ptx("sust.b.a1d.b32.zero [%d0, {65537, 4}], 9;".replace("9;", "%r1;").replace("sust", "mov.u32 %r1, 9; sust", 1),
                surface, layer_bits=bits)  # fmt: skip
        assert surface.copy_to_host()[1, 1] == expected
        sass_harness.run("SURED.D.1D_ARRAY.ADD [R4], R8, 0x52", {"R4": 0, "R5": 65537, "R8": 4}, surface,
                         options={"layer_bits": bits})  # fmt: skip
        assert surface.copy_to_host()[1, 0] == 4


def test_missing_component():
    """missing_component: what sust.p writes to components that it does not give."""
    for policy, expected in (("zero", [1, 0, 0, 0]), ("preserve", [1, 7, 7, 7]), ("poison", [1, 0xCD, 0xCD, 0xCD])):
        surface = device().surface(np.full((2, 2, 4), 7, np.uint8), format="R8G8B8A8_UINT")
        run_ptx("mov.u32 %r1, 1; sust.p.2d.b32.trap [%d0, {1, 0}], {%r1};", surface, missing_component=policy)
        assert surface.copy_to_host()[0, 1].tolist() == expected


def test_absent_dim():
    """absent_dim: what suq answers for a dimension that the geometry lacks."""
    surface = device().surface((8,), format="R32_UINT", geometry="1d")
    body = "suq.width.b32 %r1, [%d0]; suq.height.b32 %r2, [%d0]; suq.depth.b32 %r3, [%d0]; st.global.v2.u32 [%d1], {%r1, %r2};"
    for value in (0, 1):
        assert run_ptx(f"{body} st.global.u32 [%d1+8], %r3;", surface, absent_dim=value) == [8, value, value, 4]


def test_align():
    """align: a misaligned byte coordinate faults or is rounded down, in PTX and SASS alike."""
    surfaces = [device().surface((2, 4), format="R32_UINT") for _ in range(2)]
    run_ptx("sured.b.add.2d.u32.zero [%d0, {7, 1}], 5;".replace("5;", "%r1;").replace("sured", "mov.u32 %r1, 5; sured", 1),
            surfaces[0], align="mask")  # fmt: skip
    sass_harness.run("SURED.D.BA.2D.ADD.IGN [R4], R8, 0x52", {"R4": 7, "R5": 1, "R8": 5}, surfaces[1], options={"align": "mask"})
    assert [np.flatnonzero(memory(surface)).tolist() for surface in surfaces] == [[20], [20]]


# ---------------------------------------------------------------- guard bands

BAND = 4096


@pytest.mark.parametrize("layout", ["pitch", "block_linear"])
@pytest.mark.parametrize("front", FRONTS)
def test_guard_bands(front, layout):
    """Updates in and out of bounds leave the memory around a surface, and its padding, as they were."""
    own = cross_device()
    buffer = own.to_device(np.full(5 * BAND, 0xA5, np.uint8))
    start = -(-buffer.address // BAND) * BAND + BAND
    options = {"pitch": 256} if layout == "pitch" else {}
    surface = Surface(own.arena, "R32_FLOAT", 20, 5, layout=layout, address=start, **options)
    made = SurfaceObject(surface, own.surface_table)
    made.copy_from_host(np.zeros((5, 20), np.float32))
    before = buffer.copy_to_host()
    edges = (-(2**29), -1, 0, 19, 20, 31, 2**29)
    where = tuple((x, y, 0, 0) for x in edges for y in (-(2**31), -1, 0, 4, 5, 2**31 - 128))
    steps = [Step(op, "u32", where, (0x01010101,) * len(where)) for op in ("add", "exch")]  # on zeros, the same
    assert any(FRONTS[front](made, step) for step in steps)
    inside = [(x, y) for x, y, *_ in where if 0 <= x < 20 and 0 <= y < 5]
    for x, y in inside:
        at = start - buffer.address + surface.offset(x, y)
        before[at : at + 4] = 1
    assert len(inside) == 4 and (buffer.copy_to_host() == before).all()


# ---------------------------------------------------------------- which instruction set has which operation

# Operation: types of sured.b, sured.p, red and atom; sizes of SURED and RED; the word of TYPED_ATOMIC.
HALF = "f16 f16x2 bf16 bf16x2"
SASS_HALF = "F16x2.RN F16x2.FTZ.RN"
OPERATION_TABLE = {
    "ADD": ("u32 s32 u64", "b32", "u32 s32 u64", "u32 s32 u64", "U32 S32 SD32 U64", "U32 S32 U64", "add"),
    "SUB": ("", "", "", "", "", "", "sub"),
    "UMIN": ("u32 u64", "b32 b64", "u32 u64", "u32 u64", "U32 U64 SD32 SD64", "U32 U64", "min"),
    "UMAX": ("u32 u64", "b32 b64", "u32 u64", "u32 u64", "U32 U64 SD32 SD64", "U32 U64", "max"),
    "SMIN": ("s32 s64", "", "s32 s64", "s32 s64", "S32 S64", "S32 S64", "imin"),
    "SMAX": ("s32 s64", "", "s32 s64", "s32 s64", "S32 S64", "S32 S64", "imax"),
    "AND": ("b32", "b32", "b32 b64", "b32 b64", "U32 S32 SD32 U64", "U32 S32 U64", "and"),
    "OR": ("b32", "b32", "b32 b64", "b32 b64", "U32 S32 SD32 U64", "U32 S32 U64", "or"),
    "XOR": ("", "", "b32 b64", "b32 b64", "U32 S32 SD32 U64", "U32 S32 U64", "xor"),
    "INC_WRAP": ("", "", "u32", "u32", "U32", "U32", ""),
    "DEC_WRAP": ("", "", "u32", "u32", "U32", "U32", ""),
    "INC": ("", "", "", "", "", "", "inc"),
    "DEC": ("", "", "", "", "", "", "dec"),
    "PREDEC": ("", "", "", "", "", "", "predec"),
    "XCHG": ("", "", "", "b32 b64 b128", "", "", "xchg"),
    "CAS": ("", "", "", "b16 b32 b64 b128", "", "", "cmpxchg"),
    "FCAS": ("", "", "", "", "", "", "fcmpwr"),
    "FADD": ("", "", f"f32 f64 {HALF}", f"f32 f64 {HALF}", f"F32.FTZ.RN {SASS_HALF}", f"F32.FTZ.RN F64.RN {SASS_HALF}", ""),
    "FMIN": ("", "", HALF, HALF, SASS_HALF, SASS_HALF, "fmin"),
    "FMAX": ("", "", HALF, HALF, SASS_HALF, SASS_HALF, "fmax"),
}


def ptx_operations(opcode: str, mode: str = "") -> dict[str, set[str]]:
    """The types that the rows of an opcode give each operation of the list."""
    found: dict[str, set[str]] = {name: set() for name in OPERATION_TABLE}
    for row in rows()[opcode]:
        qualifiers = {qualifier.name: qualifier.values for qualifier in row.qualifiers}
        if "async" in qualifiers or mode not in qualifiers.get("mode", ("",)):
            continue
        for word in qualifiers["op"]:
            for kind in qualifiers["type"]:
                found[find(word, TYPES[kind]).name].add(kind)
    return found


def test_the_table_of_operations():
    """Every cell of the table; what it leaves empty is in no instruction table."""
    columns = [ptx_operations("sured", "b"), ptx_operations("sured", "p"), ptx_operations("red"), ptx_operations("atom")]
    assert {entry.name for entry in OPERATIONS} == set(OPERATION_TABLE)
    for entry in operations.OPERATIONS:
        *ptx, sured, red, visa = OPERATION_TABLE[entry.name]
        for column, cell in zip(columns, ptx, strict=True):
            assert column[entry.name] == set(cell.split()), entry.name
        assert (set(entry.sured), set(entry.red), entry.visa) == (set(sured.split()), set(red.split()), visa)


# ---------------------------------------------------------------- creation

HAS = {"1d": "width", "1d_buffer": "width", "2d": "width height", "3d": "width height depth", "a1d": "width layers",
       "a2d": "width height layers", "cube": "width height layers", "acube": "width height layers"}  # fmt: skip


@pytest.mark.parametrize("geometry", HAS)
def test_extents_of_geometries(geometry):
    """An axis that a geometry lacks is 1; no extent is 0; linear is for 1d; levels end at the largest extent."""
    extents = {axis: 1 for axis in ("width", "height", "depth", "layers")} | {axis: 4 for axis in HAS[geometry].split()}
    if "cube" in geometry:
        extents["layers"] = 6
    layout = "linear" if geometry == "1d_buffer" else "pitch"

    def make(**changes: object) -> Surface:
        return Surface(device().arena, "R32_UINT", **{"geometry": geometry, "layout": layout, **extents, **changes})  # type: ignore

    make()
    for axis in extents:
        with pytest.raises(ptxemu.InputError):
            make(**{axis: 0})
        if axis not in HAS[geometry]:
            with pytest.raises(ptxemu.InputError):
                make(**{axis: 2})
    if geometry in ("1d", "1d_buffer"):
        make(layout="linear")
    else:
        with pytest.raises(ptxemu.InputError, match="linear layout is for 1d"):
            make(layout="linear")
    most = 1 if geometry == "1d_buffer" else 3
    make(levels=most)
    with pytest.raises(ptxemu.InputError):
        make(levels=most + 1)
