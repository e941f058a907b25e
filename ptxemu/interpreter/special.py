"""Special registers (PTX ISA "Special Registers")."""

from __future__ import annotations

from collections.abc import Callable
from operator import floordiv, mod
from typing import TYPE_CHECKING

from ptxemu._runtime import lib
from ptxemu.interpreter.lane import Lane
from ptxemu.ir.block_shape import LANES

if TYPE_CHECKING:
    from ptxemu.interpreter.translate import Translator

AXES = {"x": 0, "y": 1, "z": 2}
ALL = (1 << LANES) - 1
FIELDS = {
    "warpid": "warpid", "smid": "smid", "nsmid": "nsmid", "gridid": "gridid", "dynamic_smem_size": "dynamic_shared",
    "total_smem_size": "shared_size", "aggr_smem_size": "shared_size", "cluster_nctarank": "cluster_nctarank",
}  # fmt: skip
SHAPES = ("ntid", "ctaid", "nctaid", "cluster_nctaid")
CLUSTERS = {"clusterid": (floordiv, "ctaid"), "nclusterid": (floordiv, "nctaid"), "cluster_ctaid": (mod, "ctaid")}
"""What is done with the CTAs of a cluster in a dimension."""
OF_LANE: dict[str, Callable[[Lane], int]] = {
    "laneid": lambda lane: lane.index,
    "cluster_ctarank": lambda lane: lane.warp.block.rank,
    "lanemask_eq": lambda lane: lane.bit,
    "lanemask_lt": lambda lane: lane.bit - 1,
    "lanemask_le": lambda lane: 2 * lane.bit - 1,
    "lanemask_gt": lambda lane: -2 * lane.bit & ALL,
    "lanemask_ge": lambda lane: -lane.bit & ALL,
    "clock": lambda lane: lib.pe_clock(lane.warp.w) & ALL,
    "clock_hi": lambda lane: lib.pe_clock(lane.warp.w) >> 32,
    "clock64": lambda lane: int(lib.pe_clock(lane.warp.w)),
    "globaltimer": lambda lane: int(lib.pe_globaltimer(lane.warp.w)),
    "globaltimer_lo": lambda lane: lib.pe_globaltimer(lane.warp.w) & ALL,
    "globaltimer_hi": lambda lane: lib.pe_globaltimer(lane.warp.w) >> 32,
    "envreg1": lambda lane: lane.warp.w.grid_workspace >> 32,  # the address of the grid barrier's words
    "envreg2": lambda lane: lane.warp.w.grid_workspace & ALL,
}
FIXED = {"nwarpid": LANES}  # all others are zero


def special(t: Translator, name: str) -> Callable[[Lane], int]:
    """How to read a special register."""
    stem, _, axis = name.partition(".")
    if stem == "tid":
        number = AXES[axis]
        return lambda lane: lane.tid[number]
    if stem in SHAPES:
        number = AXES[axis]
        return lambda lane: int(getattr(lane.warp.w, stem)[number])
    if stem in CLUSTERS:
        operation, whole = CLUSTERS[stem]
        number = AXES[axis]
        return lambda lane: operation(getattr(lane.warp.w, whole)[number], lane.warp.w.cluster_nctaid[number])
    if stem == "is_explicit_cluster" and not t.layout.explicit_cluster:
        return lambda lane: int(lane.warp.w.cluster_nctarank > 1)
    if stem in FIELDS:
        field = FIELDS[stem]
        return lambda lane: int(getattr(lane.warp.w, field))
    if stem in OF_LANE:
        return OF_LANE[stem]
    value = 1 if stem == "is_explicit_cluster" else FIXED.get(stem, 0)
    return lambda lane: value
