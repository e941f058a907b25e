"""What ``tests/clients/llvm`` makes of LLVM's tests: of their RUN lines, of PTX, and of functions in IR."""

from __future__ import annotations

import numpy as np
import pytest

from tests.clients.llvm import execute
from tests.clients.llvm.accept import callers, verdict
from tests.clients.llvm.defined import defined
from tests.clients.llvm.execute import Function, kind_of
from tests.clients.llvm.tools import configurations, parts

HEADER = ".version 7.8\n.target sm_90\n.address_size 64\n"
ADDING = """
	// .globl	add                     // -- Begin function add
.visible .func  (.param .b32 func_retval0) add(
	.param .b32 add_param_0,
	.param .align 4 .b8 add_param_1[4]
)                                       // @add
{
	.reg .b32 %r<3>; .reg .b64 %rd<2>;
	ld.param.b32 	%r1, [add_param_0]; add.s32 %r2, %r1, 1; BODY
	st.param.b32 	[func_retval0], %r2;
	ret;
                                        // -- End function
}
"""
NOTHING = "\t// .globl\tnothing\n.entry nothing()\n{\n\tret;\n                    // -- End function\n}\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("; RUN: llc < %s -mtriple=nvptx64 -mcpu=sm_20 | FileCheck %s", [("-mtriple=nvptx64", "-mcpu=sm_75")]),
        ("; RUN: llc < %s -mcpu=sm_90 -mattr=+ptx80 -O0 | FileCheck %s", [("-mcpu=sm_90", "-mattr=+ptx80", "-O0")]),
        (
            "; RUN: llc -march=nvptx64 -mcpu=sm_30 \\\n; RUN:   -mattr=+ptx60 %s -o - | FileCheck %s",
            [("-march=nvptx64", "-mcpu=sm_75")],
        ),
        ("; RUN: %if ptxas %{ llc < %s -mcpu=sm_80 | %ptxas-verify %}\n; RUN: llc < %s -mcpu=sm_80", [("-mcpu=sm_80",)]),
        ("; RUN: llc < %s -mtriple=nvptx -mcpu=sm_90\n; RUN: llc < %s -mcpu=sm_120a -mattr=+ptx96", []),
        ("; RUN: llc < %s -stop-after=finalize-isel\n; RUN: llc %s -filetype=null\n; RUN: opt -S %s | FileCheck %s", []),
    ],
)
def test_options_of_run_lines(lines: str, expected: list[tuple[str, ...]]) -> None:
    assert configurations(lines + "\ndefine void @f() { ret void }\n") == expected


def test_parts_of_a_module() -> None:
    head = f"{HEADER}.extern .func g();\n"
    found = parts(head + ADDING + NOTHING)
    assert len(found) == 2 and all(part.startswith(head) for part in found)
    assert "add_param_0" in found[0] and "nothing" not in found[0] and ".entry nothing" in found[1]
    assert parts(head) == [head]


@pytest.mark.parametrize(
    ("before", "body", "expected"),
    [
        ("", "", "ok"),
        ("", "fabric.submit;", "unsupported"),
        ("", "mov.u64 %r1, 5;", "FAIL"),
        (".extern .func (.param .b32 r) g(.param .b64 a);", "{ .param .b32 r; .param .b64 a; call (r), g, (a); }", "ok"),
        (".extern .func g\n()\n;", "call g;", "ok"),
        (".extern .global .align 4 .b8 table[];", "mov.u64 %rd1, table;", "ok"),
    ],
)
def test_verdicts(before: str, body: str, expected: str) -> None:
    """A device function is compiled, too."""
    assert verdict(f"{HEADER}{before}{ADDING.replace('BODY', body)}").partition(":")[0] == expected


def test_functions_are_called_as_they_are_declared() -> None:
    made = callers(ADDING)
    assert ".param .b32 a0; .param .align 4 .b8 a1[4]; .param .b32 r;  call (r), add, (a0, a1);" in made


def test_functions_that_only_calculate() -> None:
    source = """
define noundef i32 @shifted(i32 signext %a, i32 noundef %b) #0 { ; a comment
  %r = shl i32 %a, %b
  ret i32 %r
}
define <2 x half> @added(<2 x half> %a, float %b) {
  %r = fadd <2 x half> %a, %a
  ret <2 x half> %r
}
define i32 @loads(i32 %a, ptr %p) {
  %r = load i32, ptr %p
  ret i32 %r
}
define i32 @calls(i32 %a) {
  %r = call i32 @other(i32 %a)
  ret i32 %r
}
define float @of_the_target(float %a) {
  %r = call float @llvm.nvvm.sqrt.rn.f(float %a)
  ret float %r
}
define void @nothing(i32 %a) {
  ret void
}
define { i32, i32 } @pairs(i32 %a) {
  ret { i32, i32 } zeroinitializer
}
define ptx_kernel void @kernel(i32 %a) {
  ret void
}
"""
    found = execute.functions(source)
    assert [(f.name, f.result.text, [kind.text for kind in f.parameters]) for f in found] == [
        ("shifted", "i32", ["i32", "i32"]),
        ("added", "<2 x half>", ["<2 x half>", "float"]),
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %r = shl nuw nsw i16 %a, %b", ["  %guard.r = and i16 %b, 15", "  %r = shl i16 %a, %guard.r"]),
        ("  %r = ashr <2 x i32> %a, %b", ["  %guard.r = and <2 x i32> %b, splat (i32 31)", "  %r = ashr <2 x i32> %a, %guard.r"]),
        (
            "  %r = sdiv i8 7, %b",
            ["  %guard.r = and i8 %b, 127", "  %guard.r.positive = or i8 %guard.r, 1", "  %r = sdiv i8 7, %guard.r.positive"],
        ),
        (
            "  %r = extractelement <2 x half> %a, i64 %b",
            ["  %guard.r = urem i64 %b, 2", "  %r = extractelement <2 x half> %a, i64 %guard.r"],
        ),
        ("  %r = lshr i32 %a, 40", ["  %r = lshr i32 %a, 40"]),
        ("  %r = xor <2 x i8> %a, <i8 -1, i8 undef>", ["  %r = xor <2 x i8> %a, <i8 -1, i8 zeroinitializer>"]),
        ("  %r = fadd fast float %a, %b", ["  %r = fadd float %a, %b"]),
        (
            "  %r = fptosi <2 x half> %a to <2 x i32>",
            [
                "  %r = call <2 x i32> @llvm.fptosi.sat.v2i32.v2f16(<2 x half> %a)",
                "declare <2 x i32> @llvm.fptosi.sat.v2i32.v2f16(<2 x half>)",
            ],
        ),
        ("  %r = call i32 @llvm.ctlz.i32(i32 %a, i1 true)", ["  %r = call i32 @llvm.ctlz.i32(i32 %a, i1 false)"]),
        ('attributes #0 = { "denormal-fp-math-f32"="preserve-sign" }', ["attributes #0 = { nounwind }"]),
    ],
)
def test_what_llvm_leaves_open_is_taken_out(line: str, expected: list[str]) -> None:
    assert defined(line + "\n").splitlines() == expected


def test_results_that_differ() -> None:
    kind = kind_of("<2 x float>")
    assert kind is not None
    left = np.zeros((execute.COUNT, execute.STRIDE), np.uint8)
    right = left.copy()
    for row, (one, other) in enumerate([(1.0, 2.0), (np.nan, -np.nan), (np.nan, 1.0), (0.0, -0.0)]):
        left.view(np.float32)[row, 1], right.view(np.float32)[row, 1] = one, other
        left.view(np.float32)[row, 2] = 5  # behind the result
    found = execute.differing(Function("f", kind, (kind,), ""), left, right)
    assert np.flatnonzero(found).tolist() == [0, 2, 3]


def test_arguments_without_nans() -> None:
    kinds = [kind_of(text) for text in ("bfloat", "double", "i1", "i64")]
    function = Function("f", kinds[0], tuple(kind for kind in kinds if kind), "")  # type: ignore[arg-type]
    drawn = execute.arguments(function, np.random.default_rng(3), numbers=True)
    assert not np.isnan(drawn[:, 1, :8].copy().view(np.float64)).any() and set(drawn[:, 2, 0]) == {0, 1}
    assert (drawn[:, 0, :2].copy().view(np.uint16) & 0x7FFF).max() <= 0x7F80
