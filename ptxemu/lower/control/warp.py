"""Instructions among the lanes of a warp: shfl, vote, match, redux, activemask (PTX ISA)."""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Imm, Op, Operand
from ptxemu.ir.types import B32
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter
from ptxemu.lower.core.gather import gather
from ptxemu.lower.core.literals import vector_literal

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


@effect("shfl", size=40)
def shfl(ctx: Context, op: Op) -> None:
    """shfl, shfl.sync: constant operands become one vector shuffle."""
    value = ctx.vector_of(op["a"], op.type(), raw=op["d"] in ctx.raw)
    b, c = op["b"], op["c"]
    if isinstance(b, Imm) and isinstance(c, Imm):
        lanes, valid = source_lanes(op.mods["mode"], b.bits, c.bits)
        picks = ", ".join(f"i32 {lane}" for lane in lanes)
        whole = f"<{LANES} x i32>"
        moved = ctx.inst(f"shufflevector {whole} {value}, {whole} poison, {whole} <{picks}>")
        good = vector_literal("i1", valid)
    else:
        lane, good = _lanes(ctx, op.mods["mode"], b, c)
        moved = _pick(ctx, value, lane)
    if op["d"] is not None:
        ctx.define(op, 0, moved)
    if op["q"] is not None:
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


def _members(ctx: Context, op: Op) -> tuple[str, bool]:
    """The lanes that take part: executing ones in the membermask of ``.sync`` forms.

    (bits, False) for the whole warp, or, where lanes give different membermasks, (each lane's own bits, True).
    """
    bits = ctx.bits_of(ctx.mask_of(op))
    members = op.get("membermask")
    if members is None:
        return bits, False
    shape = ctx.shape(members)
    if shape is not None and shape.uniform:
        return ctx.scalar.bin("and", f"i{LANES}", bits, ctx.scalar_of(members, B32)), False
    return ctx.vector.bin("and", "i32", ctx.splat("i32", bits), ctx.vector_of(members, B32)), True


def _define(ctx: Context, op: Op, index: int, value: str, grouped: bool) -> None:
    """A result for the whole warp, or one for each lane."""
    if op.dsts[index] is None:
        return
    if grouped:
        ctx.define(op, index, value)
    else:
        ctx.define_same(op, index, value)


@effect("vote", size=15)
def vote(ctx: Context, op: Op) -> None:
    """vote, vote.sync: all, any, uni over the participating lanes; ballot."""
    who, grouped = _members(ctx, op)
    e = ctx.vector if grouped else ctx.scalar
    yes = ctx.bits_of(ctx.conjunction(ctx.active, ctx.predicate(op["a"], op.negated("a"), True)))
    yes = e.bin("and", "i32", ctx.splat("i32", yes) if grouped else yes, who)
    mode = op.mods["mode"]
    if mode == "ballot":
        result = yes
    elif mode == "any":
        result = e.icmp("ne", "i32", yes, e.int(32, 0))
    else:
        result = e.icmp("eq", "i32", yes, who)
        if mode == "uni":
            result = e.bin("or", "i1", result, e.icmp("eq", "i32", yes, e.int(32, 0)))
    _define(ctx, op, 0, result, grouped)


@effect("activemask")
def activemask(ctx: Context, op: Op) -> None:
    ctx.define_same(op, 0, ctx.bits_of(ctx.mask_of(op)))


@effect("elect")
def elect(ctx: Context, op: Op) -> None:
    """elect.sync: the lowest participating lane is the leader (PTX ISA "elect.sync" leaves the choice open)."""
    who, grouped = _members(ctx, op)
    e = ctx.vector if grouped else ctx.scalar
    leader = e.intrinsic("cttz", "i32", who, extra="i1 false")
    leader = leader if grouped else ctx.splat("i32", leader)
    ctx.define(op, 0, leader)
    ctx.define(op, 1, ctx.vector.icmp("eq", "i32", LANE_IDS, leader))


REDUCTIONS = {"add": ("add", 0), "and": ("and", -1), "or": ("or", 0), "xor": ("xor", 0)}


def _reduction(name: str, signed: bool) -> tuple[str, int]:
    """(operation, neutral element) of a redux operation on 32-bit integers."""
    if name in REDUCTIONS:
        return REDUCTIONS[name]
    if name == "min":
        return ("smin", 0x7FFFFFFF) if signed else ("umin", 0xFFFFFFFF)
    return ("smax", 0x80000000) if signed else ("umax", 0)


def _reduce(ctx: Context, op: Op, value: str, who: str, grouped: bool, signed: bool) -> str:
    """The reduction of a value over the participating lanes of the warp, or of each lane's group."""
    name, neutral = _reduction(op.mods["op"], signed)
    v = ctx.vector
    if not grouped:
        taken = v.select(ctx.mask_from_bits(who), "i32", value, v.int(32, neutral))
        return ctx.call("i32", f"llvm.vector.reduce.{name}.v{LANES}i32", (f"<{LANES} x i32>", taken))
    result = v.int(32, neutral)
    for lane in range(LANES):
        bit = v.bin("and", "i32", who, v.int(32, 1 << lane))
        one = ctx.splat("i32", ctx.inst(f"extractelement <{LANES} x i32> {value}, i32 {lane}"))
        one = v.select(v.icmp("ne", "i32", bit, v.int(32, 0)), "i32", one, v.int(32, neutral))
        minmax = name[1:] in ("min", "max")
        result = v.intrinsic(name, "i32", result, one) if minmax else v.bin(name, "i32", result, one)
    return result


@effect("redux", size=30)
def redux(ctx: Context, op: Op) -> None:
    """redux.sync: a reduction over the participating lanes."""
    kind = op.type()
    who, grouped = _members(ctx, op)
    if kind.is_float:
        result = _redux_float(ctx, op, who, grouped)
    else:
        result = _reduce(ctx, op, ctx.vector_of(op["a"], kind), who, grouped, kind.is_signed)
    _define(ctx, op, 0, result, grouped)


def _redux_float(ctx: Context, op: Op, who: str, grouped: bool) -> str:
    """Least or greatest float, -0 below +0, by integers in the same order. NaNs count with ``.NaN`` only."""
    v, e = ctx.vector, ctx.vector if grouped else ctx.scalar
    bits = ctx.convert(ctx.vector_of(op["a"], op.type()), "float", "i32", True)
    magnitude = v.bin("and", "i32", bits, v.int(32, 0x7FFFFFFF))
    if "abs" in op.mods:
        bits = magnitude
    nan = v.icmp("ugt", "i32", magnitude, v.int(32, 0x7F800000))
    nans = ctx.bits_of(ctx.conjunction(ctx.active, nan))
    order = _ordered(ctx.vector, bits)
    neutral = v.int(32, _reduction(op.mods["op"], True)[1])
    best = _reduce(ctx, op, v.select(nan, "i32", neutral, order), who, grouped, True)
    taken = e.bin("and", "i32", ctx.splat("i32", nans) if grouped else nans, who)
    some_nan = e.icmp("ne", "i32", taken, e.int(32, 0)) if "nan" in op.mods else e.icmp("eq", "i32", taken, who)
    result = e.select(some_nan, "i32", e.int(32, 0x7FFFFFFF), _ordered(e, best))
    return ctx.convert(result, "i32", "float", grouped)


def _ordered(e: Emitter, bits: str) -> str:
    """Float bits as integers in the same order, and back: the negative ones have their magnitude inverted."""
    sign = e.bin("ashr", "i32", bits, e.int(32, 31))
    return e.bin("xor", "i32", bits, e.bin("and", "i32", sign, e.int(32, 0x7FFFFFFF)))


@effect("match", size=30)
def match(ctx: Context, op: Op) -> None:
    """match.any.sync: the lanes with the same value; match.all.sync: all lanes if they agree, and a predicate."""
    kind = op.type()
    bits = f"i{kind.bits}"
    who, grouped = _members(ctx, op)
    value = ctx.vector_of(op["a"], kind)
    v = ctx.vector
    members = who if grouped else ctx.splat("i32", who)
    same = v.bin("and", "i32", equal_lanes(ctx, value, bits), members)
    if op.mods["mode"] == "any":
        ctx.define(op, 0, same)
        return
    agree = v.icmp("eq", "i32", same, members)
    ctx.define(op, 0, v.select(agree, "i32", members, v.int(32, 0)))
    if len(op.dsts) > 1:
        ctx.define(op, 1, agree)


def equal_lanes(ctx: Context, value: str, bits: str) -> str:
    """For every lane the set of lanes with its value: 32 compares."""
    result = "zeroinitializer"
    for lane in range(LANES):
        one = ctx.splat(bits, ctx.inst(f"extractelement <{LANES} x {bits}> {value}, i32 {lane}"))
        same = ctx.inst(f"bitcast {MASK} {ctx.vector.icmp('eq', bits, value, one)} to i32")
        result = ctx.inst(f"insertelement <{LANES} x i32> {result}, i32 {same}, i32 {lane}")
    return result


@effect("nanosleep")
def nanosleep(ctx: Context, op: Op) -> None:
    """nanosleep (PTX ISA): the pause may last anywhere from zero to twice the request. Other warps have a turn."""
    ctx.call("void", "pe_yield", ("ptr", "%w"))
