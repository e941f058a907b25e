"""Packed texture headers, memory layouts and command-line register files."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run as command
from ptxemu.device.surface import Surface
from ptxemu.device.surface_format import FORMATS
from ptxemu.dialects.sass.memory import BIAS
from ptxemu.dialects.sass.texture_header import describe, header_of, surface_of
from tests.support.sass_harness import device, run


def bits(**places: tuple[int, int]) -> list[int]:
    """Eight words from the lowest bit and the value of every field."""
    whole = 0
    for low, value in places.values():
        whole |= value << low
    return [whole >> 32 * index & 0xFFFFFFFF for index in range(8)]


def uint_types() -> dict[str, tuple[int, int]]:
    return {f"type{index}": (7 + 3 * index, 4) for index in range(4)}


# ---------------------------------------------------------------- packed headers


def test_a_pitch_header():
    """Version 2."""
    words = bits(
        components=(0, 0x0F), **uint_types(), low=(37, 0x12345600 >> 5), high=(64, 0x7F), version=(85, 2), pitch=(96, 256 // 32),
        width=(128, 60 - 1), height=(160, 4 - 1), kind=(151, 1),
    )  # fmt: skip
    assert describe(words) == {
        "format": "R32_UINT", "geometry": "2d", "layout": "pitch", "width": 60, "height": 4, "levels": 1, "pitch": 256,
        "address": 0x7F12345600,
    }  # fmt: skip


def test_a_block_linear_header():
    """Version 3."""
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
    """Version 0."""
    words = bits(components=(0, 0x0F), **uint_types(), low=(32, 0x1001), high_width=(96, 2), width=(128, 5), kind=(151, 6))
    assert describe(words) == {
        "format": "R32_UINT", "geometry": "1d_buffer", "layout": "linear", "width": 0x20006, "levels": 1, "address": 0x1001,
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "depth", "geometry", "layers"), [(5, 7, "a2d", 8), (3, 0, "cube", 6), (8, 1, "acube", 12)])
def test_the_depth_holds_the_layers(kind, depth, geometry, layers):
    """Of cubes, a sixth of the layers."""
    words = bits(components=(0, 0x0F), **uint_types(), version=(85, 3), width=(128, 7), height=(160, 7), depth=(176, depth),
                 kind=(151, kind))  # fmt: skip
    found = describe(words)
    assert (found["geometry"], found["layers"]) == (geometry, layers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"components": (0, 0x02)}, "2 is not a valid code of component sizes"),
        ({"version": (85, 1)}, "1 is not a valid code of version"),
        ({"version": (85, 4)}, "4 is not a valid code of version"),
        ({"version": (85, 7)}, "7 is not a valid code of version"),
        ({"kind": (151, 9)}, "9 is not a valid code of type"),
        ({"type0": (7, 0)}, "0 is not a valid code of data type"),
        ({"type0": (7, 5)}, "5 is not a valid code of data type"),
        ({"type0": (7, 6)}, "6 is not a valid code of data type"),
        ({"components": (0, 0x0C), "type1": (10, 3)}, "different data types"),
        ({"gobs_w": (96, 1)}, "one GOB wide"),
        ({"gobs_h": (99, 6)}, "block size"),
        ({"gobs_d": (102, 7)}, "block size"),
    ],
)
def test_headers_of_no_surface(change, message):
    """Color keys, forced fp16, wide blocks and mixed components are no surfaces."""
    fields = {"components": (0, 0x0F), **uint_types(), "version": (85, 3), "kind": (151, 1)}
    with pytest.raises(ptxemu.Error, match=message):
        surface_of(device(), bits(**fields | change))
    with pytest.raises(ptxemu.InputError, match="8 words of 32 bits"):
        describe([0] * 7)


SIZES = {0x01: "R32G32B32A32", 0x03: "R16G16B16A16", 0x04: "R32G32", 0x08: "R8G8B8A8", 0x09: "R10G10B10A2", 0x0C: "R16G16",
         0x0F: "R32", 0x18: "R8G8", 0x1B: "R16", 0x1D: "R8"}  # fmt: skip
KINDS = {1: "SNORM", 2: "UNORM", 3: "SINT", 4: "UINT", 7: "FLOAT"}


@pytest.mark.parametrize("kind", KINDS)
def test_component_sizes_and_types(kind):
    """Every size code with every data type; those of components that the size lacks, and swizzles, do not count."""
    for code, size in SIZES.items():
        count = sum(size.count(letter) for letter in "RGBA")
        types = {f"type{index}": (7 + 3 * index, kind if index < count else 5) for index in range(4)}
        sources = {f"source{index}": (19 + 3 * index, 7 - index) for index in range(4)}
        words = bits(components=(0, code), **types, **sources, version=(85, 2), pitch=(96, 4), kind=(151, 1))
        format = f"{size}_{KINDS[kind]}"
        assert describe(words)["format"] == format
        if format in FORMATS:
            surface = device().surface((2, 2), format=format, pitch=32)
            again = header_of(surface.surface)
            assert describe(again)["format"] == format
            assert [again[0] >> at & 7 for at in (19, 22, 25, 28)] == [2, 3, 4, 5]


@pytest.mark.parametrize("format", [name for name in FORMATS if not name.startswith(("B", "A"))])
def test_raw_reductions_on_every_size(format):
    """Data is raw, whatever the size code and the data type; a surface and its header reach the same bytes."""
    made = device().surface((2, 16), format=format, pitch=max(32, 16 * FORMATS[format].texel_bytes))
    again = surface_of(device(), header_of(made.surface))
    run("SURED.D.BA.2D.ADD.TRAP [R4], R8, 0x52", {"R4": [0, 4, 12], "R5": [0, 1, 1], "R8": [0x01020304, 5, 6]}, again)
    words = made.surface.arena.view(made.surface.address, made.surface.total_bytes).view(np.uint32)
    row = len(words) // 2
    assert words[[0, row + 1, row + 3]].tolist() == [0x01020304, 5, 6] and np.count_nonzero(words) == 3


def test_what_a_header_cannot_hold():
    """Pitches and addresses of pitch headers are multiples of 32."""
    buffer = device().empty(256, np.uint8)
    for options in ({"pitch": 48}, {"pitch": 64, "address": buffer.address + 16}):
        with pytest.raises(ptxemu.InputError, match="which is not a multiple of 32"):
            header_of(Surface(device().arena, "R32_UINT", 4, 2, **options))


@pytest.mark.parametrize(("kind", "expected"), [("SINT", 0xFFFFFFFF), ("UINT", 1)])
def test_packed_components_are_words(kind, expected):
    """A2B10G10R10 has four bytes, arrays of words, and the sign of its data type; R10G10B10A2 cannot be float."""
    surface = device().surface(np.full((1, 4), 0xFFFFFFFF, np.uint32), format=f"R10G10B10A2_{kind}")
    run("SURED.D.2D.MIN.SD32 [R4], R8, 0x52", {"R4": 2, "R5": 0, "R8": 1}, surface)
    assert surface.copy_to_host().tolist() == [[0xFFFFFFFF, 0xFFFFFFFF, expected, 0xFFFFFFFF]]
    with pytest.raises(ptxemu.InputError, match="no surface format is named 'R10G10B10A2_FLOAT'"):
        device().surface((1, 4), format="R10G10B10A2_FLOAT")


PACKED = """.version 8.8
.target sm_90
.address_size 64
.entry raw(.param .u64 s, .param .u64 p) { .reg .b64 %s, %p; .reg .b32 %r;
ld.param.u64 %s, [s]; ld.param.u64 %p, [p];
suld.b.2d.b32.trap %r, [%s, {4, 0}]; st.global.b32 [%p], %r; sust.b.2d.b32.trap [%s, {8, 0}], %r;
suq.channel_data_type.b32 %r, [%s]; st.global.b32 [%p+4], %r; suq.channel_order.b32 %r, [%s]; st.global.b32 [%p+8], %r; ret; }
.entry converted(.param .u64 s) { .reg .b64 %s; ld.param.u64 %s, [s];
sust.p.2d.v4.b32.zero [%s, {0, 0}], {1, 1, 1, 1}; ret; }
"""


QUERIES = [("UNORM", "opencl", 0x10E0, 0x10B5), ("UNORM", "cuda", 0x50, 4), ("SNORM", "opencl", 0, 0x10B5)]


@pytest.mark.parametrize(("kind", "family", "type", "order"), QUERIES)
def test_packed_components_are_moved_and_never_converted(kind, family, type, order):
    """PTX moves the words; a formatted store is unsupported, and says so with its line; textures are refused."""
    surface = device().surface(np.array([[1, 0x80000002, 0, 0]], np.uint32), format=f"R10G10B10A2_{kind}", enum_family=family)
    module, words = ptxemu.loads(PACKED, device=device()), np.zeros(3, np.uint32)
    module["raw"][1, 1](surface, words)
    assert words.tolist() == [0x80000002, type, order]
    with pytest.raises(ptxemu.UnsupportedError, match=r"unsupported: a formatted store .* at <string>:9: .* 4-byte access"):
        module["converted"][1, 1](surface)
    assert surface.copy_to_host().tolist() == [[1, 0x80000002, 0x80000002, 0]]
    with pytest.raises(ptxemu.InputError, match="packed components cannot be read"):
        device().texture(surface)


def test_fields_that_a_type_has_not():
    """A plain 1D or 2D header ignores height and depth, and 2D without mip levels the greatest level."""
    common = {"components": (0, 0x0F), **uint_types(), "version": (85, 3), "width": (128, 7), "height": (160, 4),
              "depth": (176, 2), "mips": (124, 2)}  # fmt: skip
    found = {kind: describe(bits(**common, kind=(151, kind))) for kind in (0, 1, 2, 4, 5, 7)}
    axes = {kind: tuple(each.get(name) for name in ("height", "depth", "layers", "levels")) for kind, each in found.items()}
    assert axes == {0: (None, None, None, 3), 1: (5, None, None, 3), 2: (5, 3, None, 3), 4: (None, None, 3, 3),
                    5: (5, None, 3, 3), 7: (5, None, None, 1)}  # fmt: skip


def test_the_ends_of_the_fields():
    """48 bits of address in every version, 16 of pitch in units of 32, 16 of the extents."""
    common = {"components": (0, 0x0F), **uint_types(), "high": (64, 0xFFFF), "kind": (151, 1), "width": (128, 0xFFFF),
              "height": (160, 0xFFFF)}  # fmt: skip
    pitch = describe(bits(**common, low=(37, (1 << 27) - 1), version=(85, 2), pitch=(96, 0xFFFF)))
    assert (pitch["address"], pitch["pitch"]) == (0xFFFFFFFFFFE0, 0xFFFF * 32)
    assert (pitch["width"], pitch["height"]) == (65536, 65536)
    block = describe(bits(**common, low=(41, (1 << 23) - 1), version=(85, 3)))
    assert block["address"] == 0xFFFFFFFFFE00
    buffer = describe(bits(**common | {"kind": (151, 6)}, low=(32, 0xFFFFFFFF), high_width=(96, 0xFFFF)))
    assert (buffer["address"], buffer["width"]) == (0xFFFFFFFFFFFF, 1 << 32)
    with pytest.raises(ptxemu.InputError, match="cannot describe B8G8R8A8"):
        header_of(device().surface((2, 2), format="B8G8R8A8_UNORM").surface)


# ---------------------------------------------------------------- worked examples through packed headers

# Data bits of R8G8B8A8, R32 and R8; the texel type of UNORM does not matter to raw reductions.
GRID = {"components": (0, 0x08), **{f"type{n}": (7 + 3 * n, 2) for n in range(4)}}
WORD, BYTE = ({"components": (0, code), "type0": (7, 4)} for code in (0x0F, 0x1D))
EXAMPLES = [
    # 8.1: pitch 256, 60 x 30
    (GRID | {"version": (85, 2), "pitch": (96, 8), "width": (128, 59), "height": (160, 29), "kind": (151, 1)}, "2D",
     {(20, 3): 788}),
    # 8.2: 64 x 64, blocks of 4 GOBs
    (GRID | {"version": (85, 3), "gobs": (99, 2), "width": (128, 63), "height": (160, 63), "kind": (151, 1)}, "2D",
     {(0, 0): 0, (20, 3): 116, (64, 0): 2048, (64, 8): 2560, (20, 33): 8244, (252, 63): 16380}),
    # 8.2: the places in a GOB, as bytes of an R8 surface
    (BYTE | {"version": (85, 3), "width": (128, 63), "height": (160, 7), "kind": (151, 7)}, "2D",
     {(16, 0): 32, (32, 0): 256, (0, 1): 16, (0, 2): 64, (20, 3): 116, (48, 7): 496}),
    # 8.2: 32 x 16 x 4 of R32, blocks of 2 x 2 GOBs
    (WORD | {"version": (85, 3), "gobs": (99, 1), "gobs_d": (102, 1), "width": (128, 31), "height": (160, 15), "depth": (176, 3),
             "kind": (151, 2)}, "3D", {(12, 2, 1): 1100, (68, 9, 2): 6676, (124, 15, 3): 8188}),
    # 8.3: an array of R8 64 x 48 with seven levels; level 0 of each layer
    (BYTE | {"version": (85, 3), "gobs": (99, 4), "width": (128, 63), "height": (160, 47), "depth": (176, 2), "mips": (124, 6),
             "kind": (151, 5)}, "2D_ARRAY", {(0, 0, 1): 12288, (0, 0, 2): 24576}),
    # 8.3: an array of R32 20 x 10, blocks shrunk from 16 GOBs to 2
    (WORD | {"version": (85, 3), "gobs": (99, 4), "width": (128, 19), "height": (160, 9), "depth": (176, 3), "kind": (151, 5)},
     "2D_ARRAY", {(28, 9, 3): 6716}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "dim", "places"), EXAMPLES)
def test_examples_of_layouts(fields, dim, places):
    """A sum lies at the example's offset."""
    buffer = device().to_device(np.zeros(65536, np.uint8))
    start = -(-buffer.address // 512) * 512
    low = (37, (start & 0xFFFFFFFF) >> 5) if fields["version"] == (85, 2) else (41, (start & 0xFFFFFFFF) >> 9)
    surface = surface_of(device(), bits(**fields, low=low, high=(64, start >> 32)))
    registers = {f"R{4 + index}": list(axis) for index, axis in enumerate(zip(*places, strict=True))}
    run(f"SURED.D.BA.{dim}.ADD.TRAP [R4], R8, 0x52", {**registers, "R8": 1}, surface)
    assert np.flatnonzero(buffer.copy_to_host()).tolist() == sorted(start - buffer.address + at for at in places.values())


OPTIONS = [
    ("2d", (6, 10), {"pitch": 64}), ("2d", (40, 20), {"layout": "block_linear", "block_height_log2": 2}),
    ("a2d", (3, 10, 20), {"layout": "block_linear", "block_height_log2": 4}),
    ("3d", (4, 16, 32), {"layout": "block_linear", "block_height_log2": 1, "block_depth_log2": 1}),
    ("1d_buffer", (70000,), {"layout": "linear"}), ("cube", (6, 8, 8), {"layout": "block_linear"}),
]  # fmt: skip


@pytest.mark.parametrize(("geometry", "shape", "options"), OPTIONS, ids=lambda value: value if isinstance(value, str) else None)
def test_a_header_and_a_surface_are_the_same(geometry, shape, options):
    """A header and a surface are the same."""
    made = device().surface(shape, format="R32_UINT", geometry=geometry, **options)
    again = surface_of(device(), header_of(made.surface))
    one, two = made.surface.descriptor, again.surface.descriptor
    for name in ("geom", "width", "height", "depth", "layers", "levels", "kind", "bits", "components", "layout", "pitch",
                 "slice_stride", "layer_stride", "total_bytes", "block_h_log2", "block_d_log2", "base"):  # fmt: skip
        assert getattr(one, name) == getattr(two, name), name
    made.copy_from_host(np.arange(np.prod(shape), dtype=np.uint32).reshape(shape))
    assert (again.copy_to_host() == made.copy_to_host()).all()


def test_a_program_runs_on_a_packed_header():
    """A program runs on a packed header."""
    words = device().empty(64, np.uint32)
    header = bits(components=(0, 0x0F), **uint_types(), low=(37, (words.address & 0xFFFFFFFF) >> 5),
                  high=(64, words.address >> 32), version=(85, 2), pitch=(96, 2), width=(128, 15), height=(160, 3),
                  kind=(151, 1))  # fmt: skip
    run("SURED.D.2D.ADD [R4], R8, 0x52", {"R4": 2, "R5": 1, "R8": 9}, surface_of(device(), header))
    assert np.flatnonzero(words.copy_to_host()).tolist() == [18]


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


@pytest.mark.parametrize("op", ["MIN", "MAX"])
def test_nan_source_leaves_subnormals(op):
    """Unified model 4, fminmax_nan=keep_old: a NaN source leaves memory, also where .FTZ would flush it."""
    start = np.array([0x80010001, 0x3C008001], np.uint32)
    surface, buffer = device().surface(start, format="R32_UINT", geometry="1d"), device().to_device(start)
    places = np.arange(2)
    registers = {"R4": places, "R8": 0x7E007C01, "R10": buffer.address - device().arena.base + BIAS + 4 * places}
    text = [f"SURED.D.1D.{op}.F16x2.FTZ.RN [R4], R8, 0x52", f"RED.{op}.F16x2.FTZ.RN [R10], R8"]
    run(text, registers, surface, options={"fminmax_nan": "keep_old"})
    assert surface.copy_to_host().tolist() == buffer.copy_to_host().tolist() == start.tolist()


# ---------------------------------------------------------------- register files on the command line


def test_register_files_are_npy(tmp_path, capfd):
    program, x, y = tmp_path / "k.sass", tmp_path / "x.npy", tmp_path / "y.npy"
    program.write_text(".kernel k\n.in R4 x\n.out R5 y\n IADD R5, R4, R4\n EXIT\n")
    np.save(x, np.arange(64, dtype=np.uint32))
    launch = ["--grid", "2", "--block", "32", "--arg", f"x=@{x}", "--arg", "y=zeros:u32:64", "--out", f"y={y}"]
    assert command(["run", str(program), *launch]) == 0
    assert (np.load(y) == 2 * np.arange(64)).all()
    capfd.readouterr()
    assert command(["info", str(program)]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert [line.split() for line in shown[-2:]] == [["EXIT", "1"], ["IADD", "1"]], "directives are no instructions"


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
    (tmp_path / "case.toml").write_text(CASE.replace("invalid_header", "colour"))
    assert command(["run", str(tmp_path)]) == 2
    assert "case.toml: SASS has no option 'colour'; there are shared_window" in capfd.readouterr().err
