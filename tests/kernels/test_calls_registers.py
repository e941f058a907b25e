"""Device functions whose parameters and results are registers: vectors, predicates, and what else has their size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from tests.support.kernel_tools import kernel, run

THREADS = np.arange(32, dtype=np.uint32)
VECTORS = """
.func (.reg .v2 .u32 r) ends (.reg .v4 .u32 a)
{
  .reg .v2 .u32 t; mov.u32 t.x, a.x; mov.u32 t.y, a.w; mov.v2.u32 r, t; ret;
}
.func (.reg .v4 .u32 r) rotated (.reg .v4 .u32 a)
{
  mov.v4.u32 r, {a.y, a.z, a.w, a.x}; ret;
}
.func (.reg .v4 .f32 r) scaled (.reg .v4 .f32 a, .reg .f32 by, .reg .v2 .f32 b)
{
  fma.rn.f32 r.x, a.x, by, b.x; fma.rn.f32 r.y, a.y, by, b.y; mul.f32 r.z, a.z, by; neg.f32 r.w, a.w; ret;
}
.func (.reg .v2 .f64 r) doubles (.reg .v2 .f64 a)
{
  add.f64 r.x, a.x, a.y; sub.f64 r.y, a.x, a.y; ret;
}
.func (.reg .v4 .u16 r) halves (.reg .v4 .u16 a)
{
  mov.b16 r.x, a.w; mov.b16 r.y, a.z; mov.b16 r.z, a.y; mov.b16 r.w, a.x; ret;
}
.func (.reg .v4 .b8 r) bytes (.reg .v4 .b8 a)
{
  .reg .u32 t<4>;
  cvt.u32.u8 t0, a.x; cvt.u32.u8 t1, a.y; cvt.u32.u8 t2, a.z; cvt.u32.u8 t3, a.w;
  cvt.u8.u32 r.x, t3; cvt.u8.u32 r.y, t2; cvt.u8.u32 r.z, t1; cvt.u8.u32 r.w, t0; ret;
}
.func (.reg .u64 r) wide (.reg .u64 a)
{
  mul.lo.u64 r, a, 3; ret;
}
.func (.reg .v2 .u32 r) early (.reg .v2 .u32 a)
{
  .reg .pred p;
  mov.v2.u32 r, a; setp.lt.u32 p, a.x, 16; @p ret; mov.u32 r.x, 99; ret;
}
.func (.reg .v2 .u32 r) sums (.reg .v2 .u32 a)
{
  .reg .pred p; .reg .v2 .u32 t;
  mov.v2.u32 r, {0, 0}; setp.eq.u32 p, a.x, 0; @p ret;
  sub.u32 t.x, a.x, 1; mov.u32 t.y, a.y; call (r), sums, (t);
  add.u32 r.x, r.x, a.x; add.u32 r.y, r.y, a.y; ret;
}
.func (.reg .v4 .u32 r) turned (.reg .v4 .u32 a, .reg .u32 times)
{
  .reg .pred p; .reg .u32 left;
  mov.v4.u32 r, a; setp.eq.u32 p, times, 0; @p ret;
  mov.v4.u32 r, {a.y, a.z, a.w, a.x}; sub.u32 left, times, 1; call (r), turned, (r, left); ret;
}
"""
LOCALS = """
  .reg .v4 .u32 v, w; .reg .v2 .u32 pair, other; .reg .v4 .f32 x, y; .reg .v2 .f32 b; .reg .v2 .f64 dd; .reg .v4 .u16 hh;
  .reg .v4 .b8 bb; .reg .v4 .u32 many<3>; .reg .v4 .u32 out4;
  ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 16; add.u64 %rd2, %rd1, %rd2;
  mov.v4.u32 out4, {77, 77, 77, 77};
  mov.u32 v.x, %r3; add.u32 v.y, %r3, 100; add.u32 v.z, %r3, 200; add.u32 v.w, %r3, 300;
  mov.u32 pair.x, %r3; add.u32 pair.y, %r3, 50; setp.lt.u32 %p1, %r3, 11;
"""
STORE = "\n st.global.v4.u32 [%rd2], out4; ret;"
V = np.stack([THREADS + 100 * i for i in range(4)], axis=1)
PAIR = np.stack([THREADS, THREADS + 50], axis=1)
LEFT = np.full((32, 4), 77, np.uint32)
TURN = "mov.u64 %rd3, rotated; P: .callprototype (.reg .v4 .u32 _) _ (.reg .v4 .u32 _);"


def launch(body: str, declarations: str) -> NDArray[np.uint32]:
    """``out4`` of every thread."""
    out = np.zeros((32, 4), np.uint32)
    run(kernel(LOCALS + body + STORE, declarations=declarations), 1, 32, out)
    return out


def columns(*values: NDArray[np.generic] | int) -> NDArray[np.uint32]:
    """The given words of each thread, and 77 in the rest."""
    found = LEFT.copy()
    for index, value in enumerate(values):
        found[:, index] = value
    return found


def bits(values: NDArray[np.generic]) -> NDArray[np.uint32]:
    return np.ascontiguousarray(values).view(np.uint32)


def scaled() -> NDArray[np.uint32]:
    f = V.astype(np.float32)
    return bits(np.stack([f[:, 0] * 2 + f[:, 2], f[:, 1] * 2 + f[:, 3], f[:, 2] * 2, -f[:, 3]], axis=1))


def doubles() -> NDArray[np.uint32]:
    a, b = V[:, 0].astype(np.float64), V[:, 1].astype(np.float64)
    return bits(np.stack([a + b, a - b], axis=1))


def tripled() -> NDArray[np.uint32]:
    return bits((PAIR[:, 0].astype(np.uint64) | PAIR[:, 1].astype(np.uint64) << np.uint64(32)) * np.uint64(3)).reshape(32, 2)


TO_FLOATS = """
  cvt.rn.f32.u32 x.x, v.x; cvt.rn.f32.u32 x.y, v.y; cvt.rn.f32.u32 x.z, v.z; cvt.rn.f32.u32 x.w, v.w;
  mov.v2.f32 b, {x.z, x.w};
"""
CALLS: dict[str, tuple[str, Callable[[], NDArray[np.uint32]]]] = {
    "a vector becomes a shorter one": ("call (pair), ends, (v); mov.u32 out4.x, pair.x; mov.u32 out4.y, pair.y;",
                                       lambda: columns(V[:, 0], V[:, 3])),
    "argument and result are one register": ("call (v), rotated, (v); mov.v4.u32 out4, v;", lambda: np.roll(V, -1, 1)),
    "registers of a range": ("mov.v4.u32 many1, v; call (many2), rotated, (many1); mov.v4.u32 out4, many2;",
                             lambda: np.roll(V, -1, 1)),
    "floats among scalars": (TO_FLOATS + "call (y), scaled, (x, 0f40000000, b); mov.v4.b32 out4, y;", scaled),
    "doubles": ("cvt.rn.f64.u32 dd.x, v.x; cvt.rn.f64.u32 dd.y, v.y; call (dd), doubles, (dd); "
                "mov.b64 {out4.x, out4.y}, dd.x; mov.b64 {out4.z, out4.w}, dd.y;", doubles),
    "halves": ("cvt.u16.u32 hh.x, v.x; cvt.u16.u32 hh.y, v.y; cvt.u16.u32 hh.z, v.z; cvt.u16.u32 hh.w, v.w; "
               "call (hh), halves, (hh); cvt.u32.u16 out4.x, hh.x; cvt.u32.u16 out4.y, hh.y; "
               "cvt.u32.u16 out4.z, hh.z; cvt.u32.u16 out4.w, hh.w;", lambda: V[:, ::-1]),
    "bytes": ("cvt.u8.u32 bb.x, v.x; cvt.u8.u32 bb.y, v.y; cvt.u8.u32 bb.z, v.z; cvt.u8.u32 bb.w, v.w; "
              "call (bb), bytes, (bb); cvt.u32.u8 out4.x, bb.x; cvt.u32.u8 out4.y, bb.y; "
              "cvt.u32.u8 out4.z, bb.z; cvt.u32.u8 out4.w, bb.w;", lambda: V[:, ::-1] & 255),
    "a result dropped": ("call (_), ends, (v); mov.u32 out4.x, v.w;", lambda: columns(V[:, 3])),
    "a vector as a scalar of its size": ("call (pair), wide, (pair); mov.u32 out4.x, pair.x; mov.u32 out4.y, pair.y;",
                                         lambda: columns(*tripled().T)),
    "a scalar as a vector of its size": ("mov.b64 %rd5, pair; call (%rd6), early, (%rd5); mov.b64 {out4.x, out4.y}, %rd6;",
                                         lambda: columns(np.where(THREADS < 16, THREADS, 99), PAIR[:, 1])),
    "one of 128 bits": (".reg .b128 whole; mov.b64 %rd5, {v.x, v.y}; mov.b64 %rd6, {v.z, v.w}; mov.b128 whole, {%rd5, %rd6}; "
                        "call (w), rotated, (whole); mov.v4.u32 out4, w;", lambda: np.roll(V, -1, 1)),
    "a guarded return": ("call (pair), early, (pair); mov.u32 out4.x, pair.x; mov.u32 out4.y, pair.y;",
                         lambda: columns(np.where(THREADS < 16, THREADS, 99), PAIR[:, 1])),
    "a guarded call": ("@%p1 call (out4), rotated, (v);", lambda: np.where(THREADS[:, None] < 11, np.roll(V, -1, 1), LEFT)),
    "recursion": ("call (pair), sums, (pair); mov.u32 out4.x, pair.x; mov.u32 out4.y, pair.y;",
                  lambda: columns(THREADS * (THREADS + 1) // 2, THREADS * (THREADS + 50))),
    "recursion with 16 bytes": ("call (out4), turned, (v, %r3);",
                                lambda: np.stack([np.roll(row, -i) for i, row in enumerate(V)])),
    "guarded recursion": ("@!%p1 call (out4), turned, (v, 2);",
                          lambda: np.where(THREADS[:, None] < 11, LEFT, np.roll(V, -2, 1))),
    "recursion whose result is dropped": ("call (_), turned, (v, 1); mov.u32 out4.x, v.y;", lambda: columns(V[:, 1])),
    "an indirect call": (f"{TURN} call (out4), %rd3, (v), P;", lambda: np.roll(V, -1, 1)),
    "an indirect call of a list": ("mov.u64 %rd3, rotated; T: .calltargets rotated; call (out4), %rd3, (v), T;",
                                   lambda: np.roll(V, -1, 1)),
    "a guarded indirect call": (f"{TURN} @%p1 call (out4), %rd3, (v), P;",
                                lambda: np.where(THREADS[:, None] < 11, np.roll(V, -1, 1), LEFT)),
    "an indirect call of one with scalars": ("mov.u64 %rd3, wide; P: .callprototype (.reg .v2 .u32 _) _ (.reg .v2 .u32 _); "
                                             "call (pair), %rd3, (pair), P; mov.u32 out4.x, pair.x; mov.u32 out4.y, pair.y;",
                                             lambda: columns(*tripled().T)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_vectors(name: str) -> None:
    body, expected = CALLS[name]
    np.testing.assert_array_equal(launch(body, VECTORS), expected())


PREDICATES = """
.func (.reg .u32 r, .reg .pred odd) next (.reg .u32 a)
{
  .reg .u32 t;
  add.u32 r, a, 1; and.b32 t, r, 1; setp.ne.u32 odd, t, 0; ret;
}
.func (.reg .pred r) inverse (.reg .pred a)
{
  not.pred r, a; ret;
}
.func (.reg .u32 r) chosen (.reg .pred first, .reg .u32 a, .reg .u32 b)
{
  selp.u32 r, a, b, first; ret;
}
.func (.reg .pred r) parity (.reg .pred a, .reg .u32 times)
{
  .reg .pred p; .reg .u32 left;
  mov.pred r, a; setp.eq.u32 p, times, 0; @p ret;
  not.pred r, a; sub.u32 left, times, 1; call (r), parity, (r, left); ret;
}
"""
ODD, FEW = THREADS & 1, THREADS < 11
PREDICATE_CALLS: dict[str, tuple[str, NDArray[np.generic]]] = {
    "one of two results": ("call (%r5, %p2), next, (%r3); selp.u32 %r6, 1, 0, %p2; mov.u32 out4.x, %r5; mov.u32 out4.y, %r6;",
                           columns(THREADS + 1, 1 - ODD)),
    "an argument": ("call (%r5), chosen, (%p1, 5, %r3); mov.u32 out4.x, %r5;", columns(np.where(FEW, 5, THREADS))),
    "both": ("call (%p2), inverse, (%p1); selp.u32 out4.x, 1, 0, %p2;", columns(~FEW)),
    "dropped": ("call (%r5, _), next, (%r3); mov.u32 out4.x, %r5;", columns(THREADS + 1)),
    "the guard of the call": ("@%p1 call (%p1), inverse, (%p1); selp.u32 out4.x, 1, 0, %p1;", columns(0)),
    "the guard of a call with several results": ("mov.u32 %r5, 9; @%p1 call (%r5, %p1), next, (%r3); "
                                                 "selp.u32 out4.x, 1, 0, %p1; mov.u32 out4.y, %r5;",
                                                 columns(FEW & (ODD == 0), np.where(FEW, THREADS + 1, 9))),
    "recursion": ("call (%p2), parity, (%p1, %r3); selp.u32 out4.x, 1, 0, %p2;", columns(FEW ^ (ODD == 1))),
    "an indirect call": ("mov.u64 %rd3, inverse; P: .callprototype (.reg .pred _) _ (.reg .pred _); "
                         "call (%p2), %rd3, (%p1), P; selp.u32 out4.x, 1, 0, %p2;", columns(~FEW)),
}  # fmt: skip


@pytest.mark.parametrize("name", PREDICATE_CALLS)
def test_predicates(name: str) -> None:
    body, expected = PREDICATE_CALLS[name]
    np.testing.assert_array_equal(launch(body, PREDICATES), expected)


ERRORS = {  # "=>" stands before what is wrong
    "a vector of another size": ("call (out4), rotated, (=>pair);", r"does not fit the parameter, which is \.v4 \.u32"),
    "a vector for a scalar": ("call (%rd5), wide, (=>v);", r"does not fit the parameter, which is \.u64"),
    "a scalar for a vector": ("call (out4), rotated, (=>%r3);", r"does not fit the parameter, which is \.v4 \.u32"),
    "a result of another size": ("call (=>pair), rotated, (v);", r"does not fit the parameter, which is \.v4 \.u32"),
    "elements in braces": ("call (pair), ends, (=>{v.x, v.y, v.z, v.w});", "expected an operand before '{'"),
    "a result in braces": ("call (=>{%r1, %r2}), ends, (v);", "expected an operand before '{'"),
    "a literal": ("call (pair), ends, (=>1);", r"does not fit the parameter, which is \.v4 \.u32"),
    "special registers": ("call (out4), rotated, (=>%tid);", r"does not fit the parameter, which is \.v4 \.u32"),
    "data for a predicate": ("call (%p2), inverse, (=>%r3);", r"does not fit the parameter, which is \.pred"),
    "a predicate for data": ("call (=>%p2, %p3), next, (%r3);", r"does not fit the parameter, which is \.u32"),
    "a byte of memory for a predicate": (".param .b8 m; call (%p2), inverse, (=>m);", r"the parameter is \.pred"),
    "a literal for a predicate": ("call (%p2), inverse, (=>1);", r"does not fit the parameter, which is \.pred"),
    "a parameter declared twice": ("}.func twice (.reg .v2 .u32 a, .reg .v2 .f32 =>a) {", "parameter 'a' is declared twice"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_where_they_stand(name: str) -> None:
    body, message = ERRORS[name]
    text = kernel(f"{LOCALS}{body}{STORE}", declarations=VECTORS + PREDICATES)
    before, _, after = text.partition("=>")
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    with pytest.raises(ptxemu.PtxError, match=message) as caught:
        ptxemu.loads(before + after, filename="test.ptx")
    assert str(caught.value).startswith(f"test.ptx:{line}:{column}: error: ")


def test_elements_are_no_arguments_for_the_assembler() -> None:
    """The syntax of ptxas has names only; ptxemu takes elements unless it is told to be as strict."""
    text = kernel(LOCALS + "call (out4.x), chosen, (%p1, v.x, v.y);" + STORE, declarations=PREDICATES)
    assert not [record for record in ptxemu.lint(text) if record.severity == "error"]
    errors = [record for record in ptxemu.lint(text, strict=True) if record.severity == "error"]
    assert len(errors) == 1 and "cannot be an element of a vector" in errors[0].message
