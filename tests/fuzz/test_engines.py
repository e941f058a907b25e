"""Random kernels on both engines, some of those of ``engines.py``, and the search for a small one that fails."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptxemu.analysis import uniformity
from tests.fuzz.engines import SCHEMES, UNSUPPORTED, Comparison, differ, scheme_of, smaller
from tests.fuzz.kernels.programs import Program, program


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return Comparison()


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes from the cache."""
    monkeypatch.setenv("PTXEMU_CACHE", "off")


def test_engines_agree(comparison: Comparison) -> None:
    seeds = range(64)
    found = dict(zip(seeds, comparison.differences((program(seed), scheme_of(seed)) for seed in seeds)))
    assert {seed: what for seed, what in found.items() if what} == {}


def test_an_error_in_the_facts_is_found(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis takes every register to be as wide as the operation."""
    monkeypatch.setattr(uniformity, "keeps_widths", lambda *_: True)
    assert any(comparison.difference(program(seed), scheme_of(seed)) for seed in range(100))


def test_each_scheme_is_drawn():
    assert {scheme_of(seed) for seed in range(40)} == set(SCHEMES)


def test_kernels_of_one_scheme_are_one_llvm_module(comparison: Comparison):
    """Of several PTX modules, with a routine for what they have in common; each does what it does alone."""
    seeds = (4, 5, 6)
    cases = comparison.cases([(program(seed), scheme) for seed in seeds for scheme in ("threaded", "light")])
    for scheme in ("threaded", "light"):
        codes = [case.code for case in cases if case.scheme == scheme and case.code is not None]
        assert len({code.object for code in codes}) == 1 and len({code.symbol for code in codes}) == len(seeds)
    units = [case.lowered.unit for case in cases if case.scheme == "threaded" and case.lowered is not None]
    alone = [comparison.cases([(case.made, case.scheme)])[0].lowered for case in cases if case.scheme == "threaded"]
    assert len(units[0].routines) < sum(len(one.unit.routines) for one in alone if one is not None)
    assert all(differ(*case.outcomes(comparison.jit)) == "" for case in cases)


LOCKED = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 n)
{
  .reg .b32 %r<4>; .reg .b64 %a<2>; .reg .pred %p<3>;
  ld.param.u64 %a0, [sums]; ld.param.u64 %a1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
  BEFORE
lock: atom.acquire.gpu.global.cas.b32 %r0, [%a0+32], 0, 1; setp.ne.u32 %p0, %r0, 0; @%p0 bra lock;
  atom.release.gpu.global.exch.b32 %r0, [%a0+32], 0;
  @%p1 bra even; bar.warp.sync -1; bra end;
even: bar.warp.sync -1;
end: mad.wide.u32 %a1, %r1, 4, %a1; st.global.u32 [%a1], %r2; ret;
}
"""


def test_meetings_of_kernels_that_share_routines_are_their_own(comparison: Comparison):
    """Lanes wait at two places, whose masks lie elsewhere in the frame of each kernel."""
    texts = [LOCKED.replace("BEFORE", before) for before in ("", "@%p1 bra past; red.global.add.u32 [%a0], 1; past:")]
    programs = [(Program(text, (1, 1, 1), (32, 1, 1)), "threaded") for text in texts]
    assert all(case.lowered is not None and case.lowered.independent for case in comparison.cases(programs))
    assert list(comparison.differences(programs)) == ["", ""]


def test_each_feature_is_drawn():
    texts = " ".join(program(seed).text for seed in range(800))
    for opcode in (
        "suld", "sust", "sured", "suq", "tex", "tld4", "mma", "ldmatrix", "stmatrix", "movmatrix", "wmma.load", "cp.async",
        "mbarrier.try_wait", "mbarrier.test_wait.parity", "bar.arrive", "brx.idx", "alloca", "atom.global.cas", "elect.sync",
        "ld.volatile.shared", "ld.acquire.gpu", "exit", "ld.const", "call (%r", "call (t", "%a1, (", "@%q", "redux.sync",
        "cvt.u16.u16",
    ):  # fmt: skip
        assert opcode in texts, opcode


def test_a_difference_is_told():
    results = {"out": np.arange(4), "sums": np.zeros(2, int)}
    assert differ(results, results) == ""
    assert differ({**results, "out": np.array([0, 1, 7, 7])}, results) == "out[2] is 0x7 compiled, 0x2 interpreted; 2 differ"
    assert differ("Fault: a", results) == "Fault: a / results"
    assert differ("Fault: a", "Fault: a") == ""


def test_what_the_compiler_does_not_support_is_no_difference_and_no_success():
    assert differ(f"{UNSUPPORTED}calls", {"out": np.arange(4)}) == f"{UNSUPPORTED}calls"


def test_a_kernel_whose_text_is_wrong_is_no_success(comparison: Comparison):
    assert "expected a directive" in comparison.difference(Program("nonsense", (1, 1, 1), (1, 1, 1)), "light")


def test_lines_that_are_not_needed_are_left_out():
    whole = Program("a\nb\nneeded\nc\nalso needed\nd", (1, 1, 1), (1, 1, 1))
    found = smaller(whole, lambda candidate: "needed" in candidate.text.splitlines() and "also needed" in candidate.text)
    assert found == replace(whole, text="needed\nalso needed")


def test_a_kernel_that_does_not_end_is_told():
    assert differ("LaunchTimeout: k", "LaunchTimeout: k") == "LaunchTimeout: k"
