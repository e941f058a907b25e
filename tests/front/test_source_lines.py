"""Lines of CUDA C++ from ``.loc`` and ``.file``, through inlined functions and linked files."""

from __future__ import annotations

import os
from pathlib import Path

from ptxemu.driver.compile import front_of
from ptxemu.ir.source_lines import SourceLines
from ptxemu.text.listings import Listings
from ptxemu.text.source import Location, SourceFile, join

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """.visible .entry {name}() {{
  .reg .u32 %r<4>;
  mov.u32 %r0, 0;
  .loc 1 5 3
  mov.u32 %r1, 1;
  .loc 2 40 1, function_name $f, inlined_at 1 5 3
  .loc 1 3 7, function_name $g + 4, inlined_at 2 40 1
  mov.u32 %r2, 2;
  .loc 1 0 0
  mov.u32 %r3, 3;
  ret;
}}
.file 1 "{file}"
.file 2 "lib.cuh"
"""


def lines_of(name: str, file: str) -> list[tuple[Location, ...]]:
    at = [Location(file, 5)]
    inlined = [Location(file, 3), Location("lib.cuh", 40), *at]
    return [(), tuple(at), tuple(inlined), (), ()]


def test_chains_of_inlined_calls() -> None:
    module = front_of(SourceFile("k.ptx", HEADER + KERNEL.format(name="k", file="k.cu")), strict=True, dialect="ptx")
    lines, ops = SourceLines(module), list(module.functions["k"].ops)
    assert [lines.of(op) for op in ops] == lines_of("k", "k.cu")
    assert [lines.at(op.pos) for op in ops] == lines_of("k", "k.cu")
    assert lines.at(ops[1].end) == (Location("k.cu", 5),)
    assert lines.at(0) == ()


def test_linked_files_keep_their_lines() -> None:
    texts = {name: HEADER + KERNEL.format(name=name, file=f"{name}.cu") for name in ("a", "b")}
    module = front_of(join([SourceFile(f"{name}.ptx", text) for name, text in texts.items()]), strict=True, dialect="ptx")
    lines = SourceLines(module)
    for name in texts:
        assert [lines.of(op) for op in module.functions[name].ops] == lines_of(name, f"{name}.cu")


def test_only_sources_are_read(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("one\ntwo\n")
    (tmp_path / "secret.txt").write_text("one\n")
    os.mkfifo(tmp_path / "pipe.cu")
    listings = Listings()
    assert listings.line(Location(str(tmp_path / "k.cu"), 2)) == "two"
    assert listings.line(Location(str(tmp_path / "k.cu"), 3)) is None
    assert listings.line(Location(str(tmp_path / "secret.txt"), 1)) is None
    assert listings.line(Location(str(tmp_path / "pipe.cu"), 1)) is None
    assert Listings(tmp_path).line(Location("/nowhere/at/all/k.cu", 1)) == "one"
