"""Whether a kernel's local memory may lie as GPUs have it: word by word, that of a number of all lanes of a warp side by side.

Then an access to the same place in all lanes is one of neighbours, as in arrays that loops go through. Nobody may tell the
difference: no generic address is made of a local one, and only loads and stores access the memory.
"""

from __future__ import annotations

from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Op
from ptxemu.isa.table import LOADS_AND_STORES

MOST_PARTS = 4
"""Words of an element, beyond which it would be too much code to put one together."""
STACK = "stack"
"""The operand of what takes local memory as it goes."""


def word_of(graph: Graph) -> int:
    """The bytes of a word: those of the smallest element that is accessed; 0 where lanes must have windows of their own."""
    sizes: set[int] = set()
    for op in (op for block in graph.blocks for op in block.ops):
        if op.call is not None or op.effects.calls or STACK in op.row.names or _makes_generic(op):
            return 0
        if any(access.space == "local" for access in op.accesses):
            if op.row.lower not in LOADS_AND_STORES:
                return 0
            sizes.add(_element(op))
    least, most = min(sizes, default=0), max(sizes, default=0)
    return least if most <= MOST_PARTS * least else 0


def _makes_generic(op: Op) -> bool:
    """Whether the result differs between lanes since it is an address in local memory, and no access has made it."""
    differs = op.effects.results == "varying in local" and op.mods.get("space") == "local"
    return differs and not op.accesses and "to" not in op.mods


def _element(op: Op) -> int:
    kind = op.dst_types[0] if op.dst_types else op.type_of("v")
    assert kind is not None
    return kind.bytes
