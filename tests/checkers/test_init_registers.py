"""The checker ``init``: registers that nobody has written, where something depends on them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import lowering
from tests.checkers.planted import checked_device, found, messages, program

device = checked_device("init")
OWN = "add.u64 %rd4, %rd1, %rd2;"  # the thread's element of x
SOME = "setp.lt.u32 %p1, %r1, 7;"  # of the threads
CHOICE = "a branch or guard depends on a register"
ADDRESS = "an address comes from a register"
VALUE = "a value that is stored comes from a register"
PLANTED = {
    f"{OWN} st.global.u32 [%rd4], %r9": (VALUE, "st.global.u32", 0, 32),
    f"{OWN} {SOME} @%p1 mov.u32 %r9, 1; st.global.u32 [%rd4], %r9": (VALUE, "st.global.u32", 7, 25),
    f"{OWN} {SOME} @!%p1 bra L; mov.u32 %r9, 1; L: st.global.u32 [%rd4], %r9": (VALUE, "L: st.global.u32", 7, 25),
    f"{OWN} add.u32 %r10, %r9, 1; mul.lo.u32 %r11, %r10, %r1; st.global.u32 [%rd4], %r11": (VALUE, "st.global.u32", 0, 32),
    f"{OWN} {SOME} selp.u32 %r10, %r1, %r9, %p1; st.global.u32 [%rd4], %r10": (VALUE, "st.global.u32", 7, 25),
    f"{OWN} mov.b64 %rd5, {{%r9, %r10}}; st.global.u64 [%rd1], %rd5": (VALUE, "st.global.u64", 0, 32),
    f"{OWN} st.global.v2.u32 [%rd1], {{%r9, %r10}}": (VALUE, "st.global.v2.u32", 0, 32),
    f"{OWN} st.u32 [%rd4], %r9": (VALUE, "st.u32", 0, 32),
    f"{OWN} red.global.add.u32 [%rd4], %r9": (VALUE, "red.global.add.u32", 0, 32),
    f"{SOME} @%p1 mov.u64 %rd4, 0; add.u64 %rd5, %rd1, %rd4; ld.global.u32 %r3, [%rd5+4]": (ADDRESS, "ld.global.u32", 7, 25),
    "setp.eq.u32 %p2, %r9, 0; @%p2 bra L; st.global.u32 [%rd1], 1; L: mov.u32 %r5, 1": (CHOICE, "@%p2 bra L", 0, 32),
    f"{SOME} @%p1 setp.eq.u32 %p2, %r1, 9; @%p2 st.global.u32 [%rd1], 1": (CHOICE, "@%p2 st.global.u32", 7, 25),
    f"{SOME} setp.eq.u32 %p2, %r9, 0; and.pred %p3, %p1, %p2; @%p3 st.global.u32 [%rd1], 1": (CHOICE, "@%p3 st", 0, 7),
    f"{SOME} setp.eq.u32 %p2, %r9, 0; or.pred %p3, !%p1, %p2; @%p3 st.global.u32 [%rd1], 1": (CHOICE, "@%p3 st", 0, 7),
    f"{OWN} mov.u32 %r5, 0; L: @%p2 add.u32 %r9, %r9, 1; setp.gt.u32 %p2, %r5, 1; add.u32 %r5, %r5, 1;"
    " setp.lt.u32 %p3, %r5, 4; @%p3 bra L; st.global.u32 [%rd1], 1": (CHOICE, "L: @%p2 add.u32", 0, 32),
}  # fmt: skip
CLEAN = [
    f"{OWN} {SOME} @%p1 mov.u32 %r9, 1; @!%p1 mov.u32 %r9, 2; st.global.u32 [%rd4], %r9",
    f"{OWN} {SOME} @%p1 mov.u32 %r9, 1; @%p1 st.global.u32 [%rd4], %r9",
    f"{OWN} {SOME} @%p1 mov.u32 %r9, 1; selp.u32 %r10, %r9, %r1, %p1; st.global.u32 [%rd4], %r10",
    f"{OWN} {SOME} @%p1 setp.eq.u32 %p2, %r1, 9; and.pred %p3, %p2, %p1; @%p3 st.global.u32 [%rd4], 1",
    f"{OWN} {SOME} @%p1 setp.eq.u32 %p2, %r1, 9; or.pred %p3, !%p1, !%p2; @%p3 st.global.u32 [%rd4], 1",
    f"{OWN} st.global.v2.u32 [%rd1], {{%r9, %r1}}",
    f"{OWN} and.b32 %r9, %r9, -256; or.b32 %r9, %r9, %r1; st.global.u32 [%rd4], %r9",
    f"{OWN} add.u32 %r10, %r9, 1; shl.b32 %r11, %r10, 2",
    "mov.u64 %rd4, s; cvta.shared.u64 %rd4, %rd4; st.u32 [%rd4], %r9",
    ".local .align 8 .b8 frame[16]; mov.u64 %rd4, frame; cvta.local.u64 %rd4, %rd4; st.u32 [%rd4], %r9",
    "st.shared.u32 [s], %r9; ld.shared.u32 %r10, [s]",
    f"{OWN} {SOME} @%p1 mov.u32 %r9, 1; shfl.sync.idx.b32 %r10, %r9, 0, 31, -1; st.global.u32 [%rd4], %r10",
]  # fmt: skip


def text(body: str) -> str:
    return program(body, ".shared .align 16 .b8 s[128];")


@pytest.mark.parametrize("body", PLANTED)
def test_planted(device: ptxemu.Device, body: str) -> None:
    message, instruction, first, count = PLANTED[body]
    (seen,) = messages(found(device, text(body), np.zeros(64, "u4"), 0))
    assert seen.startswith(f"{message} that nobody has written | {instruction}")
    assert seen.endswith(f"| 0.{first} {count}x")


@pytest.mark.parametrize("body", CLEAN)
def test_clean(device: ptxemu.Device, body: str) -> None:
    assert messages(found(device, text(body), np.zeros(64, "u4"), 0)) == []


def test_in_code_that_is_made_fast_and_where_lanes_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threaded code, and that of lanes that progress independently."""
    lock = "L: atom.global.cas.b32 %r3, [%rd3], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra L; atom.global.exch.b32 %r3, [%rd3], 0;"
    body = f"{OWN} {SOME} @%p1 mov.u32 %r9, 1; bar.sync 0; st.global.u32 [%rd4], %r9;"
    monkeypatch.setenv("PTXEMU_CACHE", "off")
    for greatest in (lowering.FIRST_LAUNCH, -1.0):
        monkeypatch.setattr(lowering, "FIRST_LAUNCH", greatest)
        for whole in (body, body + lock):
            with ptxemu.Device(memory="16 MiB", check="all") as device:
                module = ptxemu.loads(text(whole), device=device, tier="fast")
                module["k"][1, 64](np.zeros(64, "u4"), np.zeros(1, "u4"))
                assert device.checks is not None
                found = [one for one in device.checks.findings if one.check == "init"]
                assert [(one.message[:7], one.thread, one.count) for one in found] == [("a value", (7, 0, 0), 57)]
