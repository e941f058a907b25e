"""The checker ``race`` at words that several lanes have read: each of them may write there next, and the others race with it."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import found, program

SHARED = ".shared .align 16 .b8 s[512];\n"
PLACES = {"shared": "s", "global": "%rd1"}
START = """mov.u64 %rd5, {at}; setp.eq.u32 %p1, %r1, 0; @%p1 st.{space}.v4.u32 [{at}], {{0, 0, 0, 0}};
@%p1 st.{space}.v4.u32 [{at}+16], {{0, 0, 0, 0}}; bar.sync 0; setp.eq.u32 %p2, %r1, {lane};"""
ALONE = "a read"
OTHERS = "a read by other threads of its warp"
WORDS = "shl.b32 %r5, %r5, 2; cvt.u64.u32 %rd4, %r5; add.u64 %rd5, %rd5, %rd4;"  # of the number %r5
READS = {
    "all lanes": ("ld.{space}.u32 %r3, [%rd5];", range(32)),
    "some lanes": ("setp.lt.u32 %p3, %r1, 7; @%p3 ld.{space}.u32 %r3, [%rd5];", range(7)),
    "halves": (f"shr.u32 %r5, %r1, 4; {WORDS} ld.{{space}}.u32 %r3, [%rd5];", range(32)),
    "anywhere": (f"mul.lo.u32 %r5, %r1, 7; rem.u32 %r5, %r5, 5; {WORDS} ld.{{space}}.u32 %r3, [%rd5];", range(32)),
    "vectors": ("ld.{space}.v4.u32 {{%r3, %r4, %r5, %r6}}, [%rd5];", range(32)),
    "bytes": ("ld.{space}.u8 %r3, [%rd5];", range(32)),
    "strong": ("ld.volatile.{space}.u32 %r3, [%rd5];", range(32)),
    "one after another": (
        "setp.eq.u32 %p3, %r1, 3; @%p3 ld.{space}.u32 %r3, [%rd5]; setp.eq.u32 %p3, %r1, 9; @%p3 ld.{space}.u32 %r3, [%rd5];",
        (3, 9),
    ),
}
WRITE = "@%p2 st.{space}.u32 [%rd5], 1;"


def messages(body: str, space: str, lane: int, check: str = "race", workers: int = 1) -> list[str]:
    text = program((START + body).format(space=space, at=PLACES[space], lane=lane), SHARED)
    with ptxemu.Device(memory="64 MiB", check=check, workers=workers) as device:
        seen = found(device, text, device.to_device(np.zeros(32, np.uint32), "x"), 0)
    return [one.message.partition("in no order with ")[2] for one in seen if one.check == "race"]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("check", ["race", "memory,sync,race,leak,init"])
@pytest.mark.parametrize("space", PLACES)
@pytest.mark.parametrize("name", READS)
def test_each_reader_races_with_the_others(name: str, space: str, check: str, workers: int) -> None:
    read, lanes = READS[name]
    seen = [messages(read + WRITE, space, lane, check, workers) for lane in (lanes[0], lanes[-1])]
    assert all(one in ([ALONE], [OTHERS]) for one in seen)
    assert len([one for one in seen if one == [OTHERS]]) == 1  # of one reader, the stamp is there


@pytest.mark.parametrize("space", PLACES)
@pytest.mark.parametrize(
    "body",
    [
        f"@%p2 ld.{{space}}.u32 %r3, [%rd5]; {WRITE}",
        f"@%p2 ld.{{space}}.u32 %r3, [%rd5]; @%p2 ld.{{space}}.u32 %r4, [%rd5]; {WRITE}",
        f"ld.{{space}}.u32 %r3, [%rd5]; bar.warp.sync 0xffffffff; {WRITE}",
        f"ld.{{space}}.u32 %r3, [%rd5]; bar.warp.sync 0xffffffff; @%p2 ld.{{space}}.u32 %r3, [%rd5]; {WRITE}",
        "ld.volatile.{space}.u32 %r3, [%rd5]; @%p2 st.volatile.{space}.u32 [%rd5], 1;",
        "ld.{space}.u8 %r3, [%rd5]; @%p2 st.{space}.u8 [%rd5+1], 1;",
        "@!%p2 ld.{space}.u8 %r3, [%rd5+1]; @%p2 ld.{space}.u32 %r3, [%rd5]; @%p2 st.{space}.u8 [%rd5], 1;",
    ],
)
def test_who_reads_alone_or_before_a_barrier(body: str, space: str) -> None:
    assert [messages(body, space, lane) for lane in (0, 31)] == [[], []]


ROWS = """.visible .entry k(.param .u64 x, .param .u32 pitch) {
.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [pitch]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;
mad.lo.u32 %r4, %r3, %r1, %r2; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2;
ld.global.u32 %r5, [%rd3]; setp.eq.u32 %p1, %r3, 1; @%p1 st.global.u32 [%rd3], %r5; ret; }"""


@pytest.mark.parametrize(("pitch", "races"), [(16, 0), (0, 16), (8, 8)])
def test_rows_that_meet_in_memory(pitch: int, races: int) -> None:
    """How far rows are apart only the launch knows."""
    with ptxemu.Device(memory="64 MiB", check="race", workers=1) as device:
        x = device.to_device(np.zeros(64, np.uint32), "x")
        kernel = ptxemu.loads(f".version 8.0\n.target sm_80\n.address_size 64\n{ROWS}", device=device)["k"]
        kernel[1, (16, 2)](x, pitch)
        assert device.checks is not None
        assert sum(one.count for one in device.checks.findings) == races


# ---------------------------------------------------------------- readers of several warps

STEP = """setp.lt.u32 %p1, %r1, {half}; @!%p1 bra L{half}
ld.shared.u32 %r10, [%r5]; ld.shared.u32 %r11, [%r5+{distance}]; add.u32 %r10, %r10, %r11; st.shared.u32 [%r5], %r10
L{half}: bar.sync 0"""
HALVES = (128, 64, 32, 16, 8, 4, 2, 1)
TREE = "\n".join(
    [
        "mov.u32 %r5, tree; shl.b32 %r4, %r1, 2; add.u32 %r5, %r5, %r4; add.u64 %rd4, %rd1, %rd2; ld.global.u32 %r10, [%rd4]",
        "st.shared.u32 [%r5], %r10; bar.sync 0",
        *(STEP.format(half=half, distance=4 * half) for half in HALVES),
        "st.global.u32 [%rd4], %r10",
    ]
)
"""The sum of a block's words, in shared memory."""


@pytest.mark.parametrize("check", ["race", "memory,init,race,sync"])
@pytest.mark.parametrize("grid", [1, 3])
@pytest.mark.parametrize("missing", [None, *range(len(HALVES))])
def test_a_tree_whose_threads_do_not_wait(missing: int | None, grid: int, check: str) -> None:
    """Without the barrier before a step, one warp reads a word that another one then reads and overwrites. The last barrier and
    none that is missing are no error."""
    parts = TREE.replace("\n", "; ").split("bar.sync 0")
    places = ["bar.sync 0"] * (len(parts) - 1)
    if missing is not None:
        places[missing] = "mov.u32 %r9, 0"
    body = "".join(part + place for part, place in zip(parts, [*places, ""], strict=True))
    with ptxemu.Device(memory="64 MiB", check=check) as device:
        words = device.to_device(np.ones(256, np.uint32))
        seen = found(device, program(body, ".shared .align 4 .b8 tree[1024];"), words, words, grid=grid, block=256)
    assert bool([one for one in seen if "shared memory" in one.message]) == (missing is not None)
