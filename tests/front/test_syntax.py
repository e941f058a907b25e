"""The parser: what the tree holds for each piece of PTX's syntax."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from ptxemu.syntax import ast
from tests.front.syntax_helpers import CORPUS, HEADER, in_kernel, operand, parse_text, read, statements, variable


def instruction(text: str) -> ast.Instruction:
    [node] = statements(text)
    assert isinstance(node, ast.Instruction)
    return node


def names(items: object) -> list[str]:
    return [item.text for item in items]  # type: ignore[attr-defined]


# ---------------------------------------------------------------- modules


def test_header() -> None:
    module = read("// c\n.version 8.7\n.target sm_90a, texmode_independent\n.address_size 32\n")
    assert (module.version, module.target, module.address_size) == ((8, 7), ("sm_90a", "texmode_independent"), 32)
    assert (module.version_pos, module.target_pos) == (5, 18)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_corpus_parses(path: Path) -> None:
    text = path.read_text()
    module = read(text)
    functions = [item for item in module.items if isinstance(item, ast.Function)]
    assert len(functions) == text.count(".entry") + text.count(".func ")
    assert module.version
    assert module.target


def test_the_corpus_is_there() -> None:
    assert len(CORPUS) >= 40


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
def test_line_ends_byte_order_mark_and_trailing_nul(newline: str) -> None:
    text = "\ufeff" + in_kernel("ret;").replace("\n", newline).rstrip() + "\0\0"
    [function] = read(text).items
    assert isinstance(function, ast.Function)
    assert text[function.pos :].startswith(".visible")


def test_comments_preprocessor_lines_and_debug_data_are_blank() -> None:
    module = read(
        HEADER
        + '# 1 "k.cu"\n/* é ; { */ .global .u32 a; // } é\n@@DWARF .byte 1, 2\n'
        + ".section .debug_info {\n.b8 1, 2 // x\nlabel:\n.b32 .debug_abbrev+4\n.b64 a-b\n}\n.global .u32 b;"
    )
    assert [item.name for item in module.items if isinstance(item, ast.Variable)] == ["a", "b"]


def test_files_locations_pragmas_and_aliases() -> None:
    module = read(
        HEADER + '.file 1 "a\\"b.cu", 12, 34\n.pragma "first", "second";\n.func f() { ret; }\n.func g();\n.alias g, f;\n'
    )
    assert module.files == {1: 'a"b.cu'}
    pragma, _, _, alias = module.items
    assert isinstance(pragma, ast.Pragma)
    assert pragma.texts == ("first", "second")
    assert isinstance(alias, ast.Alias)
    assert (alias.name.text, alias.target.text) == ("g", "f")


def test_loc_is_attached_to_the_instructions_that_follow() -> None:
    text = HEADER + (
        ".func f() {\n.loc 1 2 3\nadd.s32 a, b, c;\nL: .loc 1 9 1, function_name $f+4, inlined_at 1 7 8\n sub.s32 a, b, c;"
        "\n mul.lo.s32 a, b, c;\n}\n.func g() {\nret;\n}\n"
    )
    module = read(text)
    assert module.locs == [(1, 2, 3, 0), (1, 9, 1, 0)]
    f, g = module.items
    assert isinstance(f, ast.Function) and isinstance(g, ast.Function) and f.body and g.body
    assert [node.loc for node in f.body.body if isinstance(node, ast.Instruction)] == [1, 2, 2]
    assert [node.loc for node in g.body.body if isinstance(node, ast.Instruction)] == [0]


# ---------------------------------------------------------------- variables


def test_variable_fields() -> None:
    node = variable(".visible .global .attribute(.managed, .unified(1, 2)) .align 16 .v4 .f32 a$[2][WARP_SZ] = {};")
    assert (node.name, node.space, node.type, node.vector, node.align) == ("a$", "global", "f32", 4, 16)
    assert (node.dims, node.count, node.linkage) == ((2, 32), None, "visible")
    assert node.attributes == ("managed", "unified(1, 2)")
    assert isinstance(node.init, ast.InitList)
    assert node.init.items == ()


def test_several_variables_in_one_declaration() -> None:
    text = in_kernel(".reg .b32 %a, %r<12>, c; .shared .align 4 .b8 s[8], t[];")
    [function] = read(text).items
    assert isinstance(function, ast.Function) and function.body
    found = [node for node in function.body.body if isinstance(node, ast.Variable)]
    assert [(node.name, node.count, node.dims, node.align) for node in found] == [
        ("%a", None, (), 0),
        ("%r", 12, (), 0),
        ("c", None, (), 0),
        ("s", None, (8,), 4),
        ("t", None, (None,), 4),
    ]
    assert [text[node.pos : node.end] for node in found] == ["%a", "%r<12>", "c", "s[8]", "t[]"]


@pytest.mark.parametrize("space", ["const", "global", "shared", "tex"])
@pytest.mark.parametrize("linkage", ["", "extern", "visible", "weak", "common"])
def test_spaces_and_linkage(space: str, linkage: str) -> None:
    node = variable(f"{'.' if linkage else ''}{linkage} .{space} .b64 x;")
    assert (node.space, node.linkage) == (space, linkage)


def scalars(text: str) -> list[tuple[object, ...]]:
    init = variable(f".global .u64 x[] = {text};").init
    assert isinstance(init, ast.InitList)
    return [_summary(item) for item in init.items if isinstance(item, ast.Init)]


def _summary(item: ast.Init) -> tuple[object, ...]:
    value = item.value
    if isinstance(value, ast.Offset):
        return (value.base.text, value.offset, item.generic, item.mask, item.name)
    return (getattr(value, "text", getattr(value, "value", None)), 0, item.generic, item.mask, item.name)


def test_initialisers() -> None:
    assert scalars("{118, 0, 5, 6, 7}") == [(n, 0, False, None, None) for n in (118, 0, 5, 6, 7)]
    assert scalars("{1, 017, 0x1F, -2, (1<<3)+2}") == [(n, 0, False, None, None) for n in (1, 15, 31, -2, 10)]
    assert [value for value, *_ in scalars("{-1, 0, 0, 1+1, 2, 3, - 4 , 5, 6}")] == [-1, 0, 0, 2, 2, 3, -4, 5, 6]
    assert scalars("{f, f+8, f-8}") == [("f", n, False, None, None) for n in (0, 8, -8)]
    assert scalars("{generic(s), generic(s)+4, generic(s) - 4}") == [("s", n, True, None, None) for n in (0, 4, -4)]
    assert scalars("{0xff(s), 0xff00(generic(s)), 0xff0000(s+4)}") == [
        ("s", 0, False, 0xFF, None),
        ("s", 0, True, 0xFF00, None),
        ("s", 4, False, 0xFF0000, None),
    ]


def test_nested_and_scalar_initialisers() -> None:
    init = variable(".global .u32 x[2][2] = {{1, 2}, {3, 4}};").init
    assert isinstance(init, ast.InitList)
    assert [[i.value.value for i in row.items] for row in init.items] == [[1, 2], [3, 4]]  # type: ignore[union-attr]
    first, second = read(HEADER + ".global .u32 b = 3, c = 4;").items
    assert first.init.value.value == 3  # type: ignore[union-attr]
    assert second.init.value.value == 4  # type: ignore[union-attr]


def test_named_initialisers_of_opaque_types() -> None:
    init = variable(".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = 1, width = -4 };").init
    assert isinstance(init, ast.InitList)
    assert [_summary(item) for item in init.items] == [  # type: ignore[arg-type]
        ("clamp_to_border", 0, False, None, "addr_mode_0"),
        (1, 0, False, None, "filter_mode"),
        (-4, 0, False, None, "width"),
    ]


# ---------------------------------------------------------------- functions


def test_entry() -> None:
    text = HEADER + (
        ".weak .entry k(\n .param .u64 .ptr .global .align 16 a,\n .param .b64 .ptr b,\n .param .align 8 .b8 c[16],\n"
        " .param .surfref d, .param .u64 .ptr .texref e,\n .param .b64 .ptr .samplerref .align 4 f\n"
        ') .maxntid 128, 2 .minnctapersm 2 .explicitcluster .pragma "nounroll"; { ret; }\n'
    )
    [node] = read(text).items
    assert isinstance(node, ast.Function)
    assert (node.kind, node.name, node.linkage, node.returns) == ("entry", "k", "weak", ())
    assert [(p.name, p.type, p.ptr, p.align, p.dims) for p in node.params] == [
        ("a", "u64", ("global", 16), 0, ()),
        ("b", "b64", ("", 0), 0, ()),
        ("c", "b8", None, 8, (16,)),
        ("d", "surfref", None, 0, ()),
        ("e", "u64", ("texref", 0), 0, ()),
        ("f", "b64", ("samplerref", 4), 0, ()),
    ]
    assert [(d.name, d.values) for d in node.directives] == [
        ("maxntid", (128, 2)),
        ("minnctapersm", (2,)),
        ("explicitcluster", ()),
        ("pragma", ("nounroll",)),
    ]
    assert text[node.pos : node.end] == text[text.index(".weak") :].rstrip()
    assert text[node.name_pos :].startswith("k(")


def test_functions() -> None:
    items = read(
        HEADER
        + ".extern .func (.param .b32 r) vprintf\n(\n.param .b64 a,\n.param .b64 b\n)\n;\n.func none { exit; }\n"
        + ".func .attribute(.unified(1, 2)) (.reg .u32 r) g(.reg .u32 a) .noreturn { ret; }\n"
    ).items
    vprintf, none, g = (item for item in items if isinstance(item, ast.Function))
    assert vprintf.body is None
    assert [p.name for p in vprintf.returns + vprintf.params] == ["r", "a", "b"]
    assert none.params == ()
    assert [(d.name, d.values) for d in g.directives] == [("attribute", ("unified(1, 2)",)), ("noreturn", ())]
    assert [(p.space, p.name) for p in g.returns + g.params] == [("reg", "r"), ("reg", "a")]


# ---------------------------------------------------------------- statements


def test_instruction_and_its_positions() -> None:
    text = in_kernel("@!%p1 ld.global.L1::no_allocate.L2::128B.v2.f32 {%f1, _}, [%rd1+-8] ;")
    [function] = read(text).items
    assert isinstance(function, ast.Function) and function.body
    [node] = function.body.body
    assert isinstance(node, ast.Instruction)
    assert (node.opcode, node.modifiers) == ("ld", ("global", "L1::no_allocate", "L2::128B", "v2", "f32"))
    assert node.guard
    assert (node.guard[0].text, node.guard[1]) == ("%p1", True)
    assert text[node.pos : node.end].startswith("@!%p1 ld")
    assert text[node.pos : node.end].endswith(" ;")
    assert text[node.opcode_pos : node.opcode_end] == "ld.global.L1::no_allocate.L2::128B.v2.f32"
    assert [text[item.pos : item.end] for item in node.operands] == ["{%f1, _}", "[%rd1+-8]"]


@pytest.mark.parametrize(
    ("text", "opcode", "modifiers"),
    [
        ("suld.b.a2d.v4.b16.trap x;", "suld", ("b", "a2d", "v4", "b16", "trap")),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 x;", "mma", None),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [b, {c, d}], [e];", "cp", None),
        ("mov .u32 %r1, 1;", "mov", ("u32",)),
        ("ld /* c */ .global .u32 %r1, [a];", "ld", ("global", "u32")),
        ("suld .b .1d .b32 .zero %r1, [a, {b}];", "suld", ("b", "1d", "b32", "zero")),
        ("ret;", "ret", ()),
    ],
)
def test_opcodes(text: str, opcode: str, modifiers: tuple[str, ...] | None) -> None:
    node = instruction(text)
    assert node.opcode == opcode
    assert modifiers is None or node.modifiers == modifiers


def test_calls() -> None:
    node = instruction("call.uni (a), \n f, \n (b, 5, %r1)\n, proto;")
    results, function, arguments, prototype = node.operands
    assert isinstance(results, ast.Group) and isinstance(arguments, ast.Group)
    assert names(results.items) == ["a"]
    assert isinstance(function, ast.Name) and isinstance(prototype, ast.Name)
    assert isinstance(arguments.items[1], ast.Int)
    assert instruction("call f;").operands == (ast.Name("f", *_span("call f;", "f")),)
    assert isinstance(instruction("call (), f, ();").operands[0], ast.Group)


def _span(body: str, word: str) -> tuple[int, int]:
    pos = in_kernel(body).index(body) + body.rindex(word)
    return pos, pos + len(word)


def test_prototype_without_semicolon() -> None:
    """Compilers up to CUDA 4 end a prototype so."""
    text = f"""{HEADER}
.extern .func (.param .s32 r) f (.param .s32 a)
.visible .func g (.param .s32 a) .noreturn
.file 1 "old.cu"
.global .u32 x;
.func h ()"""
    f, g, x, h = read(text).items
    assert isinstance(f, ast.Function) and isinstance(g, ast.Function) and isinstance(h, ast.Function)
    assert isinstance(x, ast.Variable) and not f.body and not g.body and not h.body
    assert (f.linkage, f.name, [d.name for d in g.directives], x.name) == ("extern", "f", ["noreturn"], "x")


def test_labels_targets_and_prototypes() -> None:
    first, second, targets, calls, prototype, last, ret = statements(
        "A: $B :\nT: .branchtargets A, $B;\nC: .calltargets f;\n"
        "P: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 4 .b8 _[8]);\n"
        "Q: .callprototype _ () .noreturn;\nret;"
    )
    assert isinstance(first, ast.Label) and isinstance(second, ast.Label)
    assert (first.name, second.name) == ("A", "$B")
    assert isinstance(targets, ast.TargetList) and isinstance(calls, ast.TargetList)
    assert (targets.name, targets.kind, names(targets.targets)) == ("T", "branchtargets", ["A", "$B"])
    assert calls.kind == "calltargets"
    assert isinstance(prototype, ast.Prototype) and isinstance(last, ast.Prototype)
    assert (prototype.noreturn, last.noreturn) == (False, True)
    assert [p.type for p in prototype.returns + prototype.params] == ["b32", "b64", "b8"]
    assert isinstance(ret, ast.Instruction)


def test_scopes() -> None:
    outer, last = statements("{ .reg .b32 t; { mov.b64 {t, t}, 5; L: } } ret;")
    assert isinstance(outer, ast.Block) and isinstance(last, ast.Instruction)
    declaration, inner = outer.body
    assert isinstance(declaration, ast.Variable) and isinstance(inner, ast.Block)
    assert [type(node) for node in inner.body] == [ast.Instruction, ast.Label]


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("017", 15), ("0b101", 5), ("0B11", 3), ("0x1F", 31), ("0XfF", 255), ("4294967295", 2**32 - 1),
        ("0x1ffffffffffffffff", 0x1FFFFFFFFFFFFFFFF), ("-1", -1), ("- 5", -5), ("--5", 5), ("+5", 5), ("~0", -1),
        ("!0", 1), ("!7", 0), ("(5)", 5), ("((5))", 5), ("(1<<3)+2", 10), ("7/-2", -3), ("-7 % 3", -1), ("7-3-2", 2),
        ("1+2*3", 7), ("1|2^3&2", 1 | (2 ^ (3 & 2))), ("1<2", 1), ("3>=4", 0), ("1==1 && 2!=2", 0), ("0||3", 1),
        ("1 ? 2 : 3", 2), ("0 ? 2 : 0 ? 3 : 4", 4), ("WARP_SZ*2", 64), ("-9223372036854775808", -(2**63)),
        ("-1 >> 1", -1), ("1.5 < 2.5", 1), ("(.s64)0xffffffffffffffff", -1), ("-0x8000000000000000", -(2**63)),
    ],
)  # fmt: skip
def test_signed_constants(text: str, value: int) -> None:
    node = operand(text)
    assert isinstance(node, ast.Int)
    assert (node.value, node.unsigned) == (value, False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5U", 5), ("0x10U", 16), ("-1U", 2**64 - 1), ("~0U", 2**64 - 1), ("(.u64)-1", 2**64 - 1), ("5-6U", 2**64 - 1),
        ("-1 + 0U", 2**64 - 1), ("0xffffffffffffffff >> 60", 15), ("-1U / 2", (2**64 - 1) // 2),
    ],
)  # fmt: skip
def test_unsigned_constants(text: str, value: int) -> None:
    node = operand(text)
    assert isinstance(node, ast.Int)
    assert (node.value, node.unsigned) == (value, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5), ("5.", 5.0), (".5", 0.5), ("1e3", 1e3), ("1.0E-3", 1e-3), ("-2.5", -2.5), ("0.1", 0.1),
        ("1.5*2.0-1.0", 2.0), ("1 ? 2.0 : 3.0", 2.0), ("7.0/2.0", 3.5), ("-0d3FF0000000000000", -1.0),
    ],
)  # fmt: skip
def test_double_constants(text: str, value: float) -> None:
    node = operand(text)
    assert isinstance(node, ast.Float)
    assert (node.bits, node.width) == (int.from_bytes(struct.pack("<d", value), "little"), 64)


def test_exact_floats() -> None:
    single, double = operand("0f7Fc00001"), operand("0D7FF0000000000001")
    assert isinstance(single, ast.Float) and isinstance(double, ast.Float)
    assert (single.bits, single.width) == (0x7FC00001, 32)
    assert (double.bits, double.width) == (0x7FF0000000000001, 64)


@pytest.mark.parametrize(
    ("text", "base", "offset"),
    [
        ("[%r1]", "%r1", 0), ("[ %r1 + 0 ]", "%r1", 0), ("[%r1+8]", "%r1", 8), ("[%r1+-8]", "%r1", -8),
        ("[%r1-8]", "%r1", -8), ("[a+4*2+1]", "a", 9), ("[a+(8)]", "a", 8), ("[a+4-8]", "a", -4), ("[a+0x10]", "a", 16),
    ],
)  # fmt: skip
def test_addresses(text: str, base: str, offset: int) -> None:
    node = operand(text)
    assert isinstance(node, ast.Address)
    assert isinstance(node.base, ast.Name)
    assert (node.base.text, node.offset, node.rest) == (base, offset, ())


def test_other_operands() -> None:
    absolute = operand("[16]")
    assert isinstance(absolute, ast.Address) and isinstance(absolute.base, ast.Int)
    texture = operand("[t, s, {%f1, %f2}]")
    assert isinstance(texture, ast.Address)
    assert [type(item) for item in texture.rest] == [ast.Name, ast.Vector]
    offset = operand("table+16-4")
    assert isinstance(offset, ast.Offset)
    assert (offset.base.text, offset.offset) == ("table", 12)
    index = operand("table[3]")
    assert isinstance(index, ast.Index) and isinstance(index.index, ast.Int)
    negated = operand("!%p1")
    assert isinstance(negated, ast.Not)
    assert negated.operand.text == "%p1"
    assert isinstance(operand("-%r1"), ast.Neg)
    assert isinstance(operand("_"), ast.Sink)
    member = operand("%tid.x")
    assert isinstance(member, ast.Name)
    assert member.text == "%tid.x"
    pair = operand("%p|_")
    assert isinstance(pair, ast.Pair) and isinstance(pair.first, ast.Name) and isinstance(pair.second, ast.Sink)
    vector = operand("{%r1, 2, -3, _, 0f00000000}")
    assert isinstance(vector, ast.Vector)
    assert [type(item) for item in vector.items] == [ast.Name, ast.Int, ast.Int, ast.Sink, ast.Float]


def test_string_escapes() -> None:
    [pragma] = read(HEADER + r'.pragma "a\n\t\"\\\x41\102\q";').items
    assert isinstance(pragma, ast.Pragma)
    assert pragma.texts == ('a\n\t"\\ABq',)


def test_identifiers() -> None:
    body = "mov.u32 _a, $b; mov.u32 %c$1, a$b_9; mov.u32 %_, WARP;"
    found = [[item.text for item in node.operands] for node in statements(body)]  # type: ignore[union-attr]
    assert found == [["_a", "$b"], ["%c$1", "a$b_9"], ["%_", "WARP"]]


def test_a_module_without_anything() -> None:
    assert parse_text("") == (ast.Module(), [])
