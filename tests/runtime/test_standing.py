"""What the message of a launch says that is stuck, or runs over its time: where every warp stands, and what it waits for."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel

SECOND = "setp.ge.u32 %p1, %r0, 32; setp.eq.u32 %p2, %r0, 5;"  # of two warps; one thread of the first
ALL = "0xffffffff"
BARRIER = "waits for barrier {}: {} of {} threads have arrived  {}"
POLL = "waits for an mbarrier, again and again  mbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;"
STUCK = {
    "two barriers": (
        f"{SECOND}\n@%p1 bar.sync 1;\n@!%p1 bar.sync 2, 96;",
        [(0, ALL, BARRIER.format(2, 32, 96, "@!%p1 bar.sync 2, 96;")), (1, ALL, BARRIER.format(1, 32, 64, "@%p1 bar.sync 1;"))],
    ),
    "lanes of a warp": (
        f"{SECOND}\n@%p2 bra ODD;\n@%p1 bra OTHER;\nbarrier.sync 3;\nODD:\nbarrier.sync 4, 96;\nOTHER:\nbarrier.sync 5, 128;",
        [(0, "0xffffffdf", BARRIER.format(3, 31, 64, "barrier.sync 3;")),
         (0, "0x00000020", BARRIER.format(4, 1, 96, "barrier.sync 4, 96;")),
         (1, ALL, BARRIER.format(5, 32, 128, "barrier.sync 5, 128;"))],
    ),
    "mbarrier": (
        "mov.u32 %r1, bar;\nsetp.eq.u32 %p1, %r0, 0;\n@%p1 mbarrier.init.shared.b64 [%r1], 65;\nbar.sync 0;\n"
        "mbarrier.arrive.shared.b64 _, [%r1];\nL:\nmbarrier.test_wait.parity.shared.b64 %p2, [%r1], 0;\n@!%p2 bra L;",
        [(0, ALL, POLL), (1, ALL, POLL)],
    ),
    "cluster": (
        f"{SECOND}\n@%p1 bra L;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nL:\nbar.sync 0;",
        [(0, ALL, "waits for barrier.cluster  barrier.cluster.wait;"), (1, ALL, BARRIER.format(0, 32, 64, "bar.sync 0;"))],
    ),
}  # fmt: skip
FLAG = f"{SECOND}\n@%p1 bar.sync 0;\nL:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 bra L;\nbar.sync 1;"


SYNCHRONIZE = ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);"
CALL = "call (r), cudaCGSynchronize, (h, f);"


def module(body: str) -> ptxemu.Module:
    text = kernel(
        f"ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x;\n{body}\nret;",
        declarations=f".shared .align 8 .b64 bar;\n{SYNCHRONIZE}\n",
    )
    return ptxemu.loads(text.replace("sm_80", "sm_90"), filename="k.ptx")


def stands(message: str, source: str) -> list[tuple[int, str, str]]:
    """Warp, lanes and the rest of each line, with the text of the line of the source that it names."""
    lines = re.findall(r"^  block \(0,0,0\) warp +(\d+) lanes (\S+) (.*?) +k.ptx:(\d+)", message, re.MULTILINE)
    return [(int(warp), lanes, f"{rest}  {source.splitlines()[int(line) - 1]}") for warp, lanes, rest, line in lines]


@pytest.mark.parametrize("name", STUCK)
def test_deadlock(name: str) -> None:
    body, expected = STUCK[name]
    made = module(body)
    with pytest.raises(ptxemu.Fault) as raised:
        made["k"][1, 64](np.zeros(1, "u4"))
    assert raised.value.details.kind == "deadlock"
    assert stands(str(raised.value), made.program.source.text) == expected


def test_time_is_over() -> None:
    made = module(FLAG)
    with pytest.raises(ptxemu.LaunchTimeout) as raised:
        made["k"][1, 64](np.zeros(1, "u4"), timeout=0.3)
    assert stands(str(raised.value), made.program.source.text) == [
        (0, ALL, "can run, last seen at  ld.volatile.global.u32 %r1, [%rd1];"),
        (1, ALL, BARRIER.format(0, 32, 64, "@%p1 bar.sync 0;")),
    ]


def test_the_barrier_of_a_grid() -> None:
    made = module(
        FLAG.replace("@%p1 bar.sync 0;", "@!%p1 bra L;").replace(
            "L:",
            f"""
{{ .param .b64 h; .param .b32 f; .param .b32 r; st.param.b64 [h], 0; st.param.b32 [f], 0;
{CALL}
}}
L:""",
        )
    )
    with pytest.raises(ptxemu.LaunchTimeout) as raised:
        made["k"][1, 64](np.zeros(1, "u4"), timeout=0.3, cooperative=True)
    assert stands(str(raised.value), made.program.source.text) == [
        (0, ALL, "can run, last seen at  ld.volatile.global.u32 %r1, [%rd1];"),
        (1, ALL, f"waits for the barrier of the grid  {CALL}"),
    ]


def test_the_first_of_many() -> None:
    made = module(FLAG)
    with pytest.raises(ptxemu.LaunchTimeout, match=r"\n  \.\.\. and 2 more$") as raised:
        made["k"][1, 32 * 18](np.zeros(1, "u4"), timeout=0.3)
    assert len(stands(str(raised.value), made.program.source.text)) == 16
