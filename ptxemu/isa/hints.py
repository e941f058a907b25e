"""Instructions that steer caches, registers and dependent launches, and change no result (PTX ISA)."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

MOVEMENT = "Data Movement and Conversion Instructions"
SYNC = "Parallel Synchronization and Communication Instructions"

PRIMARY = "first=L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged"
SECONDARY = "second?=L2::evict_first,L2::evict_unchanged"

row("discard", "space?=global level=L2", "[a]:, immsize:u32(128)", ptx="7.4", sm=80, lower="hint", does="nothing",
    chapter=MOVEMENT)  # fmt: skip
row("applypriority", "space?=global level=L2::evict_normal", "[a]:, immsize:u32(128)", ptx="7.4", sm=80, lower="hint",
    does="nothing", chapter=MOVEMENT)  # fmt: skip
row(
    "createpolicy",
    f"fractional {PRIMARY} {SECONDARY} type=b64",
    "d:type, fraction:f32<0..1>?",
    ptx="7.4",
    sm=80,
    does="pure",
    chapter=MOVEMENT,
)
row("createpolicy", f"range space?=global {PRIMARY} {SECONDARY} type=b64", "d:type, [a]:, primary:u32, total:u32", ptx="7.4",
    sm=80, flags="widened", does="pure", chapter=MOVEMENT)  # fmt: skip
row(
    "createpolicy",
    "cvt level=L2 type=b64",
    "d:type, a:u64",
    ptx="7.4",
    sm=80,
    lower="mov",
    does="copies a",
    flags="specials",
    chapter=MOVEMENT,
)
row("griddepcontrol", "mode=wait,launch_dependents", "", ptx="7.8", sm=90, lower="hint", does="nothing", chapter=SYNC)
row("setmaxnreg", "mode=inc,dec sync aligned type=u32", "immcount:u32(24..256/8)", ptx="8.0", sm=90, lower="hint",
    flags="accelerated", does="meets warp", chapter="Miscellaneous Instructions")  # fmt: skip

traits("opaque:surfref", "discard")
traits("address64 named opaque:surfref", "applypriority")
traits("integer", "createpolicy")
name_words("fractional range cvt", "createpolicy")
name_words("inc dec", "setmaxnreg")
