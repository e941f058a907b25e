"""One op as LLVM IR: what has effects by its handler, else once for the warp where its result is a pattern, or for all lanes."""

from __future__ import annotations

from ptxemu.analysis.nans import may_be_raw, takes_raw
from ptxemu.analysis.shape import Shape
from ptxemu.ir.ops import Imm, Op, Operand, Reg, SReg, SymRef, items_of
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.lower.control.sync import tell_members
from ptxemu.lower.core import grouped
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import EFFECTS
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.special import special_value, symbol_value


def lower(ctx: Context, op: Op) -> None:
    """Emit one op."""
    ctx.scratch.begin_op()
    start = len(ctx.lines)
    if ctx.unit.observed:
        tell_members(ctx, op)
    handler = EFFECTS.get(op.row.lower)
    if handler is not None:
        handler(ctx, op)
    else:
        elementwise(ctx, op)
    if ctx.unit.lines is not None:
        ctx.unit.lines.mark(ctx.lines, start, op)


def _sources(ctx: Context, op: Op, vector: bool) -> list[str]:
    values: list[str] = []
    raw = takes_raw(op)
    for index, (source, kind) in enumerate(zip(op.srcs, op.src_types)):
        assert kind is not None
        negated = index < len(op.negs) and op.negs[index]
        for item in items_of(source):
            values.append(_source(ctx, item, kind, negated, vector, raw))
    return values


def _source(ctx: Context, item: Operand, kind: ScalarType, negated: bool, vector: bool, raw: bool) -> str:
    if isinstance(item, SReg):
        return special_value(ctx, item.name, kind, vector)
    if isinstance(item, SymRef):
        value = symbol_value(ctx, item)
        value = ctx.scalar.cast("trunc", "i64", value, f"i{kind.bits}")
        return ctx.splat(f"i{kind.bits}", value) if vector else value
    if kind is PRED:
        return ctx.predicate(item, negated, vector)
    return ctx.vector_of(item, kind, raw=raw) if vector else ctx.scalar_of(item, kind, raw=raw)


def _is_quiet(ctx: Context, source: Operand) -> bool:
    """Whether an f32 is no signaling NaN."""
    return source.bits & 0x7FFFFFFF <= 0x7F800000 if isinstance(source, Imm) else source in ctx.quiet


def elementwise(ctx: Context, op: Op) -> None:
    """A register-to-register op: once for the warp if its result is uniform or a pattern, else for all lanes."""
    live = [dst for dst in op.dsts if dst is not None]
    if not live:
        return
    if ctx.is_grouped(live[0]):
        by_groups(ctx, op)
        return
    vector = ctx.shape(live[0]) is None
    emitter = ctx.vector if vector else ctx.scalar
    emitter.raw_nan = may_be_raw(op)
    emitter.quiet = [_is_quiet(ctx, source) for source in op.srcs] if emitter.raw_nan else ()
    results = ELEMENTWISE[op.row.lower](emitter, op, *_sources(ctx, op, vector))
    if isinstance(results, str):
        results = (results,)
    for index, value in enumerate(results):
        ctx.define(op, index, value)
    if is_widening(ctx, op):
        _note_wrap(ctx, op)


def by_groups(ctx: Context, op: Op) -> None:
    """An elementwise op whose result has one base for each group of lanes: once for each."""
    (dst,) = op.results
    sources = [_bases_of_source(ctx, source, kind) for source, kind in zip(op.srcs, op.src_types)]
    bases = [str(ELEMENTWISE[op.row.lower](ctx.scalar, op, *group)) for group in zip(*sources)]
    ctx.bind(dst, grouped.array_of(ctx, ctx.storage_type(dst), bases))
    if is_widening(ctx, op):
        _note_wrap(ctx, op)


def _bases_of_source(ctx: Context, source: Operand, kind: ScalarType | None) -> list[str]:
    assert kind is not None
    if isinstance(source, (Reg, Imm)):
        return grouped.bases_of(ctx, source, kind)
    return grouped.first_lanes(ctx, source, kind, _source(ctx, source, kind, False, False, False))


# ---------------------------------------------------------------- widenings


def is_widening(ctx: Context, op: Op) -> bool:
    if not op.results:
        return False
    dst = op.results[0]
    shape = ctx.groups[dst] if ctx.is_grouped(dst) else ctx.shape(dst)
    return shape is not None and any(widening is op for widening, _ in shape.widenings)


def _note_wrap(ctx: Context, op: Op) -> None:
    """Test whether widening the source of ``op`` wraps in some lane; if so keep each lane's correction."""
    if op in ctx.sure.exact:
        return
    kind = op.src_types[0]
    assert kind is not None
    bases, shape = _widened(ctx, op, kind)
    extend = "sext" if kind.is_signed else "zext"
    wide = [ctx.scalar.cast(extend, "i32", base, "i64") for base in bases]
    ends = [ctx.scalar.bin("add", "i64", base, str(offset)) for base in wide for offset in shape.spread]
    narrow = [ctx.scalar.cast(extend, "i32", ctx.scalar.cast("trunc", "i64", end, "i32"), "i64") for end in ends]
    wraps = [ctx.scalar.icmp("ne", "i64", a, b) for a, b in zip(ends, narrow)]
    earlier = ctx.wrapped()  # corrections must not survive another run
    some = earlier
    for wrap in wraps:
        some = ctx.scalar.bin("or", "i1", wrap, some)

    def keep() -> list[str]:
        if len(wide) == 1:
            start, offsets = wide[0], ctx.lane_offsets(shape, "i64")
        else:
            start, offsets = "0", ctx.spill("i64", grouped.lanes_of(ctx, "i64", wide, shape.offsets))
        ctx.call(
            "void", "pe_keep_corrections", ("ptr", ctx.corrections), ("i32", str(len(ctx.widenings))),
            ("i32", str(ctx.widenings[op])), ("i64", start), ("ptr", offsets),
            ("i32", str(int(kind.is_signed))), ("i32", ctx.scalar.cast("zext", "i1", earlier, "i32")), attributes="cold",
        )  # fmt: skip
        ctx.set_wrapped()
        return []

    ctx.when(some, keep, None, [], likely=False)


def _widened(ctx: Context, op: Op, kind: ScalarType) -> tuple[list[str], Shape]:
    """What a widening extends: its bases, one or that of each group, and its shape."""
    (dst,) = op.results
    if ctx.is_grouped(dst):
        value = next(source for source in op.srcs if _varies(grouped.shape_of(ctx, source)))
        shape = grouped.shape_of(ctx, value)
        assert shape is not None
        return _bases_of_source(ctx, value, kind), shape
    value = next(source for source in op.srcs if isinstance(source, Reg) and _varies(ctx.shape(source)))
    shape = ctx.shape(value)
    assert shape is not None
    return [ctx.scalar_of(value, kind)], shape


def _varies(shape: Shape | None) -> bool:
    return shape is not None and any(shape.offsets)
