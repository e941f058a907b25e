"""What rows say that instructions do, and what ops answer."""

from __future__ import annotations

import numpy as np
import pytest

from ptxemu.ir.ops import Reg
from ptxemu.isa import rows
from ptxemu.isa.effects import PURE, parse
from ptxemu.isa.operands import Implicit
from tests.support.kernel_tools import kernel, run
from tests.support.op_tools import op_of

# Each access: kind, space, bytes of a lane, and what is special about it.
ACCESSES = [
    ("ld.global.v2.u16 {%r1, %r2}, [%rd1];", [("read", "global", 4, "")]),
    ("ld.global.nc.b64 %rd2, [%rd1];", [("read", "global", 8, "constant")]),
    ("ld.u8 %r1, [%rd1];", [("read", "generic", 1, "")]),
    ("st.shared::cta.v4.f32 [memory], {%f1, %f2, %f3, %f4};", [("write", "shared", 16, "")]),
    ("atom.shared.add.u64 _, [memory], 1;", [("update", "shared", 8, "")]),
    ("cp.async.ca.shared.global [memory], [%rd1], 8;", [("write", "shared", 8, ""), ("read", "global", None, "")]),
    ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [memory], [%rd1], %r1, [memory];",
     [("write", "cluster", None, ""), ("read", "global", None, ""), ("update", "cluster", 8, "mbarrier")]),
    ("suld.b.1d.b32.trap %r1, [surface, {%r2}];", [("read", "surface", None, "")]),
    ("sured.b.add.1d.u32.trap [surface, {%r2}], %r1;", [("update", "surface", None, "")]),
    ("tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [texture, {%r1}];", [("read", "texture", None, "constant")]),
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [memory];", [("read", "shared", 16, "")]),
    ("add.u32 %r1, %r2, %r3;", []),
    ("fence.sc.gpu;", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ACCESSES, ids=[text for text, _ in ACCESSES])
def test_an_op_knows_its_accesses(text: str, expected: list[tuple[str, str, int | None, str]]) -> None:
    found = op_of(text).accesses
    assert [(one.stated.kind, one.space, one.bytes, one.stated.object) for one in found] == expected


def test_others_may_write_what_an_access_reads() -> None:
    shared = [op_of(text).access.shared_with_others for text, expected in ACCESSES if expected]
    assert shared == [True, False, *[True] * 7, False, True]
    assert not op_of("ld.const.u32 %r1, [%rd1];").access.shared_with_others
    assert not op_of("ld.local.u32 %r1, [%rd1];").access.shared_with_others


@pytest.mark.parametrize(
    ("text", "pure"),
    [
        ("add.u32 %r1, %r2, 7;", True), ("mov.u32 %r1, %tid.x;", True), ("cvta.shared.u64 %rd1, %rd2;", True),
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", True), ("activemask.b32 %r1;", False), ("ld.global.u32 %r1, [%rd1];", False),
        ("suq.width.b32 %r1, [surface];", False), ("bar.sync 0;", False), ("exit;", False), ("fence.sc.gpu;", False),
        ("shfl.sync.up.b32 %r1, %r2, 1, 0, -1;", False), ("alloca.u64 %rd1, %rd2;", False),
    ],
)  # fmt: skip
def test_pure_ops_do_nothing_but_compute(text: str, pure: bool) -> None:
    assert op_of(text).effects.pure is pure


def test_threads_that_wait_meet_and_leave() -> None:
    barrier = op_of("barrier.sync 0;").effects
    assert (barrier.meets, barrier.waits, barrier.counts_threads) == ("warp", "cta", True)
    assert op_of("barrier.arrive 0, 64;").effects.arrives == "cta"
    assert op_of("bar.warp.sync -1;").effects.meets == "membermask"
    assert op_of("vote.sync.any.pred %p1, %p2, -1;").effects.asks
    leaving = {text: op_of(text).effects.leaves for text in ("ret;", "exit;", "trap;", "brkpt;")}
    assert leaving == {"ret;": "function", "exit;": "kernel", "trap;": "launch", "brkpt;": ""}


def test_elementwise_rows_are_pure_without_saying_so() -> None:
    row = next(row for row in rows()["popc"])
    assert (row.stated, row.effects) == (False, PURE)


def test_the_language_of_effects() -> None:
    found = parse("updates [a] as b, reads constant t, writes stack, meets warp, varying")
    assert [(one.kind, one.operand, one.data, one.object, one.opaque) for one in found.accesses] == [
        ("update", "a", "b", "", False), ("read", "t", "", "constant", True),
    ]  # fmt: skip
    assert found.implicit == Implicit((), ("stack",))
    assert (found.meets, found.results, found.pure) == ("warp", "varying", False)
    for wrong in ("eats [a]", "waits forever", "reads", "reads [a] as"):
        with pytest.raises(AssertionError, match="no row can do this"):
            parse(wrong)


def test_operands_of_accesses_are_found_where_they_are() -> None:
    op = op_of("st.global.u32 [%rd1+8], %r1;")
    assert (op.access.address.offset, op.access.address.base.name) == (8, "%rd1")
    assert isinstance(op_of("sust.b.1d.b32.trap [%rd3, {%r2}], %r1;").access.address, Reg)


RAW_BITS = """
  ld.param.u64 %rd1, [out];
  ld.global.f32 %f1, [%rd1]; neg.f32 %f2, %f1; add.f32 %f3, %f1, %f2;
  mov.b32 %r1, %f3; setp.eq.s32 %p1, %r1, 0x7fffffff; selp.u32 %r2, 1, 0, %p1;
  st.global.u32 [%rd1], %r2; ret;
"""


def test_a_comparison_of_integers_sees_the_canonical_nan() -> None:
    """Infinity minus infinity; only comparisons of floating-point numbers may see the host's NaN."""
    values = np.full(1, np.inf, np.float32)
    run(kernel(RAW_BITS), 1, 1, values)
    assert values.view(np.uint32)[0] == 1
