# ruff: noqa: E501 (the grammar is a table)
"""Modules drawn at random from a grammar of right and wrong parts, a few of them together in each."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from tests.front.oracle.front_cases import Case, entry, header

PART = re.compile(r"<(\w+)>")

# Alternatives are separated by "¦"; one that is written several times is drawn more often.
GRAMMAR = {
    "linkage": " ¦  ¦  ¦ .visible¦ .extern¦ .weak¦ .common",
    "space": "global¦global¦const¦shared¦local¦param¦reg",
    "align": "¦¦¦ .align 4¦ .align 16¦ .align 1¦ .align 3¦ .align 0¦ .align 8",
    "vector": "¦¦¦¦ .v2¦ .v4¦ .v3¦ .v8",
    "type": "u8¦u16¦u32¦u64¦s8¦s16¦s32¦s64¦b8¦b16¦b32¦b64¦b128¦f16¦f16x2¦bf16¦f32¦f64¦pred¦texref¦surfref¦samplerref",
    "extent": "¦¦¦[4]¦[]¦[2][3]¦[][4]¦[4][]¦[0]¦[-1]¦<lt>3>¦[1][1][1]",
    "lt": "<",
    "value": "¦¦¦¦ = 1¦ = 1.5¦ = {1, 2}¦ = {1.0, 2.0}¦ = {{1,2},{3}}¦ = g¦ = {g, 0}¦ = -1¦ = 0x100¦ = {}¦ = 0f3F800000¦ = {1,2,3,4,5}¦ = generic(g)¦ = f¦ = {f, g+4}¦ = {0xff(g), 0xff00(g)}¦ = {g}",
    "declaration": "<linkage> .<space><align><vector> .<type> v<extent><value>;",
    "constant": "0¦1¦-1¦255¦256¦-129¦65536¦1.0¦-1.5¦0f3F800000¦0d3FF0000000000000¦0x7f¦g¦g+4¦h¦h+-4¦f¦later¦generic(g)¦generic(h)+8¦generic(s)¦1+2¦3*4-1¦~0¦(1)¦1<lt><lt>3¦1.0+2.0¦1U¦017¦0b11¦1e10¦5/2¦5%3¦1==1¦1?2:3¦-g¦g*2¦g+h¦nosuch¦k¦%r1¦0xff(g)¦0xff(5)¦¦1 2¦WARP_SZ¦9223372036854775808¦18446744073709551616¦1e39¦1e-50¦0f¦1.¦c¦generic(c)¦!0¦(.u64)1",
    "items": "<constant>¦0, <constant>¦1, 2, <constant>¦1¦1, 2, 3, 4¦",
    "data": "u8¦s16¦u32¦s32¦u64¦b32¦b64¦f32¦f64¦b8¦f16¦b128",
    "initialiser": ".<data> v = <constant>;¦.<data> v = <constant>;¦.<data> v[3] = {<items>};¦.<data> v[] = {<items>};¦.<data> v[2][2] = {{<items>}, {<items>}};¦.<data> v = {<items>};¦.v2 .<data> v = {<items>};",
    "formal": ".param<align> .<type> <name><extent1>¦.param<align> .<type> <name><extent1>¦.param .<type><pointer> <name>¦.reg .<type> <name>¦.global .<type> <name>¦.shared .<type> <name>¦.param .u64 <name>",
    "extent1": "¦¦¦¦[4]¦[]¦[0]¦[2][2]",
    "pointer": " .ptr¦ .ptr .global¦ .ptr .global .align 8¦ .ptr .reg¦ .ptr .align 3¦ .ptr .shared .align 16",
    "name": "a¦b¦c¦d¦e¦_¦out",
    "formals": "¦<formal>¦<formal>¦<formal>, <formal>¦<formal>, <formal>, <formal>¦<formal> <formal>",
    "directive": ".maxntid 128¦.maxntid 16,16¦.maxntid 2,2,2¦.maxntid 0¦.reqntid 64¦.reqntid 1025¦.minnctapersm 2¦.maxnreg 32¦.maxnreg 0¦.noreturn¦.pragma \"nounroll\";¦.explicitcluster¦.reqnctapercluster 2,1,1¦.maxclusterrank 8¦.maxnctapersm 4¦.foo¦.maxntid¦.minnctapersm 1,2¦.maxntid 1.5¦.maxnreg %r1¦.align 8¦.abi_preserve 4",
    "directives": "¦¦¦<directive>¦<directive>¦<directive> <directive>",
    "results": "¦¦¦(<formals>) ",
    "function": "<linkage> .entry <results><called>(<formals>) <directives>\n<end>¦<linkage> .func <results><called>(<formals>) <directives>\n<end>¦<linkage> .entry <called>(<formals>) <directives>\n{ ret; }",
    "called": "q¦q¦q¦q¦$q¦_q¦%q¦1q¦q.x¦_¦ret¦k",
    "end": "{ ret; }¦{ ret; }¦{ ret; }¦{ }¦;¦{ ret }¦{ ret; };¦{ trap; }",
    "actual": "p32¦p32¦p64¦pf¦p16¦p8¦pa¦pc¦%r1¦%r1¦%d1¦%f1¦%g1¦%h1¦%p1¦1¦-1¦1.0¦0f3F800000¦gv¦nosuch¦_¦[p32]¦p32+0¦p32+4¦{%r1}¦%tid.x¦4294967296",
    "call": "call<uni> f0;¦call<uni> f1, (<actual>);¦call<uni> f1, (p32);¦call<uni> (<actual>), f2, (<actual>, <actual>);¦call<uni> (p32), f2, (p64, <actual>);¦call<uni> (%r1), f3, (%r2, <actual>);¦call<uni> (pa), f4, (<actual>);¦call<uni> (<actual>), ext, (p64);¦call<uni> <actual>;¦call<uni> f1, (<actual>, <actual>);¦call<uni> %d1, (<actual>), PT;¦call<uni> (<actual>), %d1, (p32), TG;¦call<uni> %d1, (p32)<table>;¦<guard> call<uni> f1, (<actual>)",
    "uni": "¦.uni",
    "table": "¦, PT¦, TG¦, LB¦, f1",
    "guard": "@%p1¦@!%p2¦@%r1¦@%p9",
    "labelled": "L1:¦L2:¦bra L1;¦bra L2;¦bra.uni L1;¦<guard> bra L2;¦brx.idx %r1, TB;¦TB: .branchtargets L1, L2;¦{¦}¦{ L1: bra L1; }¦bra L3;¦L3: ret;¦L1: .reg .b32 zz;¦mov.b32 %r1, L1;¦.reg .b32 L2;¦bra;¦bra L1, L2;¦TB: .branchtargets L1;¦bra %r1;¦bra k;¦<guard> ret;¦call L1;¦add.u32 %r1, %r2, L1;¦brx.idx %d1, TB;¦brx.idx %r1, L1;¦brx.idx 1, TB;",
    "labels": "L1:\nL2:\n<labelled>\n<labelled>¦L1:\n<labelled>\n<labelled>\n<labelled>¦L1:\nL2:\nTB: .branchtargets L1, L2;\n<labelled>\n<labelled>",
    "scoped": ".reg .b32 a;¦.reg .b64 a;¦.reg .b32 a<lt>4>;¦.shared .b32 s;¦.local .b64 s;¦.param .b32 pp;¦{¦}¦mov.b32 a, 1;¦mov.b32 a1, 1;¦mov.b32 a4, 1;¦mov.b32 a02, 1;¦{ .reg .b64 a; mov.b64 a, 2; }¦{ .reg .b32 c; } mov.b32 c, 1;¦st.shared.b32 [s], a;¦st.local.b32 [s], a;¦.reg .v2 .b32 v;\nmov.b32 v.x, v.y;¦mov.b64 %d1, v;¦.reg .pred a;¦add.u32 a, a, a;¦.global .b32 gg;¦.reg .b32 out;¦mov.b64 %d1, s;¦.reg .b32 a, b, c;¦a: bra a;¦.reg .b32 a[3];",
    "scopes": ".reg .b32 a;\n<scoped>\n<scoped>¦<scoped>\n<scoped>¦.reg .b32 a;\n<scoped>",
    "address": "[%d1]¦[%d1+4]¦[%d1+-4]¦[%d1-4]¦[%r1]¦[%r1+8]¦[%f1]¦[%p1]¦[g]¦[g+4]¦[g+-4]¦[g-4]¦[g+4+4]¦[c]¦[s]¦[s+4]¦[l]¦[l+16]¦[out]¦[n]¦[0]¦[16]¦[%d1+%d2]¦[%d1+g]¦[nosuch]¦[%nosuch]¦[%d1+1.0]¦[]¦%d1¦g¦[%d1¦[%tid.x]¦[k]¦[f]¦g[0]¦g[1]¦g[%r1]¦s[%r1+1]¦[%d1+2147483648]¦[WARP_SZ]¦[_]¦[{%d1}]¦[%d1*2]¦[4+%d1]¦[g+2*4]¦[g+1<lt><lt>2]¦[(g)]¦[%d1+0]",
    "access": "ld.global.u32 %r1, <address>;¦ld.shared.u32 %r1, <address>;¦ld.local.u32 %r1, <address>;¦ld.const.u32 %r1, <address>;¦ld.param.u32 %r1, <address>;¦ld.u32 %r1, <address>;¦st.global.u32 <address>, %r1;¦st.shared.f32 <address>, %f1;¦st.local.u64 <address>, %d1;¦ld.global.v4.f32 {%f1,%f2,%f3,%f0}, <address>;¦atom.global.add.u32 %r1, <address>, 1;¦atom.shared.cas.b64 %d1, <address>, %d2, %d3;¦red.global.max.s32 <address>, %r1;¦ld.volatile.u8 %r1, <address>;¦ld.global.nc.f32 %f1, <address>;¦mov.u64 %d1, <address>;¦cvta.global.u64 %d1, <address>;",
    "braced": "{%r1,%r2}¦{%r1,%r2,%r3,%r4}¦{%r1}¦{%r1,%r2,%r3}¦{%f1,%f2}¦{%d1,%d2}¦{%h1,%h2}¦{_,%r1}¦{%r1,1}¦{1,2}¦{%r1,%f1}¦{}¦{%r1,}¦{%r1 %r2}¦{{%r1,%r2}}¦{%p1,%p2}¦{%r1,%d1}¦%r1¦%d1¦v2¦v4¦v2.x¦{v2.x,v2.y}¦{1.0,2.0}¦{0f3F800000,1}¦{%g1,%g2}¦{%h1,%r1}¦(%r1,%r2)¦[%r1,%r2]¦{%r9,%r1}",
    "vectored": "ld.global.v2.u32 <braced>, [%d1];¦ld.global.v4.u32 <braced>, [%d1];¦ld.global.v2.f32 <braced>, [%d1];¦ld.global.v2.u64 <braced>, [%d1];¦ld.global.v8.b32 <braced>, [%d1];¦st.global.v2.u32 [%d1], <braced>;¦st.global.v4.f32 [%d1], <braced>;¦st.global.v2.u16 [%d1], <braced>;¦mov.b64 <braced>, %d3;¦mov.b64 %d3, <braced>;¦mov.b32 %r3, <braced>;¦ld.global.u32 <braced>, [%d1];¦add.u32 <braced>, %r1, %r2;¦add.u32 %r1, <braced>, %r2;¦suld.b.2d.b32.trap %r1, [%d1, <braced>];¦sust.b.1d.b32.clamp [%d1, <braced>], %r1;",
    "literal": "0¦1¦31¦64¦128¦256¦-129¦32768¦65536¦2147483648¦4294967296¦-2147483649¦9223372036854775808¦18446744073709551615¦18446744073709551616¦1U¦-1U¦0x10¦010¦08¦0x¦1.0¦-1.0¦.5¦1e3¦1e400¦0f3F800000¦0f3F80000¦0d3FF0000000000000¦1.0f¦1+1¦(1)¦~0¦1<lt><lt>64¦1?2:3¦WARP_SZ¦%r1+1¦2*%r1¦5/0¦(.s64)1¦(.u32)1",
    "immediate": "add.u32 %r1, %r2, <literal>;¦add.s64 %d1, <literal>, %d2;¦and.b16 %h1, %h2, <literal>;¦shl.b32 %r1, %r2, <literal>;¦bfe.u32 %r1, %r2, <literal>, 3;¦bfi.b32 %r1, %r2, %r3, 4, <literal>;¦prmt.b32 %r1, %r2, %r3, <literal>;¦lop3.b32 %r1, %r2, %r3, %r4, <literal>;¦setp.eq.u16 %p1, %h1, <literal>;¦selp.b32 %r1, <literal>, %r2, %p1;¦mov.b64 %d1, <literal>;¦mov.f32 %f1, <literal>;¦mov.f64 %g1, <literal>;¦mov.pred %p1, <literal>;¦add.f32 %f1, %f2, <literal>;¦fma.rn.f64 %g1, %g2, <literal>, %g3;¦st.global.u16 [%d1], <literal>;¦st.global.f32 [%d1], <literal>;¦atom.global.add.u32 %r1, [%d1], <literal>;¦cvt.rn.f32.s32 %f1, <literal>;¦bar.sync <literal>;¦bar.sync 0, <literal>;¦shfl.sync.idx.b32 %r1, %r2, <literal>, 31, -1;¦ld.global.u32 %r1, [%d1+<literal>];¦pmevent <literal>;¦isspacep.global %p1, <literal>;",
    "pair": "<linkage> .global .u32 v;\n<linkage> .global .u32 v;¦<linkage> .global .u32 v;\n<linkage> .global .u32 v = 1;¦<linkage> .func v();\n<linkage> .func v();¦<linkage> .func v();\n<linkage> .func v() { ret; }¦<linkage> .func v() { ret; }\n<linkage> .func v();¦<linkage> .entry v() { ret; }\n<linkage> .func v();¦<linkage> .shared .u32 v;\n<linkage> .shared .u32 v;¦<linkage> .func v(.param .u32 a);\n<linkage> .func v(.param .u64 a) { ret; }",
    "noise": ",¦;¦:¦.¦@¦!¦%¦{¦}¦[¦]¦(¦)¦<lt>¦>¦+¦-¦*¦/¦|¦&¦=¦?¦\"¦#¦$¦_¦ ¦::¦//¦/*¦0¦x",
    "version": "9.5¦9.4¦9.0¦8.8¦8.0¦7.8¦7.0¦6.3¦6.0¦5.0¦4.0¦3.2¦9.6¦10.0¦7.9¦6.6¦x¦8",
    "target": "sm_75¦sm_80¦sm_86¦sm_89¦sm_90¦sm_90a¦sm_100¦sm_120¦sm_70¦sm_60¦sm_50¦sm_20¦compute_80¦sm_99¦sm_88¦sm_110",
    "options": "¦¦¦¦, texmode_unified¦, texmode_independent¦, foo¦, map_f64_to_f32¦ debug¦, sm_80",
    "head": ".version <version>\n.target <target><options>\n.address_size 64¦.target <target>\n.version <version>¦.version <version>\n.address_size 64\n.target <target>¦.version <version>\n.target <target>\n.target <target>¦.version <version>\n.version <version>\n.target <target>¦.version <version>\n.target <target>\n.address_size <size>",
    "size": "64¦16¦x¦0x40¦",
}  # fmt: skip
KERNEL = ".visible .entry k() { ret; }"
BEFORE = ".global .u32 g; .global .u32 h[4]; .const .u32 c; .shared .u32 s;\n.func f() { ret; }"
SPACES = ".global .align 16 .b8 g[64]; .const .align 16 .b8 c[64]; .shared .align 16 .b8 s[64];\n.global .surfref surf;\n.func f() { ret; }"
FUNCTIONS = """\
.func f0() { ret; }
.func f1(.param .b32 a) { ret; }
.func (.param .b32 r) f2(.param .b64 a, .param .f32 b) { .reg .b32 %x; mov.b32 %x, 1; st.param.b32 [r], %x; ret; }
.func (.reg .b32 r) f3(.reg .b32 a, .reg .f64 b) { mov.b32 r, a; ret; }
.func (.param .align 8 .b8 r[16]) f4(.param .align 4 .b8 a[12]) { ret; }
.extern .func (.param .b32 r) ext(.param .b64 a);
.global .u32 gv;"""
REGISTERS = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .f64 %g<4>;\n"
VECTORS = ".reg .v2 .b32 v2; .reg .v4 .f32 v4;\n"
PARAMETERS = """\
.param .b32 p32; .param .b64 p64; .param .f32 pf; .param .b16 p16; .param .b8 p8; .param .align 8 .b8 pa[16]; .param .align 4 .b8 pc[12];
PT: .callprototype _ (.param .b32 _);
TG: .calltargets f1;
LB:
"""
STATEMENTS = ("add.u32 %r1, %r2, %r3;", "ld.global.u32 %r1, [%d1+4];", "@%p1 bra L;", "mov.b64 {%r1, %r2}, %d1;", ".reg .b32 zz;",
              "setp.eq.u32 %p1|%p2, %r1, %r2;", "st.global.v2.u32 [%d1], {%r1, %r2};", "call f0;")  # fmt: skip


def expand(rng: random.Random, symbol: str) -> str:
    """A text of the grammar."""
    chosen = rng.choice(GRAMMAR[symbol].split("¦"))
    return PART.sub(lambda part: expand(rng, part[1]) if part[1] in GRAMMAR else part[0], chosen)


def noisy(rng: random.Random) -> str:
    """A statement with one or two characters changed."""
    text = rng.choice(STATEMENTS)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(("", expand(rng, "noise"), expand(rng, "noise") + text[at], text[at] * 2)) + text[at + 1 :]
    return f"mov.u32 %r5, 0;\n{text}\nmov.u32 %r6, 1;\nL:"


def random_cases(seed: int, count: int) -> Iterator[Case]:
    """``count`` modules of each class of rules."""
    rng = random.Random(seed)
    for _ in range(count):
        for rule in ("declaration", "initialiser", "pair", "function"):
            before = "" if rule == "function" else BEFORE + "\n" + rng.choice((".global ", ".const ")) * (rule == "initialiser")
            text = expand(rng, rule).strip()
            yield Case(f"random {rule}", text, f"{header()}{before}{text}\n.global .u32 later;\n{KERNEL}\n")
        for rule, registers, before in (("declaration", "", BEFORE), ("call", REGISTERS + PARAMETERS, FUNCTIONS), ("labels", REGISTERS, ""),
                                        ("scopes", REGISTERS, ""), ("access", REGISTERS + ".local .align 16 .b8 l[64];\n", SPACES),
                                        ("vectored", REGISTERS + VECTORS, ""), ("immediate", REGISTERS, "")):  # fmt: skip
            text = expand(rng, rule).strip()
            yield entry(f"random {rule}", text, registers + text, before=before)
        text = noisy(rng)
        yield entry("random syntax", text, REGISTERS + text, before=".func f0() { ret; }")
        text = expand(rng, "head")
        yield Case("random header", text, f"{text}\n{KERNEL}\n")
