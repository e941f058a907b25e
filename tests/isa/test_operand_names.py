"""An op answers to the names of its row's operands, whatever their positions."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from ptxemu.ir.ops import Addr, Imm, Op, Reg, Vec
from ptxemu.ir.types import TYPES, U32, U64
from ptxemu.isa import rows
from ptxemu.isa.operands import Implicit, fitting, present
from ptxemu.isa.table import Row, internal_row
from ptxemu.passes import internal
from ptxemu.passes.build import with_implicit
from tests.support.op_tools import op_of


def shown(value: object) -> object:
    """An operand in short: names of registers, values of constants."""
    if isinstance(value, tuple):
        return [shown(item) for item in value]
    if isinstance(value, Vec):
        return [shown(item) for item in value.items]
    if isinstance(value, Addr):
        return f"[{shown(value.base)}]"
    return value.bits if isinstance(value, Imm) else None if value is None else getattr(value, "name", None) or value.symbol.name  # type: ignore[attr-defined]


CASES = [
    ("add.u32 %r1, %r2, 7;", {"d": "%r1", "a": "%r2", "b": 7}),
    ("ld.global.v2.u32 {%r1, %r2}, [%rd1];", {"d": ["%r1", "%r2"], "a": "[%rd1]"}),
    ("ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;", {"d": "%r1", "a": "[%rd1]", "policy": "%rd2"}),
    ("st.global.v2.u32 [%rd1], {%r1, 3};", {"a": "[%rd1]", "v": ["%r1", 3]}),
    ("atom.global.cas.b32 _, [%rd1], %r2, %r3;", {"d": None, "a": "[%rd1]", "b": "%r2", "c": "%r3"}),
    ("bar.red.popc.u32 %r1, 3, %p1;", {"d": "%r1", "a": 3, "b": None, "c": "%p1"}),
    ("bar.red.popc.u32 %r1, 3, 64, %p1;", {"d": "%r1", "a": 3, "b": 64, "c": "%p1"}),
    ("shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;",
     {"d": "%r1", "q": "%p1", "a": "%r2", "b": 1, "c": 0, "membermask": 0xFFFFFFFF}),
    ("shfl.sync.up.b32 %r1, %r2, 1, 0, -1;", {"d": "%r1", "q": None, "a": "%r2", "membermask": 0xFFFFFFFF}),
    ("suld.b.a1d.v2.b32.trap {%r1, %r2}, [surface, {%r3, %r4}];",
     {"d": ["%r1", "%r2"], "s": "surface", "coordinates": ["%r3", "%r4"]}),
    ("sust.b.1d.b32.trap [surface, {%r3}], %r1;", {"s": "surface", "coordinates": ["%r3"], "v": "%r1"}),
    ("suq.width.b32 %r1, [surface];", {"d": "%r1", "s": "surface"}),
    ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [texture, {%f5, %f6}];",
     {"d": ["%f1", "%f2", "%f3", "%f4"], "p": None, "t": "texture", "sampler": 0, "coordinates": ["%f5", "%f6"], "e": None}),
    ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}|%p1, [texture, {%r1}], {%r2};",
     {"d": ["%f1", "%f2", "%f3", "%f4"], "p": "%p1", "t": "texture", "coordinates": ["%r1"], "e": "%r2"}),
    ("mov.b64 {%r1, %r2}, %rd1;", {"d": ["%r1", "%r2"], "a": "%rd1"}),
    ("mov.b64 %rd1, {%r1, %r2};", {"d": "%rd1", "a": ["%r1", "%r2"]}),
    ("cp.async.ca.shared.global.L2::cache_hint [memory], [%rd1], 16, 8, %rd2;",
     {"d": "[memory]", "s": "[%rd1]", "immsize": 16, "given": 8, "policy": "%rd2"}),
    ("cp.async.ca.shared.global [memory], [%rd1], 16;",
     {"d": "[memory]", "s": "[%rd1]", "immsize": 16, "given": None, "policy": None}),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [memory];", {"d": ["%r1"], "p": "[memory]"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_operands_have_the_names_of_the_row(text: str, expected: dict[str, object]) -> None:
    op = op_of(text)
    assert {name: shown(op[name]) for name in expected} == expected


def test_types_and_negations_go_by_name_too() -> None:
    op = op_of("bar.red.and.pred %p1, 3, 64, !%p2;")
    assert op.type_of("d") is TYPES["pred"]
    assert op.type_of("b") is U32
    assert (op.negated("c"), op.negated("a")) == (True, False)
    load = op_of("ld.global.v2.u16 {%r1, %r2}, [%rd1];")
    assert load.type_of("d") is TYPES["u16"]
    assert op_of("cp.async.ca.shared.global [memory], [%rd1], 16;").type_of("given") is None
    with pytest.raises(KeyError):
        load["policy"]
    assert load.get("policy") is None


def test_the_stack_pointer_and_the_carry_have_names_once_they_are_operands() -> None:
    text = "alloca.u64 %rd1, %rd2{};"
    for last, expected in (("", None), (", 16", 16)):
        op = op_of(text.format(last))
        implied = with_implicit(op)
        assert (shown(implied["d"]), shown(implied["a"]), shown(implied["immAlign"])) == ("%rd1", "%rd2", expected)
        assert (op["stack"], shown(implied["stack"])) == (None, "%stack")
    assert shown(with_implicit(op_of("addc.u32 %r1, %r2, %r3;"))["cc"]) == "%cc"


def test_ops_of_passes_have_named_operands() -> None:
    like = op_of("add.u32 %r1, %r2, 7;")
    a, b = Reg("a", U64), Reg("b", U64)
    copy = Op(internal.COPY_OUT, {"space": "param"}, (), (Addr(a, 0), Addr(b, 8), Imm(72, U64)), (), (None, None, U64), 0, 0)
    assert (copy["s"], copy["d"], copy["size"]) == (Addr(a, 0), Addr(b, 8), Imm(72, U64))
    assert internal.marker(internal.RESULTS, like, srcs=(a, b))["a"] == (a, b)
    assert internal.marker(internal.ARGUMENTS, like)["d"] == ()
    call = internal.marker(internal.INDIRECT_CALL, like, srcs=(a, b))
    assert (call["d"], call["callee"], call["stack"]) == (None, a, b)
    assert internal.marker(internal.CALL, like, (a,), (b,))["d"] is a


def test_the_halves_of_a_barrier_keep_its_names() -> None:
    op = op_of("barrier.red.popc.u32 %r1, 3, %p1;")
    join, leave = internal.halves(op.row)
    arriving = internal.marker(join, op, srcs=op.srcs)
    assert (shown(arriving["a"]), arriving["b"], shown(arriving["c"])) == (3, None, "%p1")
    assert (join.names, leave.names) == ({"a", "b", "c"}, {"d"})


def test_no_two_operands_of_a_row_have_one_name() -> None:
    for row in (row for forms in rows().values() for row in forms if not row.any_operands):
        names = Counter(one.name for pattern in row.operands for one in (pattern, pattern.second) if one is not None)
        assert max(names.values(), default=1) == 1, row.text


def test_operands_that_do_not_fit_the_row_are_a_bug() -> None:
    row = internal_row("_three", "d, a, b")
    with pytest.raises(AssertionError, match="1 destinations and 1 sources do not fit the row: _three"):
        row.places({}, 1, 1)


def combinations(row: Row) -> Counter[tuple[tuple[str, ...], int, int]]:
    """In how many ways each number of operands can come about, by the modifiers that decide over it."""
    values = [
        tuple(v for qualifier in row.qualifiers if qualifier.name == name for v in qualifier.values) for name in row.counting
    ]
    optional = sum(pattern.optional and pattern.when is None for pattern in row.operands)
    found: Counter[tuple[tuple[str, ...], int, int]] = Counter()
    for words in product(*(("", *value) for value in values)):
        mods = {name: word for name, word in zip(row.counting, words) if word}
        for missing in range(optional + 1):
            assert present(row.operands, mods, missing) is not None
        for dsts, srcs in product(range(12), range(12)):
            ways = [places for places in fitting(row.operands, row.implicit, mods, dsts, srcs)]
            found[words, dsts, srcs] = len(ways)
    return found


@pytest.mark.parametrize("opcode", sorted({opcode for opcode, forms in rows().items() if any(row.supported for row in forms)}))
def test_the_number_of_operands_tells_which_they_are(opcode: str) -> None:
    for row in rows()[opcode]:
        if row.supported and not row.any_operands and (row.implicit != Implicit() or any(p.optional for p in row.operands)):
            assert max(combinations(row).values()) == 1, row.text
