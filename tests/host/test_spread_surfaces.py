"""Surfaces in launches that are in parts: texels are merged as arrays are, conflicts name them, textures are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.case import Case, read_case, run_case
from ptxemu.case.runner import CaseRun
from ptxemu.spread.merge import ConflictError
from ptxemu.spread.part import PartRunner
from ptxemu.text.errors import InputError
from tests.support.places import ROOT
from tests.support.spreading import run_in_parts

BLOCKS, THREADS = 12, 32
COUNT = BLOCKS * THREADS
HEAD = """
.version 8.1
.target sm_70
.address_size 64
.visible .entry k(.param .u64 s, .param .u64 t, .param .u64 a)
{
  .reg .u32 %i, %b, %t, %x, %y, %z, %v, %r<6>; .reg .u64 %s, %tex, %a, %d<4>; .reg .pred %p; .reg .f32 %f<6>;
  ld.param.u64 %s, [s]; ld.param.u64 %tex, [t]; ld.param.u64 %a, [a];
  mov.u32 %b, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %b, 32, %t;
"""
STORE = "mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, %a; st.global.u32 [%d1], %v;"
LAUNCH = f"grid = {BLOCKS}\nblock = {THREADS}\n"
ARGUMENTS = 'args = { s = "s", t = "t", a = "a" }\n'
ARRAY = '[buffers.a]\nzeros = { dtype = "u32", shape = 512 }\n'
TEXTURE = '[textures.t]\ngeometry = "1d"\ndata = { zeros = { dtype = "u32", shape = 8 } }\n'


@pytest.fixture(scope="module")
def device() -> ptxemu.Device:
    return ptxemu.Device(workers=1)


def case_of(folder: Path, body: str, surface: str, texture: str = TEXTURE, top: str = LAUNCH + ARGUMENTS) -> Case:
    """A case of a kernel with a surface ``s``, a texture ``t`` and an array ``a``."""
    (folder / "k.ptx").write_text(f"{HEAD}{body}\n  ret;\n}}\n")
    (folder / "case.toml").write_text(f'ptx = "k.ptx"\n{top}[surfaces.s]\n{surface}{texture}{ARRAY}')
    return read_case(folder)


def surface_of(geometry: str, *extents: int, format: str = "R32_UINT", more: str = "") -> str:
    names = {"1d": "width", "2d": "width height", "3d": "width height depth", "a1d": "width layers", "a2d": "width height layers"}
    sizes = "".join(f"{name} = {size}\n" for name, size in zip(names[geometry].split(), extents, strict=True))
    return f'geometry = "{geometry}"\nformat = "{format}"\n{sizes}{more}'


BLOCK_LINEAR = 'layout = "block_linear"\nblock_height_log2 = 1\n'
EXTENTS = "rem.u32 %x, %i, 19; div.u32 %y, %i, 19; rem.u32 %y, %y, 5; div.u32 %z, %i, 95; shl.b32 %x, %x, 2;"
GEOMETRIES = [
    ("1d", "shl.b32 %x, %i, 2;", "{%x}", (400,), 'layout = "linear"\n'),
    ("2d", "rem.u32 %x, %i, 19; div.u32 %y, %i, 19; shl.b32 %x, %x, 2;", "{%x, %y}", (19, 21), "pitch = 128\n"),
    ("2d", "rem.u32 %x, %i, 19; div.u32 %y, %i, 19; shl.b32 %x, %x, 2;", "{%x, %y}", (19, 21), BLOCK_LINEAR),
    ("2d", "rem.u32 %x, %i, 19; div.u32 %y, %i, 19; shl.b32 %x, %x, 2;", "{%x, %y}", (19, 21),
     BLOCK_LINEAR + 'gob_order = "linear"\nlevels = 3\n'),
    ("3d", EXTENTS, "{%x, %y, %z, %z}", (19, 5, 5), BLOCK_LINEAR),
    ("a1d", "rem.u32 %x, %i, 19; div.u32 %y, %i, 19; shl.b32 %x, %x, 2;", "{%y, %x}", (19, 21), ""),
    ("a2d", EXTENTS, "{%z, %x, %y, %y}", (19, 5, 5), ""),
]  # fmt: skip


@pytest.mark.parametrize("ends", [(1, 2, 11), tuple(range(1, BLOCKS))], ids=["4 parts", "12 parts"])
@pytest.mark.parametrize(("geometry", "place", "at", "extents", "more"), GEOMETRIES)
def test_parts_write_what_one_launch_writes(
    geometry: str, place: str, at: str, extents: tuple[int, ...], more: str, ends: tuple[int, ...], tmp_path: Path,
    device: ptxemu.Device,
) -> None:  # fmt: skip
    body = f"{place} mad.lo.u32 %v, %i, 7, 1; sust.b.{geometry}.b32.trap [%s, {at}], %v;"
    case = case_of(tmp_path, body, surface_of(geometry, *extents, more=more))
    found = run_in_parts(case, device, ends).arrays["s"]
    wanted = np.zeros(found.size, np.uint32)
    wanted[:COUNT] = np.arange(COUNT) * 7 + 1
    assert found.reshape(-1).tolist() == wanted.tolist() and found.shape == extents[::-1]
    assert found.tobytes() == run_case(case, device=device).arrays["s"].tobytes()


def test_blocks_may_write_bytes_of_one_word(tmp_path: Path, device: ptxemu.Device) -> None:
    """Texels of one byte: neighbours are of different blocks."""
    body = """
      mad.lo.u32 %x, %t, 12, %b; cvt.u16.u32 %h, %i; sust.b.1d.b8.trap [%s, {%x}], %h;""".replace("%h", "%h1")
    case = case_of(tmp_path, ".reg .u16 %h1;" + body, surface_of("1d", COUNT, format="R8_UINT"))
    found = run_in_parts(case, device, (5, 7)).arrays["s"]
    index = np.arange(COUNT)
    assert found.tolist() == (index % 12 * 32 + index // 12).astype(np.uint8).tolist()


def test_formatted_stores_are_merged(tmp_path: Path, device: ptxemu.Device) -> None:
    body = """
      cvt.rn.f32.u32 %f1, %b; div.rn.f32 %f1, %f1, 0f41300000; mov.b32 %r1, %f1; mov.b32 %r2, 0; mov.b32 %r3, 0f3F800000;
      sust.p.2d.v4.b32.trap [%s, {%t, %b}], {%r1, %r2, %r3, %r3};"""
    case = case_of(tmp_path, body, surface_of("2d", THREADS, BLOCKS, format="R8G8B8A8_UNORM"))
    wanted = np.zeros((BLOCKS, THREADS, 4), np.uint8)
    wanted[..., 0] = np.rint(np.arange(BLOCKS) / 11 * 255)[:, None]
    wanted[..., 2:] = 255
    assert np.array_equal(run_in_parts(case, device, (4,)).arrays["s"], wanted)


REDUCTIONS = [
    ("b", "add", "u32", "R32_UINT", "u4"), ("b", "add", "s32", "R32_SINT", "i4"), ("b", "add", "u64", "R32G32_UINT", "u8"),
    ("b", "min", "u32", "R32_UINT", "u4"), ("b", "max", "s32", "R32_SINT", "i4"), ("b", "min", "s64", "R32G32_SINT", "i8"),
    ("b", "max", "u64", "R32G32_UINT", "u8"), ("b", "and", "b32", "R32_UINT", "u4"), ("b", "or", "b32", "R32_SINT", "i4"),
    ("p", "add", "b32", "R32_UINT", "u4"), ("p", "min", "b32", "R32_UINT", "u4"), ("p", "min", "b32", "R32_SINT", "i4"),
    ("p", "max", "b32", "R32_SINT", "i4"), ("p", "min", "b64", "R32G32_SINT", "i8"), ("p", "or", "b32", "R8G8B8A8_UINT", "u4"),
]  # fmt: skip
UFUNCS = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}


@pytest.mark.parametrize(("mode", "operation", "type", "format", "dtype"), REDUCTIONS)
def test_reductions_of_texels(
    mode: str, operation: str, type: str, format: str, dtype: str, tmp_path: Path, device: ptxemu.Device
) -> None:
    size = np.dtype(dtype).itemsize
    value = "%v" if size == 4 else "%d2"
    body = f"""
      and.b32 %x, %i, 7; {f"mul.lo.u32 %x, %x, {size};" if mode == "b" else ""}
      mul.lo.u32 %v, %i, 2654435761; cvt.u64.u32 %d2, %v; mul.lo.u64 %d2, %d2, 11400714819323198485;
      sured.{mode}.1d.{operation}.{type}.trap [%s, {{%x}}], {value};"""
    np.save(tmp_path / "first.npy", first := np.random.default_rng(5).integers(0, 255, 8 * size, dtype="u1"))
    shaped = first.view(format_dtype(format))
    np.save(tmp_path / "first.npy", shaped.reshape(8, -1).squeeze())
    data = f'geometry = "1d"\nformat = "{format}"\nlayout = "linear"\ndata = {{ npy = "first.npy" }}\n'
    case = case_of(tmp_path, body, data)
    index = np.arange(COUNT, dtype="u8")
    words = index * 2654435761 % 2**32
    values = (words if size == 4 else words * np.uint64(11400714819323198485)).astype(f"u{size}").view(dtype)
    wanted = first.view(dtype).copy()
    UFUNCS[operation].at(wanted, (index % 8).astype(int), values)
    for ends in ((1, 2, 11), (6,)):
        assert run_in_parts(case, device, ends).arrays["s"].tobytes() == wanted.tobytes()
    assert run_case(case, device=device).arrays["s"].tobytes() == wanted.tobytes()


def format_dtype(format: str) -> str:
    return {"R8": "u1"}.get(format[:2], "i4" if format.endswith("SINT") else "u4")


ROW = "shl.b32 %x, %t, 2;"
CONFLICTS = [
    ("mov.u32 %x, 12; mov.u32 %y, 3; sust.b.2d.b32.trap [%s, {%x, %y}], %b;", surface_of("2d", 8, 8, more=BLOCK_LINEAR),
     "block (1,0,0) writes texel x=3, y=3 of s, which block (3,0,0) writes, too"),
    ("mov.u32 %x, 4; mov.u32 %z, 2; sust.b.a1d.b32.trap [%s, {%z, %x}], %b;", surface_of("a1d", 8, 3),
     "block (1,0,0) writes texel x=1, layer=2 of s, which block (3,0,0) writes, too"),
    ("mov.u32 %x, 0; sust.b.3d.b32.trap [%s, {%x, %x, %t, %t}], %b;", surface_of("3d", 2, 2, 32),
     "block (1,0,0) writes texel x=0, y=0, z=0 of s, which block (3,0,0) writes, too"),
    ("sust.b.2d.b32.trap [%s, {0, %b}], %b; sub.u32 %y, 3, %b; suld.b.2d.b32.trap %v, [%s, {0, %y}];" + STORE,
     surface_of("2d", 8, 8), "block (0,0,0) writes texel x=0, y=0 of s, which block (3,0,0) reads, too"),
    ("sured.b.1d.add.u32.trap [%s, {0}], 1; setp.eq.u32 %p, %b, 2; @%p sured.b.1d.max.u32.trap [%s, {0}], %b;",
     surface_of("1d", 8), "block (1,0,0) writes texel x=0 of s, which block (3,0,0) writes, too"),
    ("sured.b.1d.add.u32.trap [%s, {4}], 1; suld.b.1d.b32.trap %v, [%s, {4}];" + STORE, surface_of("1d", 8),
     "writes texel x=1 of s, which block"),
    ("sured.b.1d.add.u32.trap [%s, {4}], 1;", surface_of("1d", 8, format="R8_UINT", more='layout = "pitch"\npitch_align = 2\n'),
     "writes texel x=4 of s, which block"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "surface", "message"), CONFLICTS)
def test_conflicts_name_the_blocks_and_the_texel(
    body: str, surface: str, message: str, tmp_path: Path, device: ptxemu.Device
) -> None:
    case = case_of(tmp_path, body, surface, top=f"grid = 4\nblock = 1\n{ARGUMENTS}")
    with pytest.raises(ConflictError) as caught:
        run_in_parts(case, device, (2,))
    assert message in str(caught.value)


def test_texels_of_mip_levels_have_names(tmp_path: Path, device: ptxemu.Device) -> None:
    """What lies at each byte of a surface with levels and layers, where the runtime says that texels lie."""
    runner = PartRunner(CaseRun(case_of(tmp_path, "", surface_of("a2d", 6, 4, 2, more="levels = 2\n")), device))
    surface = runner.run.resources.surfaces["s"].surface
    for x, y, layer, level in ((5, 3, 1, 0), (2, 1, 1, 1), (0, 0, 0, 1)):
        at = surface.offset(x, y, 0, layer, level)
        assert runner.place("s", at + 3) == f"texel x={x}, y={y}, layer={layer}, level={level} of s"
    assert runner.place("s", surface.offset(5, 3) + 4) == f"byte {surface.offset(5, 3) + 4} of s"  # padding of a row
    assert runner.place("a", 7) == "byte 7 of a"


def test_the_same_value_in_a_texel_is_no_conflict(tmp_path: Path, device: ptxemu.Device) -> None:
    case = case_of(tmp_path, "mov.u32 %v, 9; sust.b.1d.b32.trap [%s, {8}], %v;", surface_of("1d", 4))
    assert run_in_parts(case, device, (3, 5)).arrays["s"].tolist() == [0, 0, 9, 0]


def test_parts_read_textures(tmp_path: Path, device: ptxemu.Device) -> None:
    """All levels of one that has several."""
    for level, count in enumerate((8, 4, 2)):
        np.save(tmp_path / f"level{level}.npy", np.arange(count, dtype="u4") + 100 * level)
    levels = ", ".join(f'{{ npy = "level{level}.npy" }}' for level in range(3))
    texture = f'[textures.t]\ngeometry = "1d"\nmip_filter = "point"\nnormalized = true\ndata = [{levels}]\n'
    body = f"""
      rem.u32 %x, %b, 3; shr.u32 %y, 8, %x; cvt.rn.f32.u32 %f3, %y; rem.u32 %y, %t, %y; cvt.rn.f32.u32 %f1, %y;
      add.f32 %f1, %f1, 0f3F000000; div.rn.f32 %f1, %f1, %f3; cvt.rn.f32.u32 %f2, %x;
      tex.level.1d.v4.u32.f32 {{%v, %r1, %r2, %r3}}, [%tex, {{%f1}}], %f2; {STORE}"""
    case = case_of(tmp_path, body, surface_of("1d", 4), texture)
    index, level = np.arange(COUNT), np.arange(COUNT) // THREADS % 3
    wanted = index % THREADS % (8 >> level) + 100 * level
    assert run_in_parts(case, device, (1, 2, 7)).arrays["a"][:COUNT].tolist() == wanted.tolist()


def test_a_later_launch_reads_what_parts_wrote(tmp_path: Path, device: ptxemu.Device) -> None:
    """A texture of the surface that the launch before has written."""
    writes = "mad.lo.u32 %v, %i, 3, 2; shl.b32 %x, %t, 2; sust.b.2d.b32.trap [%s, {%x, %b}], %v;"
    reads = HEAD[HEAD.index(".visible") :].replace(" k(", " reads(")
    body = f"{writes} ret;\n}}\n{reads} tex.2d.v4.u32.s32 {{%v, %r1, %r2, %r3}}, [%tex, {{%t, %b}}]; {STORE}"
    launches = "".join(f'[[launch]]\nentry = "{entry}"\n{LAUNCH}{ARGUMENTS}' for entry in ("k", "reads"))
    case = case_of(tmp_path, body, surface_of("2d", THREADS, BLOCKS), '[textures.t]\ndata = "s"\n', launches)
    found = run_in_parts(case, device, (1, 6)).arrays["a"]
    assert found[:COUNT].tolist() == (np.arange(COUNT) * 3 + 2).tolist()


def test_reading_a_texture_of_a_surface_that_another_block_writes(tmp_path: Path, device: ptxemu.Device) -> None:
    body = f"""
      sust.b.2d.b32.trap [%s, {{0, %b}}], %b; sub.u32 %y, 3, %b;
      tex.2d.v4.u32.s32 {{%v, %r1, %r2, %r3}}, [%tex, {{0, %y}}]; {STORE}"""
    top = f"grid = 4\nblock = 1\n{ARGUMENTS}"
    case = case_of(tmp_path, body.replace("{0,", "{%t,"), surface_of("2d", 8, 8), '[textures.t]\ndata = "s"\n', top)
    with pytest.raises(ConflictError, match=r"writes texel x=0, y=\d of s, which block \(\d,0,0\) reads"):
        run_in_parts(case, device, (2,))


def test_textures_are_only_read(tmp_path: Path, device: ptxemu.Device) -> None:
    """A pointer can lead into one: what is written there would be lost."""
    case = case_of(tmp_path, "ld.global.u64 %d1, [%a]; st.global.u32 [%d1], %i;", surface_of("1d", 4))
    runner = PartRunner(CaseRun(case, device))
    memory = runner.memory()
    assert sorted(memory) == ["a", "s"]
    memory["a"].view("u8")[0] = runner.areas["t"].bytes.ctypes.data
    with pytest.raises(InputError, match="the kernel writes to texture t, which several workers cannot do"):
        runner.run_part(0, memory, range(1), 60)


SAMPLES = sorted(path.parent.name for path in (ROOT / "samples").glob("*/case.toml") if "[surfaces" in path.read_text())
REDUCED_OTHERWISE = {"sass_sured", "visa_goto", "visa_typed_atomic"}
"""Whose reductions of texels are not PTX's."""


@pytest.mark.parametrize("sample", SAMPLES)
def test_samples_with_surfaces(sample: str, device: ptxemu.Device) -> None:
    case = read_case(ROOT / "samples" / sample)
    if sample in REDUCED_OTHERWISE:
        with pytest.raises(ConflictError, match=r"writes texel x=\d+"):
            run_in_parts(case, device, (1, 3))
        return
    whole, parts = run_case(case, device=device), run_in_parts(case, device, (1, 3))
    assert parts.passed and {name: array.tobytes() for name, array in parts.arrays.items()} == {
        name: array.tobytes() for name, array in whole.arrays.items()
    }
