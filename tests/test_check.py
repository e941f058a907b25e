"""The checker: names, declarations, operands, and the typed IR it makes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import ptxemu
from ptxemu import isa
from ptxemu.check import check
from ptxemu.errors import Diagnostics, UnsupportedError
from ptxemu.ir import Addr, Function, Imm, LabelMark, Module, Op, Reg, SReg, SymRef, Variable, Vec
from ptxemu.source import SourceFile
from ptxemu.syntax import parse

HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
REGISTERS = """
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
    .reg .b128 %q<9>;
"""


def diagnose(text: str, *, strict: bool = False) -> tuple[Module, Diagnostics]:
    source = SourceFile("test.ptx", text)
    diagnostics = Diagnostics(source, strict)
    tree = parse(source, diagnostics)
    module = check(tree, source, diagnostics)
    return module, diagnostics


def load(text: str) -> Module:
    module, diagnostics = diagnose(HEADER + text)
    assert [record.render() for record in diagnostics.errors] == []
    return module


def errors(text: str) -> list[str]:
    return [record.message for record in diagnose(HEADER + text)[1].errors]


def body(statements: str, *, before: str = "", params: str = "") -> list[Op | LabelMark]:
    module = load(f"{before}\n.visible .entry k({params})\n{{{REGISTERS}{statements}\n}}")
    items = module.functions["k"].body
    assert items is not None
    return items


def operation(statement: str, **context: str) -> Op:
    (op,) = body(statement, **context)
    assert isinstance(op, Op)
    return op


def ops(statements: str, **context: str) -> list[Op]:
    return [item for item in body(statements, **context) if isinstance(item, Op)]


# ---------------------------------------------------------------- instructions


def test_plain_instruction() -> None:
    op = operation("@!%p1 add.sat.s32 %r1, %r2, -1;")
    assert op.opcode == "add" and op.mods == {"sat": "sat", "type": "s32"}
    (dst,), (a, b) = op.dsts, op.srcs
    assert isinstance(dst, Reg) and dst.name == "%r1" and isinstance(a, Reg) and a.name == "%r2"
    assert isinstance(b, Imm) and b.bits == 0xFFFFFFFF and b.type.name == "s32"
    assert [t.name for t in op.dst_types] == ["s32"] and [t.name for t in op.src_types if t] == ["s32", "s32"]
    assert op.guard is not None and op.guard[0].name == "%p1" and op.guard[1] is True


def test_modifier_order_is_free() -> None:
    first = operation("mul.rn.ftz.f32 %f1, %f2, %f3;")
    second = operation("mul.f32.ftz.rn %f1, %f2, %f3;")
    assert first.mods == second.mods and first.row is second.row


def test_two_type_slots_keep_their_order() -> None:
    op = operation("cvt.rn.f32.f64 %f1, %fd2;")
    assert [t.name for t in op.dst_types] == ["f32"] and [t.name for t in op.src_types if t] == ["f64"]


def test_registers_are_shared_within_a_function() -> None:
    first, second = ops("add.u32 %r1, %r2, %r2; add.u32 %r3, %r1, %r2;")
    assert first.dsts[0] is second.srcs[0] and first.srcs[0] is second.srcs[1]


def test_huge_register_range_is_lazy() -> None:
    items = body(".reg .b32 %x<1000000000>; mov.u32 %x999999999, %x0;")
    assert len(items) == 1
    assert errors(".entry k() { .reg .b32 %x<5>; mov.u32 %x5, %x0; }") == ["unknown name '%x5'; '.reg %x<5>' declares %x0 to %x4"]


def test_number_of_a_register_is_all_the_digits_at_its_end() -> None:
    op = operation(".reg .b64 %r1_<5>, %v<30>; mov.u64 %r1_04, %v029;")
    assert [reg.name for reg in (*op.dsts, *op.srcs) if isinstance(reg, Reg)] == ["%r1_4", "%v29"]
    (message,) = errors(".entry k() { .reg .b64 %v2<30>; mov.u64 %v229, 1; }")
    assert message.startswith("unknown name '%v229'")


def test_vector_load_and_store() -> None:
    load_op, store = ops("ld.global.v4.u32 {%r1, _, %r3, %r1}, [%rd1+16]; st.shared.v2.f32 [%r1-4], {%f1, 1.0};")
    assert [reg and reg.name for reg in load_op.dsts] == ["%r1", None, "%r3", "%r1"]
    assert load_op.mods == {"space": "global", "vec": "v4", "type": "u32"}
    assert load_op.srcs == (Addr(load_op.srcs[0].base, 16),)  # type: ignore[union-attr]
    address, value = store.srcs
    assert isinstance(address, Addr) and address.offset == -4
    assert isinstance(value, Vec) and value.items[1] == Imm(0x3F800000, store.src_types[1])  # type: ignore[arg-type]
    assert [t.name for t in load_op.dst_types] == ["u32"] * 4


def test_one_element_in_braces_is_a_scalar() -> None:
    first, second = ops("ld.global.u32 {%r1}, [%rd1]; st.global.u32 [%rd1], {%r1};")
    assert len(first.dsts) == 1 and isinstance(second.srcs[1], Reg)


def test_vector_registers() -> None:
    items = ops(".reg .v2 .f32 v; ld.global.v2.f32 v, [%rd1]; mov.f32 %f1, v.y; mov.f32 v.r, %f1; mov.b64 %rd2, v;")
    assert items[0].dsts[1] is items[1].srcs[0] and items[2].dsts[0] is items[0].dsts[0]
    assert isinstance(items[3].srcs[0], Vec) and items[3].srcs[0].items == items[0].dsts


def test_pack_and_unpack() -> None:
    pack, unpack = ops("mov.b64 %rd1, {%r1, %f1}; mov.b64 {%h1, _, %h2, %h3}, %rd1;")
    assert isinstance(pack.srcs[0], Vec) and pack.src_types[0] is not None and pack.src_types[0].name == "b32"
    assert [t.name for t in unpack.dst_types] == ["b16"] * 4 and unpack.dsts[1] is None


def test_pairs_and_negated_predicates() -> None:
    op = operation("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;")
    assert [reg and reg.name for reg in op.dsts] == ["%p1", "%p2"] and op.negs == (False, False, True)
    dropped = operation("setp.eq.u32 _|%p2, %r1, 0;")
    assert dropped.dsts[0] is None and dropped.negs == ()


def test_special_registers_and_warp_size() -> None:
    first, second, third = ops("mov.u32 %r1, %tid.x; mov.u64 %rd1, %clock64; mov.u32 %r2, WARP_SZ;")
    assert first.srcs == (SReg("tid.x"),) and second.srcs == (SReg("clock64"),)
    assert third.srcs == (Imm(32, third.src_types[0]),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("instruction", "bits"),
    [
        ("add.u32 %r1, %r1, 4294967296", 0),
        ("add.u32 %r1, %r1, -2147483649", 0x7FFFFFFF),
        ("add.s16 %h1, %h1, 65537", 1),
        ("add.u64 %rd1, %rd1, 18446744073709551615", 2**64 - 1),
        ("add.f32 %f1, %f1, 0d3FB999999999999A", struct.unpack("<I", struct.pack("<f", 0.1))[0]),
        ("add.f32 %f1, %f1, 0.1", struct.unpack("<I", struct.pack("<f", 0.1))[0]),
        ("add.f32 %f1, %f1, 1e39", 0x7F800000),
        ("add.f32 %f1, %f1, -1e39", 0xFF800000),
        ("add.f64 %fd1, %fd1, 0f3DCCCCCD", struct.unpack("<Q", struct.pack("<d", 0.10000000149011612))[0]),
        ("and.b32 %r1, %r1, 0f3F800000", 0x3F800000),
        ("and.pred %p1, %p2, 2", 1),
    ],
)
def test_literals(instruction: str, bits: int) -> None:
    literal = operation(instruction + ";").srcs[1]
    assert isinstance(literal, Imm) and literal.bits == bits


@pytest.mark.parametrize(
    "statement",
    [
        "ld.global.u8 %r1, [%rd1];",
        "ld.global.b8 %f1, [%rd1];",
        "ld.global.f32 %rd2, [%rd1];",
        "ld.global.b32 %fd1, [%rd1];",
        "st.global.u8 [%rd1], %rd2;",
        "cvt.u32.u8 %r1, %r2;",
        "cvt.u8.u32 %r1, %rd2;",
        "cvt.rn.f32.s32 %rd1, %r2;",
        "and.b32 %f1, %r1, %f2;",
        "add.f32 %r1, %f1, %r2;",
        "selp.b32 %f1, %r1, %f2, %p1;",
        "shl.b64 %rd1, %rd2, %r3;",
        "mul.wide.u32 %rd1, %r1, 5;",
        "mov.b128 %q1, {%rd1, %rd2};",
        "ld.shared.u32 %r1, [%r2];",
        "ld.local.u32 %r1, [%rd2];",
        "ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
        "ld.global.L1::evict_first.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
        "ld.mmio.relaxed.sys.global.u32 %r1, [%rd1];",
        "ld.global.v8.f32 {%f1, %f1, %f1, %f1, %f1, %f1, %f1, %f1}, [%rd1];",
        "st.release.gpu.global.u32 [%rd1], 1;",
        "ldu.global.v2.u32 {%r1, %r2}, [%rd1];",
        "prefetch.global.L2::evict_last [%rd1];",
        "prefetchu.L1 [%rd1];",
        "isspacep.shared::cta %p1, %rd1;",
        "isspacep.global %p1, %r1;",
        "istypep.surfref %p1, %rd1;",
        "cvta.to.global.u64 %rd1, %rd2;",
        "bar.sync %r1, 64;",
        "bar.cta.red.popc.u32 %r1, 0, 64, !%p1;",
        "barrier.cta.red.and.aligned.pred %p1, 0, %p2;",
        "barrier.arrive 3, 64;",
        "bar.warp.sync -1;",
        "membar.gl;",
        "fence.acq_rel.cluster;",
        "fence.sc.sys;",
        "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;",
        "shfl.sync.bfly.b32 %f1|%p1, %f2, 1, 31, -1;",
        "vote.sync.ballot.b32 %r1, !%p1, -1;",
        "match.all.sync.b64 %r1|%p1, %rd1, %r2;",
        "redux.sync.add.s32 %r1, %r2, -1;",
        "activemask.b32 %r1;",
        "nanosleep.u32 100;",
        "pmevent 3;",
        "trap;",
        "brkpt;",
        "exit;",
    ],
)
def test_accepted(statement: str) -> None:
    assert operation(statement).row.supported


@pytest.mark.parametrize(
    "statement",
    [
        "ld.global.f16 %h1, [%rd1];",
        "ld.volatile.local.u32 %r1, [%rd1];",
        "ld.relaxed.gpu.local.u32 %r1, [%rd1];",
        "ld.acquire.gpu.ca.u32 %r1, [%rd1];",
        "ld.nc.u32 %r1, [%rd1];",
        "ld.global.ca.L1::evict_last.u32 %r1, [%rd1];",
        "ld.shared.v8.u32 {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1}, [%rd1];",
        "ld.local.L1::evict_last.u32 %r1, [%rd1];",
        "ld.shared.L2::128B.u32 %r1, [%rd1];",
        "ld.global.v2.b128 {%q1, %q2}, [%rd1];",
        "ld.global.u32 _, [%rd1];",
        "ldu.shared.u32 %r1, [%rd1];",
        "prefetch.shared.L1 [%rd1];",
        "cvta.u64 %rd1, %rd2;",
        "cvta.to.global.u64 %rd1, %r2;",
        "fence.sc;",
        "bar.sync;",
        "shl.b32 %r1, %r2, %rd3;",
        "mul.wide.u32 %r1, %r2, %r3;",
        "and.b32 %r1, %p1, %r2;",
        "mov.b64 {%r1, %h2}, %rd1;",
        "bar.warp.sync %h1;",
        ".shared .f32 tile[4]; red.shared.add.v2.f32 [tile], {%f1, %f2};",
    ],
)
def test_rejected(statement: str) -> None:
    assert len(errors(f".entry k() {{ {REGISTERS} {statement} }}")) == 1


def test_generic_access_to_a_named_variable_takes_its_space() -> None:
    op = operation("ld.u32 %r1, [tile+4];", before=".shared .u32 tile[4];")
    assert op.mods["space"] == "shared"
    assert isinstance(op.srcs[0], Addr) and isinstance(op.srcs[0].base, SymRef) and op.srcs[0].base.offset == 4


def test_symbols_as_values() -> None:
    before = ".global .v2 .u32 words[4]; .shared .u32 tile; .func f() { ret; }"
    items = ops("mov.u64 %rd1, words+8; mov.u32 %r1, tile; mov.u64 %rd2, f; mov.u64 %rd3, words[2];", before=before)
    values = [op.srcs[0] for op in items]
    assert [(v.symbol.name, v.offset) for v in values if isinstance(v, SymRef)] == [
        ("words", 8), ("tile", 0), ("f", 0), ("words", 16),
    ]  # fmt: skip


def test_surface_operands() -> None:
    before = ".global .surfref s;"
    named, handle = ops(
        "suld.b.3d.v2.b16.trap {%h1, %h2}, [s, {%r1, %r2, 3, %r4}];sust.p.1d.b32.zero [%rd1, {%r1, %r2}], 0f3F800000;",
        before=before,
    )
    surface, coordinates = named.srcs
    assert isinstance(surface, SymRef) and surface.symbol.name == "s"
    assert isinstance(coordinates, Vec) and len(coordinates.items) == 3  # the fourth is not used
    assert isinstance(handle.srcs[0], Reg) and isinstance(handle.srcs[1], Vec) and len(handle.srcs[1].items) == 1
    assert isinstance(handle.srcs[2], Imm) and handle.srcs[2].bits == 0x3F800000
    assert len(named.srcs) == len(named.src_types) and len(handle.srcs) == len(handle.src_types)


def test_omitted_clamp_means_trap_with_a_warning() -> None:
    text = HEADER + f".global .surfref s; .entry k() {{ {REGISTERS} suld.b.1d.b32 {{%r1}}, [s, {{%r2}}]; }}"
    module, diagnostics = diagnose(text)
    (op,) = module.functions["k"].body or []
    assert isinstance(op, Op) and op.mods["clamp"] == "trap"
    assert [record.severity for record in diagnostics.records] == ["warning"]
    assert diagnose(text, strict=True)[1].errors


def test_unsupported_instruction_is_checked_but_marked() -> None:
    assert not operation("wgmma.fence.sync.aligned;").row.supported
    assert errors(f".entry k() {{ {REGISTERS} mbarrier.init.shared.b64 [nothing], 1; }}") == ["unknown name 'nothing'"]


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
        (".global .u8 x[2][2] = {{1, 2}, {3}};", b"\x01\x02\x03\x00"),
        (".global .u16 x = 65537;", b"\x01\x00"),
        (".const .f32 x[2] = {1.5, 0fBF800000};", struct.pack("<2f", 1.5, -1.0)),
        (".global .f64 x = 0d3FF0000000000000;", struct.pack("<d", 1.0)),
        (".global .b32 x = 0f3F800000;", struct.pack("<f", 1.0)),
        (".global .v2 .f32 x[2] = {{1.0, 2.0}, {3.0, 4.0}};", struct.pack("<4f", 1, 2, 3, 4)),
    ],
)
def test_initial_values(declaration: str, data: bytes) -> None:
    assert variable(declaration, "x").init == data


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
    assert table.init == bytes(32)


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
    assert module.variables["a"].init == struct.pack("<I", 7)


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

    isa.verify(Everything())
    assert "add" in isa.rows()


def test_verify_names_a_row_without_lowering() -> None:
    with pytest.raises(AssertionError, match="no lowering"):
        isa.verify(frozenset())


SAMPLES = sorted((Path(__file__).parent.parent / "samples").rglob("*.ptx"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_samples_check(path: Path) -> None:
    module, diagnostics = diagnose(path.read_text())
    assert diagnostics.records == [] and module.entries


def test_alignment_may_stand_before_the_state_space() -> None:
    module = load(".align 16 .global .u32 a; .visible .align 8 .global .b8 b[4]; .entry k(.align 8 .param .b8 p[16]) { ret; }")
    assert [module.variables[name].align for name in "ab"] == [16, 8]
    assert module.functions["k"].params[0].variable.align == 8


def test_fourth_component_of_a_special_register_is_zero() -> None:
    (op,) = ops("mov.u32 %r1, %tid.w;")
    assert isinstance(op.srcs[0], Imm) and op.srcs[0].bits == 0
    assert ops("mov.u32 %r1, %ctaid.b;")[0].srcs == (SReg("ctaid.z"),)


def test_what_only_ptxas_takes_is_unsupported() -> None:
    (op,) = ops("testp.f32 %p1, %f1;")
    assert not op.row.supported
    with pytest.raises(UnsupportedError):
        operation("mov.u16 %h1, s;", before=".shared .b32 s;")


def test_debug_targets_have_a_section() -> None:
    text = ".version 8.0\n.target sm_90, debug\n.address_size 64\n.entry k() { ret; }\n"
    assert [record.line for record in diagnose(text, strict=True)[1].errors] == [2]
    assert diagnose(text + ".section .debug_str { .b8 1 }\n", strict=True)[1].errors == []
    assert diagnose(text)[1].errors == []


def test_long_addresses() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 32\n.entry k() { ret; }\n"
    assert [record.line for record in diagnose(text, strict=True)[1].errors] == [3]
    with pytest.raises(UnsupportedError):
        diagnose(text)


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


def test_layouts_keep_their_order() -> None:
    form = (
        "mma.sync.aligned.m16n8k16.{}.f32.f16.f16.f32 {{%f1,%f2,%f3,%f4}}, {{%r1,%r2,%r3,%r4}}, {{%r5,%r6}}, {{%f1,%f2,%f3,%f4}};"
    )
    assert errors(f".entry k() {{{REGISTERS}{form.format('row.col')}}}") == []
    assert len(errors(f".entry k() {{{REGISTERS}{form.format('col.row')}}}")) == 1
