"""Debug sections in strict mode. Each case has ptxas' verdict and the line that it names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import ptxemu

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
CASES = {  # the data, and the line of the first error, counted from that of .section; None if there is none
    "semicolon in a line comment": (".b8 1 // a; b", None),
    "semicolon in a block comment": (".b8 1 /* a; b */", None),
    "brace in a comment": (".b8 1 // a } b\n.b8 2", None),
    "semicolon": (".b8 1;", 2),
    "semicolon after a comment": (".b8 1 // a\n;", 3),
    "value in a comment": (".b8 1 // .b8 300", None),
    "value": (".b8 300", 3),
    "value on the second line": (".b8 1,\n300, 2", 4),
    "5,000 digits": (".b8 " + "1" * 5000 + ", 1", 2),
    "5,000 digits of 64 bits": (".b64 " + "1" * 5000 + ", 1", 2),
    "leading zeros": (".b8 " + "0" * 5000 + "1, -" + "0" * 5000 + "1", None),
}


@pytest.mark.parametrize(("data", "line"), CASES.values(), ids=CASES)
def test_data(data: str, line: int | None) -> None:
    errors = ptxemu.lint(f"{HEADER}.section .debug_str\n{{ {data}\n}}\n", strict=True)
    assert [error.line for error in errors] == ([] if line is None else [HEADER.count("\n") + line])
    assert all(len(error.message) < 100 for error in errors)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas is not installed")
@pytest.mark.parametrize(("data", "line"), CASES.values(), ids=CASES)
def test_data_as_ptxas_has_it(data: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "section.ptx"
    path.write_text(f"{HEADER}.section .debug_str\n{{ {data}\n}}\n")
    done = subprocess.run(["ptxas", "-arch", "sm_80", "-o", tmp_path / "o", path], capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == (line is None), done.stderr
    assert line is None or f"line {HEADER.count(chr(10)) + line}" in done.stderr


def test_sections_in_a_comment_are_none() -> None:
    assert ptxemu.lint(HEADER + "// .section .debug_str {\n// .b8 1;\n// }\n", strict=True) == []


def test_a_section_in_a_function() -> None:
    text = HEADER.replace("ret;", "\n.section .debug_str { .b8 1 }\nret;") + ".section .debug_str { .b8 1 }\n.func f() { ret; }\n"
    assert [error.line for error in ptxemu.lint(text, strict=True)] == [5]
