"""Data movement through memory: ld, ldu, st, prefetch, cvta and space tests (PTX ISA, "Data Movement")."""

from __future__ import annotations

from functools import partial

from ptxemu.isa.table import UNSUPPORTED, row
from ptxemu.isa.traits import name_words, traits
from ptxemu.isa.words import HINT, SCOPE

CHAPTER = "Data Movement and Conversion Instructions"

READS, WRITES = "reads [a] as d, varying in local", "writes [a] as v"
TYPES = "type=b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64"
WORDS = "type=b32,u32,s32,f32"  # the element types of 256-bit accesses
NARROW = "type=b8,u8,s8,b16,u16,s16"
LONGS = "type=b64,u64,s64,f64"
SHARED = "shared,shared::cta,shared::cluster"
LOADED = f"const,global,local,param,param::entry,param::func,{SHARED}"
STORED = f"global,local,param,param::func,{SHARED}"
STRONG = f"global,{SHARED}"
EVICT = "evict?=L1::evict_normal,L1::evict_unchanged,L1::evict_first,L1::evict_last,L1::no_allocate"
EVICT_WIDE = f"{EVICT} evict_l2?=L2::evict_normal,L2::evict_first,L2::evict_last"  # of 256-bit accesses
PREFETCH = "prefetch?=L2::64B,L2::128B,L2::256B"
GATES = (
    "ca@2.0@20 cg@2.0@20 cs@2.0@20 lu@2.0@20 cv@2.0@20 wb@2.0@20 wt@2.0@20 weak@6.0@70 relaxed@6.0@70 acquire@6.0@70 "
    "release@6.0@70 cluster@7.8@90 shared::cta@7.8@10 shared::cluster@7.8@90 param::entry@8.3@10 "
    "param::func@8.3@10 nc@3.1@32 b128@8.3@70 sys&b128@8.4@70 "
    "L2::cache_hint@7.4@80 L2::64B@7.4@75 L2::128B@7.4@75 L2::256B@7.4@80 "
    "L1::evict_normal@7.4@70 L1::evict_unchanged@7.4@70 L1::evict_first@7.4@70 L1::evict_last@7.4@70 "
    "L1::no_allocate@7.4@70 L2::evict_normal@8.8@100 L2::evict_first@8.8@100 L2::evict_last@8.8@100"
)


def _load(qualifiers: str, *, ptx: str = "1.0", sm: int = 10) -> None:
    operands = "d:type*vec, [a]:type, policy:u64?hint" if HINT in qualifiers else "d:type*vec, [a]:type"
    does = READS.replace("reads", "reads constant") if " nc " in qualifiers else READS
    row("ld", qualifiers, operands, ptx=ptx, sm=sm, does=does, chapter=CHAPTER, gates=GATES)


def _store(qualifiers: str, *, ptx: str = "1.0", sm: int = 10) -> None:
    operands = "[a]:type, v:type*vec, policy:u64?hint" if HINT in qualifiers else "[a]:type, v:type*vec"
    row("st", qualifiers, operands, ptx=ptx, sm=sm, does=WRITES, chapter=CHAPTER, gates=GATES)


# Eviction priorities, cache hints and prefetch sizes belong to global memory; so do accesses of 256 bits.
for _global, _space, _vec, _ptx, _sm in (
    (False, f"space?={LOADED}", f"vec?=v2,v4 {TYPES}", "1.0", 10),
    (False, f"space?={LOADED}", f"vec=v8 {NARROW}", "8.8", 100),
    (True, "space?=global", f"vec?=v2,v4 {TYPES}", "1.0", 10),
    (True, "space?=global", f"vec=v8 {NARROW}", "8.8", 100),
    (True, "space?=global", f"vec=v8 {WORDS}", "8.8", 100),
    (True, "space?=global", f"vec=v4 {LONGS}", "8.8", 100),
):
    _strong = _space if _global else f"space?={STRONG}"
    _stored = _space if _global else f"space?={STORED}"
    _hints = f"{HINT} {PREFETCH}" if _global else ""
    _evict = "" if not _global else f"{EVICT_WIDE} " if WORDS in _vec or LONGS in _vec else f"{EVICT} "
    _load(f"sem?=weak {_space} cop?=ca,cg,cs,lu,cv {_hints} {_vec}", ptx=_ptx, sm=_sm)
    _load(f"sem=volatile {_strong} {PREFETCH if _global else ''} {_vec}", ptx=_ptx, sm=_sm)
    _load(f"sem=relaxed,acquire {SCOPE} {_strong} {_evict}{_hints} {_vec}", ptx=_ptx, sm=_sm)
    _least = ("1.0", 10) if _vec.endswith(NARROW) else (_ptx, _sm)
    _store(f"sem?=weak {_stored} cop?=wb,cg,cs,wt {HINT if _global else ''} {_vec}", ptx=_least[0], sm=_least[1])
    _store(f"sem=volatile {_strong} {_vec}", ptx=_least[0], sm=_least[1])
    _store(f"sem=relaxed,release {SCOPE} {_strong} {_evict}{HINT if _global else ''} {_vec}", ptx=_least[0], sm=_least[1])
    if _global:
        _load(f"sem?=weak {_space} {_evict}{_hints} {_vec}", ptx=_ptx, sm=_sm)
        _load(f"space=global nc cop?=ca,cg,cs {_hints} {_vec}", ptx=_ptx, sm=_sm)
        _load(f"space=global nc {_evict}{_hints} {_vec}", ptx=_ptx, sm=_sm)
        _store(f"sem?=weak {_space} {_evict}{HINT} {_vec}", ptx=_least[0], sm=_least[1])
# Volatile is of no effect in memory that one thread has.
_load(f"sem=volatile space=local vec?=v2,v4 {TYPES}", ptx="9.1")
_store(f"sem=volatile space=local vec?=v2,v4 {TYPES}", ptx="9.1")
_load("space?=global proxy=proxy::readonly vec?=v2,v4 " + TYPES.replace(",b128", ""), ptx="9.4", sm=90)
_load("space=global nc proxy=proxy::readonly vec?=v2,v4 " + TYPES.replace(",b128", ""), ptx="9.4", sm=90)
row("ld", f"mmio sem=relaxed,acquire scope=sys space?=global {TYPES}", "d:type, [a]:type", ptx="8.2", sm=70, does=READS,
    chapter=CHAPTER, gates="b128@8.4@70 acquire@9.3@70")  # fmt: skip
row("st", f"mmio sem=relaxed,release scope=sys space?=global {TYPES}", "[a]:type, v:type", ptx="8.2", sm=70, does=WRITES,
    chapter=CHAPTER, gates="b128@8.4@70 release@9.3@70")  # fmt: skip

row("ldu", f"space?=global vec?=v2,v4 {TYPES}", "d:type*vec, [a]:type", ptx="2.0", lower="ld", does=READS,
    chapter=CHAPTER)  # fmt: skip
_ASYNC = "b32,b64,u32,u64,s32,s64,f32,f64"
row("st", "async sem?=weak space?=shared,shared::cta,shared::cluster completion=mbarrier::complete_tx::bytes vec?=v2,v4 "
    f"type={_ASYNC}", "[a]:type, v:type*vec, [m]:b64", ptx="8.1", sm=90, lower="st_async", flags="widened",
    does=f"{WRITES}, updates mbarrier [m]", chapter=CHAPTER)  # fmt: skip
row("st", "async sem?=weak space?=shared,shared::cta,shared::cluster completion=mbarrier::complete_tx::bytes type=b128",
    "[a]:type, v:type, [m]:b64", ptx="9.2", sm=90, lower="st_async", flags="widened",
    does=f"{WRITES}, updates mbarrier [m]", chapter=CHAPTER)  # fmt: skip
for _order in ("sem=release scope=gpu,sys", "mmio sem=release scope=sys"):
    row("st", f"async {_order} space?=global type=b8,u8,s8,b16,u16,s16,{_ASYNC}", "[a]:type, v:type", ptx="8.7", sm=100,
        lower="st_async", flags="exact", does=WRITES, chapter=CHAPTER)  # fmt: skip
row("st", "bulk sem?=weak space?=shared::cta", "[a]:, size:u64, immzero:u64(0)", ptx="8.6", sm=100, lower="st_bulk",
    does="writes [a] for size", chapter=CHAPTER)  # fmt: skip

prefetch = partial(row, "prefetch", does="nothing", chapter=CHAPTER)
prefetch("space?=global,local level=L1,L2", "[a]:", ptx="2.0", sm=20)
prefetch("space?=global valid_addr level=L1::32B", "[a]:", ptx="9.4", sm=90)
prefetch("space?=global level=L2::evict_last,L2::evict_normal", "[a]:", ptx="7.4", sm=80)
prefetch("space?=const,param level=tensormap", "[a]:", ptx="8.0", sm=90, flags="widened")
row("prefetchu", "level=L1", "[a]@global:", ptx="2.0", sm=20, lower="prefetch", does="nothing", chapter=CHAPTER)

row("isspacep", f"space=const,global,local,param,param::entry,{SHARED}", "d:pred, a:address", ptx="2.0", sm=20,
    does="pure", chapter=CHAPTER, gates="const@3.1@20 param@7.7@70 param::entry@8.3@70 shared::cta@7.8@20 shared::cluster@7.8@90",
    )  # fmt: skip
_SPACE_GATES = "const@3.1@20 param@7.7@70 param::entry@8.3@70 shared::cta@7.8@20 shared::cluster@7.8@90"
for _to in ("", "to "):
    _spaces = f"{_to}space=const,global,local,param,param::entry,{SHARED}"
    row("cvta", f"{_spaces} size=u64", "d:size, a:size", ptx="2.0", sm=20, does="pure, varying in local", chapter=CHAPTER,
        gates=_SPACE_GATES)  # fmt: skip
    row("cvta", f"{_spaces} size=u32", "d:size, a:size", ptx="2.0", sm=20, lower=UNSUPPORTED, flags="narrow", chapter=CHAPTER)

traits("relaxed element", "ld", "ldu", "st")
traits("masked", "st")
traits("address64 opaque:surfref", "prefetch", "prefetchu")
traits("symbols functionless converts base:a", "cvta")
traits("literal", "isspacep")
name_words("to", "cvta")
name_words("async bulk", "st")
