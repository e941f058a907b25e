"""The special registers (PTX ISA, "Special Registers"): their names without ``%`` and their types."""

from __future__ import annotations

from ptxemu.ir.types import PRED, TYPES, U32, U64, ScalarType

TRIPLES = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
WORDS = (
    "laneid", "warpid", "nwarpid", "smid", "nsmid", "cluster_ctarank", "cluster_nctarank", "lanemask_eq", "lanemask_le",
    "lanemask_lt", "lanemask_ge", "lanemask_gt", "clock", "clock_hi", "globaltimer_lo", "globaltimer_hi",
    "total_smem_size", "aggr_smem_size", "dynamic_smem_size", "reserved_smem_offset_begin", "reserved_smem_offset_end",
    "reserved_smem_offset_cap", "reserved_smem_offset_0", "reserved_smem_offset_1", "perctamemorysize",
)  # fmt: skip
LONGS = ("clock64", "globaltimer", "current_graph_exec", "perctamemoryoffset")
NOT_RUN = frozenset({"perctamemorysize", "perctamemoryoffset"})
"""Of memory that a CTA has with ``.minperctamemory``, which ptxemu does not give it."""


GATES: dict[str, tuple[tuple[int, int], int]] = {
    **dict.fromkeys(("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid", "cluster_ctarank", "cluster_nctarank",
                     "is_explicit_cluster"), ((7, 8), 90)),
    **dict.fromkeys(("laneid", "warpid", "smid", "pm0", "pm1", "pm2", "pm3"), ((1, 3), 10)),
    **dict.fromkeys(("nwarpid", "nsmid", "clock64"), ((2, 0), 20)),
    **{f"lanemask_{relation}": ((2, 0), 20) for relation in ("eq", "le", "lt", "ge", "gt")},
    **{f"pm{i}": ((3, 0), 20) for i in range(4, 8)}, **{f"pm{i}_64": ((4, 0), 50) for i in range(8)},
    **dict.fromkeys(("globaltimer", "globaltimer_lo", "globaltimer_hi"), ((3, 1), 30)),
    **dict.fromkeys(("total_smem_size", "dynamic_smem_size"), ((4, 1), 20)), "aggr_smem_size": ((8, 1), 90),
    **{f"reserved_smem_offset_{which}": ((7, 6), 80) for which in ("begin", "end", "cap", "0", "1")},
    "clock_hi": ((5, 0), 20), "current_graph_exec": ((8, 0), 50), **dict.fromkeys(NOT_RUN, ((9, 4), 80)),
}  # fmt: skip
"""The first version and target of those that not all have; of a triple, by its name."""


def _table() -> dict[str, tuple[ScalarType, ...]]:
    """Each register with the types it may be read as; one type allows every integer type of its width."""
    narrow = (U32, TYPES["u16"])  # the first PTX versions had 16-bit thread and block indices
    table: dict[str, tuple[ScalarType, ...]] = {f"{name}.{axis}": narrow for name in TRIPLES for axis in "xyz"}
    table |= dict.fromkeys(WORDS, (U32,)) | dict.fromkeys(LONGS, (U64,))
    table |= {f"envreg{i}": (U32,) for i in range(32)}
    table |= {f"pm{i}": (U32,) for i in range(8)} | {f"pm{i}_64": (U64,) for i in range(8)}
    return table | {"gridid": (U64, U32), "is_explicit_cluster": (PRED,)}


SPECIAL_REGISTERS = _table()
