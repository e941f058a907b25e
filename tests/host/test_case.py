"""Case files: reading, running, comparing, and clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxemu import Fault, InputError
from ptxemu.case import find_cases, read_case, run_case
from tests.support import api_kernels as ptx

SAXPY = """
ptx = "k.ptx"
grid = 4
block = 32
[args]
n = 100
a = 2.0
x = { arange = { dtype = "f32", shape = 100 } }
y = { full = { dtype = "f32", shape = 100, value = 0.5 } }
"""
EXPECT = """
[expect.outputs.y]
expression = "a * x + y"
"""
REFERENCE = '[expect]\nreference = "reference.py"\n'


@pytest.fixture
def make(tmp_path: Path):
    def write(text: str, kernel: str = ptx.SAXPY, reference: str | None = None) -> Path:
        (tmp_path / "k.ptx").write_text(kernel)
        (tmp_path / "case.toml").write_text(text)
        if reference is not None:
            (tmp_path / "reference.py").write_text(reference)
        return tmp_path / "case.toml"

    return write


def run(path: Path, **options):
    return run_case(read_case(path), **options)


def test_expression(make):
    result = run(make(SAXPY + EXPECT))
    assert result.passed
    np.testing.assert_array_equal(result.arrays["y"], 2 * np.arange(100) + 0.5)


def test_reference_function_sees_first_contents(make):
    reference = "def reference(inputs):\n    return {'y': inputs['a'] * inputs['x'] + inputs['y'], 'x': inputs['x']}\n"
    result = run(make(SAXPY + REFERENCE, reference=reference))
    assert [(item.name, item.passed) for item in result.comparisons] == [("y", True), ("x", True)]


def test_a_wrong_result_fails_and_says_where(make):
    result = run(make(SAXPY + EXPECT.replace("a * x + y", "a * x + y + (x == 7)")))
    assert not result.passed
    assert result.comparisons[0].message == ("1 of 100 differ; first at [7]: 14.5, expected 15.5, largest error 1")


@pytest.mark.parametrize(
    ("tolerance", "expression", "passed"),
    [
        ("abs = 0.1", "a * x + y + 0.09", True),
        ("abs = 0.1", "a * x + y + 0.11", False),
        ("rel = 0.01", "(a * x + y) * 1.009", True),
        ("rel = 0.01", "(a * x + y) * 1.02", False),
        ("ulp = 1", "np.nextafter(a * x + y, np.float32(np.inf))", True),
        ("ulp = 1", "np.nextafter(np.nextafter(a * x + y, np.float32(np.inf)), np.float32(np.inf))", False),
    ],
)
def test_tolerances(make, tolerance, expression, passed):
    assert run(make(SAXPY + f'[expect.outputs.y]\nexpression = "{expression}"\n{tolerance}\n')).passed is passed
    assert not run(make(SAXPY + f'[expect.outputs.y]\nexpression = "{expression}"\n')).passed


def test_default_tolerance_applies_to_all_outputs(make):
    reference = "def reference(inputs):\n    return {'y': inputs['a'] * inputs['x'] + inputs['y'] + 0.05}\n"
    assert run(make(SAXPY + REFERENCE + "tolerance = { abs = 0.1 }\n", reference=reference)).passed
    own = "[expect.outputs.y]\nabs = 0.01\n"
    assert not run(make(SAXPY + REFERENCE + "tolerance = { abs = 0.1 }\n" + own, reference=reference)).passed


def test_expected_npy_and_saved_files(make, tmp_path):
    path = make(SAXPY + '[expect.outputs.y]\nnpy = "want.npy"\n[save]\ny = "out/y.npy"\n')
    np.save(tmp_path / "want.npy", (2 * np.arange(100) + 0.5).astype(np.float32))
    result = run(path, output=tmp_path / "results")
    assert result.passed
    assert result.saved == [tmp_path / "results/out/y.npy"]
    np.testing.assert_array_equal(np.load(result.saved[0]), result.arrays["y"])


def test_arguments_by_ptx_name_and_number(make):
    text = SAXPY.replace("n = 100\na = 2.0\n", "").replace("x = {", "2 = {") + "a = 2.0\n0 = 100\n"
    assert run(make(text + '[expect.outputs.y]\nexpression = "2 * np.arange(100) + 0.5"\n')).passed


def test_own_names_in_order(make):
    text = SAXPY
    for old, new in {"n": "count", "a": "factor", "x": "left", "y": "right"}.items():
        text = text.replace(f"\n{old} =", f"\n{new} =")
    assert run(make(text + '[expect.outputs.right]\nexpression = "factor * left + right"\n')).passed


LAUNCHES = """
ptx = "k.ptx"
[buffers]
x = { values = [1, 2, 3], dtype = "f32" }
y = { zeros = { dtype = "f32", shape = [3] } }
[[launch]]
grid = 1
block = 32
args = { n = 3, a = 10, x = "x", y = "y" }
[[launch]]
entry = "saxpy"
grid = [1]
block = [32, 1]
args = { n = 3, a = 1, x = "y", y = "y" }
"""


def test_launches_run_in_order_on_the_same_memory(make):
    result = run(make(LAUNCHES + '[expect.outputs.y]\nvalues = [20, 40, 60]\ndtype = "f32"\n'))
    assert result.passed


def test_surfaces_and_bindings(make):
    text = """
ptx = "k.ptx"
[surfaces.s]
geometry = "1d"
format = "R32_UINT"
layout = "linear"
data = { arange = { dtype = "u32", shape = 32 } }
[surfaces.t]
geometry = "1d"
format = "R32_UINT"
layout = "linear"
width = 32
[[launch]]
entry = "by_handle"
grid = 1
block = 32
args = { s = "s" }
[[launch]]
entry = "by_param"
grid = 1
block = 32
args = { ps = "s" }
[[launch]]
entry = "by_name"
grid = 1
block = 32
bind = { named = "t" }
[expect.outputs.s]
expression = "s + 2"
[expect.outputs.t]
expression = "np.ones(32, 'u4')"
"""
    result = run(make(text, ptx.SURFACES))
    assert result.passed, result.comparisons


def test_struct_arguments(make):
    text = """
ptx = "k.ptx"
grid = 1
block = 1
[args]
p = { bytes = "00000000 0000803f 0000000000000000" }
"""
    with pytest.raises(Fault, match="null pointer"):
        run(make(text, ptx.STRUCT))


def test_find_cases(make, tmp_path):
    path = make(SAXPY)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.toml").write_text(SAXPY)
    assert find_cases([tmp_path, path]) == [tmp_path / "below/other.toml", path]
    assert read_case(tmp_path).path == path
    assert read_case(tmp_path / "below").path == tmp_path / "below" / "other.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grid = ", "case.toml: Invalid value"),
        ("grdi = 1", "grid: is missing"),
        (SAXPY + "[expects]", "expects: unknown key; did you mean 'expect'?"),
        (SAXPY.replace("block = 32", ""), "block: is missing"),
        (SAXPY.replace("grid = 4", "grid = 'x'"), "grid must be an integer"),
        (SAXPY.replace("grid = 4", "grid = 4\nshared = 1.5"), "shared: must be an integer, not 1.5"),
        (SAXPY.replace("grid = 4", "grid = 4\nentry = 'saxpi'"), "no kernel 'saxpi'; did you mean 'saxpy'?"),
        (SAXPY.replace("k.ptx", "missing.ptx"), "missing.ptx: no such file"),
        (SAXPY.replace("x = { arange", "x = { range"), "args.x: must say exactly one of"),
        (SAXPY.replace('"f32", shape = 100 }', '"f33", shape = 100 }'), "args.x.arange: unknown dtype 'f33'"),
        (SAXPY.replace("shape = 100 }", "shape = -1 }"), "args.x.arange: shape must be a non-negative integer"),
        (SAXPY.replace("shape = 100 }", "shape = 1, sead = 2 }"), "args.x.arange.sead: unknown key"),
        (SAXPY.replace("x = { arange = { dtype = \"f32\", shape = 100 } }", "x = 'z'"), "texture or sampler is named 'z'"),
        (SAXPY.replace("x = { arange = { dtype = \"f32\", shape = 100 } }", "x = { npy = 'z.npy' }"), "z.npy: no such file"),
        (SAXPY.replace("n = 100\n", ""), "no value for parameter n"),
        (SAXPY.replace("n = 100\n", "n = 100\nb = 1\n"), "kernel saxpy has no parameter 'b'"),
        (SAXPY.replace("n = 100", "n = -1e9"), "argument 0 (n): expects an integer, not float"),
        (SAXPY + '[expect.outputs.z]\nexpression = "x"', "expect.outputs.z: is not an array or surface of the case"),
        (SAXPY + '[expect.outputs.a]\nexpression = "x"', "expect.outputs.a: is a scalar"),
        (SAXPY + '[expect.outputs.y]\nexpression = "q"', "expect.outputs.y.expression: NameError"),
        (SAXPY + '[expect.outputs.y]\nabs = 1', "expect.outputs.y: nothing says what to expect"),
        (SAXPY + '[expect.outputs.y]\nexpression = "x"\nabs = -1', "abs: must not be negative"),
        (SAXPY + '[expect.outputs.y]\nexpression = "x"\npixels = 2', "pixels: is a share of all: 0 to 1"),
        (SAXPY + '[expect.outputs.y]\nexpression = "x"\npsnr = inf', "psnr: must be finite"),
        (SAXPY + '[expect.outputs.y]\nexpression = "x"\nfraction = nan', "fraction: must not be negative"),
        (SAXPY + "[expect]\ntolerance = { psnt = 40 }", "tolerance.psnt: unknown key; did you mean 'psnr'?"),
        (SAXPY + "[save]\ny = 1", "save.y: must be a string, not 1"),
        (SAXPY + "[surfaces.s]\nformat = 'R8_UINT'", "surfaces.s.width: is missing"),
        (SAXPY + "[surfaces.s]\nformat = 'R9'\nwidth = 3", "surfaces.s: no surface format is named 'R9'"),
        (SAXPY + "[surfaces.s]\nformat = 'R8_UINT'\nwidth = 3\ndepth = 2", "depth: a 2d surface has height, width only"),
        (SAXPY + "[buffers]\nx = { values = [1.5], dtype = 'u8' }", 'args.x: the case has an array of this name'),
        (LAUNCHES + "\n[[launch]]\nblock = 1", "launch[2].grid: is missing"),
        ("grid = 1\n" + LAUNCHES, "grid: goes into a [[launch]] table"),
    ],
)  # fmt: skip
def test_wrong_cases(make, text, message):
    with pytest.raises(InputError) as caught:
        run(make(text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "no such file"),
        ("x = 1\n", "defines no function reference(inputs)"),
        ("def reference(inputs:\n", ":1: SyntaxError"),
        ("def reference(inputs):\n    return inputs['zz']\n", ":2: KeyError: 'zz'"),
        ("def reference(inputs):\n    return 1\n", "must return a dict"),
        ("def reference(inputs):\n    return {'q': inputs['x']}\n", "returns 'q', which is not an array or surface"),
    ],
)
def test_wrong_references(make, script, message):
    with pytest.raises(InputError) as caught:
        run(make(SAXPY + REFERENCE, reference=script))
    assert message in str(caught.value)
    assert "reference.py" in str(caught.value)


def test_no_case_in_folder(tmp_path):
    with pytest.raises(InputError, match="no case files"):
        read_case(tmp_path)
    with pytest.raises(InputError, match="no case files"):
        find_cases([tmp_path])
    with pytest.raises(InputError, match="no such file or folder"):
        find_cases([tmp_path / "missing"])
    for name in "ab":
        (tmp_path / f"{name}.toml").write_text("")
    with pytest.raises(InputError, match="several case files"):
        read_case(tmp_path)
