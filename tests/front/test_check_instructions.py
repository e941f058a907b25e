"""The checker of instructions: operands, and the typed IR it makes."""

from __future__ import annotations

import struct

import pytest

from ptxemu.ir.ops import Addr, Imm, Op, Reg, SReg, SymRef, Vec
from ptxemu.text.errors import UnsupportedError
from tests.front.check_helpers import HEADER, REGISTERS, body, diagnose, errors, operation, ops


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
        "ld.volatile.const.u32 %r1, [%rd1];",
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
    assert not operation("fabric.submit;").row.supported
    assert errors(f".entry k() {{ {REGISTERS} mbarrier.init.shared.b64 [nothing], 1; }}") == ["unknown name 'nothing'"]


def test_fourth_component_of_a_special_register_is_zero() -> None:
    (op,) = ops("mov.u32 %r1, %tid.w;")
    assert isinstance(op.srcs[0], Imm) and op.srcs[0].bits == 0
    assert ops("mov.u32 %r1, %ctaid.b;")[0].srcs == (SReg("ctaid.z"),)


def test_what_only_ptxas_takes_is_unsupported() -> None:
    (op,) = ops("testp.f32 %p1, %f1;")
    assert not op.row.supported
    with pytest.raises(UnsupportedError):
        operation("mov.u16 %h1, s;", before=".shared .b32 s;")


def test_only_stores_of_256_bits_leave_out_elements() -> None:
    text = ".version 8.8\n.target sm_100\n.address_size 64\n.entry k() {{ {} {} }}"
    wide, narrow = "st.v8.b32 [%rd1], {%r1, _, 7, _, _, _, _, %r2};", "st.v4.b32 [%rd1], {%r1, _, 7, %r2};"
    assert not diagnose(text.format(REGISTERS, wide))[1].errors
    assert len(diagnose(text.format(REGISTERS, narrow))[1].errors) == 1
    assert len(diagnose(text.format(REGISTERS, "st.v4.b64 [%rd1], {_, _, _, _};"))[1].errors) == 1


def test_layouts_keep_their_order() -> None:
    form = (
        "mma.sync.aligned.m16n8k16.{}.f32.f16.f16.f32 {{%f1,%f2,%f3,%f4}}, {{%r1,%r2,%r3,%r4}}, {{%r5,%r6}}, {{%f1,%f2,%f3,%f4}};"
    )
    assert errors(f".entry k() {{{REGISTERS}{form.format('row.col')}}}") == []
    assert len(errors(f".entry k() {{{REGISTERS}{form.format('col.row')}}}")) == 1


def test_long_addresses() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 32\n.entry k() { ret; }\n"
    assert [record.line for record in diagnose(text, strict=True)[1].errors] == [3]
    with pytest.raises(UnsupportedError):
        diagnose(text)
