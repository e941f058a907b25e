"""The checker of modules: names, scopes, functions, variables, and the table."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

import ptxemu
from ptxemu import isa
from ptxemu.check import check
from ptxemu.ir.ops import Function, Imm, LabelMark, Op, Reg, Variable
from ptxemu.isa.table import Row, add_row
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.registry import lowerings
from ptxemu.syntax.parser import parse
from ptxemu.text.errors import Diagnostics, UnsupportedError
from ptxemu.text.source import SourceFile
from tests.front.check_helpers import HEADER, body, diagnose, errors, load, ops
from tests.support import places

# ---------------------------------------------------------------- scopes and labels


def test_nested_scopes_shadow() -> None:
    items = ops("""
        mov.u32 %r1, 1;
        { .reg .b32 %r1; mov.u32 %r1, 2; { .reg .u16 %r<3>; mov.u16 %r1, 3; mov.u32 %r4, 4; } mov.u32 %r1, 5; }
        mov.u32 %r1, 6; mov.u32 %r4, 7;
        { .reg .b32 %r1; mov.u32 %r1, 8; }
    """)
    outer, inner, narrow, four, again, back, four_again, other = (op.dsts[0] for op in items)
    assert outer is back and four is four_again and inner is again and inner is not outer and other is not inner
    assert narrow is not None and narrow.type.name == "u16"
    names = {reg.name for reg in (outer, inner, narrow, four, other) if reg is not None}
    assert len(names) == 5


def test_labels_are_scoped_and_unique() -> None:
    items = body("""
        bra L1;
        { L1: bra L1; bra L2; }
        L1: bra L1;
        L2: ret;
    """)
    marks = [item.name for item in items if isinstance(item, LabelMark)]
    targets = [item.labels[0] for item in items if isinstance(item, Op) and item.labels]
    inner, outer, second = marks
    assert len(set(marks)) == 3 and targets == [outer, inner, second, outer]


def test_branch_targets() -> None:
    op = ops("T: .branchtargets A, B, A; brx.idx.uni %r1, T; A: B: ret;")[0]
    assert op.labels == ("A", "B", "A") and op.row.lower == "brx" and op.mods["uni"] == "uni"
    assert isinstance(op.srcs[0], Reg)


def test_deep_nesting_does_not_recurse() -> None:
    depth = 200
    assert len(body("{" * depth + "mov.u32 %r1, 1;" + "}" * depth)) == 1


# ---------------------------------------------------------------- functions and calls


def test_parameter_offsets() -> None:
    params = ".param .u8 a, .param .u64 b, .param .align 16 .b8 c[20], .param .f32 d"
    params += ", .param .u64 .ptr .global .align 8 e"
    function = load(f".entry k({params}) {{ ret; }}").functions["k"]
    assert [(p.variable.name, p.offset, p.variable.size, p.variable.align) for p in function.params] == [
        ("a", 0, 1, 1), ("b", 8, 8, 8), ("c", 16, 20, 16), ("d", 36, 4, 4), ("e", 40, 8, 8),
    ]  # fmt: skip
    assert function.param_bytes == 48 and function.params[4].ptr == ("global", 8)


@pytest.mark.parametrize("pointed", ["surfref", "samplerref .align 8", "texref", "local"])
def test_what_pointers_of_kernels_point_to(pointed: str) -> None:
    function = load(f".entry k(.param .u64 .ptr .{pointed} a) {{ ret; }}").functions["k"]
    assert function.params[0].ptr == (pointed.split()[0], 8 if "align" in pointed else 0)


@pytest.mark.parametrize("pointed", ["u64", "param", "reg", "f32"])
def test_what_no_pointer_points_to(pointed: str) -> None:
    found = "".join(errors(f".entry k(.param .u64 .ptr .{pointed} a) {{ ret; }}"))
    assert "'.ptr' is for kernel parameters that point to" in found


def test_performance_directives() -> None:
    text = ".entry k() .maxntid 128, 2 .minnctapersm 3 { ret; } .entry q() .reqntid 64 { ret; }"
    functions = load(text).functions
    assert functions["k"].limits == {"maxntid": (128, 2, 1), "minnctapersm": (3,)}
    assert functions["q"].limits == {"reqntid": (64, 1, 1)}


FUNCTION = """
.func (.param .b32 out) f(.param .b32 in, .param .align 8 .b8 s[16]);
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
"""


def test_direct_call() -> None:
    items = ops(
        "{ .param .b32 a; .param .align 8 .b8 s[16]; .param .b32 r; call.uni (r), f, (a, s); call (%r1), f, (7, s); }",
        before=FUNCTION,
    )
    first, second = (op.call for op in items)
    assert first is not None and second is not None and first.uniform and not second.uniform
    assert isinstance(first.callee, Function) and first.callee.name == "f"
    assert [v.name for v in first.args if isinstance(v, Variable)] == ["k.a.1", "k.s.1"]
    assert isinstance(second.args[0], Imm) and second.args[0].bits == 7 and isinstance(second.returns[0], Reg)


def test_declared_functions_have_no_body_until_defined() -> None:
    module = load(FUNCTION + ".func (.param .b32 out) f(.param .b32 in, .param .align 8 .b8 s[16]) { ret; }")
    assert module.functions["vprintf"].body is None and module.functions["vprintf"].linkage == "extern"
    assert module.functions["f"].body is not None and module.entries == []


def test_indirect_calls() -> None:
    items = ops(
        """
        P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]);
        T: .calltargets f;
        .param .b32 a; .param .align 8 .b8 s[16]; .param .b32 r;
        call (r), %rd1, (a, s), P; call (r), %rd1, (a, s), T;
        """,
        before=FUNCTION,
    )
    first, second = (op.call for op in items)
    assert first is not None and first.prototype is not None and isinstance(first.callee, Reg) and first.targets is None
    assert [len(part) for part in first.prototype] == [2, 1]
    assert second is not None and second.targets is not None and [f.name for f in second.targets] == ["f"]


def test_register_parameters_travel_in_parameter_memory() -> None:
    module = load(".func (.reg .u32 r) f(.reg .u32 a) { .reg .pred p; @p ret; add.u32 r, a, 1; }")
    function = module.functions["f"]
    listing = [(item.opcode, item.guard is not None) for item in function.body or [] if isinstance(item, Op)]
    assert listing == [("ld", False), ("st", True), ("ret", True), ("add", False), ("st", False)]
    assert [v.space for v in (function.params[0].variable, function.returns[0])] == ["param", "param"]


def test_dropped_result_and_variadic_argument() -> None:
    before = ".func (.param .b32 r) f(.param .b32 n, .param .align 8 .b8 rest[]);"
    call = ops(".param .b32 n; .param .align 8 .b8 v[24]; call (_), f, (n, v);", before=before)[0].call
    assert call is not None and isinstance(call.returns[0], Reg) and call.returns[0].type.name == "b32"


def test_alias() -> None:
    module = load(".func f() { ret; }\n.alias g, f;\n.entry k() { call g; ret; }")
    assert module.functions["g"] is module.functions["f"]


# ---------------------------------------------------------------- variables


def variable(text: str, name: str) -> Variable:
    return load(text).variables[name]


def test_sizes_and_alignments() -> None:
    text = ".global .v4 .f32 a[3]; .shared .align 16 .b8 b[2][5]; .extern .shared .align 8 .u64 c[]; .const .u16 d;"
    module = load(text)
    found = {name: (v.space, v.size, v.align, v.dims) for name, v in module.variables.items()}
    assert found == {
        "a": ("global", 48, 16, (3,)), "b": ("shared", 10, 16, (2, 5)), "c": ("shared", 0, 8, (None,)),
        "d": ("const", 2, 2, ()),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("declaration", "data"),
    [
        (".global .u8 x[] = {1, 2, -1};", b"\x01\x02\xff"),
        (".global .u8 x[0] = {1, 2, -1};", b"\x01\x02\xff"),
        (".global .u8 x[2][2] = {{1, 2}, {3}};", b"\x01\x02\x03"),
        (".global .u16 x = 65537;", b"\x01\x00"),
        (".const .f32 x[2] = {1.5, 0fBF800000};", struct.pack("<2f", 1.5, -1.0)),
        (".global .f64 x = 0d3FF0000000000000;", struct.pack("<d", 1.0)),
        (".global .b32 x = 0f3F800000;", struct.pack("<f", 1.0)),
        (".global .v2 .f32 x[2] = {{1.0, 2.0}, {3.0, 4.0}};", struct.pack("<4f", 1, 2, 3, 4)),
    ],
)
def test_initial_values(declaration: str, data: bytes) -> None:
    assert variable(declaration, "x").init == [(0, data)]


def test_relocations() -> None:
    module = load("""
        .func f() { ret; }
        .func g() { ret; }
        .global .u32 word;
        .global .u64 table[4] = {f, g, word+8, generic(word)};
        .global .u8 bytes[2] = {0xff(word), 0xff00(word)};
    """)
    table, small = module.variables["table"], module.variables["bytes"]
    assert [(r.offset, r.size, r.target.name, r.addend, r.generic) for r in table.relocs] == [
        (0, 8, "f", 0, False), (8, 8, "g", 0, False), (16, 8, "word", 8, False), (24, 8, "word", 0, True),
    ]  # fmt: skip
    assert [(r.offset, r.size, r.shift) for r in small.relocs] == [(0, 1, 0), (1, 1, 8)]
    assert table.init == []


def test_opaque_initialisers() -> None:
    module = load("""
        .global .surfref s[2] = { { width = 3, height = -4 }, { array_size = 0x10 } };
        .global .samplerref t = { addr_mode_0 = clamp_to_border, filter_mode = linear };
    """)
    assert module.variables["s"].fields == [{"width": 3, "height": -4}, {"array_size": 16}]
    assert module.variables["t"].fields == [{"addr_mode_0": 2, "filter_mode": 1}]


def test_function_scope_variables() -> None:
    module = load(".entry k() { .shared .u32 a; .local .align 8 .b8 b[24]; { .param .b32 c; } ret; }")
    found = {v.name: (v.space, v.size, v.owner) for v in module.functions["k"].variables}
    assert found == {"k.a": ("shared", 4, "k"), "k.b": ("local", 24, "k"), "k.c.1": ("param", 4, "k")}
    assert module.variables == {}


@pytest.mark.parametrize("declaration", [".u32 x = 1", ".surfref x = {}"])
def test_extern_variables_have_no_initial_value(declaration: str) -> None:
    _, diagnostics = diagnose(HEADER + f".extern .global {declaration};")
    assert [record.message for record in diagnostics.records] == ["'x' is .extern and cannot have an initial value"]


def test_an_unknown_target_is_one_error() -> None:
    records = ptxemu.lint(".version 9.0\n.target sm_81\n.address_size 64\n.entry k() { mov.b32 %r1, 0; ret; }", strict=True)
    assert [record.line for record in records] == [2, 4]


def test_every_architecture_of_the_target_is_looked_at() -> None:
    records = ptxemu.lint(".version 5.0\n.target sm_50, sm_80\n.entry k() { ret; }", strict=True)
    assert [record.message for record in records] == ["'sm_80' needs PTX 7.0 (.version is 5.0)"]


def test_extern_beside_its_definition() -> None:
    module = load(".extern .global .u32 a;\n.visible .global .u32 a = 7;\n.extern .global .u32 a;")
    assert module.variables["a"].init == [(0, struct.pack("<I", 7))]


# ---------------------------------------------------------------- the module and the table


def test_32_bit_modules_are_unsupported() -> None:
    with pytest.raises(UnsupportedError, match=r"test\.ptx:3: 32-bit addresses"):
        diagnose(".version 8.0\n.target sm_80\n.address_size 32\n.entry k() { ret; }")


def test_missing_header() -> None:
    messages = [record.message for record in diagnose(".global .u32 a;")[1].errors]
    assert any(".version" in message for message in messages)


def test_errors_stop_at_the_limit() -> None:
    _, diagnostics = diagnose(HEADER + ".entry k() {" + "\n".join(f"nonsense{i};" for i in range(1000)) + "}")
    assert diagnostics.full and len(diagnostics.errors) < 30


def test_every_row_is_well_formed() -> None:
    class Everything:
        def __contains__(self, name: object) -> bool:
            return True

    isa.verify(Everything(), Everything())
    assert "add" in isa.rows()


def test_every_row_has_a_lowering() -> None:
    isa.verify(lowerings(), ELEMENTWISE)


def test_rows_are_made_for_the_opcodes_that_a_program_has() -> None:
    program = "from ptxemu.driver import compile; from ptxemu.isa import table; "
    program += f"compile.front({HEADER + '.entry k() { ret; }'!r}); made = table.ROWS._made; print('ret' in made, len(made))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert found[0] == "True" and int(found[1]) < 20


def test_verify_names_a_row_without_lowering() -> None:
    with pytest.raises(AssertionError, match="no lowering"):
        isa.verify(frozenset(), frozenset())


def test_verify_names_a_row_that_does_not_say_what_it_does() -> None:
    table: dict[str, list[Row]] = {}
    add_row(table, "peek", "type=u32", "d:type, [a]:type", lower="ld")
    with pytest.raises(AssertionError, match=r"does=.* is missing in row: peek type=u32"):
        isa.verify({"ld"}, frozenset(), table)
    isa.verify({"ld"}, {"ld"}, table)


def test_effects_name_operands_of_their_row() -> None:
    table: dict[str, list[Row]] = {}
    add_row(table, "peek", "type=u32", "d:type, [a]:type", lower="ld", does="reads [p] as d")
    with pytest.raises(AssertionError, match="no operand 'p' of its effects in row: peek"):
        isa.verify({"ld"}, frozenset(), table)


SAMPLES = sorted(places.SAMPLES.rglob("*.ptx"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_samples_check(path: Path) -> None:
    module, diagnostics = diagnose(path.read_text())
    assert diagnostics.records == [] and module.entries


def test_alignment_may_stand_before_the_state_space() -> None:
    module = load(".align 16 .global .u32 a; .visible .align 8 .global .b8 b[4]; .entry k(.align 8 .param .b8 p[16]) { ret; }")
    assert [module.variables[name].align for name in "ab"] == [16, 8]
    assert module.functions["k"].params[0].variable.align == 8


def test_debug_targets_have_a_section() -> None:
    text = ".version 8.0\n.target sm_90, debug\n.address_size 64\n.entry k() { ret; }\n"
    assert [record.line for record in diagnose(text, strict=True)[1].errors] == [2]
    assert diagnose(text + ".section .debug_str { .b8 1 }\n", strict=True)[1].errors == []
    assert diagnose(text)[1].errors == []


@pytest.mark.parametrize(("version", "accepted"), [("5.0", False), ("5.1", True), ("6.0", True)])
def test_version_5_1_is_6_0(version: str, accepted: bool) -> None:
    text = f".version {version}\n.target sm_60\n.address_size 64\n.entry k() {{ barrier.sync 0; ret; }}\n"
    assert (diagnose(text, strict=True)[1].errors == []) is accepted


def test_unknown_label_before_a_syntax_error_outside() -> None:
    diagnostics = Diagnostics(SourceFile("test.ptx", HEADER + ".entry k()\n{\nbra L;\n}\nret;\n"))
    tree = parse(diagnostics.source, diagnostics)
    diagnostics.next_stage()
    check(tree, diagnostics.source, diagnostics)
    assert sorted(record.line for record in diagnostics.errors)[0] == 6
