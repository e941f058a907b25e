"""Where findings are: lines of CUDA C++ and of PTX, and how commands tell of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxemu.checkers.lines import ProgramLines
from ptxemu.cli import run
from ptxemu.text.source import SourceFile, join
from tests.checkers.planted import program

CUDA = "__global__ void k(float *x, float *y) {\n  x[40] = 0;\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(CUDA)
    Path("k.ptx").write_text(program(".loc 1 2 3 \n st.global.f32 [%rd1+160], 0f00000000", '.file 1 "k.cu"\n'))
    return tmp_path


ARGUMENTS = ["run", "k.ptx", "--grid", "2", "--block", "32", "--arg", "x=zeros:f32:38", "--arg", "y=0", "--check", "memory"]
REPORT = """\
memory: 4-byte write 8 bytes after `x` (152 bytes)
  k.cu:2: x[40] = 0;
  k.ptx:12: st.global.f32 [%rd1+160], 0f00000000;
  in `k`: block (0,0,0), thread (0,0,0); 64 times
checked memory in 1 launch: 1 finding
"""


def test_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(ARGUMENTS) == 5
    assert capsys.readouterr().err == REPORT


def test_json_and_sarif(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ARGUMENTS, "--json", "--sarif", "found.sarif"]) == 5
    facts = json.loads(capsys.readouterr().out)
    (finding,) = facts["findings"]
    assert facts["checked"] == ["memory"] and finding["count"] == 64
    assert [(line["file"], line["line"]) for line in finding["lines"]] == [("k.cu", 2), ("k.ptx", 12)]
    (result,) = json.loads(Path("found.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k.cu"
    assert result["ruleId"] == "ptxemu.memory" and result["message"]["text"] == REPORT.partition("\n")[0].partition(": ")[2]


def test_cases_are_flawed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("case.toml").write_text(
        'ptx = "k.ptx"\ngrid = 1\nblock = 32\n[args]\nx = { zeros = { dtype = "f32", shape = 38 } }\ny = 0\n'
        '[expect.outputs.x]\nzeros = { dtype = "f32", shape = 38 }\n'
    )
    reports = ["--json", "cases.json", "--sarif", "cases.sarif", "--junit", "cases.xml"]
    assert run(["test", ".", "--check", "memory", *reports]) == 5
    (case,) = json.loads(Path("cases.json").read_text())["cases"]
    assert [(one["check"], one["lines"][0]["file"], one["count"]) for one in case["findings"]] == [("memory", "k.cu", 32)]
    (result,) = json.loads(Path("cases.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k.cu"
    assert "k.cu:2: x[40] = 0;" in Path("cases.xml").read_text()
    assert "flawed" in (told := capsys.readouterr().out) and "k.cu:2: x[40] = 0;" in told
    assert run(["test", ".", "--isolate", "--check", "memory", "--sarif", "isolated.sarif"]) == 5
    assert Path("isolated.sarif").read_text() == Path("cases.sarif").read_text()
    assert run(["test", "."]) == 0 and run(["test", ".", "--sarif", "x"]) == 2


LOCATED = """\
.file 1 "a.cu"
.file 2 "b.cuh"
.entry f() { .loc 1 10 2
  ret;
  .loc 2 3 4, function_name $L, inlined_at 1 12 5
  bar.sync 0;
}
.entry g() {
  ret;
}
"""


@pytest.mark.parametrize(
    ("at", "places"), [("ret", ["a.cu:10"]), ("bar", ["b.cuh:3", "a.cu:12"]), ("ret;\n}\n", []), (".file", [])]
)
def test_lines_of_cuda(at: str, places: list[str]) -> None:
    lines = ProgramLines(SourceFile("f.ptx", LOCATED))
    assert [str(line) for line in lines.cuda(LOCATED.index(at) if at != "ret;\n}\n" else LOCATED.rindex("ret"))] == places


def test_lines_of_linked_programs() -> None:
    source = join([SourceFile("1.ptx", LOCATED), SourceFile("2.ptx", LOCATED.replace("a.cu", "c.cu"))])
    lines = ProgramLines(source)
    pos = len(LOCATED) + LOCATED.index("ret")
    assert str(lines.ptx(pos)) == "2.ptx:4: ret;" and [str(line) for line in lines.cuda(pos)] == ["c.cu:10"]
