# ruff: noqa: E501 (the cases are tables)
"""Sums, functions and names as value operands of every kind of instruction; calls in several lines; samplers and depths.

Not among them are those that ptxas finds in the text of its own functions: the lines that it names are not of the module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.front.oracle.front_cases import Case, line, module

VALUES = ("k", "%r1+4", "%d1+4", "%h1+4", "gbuf+4", "gbuf")
FORMS = (
    "bmsk.clamp.b32 %r1, %r2, %r3;", "szext.clamp.u32 %r1, %r2, %r3;", "dp2a.lo.u32.u32 %r1, %r2, %r3, %r4;", "dp4a.u32.s32 %r1, %r2, %r3, %r4;", "redux.sync.add.u32 %r1, %r2, %r3;",
    "bfi.b32 %r1, %r2, %r3, %r4, %r5;", "bfe.u32 %r1, %r2, %r3, %r4;", "shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5;", "vote.sync.any.pred %p1, %p2, %r1;", "match.any.sync.b32 %r1, %r2, %r3;",
    "fns.b32 %r1, %r2, %r3, %r4;", "selp.b32 %r1, %r2, %r3, %p1;", "set.lt.and.u32.s32 %r1, %r2, %r3, %p1;", "slct.s32.s32 %r1, %r2, %r3, %r4;", "lop3.b32 %r1, %r2, %r3, %r4, 5;", "prmt.b32 %r1, %r2, %r3, %r4;",
    "shf.l.wrap.b32 %r1, %r2, %r3, %r4;", "mbarrier.arrive.b64 %d1, [%d2], %r1;", "mbarrier.init.b64 [%d1], %r1;", "cp.async.ca.shared.global [sbuf], [gbuf], 4, %r1;", "cp.async.bulk.prefetch.L2.global [gbuf], %r1;",
    "vadd2.u32.u32.u32 %r1, %r2, %r3, %r4;", "vset4.u32.u32.lt %r1, %r2, %r3, %r4;",
    "mad.lo.u32 %r1, %r2, %r3, %r4;", "sad.u32 %r1, %r2, %r3, %r4;", "div.u32 %r1, %r2, %r3;", "add.bf16 %h1, %h2, %h3;", "fma.rn.bf16x2 %r1, %r2, %r3, %r4;", "setp.lt.bf16 %p1, %h1, %h2;",
    "add.f16 %h1, %h2, %h3;", "add.f32 %f1, %f2, %f3;", "atom.add.noftz.bf16 %h1, [%d1], %h2;", "atom.global.add.u32 %r1, [%d1], %r2;", "red.global.add.u32 [%d1], %r2;", "elect.sync %r1|%p1, %r2;", "createpolicy.range.L2::evict_last.b64 %d1, [gbuf], %r1, %r2;",
)  # fmt: skip
WORD = re.compile(r"%\w+")
HEAD = ".func (.reg .b32 o) g(.reg .b32 i) { mov.b32 o, i; ret; }\n.func w(.reg .u32 i) { ret; }\n.func v(.param .b32 a, .param .b8 rest[]) { ret; }\n"
CALLS = (
    "call (r), g, (a+1);", "call (r), g, (1.0);", "call (1.0), g, (a);", "call w, (1.0);", "call w, (1);", "call (r),\n\n(\na\n);", "call (r),\n(a);", "call (r), g,\n\na, a\n);", "call w,\na, a, a\n);", "call\nr,\ng,\n(\na\n);",
    "call (r), g, a;", "call g, (a);", "call (r) g (a);", "call (r), g, ();", "call.uni\n(r), g,\n(a, a);", "call (r), (g), (a);", "call;", "call 5;", "call v, (p);", "call v, (p, q);", "call v, ();", "call (r),\ng\n(\na\n);", "call (r)\ng,\n(\na\n);", "call (r),\ng,\n(\na,\na\n);",
)  # fmt: skip
RESULTS = (
    "bmsk.clamp.b32 D, %r2, %r3;", "szext.clamp.u32 D, %r2, %r3;", "dp2a.lo.u32.u32 D, %r2, %r3, %r4;", "dp4a.u32.s32 D, %r2, %r3, %r4;", "redux.sync.add.u32 D, %r2, %r3;", "match.all.sync.b32 D, %r2, %r3;", "match.any.sync.b64 D, %d2, %r3;",
    "cvt.pack.sat.s16.s32 D, %r2, %r3;", "createpolicy.fractional.L2::evict_last.b64 D, 0.5;", "mbarrier.arrive.b64 D, [%d1];", "mbarrier.arrive_drop.shared.b64 D, [%d1];", "mbarrier.pending_count.b64 D, %d1;", "popc.b32 D, %r2;", "bfind.u32 D, %r2;", "vote.sync.ballot.b32 D, %p1, %r2;",
)  # fmt: skip
DEPTHS = ("%f5", "%r5", "%u1", "%s1", "%h1", "%d1", "1", "-1", "1.0", "0f3F800000")
TEXTURES = (
    "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, %d2, {%f5}];", "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, surf, {%f5}];", "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, %r2, {%f5}];",
    "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, %d2, %f5];", "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, gbuf, {%f5}];", "tex.1d.v4.f32.f32 {_, _, _, _}, [%d1, {%f5}];", "tex.1d.v4.f32.f32 {%u1, _, %r2, _}, [%d1, {%f5}];",
    "tex.1d.v4.s32.f32 {%f1, %r2, %r3, %r4}, [%d1, {%f5}];", "tex.1d.v4.s32.f32 {%f1, %u1, %r3, %r4}, [%d1, {%f5}];", "ld.global.v4.u32 {%f1, _, _, %u1}, [%d1];", "ld.global.v2.f32 {%u1, _}, [%d1];", "ld.global.v4.u32 {%f1, _, _, %r1}, [%d1];",
    *(f"tex.1d.v4.f32.f32 {{%f1, %f2, %f3, %f4}}, [%d1, {{%f6}}], {depth};" for depth in DEPTHS), *(f"tld4.r.2d.v4.f32.f32 {{%f1, %f2, %f3, %f4}}, [%d1, {{%f6, %f7}}], {depth};" for depth in DEPTHS),
    *(f"tex.level.1d.v4.f32.f32 {{%f1, %f2, %f3, %f4}}, [%d1, {{%f6}}], {lod};" for lod in DEPTHS),
)  # fmt: skip


def sum_cases() -> Iterator[Case]:
    for form in FORMS:
        places = [
            place for place in WORD.finditer(form) if form[place.start() - 1] != "[" and place.start() != form.find(" ") + 1
        ]
        for place in places:
            for value in VALUES:
                text = form[: place.start()] + value + form[place.end() :]
                yield line("sums and functions", text, text)
    for text in CALLS:
        kernel = f".visible .entry k() {{\n.reg .b32 r, a;\n.param .b32 p; .param .b8 q[4];\n{text}\nret;\n}}"
        yield module("syntax of calls", text, HEAD + kernel)
    for form in RESULTS:
        for result in ("%r1", "%d1", "%f1", "%g1", "%e1"):
            yield line("types of results", form.replace("D", result), form.replace("D", result))
    for text in TEXTURES:
        yield line("textures", text, text)
