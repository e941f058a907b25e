"""Structs on the command line."""

from __future__ import annotations

import pytest

from ptxemu.cli import run
from tests.support import api_kernels as ptx

LAUNCH = ["run", "k.ptx", "--grid", "1", "--block", "1", "--buffer", "x=zeros:f32:4"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "k.ptx").write_text(ptx.STRUCT)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("struct", ["{u32:2,f32:7.5,ptr:x}", "{ int:2, float:7.5, ptr:x }", "{{u32:2,f32:7.5},{ptr:x}}"])
def test_a_struct_with_a_pointer(struct, capsys):
    assert run([*LAUNCH, "--arg", f"p={struct}", "--expect", "x=full:f32:4:0", "--print", "x"]) == 1
    assert "[0.  0.  7.5 0. ]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("struct", "message"),
    [
        ("{u32:2,f32:7.5,ptr:y}", "--arg p: no array is named 'y'"),
        ("{u32:2,f32:7.5,handle:x}", "--arg p: no surface, texture or sampler is named 'x'"),
        ("{u32:2,f32:7.5", "needs as many } as {, and ends in }"),
        ("{u32:2,f32}", "member 1: 'f32' is not TYPE:VALUE, such as u32:1000, ptr:NAME or float4:{1,2,3,4}"),
        ("{u32:two}", "member 0: 'two' is not a number"),
        ("{}", "member 0: '' is not TYPE:VALUE"),
        ("{u32:{1,{2}}}", "member 0: '{2}' is not a number"),
        ("{u32:2,f64:7.5,ptr:x}", "argument 0 (p), member 2 at byte 16: ends outside of the struct"),
        ("{u32:2,f32:7.5}", "argument 0 (p): has 16 bytes, but its members take 8: 0 at 0, 1 at 4"),
        ("{" * 40 + "}" * 40, "structs are nested more than 16 deep"),
    ],
)
def test_wrong_structs(struct, message, capsys):
    assert run([*LAUNCH, "--arg", f"p={struct}"]) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1


def test_braces_that_a_shell_has_expanded(capsys):
    assert run([*LAUNCH, "--arg", "p=u32:2", "p=f32:7.5", "p=ptr:x"]) == 2
    expected = "p=f32:7.5: no such file; is it --arg p=f32:7.5? A struct needs quotes in the shell: --arg 'p={...}'"
    assert expected in capsys.readouterr().err
