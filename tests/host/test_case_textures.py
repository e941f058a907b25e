"""Case files: textures and samplers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxemu import InputError
from ptxemu.case import read_case, run_case
from ptxemu.case.runner import CaseResult

HEAD = """.version 8.8
.target sm_80{mode}
.address_size 64
"""
# out[i] = what an instruction fetches at %x = i / 4
KERNEL = """.visible .entry {name}({parameters}.param .u64 out)
{{
  .reg .b32 %i; .reg .b64 %t, %p, %o; .reg .f32 %x, %v;
  mov.u32 %i, %tid.x; cvt.rn.f32.u32 %x, %i; mul.f32 %x, %x, 0.25;
  {fetch}
  ld.param.u64 %p, [out]; mul.wide.u32 %o, %i, 4; add.u64 %p, %p, %o; st.global.f32 [%p], %v; ret;
}}
"""
TEX, LEVEL = "tex.1d.v4.f32.f32 {%v, _, _, _}", "tex.level.1d.v4.f32.f32 {%v, _, _, _}"


def kernel(name: str, fetch: str, parameters: str = "") -> str:
    return KERNEL.format(name=name, fetch=fetch, parameters=parameters)


UNIFIED = "".join(
    (
        HEAD.format(mode=""),
        ".global .texref named[2];\n",
        kernel("by_handle", f"ld.param.u64 %t, [t]; {TEX}, [%t, {{%x}}];", ".param .u64 t, "),
        kernel("by_param", f"{TEX}, [t, {{%x}}];", ".param .texref t, "),
        kernel("by_name", f"mov.u64 %t, named; add.u64 %t, %t, 8; {TEX}, [%t, {{%x}}];"),
        kernel("of_level", f"ld.param.u64 %t, [t]; {LEVEL}, [%t, {{%x}}], 1.0;", ".param .u64 t, "),
    )
)
INDEPENDENT = "".join(
    (
        HEAD.format(mode=", texmode_independent"),
        ".global .texref t;\n.global .samplerref s;\n",
        kernel("named", f"{TEX}, [t, s, {{%x}}];"),
        kernel("given", f"{TEX}, [t, given, {{%x}}];", ".param .samplerref given, "),
    )
)

CASE = """
ptx = "k.ptx"
[buffers]
numbers = { values = [1, 2, 4, 8], dtype = "f32" }
out = { zeros = { dtype = "f32", shape = 16 } }
"""
LAUNCH = """
[[launch]]
entry = "%s"
grid = 1
block = 16
"""
POINT = "np.repeat(%s, 4).astype('f4')"


@pytest.fixture
def run(tmp_path: Path):
    def write_and_run(text: str, module: str = UNIFIED, expected: str = "") -> CaseResult:
        (tmp_path / "k.ptx").write_text(module)
        (tmp_path / "case.toml").write_text(text + (f'[expect.outputs.out]\nexpression = "{expected}"\n' if expected else ""))
        result = run_case(read_case(tmp_path / "case.toml"))
        assert result.passed, result.comparisons
        return result

    return write_and_run


def launched(text: str, entry: str, line: str) -> str:
    return CASE + text + LAUNCH % entry + line + "\n"


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("by_handle", 'args = { t = "t", out = "out" }'),
        ("by_param", 'args = { t = "t", out = "out" }'),
        ("by_name", 'args = { out = "out" }\nbind = { "named[1]" = "t" }'),
    ],
)
def test_a_texture_reaches_a_kernel(run, entry, line):
    text = '[textures.t]\ngeometry = "1d"\ndata = { values = [3, 1, 4, 1], dtype = "f32" }\n'
    run(launched(text, entry, line), expected=POINT % "t")


HANDLE = 'args = { t = "t", out = "out" }'


def test_how_a_texture_is_read(run):
    text = """[textures.t]
geometry = "1d"
format = "R8_UINT"
data = { values = [0, 255, 51], dtype = "u8" }
filter = "linear"
address = ["border"]
border = [1, 0.5, 0, 0]
read_mode = "normalized_float"
"""
    exact = "np.interp(np.arange(16) / 4, np.arange(-1, 5) + 0.5, [1, 0, 1, 0.2, 1, 1])"
    wanted = f"(np.floor({exact} * 65535 + 0.5) / 65535).astype('f4')"
    run(launched(text, "by_handle", HANDLE), expected=wanted)


def test_a_texture_over_a_buffer_or_a_surface(run):
    """It sees what an earlier launch left there."""
    over_buffer = '[textures.t]\ngeometry = "1d"\ndata = "numbers"\n'
    run(launched(over_buffer, "by_handle", HANDLE), expected=POINT % "numbers")
    over_surface = """[surfaces.s]
geometry = "1d"
format = "R32_FLOAT"
data = { values = [5, 6, 7, 9], dtype = "f32" }
[textures.t]
data = "s"
address = "wrap"
normalized = true
"""
    run(launched(over_surface, "by_handle", HANDLE), expected="np.tile(s, 4)")
    written = launched('[textures.t]\ngeometry = "1d"\ndata = "numbers"\n', "by_handle", 'args = { t = "t", out = "numbers" }')
    run(written.replace("block = 16", "block = 4") + LAUNCH % "by_handle" + HANDLE + "\n", expected="np.ones(16, 'f4')")


def test_mip_levels(run):
    text = """[textures.t]
geometry = "1d"
data = [{ values = [1, 2, 4, 8], dtype = "f32" }, { values = [3, 5], dtype = "f32" }]
normalized = true
"""
    run(launched(text, "of_level", HANDLE), expected="np.r_[[3, 3, 5, 5], [5] * 12].astype('f4') + t[0][0] - 1")


def test_a_texture_of_zeros(run):
    text = '[textures.t]\ngeometry = "1d"\nformat = "R16G16_UNORM"\nwidth = 4\n'
    run(launched(text, "by_handle", HANDLE), expected="np.full(16, t.sum(), 'f4')")


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("named", 'args = { out = "out" }\nbind = { t = "t", s = "s" }'),
        ("given", 'args = { given = "s", out = "out" }\nbind = { t = "t" }'),
    ],
)
def test_samplers(run, entry, line):
    text = """[textures.t]
geometry = "1d"
data = "numbers"
normalized = true
[samplers.s]
address = "wrap"
"""
    run(launched(text, entry, line), INDEPENDENT, "np.tile(numbers, 4)")


TEXTURE = '[textures.t]\ngeometry = "1d"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXTURE, "textures.t.width: is missing (or give data)"),
        (TEXTURE + "width = 3", "textures.t: texture: a shape needs a format"),
        (TEXTURE + "width = 3\nheight = 2\nformat = 'R8_UINT'", "textures.t: height: a 1d texture has width only"),
        (TEXTURE + "width = 3\ndata = 'numbers'", "textures.t.width: the extents are those of data"),
        (TEXTURE + "data = 'nothing'", "textures.t.data: no array or surface is named 'nothing'"),
        (TEXTURE + "data = 't'", "textures.t.data: no array or surface is named 't'"),
        (TEXTURE + "data = []", "textures.t.data: must be a table, not []"),
        (TEXTURE + "data = [1]", "textures.t.data[0]: must be a table, not 1"),
        (TEXTURE + "data = 'numbers'\nfilter = 'cubic'", "textures.t: no filter is named 'cubic'"),
        (TEXTURE + "data = 'numbers'\nfiltre = 'linear'", "textures.t.filtre: unknown key; did you mean 'filter'?"),
        (TEXTURE + "data = 'numbers'\naddress = 3", "textures.t.address: must be a string, not 3"),
        (TEXTURE + "data = 'numbers'\naddress = ['wrap', 3]", "textures.t.address[1]: must be a string, not 3"),
        (TEXTURE + "data = 'numbers'\nborder = ['red']", "textures.t.border[0]: must be a number, not 'red'"),
        (TEXTURE + "data = 'numbers'\nborder = [1.0]", "textures.t: border must be four numbers"),
        (TEXTURE + "data = 'numbers'\ngeometry2 = '4d'", "textures.t.geometry2: unknown key"),
        (TEXTURE.replace("1d", "4d") + "width = 3\nformat = 'R8_UINT'", "no texture geometry is named '4d'"),
        ("[samplers.s]\nwidth = 3", "samplers.s.width: unknown key"),
        ("[samplers.s]\nfilter = 'cubic'", "samplers.s: no filter is named 'cubic'"),
        ("[samplers.numbers]", "samplers.numbers: an array has this name already"),
        ("[samplers.t]\n" + TEXTURE + "width = 3", "samplers.t: a texture has this name already"),
        (TEXTURE + "data = 'numbers'\n[save]\nt = 't.npy'", "save.t: is read-only"),
    ],
)
def test_wrong_tables(run, text, message):
    with pytest.raises(InputError) as caught:
        run(CASE + text + LAUNCH % "by_name" + 'args = { out = "out" }\n')
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('bind = { "named[1]" = "out" }', "bind.named[1]: no surface, texture or sampler is named 'out'"),
        ('bind = { "named[2]" = "t" }', "bind.named[2]: "),
        (
            'bind = { names = "t" }',
            "bind.names: the module has no surface, texture or sampler 'names'; did you mean 'named'?",
        ),
        ('bind = { named = "s" }', "bind.named: 'named' can only be bound to an open texture"),
    ],
)
def test_wrong_bindings(run, line, message):
    text = "[samplers.s]\n" + TEXTURE + "data = 'numbers'\n"
    with pytest.raises(InputError) as caught:
        run(launched(text, "by_name", 'args = { out = "out" }\n' + line))
    assert message in str(caught.value)
