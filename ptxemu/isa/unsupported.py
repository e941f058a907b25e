"""The rest of the PTX instruction set: recognised, so that modules which contain it can be inspected, but not run."""

from __future__ import annotations

from ptxemu.isa.table import UNSUPPORTED, row

# chapter: (opcode, minimum version, minimum target)
FAMILIES: dict[str, tuple[tuple[str, str, int], ...]] = {
    "Texture Instructions": (("tex", "1.0", 10), ("tld4", "2.2", 20), ("txq", "1.5", 10)),
    "Data Movement and Conversion Instructions": (
        ("cp", "7.0", 80), ("mapa", "7.8", 90), ("getctarank", "7.8", 90), ("multimem", "8.1", 90),
        ("tensormap", "8.3", 90), ("discard", "7.4", 80), ("applypriority", "7.4", 80), ("createpolicy", "7.4", 80),
    ),
    "Parallel Synchronization and Communication Instructions": (
        ("mbarrier", "7.0", 80), ("griddepcontrol", "7.8", 90), ("clusterlaunchcontrol", "8.6", 100),
    ),
    "Warp Level Matrix Instructions": (
        ("wgmma", "8.0", 90), ("tcgen05", "8.6", 100),
    ),
    "Miscellaneous Instructions": (("setmaxnreg", "8.0", 90),),
}  # fmt: skip

# Those whose forms are checked: (chapter, opcode, slots, operands, minimum version, minimum target)
ASYNC = "Data Movement and Conversion Instructions"
SYNC = "Parallel Synchronization and Communication Instructions"
FORMS = (
    (ASYNC, "mapa", "space=shared::cluster type=u32,u64", "d:type, a:type, b:u32", "7.8", 90),
    (ASYNC, "mapa", "type=u32,u64", "d:type, a:type, b:u32", "7.8", 90),
    (ASYNC, "getctarank", "space?=shared::cluster type=u32", "d:u32, a:address", "7.8", 90),
    (ASYNC, "discard", "space?=global level=L2", "[a]:, size:u32", "7.4", 80),
    (ASYNC, "applypriority", "space?=global level=L2::evict_normal", "[a]:, size:u32", "7.4", 80),
    (SYNC, "griddepcontrol", "mode=wait,launch_dependents", "", "7.8", 90),
    ("Miscellaneous Instructions", "setmaxnreg", "mode=inc,dec sync aligned type=u32", "a:u32", "8.0", 90),
)  # fmt: skip
COVERED = frozenset(form[1] for form in FORMS)

row("mov", "vec=v2,v4 type=u16,u32,u64,s16,s32,s64,b16,b32,b64,f32,f64", "...", lower=UNSUPPORTED,
    chapter="Data Movement and Conversion Instructions")  # fmt: skip
for _chapter, _instructions in FAMILIES.items():
    for _opcode, _ptx, _sm in _instructions:
        if _opcode not in COVERED:
            row(_opcode, "...", "...", ptx=_ptx, sm=_sm, lower=UNSUPPORTED, chapter=_chapter)
for _chapter, _opcode, _slots, _operands, _ptx, _sm in FORMS:
    row(_opcode, _slots, _operands, ptx=_ptx, sm=_sm, lower=UNSUPPORTED, chapter=_chapter)
