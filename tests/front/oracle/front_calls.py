# ruff: noqa: E501 (the cases are tables)
"""Calls: arity, types, parameter spaces, prototypes, indirect calls."""

from __future__ import annotations

from collections.abc import Iterator

from tests.front.oracle.front_cases import Case, entry

FUNCTIONS = """\
.func f0() { ret; }
.func f1(.param .u32 a) { ret; }
.func (.param .u32 r) g1(.param .u32 a) { .reg .u32 %x; mov.u32 %x, 1; st.param.u32 [r], %x; ret; }
.func (.reg .u32 r) h1(.reg .u32 a) { mov.u32 r, a; ret; }
.func f2(.param .u32 a, .param .f32 b) { ret; }
.func s1(.param .align 8 .b8 a[16]) { ret; }
.func (.param .align 4 .b8 r[12]) s2() { ret; }
.func h2(.reg .f32 a, .reg .u64 b) { ret; }
.func p8(.param .u8 a) { ret; }
.func p64(.param .b64 a) { ret; }
.extern .func (.param .b32 r) ext(.param .b64 a, .param .b64 b);
.global .u32 gv;"""
SETUP = """\
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .u32 %u<4>; .reg .s32 %s<4>;
.param .u32 pu; .param .b32 pb; .param .f32 pf; .param .u64 pd; .param .u32 pr; .param .align 8 .b8 pa[16]; .param .align 4 .b8 pc[12]; .param .u8 p1; .param .b8 pz[16];"""
DIRECT = """
f0; | f0, (); | (), f0; | (), f0, (); | f0, (%r1); | f0(); | f0 () | f0, 1; | f0, (1); | (%r1), f0; | f0, (pu);
f1; | f1, (pu); | f1, (pb); | f1, (pf); | f1, (pd); | f1, (%r1); | f1, (%u1); | f1, (%s1); | f1, (%f1); | f1, (%d1); | f1, (%h1); | f1, (%p1); | f1, (5); | f1, (-5); | f1, (1.5); | f1, (0f3F800000); | f1, (pa); | f1, (p1);
f1, (pu, pu); | f1, (); | f1, pu; | f1, [pu]; | f1, ([pu]); | f1, {pu}; | f1, ({pu}); | f1, (gv); | f1, (nosuch); | f1, (%nosuch); | f1, (_); | f1, (%tid.x); | (pr), f1, (pu); | (%r1), f1, (pu); | f1, (pu+4); | f1, (pu[0]);
(pr), g1, (pu); | g1, (pu); | (%r1), g1, (pu); | (%r1), g1, (%r2); | (%f1), g1, (%r2); | (%d1), g1, (%r2); | (pf), g1, (pu); | (pd), g1, (pu); | (_), g1, (pu); | (5), g1, (pu); | (pr, pr), g1, (pu); | (), g1, (pu); | pr, g1, (pu); | (pr) g1, (pu); | (pr), g1 (pu); | (pr), g1, pu;
(%r1), h1, (%r2); | (%r1), h1, (5); | (%r1), h1, (pu); | (pr), h1, (%r2); | (%f1), h1, (%r2); | (%r1), h1, (%f2); | h1, (%r2); | (_), h1, (%r2); | (%s1), h1, (%u2); | (%r1), h1, (%p1); | (%p1), h1, (%r1); | (%r1), h1, (1.0);
f2, (pu, pf); | f2, (pf, pu); | f2, (%r1, %f1); | f2, (%f1, %r1); | f2, (pu); | f2, (pu, pf, pf); | f2, (1, 1.0); | f2, (1, 1); | f2, (pu pf); | f2, (pu,); | f2, (pu, %f1);
s1, (pa); | s1, (pc); | s1, (pz); | s1, (%d1); | s1, (pu); | s1, (pd); | s1, (5); | (pc), s2; | (pa), s2; | (pr), s2; | (%r1), s2; | (pc), s2, ();
h2, (%f1, %d1); | h2, (%d1, %f1); | h2, (pf, pd); | h2, (1.0, 7); | h2, (0f3F800000, %d1); | h2, (%g1, %d1); | p8, (p1); | p8, (pu); | p8, (%h1); | p8, (%r1); | p8, (3); | p8, (300); | p64, (pd); | p64, (%d1); | p64, (%g1); | p64, (1.5); | p64, (%r1); | p64, (pu);
nosuch; | nosuch, (pu); | gv; | k; | k, (pu); | %r1; | %d1; | 5; | "f0"; | (pr), ext, (pd, pd); | (pr), ext, (pd); | ext, (pd, pd); | (pb), ext, (%d1, %d2); | (%r1), ext, (%d1, %d2); | f0, f0; | [f0]; | !f0; | f0+4; | f0.x; | later; | pu; | f0, (), nosuch;
"""  # fmt: skip
PROTOTYPES = {
    "PT": ".callprototype _ (.param .u32 _);", "PR": ".callprototype (.param .u32 _) _ (.param .u32 _);", "P0": ".callprototype _ ();",
    "PG": ".callprototype (.reg .u32 _) _ (.reg .u32 _);", "PA": ".callprototype _ (.param .align 8 .b8 _[16]);", "PN": ".callprototype _ () .noreturn;",
}  # fmt: skip
INDIRECT = """
%d1, (pu), PT; | %d1, (%r1), PT; | %d1, (pf), PT; | %d1, (pu, pu), PT; | %d1, PT; | %d1, (), PT; | %d1, (pu); | %d1, (pu), nosuch; | %r1, (pu), PT; | %f1, (pu), PT; | %g1, (pu), PT; | f1, (pu), PT; | nosuch, (pu), PT; | %d1, (pu), LL; | %d1, (pu), f1; | %d1, (pu), %d2;
(pr), %d1, (pu), PR; | %d1, (pu), PR; | (%r1), %d1, (%r2), PR; | (pr), %d1, (pu), PT; | %d1, P0; | %d1, (), P0; | (%r1), %d1, (%r2), PG; | (%f1), %d1, (%r2), PG; | %d1, (pa), PA; | %d1, (pc), PA; | %d1, PN; | %d1, (), PN; | %d1, (pu), TL; | %d1, (pu), TB; | %d1, (), T0; | (pr), %d1, (pu), TL;
"""  # fmt: skip
TARGETS = "TL: .calltargets f1;\nT0: .calltargets f0;\nTB: .branchtargets LL;"


def call_cases() -> Iterator[Case]:
    later = "\n.func later() { ret; }"
    for text in _items(DIRECT):
        yield _after(entry("calls", f"call {text}", f"{SETUP}\ncall {text}", before=FUNCTIONS), later)
        yield _after(entry("calls", f"call.uni {text}", f"{SETUP}\ncall.uni {text}", before=FUNCTIONS), later)
    labels = "\n".join(f"{name}: {text}" for name, text in PROTOTYPES.items())
    for text in _items(INDIRECT):
        yield entry("indirect calls", f"call {text}", f"{SETUP}\n{labels}\n{TARGETS}\nLL:\ncall {text}", before=FUNCTIONS)
    for text in (
        "call.foo f0;",
        "call.uni.uni f0;",
        "@%p1 call f0;",
        "@%p1 call (pr), g1, (pu);",
        "@%r1 call f0;",
        "call.rn f0;",
        "call",
        "call;",
        "call f0",
        "call.u32 f0;",
    ):
        yield entry("calls", text, f"{SETUP}\n{text}", before=FUNCTIONS)
    yield from prototypes()
    yield from param_space()


def _items(table: str) -> list[str]:
    return [text.strip() for row in table.strip().splitlines() for text in row.split(" | ")]


def _after(case: Case, text: str) -> Case:
    return Case(case.rule, case.name, case.text + text.lstrip("\n") + "\n")


def prototypes() -> Iterator[Case]:
    for text in (*PROTOTYPES.values(), ".callprototype _;", ".callprototype ();", ".callprototype () _ ();", ".callprototype _ (.param .u32 a);", ".callprototype x (.param .u32 _);", ".callprototype (.param .u32 _, .param .u32 _) _ ();", ".callprototype _ (.u32 _);", ".callprototype _ (.param .u32);", ".callprototype _ (.param .foo _);",
                 ".callprototype _ (.param .u32 _)", ".callprototype _ (.global .u32 _);", ".callprototype _ (.param .align 3 .b8 _[4]);", ".callprototype _ (.param .b8 _[]);", ".callprototype;", ".callprototype _ (.param .u32 _) .foo;", ".callprototype _ (.reg .pred _);", ".callprototype _ (.param .pred _);", ".calltargets f0;", ".calltargets f0, f1;", ".calltargets nosuch;", ".calltargets;",
                 ".calltargets gv;", ".calltargets k;", ".calltargets f0, f0;", ".calltargets ext;", ".foo f0;", ".callprototype _ (.param .surfref _);", ".callprototype _ (.reg .v2 .u32 _);", ".callprototype _ (.param .u32 _) .noreturn .noreturn;"):  # fmt: skip
        yield entry("prototypes", text, f"{SETUP}\nPX: {text}", before=FUNCTIONS)
    yield entry("prototypes", "twice", f"{SETUP}\nPX: {PROTOTYPES['PT']}\nPX: {PROTOTYPES['PT']}", before=FUNCTIONS)
    yield entry("prototypes", "after the call", f"{SETUP}\ncall %d1, (pu), PX;\nPX: {PROTOTYPES['PT']}", before=FUNCTIONS)
    yield entry(
        "prototypes", "in an outer scope", f"{SETUP}\nPX: {PROTOTYPES['PT']}\n{{\ncall %d1, (pu), PX;\n}}", before=FUNCTIONS
    )
    yield entry("prototypes", "without label", f"{SETUP}\n{PROTOTYPES['PT']}", before=FUNCTIONS)


def param_space() -> Iterator[Case]:
    for text in ("st.param.u32 [pu], %r1;", "st.param.b32 [pu], %r1;", "st.param.f32 [pu], %f1;", "st.param.u64 [pu], %d1;", "st.param.u32 [pu+0], 1;", "st.param.u32 [pu+4], %r1;", "st.param.v2.u32 [pa], {%r1, %r2};", "st.param.v4.u32 [pa], {%r1, %r2, %r3, %r4};", "st.param.u32 [pa+12], %r1;", "st.param.u32 [pa+16], %r1;", "st.param.u32 [pa-4], %r1;",
                 "st.param.u32 [out], %r1;", "st.param.u32 [n], %r1;", "ld.param.u32 %r1, [n];", "ld.param.f32 %f1, [n];", "ld.param.u64 %d1, [n];", "ld.param.u64 %d1, [out];", "ld.param.u32 %r1, [out+4];", "ld.param.u32 %r1, [out+8];", "ld.param.u32 %r1, [n+4];", "ld.param.u32 %r1, [nosuch];", "ld.param.u32 %r1, [gv];", "ld.param.u32 %r1, [%r1];", "ld.param.u32 %r1, [%d1];", "ld.param.u32 %r1, [16];",
                 "ld.param.u32 %r1, [pu];", "mov.u64 %d1, out;", "mov.u32 %r1, out;", "mov.b64 %d1, pu;", "ld.global.u32 %r1, [out];", "ld.u32 %r1, [out];", "st.u32 [out], %r1;", "st.global.u32 [pu], %r1;", "ld.param.u16 %h1, [n];", "ld.param.u8 %h1, [n+1];", "ld.param.s8 %r1, [n];", "ld.param.v2.u32 {%r1, %r2}, [out];", "ld.param::entry.u32 %r1, [n];", "ld.param::func.u32 %r1, [n];", "st.param::func.u32 [pu], %r1;",
                 "cvta.param.u64 %d1, out;", "cvta.to.param.u64 %d1, %d2;", "ld.volatile.param.u32 %r1, [n];", "atom.param.add.u32 %r1, [n], 1;", "ld.param.u32 %r1, [n-4];", "st.param.u8 [pu], %r1;", "st.param.b8 [p1], %h1;", "ld.param.b8 %h1, [p1];"):  # fmt: skip
        yield entry("parameters", text, f"{SETUP}\n{text}", before=FUNCTIONS)
    yield entry("parameters", "declared in a body twice", ".param .u32 x;\n.param .u32 x;")
    yield entry(
        "parameters",
        "declared in an inner scope",
        "{\n.param .u32 x;\n.reg .u32 %r1;\nst.param.u32 [x], 1;\ncall f1, (x);\n}",
        before=FUNCTIONS,
    )
