"""Surfaces, textures and results on the command line."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptxemu.cli import run
from tests.support import api_kernels as ptx

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
INVERT = (
    HEADER
    + """
.global .surfref input; .global .surfref output;
.visible .entry invert() {
  .reg .b32 %r<9>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; shl.b32 %r3, %r1, 2;
  suld.b.2d.b32.trap {%r4}, [input, {%r3, %r2}];
  xor.b32 %r4, %r4, 0x00ffffff;
  sust.b.2d.b32.trap [output, {%r3, %r2}], {%r4};
  ret;
}
"""
)
SAMPLE = (
    HEADER
    + """
.visible .entry _Z6samplePfy(.param .u64 y, .param .u64 t) {
  .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>;
  ld.param.u64 %d1, [y]; ld.param.u64 %d2, [t];
  mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mul.f32 %f1, %f1, 0f3E000000;
  tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%d2, {%f1, 0f00000000}];
  mul.wide.u32 %d3, %r1, 4; add.u64 %d1, %d1, %d3; st.global.f32 [%d1], %f2;
  ret;
}
"""
)
ONE = ["--grid", "4", "--block", "8"]
PICTURE = np.random.default_rng(5).integers(0, 256, (4, 8, 4), np.uint8)
SAXPY = ["run", "saxpy.ptx", "--grid", "4", "--block", "32", "--arg", "n=100", "--arg", "a=2", "--arg", "x=arange:f32:100"]
SAXPY += ["--arg", "y=full:f32:100:0.5"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("invert", INVERT), ("sample", SAMPLE), ("saxpy", ptx.SAXPY), ("surfaces", ptx.SURFACES)):
        (tmp_path / f"{name}.ptx").write_text(text)
    Image.fromarray(PICTURE).save(tmp_path / "in.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_pictures_through_surfaces(capsys) -> None:
    """Surfaces that are called as variables are bound to them; the first comes from a file, the second is written to one."""
    surfaces = ["--surface", "input=@in.png:R8G8B8A8_UNORM", "--surface", "output=zeros:8x4:R8G8B8A8_UNORM:block_linear"]
    assert run(["run", "invert.ptx", *ONE, *surfaces, "--out", "output=out.png"]) == 0
    inverted = PICTURE ^ np.array([255, 255, 255, 0], np.uint8)
    np.testing.assert_array_equal(np.asarray(Image.open("out.png")), inverted)
    assert "output: uint8[4, 8, 4] saved to out.png" in capsys.readouterr().out


def test_variables_are_bound_by_name() -> None:
    surfaces = ["--surface", "a=@in.png:R8G8B8A8_UNORM", "--surface", "b=zeros:8x4:R8G8B8A8_UNORM"]
    assert run(["run", "invert.ptx", *ONE, *surfaces, "--bind", "input=a", "--bind", "output=b", "--out", "b=b.npy"]) == 0
    np.testing.assert_array_equal(np.load("b.npy")[..., 3], PICTURE[..., 3])


@pytest.mark.parametrize(
    ("entry", "given"),
    [("by_handle", ["--arg", "s=img"]), ("by_handle", ["--arg", "0=img"]), ("by_param", ["--arg", "ps=img"]),
     ("by_name", ["--bind", "named=img"])],
)  # fmt: skip
def test_surfaces_reach_kernels_in_every_way(entry: str, given: list[str]) -> None:
    surface = ["--surface", "img=zeros:8:R32_UINT:1d", "--expect", "img=full:u32:8:1"]
    assert run(["run", "surfaces.ptx", "--entry", entry, "--grid", "1", "--block", "8", *surface, *given]) == 0


def test_a_surface_called_as_a_parameter_is_its_argument() -> None:
    surface = ["--surface", "s=zeros:8:R32_UINT:1d", "--expect", "s=full:u32:8:1"]
    assert run(["run", "surfaces.ptx", "--entry", "by_handle", "--grid", "1", "--block", "8", *surface]) == 0


TEXELS = np.array([[0, 1, 2, 3]], np.float32)
LINEAR = np.array([1.5, 0, 0.5, 1, 1.5, 2, 2.5, 3], np.float32)  # a texel is 0.25 wide, its middle is its value


@pytest.mark.parametrize(
    ("texture", "values"),
    [
        ("t=@t.npy:normalized", [0, 0, 1, 1, 2, 2, 3, 3]),
        ("t=@t.npy:linear:wrap:normalized", LINEAR),
        ("t=of:texels:format=R32_FLOAT:normalized", [0, 0, 1, 1, 2, 2, 3, 3]),
        ("t=zeros:4x1:R32_FLOAT:border:normalized:border=1,1,1,1", [0] * 8),
    ],
)
def test_textures(texture: str, values: list[float]) -> None:
    np.save("t.npy", TEXELS)
    np.save("y.npy", np.asarray(values, np.float32))
    arguments = ["--entry", "sample", "--grid", "1", "--block", "8", "--arg", "y=zeros:f32:8", "--buffer", "texels=@t.npy"]
    assert run(["run", "sample.ptx", *arguments, "--texture", texture, "--expect", "y=@y.npy"]) == 0


def test_expected_results(capsys) -> None:
    np.save("want.npy", 2 * np.arange(100, dtype=np.float32) + np.float32(0.5) * (1 + np.float32(1e-6)))
    assert run([*SAXPY, "--expect", "y=@want.npy"]) == 1
    assert "y: float32[100] FAILED (" in capsys.readouterr().out
    assert run([*SAXPY, "--expect", "y=@want.npy", "--tolerance", "rel=1e-5,abs=1e-7"]) == 0
    assert "y: float32[100] ok (largest error" in capsys.readouterr().out


def test_arrays_that_changed_are_told(capsys) -> None:
    assert run(SAXPY) == 0
    out = capsys.readouterr().out
    assert "  y: float32[100], 99 of 100 changed, 0.5 to 198.5, mean 99.5\n" in out
    assert "x:" not in out


def test_printed_arrays(capsys) -> None:
    assert run([*SAXPY, "--print", "y[1:4]", "--print", "x[-1]", "--print", "y"]) == 0
    out = capsys.readouterr().out
    assert "  y[1:4]: float32[3], 2.5 to 6.5, mean 4.5\n    [2.5 4.5 6.5]\n" in out
    assert "  x[-1]: float32[]\n    99.\n" in out
    assert out.count("  y: float32[100]") == 1


def test_json(capsys) -> None:
    np.save("y.npy", np.array([np.nan, np.inf, 1] + [0] * 97, np.float32))
    arguments = [*SAXPY[:-2], "--arg", "y=@y.npy", "--expect", "y=zeros:f32:100", "--print", "y[:2]", "--json"]
    assert run(arguments) == 1
    facts = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert facts["kernel"] == "saxpy" and facts["blocks"] == 4 and not facts["passed"]
    assert {"nan": 1, "infinite": 1, "min": 5.0, "max": 198.0}.items() <= facts["arrays"]["y"].items()
    assert facts["printed"] == {"y[:2]": ["nan", "inf"]}
    assert set(facts["wall_seconds"]) == {"load", "parse", "check", "inputs", "compile", "run"}


def test_json_is_all_of_the_output(folder: Path, capsys) -> None:
    (folder / "hello.ptx").write_text(ptx.HELLO)
    assert run(["run", "hello.ptx", "--grid", "1", "--block", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "hello\nhello\n"
    case = 'ptx = "hello.ptx"\ngrid = 1\nblock = 1\n[buffers.x]\nzeros = { dtype = "f32", shape = 1 }\n'
    (folder / "case.toml").write_text(case + '[expect.outputs.x]\nexpression = "x"\n')
    assert run(["run", ".", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "hello\n"


def test_json_of_a_case(folder: Path, capsys) -> None:
    (folder / "case.toml").write_text(
        'ptx = "saxpy.ptx"\ngrid = 1\nblock = 4\n[args]\nn = 4\na = 1\nx = "x"\ny = "y"\n'
        "[buffers.x]\nvalues = [1, 2, 3, 4]\ndtype = 'f32'\n[buffers.y]\nzeros = {dtype = 'f32', shape = 4}\n"
        "[expect.outputs.y]\nexpression = 'x'\n"
    )
    assert run(["run", ".", "--json", "--print", "y[0]"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["passed"] and facts["comparisons"][0]["name"] == "y" and facts["printed"] == {"y[0]": 1.0}
    assert run(["run", ".", "--print", "y"]) == 0
    assert "    [1. 2. 3. 4.]\n" in capsys.readouterr().out


def test_verbose(capsys) -> None:
    assert run([*SAXPY, "-v"]) == 0
    assert re.search(r"\n  load [\d.]+ m?s, (parse .*, check .*, )?inputs .*, compile .*, run .*s\n", capsys.readouterr().out)


def test_pictures_on_terminals_with_colours() -> None:
    """Each character holds two pixels, the upper one in its own colour, the lower one behind it."""
    command = [sys.executable, "-m", "ptxemu", "run", "invert.ptx", *ONE, "--surface", "input=@in.png:R8G8B8A8_UNORM"]
    command += ["--surface", "output=zeros:8x4:R8G8B8A8_UNORM", "--print", "input"]
    inner, outer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "80"}
    done = subprocess.Popen(command, stdout=outer, env=environment)
    os.close(outer)
    shown = b""
    while chunk := _read(inner):
        shown += chunk
    assert done.wait(60) == 0
    lines = [line for line in shown.decode().splitlines() if "\u2580" in line]
    first = ";".join(map(str, PICTURE[0, 0, :3])) + ";48;2;" + ";".join(map(str, PICTURE[1, 0, :3]))
    assert len(lines) == 2 and all(line.count("\u2580") == 8 for line in lines)
    assert f"\x1b[38;2;{first}m" in lines[0]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux ends what a terminal wrote
        return b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--surface", "s=@in.png"], "--surface s: a texel format such as R8G8B8A8_UNORM or R32_FLOAT is missing"),
        (
            ["--surface", "s=@in.png:R8G8B8A8_UNROM"],
            "no word or option is called 'R8G8B8A8_UNROM'; did you mean 'R8G8B8A8_UNORM'",
        ),
        (["--surface", "s=in.png:R8_UINT"], "'in.png' is no source of texels: give @file.png, @file.npy or zeros:WIDTHxHEIGHT"),
        (["--surface", "s=zeros:8:R8_UINT"], "the extents of 2d texels are widthxheight, not 8"),
        (["--surface", "s=zeros:axb:R8_UINT"], "shape 'axb' must be numbers"),
        (["--surface", "s=zeros:8x8:R8_UINT:R8_UINT"], "format is given twice"),
        (["--surface", "s=zeros:8x8:R8_UINT:levels=x"], "--surface s: levels: must be an integer, not 'x'"),
        (["--surface", "s=zeros:8x8:R8_UINT:enabled=1"], "must be true or false"),
        (["--surface", "s=zeros:0x8:R8_UINT"], "--surface s: "),
        (["--surface", "s=zeros:8x8:R8_UINT", "--texture", "s=zeros:8x8:R8_UINT"], "'s' names 2 of the"),
        (["--texture", "t=zeros:8x8:R8_UINT:border=a,b"], "border: must be a number, not 'a'"),
        (["--texture", "t=of:nothing"], "there is no array 'nothing'"),
        (["--bind", "v=s"], "--bind v: no surface, texture or sampler is named 's'"),
        (["--surface", "s=zeros:8x8:R8_UINT", "--bind", "v=s"], "--bind v: "),
        (["--arg", "x=n"], "--arg x: 'n' is a number, not an array"),
        (["--buffer", "b=3"], "--buffer b: must be @file.npy or an array such as zeros:f32:1024"),
        (["--expect", "n=zeros:f32:1"], "--arg n is not an array"),
        (["--expect", "y=1"], "--expect y: must be @file.npy or an array"),
        (["--tolerance", "rel=x"], "--tolerance 'rel=x': must be abs=NUMBER"),
        (["--tolerance", "ulp=0.5"], "--tolerance 'ulp=0.5'"),
        (["--print", "z"], "--print z: no array or surface is named 'z'; there are x, y"),
        (["--print", "y[100]"], "--print y[100]: index 100 is out of bounds"),
        (["--print", "y[a]"], "'a' must be a number, or first:end, or first:end:step"),
        (["--print", "y[::0]"], "'::0' must be a number"),
        (["--print", "y[0,0]"], "--print y[0,0]: too many indices"),
    ],
)
def test_wrong_options_are_one_line(arguments: list[str], message: str, capsys) -> None:
    given = [*SAXPY[:-4], "--arg", "y=full:f32:100:0.5"] if arguments[1].startswith("x=") else SAXPY
    assert run([*given, *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("ptxemu: error: ") and captured.err.count("\n") == 1
    assert captured.out == ""
