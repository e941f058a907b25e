"""Diagnostics as people, programs and terminals get them."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ptxemu
from ptxemu.cli import run
from ptxemu.text.errors import FaultRecord, TexelPlace
from ptxemu.text.source import Location

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
WRONG = HEADER + ".entry k() {\n\tfoo.u32 %r1;\n\tret;\n}\n"
MESSAGE = "unknown instruction 'foo'"


def error_of(text: str) -> ptxemu.PtxError:
    with pytest.raises(ptxemu.PtxError) as caught:
        ptxemu.loads(text, filename="a.ptx")
    return caught.value


@pytest.mark.parametrize("duplicate", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
def test_errors_can_be_sent_to_other_processes(duplicate: Callable[[ptxemu.Error], ptxemu.Error]) -> None:
    error = error_of(WRONG)
    other = duplicate(error)
    assert isinstance(other, ptxemu.PtxError)
    assert str(other) == str(error)
    assert other.diagnostics == error.diagnostics
    details = a_fault(Location("a.ptx", 3))
    fault = duplicate(ptxemu.Fault("message", details))
    assert isinstance(fault, ptxemu.Fault)
    assert (str(fault), fault.details, fault.record) == ("message", details, details.as_dict())


def a_fault(location: Location | None, texel: TexelPlace | None = None) -> FaultRecord:
    return FaultRecord(
        kind="null pointer", code=700, dialect="ptx", kernel="k", location=location, pos=7, pc=0, block=(0, 0, 0),
        thread=(1, 0, 0), lane=1, channel=None, warp=0, space="global", address=0, size=4, texel=texel, note="", count=1,
    )  # fmt: skip


def test_the_file_of_a_fault_may_have_any_name() -> None:
    """It is kept apart from the line."""
    record = a_fault(Location("a:12", 3)).as_dict()
    assert (record["where"], record["line"]) == ("a:12:3", 3)
    assert a_fault(None).as_dict().items() >= {("where", ""), ("line", None)}


def test_a_fault_says_which_texel_if_there_is_one() -> None:
    record = a_fault(None, TexelPlace(2, (4, 5, 6, 7), "image")).as_dict()
    assert (record["slot"], record["coordinates"], record["surface"]) == (2, (4, 5, 6, 7), "image")
    assert a_fault(None).as_dict().keys().isdisjoint({"slot", "coordinates", "surface", "texel", "location"})


def test_loads_reports_what_lint_reports() -> None:
    text = WRONG.replace("ret", "mov.u32 1 2;\n\tbar")
    assert error_of(text).diagnostics == ptxemu.lint(text, filename="a.ptx")
    assert len(error_of(text).diagnostics) == 3


@pytest.mark.parametrize("text", [b"text", None, 5])
def test_only_text_is_taken(text: object) -> None:
    for function in (ptxemu.lint, ptxemu.loads):
        with pytest.raises(TypeError, match="must be a str"):
            function(text)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("line", "excerpt"),
    [
        ("\tfoo;", ["  \tfoo;", "  \t^~~"]),
        ("/*\u4f60*/foo;", ["  /*\u4f60*/foo;", "        ^~~"]),
        ("/*e\u0301*/foo;", ["  /*e\u0301*/foo;", "       ^~~"]),
        ("/*\x1b[31m*/foo;", ["  /*\ufffd[31m*/foo;", "           ^~~"]),
        ("ret; " * 1000 + "foo;", ["  " + ("ret; " * 30)[1:-1] + " foo;", "  " + " " * 149 + "^~~"]),
    ],
    ids=["tab", "wide", "combining", "control", "long"],
)
def test_the_caret_is_under_the_word(line: str, excerpt: list[str]) -> None:
    (record,) = ptxemu.lint(HEADER + ".entry k() {\n" + line + "\nret; }")
    assert record.render().splitlines()[1:] == excerpt


def test_terminals_get_no_control_characters() -> None:
    for record in ptxemu.lint(HEADER + '.entry k() { mov "\x1b[2J"; }\n\x9b\x07', filename="\x1b]0;x\x07.ptx"):
        assert not set(record.render()) & {"\x1b", "\x07", "\x9b"}


# ---------------------------------------------------------------- the command


def test_lint_of_many_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "right.ptx").write_text(HEADER)
    (tmp_path / "wrong.ptx").write_text(WRONG)
    (tmp_path / "binary.ptx").write_bytes(b"\xff\xfe\0")
    paths = [str(tmp_path / name) for name in ("right.ptx", "missing.ptx", "wrong.ptx", "binary.ptx", ".")]
    assert run(["lint", *paths]) == 2
    heads = [line.removeprefix(f"{tmp_path}/") for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert heads == [
        "missing.ptx: error: no such file or directory",
        f"wrong.ptx:5:2: error: {MESSAGE}",
        "binary.ptx: error: not valid UTF-8 (byte 0)",
        f"{tmp_path}: error: is a directory",
    ]
    assert run(["lint", paths[0]]) == 0


def test_lint_of_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + WRONG.encode())))
    assert run(["lint", "-"]) == 2
    assert capsys.readouterr().out.startswith(f"<stdin>:5:2: error: {MESSAGE}\n")


def test_sarif_names_files_by_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    odd = os.fsdecode(b"a b\xff.ptx")
    Path(odd).write_text(WRONG)
    assert run(["lint", "--format", "sarif", odd, str(tmp_path / odd), "missing.ptx"]) == 2
    results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert [place["artifactLocation"]["uri"] for place in places] == [
        "a%20b%FF.ptx",
        (tmp_path / "a%20b%FF.ptx").as_posix().replace(str(tmp_path), tmp_path.as_uri()),
        "missing.ptx",
    ]
    assert places[0]["region"] == {"startLine": 5, "startColumn": 2, "endColumn": 5}
    assert "region" not in places[2]
