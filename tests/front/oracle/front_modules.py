# ruff: noqa: E501 (the cases are tables)
"""Declarations, directives, calls, labels and limits: cases written by hand, swept over types and spaces."""

from __future__ import annotations

from collections.abc import Iterator

from tests.front.oracle.front_calls import call_cases
from tests.front.oracle.front_cases import SCALARS, Case, entry, header, module
from tests.front.oracle.front_variables import variable_cases
from tests.support.row_forms import NEWEST

KERNEL = ".visible .entry k(.param .u64 out) { ret; }"


def modules() -> list[Case]:
    makers = (headers, directives, order, linkage, labels, scopes, limits, functions, variable_cases, call_cases, pragmas)
    return [case for maker in makers for case in maker()]


def raw(rule: str, name: str, text: str) -> Case:
    return Case(rule, name, text)


def headers() -> Iterator[Case]:
    for version in ("1.0", "1.5", "2.3", "3.0", "3.2", "4.0", "4.3", "5.0", "6.0", "6.5", "7.0", "7.9", "8.0", "8.8", "9.0", "9.1",
                    "9.4", "9.5", "9.6", "10.0", "0.9", "8", "8.", "8.0.1", "x", "08.0", "8.00"):  # fmt: skip
        yield raw("version", f"version {version}", f".version {version}\n.target sm_75\n.address_size 64\n{KERNEL}\n")
    for target in ("sm_10", "sm_13", "sm_20", "sm_30", "sm_35", "sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70",
                   "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a",
                   "sm_100f", "sm_103", "sm_107", "sm_107a", "sm_107f", "sm_108", "sm_110", "sm_120", "sm_121", "sm_99", "sm_1", "compute_80", "sm80", "SM_80", "foo",
                   "sm_80, texmode_unified", "sm_80, texmode_independent", "sm_80, debug", "sm_80, debug, texmode_unified",
                   "texmode_unified", "sm_80, sm_90", "sm_80, sm_80", "sm_80, foo", "sm_80 debug", "sm_13, map_f64_to_f32",
                   "sm_80, map_f64_to_f32", "sm_80, texmode_unified, texmode_independent", "debug, sm_80", "80", ""):  # fmt: skip
        yield raw("target", f"target {target}", f".version {NEWEST}\n.target {target}\n.address_size 64\n{KERNEL}\n")
    for version, target in (("6.0", "sm_75"), ("6.3", "sm_75"), ("7.0", "sm_80"), ("6.5", "sm_80"), ("7.1", "sm_86"), ("7.0", "sm_86"),
                            ("7.8", "sm_90"), ("7.7", "sm_90"), ("8.0", "sm_90a"), ("7.8", "sm_90a"), ("8.6", "sm_100"),
                            ("8.5", "sm_100"), ("8.7", "sm_120"), ("8.6", "sm_120"), ("8.8", "sm_100f"), ("8.7", "sm_100f"),
                            ("4.0", "sm_50"), ("3.2", "sm_50"), ("5.0", "sm_60"), ("4.3", "sm_60"), ("4.2", "sm_53"),
                            ("4.1", "sm_53"), ("6.0", "sm_70"), ("5.0", "sm_70"), ("7.8", "sm_89"), ("7.7", "sm_89"),
                            ("7.4", "sm_87"), ("7.3", "sm_87"), ("6.1", "sm_72"), ("6.0", "sm_72"), ("9.0", "sm_88"),
                            ("9.0", "sm_110"), ("8.8", "sm_103"), ("8.7", "sm_103"), ("8.8", "sm_121"), ("8.7", "sm_121"), ("9.4", "sm_107"),
                            ("9.3", "sm_107"), ("9.4", "sm_107f"), ("9.3", "sm_107a")):  # fmt: skip
        yield raw("target", f"{target} in PTX {version}", f".version {version}\n.target {target}\n.address_size 64\n{KERNEL}\n")
    for size in ("64", "32", "16", "0", "128", "x", "-64", "0x40"):
        yield raw("directives", f"address_size {size}", f".version 9.0\n.target sm_80\n.address_size {size}\n{KERNEL}\n")


def order() -> Iterator[Case]:
    version, target, size = ".version 9.0\n", ".target sm_80\n", ".address_size 64\n"
    texts = {
        "no version": target + size + KERNEL,
        "no target": version + size + KERNEL,
        "no address size": version + target + KERNEL,
        "target first": target + version + size + KERNEL,
        "size before target": version + size + target + KERNEL,
        "version twice": version + version + target + size + KERNEL,
        "target twice": version + target + target + size + KERNEL,
        "other target twice": version + target + ".target sm_90\n" + size + KERNEL,
        "size twice": version + target + size + size + KERNEL,
        "version late": version + target + size + KERNEL + "\n" + version,
        "target late": version + target + size + KERNEL + "\n" + target,
        "size late": version + target + KERNEL + "\n" + size,
        "size after a variable": version + target + ".global .u32 g;\n" + size + KERNEL,
        "nothing": "",
        "comment only": "// nothing\n",
        "header only": version + target + size,
        "version only": version,
        "leading comment": "/* a */ // b\n" + version + target + size + KERNEL,
        "unclosed comment": version + target + size + "/* a\n" + KERNEL,
        "version with semicolon": ".version 9.0;\n" + target + size + KERNEL,
        "target with semicolon": version + ".target sm_80;\n" + size + KERNEL,
        "on one line": ".version 9.0 .target sm_80 .address_size 64 " + KERNEL,
        "file before version": '.file 1 "a.cu"\n' + version + target + size + KERNEL,
        "version in body": version + target + size + ".entry k() {\n.version 9.0\nret; }",
        "target in body": version + target + size + ".entry k() {\n.target sm_80\nret; }",
        "CRLF": (version + target + size + KERNEL).replace("\n", "\r\n"),
    }
    for name, text in texts.items():
        yield raw("order of directives", name, text + "\n")


def directives() -> Iterator[Case]:
    for text in (".maxntid 128", ".maxntid 16, 16", ".maxntid 8, 8, 8", ".maxntid 0", ".maxntid 1, 2, 3, 4", ".maxntid", ".maxntid 2048",
                 ".maxntid 1024, 2, 1", ".maxntid -1", ".reqntid 128", ".reqntid 32, 4, 1", ".reqntid 0", ".reqntid 1025", ".minnctapersm 2",
                 ".maxntid 128 .minnctapersm 2", ".minnctapersm 2 .maxntid 128", ".minnctapersm 0", ".minnctapersm", ".minnctapersm 1, 2",
                 ".maxnctapersm 4", ".maxntid 128 .maxnctapersm 4", ".maxnreg 32", ".maxnreg 0", ".maxnreg 1000", ".maxnreg", ".maxnreg x",
                 ".maxnreg 32 .maxnreg 32", ".maxntid 128 .maxntid 128", ".maxntid 128 .reqntid 128", ".maxntid 64 .reqntid 128",
                 ".maxnreg 32 .minnctapersm 2", ".explicitcluster", ".reqnctapercluster 2", ".reqnctapercluster 2, 2, 2",
                 ".reqnctapercluster 0", ".explicitcluster .reqnctapercluster 2, 1, 1", ".maxclusterrank 4",
                 ".explicitcluster .maxclusterrank 4", ".blocksareclusters", ".reqntid 64 .reqnctapercluster 2 .blocksareclusters",
                 ".noreturn", ".foo 3", ".maxntid 128;", ".align 4", ".pragma \"nounroll\"", ".reqnctapercluster 1, 1, 1, 1",
                 ".maxclusterrank 0", ".reqnctapercluster 2 .maxclusterrank 4", ".maxclusterrank", ".abi_preserve 8",
                 ".abi_preserve_control 8", ".unified"):  # fmt: skip
        yield module("directives", f"entry {text}", f".visible .entry k(.param .u64 a)\n{text}\n{{\n    ret;\n}}")
        yield module("directives", f"func {text}", f".visible .func f(.param .u64 a)\n{text}\n{{\n    ret;\n}}")
    for version, target, text in (("7.7", "sm_80", ".explicitcluster"), ("9.0", "sm_80", ".reqnctapercluster 2"),
                                  ("6.3", "sm_75", ".noreturn"), ("9.0", "sm_80", ".maxclusterrank 4"),
                                  ("7.8", "sm_90", ".blocksareclusters")):  # fmt: skip
        yield module(
            "directives", f"{text} in {version} {target}", f".entry k()\n{text}\n{{ ret; }}", version=version, target=target
        )
    for text in ('.file 1 "a.cu"', '.file 1 "a.cu", 12, 34', ".file 1", '.file "a.cu"', '.file 1 "a.cu", 12', '.file 0 "a.cu"', ".file x",
                 '.file 1 "a.cu" .file 1 "b.cu"', '.file 1 "a.cu" .file 2 "b.cu"', ".section .debug_info {}", ".section .debug_str\n{\nx:\n.b8 1,2\n}",
                 ".section .debug_abbrev\n{\n.b8 1\n.b8 2\n}", ".section", ".section foo {}", '.pragma "nounroll";', '.pragma nounroll;',
                 '.pragma "a", "b";', '.pragma "nounroll"', ".foo", ".foo 3;", ";", "}", "{", "x", "add.u32 %r1, %r2, %r3;", "ret;", "@@dwarf x",
                 ".alias a, b;", ".loc 1 1 1"):  # fmt: skip
        yield module("directives", f"module scope {text}", f"{text}\n{KERNEL}")
    for text in (".loc 1 2 3", ".loc 1 2", ".loc 2 1 1", ".loc 1 2 3, function_name x, inlined_at 1 2 3", ".loc", ".loc 1", ".loc 0 0 0",
                 '.pragma "nounroll";', '.pragma "foo";', ".file 2 \"b.cu\"", ".maxntid 32;", ".foo;", ".visible .u32 x;", ".entry q() {}",
                 ".func q() { ret; }", ".section .debug_info {}", ";", ";;", "ret", "{ }", "{ ret; }", "{", "}", "()", "[]", "add", "add;",
                 ".reg", ".reg .u32", ".reg .u32 ;", ".reg .u32 %x", ".extern .func q();", ".branchtargets LA;"):  # fmt: skip
        yield entry("directives", f"in a body {text}", f"{text}\nLA:", before='.file 1 "a.cu"')


def linkage() -> Iterator[Case]:
    for word in (
        "",
        ".visible",
        ".extern",
        ".weak",
        ".common",
        ".visible .weak",
        ".weak .visible",
        ".extern .extern",
        ".static",
        ".visible .extern",
    ):
        yield module("linkage", f"{word} entry", f"{word} .entry k() {{ ret; }}")
        yield module("linkage", f"{word} entry without body", f"{word} .entry k();")
        yield module("linkage", f"{word} func", f"{word} .func f() {{ ret; }}")
        yield module("linkage", f"{word} func without body", f"{word} .func f();")
        for space in ("global", "const", "shared", "local", "reg", "param"):
            yield module("linkage", f"{word} {space}", f"{word} .{space} .u32 v;\n{KERNEL}")
            yield module("linkage", f"{word} {space} initialised", f"{word} .{space} .u32 v = 1;\n{KERNEL}")
            yield module("linkage", f"{word} {space} open array", f"{word} .{space} .align 16 .b8 v[];\n{KERNEL}")
        yield entry("linkage", f"{word} in a body", f"{word} .shared .u32 v;")
    pairs = (
        (".extern .global .u32 v;", ".global .u32 v;"), (".extern .global .u32 v;", ".visible .global .u32 v;"),
        (".extern .global .u32 v;", ".global .f32 v;"), (".extern .global .u32 v;", ".global .u64 v;"),
        (".extern .global .u32 v;", ".const .u32 v;"), (".extern .global .u32 v;", ".extern .global .u32 v;"),
        (".visible .global .u32 v;", ".extern .global .u32 v;"), (".global .u32 v;", ".global .u32 v;"), (".global .u32 v;", ".const .u32 v;"),
        (".weak .global .u32 v;", ".weak .global .u32 v;"), (".common .global .u32 v;", ".common .global .u32 v;"),
        (".extern .global .u32 v[];", ".global .u32 v[4];"), (".extern .global .u32 v[4];", ".global .u32 v[8];"),
        (".func f();", ".func f() { ret; }"), (".extern .func f();", ".func f() { ret; }"), (".extern .func f();", ".visible .func f() { ret; }"),
        (".visible .func f();", ".visible .func f() { ret; }"), (".visible .func f();", ".func f() { ret; }"), (".func f();", ".func f();"),
        (".func f() { ret; }", ".func f();"), (".func f() { ret; }", ".func f() { ret; }"), (".func f(.param .u32 a);", ".func f(.param .u64 a) { ret; }"),
        (".func f(.param .u32 a);", ".func f(.param .u32 b) { ret; }"), (".func f(.param .u32 a);", ".func f() { ret; }"),
        (".func (.param .u32 r) f();", ".func f() { ret; }"), (".func f(.param .u32 a);", ".func f(.param .f32 a) { ret; }"),
        (".func f(.param .u32 a);", ".func f(.param .s32 a) { ret; }"), (".func f(.param .u32 a);", ".func f(.param .b32 a) { ret; }"),
        (".func f(.param .align 8 .b8 a[8]);", ".func f(.param .align 4 .b8 a[8]) { ret; }"), (".func f();", ".entry f() { ret; }"),
        (".weak .func f() { ret; }", ".weak .func f() { ret; }"), (".entry q() { ret; }", ".entry q() { ret; }"), (".entry q();", ".entry q() { ret; }"),
        (".global .u32 f;", ".func f() { ret; }"), (".func f() { ret; }", ".global .u32 f;"), (".weak .func f();", ".func f() { ret; }"),
        (".func f();", ".weak .func f() { ret; }"), (".func f();", ".visible .func f() { ret; }"), (".global .u32 k;", ""),
        (".shared .u32 v;", ".shared .u32 v;"), (".const .u32 v = 1;", ".const .u32 v = 1;"), (".global .surfref v;", ".global .texref v;"),
        (".func f() { ret; }", ".alias g, f;"), (".func g(); .func f() { ret; }", ".alias g, f;"), (".visible .func g();\n.visible .func f() { ret; }", ".alias g, f;"),
        (".visible .func g(.param .u32 a);\n.visible .func f() { ret; }", ".alias g, f;"), (".visible .func g();", ".alias g, f;"),
        (".extern .shared .b8 v[];", ".extern .shared .b8 v[];"), (".extern .shared .align 8 .b8 v[];", ".extern .shared .align 16 .b8 v[];"),
    )  # fmt: skip
    for first, second in pairs:
        yield module("linkage and duplicates", f"{first} {second}", f"{first}\n{second}\n{KERNEL}")


def labels() -> Iterator[Case]:
    bodies = {
        "forward": "bra L;\nL:", "backward": "L:\nbra L;", "unknown": "bra M;\nL:", "twice": "L:\nbra L;\nL:", "uni": "bra.uni L;\nL:",
        "register": "bra %r1;\nL:", "literal": "bra 4;\nL:", "two": "bra L, L;\nL:", "none": "bra;\nL:", "address": "bra [L];\nL:",
        "inner from outside": "bra L;\n{\nL:\n}", "outer from inside": "{\nbra L;\n}\nL:", "same in two scopes": "{\nL:\nbra L;\n}\n{\nL:\nbra L;\n}",
        "inner hides outer": "L:\n{\nbra L;\nL:\n}", "label and register": ".reg .u32 L;\nL:\nbra L;", "label and variable": ".shared .u32 L;\nL:\nbra L;",
        "label named as kernel": "k:\nbra k;", "label named as parameter": "out:\nbra out;", "dollar": "$L__BB0_1:\nbra $L__BB0_1;", "dot": "L.x:\nbra L.x;",
        "percent": "%L:\nbra %L;", "underscore": "_:\nbra _;", "number": "1:\nbra 1;", "on the same line": "L: M: bra L;", "before a brace": "L:\n{ bra L; }",
        "guarded": "@%p1 bra L;\nL:", "guarded label": "@%p1 L:", "moved": "mov.u64 %d1, L;\nL:", "label without colon": "L\nbra L;", "keyword": "add:\nbra add;",
        "call of a label": "call L;\nL:", "brx": "T: .branchtargets L, M;\nbrx.idx %r1, T;\nL:\nM:", "brx unknown label": "T: .branchtargets L, M;\nbrx.idx %r1, T;\nL:",
        "brx without list": "brx.idx %r1, L;\nL:", "brx 64 bits": "T: .branchtargets L;\nbrx.idx %d1, T;\nL:", "brx literal": "T: .branchtargets L;\nbrx.idx 0, T;\nL:",
        "brx list later": "brx.idx %r1, T;\nL:\nT: .branchtargets L;", "brx uni": "T: .branchtargets L;\nbrx.idx.uni %r1, T;\nL:", "brx f32": "T: .branchtargets L;\nbrx.idx %f1, T;\nL:",
        "list twice": "T: .branchtargets L;\nT: .branchtargets L;\nL:", "empty list": "T: .branchtargets ;\nL:", "branch to a list": "T: .branchtargets L;\nbra T;\nL:",
        "range list": "T: .branchtargets N<3>;\nbrx.idx %r1, T;\nN0:\nN1:\nN2:", "brx without idx": "T: .branchtargets L;\nbrx %r1, T;\nL:", "list repeats": "T: .branchtargets L, L;\nbrx.idx %r1, T;\nL:",
        "unused list unknown": "T: .branchtargets M;\nL:", "call list unused": "T: .calltargets zz;", "call list of label": "L:\nT: .calltargets L;", "label is last": "bra L;\nret;\nL:",
        "inner list": "{\nT: .branchtargets L;\nbrx.idx %r1, T;\nL:\n}", "list of outer labels": "L:\n{\nT: .branchtargets L;\nbrx.idx %r1, T;\n}", "list in a guard": "@%p1 brx.idx %r1, T;\nT: .branchtargets L;\nL:",
        "uni twice": "bra.uni.uni L;\nL:", "negated label": "bra !L;\nL:", "label plus": "bra L+4;\nL:", "unused unknown list name": "brx.idx %r1, NT;\nL:", "label in braces": "bra {L};\nL:",
    }  # fmt: skip
    registers = ".reg .pred %p<4>; .reg .u32 %r<4>; .reg .u64 %d<4>; .reg .f32 %f<4>;"
    for name, body in bodies.items():
        yield entry("labels", name, f"{registers}\n{body}")


def scopes() -> Iterator[Case]:
    use = "add.u32 %r1, %r1, 1;"
    bodies = {
        "declared": f".reg .u32 %r1;\n{use}", "undeclared": use, "declared later": f"{use}\n.reg .u32 %r1;", "twice": f".reg .u32 %r1;\n.reg .u32 %r1;\n{use}",
        "twice in a list": f".reg .u32 %r1, %r1;\n{use}", "in and out": f".reg .u32 %r1;\n{{\n.reg .u32 %r1;\n{use}\n}}", "other type inside": f".reg .f32 %r1;\n{{\n.reg .u32 %r1;\n{use}\n}}",
        "used after the scope": f"{{\n.reg .u32 %r1;\n}}\n{use}", "range": f".reg .u32 %r<2>;\n{use}", "range too short": f".reg .u32 %r<1>;\n{use}", "range zero": f".reg .u32 %r<0>;\n{use}",
        "range and one": f".reg .u32 %r<4>;\n.reg .u32 %r2;\n{use}", "one and range": f".reg .u32 %r2;\n.reg .u32 %r<4>;\n{use}", "two ranges": f".reg .u32 %r<4>;\n.reg .u32 %r<8>;\n{use}",
        "two ranges of types": f".reg .u32 %r<4>;\n.reg .f32 %r<8>;\n{use}", "range of no digits": ".reg .u32 r<4>;\nadd.u32 r1, r1, 1;", "range with a digit": ".reg .u32 r1<4>;\nadd.u32 r10, r11, 1;",
        "range leading zero": ".reg .u32 %r<20>;\nadd.u32 %r01, %r1, 1;", "inner range": ".reg .u32 %r<4>;\n{\n.reg .u32 %r<9>;\nadd.u32 %r8, %r1, 1;\n}", "inner range ended": f"{{\n.reg .u32 %r<9>;\n}}\n{use}",
        "inner range, outer name": f".reg .u32 %r1;\n{{\n.reg .f32 %r<9>;\n{use}\n}}", "shadow a parameter": ".reg .u32 out;\nadd.u32 out, out, 1;", "shadow a global": ".reg .u32 gv;\nadd.u32 gv, gv, 1;",
        "shadow the kernel": ".reg .u32 k;\nadd.u32 k, k, 1;", "shadow a global in shared": ".shared .u32 gv;", "shared twice": ".shared .u32 s;\n.shared .u32 s;", "shared and reg": ".shared .u32 s;\n.reg .u32 s;",
        "shared inner": ".shared .u32 s;\n{\n.shared .u32 s;\n}", "local after use": ".reg .u32 %r1;\nst.local.u32 [x], %r1;\n.local .u32 x;", "deep": "{{{{{{{{ .reg .u32 %r1; " + use + " }}}}}}}}",
        "case matters": ".reg .u32 %R1;\n" + use, "opcode name": ".reg .u32 add;\nadd.u32 add, add, 1;", "type name": ".reg .u32 u32;\nadd.u32 u32, u32, 1;", "no percent": ".reg .u32 x;\nadd.u32 x, x, 1;",
        "dollar": ".reg .u32 $x;\nadd.u32 $x, $x, 1;", "underscore start": ".reg .u32 _x;\nadd.u32 _x, _x, 1;", "underscore alone": ".reg .u32 _;", "percent alone": ".reg .u32 %;", "digit start": ".reg .u32 1x;",
        "special name": ".reg .u32 %tid;", "special name laneid": ".reg .u32 %laneid;\nmov.u32 %laneid, 1;", "special name clock": ".reg .u32 %clock;", "WARP_SZ": ".reg .u32 WARP_SZ;", "hyphen": ".reg .u32 a-b;",
        "long name": ".reg .u32 " + "a" * 300 + ";", "unicode": ".reg .u32 \u00e9;", "reserved dot": ".reg .u32 a.b;", "range negative": ".reg .u32 %r<-1>;", "range expression": ".reg .u32 %r<2+2>;", "range name": ".reg .u32 %r<n>;",
        "range of 100000": ".reg .u32 %r<100000>;\nadd.u32 %r99999, %r1, 1;", "reg v2": ".reg .v2 .u32 v;\nmov.u32 v.x, v.y;", "reg v4": ".reg .v4 .u32 v;\nmov.u32 v.x, v.w;", "reg v2 z": ".reg .v2 .u32 v;\nmov.u32 v.x, v.z;",
        "reg v3": ".reg .v3 .u32 v;", "reg v8": ".reg .v8 .u16 v;", "reg rgba": ".reg .v4 .u32 v;\nmov.u32 v.r, v.a;", "reg v2 pred": ".reg .v2 .pred v;", "reg v4 f64": ".reg .v4 .f64 v;", "reg v2 range": ".reg .v2 .u32 v<3>;\nmov.u32 v1.x, v2.y;",
        "reg v4 b128": ".reg .v4 .b128 v;", "reg v2 f16x2": ".reg .v2 .f16x2 v;", "member of a scalar": ".reg .u32 x;\nmov.u32 x.x, 1;",
    }  # fmt: skip
    for name, body in bodies.items():
        yield entry("scopes", name, body, before=".global .u32 gv;")
    for names in ("a, a", "a, b", "out, out"):
        parts = ", ".join(f".param .u32 {name}" for name in names.split(", "))
        yield entry("scopes", f"parameters {names}", "", params=parts)


def limits() -> Iterator[Case]:
    for size in (1, 49151, 49152, 49153, 65536, 101376, 232448, 232449, 1 << 20, 1 << 32):
        yield entry("limits", f"shared {size}", f".shared .b8 s[{size}];\n.reg .u32 %r1;\nmov.u32 %r1, s;")
        yield entry("limits", f"module shared {size}", ".reg .u32 %r1;\nmov.u32 %r1, s;", before=f".shared .b8 s[{size}];")
        yield entry("limits", f"unused module shared {size}", "", before=f".shared .b8 s[{size}];")
    for sizes in ((49152, 1), (24576, 24576), (24576, 24577)):
        lines = "".join(f".shared .b8 s{i}[{size}];\n" for i, size in enumerate(sizes))
        yield entry("limits", f"shared of {sizes}", lines + ".reg .u32 %r1;\nmov.u32 %r1, s0;\nmov.u32 %r1, s1;")
    for size in (1, 65535, 65536, 65537, 100000, 655360):
        yield entry("limits", f"const {size}", ".reg .u64 %d1;\nmov.u64 %d1, c;", before=f".const .b8 c[{size}];")
        yield entry("limits", f"unused const {size}", "", before=f".const .b8 c[{size}];")
    yield entry(
        "limits",
        "const of 65536 in two",
        ".reg .u64 %d1;\nmov.u64 %d1, c;\nmov.u64 %d1, e;",
        before=".const .b8 c[32768];\n.const .b8 e[32768];",
    )
    yield entry(
        "limits",
        "const of 65540 in two",
        ".reg .u64 %d1;\nmov.u64 %d1, c;\nmov.u64 %d1, e;",
        before=".const .b8 c[32768];\n.const .b8 e[32772];",
    )
    for version in ("4.0", "7.0", "8.0", "8.1", "9.0"):
        for size in (256, 4095, 4096, 4097, 4352, 4353, 32764, 32765, 32768):
            for target in ("sm_50", "sm_80") if version in ("4.0", "8.1") else ("sm_75",):
                yield entry(
                    "limits",
                    f"parameters {size} in {version} {target}",
                    "",
                    params=f".param .align 1 .b8 a[{size}]",
                    version=version,
                    target=target,
                )
    for size in (511 * 1024, 512 * 1024, 600000, 1 << 24, 1 << 31, 1 << 40):
        yield entry("limits", f"local {size}", f".local .b8 x[{size}];\n.reg .u32 %r1;\nld.local.u8 %r1, [x];")
    for count in (1, 255, 256, 1024):
        parts = ", ".join(f".param .u32 a{i}" for i in range(count))
        yield entry("limits", f"{count} parameters", "", params=parts)


def functions() -> Iterator[Case]:
    texts = {
        "no parameters": ".entry k { ret; }", "empty parameters": ".entry k() { ret; }", "empty body": ".entry k() { }", "no return": ".entry k() { .reg .u32 %r1; mov.u32 %r1, 0; }",
        "no name": ".entry () { ret; }", "no brace": ".entry k() ret; }", "no closing brace": ".entry k() { ret;", "extra brace": ".entry k() { ret; } }", "entry returns": ".entry (.param .u32 r) k() { ret; }",
        "reg parameter": ".entry k(.reg .u32 a) { ret; }", "space missing": ".entry k(.u32 a) { ret; }", "type missing": ".entry k(.param a) { ret; }", "name missing": ".entry k(.param .u32) { ret; }",
        "comma missing": ".entry k(.param .u32 a .param .u32 b) { ret; }", "comma extra": ".entry k(.param .u32 a,) { ret; }", "pred parameter": ".entry k(.param .pred a) { ret; }", "f16 parameter": ".entry k(.param .f16 a) { ret; }",
        "b128 parameter": ".entry k(.param .b128 a) { ret; }", "array": ".entry k(.param .u32 a[4]) { ret; }", "open array": ".entry k(.param .u32 a[]) { ret; }", "two dims": ".entry k(.param .u32 a[4][4]) { ret; }",
        "vector": ".entry k(.param .v4 .f32 a) { ret; }", "align": ".entry k(.param .align 16 .b8 a[16]) { ret; }", "align 3": ".entry k(.param .align 3 .b8 a[16]) { ret; }", "align 0": ".entry k(.param .align 0 .b8 a[16]) { ret; }",
        "ptr": ".entry k(.param .u64 .ptr .global .align 4 a) { ret; }", "ptr alone": ".entry k(.param .u64 .ptr a) { ret; }", "ptr of shared": ".entry k(.param .u64 .ptr .shared a) { ret; }", "ptr u32": ".entry k(.param .u32 .ptr .global a) { ret; }",
        "ptr f32": ".entry k(.param .f32 .ptr .global a) { ret; }", "ptr align 3": ".entry k(.param .u64 .ptr .global .align 3 a) { ret; }", "ptr reg": ".entry k(.param .u64 .ptr .reg a) { ret; }", "ptr param": ".entry k(.param .u64 .ptr .param a) { ret; }",
        "ptr before type": ".entry k(.param .ptr .u64 a) { ret; }", "ptr const": ".entry k(.param .u64 .ptr .const .align 16 a) { ret; }", "ptr in func": ".func f(.param .u64 .ptr .global a) { ret; }", "ptr b64": ".entry k(.param .b64 .ptr .local a) { ret; }",
        "texref parameter": ".entry k(.param .texref a) { ret; }", "surfref parameter": ".entry k(.param .surfref a) { ret; }", "samplerref parameter": ".entry k(.param .samplerref a) { ret; }", "u8 parameter": ".entry k(.param .u8 a) { ret; }",
        "initialised parameter": ".entry k(.param .u32 a = 1) { ret; }", "range parameter": ".entry k(.param .u32 a<2>) { ret; }", "global parameter": ".entry k(.global .u32 a) { ret; }", "const space": ".entry k(.const .u32 a) { ret; }",
        "func": ".func f() { ret; }", "func no parens": ".func f { ret; }", "func reg": ".func (.reg .u32 r) f(.reg .u32 a) { mov.u32 r, a; ret; }", "func param": ".func (.param .u32 r) f(.param .u32 a) { ret; }",
        "func two returns": ".func (.reg .u32 r, .reg .u32 q) f() { ret; }", "func two param returns": ".func (.param .u32 r, .param .u32 q) f() { ret; }", "func empty returns": ".func () f() { ret; }", "func mixed": ".func (.reg .u32 r) f(.param .u32 a) { ret; }",
        "func return array": ".func (.param .align 4 .b8 r[12]) f() { ret; }", "func reg array": ".func f(.reg .u32 a[4]) { ret; }", "func reg pred": ".func f(.reg .pred a) { ret; }", "func reg vector": ".func f(.reg .v2 .u32 a) { ret; }", "func param pred": ".func f(.param .pred a) { ret; }",
        "func surfref": ".func f(.param .surfref a) { ret; }", "func named as kernel": ".func k() { ret; } .entry k() { ret; }", "func open array last": ".func f(.param .u32 a, .param .align 8 .b8 b[]) { ret; }", "func open array first": ".func f(.param .align 8 .b8 b[], .param .u32 a) { ret; }",
        "noreturn": ".func f() .noreturn { trap; }", "noreturn ret": ".func f() .noreturn { ret; }", "noreturn result": ".func (.param .u32 r) f() .noreturn { trap; }", "entry noreturn": ".entry k() .noreturn { exit; }", "func in func": ".func f() { .func g() { ret; } ret; }",
        "semicolon after body": ".entry k() { ret; };", "dotted name": ".entry a.b() { ret; }", "dollar name": ".entry $k() { ret; }", "percent name": ".entry %k() { ret; }", "keyword name": ".entry add() { ret; }", "digit name": ".entry 1k() { ret; }", "underscore name": ".entry _() { ret; }", "long name": f".entry {'k' * 2000}() {{ ret; }}",
        "ret with value": ".func (.reg .u32 r) f() { ret r; }", "ret.uni": ".entry k() { ret.uni; }", "exit": ".entry k() { exit; }", "exit.uni": ".entry k() { exit.uni; }", "text after": ".entry k() { ret; } foo", "nul": ".entry k() { ret; }\0", "tab and feed": ".entry\tk()\f{ ret; }\v", "backslash": ".entry k() { ret; } \\",
        "unterminated instruction": ".entry k() { ret }", "string": '.entry k() { "a"; ret; }', "line continued": ".entry k() { .reg .u32 %r1;\nadd.u32\n%r1,\n%r1,\n1; ret; }", "spaces in opcode": ".entry k() { .reg .u32 %r1; add .u32 %r1, %r1, 1; ret; }", "space after dot": ".entry k() { .reg .u32 %r1; add. u32 %r1, %r1, 1; ret; }", "upper case": ".entry k() { .reg .u32 %r1; ADD.u32 %r1, %r1, 1; ret; }",
        "upper directive": ".ENTRY k() { ret; }", "preprocessor": "#line 3\n.entry k() { ret; }", "preprocessor define": "#define X 1\n.entry k() { ret; }", "comment in instruction": ".entry k() { ret /* a */ ; }", "nested comment": "/* /* */ .entry k() { ret; }", "entry attribute": ".entry .attribute(.managed) k() { ret; }", "func unified": ".func .attribute(.unified(1, 2)) f() { ret; }",
    }  # fmt: skip
    for name, text in texts.items():
        yield module("functions and entries", name, text)
    for kind in (*SCALARS, "tf32", "e4m3", "u128", "f8", "x"):
        yield module("functions and entries", f"entry .{kind}", f".entry k(.param .{kind} a) {{ ret; }}")
        yield module("functions and entries", f"func .{kind}", f".func f(.param .{kind} a) {{ ret; }}")
        yield module("functions and entries", f"func reg .{kind}", f".func f(.reg .{kind} a) {{ ret; }}")


def pragmas() -> Iterator[Case]:
    for text in (
        '"nounroll"',
        '"used_bytes_mask 0xfff"',
        '"enable_smem_spilling"',
        '"frequency 32"',
        '""',
        "",
        '"a" "b"',
        '"nounroll", "x"',
        "5",
    ):
        yield entry("directives", f"pragma {text}", f".pragma {text};\nL:")


__all__ = ["header", "modules"]
