"""``ptxemu profile``: text, JSON and the page, and what is wrong with its input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxemu.cli import run
from tests.support.kernel_tools import kernel
from tests.support.places import SAMPLES

BODY = """
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;
  .loc 1 2 5
  mul.wide.u32 %rd2, %r1, 32; add.u64 %rd1, %rd1, %rd2;
  .loc 1 3 5
  st.global.u32 [%rd1], %r1; ret;
"""
ARGUMENTS = ["--grid", "2", "--block", "32", "--arg", "out=zeros:u32:1024"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "k.cu").write_text("void k() {\n  int i = <tid>;\n  out[8 * i] = i;\n}\n")
    path = tmp_path / "k.ptx"
    path.write_text(kernel(BODY) + '.file 1 "k.cu"\n')
    return path


def test_text_and_page(program: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(["profile", str(program), *ARGUMENTS, "--html", str(page)]) == 0
    out = capsys.readouterr().out
    assert "modelled, not timed" in out and "k, grid 2x1x1, block 32x1x1" in out
    [line] = [line for line in out.splitlines() if "k.cu:3" in line]
    assert line.split()[:5] == ["4", "32", "64", "32", "56"] and line.endswith("out[8 * i] = i;")
    assert "estimated from the PTX" in out and "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum" in out
    text = page.read_text()
    assert "int i = &lt;tid&gt;;" in text and "modelled, not timed" in text
    assert text.count("<table>") == 2 and "<script" not in text


def test_json_of_a_case(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zeros = '{ zeros = { dtype = "u32", shape = 1024 } }'
    (tmp_path / "case.toml").write_text(f'ptx = "k.ptx"\ngrid = 2\nblock = 32\n[args]\nout = {zeros}\n')
    assert run(["profile", str(tmp_path), "--json", "--registers", "40"]) == 0
    facts = json.loads(capsys.readouterr().out)
    [launch] = facts["launches"]
    assert "not timed" in facts["note"] and launch["occupancy"]["registers"] == 40
    assert launch["metrics"]["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"] == 32
    executed = "smsp__inst_executed.sum"
    assert sum(line["metrics"][executed] for line in launch["ptx"]) == launch["metrics"][executed]
    assert [line["line"] for line in launch["cuda"]] == [2, 3]


def test_a_fault_ends_it_with_what_was_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.ptx"
    path.write_text(kernel("mov.u32 %r1, 1; trap; ret;", ""))
    assert run(["profile", str(path), "--grid", "1", "--block", "64"]) == 1
    captured = capsys.readouterr()
    assert "trap" in captured.err and "up to where it was stopped" in captured.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.ptx", "--grid", "1", "--block", "1"], "no such file"),
        ([str(SAMPLES / "saxpy"), "--grid", "1"], "--grid cannot be given with a case file"),
        ([str(SAMPLES / "saxpy" / "kernel.ptx")], "--grid and --block are needed"),
    ],
)
def test_wrong_input_is_said(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_page_that_cannot_be_written(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", str(program), *ARGUMENTS, "--html", "/nowhere/at/all.html"]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_births_in_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.ptx"
    path.write_text(kernel("mov.f32 %f1, 0f00000000;\n.loc 1 9 1\ndiv.rn.f32 %f2, %f1, %f1; ret;", "") + '.file 1 "n.cu"\n')
    given = ["profile", str(path), "--grid", "1", "--block", "32", "--births"]
    assert run(given) == 0
    out = capsys.readouterr().out
    assert "NaN 32 times at n.cu:9: div.rn.f32 %f2, %f1, %f1;" in out
    assert "first in block (0,0,0), thread (0,0,0): 0x7fffffff of 0x0, 0x0" in out
    assert run([*given, "--json"]) == 0
    [birth] = json.loads(capsys.readouterr().out)["launches"][0]["births"]
    assert (birth["kind"], birth["file"], birth["line"], birth["times"]) == ("NaN", "n.cu", 9, 32)


@pytest.mark.parametrize(("sample", "count"), [(["--blocks", "1-3"], 3), (["--every", "3"], 3), (["--blocks", "5"], 1), ([], 8)])
def test_some_blocks(program: Path, capsys: pytest.CaptureFixture[str], sample: list[str], count: int) -> None:
    shape = ["--grid", "8", "--block", "32", "--arg", "out=zeros:u32:1024"]
    assert run(["profile", str(program), *shape, *sample, "--json"]) == 0
    [launch] = json.loads(capsys.readouterr().out)["launches"]
    assert launch["blocks_run"] == count and launch["metrics"]["smsp__inst_executed.sum"] == 6 * count
    assert launch["metrics"]["launch__grid_size"] == 8
    assert run(["profile", str(program), *shape, *sample]) == 0
    note = f"sums are those of {count} of 8 blocks: of the launch about {8 / count:.6g} times as much, if all blocks are alike"
    assert (note in capsys.readouterr().out) == (count != 8)


@pytest.mark.parametrize("blocks", ["3-1", "x", "-1", "1-", "1" * 30])
def test_blocks_that_are_none(program: Path, capsys: pytest.CaptureFixture[str], blocks: str) -> None:
    assert run(["profile", str(program), *ARGUMENTS, f"--blocks={blocks}"]) == 2
    assert "is not FIRST-LAST, such as 0-3" in capsys.readouterr().err
    assert run(["profile", str(program), *ARGUMENTS, "--blocks", "9"]) == 2
    assert "none of the blocks to be profiled is there: the launch has 2" in capsys.readouterr().err
