"""Special registers (PTX ISA "Special Registers"), of a device whose clusters have one block."""

from __future__ import annotations

from collections.abc import Callable
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
    "total_smem_size": "shared_size", "aggr_smem_size": "shared_size",
}  # fmt: skip
SHAPES = {"ntid": "ntid", "ctaid": "ctaid", "nctaid": "nctaid", "clusterid": "ctaid", "nclusterid": "nctaid"}
OF_LANE: dict[str, Callable[[Lane], int]] = {
    "laneid": lambda lane: lane.index,
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
FIXED = {"nwarpid": LANES, "cluster_nctarank": 1, "cluster_nctaid": 1}  # all others are zero


def special(t: Translator, name: str) -> Callable[[Lane], int]:
    """How to read a special register."""
    stem, _, axis = name.partition(".")
    if stem == "tid":
        number = AXES[axis]
        return lambda lane: lane.tid[number]
    if stem in SHAPES:
        field, number = SHAPES[stem], AXES[axis]
        return lambda lane: int(getattr(lane.warp.w, field)[number])
    if stem in FIELDS:
        field = FIELDS[stem]
        return lambda lane: int(getattr(lane.warp.w, field))
    if stem in OF_LANE:
        return OF_LANE[stem]
    value = int(t.layout.explicit_cluster) if stem == "is_explicit_cluster" else FIXED.get(stem, 0)
    return lambda lane: value
