"""What perf and gdb are told of compiled kernels."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

import ptxemu
from ptxemu.driver import compile
from ptxemu.driver.symbols import VARIABLE, Object, tell
from ptxemu.dwarf.line_table import rows_of
from ptxemu.dwarf.stream import DwarfError
from ptxemu.text.errors import InputError
from tests.support.kernel_tools import kernel

LINES = compile.Options(lines=True)
CALLED = """
.func (.param .f32 d) half(.param .f32 a)
{ .reg .f32 %f<4>;
  .loc 1 20 1
  ld.param.f32 %f1, [a]; mul.f32 %f2, %f1, 0f3F000000; st.param.f32 [d], %f2; ret; }
"""
BODY = """
  .loc 1 2 1
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; mov.u32 %r2, 0;
again:
  .loc 1 3 1
  sqrt.rn.f32 %f2, %f1;
  .loc 2 7 1
  add.f32 %f1, %f2, %f1; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5; @%p1 bra again;
  .loc 1 4 1
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.f32 [%rd1], %f1; ret;
"""
TEXT = kernel(BODY) + '.file 1 "/src/roots.cu"\n.file 2 "/src/inner.h"\n'


def expected() -> np.ndarray:
    x = np.arange(64, dtype=np.float32)
    for _ in range(5):
        x += np.sqrt(x)
    return x


def test_the_line_table_is_that_of_pyelftools() -> None:
    data = compile.kernel(compile.front(TEXT), "k", LINES).object
    info = ELFFile(io.BytesIO(data)).get_dwarf_info()
    [unit] = info.iter_CUs()
    program = info.line_program_for_CU(unit)
    states = [entry.state for entry in program.get_entries() if entry.state is not None]
    ours = list(rows_of(Object(data).lines()))
    assert [(row.address, row.place is None) for row in ours] == [(state.address, state.end_sequence) for state in states]
    assert [row.place.line for row in ours if row.place] == [state.line for state in states if not state.end_sequence]
    places = {str(row.place) for row in ours if row.place and row.place.line}
    assert places >= {"/src/roots.cu:3", "/src/inner.h:7", "/src/roots.cu:4"}


def test_damaged_line_tables() -> None:
    data = Object(compile.kernel(compile.front(TEXT), "k", LINES).object).lines()
    for size in range(1, len(data)):
        with pytest.raises(DwarfError):
            list(rows_of(data[:size]))
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        with suppress(DwarfError):
            assert len(list(rows_of(bytes(damaged)))) <= len(data)


def test_perf_gets_a_map_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "perf")
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    before = path.stat().st_size if path.exists() else 0
    try:
        out = np.zeros(64, np.float32)
        ptxemu.loads(TEXT)["k"][1, 64](out)
        np.testing.assert_array_equal(out, expected())
        ranges = [line.split(" ", 2) for line in path.read_text()[before:].splitlines()]
    finally:
        path.unlink()
    assert {name for _, _, name in ranges} >= {"k roots.cu:3", "k inner.h:7", "k roots.cu:4"}
    bounds = sorted((int(start, 16), int(size, 16)) for start, size, _ in ranges)
    assert all(start + size <= following for (start, size), (following, _) in pairwise(bounds))


def test_functions_have_lines_of_their_own() -> None:
    call = "{ .param .f32 a; .param .f32 d; st.param.f32 [a], %f1; call (d), half, (a); ld.param.f32 %f1, [d]; }"
    text = TEXT.replace("sqrt.rn.f32 %f2, %f1;", call * 2).replace(".visible", CALLED + ".visible", 1)
    found = Object(compile.kernel(compile.front(text), "k", LINES).object)
    assert any(row.place and row.place.line == 20 for row in rows_of(found.lines()))


def test_code_without_lines_is_as_it_was() -> None:
    assert not Object(compile.kernel(compile.front(TEXT), "k").object).lines()


def test_other_tools_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "perf,vtune")
    with pytest.raises(InputError, match="PTXEMU_SYMBOLS is a list of gdb and perf, not 'vtune'"):
        tell(b"", "kernel", 0, "k")


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_gdb_stops_in_a_kernel(tmp_path: Path) -> None:
    source = "\n".join(f"line {number} of roots" for number in range(1, 9))
    (tmp_path / "roots.cu").write_text(source)
    (tmp_path / "k.ptx").write_text(TEXT.replace("/src/", f"{tmp_path}/"))
    commands = ["set breakpoint pending on", "break roots.cu:3", "run", "backtrace 1", "list 3,3", "kill"]
    launch = ["-m", "ptxemu", "run", "k.ptx", "--grid", "1", "--block", "64", "--arg", "out=zeros:f32:64"]
    given = [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-q", "-nx", "-batch", *given, "--args", sys.executable, *launch],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300, stdin=subprocess.DEVNULL,
        env={**os.environ, VARIABLE: "gdb", "PTXEMU_CACHE": str(tmp_path / "cache"), "DEBUGINFOD_URLS": ""},
    )  # fmt: skip
    if "Operation not permitted" in done.stderr:
        pytest.skip("gdb may not trace here")
    assert f"#0  k () at {tmp_path}/roots.cu:3" in done.stdout, done.stdout + done.stderr
    assert "3\tline 3 of roots" in done.stdout
