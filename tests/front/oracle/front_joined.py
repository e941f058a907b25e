# ruff: noqa: E501 (the cases are tables)
"""Registers side by side, address operands of every memory instruction, and what a lost brace, word or semicolon leaves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.front.oracle.front_cases import Case, entry, line, module

KERNEL = ".visible .entry k() { ret; }"
PAIRED = (  # what takes a pair of registers of 32 bits
    "ld.global.v2.{type} {pair}, [%d1];", "st.global.v2.{type} [%d1], {pair};", "tex.2d.v4.s32.{type} {{%r1, %r2, %r3, %r4}}, [%d1, {pair}];",
    "tex.a1d.v4.s32.{type} {{%r1, %r2, %r3, %r4}}, [%d1, {pair}];", "tex.2d.v4.s32.f32 {{%r1, %r2, %r3, %r4}}, [%d1, {{%f1, %f2}}], {pair};",
    "tex.grad.2d.v4.s32.f32 {{%r1, %r2, %r3, %r4}}, [%d1, {{%f1, %f2}}], {pair}, {{%f1, %f2}};", "suld.b.1d.v2.b32.trap {pair}, [surf, {{%r1}}];",
    "sust.b.1d.v2.b32.trap [surf, {{%r1}}], {pair};", "sust.b.2d.b32.trap [surf, {pair}], %r1;", "atom.global.add.v2.f32 {pair}, [%d1], {{%f1, %f2}};", "red.global.add.v2.f32 [%d1], {pair};",
)  # fmt: skip
REGISTERS = ("%r1", "%u1", "%s1", "%f1")
ADDRESSES = ("%r1", "%d1", "%h1", "%u1", "%f1", "gbuf", "sbuf", "cbuf", "lbuf", "surf", "16", "%d1+4", "gbuf+8", "k")
ACCESSES = (
    "ld.global.u32 %r1, [A];", "ld.u32 %r1, [A];", "ld.shared.u32 %r1, [A];", "ld.const.u32 %r1, [A];", "ld.local.u32 %r1, [A];", "st.global.u32 [A], %r1;",
    "atom.add.u32 %r1, [A], %r2;", "atom.global.add.u32 %r1, [A], %r2;", "red.add.u32 [A], %r2;", "red.global.add.u32 [A], %r2;", "ldu.global.u32 %r1, [A];", "ld.global.nc.u32 %r1, [A];",
    "prefetch.global.L1 [A];", "prefetchu.L1 [A];", "discard.global.L2 [A], 128;", "applypriority.global.L2::evict_normal [A], 128;", "cp.async.ca.shared.global [sbuf], [A], 4;",
    "cp.async.ca.shared.global [A], [gbuf], 4;", "mbarrier.init.shared.b64 [A], 1;", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [A];", "cp.async.bulk.prefetch.L2.global [A], %r1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [sbuf], [A], %r1, [sbuf];", "multimem.st.weak.global.u32 [A], %r1;",
)  # fmt: skip
LARGE = ("4294967295", "4294967296", "4294967297")
TOPS = (
    ".u32 x;", ".u32\n  x;", ".u32;", ".visible .f32 x;", ".extern .u32;", ".align 4 .u32 x;", ".common .global .surfref x;", ".file 1 \"a.cu\"\n.file 1 \"b.cu\"",
    ".func f() {\n{ ret;\n}\n.func g()\n{ ret; }", ".func f() {\n ret;\n.visible .func g(.param .u32 a)\n{ ret; }", ".func f() {\n ret;\n.func g();\n.func h() {\n ret; }", ".func f() {\n ret;\n.func g();\n.entry h()\n{ ret; }",
    ".func (.param .b8 a[]) f() { ret; }", ".func (.u32 a\n) f(\n.u64 b\n) { ret; }", ".extern .func f(\n.u32 a,\n.param .u32 b\n);", ".entry f(.u64\n a\n) { ret; }", ".entry f(\n.param .u32 a,\n.u64 b\n) { ret; }",
    *(f".entry f() {directive} {number} {{ ret; }}" for directive in (".maxntid", ".maxnreg", ".minnctapersm", ".reqnctapercluster") for number in LARGE[1:]),
    *(f".global .align {number} .b8 v[4];" for number in LARGE),
)  # fmt: skip
BODIES = (
    ".u32 x;", ".u32\n x;", ".pred;", ".u32 x, y;\nmov.u32 x, y;", "bra L;\nadd.u32 %r1, %r1, 1\nL:", "bra L;\nadd.u32 %r1, %r1, 1|\nL:", "bra L;\n5 L:", "bra L;\n:L", "bra L;\nL.x:", ".file 1 \"a.cu\"",
    "add.u32 %r1, %r2, %r3-\nmov.u32 %r1, 1;", "add.u32 %r1, %r2, %r3|\nmov.u32 %r1, 1;", "add.u32 %r1, %r2, %r3-\n%r1;", "add.u32 %r1, %r2, 3-\nmov.u32 %r1, 1;", "add.u32 %r1, %r2, %r3+\nmov.u32 %r1, 1;",
    "bra L;\n:\nadd.u32 %r1, %r1, 1;", "bra L;\n!:\nadd.u32 %r1, %r1, 1;", "bra L;\n.u32:\nadd.u32 %r1, %r1, 1;", "bra L;\nadd.u32 %r1, %r1}, 1;\nL:", "p.q: .callprototype _ ();", "p.q: .branchtargets L;\nL:", *(f".reg .b32 x<{number}>;" for number in LARGE[1:]), *(f".shared .align {number} .b8 v[4];" for number in LARGE),
)  # fmt: skip


def joined_cases() -> Iterator[Case]:
    for form, kind, pair in product(PAIRED, ("s32", "f32"), product(REGISTERS, repeat=2)):
        if "{type}" in form or kind == "f32":
            text = form.format(type=kind, pair="{" + ", ".join(pair) + "}")
            yield line("vectors of several types", text, text)
    for access, address in product(ACCESSES, ADDRESSES):
        text = access.replace("A", address)
        yield line("addresses", text, text)
    for text in TOPS:
        yield module("what remains", text, f"{text}\n{KERNEL}")
    for text in BODIES:
        yield entry("what remains", text, f".reg .b32 %r<4>;\n{text}")
    yield Case(
        "what remains", "file before address_size", f'.version 9.0\n.target sm_90\n.file 1 "a.cu"\n.address_size 64\n{KERNEL}\n'
    )
