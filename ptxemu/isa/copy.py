"""Asynchronous copies (PTX ISA, "Asynchronous copy"): the accepted set is the one measured with ptxas."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits
from ptxemu.isa.words import HINT

CHAPTER = "Data Movement and Conversion Instructions"

BYTES = "completion=mbarrier::complete_tx::bytes"
GROUP = "completion=bulk_group"
SIZE = "size:u32<0..1048560/16>"
SIDES = "[d]@dst:, [s]@src:"


def _row(qualifiers: str, operands: str, *, ptx: str = "8.0", sm: int = 90, lower: str = "bulk_copy", gates: str = "",
         flags: str = "", does: str = "") -> None:  # fmt: skip
    row("cp", qualifiers, operands, ptx=ptx, sm=sm, lower=lower, chapter=CHAPTER, gates=gates, flags=flags, does=does)


# ---------------------------------------------------------------- cp.async

for _cop, _sizes in (("ca", "4,8,16"), ("cg", "16")):
    _qualifiers = f"async cop={_cop} dst=shared,shared::cta src=global {HINT} prefetch?=L2::64B,L2::128B,L2::256B"
    for _part, _ptx in (("given:u32<immsize>?", "7.0"), ("ignore:pred", "7.5")):
        _row(_qualifiers, f"{SIDES}, immsize:u32({_sizes}), {_part}, policy:u64?hint", ptx=_ptx, sm=80, lower="copy",
             does="writes [d] for immsize, reads [s] for ?",
             gates="L2::cache_hint@7.4@80 L2::64B@7.4@80 L2::128B@7.4@80 L2::256B@7.4@80")  # fmt: skip
_row("async commit_group", "", ptx="7.0", sm=80, lower="copies_done", does="nothing")
_row("async wait_group", "immN:b32", ptx="7.0", sm=80, lower="copies_done", does="nothing")
_row("async wait_all", "", ptx="7.0", sm=80, lower="copies_done", does="nothing")
for _noinc in ("", "noinc "):
    _row(f"async mbarrier arrive {_noinc}space?=shared,shared::cta type=b64", "[a]:type", ptx="7.0", sm=80,
         lower="mbarrier", flags="widened", does="updates mbarrier [a]", gates="shared::cta@7.8@80")  # fmt: skip

# ---------------------------------------------------------------- cp.async.bulk

_INTO = f"{SIDES}, {SIZE}, [m]@dst:b64"
_COPIES = "writes [d] for size, reads [s] for size"
NOFTZ_GATE = "noftz&f32@9.4@90"
_REDUCES = "updates [d] for size, reads [s] for size"
_TELLS = "updates mbarrier [m]"
_row(f"async bulk dst=shared::cta src=global {BYTES} {HINT}", f"{_INTO}, policy:u64?hint", ptx="8.6", does=f"{_COPIES}, {_TELLS}")
_row(f"async bulk dst=shared::cluster src=global {BYTES} {HINT}", f"{_INTO}, policy:u64?hint", does=f"{_COPIES}, {_TELLS}")
_row(f"async bulk dst=shared::cluster src=global {BYTES} multicast=multicast::cluster {HINT}",
     f"{_INTO}, ctas:b16, policy:u64?hint", does=f"{_COPIES}, {_TELLS}")  # fmt: skip
_row(f"async bulk dst=shared::cta src=global {BYTES} ignore_oob {HINT}",
     f"{SIDES}, {SIZE}, left:u32<0..15>, right:u32<0..15>, [m]@dst:b64, policy:u64?hint", ptx="9.2", lower="bulk_copy_within",
     does=f"{_COPIES}, {_TELLS}")  # fmt: skip
_row(f"async bulk dst=shared::cluster src=shared::cta {BYTES}", _INTO, does=f"{_COPIES}, {_TELLS}")
_row(f"async bulk dst=global src=shared::cta {GROUP} {HINT} mask?=cp_mask", f"{SIDES}, {SIZE}, policy:u64?hint, bytes:b16?mask",
     gates="cp_mask@8.6@100", does=_COPIES)  # fmt: skip
_row(f"async bulk prefetch level=L2 src=global {HINT}", f"[s]@src:, {SIZE}, policy:u64?hint", lower="prefetch", does="nothing")
_row("async bulk commit_group", "", lower="copies_done", does="nothing")
_row("async bulk wait_group read?", "immN:b32", lower="copies_done", does="nothing")

_SHARED = (("add", "u32,s32,u64"), ("min,max", "u32,s32"), ("inc,dec", "u32"), ("and,or,xor", "b32"))
REDUCED_IN_GLOBAL = (
    "op=add type=u32,s32,u64,f32,f64", "op=min,max type=u32,s32,u64,s64,f16,bf16", "op=inc,dec type=u32",
    "op=and,or,xor type=b32,b64", "op=add noftz type=f16,bf16,f32",
)  # fmt: skip
for _ops, _types in _SHARED:
    _row(f"reduce async bulk dst=shared::cluster src=shared::cta {BYTES} op={_ops} type={_types}", _INTO, lower="bulk_reduce",
         does=f"{_REDUCES}, {_TELLS}")  # fmt: skip
for _form in REDUCED_IN_GLOBAL:
    _row(f"reduce async bulk dst=global src=shared::cta {GROUP} {HINT} {_form}", f"{SIDES}, {SIZE}, policy:u64?hint",
         lower="bulk_reduce", does=_REDUCES, gates=NOFTZ_GATE)  # fmt: skip


traits("short opaque:texref opaque:surfref", "cp")
name_words("async reduce bulk commit_group wait_group wait_all mbarrier arrive prefetch", "cp")
