# ruff: noqa: E501 (the cases are tables)
"""Variables of every kind: types, vectors, alignment, extents, initial values, attributes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.front.oracle.front_cases import SCALARS, Case, entry, module

TYPES = (*SCALARS, "pred", "tf32", "texref", "surfref", "samplerref", "e4m3", "u128")
SPACES = ["global", "const", "shared", "local", "param", "reg", "sreg", "tex"]
KERNEL = ".visible .entry k() { ret; }"
RULE = "declarations"


def variable_cases() -> Iterator[Case]:
    yield from by_space()
    yield from shapes()
    yield from initial_values()
    yield from opaque()
    yield from attributes()


def by_space() -> Iterator[Case]:
    for space in SPACES:
        for kind in TYPES:
            yield module(RULE, f"module .{space} .{kind}", f".{space} .{kind} v;\n{KERNEL}")
            yield entry(RULE, f"body .{space} .{kind}", f".{space} .{kind} v;")
    for space in SPACES:
        for vector in ("v2", "v3", "v4", "v8"):
            for kind in ("u8", "f32", "f64", "b128", "pred", "f16"):
                if space in ("global", "shared", "local", "reg"):
                    text = f".{space} .{vector} .{kind} v;"
                    yield (
                        entry("vector declarations", text, text)
                        if space in ("reg", "local")
                        else module("vector declarations", text, f"{text}\n{KERNEL}")
                    )


def shapes() -> Iterator[Case]:
    for text in (".align 1 .b8 v", ".align 2 .b8 v", ".align 4 .u32 v", ".align 2 .u32 v", ".align 1 .u64 v", ".align 3 .b8 v", ".align 0 .b8 v", ".align 128 .b8 v",
                 ".align 256 .b8 v", ".align 4096 .b8 v", ".align 1024 .b8 v[4]", ".align 65536 .b8 v", ".align -4 .b8 v", ".align x .b8 v", ".align 4", ".align .b8 v", ".align 4 .align 4 .b8 v", ".b8 .align 4 v", ".align 4.0 .b8 v", ".align 2+2 .b8 v", ".align 8 .v2 .f32 v", ".v2 .align 8 .f32 v",
                 ".align 4 .v4 .f32 v", ".u32 v[4]", ".u32 v[0]", ".u32 v[-1]", ".u32 v[]", ".u32 v[2][3]", ".u32 v[][3]", ".u32 v[3][]", ".u32 v[2][3][4]", ".u32 v[2][2][2][2][2]", ".u32 v[x]", ".u32 v[2+2]", ".u32 v[2*3]", ".u32 v[1.5]", ".u32 v[0x10]",
                 ".u32 v[4", ".u32 v 4]", ".u32 [4]", ".u32", ".v", "v", ".u32 v w", ".u32 v, w", ".u32 v, v", ".u32 v[2], w[3]", ".u32 v,", ".u32 .f32 v", ".u32 v<4>", ".v2 .u32 v[4]", ".v4 .v2 .u32 v", ".u32 %v", ".u32 $v", ".u32 1v", ".u32 v.x", ".u32 _v", ".u32 add", ".u32 u32", ".u32 %tid",
                 ".u32 v[4294967296]", ".u32 v[1000000000]", ".b8 v[0xffffffff]", ".u32 v[(4)]", ".u32 v[4U]", ".u32 v[8/2]", ".u32 v[8%3]", ".u32 v[1<<3]", ".u32 v[1?2:3]", ".u32 v[-(-4)]", ".u32 v[!0]", ".u32 v[~0]", ".u32 v[4>3]", ".u32 v[010]", ".u32 v[0b100]", ".u32 v[08]", ".u32 v[8/0]"):  # fmt: skip
        yield module(RULE, f"global {text}", f".global {text};\n{KERNEL}")
        yield entry(RULE, f"shared {text}", f".shared {text};")
    for text in (".reg .align 4 .u32 x;", ".reg .u32 x = 1;", ".reg .u32 x[4];", ".local .u32 x = 1;", ".shared .u32 x = 1;", ".param .u32 x = 1;", ".param .u32 x[];", ".param .align 8 .b8 x[16];", ".local .u32 x[];", ".global .u32 x;", ".global .u32 x = 4;", ".const .u32 x;", ".const .u32 x = 4;",
                 ".global .u32 x[];", ".reg .u32 x", ".reg u32 x;", "reg .u32 x;", ".reg .u32 x,;", ".reg .u32 x y;", ".sreg .u32 x;", ".sreg .b32 %x;", ".reg .pred x, y;", ".reg .b8 x;", ".reg .f16x2 x;", ".reg .tf32 x;", ".reg .e4m3x2 x;", ".shared .u32 x[2] = {1, 2};", ".tex .u32 x;"):  # fmt: skip
        yield entry(RULE, text, text)


VALUES = ("1", "-1", "0xff", "256", "65536", "4294967296", "-129", "0xffffffffffffffff", "1U", "1.5", "0f3F800000", "0d3FF0000000000000", "-1.5", "1e10", "{1}", "{1, 2}", "{}", "{{1}}", "g", "g+4", "g-4", "generic(g)", "generic(g)+4", "0xff(g)", "f",
          "k", "nosuch", "h", "\"a\"", "1+2", "(1)", "1 2", "", "v", "s", "c", "1?2:3", "~0", "!1", "1.5+1", "2*g", "g+h", "-g", "18446744073709551616", "0x1ffffffffffffffff", "WARP_SZ", "%r1", "1e400", "0f3F80000", "0d3FF", "09", "0x", "0b11", "017")  # fmt: skip
BEFORE = ".global .u32 g;\n.global .u32 h[4];\n.const .u32 c;\n.shared .u32 s;\n.func f() { ret; }\n"


def initial_values() -> Iterator[Case]:
    for value in VALUES:
        for kind in ("u8", "s16", "u32", "u64", "f32", "f64", "b64", "b32"):
            if kind in ("u32", "u64", "f32") or value in (
                "1",
                "256",
                "-129",
                "1.5",
                "g",
                "generic(g)",
                "0xff(g)",
                "0f3F800000",
                "4294967296",
                "f",
                "65536",
            ):
                yield module("initialisers", f".{kind} = {value}", f"{BEFORE}.global .{kind} v = {value};\n{KERNEL}")
    for text in (".global .u32 v[4] = {1, 2, 3, 4};", ".global .u32 v[4] = {1, 2, 3, 4, 5};", ".global .u32 v[4] = {1};", ".global .u32 v[4] = {};", ".global .u32 v[4] = 1;", ".global .u32 v[] = {1, 2};", ".global .u32 v[] = 1;", ".global .u32 v[2][2] = {{1, 2}, {3, 4}};", ".global .u32 v[2][2] = {1, 2, 3, 4};", ".global .u32 v[2][2] = {{1, 2, 3}, {4}};",
                 ".global .u32 v[2][2] = {{1, 2}};", ".global .u32 v[][2] = {{1, 2}, {3, 4}};", ".global .u32 v[2] = {{1}, {2}};", ".global .u32 v[2] = {1, 2,};", ".global .u32 v[2] = {1 2};", ".global .u32 v[2] = {1, 2;", ".global .u64 v[2] = {g, h};", ".global .u64 v[2] = {generic(g), generic(h)+4};", ".global .u8 v[8] = {0xff(g), 0xff00(g)};", ".global .u8 v[1] = {0xfff(g)};",
                 ".global .v2 .u32 v = {1, 2};", ".global .v4 .f32 v = {1.0, 2.0, 3.0, 4.0};", ".global .v2 .u32 v = {1, 2, 3};", ".global .v2 .u32 v = 1;", ".global .v2 .u32 v[2] = {{1, 2}, {3, 4}};", ".global .v2 .u32 v[2] = {1, 2, 3, 4};", ".const .u32 v = 5;", ".const .f64 v[2] = {1.0, 2.0};", ".const .u64 v = g;", ".const .u64 v = generic(c);", ".const .u64 v = c;", ".global .u64 v = c;", ".global .u64 v = generic(c);", ".global .u64 v = s;", ".global .u64 v = generic(s);", ".shared .u32 v = 1;", ".shared .u32 v[2] = {1, 2};",
                 ".global .f16 v = 1.0;", ".global .f16 v = 0x3C00;", ".global .b16 v = 0x3C00;", ".global .b128 v = 1;", ".global .b128 v = {1, 2};", ".global .bf16 v = 1.0;", ".global .f16x2 v = 0;", ".global .pred v = 1;", ".extern .global .u32 v = 1;", ".weak .global .u32 v = 1;", ".common .global .u32 v = 1;", ".visible .global .u32 v = 1;", ".global .u32 v = 1, w = 2;", ".global .u32 v, w = 2;", ".global .u32 v == 1;", ".global .u32 v = = 1;", ".global .u32 v 1;", ".global .u32 = 1;",
                 ".global .u64 v = later;\n.global .u32 later;", ".global .u64 v = k;", ".global .u64 v = f+4;", ".global .u64 v[2] = {f, 1};", ".global .u32 v[3] = {1, 1.5, 3};", ".global .f32 v[3] = {1, 1.5, 3};", ".global .f32 v[2] = {1, 2};", ".global .f64 v[2] = {0f3F800000, 0d3FF0000000000000};", ".global .f32 v[2] = {0d3FF0000000000000, 1.5};", ".global .u8 v[4] = \"abc\";", ".global .b8 v[3] = {256, -1, -200};", ".global .u16 v = g;", ".global .u32 v = generic(g);", ".global .u64 v = generic(g+4);", ".global .u64 v = generic(h[1]);", ".global .u64 v = h[1];", ".global .u64 v = generic(1);"):  # fmt: skip
        yield module("initialisers", text, f"{BEFORE}{text}\n{KERNEL}")


def opaque() -> Iterator[Case]:
    for kind in ("texref", "surfref", "samplerref"):
        for text in (f".global .{kind} v;", f".global .{kind} v[4];", f".global .{kind} v[];", f".global .{kind} v = {{ width = 4 }};", f".global .{kind} v = {{ filter_mode = nearest }};", f".global .{kind} v = {{ foo = 1 }};", f".global .{kind} v = 1;", f".global .{kind} v = {{ 1 }};", f".global .{kind} v = {{ width = 4, height = 5, depth = 6 }};", f".global .{kind} v = {{ width = wrap }};",
                     f".global .{kind} v = {{ addr_mode_0 = wrap, addr_mode_1 = clamp_to_edge, filter_mode = linear }};", f".global .align 16 .{kind} v;", f".global .v2 .{kind} v;", f".const .{kind} v;", f".shared .{kind} v;", f".extern .global .{kind} v;", f".visible .global .{kind} v;", f".global .{kind} v[2] = {{ {{ width = 4 }}, {{ width = 5 }} }};", f".global .{kind} v = {{ channel_data_type = 0x10, channel_order = 0x10 }};",
                     f".global .{kind} v = {{ normalized_coords = 1 }};", f".global .{kind} v = {{ force_unnormalized_coords = 1 }};", f".global .{kind} v = {{ width = 4, width = 5 }};", f".tex .{kind} v;", f".global .{kind} v, w;"):  # fmt: skip
            for mode in ("", ", texmode_independent"):
                yield module("opaque variables", text + mode, f"{text}\n{KERNEL}", target="sm_80" + mode)


def attributes() -> Iterator[Case]:
    for text in (".attribute(.managed) .u32 v;", ".attribute(.managed) .align 4 .u32 v[2] = {1, 2};", ".attribute(.unified(1, 2)) .u32 v;", ".attribute(.managed, .unified(1, 2)) .u32 v;", ".attribute(.foo) .u32 v;", ".attribute(.unified) .u32 v;", ".attribute(managed) .u32 v;", ".attribute() .u32 v;", ".attribute .u32 v;", ".align 4 .attribute(.managed) .u32 v;",
                 ".u32 .attribute(.managed) v;", ".attribute(.managed) .attribute(.managed) .u32 v;", ".attribute(.managed(1)) .u32 v;", ".attribute(.unified(1)) .u32 v;"):  # fmt: skip
        for space in ("global", "const", "shared"):
            yield module("attributes", f"{space} {text}", f".{space} {text}\n{KERNEL}")
