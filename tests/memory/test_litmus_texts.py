"""Litmus tests as texts (``tests/clients/litmus``): what they say, and that kernels made of them see what they may see."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.clients.dat3m import Text
from tests.clients.litmus.barriers import all_get_past
from tests.clients.litmus.condition import Condition
from tests.clients.litmus.kernel import Plan, kernel, placements
from tests.clients.litmus.launch import launch
from tests.clients.litmus.text import Instruction, NotExpressible, parse

PASSING = """PTX passing
"Who sees the flag sees the data {threads}"
{{
data=0; flag=0;
P1:r0=7;
}}
 P0@cta 0,gpu 0        | P1@cta {cta},gpu 0        ;
 st.weak data, 1       | ld.acquire.gpu r0, flag   ;
 st.release.gpu flag, 1 | ld.weak r1, data         ;
~exists
(P1:r0 == 1 /\\ P1:r1 != 1)
""".replace("{threads}", "(two threads)")
COUNTING = """PTX counting
{ n=5; }
 P0@cta 0,gpu 0                  | P1@cta 0,gpu 0                  | P2@cta 1,gpu 0         ;
 atom.relaxed.gpu.add r0, n, 1   | atom.relaxed.gpu.sub r0, n, 3   | red.relaxed.gpu.or n, 0 ;
 ld r1, 2                        | add r2, r0, -1                  |                        ;
forall (n == 3 /\\ P0:r1 == 2)
"""
HANDING_OVER = """PTX handing-over
{ turn=0; x=0; }
 P0@cta 0,gpu 0                    | P1@cta 0,gpu 0                    ;
 LC00:                             | st.weak x, 4                      ;
 ld.acquire.cta r0, turn           | LC10:                             ;
 beq r0, 0, LC00                   | atom.release.cta.cas r1, turn, 0, 1 ;
 ld.weak r2, x                     | bne r1, 0, LC10                   ;
forall (P0:r2 == 4)
"""
BARRIERS = """PTX barriers
{ x=0; y=0; P0:r3=2; }
 P0@cta 0,gpu 0           | P1@cta 0,gpu 0          | P2@cta 0,gpu 0 ;
 st.weak x, 1             | st.weak y, 1            |                ;
 bar.cta.sync 0, r3, 2    | bar.cta.sync 0, 2, 2    |                ;
 ld.weak r0, y            | ld.weak r0, x           |                ;
 bar.cta.arrive 1         | bar.cta.sync 1          |                ;
forall (P0:r0 == 1 /\\ P1:r0 == 1)
"""
PROXIES = """PTX proxies
{ pad=9; x=3; s @ surface aliases x; t @ texture aliases s; y @ generic aliases x; }
 P0@cta 0,gpu 0      ;
 suld.weak r0, s     ;
 sust.weak s, 8      ;
 fence.proxy.surface ;
 fence.proxy.alias   ;
 ld.weak r1, y       ;
forall (P0:r0 == 3 /\\ P0:r1 == 8 /\\ x == 8 /\\ pad == 9)
"""
CONSTANT = """PTX constant
{ pad=1; x=3; c @ constant aliases x; t @ texture aliases x; }
 P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;
 cold.weak r0, c | tld.weak r0, t ;
forall (P0:r0 == 3 /\\ P1:r0 == 3)
"""
CROSSED = """PTX crossed
{ }
 P0@cta 0,gpu 0   | P1@cta 0,gpu 0   ;
 bar.cta.sync 1   | bar.cta.sync 2   ;
 bar.cta.sync 2   | bar.cta.sync 1   ;
exists (0==0)
"""
THIRD = """PTX third
{ }
 P0@cta 0,gpu 0       | P1@cta 0,gpu 0       | P2@cta 0,gpu 0       ;
 bar.cta.sync 0, 3, 2 | bar.cta.sync 0, 3, 2 | bar.cta.sync 0, 3, 2 ;
exists (0==0)
"""


@pytest.fixture(params=[1, 2])
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    return ptxemu.Device(workers=request.param)


def test_what_a_text_says() -> None:
    litmus = parse(PASSING.format(cta=1))
    assert (litmus.name, litmus.quantifier) == ("passing", "~exists")
    assert litmus.locations == {"data": 0, "flag": 0}
    assert [thread.cta for thread in litmus.threads] == [(0, 0), (0, 1)]
    assert litmus.threads[1].registers == {"r0": 7}
    assert litmus.threads[0].instructions[1] == Instruction("st.release.gpu", ("flag", "1"))
    assert parse(PROXIES).aliases == {"s": "x", "t": "x", "y": "x"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (COUNTING.replace("{ n=5; }", "{ n=5; P0:r0=n; }"), "pointer"),
        (COUNTING.replace("forall", "filter (n == 3)\nforall"), "filter"),
        (COUNTING.replace("atom.relaxed.gpu.sub", "atom.relaxed.gpu.mul"), "atom.relaxed.mul"),
        (COUNTING.replace("red.relaxed", "red.acquire"), "red.acquire.or"),
        (BARRIERS.replace("st.weak x, 1  ", "ld.weak r3, y"), "loaded"),
        (BARRIERS.replace("r3, 2", "15, 2"), "barriers"),
        (COUNTING.replace("ld r1, 2", "suld.relaxed.gpu r1, n"), "suld.relaxed.gpu"),
    ],
)
def test_what_is_not_expressed_is_said(text: str, reason: str) -> None:
    with pytest.raises(NotExpressible, match=reason):
        kernel(Plan(parse(text), "warps", 1, 1))


@pytest.mark.parametrize("text", ["", "PTX name\n{ }\n P0@cta 0,gpu 0 ;\n ld r0, 1 ;", COUNTING.replace("P1@", "P7@")])
def test_what_is_no_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"litmus test|numbered"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(P0:r1 == 1 /\\ x != 2)", [False, True, False]),
        ("~(0:r1 == 1) \\/ [x] = 3 /\\ not x < 0", [True, True, False]),
        ("x >= 0x2 /\\ P0:r1 <= x /\\ -1 < x", [True, True, True]),
        ("0==0", [True, True, True]),
        ("P0:r1 > x", [False, False, False]),
    ],
)
def test_conditions(text: str, expected: list[bool]) -> None:
    values = {"P0:r1": np.array([0, 1, 1]), "x": np.array([2, 3, 2])}
    assert np.broadcast_to(Condition(text)(values), 3).tolist() == expected


@pytest.mark.parametrize("text", ["(x == 1", "x == ", "x 1", "x == 1 y", "[x == 1", "x == 1 ?"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Condition(text)


@pytest.mark.parametrize(
    "text", [PASSING.format(cta=0), PASSING.format(cta=1), COUNTING, HANDING_OVER, BARRIERS, PROXIES, CONSTANT]
)
def test_runs_have_the_outcomes_that_they_must_have(text: str, device: ptxemu.Device) -> None:
    litmus = parse(text)
    for placement in placements(litmus):
        holds = launch(Plan(litmus, placement, 2, 3), device, seed=1, timeout=60.0).holds()
        assert holds.size in (2 * 3 * 32, 2 * 3 * 16, 2 * 3 * 10) and (holds == (litmus.quantifier == "forall")).all()


def test_threads_of_a_block_take_turns() -> None:
    """What every order of the threads can give is seen, so that a forbidden order would be."""
    litmus = parse(PASSING.format(cta=0))
    with ptxemu.Device(workers=1) as device:
        seen = launch(Plan(litmus, "warps", 2, 64), device, seed=3, timeout=60.0).values
    assert {(0, 0), (0, 1), (1, 1)} == set(zip(seen["P1:r0"].tolist(), seen["P1:r1"].tolist(), strict=True))


@pytest.mark.parametrize(("text", "past"), [(BARRIERS, True), (COUNTING, True), (CROSSED, False), (THIRD, False)])
def test_who_gets_past_barriers(text: str, past: bool) -> None:
    assert all_get_past(parse(text)) is past


def test_a_forbidden_outcome_fails() -> None:
    """A verdict that is wrong of the model: flag and data may both be seen."""
    wrong = parse(PASSING.format(cta=0).replace("P1:r1 != 1", "P1:r1 == 1"))
    assert Text("wrong", wrong, outcome=True, ends=None).verdict(1).startswith("FAIL: forbidden, ")
    assert Text("right", wrong, outcome=False, ends=None).verdict(1) == "allowed, seen"


def test_verdicts_of_texts() -> None:
    assert Text("", parse(PASSING.format(cta=0)), True, None).verdict(1) == "forbidden, never seen"
    assert Text("", parse(HANDING_OVER), None, True).verdict(1) == "ends"
    assert Text("", parse(CROSSED), True, None).verdict(1) == "cannot end: threads wait at a barrier for ever, which is found"
    assert Text("", parse(THIRD), False, None).verdict(1).startswith("cannot end")
    endless = parse(HANDING_OVER.replace("bne r1, 0, LC10", "bne r1, 2, LC10"))
    assert Text("", endless, None, False).verdict(1) == "may run for ever, does"
