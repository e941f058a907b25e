"""CTM and memory: the vectors that its formats, coordinates and layouts can express, and the registers of surfaces."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run as command
from ptxemu.dialects import operations
from ptxemu.dialects.ctm import table
from ptxemu.dialects.ctm.memory import constants_of, describe, register_words, surface_of
from ptxemu.isa.table import Row
from tests.support.ctm_harness import device, module, run, target
from tests.support.places import SPEC

OWN = "RNDR_TGT_UMRT_PER_PROCESSOR_IDX"
FLOAT32_1 = 2 << 24


def rows(name: str) -> list[dict[str, str]]:
    with (SPEC / name).open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------- vectors


@pytest.mark.parametrize(
    ("kind", "bits", "format"), [("UNORM", 8, "UINT8_4"), ("UNORM", 16, "UINT16_1"), ("FLOAT", 32, "FLOAT32_1")]
)
def test_format_vectors(kind, bits, format):
    """Registers go to memory by the vectors; with the output modifier disabled no bit of theirs changes before."""
    chosen = [row for row in rows("vectors_format_store.csv") if (row["format_kind"], row["component_bits"]) == (kind, str(bits))]
    words = np.array([int(row["source_register_bits"], 16) for row in chosen], np.uint32)
    expected = [int(row["stored_component_bits"], 16) for row in chosen]
    assert len(words) > 20
    surface = target(format, width=len(words))
    registers = {"r0": np.repeat(words[:, None], 4, axis=1)}
    run("OUTPUT MOV.OMOD_DISABLED.RNDR_TGT_A out, r0", registers, surfaces={"a": surface}, head=[".output A a"])
    found = surface.copy_to_host().reshape(len(words), -1)
    assert (found.view(f"u{bits // 8}") == np.array(expected)[:, None]).all()


NAMES = {"2": "UINT16_1", "4": "FLOAT32_1", "8": "FLOAT32_2", "16": "FLOAT32_4"}
BOUNDS = [
    row for row in rows("vectors_bounds.csv")
    if (row["x_mode"], row["access_bytes"], row["clamp"]) in {("sample_scaled", "4", "zero"), ("byte", "4", "zero")}
    and row["geom"] in ("1d", "2d") and row["align_policy"] == "fault"
    and (row["x_mode"] != "byte" or (int(row["x"]) % 4 == 0 and int(row["width_bytes"]) % 4 == 0))
]  # fmt: skip


def test_bounds_vectors():
    """Accesses of 4 bytes whose byte coordinate is a texel's; a 1d surface is a 2d one of one row."""
    assert len(BOUNDS) >= 15
    for row in BOUNDS:
        width, height = int(row["width_bytes"]) // 4, int(row["height"])
        surface = target("FLOAT32_1", width=width, height=height)
        x = int(row["x"]) if row["x_mode"] == "sample_scaled" else int(row["x"]) // 4
        point = np.array([[7, x, int(row["y"]) if row["geom"] == "2d" else 0, 0]], np.float32)
        if int(point[0, 1]) != x:
            continue  # no float says so much
        result = run(f"OUTPUT MOV.{OWN} out, r0", {"r0": point}, kind="umrt", surfaces={"a": surface}, head=[".output A a"])
        expected = np.zeros((height, width), np.float32)
        if row["outcome"] == "ok":
            expected[int(row["eff_y"] or 0), int(row["eff_x_byte"]) // 4] = 7
        assert (surface.copy_to_host() == expected).all(), row
        assert result["result"].umrt_dropped == (row["outcome"] != "ok")


WIDE = [
    row for row in rows("vectors_bounds.csv")
    if row["geom"] in ("1d", "2d") and row["access_bytes"] in NAMES and row["clamp"] == "zero" and row["align_policy"] == "fault"
    and row["outcome"] != "misaligned" and int(row["width_bytes"]) % int(row["access_bytes"]) == 0
]  # fmt: skip


@pytest.mark.parametrize("size", NAMES)
def test_bounds_vectors_of_cached_output(size):
    """Elements of 2 to 16 bytes at the point's own place; points are not negative, and as many as a domain may have."""
    chosen = [row for row in WIDE if row["access_bytes"] == size]
    assert len(chosen) >= 3
    for width_bytes in {row["width_bytes"] for row in chosen}:
        width, unit = int(width_bytes) // int(size), int(size)
        height = 4 if size == "4" and width > 1 else 1
        surface = target(NAMES[size], width=width, height=height, pitch=int(width_bytes) + 64)
        memory = device().arena.view(surface.surface.address, surface.surface.total_bytes)
        memory[:] = 0xA5
        run("OUTPUT MOV.RNDR_TGT_A out, 0", {"r9": [[0.0] * 4] * 160}, surfaces={"a": surface}, head=[".output A a"],
            grid=(1, 5), block=32)  # fmt: skip
        for row in (row for row in chosen if row["width_bytes"] == width_bytes and int(row["height"]) == height):
            scale = unit if row["x_mode"] == "sample_scaled" else 1
            x, y = int(row["x"]) * scale, int(row["y"]) if row["geom"] == "2d" else 0
            if 0 <= x < 32 * unit and 0 <= y < height and y * (int(width_bytes) + 64) + x < memory.size:
                place = y * (int(width_bytes) + 64) + x
                assert (memory[place : place + unit] == (0 if row["outcome"] == "ok" else 0xA5)).all(), row


def addressing(layout: str, size: str) -> list[dict[str, str]]:
    chosen = rows("vectors_addressing.csv")
    return [row for row in chosen if (row["layout"], row["geom"], row["elem_bytes"]) == (layout, "2d", size)]


@pytest.mark.parametrize(("layout", "size"), [("pitch", "4"), ("blocklinear", "4"), ("blocklinear", "16")])
def test_addressing_vectors(layout, size):
    """Texels of the layouts: those of 4 bytes by UMRT, those of 16 by cached output; the host may bind block linear surfaces."""
    chosen = addressing(layout, size)
    assert len(chosen) == 5
    width, height = int(chosen[0]["width"]), int(chosen[0]["height"])
    places = {"pitch": int(chosen[0]["pitch"])} if layout == "pitch" else {
        "layout": "block_linear", "block_height_log2": int(chosen[0]["req_block_h_log2"])}  # fmt: skip
    surface = device().surface((height, width), format="R32_FLOAT" if size == "4" else "R32G32B32A32_FLOAT", **places)
    memory = device().arena.view(surface.surface.address, surface.surface.total_bytes).view(np.float32)
    memory[:] = -1
    offsets = [int(row["byte_offset"]) // 4 for row in chosen]
    points = np.array([[7, int(row["x_elem"]), int(row["y"]), 0] for row in chosen], np.float32)
    if size == "4":
        run(f"OUTPUT MOV.{OWN} out, r0", {"r0": points}, kind="umrt", surfaces={"a": surface}, head=[".output A a"])
        assert np.flatnonzero(memory != -1).tolist() == sorted(offsets)
        return
    run("OUTPUT MOV.RNDR_TGT_A out, r0.rg01", {"r9": [[0.0] * 4] * 64 * height}, surfaces={"a": surface},
        head=[".output A a", ".point r0"], grid=(2, height), block=32)  # fmt: skip
    for offset, point in zip(offsets, points, strict=True):
        assert memory[offset : offset + 4].tolist() == [point[1], point[2], 0, 1]


# ---------------------------------------------------------------- registers


def test_words_of_the_registers():
    found = describe(0x12345FFF, 0x03021FFC, 0x1FFF)
    assert (found.base, found.pitch, found.height) == (0x12345800, 0x1FFC, 0x1FFF)
    assert (found.name, found.tiling, found.format) == ("FLOAT32_2", "LINEAR_INP_2X2", "R32G32_FLOAT")
    assert describe(0, 0x01000004, 1, float_to_uint="integer").format == "R8G8B8A8_UINT"
    assert describe(0, 0x02010004, 1, tiling="ignore").tiling == "TILED"
    for name in ("UINT16_1", "UINT8_4", "FLOAT32_1", "FLOAT32_2", "FLOAT32_4"):
        words = register_words(name, 64, 16, 0x1800, "LINEAR_INP_2X2")
        found = describe(*words)
        assert (found.name, found.pitch, found.height, found.base, found.tiling) == (name, 64, 16, 0x1800, "LINEAR_INP_2X2")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((0, FLOAT32_1 | 64 | 1, 1), "bits 0x00000001 are reserved"),
        ((0, FLOAT32_1 | 64 | 0x2000, 1), "bits 0x00002000 are reserved"),
        ((0, FLOAT32_1 | 64 | 1 << 18, 1), "bits 0x00040000 are reserved"),
        ((0, FLOAT32_1 | 64 | 1 << 27, 1), "bits 0x08000000 are reserved"),
        ((0, FLOAT32_1 | 64, 0x2001), "high bits are reserved"),
        ((0, 5 << 24 | 64, 1), "data format 5 is reserved"),
        ((0, 7 << 24 | 64, 1), "data format 7 is reserved"),
        ((0, FLOAT32_1 | 1 << 16 | 64, 1), "UNSUPPORTED_TILING: the layout of TILED"),
        ((0, FLOAT32_1 | 3 << 16 | 64, 1), "UNSUPPORTED_TILING: the layout of TILED_INP_2X2"),
        ((0, FLOAT32_1, 1), "at least one row"),
        ((0, FLOAT32_1 | 64, 0), "at least one row"),
        ((1 << 32, FLOAT32_1 | 64, 1), "the base register has 32 bits"),
    ],
)
def test_words_that_describe_nothing(words, message):
    with pytest.raises(ptxemu.InputError, match=message):
        describe(*words)


def test_a_surface_in_memory():
    """The example of UMRT: pitch 64, height 16, (3, 2) is byte 524; rows of UINT16_1 may be as short as 8 bytes."""
    memory = device().empty(4096, np.float32)
    memory.array[:] = 0
    surface = surface_of(device(), memory, 0x0800 | 0x7F, FLOAT32_1 | 64, 16)
    run(f"OUTPUT MOV.{OWN} out, r0", {"r0": np.array([[1.5, 3, 2, 0]], np.float32)}, kind="umrt", surfaces={"a": surface},
        head=[".output A a"])  # fmt: skip
    assert np.flatnonzero(memory.array).tolist() == [(0x800 + 524) // 4] and memory.array.max() == 1.5
    narrow = surface_of(device(), memory, 0, 4, 3)
    assert narrow.surface.offset(1, 2) == 18
    with pytest.raises(ptxemu.InputError, match="4096 bytes at 0x3800 lies beyond the 16384 bytes"):
        surface_of(device(), memory, 0x3800, FLOAT32_1 | 64, 16)


# ---------------------------------------------------------------- surfaces that do not fit


def test_unbound_and_mismatched_surfaces_are_faults():
    text = ".kernel k cached\n.output A nobody\nOUTPUT MOV.RNDR_TGT_A out, 1\n"
    loaded = module(text)
    with pytest.raises(ptxemu.Fault, match="unbound surface in kernel `k` at <string>"):
        loaded["k"][1, 1]()
    for format, geometry, shape, message in (
        ("R32_FLOAT", "1d", (4,), "surface geometry mismatch"),
        ("R32_UINT", "2d", (4, 4), "surface format mismatch"),
        ("R16_FLOAT", "2d", (4, 4), "surface format mismatch"),
        ("B8G8R8A8_UNORM", "2d", (4, 4), "surface format mismatch"),
        ("R8_UNORM", "2d", (4, 4), "surface format mismatch"),
    ):
        loaded.bind("nobody", device().surface(shape, format=format, geometry=geometry))
        with pytest.raises(ptxemu.Fault, match=message):
            loaded["k"][1, 1]()


def test_guard_bands_stay():
    """Rows have padding; what lies outside the texels never changes."""
    surface = target("FLOAT32_1", width=3, height=3, pitch=32)
    memory = device().arena.view(surface.surface.address, surface.surface.total_bytes)
    memory[:] = 0xA5
    points = np.array([[0, x, y, 0] for y in range(-2, 6) for x in range(-2, 6)], np.float32)
    found = run(f"OUTPUT MOV.{OWN} out, r0", {"r0": points}, kind="umrt", surfaces={"a": surface}, head=[".output A a"])
    assert found["result"].umrt_dropped == 64 - 9
    assert np.count_nonzero(memory == 0) == 36 and (memory == 0xA5).sum() == memory.size - 36


def test_a_new_operation_is_one_row(monkeypatch):
    """CTM has no uncached sums: one row of the list, which names an entry of the engine, gives it their targets."""
    head = ".kernel k umrt\n.output A a\n.const c0 = 0f00000005 0 0 0\n"
    text = f"{head}OUTPUT MOV.OMOD_DISABLED.RNDR_TGT_SUM_PER_PROCESSOR_IDX out, c0\n"
    with pytest.raises(ptxemu.PtxError, match=r"unknown modifier '\.RNDR_TGT_SUM"):
        ptxemu.loads(text.replace(".kernel k", ".kernel without_the_row"), dialect="ctm")
    monkeypatch.setattr(operations, "OPERATIONS", [*operations.OPERATIONS])
    operations.operation("ADD", ctm="SUM")
    tables: dict[str, dict[str, list[Row]]] = {"ALU": {}, "OUTPUT": {}}
    table.build(tables)
    monkeypatch.setitem(table.TABLES, "OUTPUT", tables["OUTPUT"])
    loaded = ptxemu.loads(text, dialect="ctm", device=device())
    surface = target("FLOAT32_1", width=1)
    loaded.bind("a", surface)
    loaded["k"][2, 16]()
    assert surface.copy_to_host().view(np.uint32).tolist() == [[160]]


# ---------------------------------------------------------------- constants


@pytest.mark.parametrize("low", [0, 0x7FF])
def test_constants_described_by_registers(low):
    """The words of base and format find float constants in memory; the low 11 bits of the base do not count."""
    memory = device().to_device(np.arange(0x1020 // 4, dtype=np.float32))
    loaded = module(".kernel k cached\n.constants float values\n.out r0 out\nALU ADD r0, c0, c1\n")
    found = np.zeros((1, 4), np.float32)
    loaded["k"][1, 1](constants_of(memory, 0x1000 | low, 0x04000000 | low & 0x1FFC), found)
    assert found.tolist() == [[2 * (0x400 + channel) + 4 for channel in range(4)]]


def test_how_many_constants_there_are():
    """As many as the memory holds, c0 to c255 at most."""
    memory = device().empty(0x1810, np.uint8)
    assert [constants_of(memory, base, 0x04000000).shape for base in (0, 0x800, 0x1000, 0x1800)] == [
        (256, 4), (256, 4), (129, 4), (1, 4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "kind", "error", "message"),
    [
        ((0, 0x02000000), "float", ptxemu.InputError, "FLOAT32_4 in layout LINEAR, not FLOAT32_1"),
        ((0, 0x04020000), "float", ptxemu.InputError, "not FLOAT32_4 in layout LINEAR_INP_2X2"),
        ((0, 0x04010000), "float", ptxemu.InputError, "UNSUPPORTED_TILING"),
        ((0, 0x05000000), "float", ptxemu.InputError, "data format 5 is reserved"),
        ((0, 0x84000000), "float", ptxemu.InputError, "reserved and must be zero"),
        ((0x800, 0x04000000), "float", ptxemu.InputError, "lie beyond the 2048 bytes"),
        ((0, 0x04000000), "int", ptxemu.UnsupportedError, "kind int control flow"),
        ((0, 0x04000000), "bool", ptxemu.UnsupportedError, "kind bool control flow"),
        ((0, 0x04000000), "half", ptxemu.InputError, "are float, int, bool, not 'half'"),
    ],
)
def test_words_of_no_constants(words, kind, error, message):
    """Float constants only, in the one format that a constant register has."""
    with pytest.raises(error, match=message):
        constants_of(device().empty(2048, np.uint8), *words, kind=kind)


CONSTANT_CASE = """
program = "p.ctm"
grid = 1
block = 2
[args]
values = {}
out = {{ zeros = {{ dtype = "f32", shape = [2, 4] }} }}
[buffers]
memory = {{ arange = {{ dtype = "f32", shape = [1024] }} }}
[expect.outputs.out]
expression = "np.tile(memory[512:516], (2, 1))"
"""


def test_constants_of_a_case(tmp_path, capfd):
    (tmp_path / "p.ctm").write_text(".kernel k cached\n.constants values\n.out r0 out\nALU MOV r0, c0\n")
    words = '{{ memory = "{}", registers = {{ base = 0x800, format = 0x04000000 }}, kind = "{}" }}'
    for memory, kind, status, message in (
        ("memory", "float", 0, ""), ("memory", "bool", 3, "kind bool"), ("memori", "float", 2, "no array 'memori'"),
    ):  # fmt: skip
        (tmp_path / "case.toml").write_text(CONSTANT_CASE.format(words.format(memory, kind)))
        assert command(["run", str(tmp_path)]) == status
        assert message in capfd.readouterr().err
