"""Surfaces and textures that ``record --from cuda`` gives to a driver, here ptxemu's own: against NumPy and the emulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxemu.case.arrays import Array
from ptxemu.case.gpu import run_on_gpu
from ptxemu.case.runner import run_case
from ptxemu.case.schema import read_case
from ptxemu.cli import run
from ptxemu.process.cuda import library_path
from ptxemu.text.errors import InputError
from tests.support.api_kernels import HEAD
from tests.support.places import SAMPLES, TESTS

LIBRARY = str(library_path() / "libcuda.so.1")
COORDINATES = {"1d": "%x4", "2d": "%x4, %y", "3d": "%x4, %y, %z, %z", "a1d": "%y, %x4", "a2d": "%z, %x4, %y, %y"}
SHAPES = {"1d": (5,), "2d": (3, 5), "3d": (2, 3, 5), "a1d": (3, 5), "a2d": (2, 3, 5)}
REGISTERS = """
  .reg .b32 %x, %y, %z, %x4, %v<4>; .reg .b64 %a, %b, %i; .reg .f32 %f<8>;
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; shl.b32 %x4, %x, 2;
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def recorded(ptx: str, case: str) -> dict[str, Array]:
    """What the driver leaves in a case's arrays; the emulator leaves the same."""
    Path("k.ptx").write_text(ptx)
    Path("case.toml").write_text(f'ptx = "k.ptx"\n{case}')
    found, _ = run_on_gpu(read_case(Path("case.toml")), LIBRARY)
    for name, array in run_case(read_case(Path("case.toml"))).arrays.items():
        np.testing.assert_array_equal(found[name], array)
    return found


@pytest.mark.parametrize("geometry", SHAPES)
def test_surfaces_of_every_geometry(geometry: str) -> None:
    """Every texel becomes one more than that of another surface."""
    ptx = f"""{HEAD}
.visible .entry k(.param .u64 a, .param .u64 b) {{ {REGISTERS}
  ld.param.u64 %a, [a]; ld.param.u64 %b, [b];
  suld.b.{geometry}.b32.trap %v0, [%a, {{{COORDINATES[geometry]}}}]; add.u32 %v0, %v0, 1;
  sust.b.{geometry}.b32.trap [%b, {{{COORDINATES[geometry]}}}], %v0;
  ret;
}}"""
    texels = np.arange(np.prod(SHAPES[geometry]), dtype=np.uint32).reshape(SHAPES[geometry])
    np.save("texels.npy", texels)
    grid = ([1, 1, *SHAPES[geometry]][-3:])[::-1]
    names = ("layers" if geometry[0] == "a" else "depth", "height", "width")
    names = ("layers", "width") if geometry == "a1d" else names[3 - len(SHAPES[geometry]) :]
    extents = "\n".join(f"{name} = {extent}" for name, extent in zip(names, SHAPES[geometry], strict=True))
    found = recorded(
        ptx,
        f"""
grid = {grid}
block = 1
args = {{ a = "a", b = "b" }}
[surfaces.a]
geometry = "{geometry}"
format = "R32_UINT"
data = {{ npy = "texels.npy" }}
[surfaces.b]
geometry = "{geometry}"
format = "R32_UINT"
{extents}
""",
    )
    np.testing.assert_array_equal(found["b"], texels + 1)


TEXTURES = {
    "fractions": ("tex.2d.v4.f32.f32", "{%f4, %f5}]", 'format = "R8_UNORM"\ndata = { npy = "bytes.npy" }'),
    "integers": ("tex.2d.v4.u32.f32", "{%f4, %f5}]", 'format = "R8_UINT"\ndata = { npy = "bytes.npy" }'),
    "fractions of integers": (
        "tex.2d.v4.f32.f32", "{%f4, %f5}]", 'read_mode = "normalized_float"\nformat = "R8_UINT"\ndata = { npy = "bytes.npy" }',
    ),
    "filtered, repeated": (
        "tex.2d.v4.f32.f32", "{%f6, %f7}]",
        'filter = "linear"\naddress = ["mirror", "wrap"]\nnormalized = true\ndata = { npy = "floats.npy" }',
    ),
    "border": (
        "tex.2d.v4.f32.f32", "{%f6, %f6}]",
        'address = "border"\nborder = [7, 0, 0, 0]\nnormalized = true\ndata = { npy = "floats.npy" }',
    ),
    "levels": (
        "tex.level.2d.v4.f32.f32", "{%f4, %f5}], %f6",
        'mip_filter = "linear"\nfilter = "linear"\nmax_level = 1\ndata = [{ npy = "floats.npy" }, { npy = "small.npy" }]',
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", TEXTURES)
def test_textures_are_read_as_the_case_says(kind: str) -> None:
    """Coordinates in %f4 and %f5 are centres of texels, those in %f6 and %f7 lie also outside."""
    instruction, coordinates, options = TEXTURES[kind]
    ptx = f"""{HEAD}
.visible .entry k(.param .u64 t, .param .u64 out) {{ {REGISTERS}
  ld.param.u64 %a, [t]; ld.param.u64 %b, [out];
  cvt.rn.f32.u32 %f4, %x; cvt.rn.f32.u32 %f5, %y; add.f32 %f4, %f4, 0f3F000000; add.f32 %f5, %f5, 0f3F000000;
  mul.f32 %f6, %f4, 0f3ECCCCCD; mul.f32 %f7, %f5, 0fBECCCCCD;
  {instruction} {{%v0, %v1, %v2, %v3}}, [%a, {coordinates};
  mad.lo.u32 %x, %y, 6, %x; mul.wide.u32 %i, %x, 4; add.u64 %b, %b, %i; st.global.b32 [%b], %v0;
  ret;
}}"""
    if ".f32.f32" in instruction:
        ptx = ptx.replace("%v0, %v1, %v2, %v3}", "%f0, %f1, %f2, %f3}").replace("%b], %v0", "%b], %f0")
    texels = np.arange(24, dtype=np.uint8).reshape(4, 6)
    for name, array in (("bytes", texels), ("floats", texels.astype(np.float32)), ("small", np.ones((2, 3), np.float32))):
        np.save(f"{name}.npy", array)
    dtype = "u32" if ".u32." in instruction else "f32"
    out = f'out = {{ zeros = {{ dtype = "{dtype}", shape = [4, 6] }} }}'
    found = recorded(ptx, f'grid = [6, 4]\nblock = 1\n[args]\nt = "t"\n{out}\n[textures.t]\n{options}\n')
    exact = {"fractions": texels / np.float32(255), "fractions of integers": texels / np.float32(255), "integers": texels}
    if kind in exact:
        np.testing.assert_array_equal(found["out"], exact[kind])
    else:
        assert len(np.unique(found["out"])) > 2


def test_variables_of_the_module() -> None:
    references = (TESTS / "cuda" / "data" / "references.ptx").read_text()
    np.save("image.npy", np.arange(64, dtype=np.float32).reshape(8, 8))
    found = recorded(
        references,
        """
[surfaces.s]
format = "R32_UINT"
width = 8
height = 8
[textures.t]
data = { npy = "image.npy" }
[buffers]
out = { zeros = { dtype = "f32", shape = 64 } }
[[launch]]
entry = "write_canvas"
grid = 1
block = [8, 8]
bind = { canvas = "s" }
[[launch]]
entry = "read_image"
grid = 1
block = [8, 8]
args = { out = "out" }
bind = { image = "t" }
""",
    )
    np.testing.assert_array_equal(found["s"], 10 * np.arange(8)[:, None] + np.arange(8))
    np.testing.assert_array_equal(found["out"], np.arange(64))


@pytest.mark.parametrize("name", ["blur", "rotate", "surface_histogram", "volume"])
def test_samples(name: str) -> None:
    case = read_case(SAMPLES / name / "case.toml")
    found, about = run_on_gpu(case, LIBRARY)
    assert about["device"].startswith("ptxemu")
    for key, array in run_case(case).arrays.items():
        np.testing.assert_array_equal(found[key], array)


REFUSED = [
    ('[surfaces.s]\nformat = "B8G8R8A8_UNORM"\nwidth = 4\nheight = 4\n', "B8G8R8A8_UNORM, which arrays of CUDA do not have"),
    ('[surfaces.s]\nformat = "R8_UINT"\nwidth = 4\nheight = 4\nenabled = false\n', "enabled: is for the emulator"),
    ('[textures.s]\ngeometry = "2dms"\nformat = "R8_UINT"\nwidth = 4\nheight = 4\nsamples = 2\n', "is 2dms, which cannot"),
    ("[samplers.s]\n", "s: is a sampler by itself, which CUDA does not have"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_what_cuda_has_no_form_of(more: str, message: str) -> None:
    Path("k.ptx").write_text(HEAD + ".visible .entry k(.param .u64 a) { ret; }")
    Path("case.toml").write_text(f'ptx = "k.ptx"\ngrid = 1\nblock = 1\nargs = {{ a = "s" }}\n{more}')
    with pytest.raises(InputError, match=message):
        run_on_gpu(read_case(Path("case.toml")), LIBRARY)


def test_a_case_with_a_surface_is_recorded() -> None:
    Path("k.ptx").write_text((SAMPLES / "volume" / "kernel.ptx").read_text())
    text = (SAMPLES / "volume" / "case.toml").read_text().partition("[expect")[0].replace("kernel.ptx", "k.ptx")
    Path("case.toml").write_text(text if "k.ptx" in text else f'ptx = "k.ptx"\n{text}')
    command = [sys.executable, "-m", "ptxemu", "record", "case.toml", "--from", "cuda", "--library", LIBRARY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert run(["test", "case.toml"]) == 0
