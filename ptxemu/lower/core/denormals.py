"""Kernels for which the processor itself may read subnormal numbers as zeros and make none (DAZ and FTZ, modes of x86).

``.ftz`` makes zeros of subnormal operands and results.  In a kernel whose arithmetic all does so, nobody can tell a subnormal
number from a zero until its bits are observed, by a store or a move: there a value that was only loaded is flushed, and else the
modes do it, of results as GPUs do.  They are modes of the thread, so that no other arithmetic may run under them: none of another
type, and none in the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Op, items_of
from ptxemu.lower.core.emit import ELEMENTWISE, Emitter

BITWISE = r"llvm\.(fabs|copysign|[su](min|max)|abs|ct|b|fsh|[su](add|sub)\.|vector|expect)"
ARITHMETIC = re.compile(rf"(fadd|fsub|fmul|fdiv|frem|fcmp|fptrunc|fpext|fptosi|fptoui) |call .*@(?!{BITWISE})")
"""LLVM instructions that the mode may make differ, and all calls but those of intrinsics that work on bits."""

FLOATS = re.compile(r"(b?f|tf|u?e)\d")
"""Modifiers that name floating-point types."""

DIRECTED = ("rz", "rm", "rp")
"""Roundings that compare what they have rounded with the exact value, which the mode may disturb."""

Form = tuple[str, tuple[tuple[str, str], ...]]


class _Probe(Emitter):
    """Notes whether what is emitted computes with floats."""

    def __init__(self) -> None:
        super().__init__(0)
        self.computes = False

    def inst(self, text: str) -> str:
        self.computes = self.computes or ARITHMETIC.match(text) is not None
        return super().inst(text)

    def stmt(self, text: str) -> None:
        self.computes = self.computes or text.startswith("call ")

    def temporary(self, type: str) -> str:
        return self.fresh()


def all_flush(graphs: Iterable[Graph]) -> bool:
    """Whether there is f32 arithmetic with ``.ftz``, and no other arithmetic on floats."""
    ops = [op for graph in graphs for block in graph.blocks for op in block.ops]
    others = [op for op in ops if not _flushes(op)]
    known: dict[Form, bool] = {}
    return len(others) < len(ops) and not any(op.effects.nan or _may_compute(op, known) for op in others)


def _flushes(op: Op) -> bool:
    if "ftz" not in op.mods or op.mods.get("round") in DIRECTED:
        return False
    kinds = (*op.dst_types, *op.src_types)
    return all(kind is None or kind.name == "f32" or not FLOATS.match(kind.name) for kind in kinds)


def _may_compute(op: Op, known: dict[Form, bool]) -> bool:
    """Whether an op that does not flush may compute with floats, in the kernel or in the runtime."""
    if op.call is not None:
        return not op.call.real
    if op.row.lower not in ELEMENTWISE:
        if any(access.stated.opaque for access in op.accesses):
            return True  # surfaces and textures convert
        moves = bool(op.accesses) and all(access.stated.kind != "update" for access in op.accesses)
        return not moves and any(map(FLOATS.match, op.mods.values()))
    form = op.row.lower, tuple(sorted(op.mods.items()))
    if form not in known:
        probe = _Probe()
        sources = [probe.fresh() for source in op.srcs for _ in items_of(source)]
        ELEMENTWISE[op.row.lower](probe, op, *sources)
        known[form] = probe.computes
    return known[form]
