"""Barriers and fences (PTX ISA, "Parallel Synchronization and Communication Instructions")."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "Parallel Synchronization and Communication Instructions"

CTA = "cta@7.8@10"
# ``bar`` is ``barrier.aligned`` (the manual): only the spelling differs.
for _opcode, _aligned, _ptx in (("bar", "", "1.0"), ("barrier", "aligned? ", "6.0")):
    row(_opcode, f"cta? sync {_aligned}", "a:u32, b:u32?", ptx=_ptx, lower="barrier_sync", gates=CTA,
        does="meets warp, waits cta", chapter=CHAPTER)  # fmt: skip
    row(_opcode, f"cta? arrive {_aligned}", "a:u32, b:u32", ptx=_ptx, sm=20, lower="barrier_arrive", gates=CTA,
        does="meets warp, arrives cta", chapter=CHAPTER)  # fmt: skip
    row(_opcode, f"cta? red op=popc {_aligned}type=u32", "d:u32, a:u32, b:u32?, c:pred", ptx=_ptx, sm=20,
        lower="barrier_red", gates=CTA, does="meets warp, waits cta, uniform", chapter=CHAPTER)  # fmt: skip
    row(_opcode, f"cta? red op=and,or {_aligned}type=pred", "d:pred, a:u32, b:u32?, c:pred", ptx=_ptx, sm=20,
        lower="barrier_red", gates=CTA, does="meets warp, waits cta, uniform", chapter=CHAPTER)  # fmt: skip
row("bar", "warp sync", "membermask:u32", ptx="6.0", sm=30, lower="bar_warp_sync", does="meets membermask", chapter=CHAPTER)


def _fence(qualifiers: str, operands: str = "", *, opcode: str = "fence", ptx: str = "6.0", sm: int = 70) -> None:
    row(opcode, qualifiers, operands, ptx=ptx, sm=sm, lower="fence", flags="widened", does="fences", chapter=CHAPTER,
        gates="cluster@7.8@90")  # fmt: skip


_fence("level=cta,gl", opcode="membar", ptx="1.4", sm=10)
_fence("level=sys", opcode="membar", ptx="2.0", sm=20)
_fence("proxy kind=alias", opcode="membar", ptx="7.5", sm=60)
_fence("sem?=sc,acq_rel,acquire,release scope=cta,cluster,gpu,sys")
_fence("sem=acquire restrict=sync_restrict::shared::cluster scope=cluster", ptx="8.6", sm=90)
_fence("sem=release restrict=sync_restrict::shared::cta scope=cluster", ptx="8.6", sm=90)
_fence("op=mbarrier_init sem=release scope=cluster", ptx="8.0", sm=90)
_fence("proxy kind=alias", ptx="7.5")
_fence("proxy kind=async space?=global,shared::cta,shared::cluster", ptx="8.0", sm=90)
_fence("proxy kind=async::generic sem=acquire restrict=sync_restrict::shared::cluster scope=cluster", ptx="8.6", sm=90)
_fence("proxy kind=async::generic sem=release restrict=sync_restrict::shared::cta scope=cluster", ptx="8.6", sm=90)
_fence("proxy kind=tensormap::generic sem=release scope=cta,cluster,gpu,sys", ptx="8.3", sm=90)
_fence("proxy kind=tensormap::generic sem=acquire scope=cta,cluster,gpu,sys", "[a]:, immsize:u32(128)", ptx="8.3", sm=90)

traits("sized functionless", "bar", "barrier")
name_words("arrive red warp cta", "bar")
name_words("arrive red cluster cta wait", "barrier")
name_words("proxy", "fence", "membar")
