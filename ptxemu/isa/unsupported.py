"""The rest of the PTX instruction set: recognised, so that modules which contain it can be inspected, but not run."""

from __future__ import annotations

from ptxemu.isa.table import UNSUPPORTED, row

# chapter: (opcode, minimum version, minimum target, flags)
FAMILIES: dict[str, tuple[tuple[str, str, int, str], ...]] = {
    "Data Movement and Conversion Instructions": (("multimem", "8.1", 90, ""), ("tensormap", "8.3", 90, "")),
    "Parallel Synchronization and Communication Instructions": (("clusterlaunchcontrol", "8.6", 100, ""),),
    "Warp Level Matrix Instructions": (("wgmma", "8.0", 90, "accelerated"), ("tcgen05", "8.6", 100, "accelerated")),
}  # fmt: skip

for _chapter, _instructions in FAMILIES.items():
    for _opcode, _ptx, _sm, _flags in _instructions:
        row(_opcode, "...", "...", ptx=_ptx, sm=_sm, lower=UNSUPPORTED, flags=_flags, chapter=_chapter)
