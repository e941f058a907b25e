"""Instructions among the lanes of a warp: shfl, vote, match, redux, activemask (PTX ISA)."""

from __future__ import annotations

from ptxemu.ir import Imm, Op, Operand
from ptxemu.lower.context import MASK, Context
from ptxemu.lower.effects import effect
from ptxemu.lower.gather import gather
from ptxemu.lower.literals import vector_literal
from ptxemu.types import B32, ScalarType
from ptxemu.variant import LANES

LANE_IDS = vector_literal("i32", range(LANES))


def source_lanes(mode: str, b: int, c: int) -> tuple[list[int], list[bool]]:
    """The lane each lane reads, and whether it is in range, for constant operands (PTX ISA "shfl.sync")."""
    segment, limit = c >> 8 & 31, c & 31
    lanes, valid = [], []
    for lane in range(LANES):
        low = lane & segment
        high = low | limit & ~segment & 31
        amount = b & 31
        if mode == "up":
            target = lane - amount
            good = target >= high
        else:
            target = {"down": lane + amount, "bfly": lane ^ amount, "idx": low | amount & ~segment & 31}[mode]
            good = target <= high
        lanes.append(target if good else lane)
        valid.append(good)
    return lanes, valid


@effect("shfl")
def shfl(ctx: Context, op: Op) -> None:
    """shfl, shfl.sync: constant operands become one vector shuffle."""
    value = ctx.vector_of(op.srcs[0], op.type())
    b, c = op.srcs[1], op.srcs[2]
    if isinstance(b, Imm) and isinstance(c, Imm):
        lanes, valid = source_lanes(op.mods["mode"], b.bits, c.bits)
        picks = ", ".join(f"i32 {lane}" for lane in lanes)
        whole = f"<{LANES} x i32>"
        moved = ctx.inst(f"shufflevector {whole} {value}, {whole} poison, {whole} <{picks}>")
        good = vector_literal("i1", valid)
    else:
        lane, good = _lanes(ctx, op.mods["mode"], b, c)
        moved = _pick(ctx, value, lane)
    if op.dsts[0] is not None:
        ctx.define(op, 0, moved)
    if len(op.dsts) > 1 and op.dsts[1] is not None:
        ctx.define(op, 1, good)


def _lanes(ctx: Context, mode: str, b: Operand, c: Operand) -> tuple[str, str]:
    """As :func:`source_lanes`, for operands known at run time."""
    v = ctx.vector
    five = v.int(32, 31)
    amount = v.bin("and", "i32", ctx.vector_of(b, B32), five)
    control = ctx.vector_of(c, B32)
    segment = v.bin("and", "i32", v.bin("lshr", "i32", control, v.int(32, 8)), five)
    inverse = v.bin("xor", "i32", segment, five)
    low = v.bin("and", "i32", LANE_IDS, segment)
    high = v.bin("or", "i32", low, v.bin("and", "i32", v.bin("and", "i32", control, five), inverse))
    if mode == "up":
        target = v.bin("sub", "i32", LANE_IDS, amount)
        good = v.icmp("sge", "i32", target, high)
    elif mode == "idx":
        target = v.bin("or", "i32", low, v.bin("and", "i32", amount, inverse))
        good = v.icmp("sle", "i32", target, high)
    else:
        target = v.bin("add" if mode == "down" else "xor", "i32", LANE_IDS, amount)
        good = v.icmp("sle", "i32", target, high)
    return v.select(good, "i32", target, LANE_IDS), good


def _pick(ctx: Context, value: str, lane: str) -> str:
    """``value[lane]`` in every lane, through memory."""
    base = ctx.inst(f"ptrtoint ptr {ctx.spill('i32', value)} to i64")
    offsets = ctx.vector.bin("shl", "i64", ctx.vector.cast("zext", "i32", lane, "i64"), ctx.vector.int(64, 2))
    addresses = ctx.vector.bin("add", "i64", ctx.splat("i64", base), offsets)
    return gather(ctx, "i32", addresses, 0, ctx.vector.splat("i1", "true"))


def _member_bits(ctx: Context, op: Op, mask: str) -> str:
    """The lanes that take part: active ones in the membermask of ``.sync`` forms (always the last source)."""
    bits = ctx.bits_of(mask)
    if "sync" not in op.mods:
        return bits
    members = op.srcs[-1]
    shape = ctx.shape(members)
    if shape is not None and shape.uniform:
        return ctx.scalar.bin("and", f"i{LANES}", bits, ctx.scalar_of(members, B32))
    return bits


@effect("vote")
def vote(ctx: Context, op: Op) -> None:
    """vote, vote.sync: all, any, uni over the taking lanes; ballot."""
    s = ctx.scalar
    negated = bool(op.negs) and op.negs[0]
    who = _member_bits(ctx, op, ctx.active)
    yes = ctx.bits_of(ctx.conjunction(ctx.active, ctx.predicate(op.srcs[0], negated, True)))
    yes = s.bin("and", "i32", yes, who)
    mode = op.mods["mode"]
    if mode == "ballot":
        result = yes
    elif mode == "any":
        result = s.icmp("ne", "i32", yes, "0")
    else:
        result = s.icmp("eq", "i32", yes, who)
        if mode == "uni":
            result = s.bin("or", "i1", result, s.icmp("eq", "i32", yes, "0"))
    ctx.define(op, 0, result)


@effect("activemask")
def activemask(ctx: Context, op: Op) -> None:
    ctx.define(op, 0, ctx.bits_of(ctx.active))


REDUCTIONS = {
    "add": ("vector.reduce.add", 0), "and": ("vector.reduce.and", -1), "or": ("vector.reduce.or", 0),
    "xor": ("vector.reduce.xor", 0),
}  # fmt: skip


def _reduction(name: str, kind: ScalarType) -> tuple[str, int]:
    """(intrinsic, neutral element) of a redux operation."""
    if name in REDUCTIONS:
        return REDUCTIONS[name]
    sign = "s" if kind.is_signed else "u"
    if name == "min":
        return f"vector.reduce.{sign}min", 0x7FFFFFFF if sign == "s" else 0xFFFFFFFF
    return f"vector.reduce.{sign}max", 0x80000000 if sign == "s" else 0


@effect("redux")
def redux(ctx: Context, op: Op) -> None:
    """redux.sync: an integer reduction over the taking lanes."""
    kind = op.type()
    name, neutral = _reduction(op.mods["op"], kind)
    taking = ctx.mask_from_bits(_member_bits(ctx, op, ctx.active))
    value = ctx.vector.select(taking, "i32", ctx.vector_of(op.srcs[0], kind), ctx.vector.int(32, neutral))
    full = f"llvm.{name}.v{LANES}i32"
    ctx.define(op, 0, ctx.call("i32", full, (f"<{LANES} x i32>", value)))


@effect("match")
def match(ctx: Context, op: Op) -> None:
    """match.any.sync: the lanes with the same value; match.all.sync: all lanes if they agree, and a predicate."""
    kind = op.type()
    bits = f"i{kind.bits}"
    who = _member_bits(ctx, op, ctx.active)
    value = ctx.vector_of(op.srcs[0], kind)
    if op.mods["mode"] == "any":
        ctx.define(op, 0, _equal_lanes(ctx, value, bits, who))
        return
    lane = ctx.scalar.intrinsic("cttz", f"i{LANES}", ctx.bits_of(ctx.active), extra="i1 true")
    first = ctx.splat(bits, ctx.inst(f"extractelement <{LANES} x {bits}> {value}, i32 {lane}"))
    same = ctx.bits_of(ctx.conjunction(ctx.active, ctx.vector.icmp("eq", bits, value, first)))
    agree = ctx.scalar.icmp("eq", "i32", ctx.scalar.bin("and", "i32", same, who), who)
    if op.dsts[0] is not None:
        ctx.define(op, 0, ctx.splat("i32", ctx.scalar.select(agree, "i32", who, "0")))
    if len(op.dsts) > 1 and op.dsts[1] is not None:
        ctx.define(op, 1, ctx.splat("i1", agree))


def _equal_lanes(ctx: Context, value: str, bits: str, who: str) -> str:
    """For every lane the set of taking lanes with its value: 32 compares."""
    result = "zeroinitializer"
    for lane in range(LANES):
        one = ctx.splat(bits, ctx.inst(f"extractelement <{LANES} x {bits}> {value}, i32 {lane}"))
        same = ctx.inst(f"bitcast {MASK} {ctx.vector.icmp('eq', bits, value, one)} to i32")
        same = ctx.scalar.bin("and", "i32", same, who)
        result = ctx.inst(f"insertelement <{LANES} x i32> {result}, i32 {same}, i32 {lane}")
    return result


@effect("nanosleep")
def nanosleep(ctx: Context, op: Op) -> None:
    """nanosleep (PTX ISA): the pause may last anywhere from zero to twice the request."""
