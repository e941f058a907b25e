"""Sums that compiled code makes by itself: checkers see each, although nobody tells of it.

In shared memory, and in memory that workers have of their own (csrc/memory/twin.h).
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis.sums import is_fenceless
from ptxemu.driver import compile
from tests.checkers.planted import checked_device, found, program

GRID, BLOCK = 256, 128  # threads enough for sums apart
WORDS = 64
OWN_WORDS = GRID * BLOCK

race = checked_device("race", workers=2)
memory = checked_device("memory", workers=2)
init = checked_device("init", workers=2)
every = checked_device("all", workers=2)

MIXED = "mad.lo.u32 %r3, %r2, 128, %r1; mul.lo.u32 %r3, %r3, 0x9e3779b1; shr.u32 %r3, %r3, 26; mul.wide.u32 %rd4, %r3, 4"
"""%rd4: 4 * a number below 64. It is not ``WORD`` in the first warp, whose first sum is told as other accesses are."""
WORD = next(word for word in range(64) if all(thread * 0x9E3779B1 % (1 << 32) >> 26 != word for thread in range(32)))
AT = f"%rd1+{4 * WORD}"
SUM = "add.u64 %rd5, %rd1, %rd4; red.global.add.u32 [%rd5], 1"
OWN = (
    "xor.b32 %r3, %r1, 32; mad.lo.u32 %r3, %r2, 128, %r3; mul.wide.u32 %rd4, %r3, 4;"
    "mad.lo.u32 %r3, %r2, 128, %r1; mul.wide.u32 %rd6, %r3, 4; add.u64 %rd6, %rd1, %rd6"
)
"""%rd4: 4 * the number of a word to which only this thread adds; %rd6: that of a thread in another warp of the block."""


def in_one(block: int, access: str) -> str:
    """A branch, so that other blocks do not come there."""
    return f"setp.ne.u32 %p1, %r2, {block}; @%p1 bra BEHIND; {access}; BEHIND: mov.u32 %r9, 0"


def in_others(block: int) -> str:
    return f"{MIXED}; setp.eq.u32 %p2, %r2, {block}; @%p2 bra NONE; {SUM}; NONE: mov.u32 %r8, 0"


@pytest.fixture(params=["race", "every"])
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    made: ptxemu.Device = request.getfixturevalue(request.param)
    return made


def told(device: ptxemu.Device, body: str, x: object, declarations: str = "") -> list[str]:
    """Messages without places and values."""
    flawed = found(device, program(body, declarations), x, x, grid=GRID, block=BLOCK)
    return sorted({re.sub(r"\[0x[0-9a-f]+\]| of 0x[0-9a-f]+", "", one.message) for one in flawed})


def sums(device: ptxemu.Device, words: int = WORDS) -> ptxemu.Buffer:
    return device.to_device(np.zeros(words, np.uint32), "x")


@pytest.mark.parametrize("block", [0, 1, 7, GRID - 1])
@pytest.mark.parametrize(
    ("access", "what"),
    [
        (f"ld.global.u32 %r4, [{AT}]", "read"),
        (f"ld.global.nc.u32 %r4, [{AT}]", "read"),
        (f"ld.global.v2.u32 {{%r4, %r5}}, [%rd1+{WORD // 2 * 8}]", "read"),
        (f"ld.global.u8 %r4, [%rd1+{4 * WORD + 1}]", "read"),
        (f"st.global.u32 [{AT}], 5", "write"),
        (f"st.global.u8 [%rd1+{4 * WORD + 2}], 5", "write"),
    ],
)
@pytest.mark.parametrize("order", ["before", "behind"])
def test_a_plain_access_by_one_block(device: ptxemu.Device, access: str, what: str, order: str, block: int) -> None:
    """It makes no sums, so that its stamps are not the last ones."""
    parts = [in_one(block, access), "bar.sync 0", in_others(block)]
    body = "; ".join(parts if order == "before" else reversed(parts))
    assert any(what in one and "atomic update" in one and "`x`" in one for one in told(device, body, sums(device)))


ALL_IN_ORDER = [
    f"{MIXED}; {SUM}",
    f"{MIXED}; {SUM}; bar.sync 0; {SUM}",
    f"{OWN}; {SUM}; bar.sync 0; ld.global.u32 %r4, [%rd6]; bar.sync 0; {SUM}",
    f"{OWN}; {SUM}; bar.sync 0; ld.global.nc.u32 %r4, [%rd6]; bar.sync 0; {SUM}",
    f"{OWN}; {SUM}; bar.sync 0; st.global.u32 [%rd6], 1; bar.sync 0; {SUM}; bar.sync 0; ld.global.u32 %r4, [%rd6]",
    f"{OWN}; st.global.u32 [%rd6], 1; bar.sync 0; {SUM}; bar.sync 0; ld.global.u32 %r4, [%rd6]",
]
"""Sums of a block, and what it does with plain loads and stores between barriers."""


@pytest.mark.parametrize("body", ALL_IN_ORDER)
def test_what_is_in_order(device: ptxemu.Device, body: str) -> None:
    assert told(device, body, sums(device, OWN_WORDS)) == []


@pytest.mark.parametrize("body", ALL_IN_ORDER[2:])
def test_a_barrier_is_missing(device: ptxemu.Device, body: str) -> None:
    for missing in range(body.count("bar.sync 0; ")):
        parts = body.split("bar.sync 0; ")
        parts[missing : missing + 2] = ["".join(parts[missing : missing + 2])]
        assert told(device, "bar.sync 0; ".join(parts), sums(device, OWN_WORDS)), missing


def test_some_lanes_add_behind_a_barrier(device: ptxemu.Device) -> None:
    """Those of one warp, and others read. They go another way than those of whole warps, which are before the barrier."""
    some = "and.b32 %r4, %r1, 5; setp.eq.u32 %p3, %r4, 5; @%p3 red.global.add.u32 [%rd5], 1"
    last = f"setp.ge.u32 %p2, %r1, 32; @%p2 bra READ; {some}; bra BEHIND; READ: ld.global.u32 %r4, [%rd6]"
    assert told(device, f"{OWN}; {SUM}; bar.sync 0; {in_one(GRID - 1, last)}", sums(device, OWN_WORDS))


def test_sums_of_a_scope_that_is_too_small(device: ptxemu.Device) -> None:
    narrow = SUM.replace("red.global", "red.relaxed.cta.global")
    assert told(device, f"{MIXED}; {narrow}", sums(device)) == ["4-byte atomic update of `x`, in no order with an atomic update"]
    assert told(device, f"{MIXED}; {narrow}; {SUM}", sums(device))


def test_launches_are_in_order(device: ptxemu.Device) -> None:
    x = sums(device, OWN_WORDS)
    plain = f"{OWN}; ld.global.u32 %r4, [%rd6]; st.global.u32 [%rd6], 0"
    for body in (plain, f"{MIXED}; {SUM}", plain, f"{MIXED}; {SUM}", plain):
        assert told(device, body, x) == []


def test_who_races(race: ptxemu.Device) -> None:
    """The word that the last block writes is one of each of these threads."""
    last = GRID - 1
    body = f"{in_one(last, f'st.global.u32 [{AT}], 5')}; {in_others(last)}"
    flawed = found(race, program(body), sums(race), 0, grid=GRID, block=BLOCK)
    assert flawed
    for one in flawed:
        assert one.other is not None
        update, write = (one, one.other) if "update of" in one.message else (one.other, one)
        number = update.block[0] * BLOCK + update.thread[0]
        assert number * 0x9E3779B1 % (1 << 32) >> 26 == WORD and "red.global" in update.lines[-1].text
        assert write.block == (last, 0, 0) and "st.global" in write.lines[-1].text
        assert f"`x`[{4 * WORD:#x}]" in one.message


def test_words_of_eight_bytes(device: ptxemu.Device) -> None:
    add = "shl.b64 %rd4, %rd4, 1; add.u64 %rd5, %rd1, %rd4; mov.u64 %rd7, 1; red.global.add.u64 [%rd5], %rd7"
    others = in_others(3).replace(SUM, add)
    assert told(
        device, f"{others}; bar.sync 0; {in_one(3, f'ld.global.u32 %r4, [%rd1+{8 * WORD + 4}]')}", sums(device, 2 * WORDS)
    )
    assert told(device, f"{MIXED}; {add}", sums(device, 2 * WORDS)) == []


@pytest.mark.parametrize("check", ["memory", "every"])
def test_bounds(request: pytest.FixtureRequest, check: str) -> None:
    """Of an array of which one word is missing, and of a variable that is not all of its module's memory."""
    device: ptxemu.Device = request.getfixturevalue(check)
    (short,) = told(device, f"{MIXED}; {SUM}", sums(device, WORDS - 1))
    assert short == "4-byte update just after `x` (252 bytes)"
    behind = told(device, f"mov.u64 %rd1, g; {MIXED}; {SUM}", sums(device), ".global .u32 g[63]; .global .align 256 .u32 h;")
    assert behind == ["4-byte update just after `g` (252 bytes)"]


@pytest.mark.parametrize("check", ["init", "every"])
def test_blanks(request: pytest.FixtureRequest, check: str) -> None:
    """One word of the array has not been written."""
    device: ptxemu.Device = request.getfixturevalue(check)
    x = device.empty(WORDS, np.uint32, "x")
    fill = "setp.lt.u32 %p1, %r1, 63; add.u64 %rd6, %rd1, %rd2; @%p1 st.global.u32 [%rd6], 0"
    ptxemu.loads(program(fill), device=device)["k"][1, BLOCK](x, x)
    (blank,) = found(device, program(f"{MIXED}; {SUM}"), x, x, grid=GRID, block=BLOCK)
    assert blank.message == "4-byte update 252 bytes into `x` (256 bytes), which nobody has written"
    assert told(device, f"{MIXED}; {SUM}", x) == []


# ---------------------------------------------------------------- in shared memory

TABLE = ".shared .align 8 .b8 s[1024];"
START = "shl.b32 %r10, %r1, 3; xor.b32 %r3, %r1, 32; shl.b32 %r11, %r3, 3; mov.u64 %rd7, 1"
"""%r10: the place of a thread's 8 bytes; %r11: that of a thread's in another warp."""
CLEAR = "st.shared.u64 [%r10], 0"
UPDATES = ["red.shared.add.u32 [%r11], 1", "red.shared.max.u32 [%r11+4], %r1", "red.shared.add.u64 [%r11], %rd7"]
READS = ["ld.shared.u64 %rd8, [%r10]", "mul.lo.u32 %r4, %r10, %r10; and.b32 %r4, %r4, 1016; ld.shared.v2.u32 {%r5, %r6}, [%r4]"]
BYTE = "and.b32 %r4, %r1, 4; add.u32 %r10, %r10, %r4; st.shared.u8 [%r10+1], 5"


def told_in_block(device: ptxemu.Device, *parts: str) -> list[str]:
    """The checkers whose findings a block has."""
    flawed = found(device, program("; ".join((START, *parts)), TABLE), sums(device), 0, block=BLOCK)
    return sorted({one.check for one in flawed})


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("read", READS)
def test_in_shared_memory(device: ptxemu.Device, update: str, read: str) -> None:
    assert told_in_block(device, CLEAR, "bar.sync 0", update, update, "bar.sync 0", read, "bar.sync 0", update) == []
    for missing in (1, 4, 6):
        parts = [CLEAR, "bar.sync 0", update, update, "bar.sync 0", read, "bar.sync 0", update]
        del parts[missing]
        assert "race" in told_in_block(device, *parts), missing


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("access", ["ld.shared.u64 %rd8, [%r10]", "st.shared.u64 [%r10], 1", BYTE])
def test_others_add_in_shared_memory(device: ptxemu.Device, update: str, access: str) -> None:
    """Between the same barriers some warps read or write: those that come first, or last."""
    first = f"setp.lt.u32 %p1, %r1, 32; @%p1 bra FIRST; {update}; bra BEHIND; FIRST: {access}; BEHIND: mov.u32 %r9, 0"
    for body in (first, first.replace("setp.lt.u32 %p1, %r1, 32", "setp.ge.u32 %p1, %r1, 32")):
        assert told_in_block(device, CLEAR, "bar.sync 0", body) == ["race"]


@pytest.mark.parametrize("check", ["init", "every"])
@pytest.mark.parametrize("update", UPDATES)
def test_blanks_in_shared_memory(request: pytest.FixtureRequest, check: str, update: str) -> None:
    """What two of four warps have not written."""
    device: ptxemu.Device = request.getfixturevalue(check)
    some = f"setp.ge.u32 %p1, %r1, 64; @%p1 bra BEHIND; {CLEAR}; BEHIND: bar.sync 0"
    assert told_in_block(device, CLEAR, "bar.sync 0", update) == []
    assert told_in_block(device, some, update, update) == ["init"]


@pytest.mark.parametrize("check", ["memory", "every"])
@pytest.mark.parametrize("update", UPDATES)
def test_bounds_of_shared_memory(request: pytest.FixtureRequest, check: str, update: str) -> None:
    device: ptxemu.Device = request.getfixturevalue(check)
    assert told_in_block(device, CLEAR, "bar.sync 0", update, "add.u32 %r11, %r11, 512", update) == ["memory"]


@pytest.mark.parametrize("update", UPDATES)
def test_copies_to_what_is_added_to(device: ptxemu.Device, update: str) -> None:
    """Nobody has waited for them."""
    copy = "shl.b64 %rd2, %rd2, 1; add.u64 %rd5, %rd1, %rd2; cp.async.ca.shared.global [%r10], [%rd5], 8; bar.sync 0"
    (one,) = found(device, program("; ".join((START, copy, update)), TABLE), sums(device, 4 * WORDS), 0, block=BLOCK)
    assert one.check == "race" and one.count >= BLOCK


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("atom.shared.add.u32 %r3, [s], 1", True),
        ("atom.release.cta.shared.add.u32 %r3, [s], 1", False),
        ("st.shared.u32 [s], %r1; ld.shared.u32 %r3, [s]", True),
        ("st.release.cta.shared.u32 [s], %r1", False),
        ("bar.sync 0", True),
        ("membar.cta", False),
        ("fence.acq_rel.cta", False),
        ("mbarrier.arrive.shared.b64 _, [s]", False),
        ("cp.async.ca.shared.global [s], [%rd1], 16", False),
        ("cp.async.wait_all", True),
        ("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%r1], %r2, [%r1]", False),
    ],
)
def test_what_else_may_order_accesses_of_shared_memory(statement: str, expected: bool) -> None:
    """Sums in shared memory are told of at the end of all only where nothing does."""
    text = program(f"{statement}; red.shared.add.u32 [s], 1", ".shared .align 16 .b8 s[16];").replace("sm_80", "sm_90")
    module = compile.front(text)
    (graph,) = compile.prepare(module, module.entries[0], "row").graphs
    assert is_fenceless(graph) is expected
