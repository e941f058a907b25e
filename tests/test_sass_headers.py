"""Packed texture headers, memory layouts and command-line register files (notes on SASS, sections 7 and 8)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sass_harness import device, memory, run

import ptxemu
from ptxemu.cli import run as command
from ptxemu.dialects.sass.lower import BIAS
from ptxemu.dialects.sass.texture_header import describe, header_of, surface_of

DATA = Path(__file__).parent / "data" / "spec"
DIMS = {"1d": "1D", "a1d": "1D_ARRAY", "2d": "2D", "a2d": "2D_ARRAY", "3d": "3D"}


def bits(**places: tuple[int, int]) -> list[int]:
    """Eight words from the lowest bit and the value of every field."""
    whole = 0
    for low, value in places.values():
        whole |= value << low
    return [whole >> 32 * index & 0xFFFFFFFF for index in range(8)]


def uint_types() -> dict[str, tuple[int, int]]:
    return {f"type{index}": (7 + 3 * index, 4) for index in range(4)}


# ---------------------------------------------------------------- packed headers (section 7)


def test_a_pitch_header():
    words = bits(
        components=(0, 0x0F), **uint_types(), low=(37, 0x12345600 >> 5), high=(64, 0x7F), version=(85, 2), pitch=(96, 256 // 32),
        width=(128, 60 - 1), height=(160, 4 - 1), kind=(151, 1),
    )  # fmt: skip
    assert describe(words) == {
        "format": "R32_UINT", "geometry": "2d", "layout": "pitch", "width": 60, "height": 4, "levels": 1, "pitch": 256,
        "address": 0x7F12345600,
    }  # fmt: skip


def test_a_block_linear_header():
    words = bits(
        components=(0, 0x08), **{name: (low, 2) for name, (low, _) in uint_types().items()}, low=(41, 0x4000 >> 9),
        version=(85, 3), gobs_h=(99, 2), gobs_d=(102, 1), width=(128, 63), height=(160, 31), depth=(176, 15), kind=(151, 2),
        mips=(124, 2),
    )  # fmt: skip
    assert describe(words) == {
        "format": "R8G8B8A8_UNORM", "geometry": "3d", "layout": "block_linear", "width": 64, "height": 32, "depth": 16,
        "levels": 3, "block_height_log2": 2, "block_depth_log2": 1, "address": 0x4000,
    }  # fmt: skip


def test_a_buffer_header_has_32_bits_of_width():
    words = bits(components=(0, 0x0F), **uint_types(), low=(32, 0x1001), high_width=(96, 2), width=(128, 5), kind=(151, 6))
    assert describe(words) == {
        "format": "R32_UINT", "geometry": "1d_buffer", "layout": "linear", "width": 0x20006, "levels": 1, "address": 0x1001,
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "depth", "geometry", "layers"), [(5, 7, "a2d", 8), (3, 0, "cube", 6), (8, 1, "acube", 12)])
def test_the_depth_holds_the_layers(kind, depth, geometry, layers):
    words = bits(components=(0, 0x0F), **uint_types(), version=(85, 3), width=(128, 7), height=(160, 7), depth=(176, depth),
                 kind=(151, kind))  # fmt: skip
    found = describe(words)
    assert (found["geometry"], found["layers"]) == (geometry, layers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"components": (0, 0x09)}, "9 is no component sizes"),
        ({"version": (85, 4)}, "4 is no version"),
        ({"kind": (151, 9)}, "9 is no type"),
        ({"type0": (7, 5)}, "5 is no data type"),
        ({"gobs_w": (96, 1)}, "one GOB wide"),
    ],
)
def test_headers_of_no_surface(change, message):
    fields = {"components": (0, 0x0F), **uint_types(), "version": (85, 3), "kind": (151, 1)}
    with pytest.raises(ptxemu.InputError, match=message):
        describe(bits(**fields | change))


OPTIONS = [
    ("2d", (6, 10), {"pitch": 64}), ("2d", (40, 20), {"layout": "block_linear", "block_height_log2": 2}),
    ("a2d", (3, 10, 20), {"layout": "block_linear", "block_height_log2": 4}),
    ("3d", (4, 16, 32), {"layout": "block_linear", "block_height_log2": 1, "block_depth_log2": 1}),
    ("1d_buffer", (70000,), {"layout": "linear"}), ("cube", (6, 8, 8), {"layout": "block_linear"}),
]  # fmt: skip


@pytest.mark.parametrize(("geometry", "shape", "options"), OPTIONS, ids=lambda value: value if isinstance(value, str) else None)
def test_a_header_and_a_surface_are_the_same(geometry, shape, options):
    made = device().surface(shape, format="R32_UINT", geometry=geometry, **options)
    again = surface_of(device(), header_of(made.surface))
    one, two = made.surface.descriptor, again.surface.descriptor
    for name in ("geom", "width", "height", "depth", "layers", "levels", "kind", "bits", "components", "layout", "pitch",
                 "slice_stride", "layer_stride", "total_bytes", "block_h_log2", "block_d_log2", "base"):  # fmt: skip
        assert getattr(one, name) == getattr(two, name), name
    made.copy_from_host(np.arange(np.prod(shape), dtype=np.uint32).reshape(shape))
    assert (again.copy_to_host() == made.copy_to_host()).all()


def test_a_program_runs_on_a_packed_header():
    words = device().empty(64, np.uint32)
    header = bits(components=(0, 0x0F), **uint_types(), low=(37, (words.address & 0xFFFFFFFF) >> 5),
                  high=(64, words.address >> 32), version=(85, 2), pitch=(96, 2), width=(128, 15), height=(160, 3),
                  kind=(151, 1))  # fmt: skip
    run("SURED.D.2D.ADD [R4], R8, 0x52", {"R4": 2, "R5": 1, "R8": 9}, surface_of(device(), header))
    assert np.flatnonzero(words.copy_to_host()).tolist() == [18]


# ---------------------------------------------------------------- layouts (section 8)

with (DATA / "vectors_addressing.csv").open(newline="") as _file:
    ADDRESSING = [row for row in csv.DictReader(_file) if int(row["x_elem"]) * int(row["elem_bytes"]) % 4 == 0]


def _shape(geom: str, extents: list[int]) -> tuple[int, ...]:
    width, height, depth, layers = extents
    return {"1d": (width,), "2d": (height, width), "3d": (depth, height, width), "a1d": (layers, width),
            "a2d": (layers, height, width)}[geom]  # fmt: skip


@pytest.mark.parametrize("row", ADDRESSING, ids=lambda row: "-".join(list(row.values())[:16]))
def test_addressing_vectors(row):
    """Every vector whose texel starts at a multiple of 4 bytes: the sum lies at the vector's offset."""
    formats = {1: "R8_UINT", 2: "R16_UINT", 4: "R32_UINT", 8: "R32G32_UINT", 16: "R32G32B32A32_UINT"}
    extents = [max(1, int(row[name] or 0)) for name in ("width", "height", "depth", "layers")]
    geom, size = row["geom"], int(row["elem_bytes"])
    options = {"pitch": int(row["pitch"])} if row["layout"] == "pitch" else {
        "layout": "block_linear", "block_height_log2": int(row["req_block_h_log2"]),
        "block_depth_log2": int(row["req_block_d_log2"]),
    }  # fmt: skip
    surface = device().surface(_shape(geom, extents), format=formats[size], geometry=geom, **options)
    x, y, z, layer = (int(row[name] or 0) for name in ("x_elem", "y", "z", "layer"))
    byte = x * size
    if byte + 4 > extents[0] * size:
        return  # a word there crosses the end of the row
    places = {"1d": (byte,), "2d": (byte, y), "3d": (byte, y, z), "a1d": (byte, layer), "a2d": (byte, y, layer)}[geom]
    registers = {f"R{4 + index}": value for index, value in enumerate(places)}
    run(f"SURED.D.BA.{DIMS[geom]}.ADD.TRAP [R4], R8, 0x52", {**registers, "R8": 0x01010101}, surface)
    offset = int(row["byte_offset"])
    assert np.flatnonzero(memory(surface)).tolist() == list(range(offset, offset + 4))


def test_the_layer_example():
    """20 x 10 R32, requested block height 4: texel (7, 9) of layer 3 is at 6716."""
    surface = device().surface((4, 10, 20), format="R32_UINT", geometry="a2d", layout="block_linear", block_height_log2=4)
    run("SURED.D.2D_ARRAY.OR [R4], R8, 0x52", {"R4": 7, "R5": 9, "R6": 3, "R8": 1}, surface)
    assert np.flatnonzero(memory(surface)).tolist() == [6716]


# ---------------------------------------------------------------- policies


@pytest.mark.parametrize(("policy", "both"), [("other", 0x7FFF), ("keep_old", 0x7E00)])
@pytest.mark.parametrize("op", ["MIN", "MAX"])
def test_nan_policy_of_minimum_and_maximum(policy, both, op):
    """A NaN loses to a number; of two NaNs the result is canonical, or with keep_old what memory has."""
    for old, value, expected in ((0x7E00, 0x3C00, 0x3C00), (0x3C00, 0x7E00, 0x3C00), (0x7E00, 0x7C01, both)):
        start = np.full(1, old * 0x10001, np.uint32)
        surface, buffer = device().surface(start, format="R32_UINT", geometry="1d"), device().to_device(start)
        registers = {"R4": 0, "R8": value * 0x10001, "R10": buffer.address - device().arena.base + BIAS}
        text = [f"SURED.D.1D.{op}.F16x2.RN [R4], R8, 0x52", f"RED.{op}.F16x2.RN [R10], R8"]
        run(text, registers, surface, options={"fminmax_nan": policy})
        assert int(surface.copy_to_host()[0]) == int(buffer.copy_to_host()[0]) == expected * 0x10001


# ---------------------------------------------------------------- register files on the command line


def test_register_files_are_npy(tmp_path, capfd):
    program, x, y = tmp_path / "k.sass", tmp_path / "x.npy", tmp_path / "y.npy"
    program.write_text(".kernel k\n.in R4 x\n.out R5 y\n IADD R5, R4, R4\n EXIT\n")
    np.save(x, np.arange(64, dtype=np.uint32))
    launch = ["--grid", "2", "--block", "32", "--arg", f"x=@{x}", "--arg", "y=zeros:u32:64", "--out", f"y={y}"]
    assert command(["run", str(program), *launch]) == 0
    assert (np.load(y) == 2 * np.arange(64)).all()


CASE = """
program = "p.sass"
dialect = "sass"
block = 1
grid = 1
[options]
invalid_header = "fault"
[args]
at = { values = [9], dtype = "u32" }
[bind]
image = "texels"
[surfaces.texels]
format = "R32_UINT"
layout = "block_linear"
gob_order = "linear"
block_height_log2 = 0
width = 16
height = 16
enabled = true
[expect.outputs.texels]
expression = "np.eye(16, dtype=np.uint32)[9:10].T * np.eye(16, dtype=np.uint32)[9:10]"
"""


def test_options_of_a_case(tmp_path, capfd):
    text = ".header 1 image\n.const c[0][0x148] = {}\n.kernel k\n.in R4 at\nMOV R5, R4\nMOV32I R6, 0x1\n"
    text += "SURED.D.2D.ADD [R4], R6, 0x52\nEXIT"
    (tmp_path / "case.toml").write_text(CASE)
    (tmp_path / "p.sass").write_text(text.format(1))
    assert command(["run", str(tmp_path)]) == 0
    (tmp_path / "p.sass").write_text(text.format(2))
    assert command(["run", str(tmp_path)]) == 1
    assert "invalid surface handle" in capfd.readouterr().err
    (tmp_path / "case.toml").write_text(CASE.replace('"fault"', "[1]"))
    assert command(["run", str(tmp_path)]) == 2
    assert "options.invalid_header: must be a text, a number or a truth value" in capfd.readouterr().err
