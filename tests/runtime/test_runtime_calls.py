"""Calls of the functions that the driver provides, with parameters and results in pieces: what counts are the bytes."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu

DECLARATIONS = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc (.param .b64 s);
.extern .func free (.param .b64 p);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle (.param .b32 s);
.global .align 4 .b8 text[8] = {37, 100, 59};
.global .u32 five = 5;
"""


def kernel(body: str, declarations: str = DECLARATIONS) -> ptxemu.Kernel:
    return ptxemu.loads(
        f"""{declarations}
.visible .entry k (.param .u64 out)
{{
  .reg .pred %p<4>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>;
  ld.param.u64 %d1, [out];
  {body}
  ret;
}}""",
        filename="calls.ptx",
    )["k"]


def call_free(stores: str) -> str:
    return f"{{ .param .b64 p; {stores} call free, (p); }}"


NULL_STORES = {
    "halves": "st.param.b32 [p], 0; st.param.b32 [p+4], 0;",
    "only the lower half": "st.param.b32 [p], 0;",
    "nothing": "",
    "bytes": " ".join(f"st.param.b8 [p+{index}], 0;" for index in range(8)),
    "words": " ".join(f"st.param.b16 [p+{2 * index}], 0;" for index in range(4)),
    "a vector": "mov.u32 %r1, 0; st.param.v2.b32 [p], {%r1, %r1};",
    "floats": "st.param.v2.f32 [p], {0f00000000, 0f00000000};",
    "twice": "st.param.b64 [p], 1; st.param.b32 [p+4], 0; st.param.b32 [p], 0;",
}


@pytest.mark.parametrize("stores", NULL_STORES.values(), ids=NULL_STORES)
def test_null_is_freed(stores: str) -> None:
    kernel(call_free(stores))[1, 32](np.zeros(1, np.uint64))


@pytest.mark.parametrize("lower", ["st.param.b32 [p], 64;", "st.param.b16 [p], 64; st.param.b16 [p+2], 0;"])
def test_pieces_make_the_address(lower: str) -> None:
    stores = f"{lower} st.param.b32 [p+4], 0;"
    with pytest.raises(ptxemu.Fault, match=r"invalid free in kernel `k` at calls.ptx:.*0x40 was not allocated"):
        kernel(call_free(stores))[1, 1](np.zeros(1, np.uint64))


def test_malloc_returns_an_address_in_pieces() -> None:
    pieces = "ld.param.b32 %r1, [r]; ld.param.b16 %h1, [r+4]; ld.param.b8 %h2, [r+6]; ld.param.b8 %h3, [r+7];"
    joined = "cvt.u32.u16 %r2, %h1; shl.b16 %h3, %h3, 8; or.b16 %h2, %h2, %h3; cvt.u32.u16 %r3, %h2; shl.b32 %r3, %r3, 16;"
    call = "{ .param .b64 s, r; st.param.b32 [s], 16; st.param.b32 [s+4], 0; call (r), malloc, (s); "
    check = "mov.b64 %d2, {%r1, %r2}; st.u64 [%d2], 4711; ld.u64 %d3, [%d2]; st.global.u64 [%d1], %d3; call free, (%d2);"
    out = np.zeros(1, np.uint64)
    kernel(f"{call} {pieces} {joined} or.b32 %r2, %r2, %r3; }} {check}")[1, 1](out)
    assert out.tolist() == [4711]


def test_vprintf(capfd: pytest.CaptureFixture[str]) -> None:
    addresses = "mov.u64 %d2, text; cvta.global.u64 %d2, %d2; mov.u64 %d3, five; cvta.global.u64 %d3, %d3;"
    halves = "mov.b64 {%r1, %r2}, %d2; st.param.b32 [f], %r1; st.param.b32 [f+4], %r2;"
    call = f"{{ .param .b64 f, a; .param .b32 r; {halves} st.param.b64 [a], %d3; call (r), vprintf, (f, a);"
    result = "ld.param.b8 %h1, [r+1]; ld.param.b8 %h2, [r]; cvt.u64.u16 %d4, %h1; cvt.u64.u16 %d5, %h2; }"
    out = np.ones(2, np.uint64)
    kernel(f"{addresses} {call} {result} st.global.u64 [%d1], %d4; st.global.u64 [%d1+8], %d5;")[1, 1](out)
    assert capfd.readouterr().out == "5;"
    assert out.tolist() == [0, 1]


def test_an_assertion_that_fails_with_incomplete_parameters() -> None:
    parameters = ".param .b64 a, b, d, e; .param .b32 c; st.param.b32 [a], 0; st.param.b32 [b+4], 0; st.param.b16 [c+2], 0;"
    with pytest.raises(ptxemu.Fault, match="assert"):
        kernel(f"{{ {parameters} call __assertfail, (a, b, c, d, e); }}")[1, 1](np.zeros(1, np.uint64))


def test_a_scope_in_halves() -> None:
    out = np.ones(1, np.uint64)
    scope = ".param .b32 s; .param .b64 r; st.param.b16 [s], 1; st.param.b16 [s+2], 0;"
    call = "call (r), cudaCGGetIntrinsicHandle, (s); ld.param.b32 %r1, [r+4];"
    kernel(f"{{ {scope} {call} }} st.global.u32 [%d1], %r1;")[1, 1](out)
    assert out.tolist() == [0]


@pytest.mark.parametrize(("declaration", "call"), [
    (".extern .func (.param .f64 r) malloc (.param .f64 s);", "call (%g1), malloc, (0d0000000000000010); mov.b64 %d2, %g1;"),
    (".extern .func (.reg .b64 r) malloc (.reg .b64 s);", "call (%d2), malloc, (16);"),
    (".weak .func (.param .u64 r) malloc (.param .s64 s);", "call (%d2), malloc, (16);"),
])  # fmt: skip
def test_types_of_the_same_size(declaration: str, call: str) -> None:
    out = np.zeros(1, np.uint64)
    header = ".version 8.0\n.target sm_80\n.address_size 64\n"
    kernel(f"{call} st.u64 [%d2], 4711; ld.u64 %d3, [%d2]; st.global.u64 [%d1], %d3;", header + declaration)[1, 1](out)
    assert out.tolist() == [4711]


@pytest.mark.parametrize(("declaration", "call"), [
    (".extern .func free (.param .align 8 .b8 p[8]);", "{ .param .align 8 .b8 p[8]; st.param.b64 [p], 0; call free, (p); }"),
    (".extern .func free (.param .b64 p, .param .b64 q);", "call free, (%d1, %d1);"),
    (".extern .func free;", "call free;"),
    (".extern .func (.param .b64 r) free (.param .b64 q);", "call (%d2), free, (%d1);"),
    (".extern .func (.param .b32 r) malloc (.param .b32 s);", "call (%r1), malloc, (8);"),
    (".extern .func malloc (.param .b64 s);", "call malloc, (8);"),
])  # fmt: skip
def test_other_signatures_are_not_supported(declaration: str, call: str) -> None:
    header = ".version 8.0\n.target sm_80\n.address_size 64\n"
    with pytest.raises(ptxemu.UnsupportedError, match=r"calls.ptx:\d+: call of external function '\w+' with these parameters"):
        kernel(call, header + declaration)[1, 1](np.zeros(1, np.uint64))
