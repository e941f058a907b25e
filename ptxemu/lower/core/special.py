"""Special registers and addresses as values."""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import SReg, SymRef, Variable
from ptxemu.ir.types import B32, ScalarType
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.literals import vector_literal

AXES = {"x": 0, "y": 1, "z": 2}
LANE_MASKS = {
    "lanemask_eq": [1 << lane for lane in range(LANES)],
    "lanemask_lt": [(1 << lane) - 1 for lane in range(LANES)],
    "lanemask_le": [(2 << lane) - 1 for lane in range(LANES)],
    "lanemask_gt": [-(2 << lane) & 0xFFFFFFFF for lane in range(LANES)],
    "lanemask_ge": [-(1 << lane) & 0xFFFFFFFF for lane in range(LANES)],
}
# Registers of one device with one partition; PTX ISA "Special Registers".
CONSTANTS = {
    "nwarpid": 32, "reserved_smem_offset_begin": 0,
    "reserved_smem_offset_end": 0, "reserved_smem_offset_cap": 0, "current_graph_exec": 0,
}  # fmt: skip
# Where cooperative groups find the words of the grid barrier: the halves of their address, 0 in other launches.
WORKSPACE = {"envreg1": 32, "envreg2": 0}
FIELDS = {"warpid": ("warpid", 32), "smid": ("smid", 32), "nsmid": ("nsmid", 32), "gridid": ("gridid", 64),
          "cluster_nctarank": ("cluster_nctarank", 32),
          "dynamic_smem_size": ("dynamic_shared", 32), "total_smem_size": ("shared_size", 64),
          "aggr_smem_size": ("shared_size", 64)}  # fmt: skip
# What is done with the CTAs of a cluster in a dimension.
CLUSTER = {"clusterid": ("udiv", "ctaid"), "nclusterid": ("udiv", "nctaid"), "cluster_ctaid": ("urem", "ctaid")}


def special_value(ctx: Context, name: str, kind: ScalarType, vector: bool) -> str:
    """``%name`` as a value of type ``kind`` (integers are truncated or zero-extended)."""
    stem, _, axis = name.partition(".")
    if vector and stem in LANE_MASKS:
        value = vector_literal("i32", LANE_MASKS[stem])
        return _fit(ctx, value, 32, kind, True)
    if vector and stem == "laneid":
        return _fit(ctx, vector_literal("i32", range(LANES)), 32, kind, True)
    if vector and stem == "tid":
        return _fit(ctx, _tid_lanes(ctx, axis), 32, kind, True)
    value, bits = _scalar(ctx, stem, axis)
    value = _fit(ctx, value, bits, kind, False)
    return ctx.splat(kind.llvm, value) if vector else value


def _fit(ctx: Context, value: str, bits: int, kind: ScalarType, vector: bool) -> str:
    emitter = ctx.vector if vector else ctx.scalar
    value = emitter.cast("trunc" if kind.bits < bits else "zext", f"i{bits}", value, f"i{kind.bits}")
    return ctx.convert(value, f"i{kind.bits}", kind.llvm, vector)


def _tid_lanes(ctx: Context, axis: str) -> str:
    offset, _ = ctx.layout.warp_field("tid")
    pointer = ctx.once(f"tid.{axis}", f"getelementptr i8, ptr %w, i64 {offset + 4 * LANES * AXES[axis]}")
    return ctx.inst(f"load <{LANES} x i32>, ptr {pointer}, align 4")


def _scalar(ctx: Context, stem: str, axis: str) -> tuple[str, int]:
    """(value, bits) of a register that is the same for the whole warp, or the base of its pattern."""
    if stem == "tid":
        return _first_tid(ctx, axis), 32
    if stem == "laneid":
        return "0", 32
    if stem in ("ntid", "ctaid", "nctaid"):
        return ctx.field(f"{stem}[{AXES[axis]}]"), 32
    if stem in CLUSTER:
        return _of_cluster(ctx, stem, AXES[axis]), 32
    if stem == "cluster_nctaid":
        return ctx.field(f"{stem}[{AXES[axis]}]"), 32
    if stem == "cluster_ctarank":
        return _rank(ctx), 32
    if stem in FIELDS:
        name, bits = FIELDS[stem]
        return ctx.field(name), bits
    if stem == "is_explicit_cluster":
        several = ctx.scalar.icmp("ugt", "i32", ctx.field("cluster_nctarank"), "1")
        return ("true" if ctx.layout.explicit_cluster else several), 1
    if stem in ("clock", "clock_hi", "clock64"):
        return _part(ctx, ctx.call("i64", "pe_clock", ("ptr", "%w")), stem, "clock")
    if stem.startswith("globaltimer"):
        return _part(ctx, ctx.call("i64", "pe_globaltimer", ("ptr", "%w")), stem, "globaltimer")
    if stem in WORKSPACE:
        shifted = ctx.scalar.bin("lshr", "i64", ctx.field("grid_workspace"), str(WORKSPACE[stem]))
        return ctx.scalar.cast("trunc", "i64", shifted, "i32"), 32
    return str(CONSTANTS.get(stem, 0)), 32  # %pm and other %envreg registers read as zero


def _first_tid(ctx: Context, axis: str) -> str:
    """That of the first lane, of which LLVM is to know as much as the shape says."""
    shape = ctx.shape(SReg(f"tid.{axis}")) if ctx.of_one_place else None
    if shape is not None and shape.zeros >= B32.bits:
        return "0"
    offset, _ = ctx.layout.warp_field("tid")
    first = ctx.once(f"tid0.{axis}", f"getelementptr i8, ptr %w, i64 {offset + 4 * LANES * AXES[axis]}")
    value = ctx.inst(f"load i32, ptr {first}, align 4, !invariant.load !2")
    return ctx.scalar.bin("and", "i32", value, str(-1 << shape.zeros)) if shape is not None and shape.zeros else value


def _of_cluster(ctx: Context, stem: str, axis: int) -> str:
    operation, whole = CLUSTER[stem]
    return ctx.scalar.bin(operation, "i32", ctx.field(f"{whole}[{axis}]"), ctx.field(f"cluster_nctaid[{axis}]"))


def _rank(ctx: Context) -> str:
    """x grows first."""
    rank = _of_cluster(ctx, "cluster_ctaid", 2)
    for axis in (1, 0):
        rank = ctx.scalar.bin("mul", "i32", rank, ctx.field(f"cluster_nctaid[{axis}]"))
        rank = ctx.scalar.bin("add", "i32", rank, _of_cluster(ctx, "cluster_ctaid", axis))
    return rank


def _part(ctx: Context, value: str, stem: str, family: str) -> tuple[str, int]:
    if stem in ("clock64", "globaltimer"):
        return value, 64
    if stem.endswith("_hi"):
        value = ctx.scalar.bin("lshr", "i64", value, "32")
    return ctx.scalar.cast("trunc", "i64", value, "i32"), 32


def symbol_value(ctx: Context, symbol: SymRef) -> str:
    """The value of a symbol used as an operand: an address in its space, or a surface or texture handle; i64."""
    from ptxemu.lower.core.access import symbol_address
    from ptxemu.lower.core.distributed import Windows

    variable = symbol.symbol
    if not isinstance(variable, Variable):
        return str(ctx.layout.module.function_address(variable) + symbol.offset)
    index = ctx.layout.module.handle_index.get(variable)
    if index is None:
        address = symbol_address(ctx, symbol, 0)
        ranked = ctx.unit.ranked and variable in ctx.layout.shared
        return ctx.scalar.bin("add", "i64", address, Windows(ctx, vector=False).own_field()) if ranked else address
    pointer = ctx.inst(f"inttoptr i64 {ctx.field('handles')} to ptr")
    pointer = ctx.inst(f"getelementptr i64, ptr {pointer}, i64 {index}")
    handle = ctx.inst(f"load i64, ptr {pointer}, align 8, !invariant.load !2")
    return ctx.scalar.bin("add", "i64", handle, str(symbol.offset)) if symbol.offset else handle
