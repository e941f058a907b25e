"""Values with one base for each group of lanes: what is kept so, and that nobody can tell."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from tests.support.kernel_tools import kernel

PITCH = 53
PARAMETERS = ".param .u64 out, .param .u64 matrix, .param .u32 pitch, .param .u32 number"
PLACE = """
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [matrix]; ld.param.u32 %r1, [pitch]; ld.param.u32 %r9, [number];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r2;
  mad.lo.u32 %r6, %r3, %r1, %r2; mul.wide.u32 %rd3, %r5, 8; add.u64 %rd3, %rd3, %rd1;
"""
"""Of the thread: its coordinates r2 and r3, its number r5, where its result goes, and its place r6 in a matrix of rows of r1."""
BLOCKS = [(16, 6), (8, 12), (4, 8), (32, 2), (16, 5)]


def text(body: str, declarations: str = "") -> str:
    return kernel(PLACE + body, PARAMETERS, declarations)


def launch(body: str, block: tuple[int, int], number: int = 0, declarations: str = "") -> np.ndarray:
    """What threads store at their places, from a matrix that counts."""
    out = np.zeros((block[1], block[0]), "u8")
    matrix = np.arange(64 * PITCH, dtype="u4")
    program = text(body, declarations)
    ptxemu.loads(program, filename="test.ptx")["k"][1, block](out, matrix, PITCH, number)
    return out


def places(block: tuple[int, int]) -> np.ndarray:
    """The places of threads in the matrix."""
    x, y = block
    return np.arange(y, dtype="u8")[:, None] * PITCH + np.arange(x, dtype="u8")


def code(body: str, variant: str, observed: Observed = "") -> str:
    options = compile.Options(cpu="x86-64-v4", variant=variant, observed=observed)
    return str(compile.emit(compile.front(text(body)), "k", options, "llvm"))


LOOP = """
  mul.wide.s32 %rd5, %r6, 4; add.s64 %rd5, %rd5, %rd2; mov.u32 %r10, 0; mov.u32 %r11, 0;
TRIP: ld.global.u32 %r12, [%rd5]; add.u32 %r11, %r11, %r12; add.s64 %rd5, %rd5, 12; add.u32 %r10, %r10, 1;
  setp.lt.u32 %p1, %r10, 5; @%p1 bra TRIP; cvt.u64.u32 %rd6, %r11; st.global.u64 [%rd3], %rd6;
"""


def test_code_asks_no_lane_where_rows_begin() -> None:
    for variant in ("x16", "x8"):
        assert "icmp eq <32 x i64>" not in code(LOOP, variant)


def test_the_checker_of_barriers_changes_nothing() -> None:
    """It asks for no accesses."""
    assert code(LOOP, "x16", "members") == code(LOOP, "x16")


READ = """
  mul.wide.s32 %rd5, %r6, 4; add.s64 %rd5, %rd5, %rd2; ld.global.u32 %r12, [%rd5]; cvt.u64.u32 %rd6, %r12;
  st.global.u64 [%rd3], %rd6;
"""


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("missing", [0, 1, 3, PITCH, PITCH + 5])
def test_lanes_that_read_beyond_the_matrix_are_told(block: tuple[int, int], missing: int) -> None:
    """Each of them, and no other; those read what is there."""
    at = places(block)
    words = int(at.max()) + 1 - missing
    with ptxemu.Device("4 MiB", check="memory") as device:
        matrix, out = device.to_device(np.arange(words, dtype="u4")), device.to_device(np.zeros(at.shape, "u8"))
        for _ in range(2):  # in the second launch a range is known that accesses may go to
            ptxemu.loads(text(READ), device=device)["k"][1, block](out, matrix, PITCH, 0)
        assert device.checks is not None
        assert sum(finding.count for finding in device.checks.findings) == 2 * int((at >= words).sum())
        read = out.copy_to_host()
    np.testing.assert_array_equal(read[at < words], at[at < words])


@pytest.mark.parametrize("observed", ["strays", "blanks"])
def test_code_that_tells_of_strays_looks_at_rows(observed: Observed) -> None:
    """It compares the addresses of no lanes, and loads rows."""
    told = code(READ, "x16", observed)
    assert not re.search(r"icmp \w+ <32 x i\d\d>", told) and told.count("load <16 x i32>") == 2


def test_a_row_has_one_place() -> None:
    """One load for each group, and no gather before the test of the address has failed."""
    body = """
    mad.lo.u32 %r8, %r3, %r1, 3; mul.wide.s32 %rd5, %r8, 4; add.s64 %rd5, %rd5, %rd2; ld.global.u32 %r12, [%rd5];
    cvt.u64.u32 %rd6, %r12; st.global.u64 [%rd3], %rd6;"""
    assert "load i32" in code(body, "x16")
    for block in BLOCKS:
        np.testing.assert_array_equal(launch(body, block), np.repeat(places(block)[:, :1] + 3, block[0], 1))


@pytest.mark.parametrize("block", BLOCKS)
def test_pointers_that_advance(block: tuple[int, int]) -> None:
    np.testing.assert_array_equal(launch(LOOP, block), places(block) * 5 + 3 * sum(range(5)))


@pytest.mark.parametrize("block", BLOCKS)
def test_lanes_that_leave_a_loop_at_different_times(block: tuple[int, int]) -> None:
    """Thread x goes round x + 1 times; behind the loop its pointer is where it left it."""
    body = (
        LOOP.replace("%r10, 5", "%r10, %r2").replace("setp.lt", "setp.le")
        + "sub.s64 %rd7, %rd5, %rd2; ld.global.u32 %r13, [%rd5];"
    )
    body += "shl.b64 %rd7, %rd7, 32; cvt.u64.u32 %rd8, %r13; add.u64 %rd7, %rd7, %rd8; st.global.u64 [%rd3], %rd7;"
    left = places(block) + 3 * (np.arange(block[0], dtype="u8") + 1)
    np.testing.assert_array_equal(launch(body, block), (4 * left << 32) + left)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("opcode", ["mul.wide.u32", "mul.wide.s32", "cvt.u64.u32", "cvt.s64.s32"])
@pytest.mark.parametrize("number", [0, -7, -PITCH - 2, (1 << 31) - 9, -(1 << 31) - PITCH - 3])
def test_widening_wraps_in_some_lanes(block: tuple[int, int], opcode: str, number: int) -> None:
    """The product is stored; it is an address only where it cannot wrap."""
    factor, text = (4, f"{opcode} %rd5, %r8, 4;") if "mul" in opcode else (1, f"{opcode} %rd5, %r8;")
    body = f"""
    add.u32 %r8, %r6, %r9; {text} setp.ne.u32 %p1, %r9, 0; @%p1 bra STORE;
    shl.b64 %rd6, %rd5, {2 if factor == 1 else 0}; add.u64 %rd6, %rd6, %rd2; ld.global.u32 %r10, [%rd6];
    STORE: st.global.u64 [%rd3], %rd5;"""
    narrow = (places(block).astype("i8") + number).astype("u4")
    exact = narrow.view("i4").astype("i8") if ".s32" in opcode else narrow.astype("u8")
    np.testing.assert_array_equal(launch(body, block, number % 2**32), exact.astype("u8") * np.uint64(factor))


@pytest.mark.parametrize("block", BLOCKS)
def test_values_are_there_behind_a_barrier(block: tuple[int, int]) -> None:
    body = """
    mul.wide.s32 %rd5, %r6, 4; add.s64 %rd5, %rd5, %rd2; mov.u32 %r12, tile; mad.lo.u32 %r12, %r5, 4, %r12;
    st.shared.u32 [%r12], %r6; bar.sync 0; ld.global.u32 %r10, [%rd5+4]; ld.shared.u32 %r11, [%r12]; add.u32 %r10, %r10, %r11;
    cvt.u64.u32 %rd6, %r10; st.global.u64 [%rd3], %rd6;"""
    found = launch(body, block, declarations=".shared .align 16 .b8 tile[1024];\n")
    np.testing.assert_array_equal(found, 2 * places(block) + 1)


@pytest.mark.parametrize("block", BLOCKS)
def test_quotients(block: tuple[int, int]) -> None:
    """Rows in pairs, every other one in front."""
    body = """
    div.u32 %r7, %r3, 2; rem.u32 %r8, %r3, 2; mad.lo.u32 %r8, %r8, 16, %r7; mad.lo.u32 %r8, %r8, %r1, %r2;
    mul.wide.s32 %rd5, %r8, 4; add.s64 %rd5, %rd5, %rd2; ld.global.u32 %r10, [%rd5]; cvt.u64.u32 %rd6, %r10;
    st.global.u64 [%rd3], %rd6;"""
    y = np.arange(block[1], dtype="u8")[:, None]
    np.testing.assert_array_equal(launch(body, block), (y // 2 + y % 2 * 16) * PITCH + np.arange(block[0], dtype="u8"))


@pytest.mark.parametrize("access", ["ld.global.u32 %r10, [%rd5]", "st.global.u32 [%rd5], %r10"])
def test_faults_name_the_thread(access: str) -> None:
    """The second row is misaligned."""
    body = f"""
    mul.lo.u32 %r7, %r3, %r9; mad.lo.u32 %r8, %r2, 4, %r7; cvt.u64.u32 %rd5, %r8; add.s64 %rd5, %rd5, %rd2; {access};"""
    with pytest.raises(ptxemu.Fault, match=r"misaligned.*thread \(0,1,0\)"):
        launch(body, (16, 2), 66)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("access", ["ld.global.u32", "ld.shared.u32"])
def test_one_test_covers_accesses_off_one_base(block: tuple[int, int], access: str) -> None:
    """Before and behind the first of them, and of half the size at an odd place."""
    space = access.split(".")[1]
    begin = "mul.wide.s32 %rd5, %r6, 4; add.s64 %rd5, %rd5, %rd2; add.s64 %rd5, %rd5, 40;"
    if space == "shared":  # filled as the matrix is
        begin = """mov.u64 %rd5, tile; mul.wide.s32 %rd6, %r6, 4; add.s64 %rd5, %rd5, %rd6; add.s64 %rd5, %rd5, 40;
        add.u32 %r10, %r6, 10; st.shared.u32 [%rd5], %r10; st.shared.u32 [%rd5+-40], %r6; add.u32 %r10, %r6, 19;
        st.shared.u32 [%rd5+36], %r10; bar.sync 0;"""
    body = f"""{begin} {access} %r10, [%rd5]; {access} %r11, [%rd5+-40]; {access} %r12, [%rd5+36];
    {access.replace("u32", "u16")} %h1, [%rd5+2]; cvt.u64.u16 %rd7, %h1; shl.b64 %rd7, %rd7, 32;
    mad.lo.u32 %r10, %r10, 3, %r11; mad.lo.u32 %r10, %r12, 5, %r10; cvt.u64.u32 %rd6, %r10; add.u64 %rd6, %rd6, %rd7;
    st.global.u64 [%rd3], %rd6;"""
    found = launch(body, block, declarations=".shared .align 16 .b8 tile[16384];\n")
    np.testing.assert_array_equal(found, (places(block) + 10) * 3 + places(block) + (places(block) + 19) * 5)


def test_a_fault_of_one_of_several_accesses_names_it() -> None:
    body = """mov.u32 %r9, tile; shl.b32 %r8, %r6, 2; add.u32 %r8, %r8, %r9;
    ld.shared.u32 %r10, [%r8];
    ld.shared.u32 %r11, [%r8+4000]; add.u32 %r10, %r10, %r11; cvt.u64.u32 %rd6, %r10; st.global.u64 [%rd3], %rd6;"""
    with pytest.raises(ptxemu.Fault, match=r"test.ptx:15: .*thread \(8,0,0\), 4-byte access to shared address 0xfc0"):
        launch(body, (16, 2), declarations=".shared .align 16 .b8 tile[4032];\n")
