"""Loops that move the addresses of all lanes on by the same distance: how lanes lay before is tested once, for all trips."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support import processors
from tests.support.kernel_tools import kernel

PARAMETERS = ".param .u64 words, .param .u64 out, .param .u64 rests, .param .u64 trips, .param .u32 by"
HEAD = """
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd9, %r1, 4; mov.u32 %r10, 0; mov.u32 %r11, 0;
  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [rests]; ld.param.u64 %rd4, [trips];
  ld.param.u32 %r9, [by]; cvt.u64.u32 %rd8, %r9;
  add.u64 %rd2, %rd2, %rd9; add.u64 %rd3, %rd3, %rd9; add.u64 %rd4, %rd4, %rd9;
  ld.global.u32 %r2, [%rd3]; ld.global.u32 %r3, [%rd4];
"""
PLACE = """
  add.u32 %r4, %r1, 40;
REST: setp.eq.u32 %p3, %r2, 0; @%p3 bra GO; add.u32 %r4, %r4, 32; sub.u32 %r2, %r2, 1; bra REST;
GO: mul.wide.u32 %rd5, %r4, 4; add.u64 %rd6, %rd1, %rd5;
"""
"""%rd6: where a lane begins, side by side with others that have as many rests."""
ADD = "ld.global.u32 %r5, [%rd6{}]; mad.lo.u32 %r10, %r10, 3, %r5;"
SUM = ADD.format("")
FORTH = "add.u64 %rd6, %rd6, 128;"
AGAIN = "add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, %r3; @%p1 bra L;"
OFFSET = "sub.u64 %rd7, %rd6, %rd1; cvt.u32.u64 %r6, %rd7; add.u32 %r10, %r10, %r6;"
END = "st.global.u32 [%rd2], %r10;"
LOOPS = {
    "by a constant": f"{PLACE} L: {SUM} {FORTH} {AGAIN} {END}",
    "backwards": f"{PLACE} L: {SUM} add.s64 %rd6, -4, %rd6; {AGAIN} {END}",
    "by a register": f"{PLACE} L: {SUM} add.u64 %rd6, %rd6, %rd8; {AGAIN} {END}",
    "by what a trip makes": f"{PLACE} L: {SUM} add.u64 %rd6, %rd6, %rd8; shl.b64 %rd8, %rd8, 1; {AGAIN} {END}",
    "several loads": f"{PLACE} L: {SUM} {ADD.format('+64')} {ADD.format('-4')} {FORTH} {AGAIN} {END}",
    "read behind": f"{PLACE} L: {SUM} {FORTH} {AGAIN} {OFFSET} {END}",
    "read in the loop": f"{PLACE} L: {SUM} {FORTH} {OFFSET} {AGAIN} {END}",
    "loads and stores": f"{PLACE} L: {SUM} st.global.u32 [%rd6+8192], %r10; {FORTH} {AGAIN} {END}",
    "prefetches": f"{PLACE} L: {SUM} prefetch.global.L1 [%rd6+64]; {FORTH} {AGAIN} {END}",
    "only some lanes": f"""{PLACE} mov.u32 %r5, %r3; L: and.b32 %r7, %r5, 1; setp.eq.u32 %p2, %r7, 1; @%p2 bra M;
        {ADD.format('+4')} M: {SUM} {FORTH} {AGAIN} {END}""",
    "loops in a loop": f"""mov.u32 %r12, 0; K: {PLACE} mov.u32 %r11, 0; L: {SUM} {FORTH} {AGAIN}
        and.b32 %r2, %r10, 3; add.u32 %r12, %r12, 1; setp.lt.u32 %p2, %r12, 3; @%p2 bra K; {END}""",
    "a barrier in the loop": f"""{PLACE} mov.u32 %r3, 5; L: {SUM} st.shared.u32 [own], %r10; bar.sync 0;
        {ADD.format('+4')} {FORTH} {AGAIN} {END}""",
    "double words": f"""{PLACE} shl.b32 %r4, %r4, 1; mul.wide.u32 %rd5, %r4, 4; add.u64 %rd6, %rd1, %rd5;
        L: ld.global.u64 %rd7, [%rd6]; cvt.u32.u64 %r5, %rd7; mad.lo.u32 %r10, %r10, 3, %r5; add.u64 %rd6, %rd6, 256;
        {AGAIN} {END}""",
}  # fmt: skip
RESTS = {
    "all together": lambda random, lanes: np.full(len(lanes), 2),
    "two pieces": lambda random, lanes: np.where(lanes % 32 < random.integers(1, 32), 0, 3),
    "three pieces": lambda random, lanes: lanes % 32 // 11,
    "anywhere": lambda random, lanes: random.integers(0, 9, len(lanes)),
}


def text(loop: str) -> str:
    return kernel(HEAD + LOOPS[loop], PARAMETERS, ".shared .align 4 .b8 own[4];")


def outcome(
    engine: str, loop: str, rests: np.ndarray, trips: np.ndarray, words: int = 4096
) -> tuple[str, np.ndarray, np.ndarray]:
    """A fault, if there is one, and what is in both arrays."""
    found, out = np.arange(words, dtype=np.uint32) * 2654435761, np.zeros(len(rests), np.uint32)
    found = found.astype(np.uint32)
    with ptxemu.Device("4 MiB", engine=engine, workers=1) as device:
        try:
            ptxemu.loads(text(loop), device=device, tier="best")["k"][1, len(rests)](found, out, rests, trips, 8)
        except ptxemu.Fault as fault:
            return str(fault), np.zeros(0), np.zeros(0)
    return "", found, out


@pytest.mark.parametrize("rests", RESTS)
@pytest.mark.parametrize("loop", LOOPS)
def test_lanes_go_on_as_they_lay(loop: str, rests: str) -> None:
    random = np.random.default_rng(len(loop) + len(rests))
    for threads in (64, 47):
        lanes = np.arange(threads)
        begin = RESTS[rests](random, lanes).astype(np.uint32)
        for trips in (np.full(threads, 5), random.integers(1, 7, threads)):
            made = [outcome(engine, loop, begin, trips.astype(np.uint32)) for engine in ("jit", "interpreter")]
            assert not made[0][0] and not made[1][0]
            np.testing.assert_array_equal(made[0][1], made[1][1])
            np.testing.assert_array_equal(made[0][2], made[1][2])


def test_two_pieces_without_avx512(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    processors.without_avx512(monkeypatch, tmp_path)
    test_lanes_go_on_as_they_lay("several loads", "two pieces")


@pytest.mark.parametrize("rests", RESTS)
def test_the_end_of_memory(rests: str) -> None:
    random, faults = np.random.default_rng(3), []
    for words in (300, 340, 400, 640):
        begin = RESTS[rests](random, np.arange(64)).astype(np.uint32)
        trips = random.integers(1, 8, 64).astype(np.uint32)
        jit, interpreted = (outcome(engine, "by a constant", begin, trips, words) for engine in ("jit", "interpreter"))
        assert bool(jit[0]) == bool(interpreted[0])
        np.testing.assert_array_equal(jit[2], interpreted[2])
        faults.append(bool(jit[0]))
    assert True in faults or rests == "all together"


@pytest.mark.parametrize("loop", LOOPS)
def test_an_address_is_where_it_was_and_what_lanes_share(loop: str) -> None:
    found = compile.emit_ir(compile.front(text(loop)), "k", compile.Options())
    assert found.count("_moved") == found.count("_in_step") == (loop != "by what a trip makes")


def test_lanes_are_compared_before_the_loop() -> None:
    found = compile.emit_ir(compile.front(text("several loads")), "k", compile.Options())
    assert found.index("_in_step") < found.index("_in_line") < found.index("\nL:") < found.index("_moved")


def test_surfaces_in_a_loop_have_no_addresses() -> None:
    body = (
        f"{PLACE} ld.param.u64 %rd12, [by]; L: suld.b.1d.b32.zero %r5, [%rd12, {{%r1}}]; {ADD.format('')} {FORTH} {AGAIN} {END}"
    )
    found = compile.emit_ir(
        compile.front(kernel(HEAD.replace("ld.param.u32 %r9, [by];", "") + body, PARAMETERS.replace(".u32 by", ".u64 by"))),
        "k",
        compile.Options(),
    )
    assert "_moved" in found


def test_lines_of_masked_loads_are_asked_for() -> None:
    """By code for processors that read ahead behind other loads only."""
    module = compile.front(text("by a constant"))
    v3, v4 = (str(compile.emit(module, "k", compile.Options(cpu=cpu), "asm")) for cpu in ("x86-64-v3", "x86-64-v4"))
    assert 2 * (v3.count("prefetcht0") - v4.count("prefetcht0")) >= v3.count("vpmaskmovd") > 0
