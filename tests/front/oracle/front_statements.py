# ruff: noqa: E501 (the cases are tables)
"""What a statement is made of: its lines, its numbers, sums and names as operands, and what stands around functions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.front.oracle.front_cases import SYMBOLS, Case, header, line, module

KERNEL = ".visible .entry k() { ret; }"
FUNCTIONS = ".func fn() { ret; }\n"


def statement_cases() -> Iterator[Case]:
    for maker in (_lines, _numbers, _operands, _vectors, _heads, _directives, _aliases, _later, _spoiled, _unrun):
        yield from maker()


def _lines() -> Iterator[Case]:
    """Faults of statements that are written on several lines."""
    for text in (
        "add\n.u32 %r1, %r2, %f3;", "add.u32\n%r1, %r2, %f3;", "di\n.u32 %r1, %r2, %r3;", "di.u32\n%r1, %r2, %r3;", "foo\n;", "ret\n5;", "bra\nL9;",
        "call\nfoo;", "L: ret", "@%p1 ret", "add.u32 %r1, %r2\n;", "add.u32 %r1, %r2,\nfoo;", "mov.b64 %d1, {%r1,\nfoo};", "mov.b64 {%r1,\nfoo}, %d1;",
        "@%p1\nadd.u32 %r1, %r2, %f3;", "@%r1\nadd.u32 %r1, %r2, %r3;", "mov.u32 %r1,\n1.0;", "bar.sync\n16;", "setp.eq.u32 %p1|\nfoo, %r1, %r2;",
        "ld.global.u32 %r1,\n[%f1];", "add.u32 %r1, %r2, /*\n*/ foo;", "add.foo\n.u32 %r1, %r2, %r3;", "st.global.u32\n[gbuf],\n%r1\n;", "add.u32.\nfoo %r1, %r2, %r3;",
        "ret.file", ".reg .u32 x.file", ".reg .u32 x.f32", ".loc 1 1", ".loc 1", ".loc", "# 32", "# 1", "# 1 a", '# 1 "a"', '#line 1 "a"', ".section .debug_info { .b8 1 }",
    ):  # fmt: skip
        yield line("syntax", f"lines {text!r}", text)


def _numbers() -> Iterator[Case]:
    """Integers of 64 bits and more; ptxas calculates in 64 and notices some of those that do not fit."""
    for number in (
        "18446744073709551616", "36893488147419103232", "92233720368547758079", "92233720368547758080", "99999999999999999999", "-99999999999999999999",
        "0x1ffffffffffffffff", "0xfffffffffffffffff", "0x7ffffffffffffffff", "0b1" + "0" * 64, "0b1" + "0" * 63, "0b" + "0" * 70 + "1", "01" + "0" * 22,
        "02" + "0" * 22, "07" + "7" * 22, "0x00000000000000000000001", "99999999999999999999U", "18446744073709551616U",
    ):  # fmt: skip
        yield line("literals", f"long {number}", f"mov.u64 %du1, {number};")
        yield line("literals", f"long offset {number}", f"ld.global.u32 %r1, [gbuf+{number}];")
        yield module("literals", f"long initial {number}", f".global .u64 a = {number};\n{KERNEL}")


def _operands() -> Iterator[Case]:
    """Functions, variables with an offset and sums as operands; ptxas takes them for constants of any size."""
    operations = (
        "add.u32 %r1, %r2, X;", "add.u16 %h1, %h2, X;", "add.s64 %d1, %d2, X;", "add.f32 %f1, %f2, X;", "and.b32 %r1, %r2, X;", "shl.b32 %r1, %r2, X;",
        "mov.u32 %r1, X;", "mov.f32 %f1, X;", "setp.eq.u32 %p1, X, 0;", "st.global.f32 [gbuf], X;", "st.global.v2.u32 [gbuf], {%r1, X};", "bar.sync X;", "mov.b64 %d1, {X, %r1};",
        "nanosleep.u32 X;", "selp.u32 %r1, X, 1, %p1;", "mul.wide.u32 %d1, X, 5;", "add.f16x2 %r1, %r2, X;", "mapa.u64 %d1, X, %r3;",
    )  # fmt: skip
    names = (
        "fn",
        "k",
        "gbuf+4",
        "sbuf",
        "cbuf+8",
        "%r7+4",
        "%h7+4",
        "%d7+4",
        "%f7+4",
        "%g1+4",
        "%p7+4",
        "%b7+4",
        "%u1+4",
        "%r7-4",
        "%r7+1.0",
        "%ntid.w",
    )
    for operation in operations:
        for name in names:
            case = line("operand types", f"{operation.partition(' ')[0]} of {name}", operation.replace("X", name))
            yield Case(case.rule, case.name, case.text.replace(".visible", FUNCTIONS + ".visible"))
    for opcode in (
        "mapa.u64 %d1, X, %r3;",
        "getctarank.u64 %r1, X;",
        "cvta.global.u64 %d1, X;",
        "mbarrier.pending_count.b64 %r1, X;",
    ):
        for name in ("gbuf", "sbuf", "cbuf", "lbuf", "n", "%d1", "%g1", "1.0"):
            yield line("state spaces", f"{opcode.partition(' ')[0]} of {name}", opcode.replace("X", name))


def _vectors() -> Iterator[Case]:
    for text in (
        "mov.b64 {%r1, %r2}, {%d3};", "mov.b64 {%r1, %r2}, {%r3, %r4};", "mov.b32 {%h1, %h2}, {%h3, %h4};", "mov.v2.u32 {%u1, %u2}, {%u3, %u1};", "mov.b64 {%d1}, {%d2};", "mov.u32;", "mov.u32 {%r1};",
    ):  # fmt: skip
        yield line("vectors", text, text)
    texture = f".global .texref tx;\n{SYMBOLS}"
    for result in (
        "{%r1, %r2, %r3, %d1}|%p1",
        "{%r1, %r2, %r3, 5}|%p1",
        "{%r1, %r2, %r3}|%p1",
        "%r1|%p1",
        "{%r1, %r2, %r3, %r4}|%r1",
        "{%r1, foo, %r3, %r4}|%p1",
        "{%r1, %r2, %r3, %r4}|%p1",
    ):
        case = line("vectors", f"texture result {result}", f"tex.2d.v4.u32.f32 {result}, [tx, {{%f5, %f6}}];")
        yield Case(case.rule, case.name, case.text.replace(SYMBOLS, texture))


def _heads() -> Iterator[Case]:
    for target in (
        "sm_80x",
        "sm_80_",
        "sm_080",
        "sm_08",
        "sm_80aa",
        "sm_80f",
        "sm_100x",
        "compute_80x",
        "sm_80.5",
        "sm_",
        "sm_x",
    ):
        yield Case("target", f"suffix {target}", f".version 9.0\n.target {target}\n{KERNEL}\n")
    for version in ("7.2", "7.3", "7.8", "9.0"):
        yield Case("version", f"sm_88 in {version}", f".version {version}\n.target sm_88\n{KERNEL}\n")
    for name, text in {
        "version without number": f".version\n.target sm_80\n{KERNEL}\n", "version again without number": f"{header()}.version\n{KERNEL}\n", "target again without name": f"{header()}.target\n{KERNEL}\n",
        "address size again without number": f"{header()}.address_size\n{KERNEL}\n", "declaration before target": f".version 9.0\n.param .u32 x\n.target sm_80\n{KERNEL}\n", "kernel before target": ".version 9.0\n.entry k()\n.target sm_80\n{ ret; }\n",
        "non-ASCII in a comment": f"{header()}// \u00e9\n{KERNEL}\n", "byte order mark": f"\ufeff{header()}{KERNEL}\n", "32-bit addresses": f".version 2.3\n.target sm_20\n.address_size 32\n{KERNEL}\n",
    }.items():  # fmt: skip
        yield Case("order of directives", name, text)


def _directives() -> Iterator[Case]:
    for text in (
        '.file 1 "a"\n.file 1 "b"', '.file 1 "a" .file 1 "b"', ".section .debug_info", ".section .debug_info { .b8 1; }", ".section .debug_info { .b8 1 }", ".global .u32 a.file", ".global .u32 a.f32",
        ".entry (.param .u32 r) q(\n) { ret; }", ".entry (\n) { ret; }", ".entry q() .maxntid 16+16 { ret; }", ".entry q()\n.maxntid 1, 1, 1\n<\nret;\n}", ".func q() .noreturn 1 { exit; }",
        ".func q(.param .align 256 .b8 a[16]) { ret; }", ".func q(.param .align 128 .b8 a[16]) { ret; }", ".func q(.param .b8 a[0]) { ret; }", ".func q(.reg .u32 a);\n.func q(.param .u32 a) { ret; }",
        ".func q(.param .u32 a);\n.func q(.reg .u32 a) { ret; }", ".func q() { .param .align 256 .b8 a[16]; ret; }", ".func q() { .reg .b64 r; p: .callprototype _ () .abi_preserve 3; call r, p; ret; }", ".func q() .abi_preserve 4 { ret; }",
    ):  # fmt: skip
        for version, target in (("9.0", "sm_90"), ("8.8", "sm_90"), ("9.0", "sm_75")):
            yield module("directives", f"{text!r} {version} {target}", f"{text}\n{KERNEL}", version=version, target=target)
    for text in ("a + 4 - 0", "a + 4 - 8", "a - 4", "a + 4 + 4", "a + (4 - 8)"):
        yield module("address forms", text, f".global .u32 a[8];\n.entry k() {{ .reg .u32 r; ld.global.u32 r, [{text}]; ret; }}")


def _aliases() -> Iterator[Case]:
    for text in (
        ".func b() { ret; } .func a(); .alias a, b;", ".func b() { ret; } .func a() { ret; } .alias a, b;", ".func b() { ret; } .func a(); .alias a, b; .alias a, b;",
        ".weak .func b() { ret; } .func a(); .alias a, b;", ".visible .func b() { ret; } .weak .func a(); .alias a, b;", ".func b() { ret; } .func a(); .func c(); .alias a, b; .alias c, a;",
    ):  # fmt: skip
        yield module("linkage", text, f"{text}\n{KERNEL}")


def _later() -> Iterator[Case]:
    """Names of the module that a body uses before they are declared, and names that it may use."""
    uses = {
        "ld.global.u32 %r1, [g];": ".global .u32 g;", "mov.u64 %d1, g;": ".global .u32 g;", "suld.b.1d.b32.trap %r1, [g, {%r2}];": ".global .surfref g;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [g, {%r2}];": ".global .texref g;",
        "txq.width.b32 %r1, [g];": ".global .texref g;", "call g;": ".func g() { ret; }", "call.uni g, ();": ".func g();\n.func g() { ret; }", "mov.u64 %d2, g;": ".func g() { ret; }", "mov.u64 %d3, g;": ".entry g() { ret; }",
        "ld.shared.u32 %r1, [g];": ".shared .u32 g;", "st.global.u32 [g+4], 1;": ".global .u32 g[4];", "ld.global.u32 %r1, g[1];": ".global .u32 g[4];", "list: .calltargets g; ret;": ".func g() { ret; }", "mov.u64 %d4, g;": ".func b() { ret; } .func g(); .alias g, b;",
        "call g; ret;": ".func b() { ret; } .func g(); .alias g, b;", "ret; call g;": ".func g(); .func b() { ret; } .alias g, b;", ".reg .u32 g; mov.u32 g, 1;": ".global .u32 g;",
    }  # fmt: skip
    for use, declaration in uses.items():
        kernel = f".visible .entry k()\n{{\n.reg .b32 %r<4>; .reg .b64 %d<8>; .reg .f32 %f<8>;\n{use}\nret;\n}}"
        yield module("scopes", f"{use} before {declaration}", f"{kernel}\n{declaration}")
        yield module("scopes", f"{use} after {declaration}", f"{declaration}\n{kernel}")


def _spoiled() -> Iterator[Case]:
    """What is reported of a module that has a syntax error as well."""
    for name, text in {
        "label in what is spoiled": ".entry k()\n{\nbra L;\n:\nret;\n}", "label and a syntax error": ".entry k()\n{\nbra L;\nadd.u32 ,;\nret;\n}", "pragma without semicolon": f'.pragma "a"\n{KERNEL}', "debug target": f".entry q() {{ ret; ) }}\n{KERNEL}",
        "wrong operand before": ".entry k()\n{\n.reg .u32 r;\nadd.u32 r, r, 1.0;\nadd.u32 ,;\nret;\n}", "wrong declaration before": ".shared .u32 a = 1;\n.global .u32 b\n.entry k() { ret; }", "wrong operand after": ".entry k()\n{\nadd.u32 ,;\nadd.u32 r, r, 1.0;\nret;\n}",
        "location without line": ".entry k()\n{\n.loc  3 5\nret;\n}", "location with a comma": ".entry k()\n{\n.loc 1, 3 5\nret;\n}", "inlined without numbers": ".file 1 \"a\"\n.entry k()\n{\n.loc 1 3 5, function_name a, inlined_at 1 2\nret;\n}",
        "four values": ".entry k()\n.maxntid 1, 1, 1\n456\n{\nret;\n}", "function declared twice": ".func f() { ret; }\n.func f()\n.entry k() { ret; }", "no version": f".entry q(\n{KERNEL}", "several errors": ".entry k()\n{\n.reg .u32 r;\nfoo;\nadd.u32 r, r, 1.0;\nbra L;\nmov.u32 r, x;\nret;\n}",
    }.items():  # fmt: skip
        yield module("syntax", name, text)


UNRUN = (
    ("multimem.ld_reduce.relaxed.gpu.global.add.u32 %r1, [%d1];", "sm_90"), ("multimem.ld_reduce.weak.add.acc::f32.v2.f16x2 {%r1, %r2}, [%d1];", "sm_90"), ("multimem.st.release.sys.global.b64 [%d1], %d2;", "sm_90"),
    ("multimem.red.relaxed.sys.global.add.v4.f32 [%d1], {%f1, %f2, %f3, %f4};", "sm_90"), ("multimem.ld_reduce.min.v4.e4m3 {%b1, %b2, %b3, %b4}, [%d1];", "sm_100a"),
    ("tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;", "sm_90a"), ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [sbuf], 0, %r2;", "sm_90a"),
    ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [sbuf], 128;", "sm_90"), ("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;", "sm_100"),
    ("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];", "sm_100"), ("clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q1;", "sm_100"),
    ("wgmma.fence.sync.aligned;", "sm_90a"), ("wgmma.wait_group.sync.aligned 3;", "sm_90a"), ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, %p1, 1, -1, 0, 1;", "sm_90a"),
    ("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, %d2, 1, 1, 1;", "sm_90a"), ("wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.s8.u8 {%r1, %r2, %r3, %r4}, %d1, %d2, %r5, 0, %p1;", "sm_90a"),
    ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];", "sm_100a"), ("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%r1, %r2}, [%r3];", "sm_100a"), ("stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r3], {%r1, %r2};", "sm_100a"),
)  # fmt: skip


def _unrun() -> Iterator[Case]:
    """Instructions that are checked but not run, and what may be wrong with them."""
    for text, target in UNRUN:
        opcode, _, operands = text.rstrip(";").partition(" ")
        words = opcode.split(".")
        changes = {
            "right": text, "an operand more": text.replace(";", ", %r1;"), "unknown modifier": f"{opcode}.foo {operands};", "first modifier twice": f"{'.'.join(words[:2] + words[1:])} {operands};",
            "last modifier missing": f"{'.'.join(words[:-1])} {operands};", "first modifier missing": f"{'.'.join(words[:1] + words[2:])} {operands};", "no operands": f"{opcode};", "first operand wrong": f"{opcode} %e1{operands[operands.find(','):] if ',' in operands else ''};",
            "last operand wrong": f"{opcode} {operands.rpartition(',')[0]}, %g1;", "last operand an address": f"{opcode} {operands.rpartition(',')[0]}, [cbuf];",
        }  # fmt: skip
        for name, changed in changes.items():
            yield line("unsupported instructions", f"{name}: {text}", changed, target=target)
        yield line("unsupported instructions", f"older target: {text}", text, target="sm_80")
        yield line("unsupported instructions", f"older version: {text}", text, target="sm_80", version="7.8")
