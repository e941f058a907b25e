"""mbarrier objects (PTX ISA, "mbarrier")."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

CHAPTER = "Parallel Synchronization and Communication Instructions"

ARRIVES, WAITS = "updates mbarrier [a], varying", "reads mbarrier [a], waits mbarrier"
OWN = "space?=shared,shared::cta"
CLUSTER = "space=shared::cluster"
ANY = "space?=shared,shared::cta,shared::cluster"
GATES = "shared::cta@7.8@80 cluster@8.0@90 "
RELAXED = "relaxed@8.6@90"  # of arrivals and waits; transactions are always relaxed
COUNTED = "+count@7.8@90"
LAYOUT, PRIMARY = "layout::v0@9.3@90", "phase_type::primary@9.3@90"
COUNT = "count:u32<1..4294967295>"
ORDERS = ("", "sem={} scope=cta,cluster ")  # both or neither


def _row(qualifiers: str, operands: str, *, ptx: str = "7.0", sm: int = 80, lower: str = "mbarrier",
         does: str = "updates mbarrier [a]", gates: str = RELAXED) -> None:  # fmt: skip
    row("mbarrier", qualifiers, operands, ptx=ptx, sm=sm, lower=lower, does=does, chapter=CHAPTER, gates=GATES + gates)


def _arrivals(name: str) -> None:
    """An arrival gives the state, but at an object that may be another CTA's."""
    for order in ORDERS:
        sem = order.format("release,relaxed")
        _row(f"{name} {sem}{OWN} type=b64", f"d_:type, [a]:type, {COUNT}?", ptx="8.0" if sem else "7.0", does=ARRIVES,
             gates=f"{RELAXED} {COUNTED}")  # fmt: skip
        _row(f"{name} {sem}{CLUSTER} type=b64", f"_:type, [a]:type, {COUNT}?", ptx="8.0", sm=90)
        _row(f"{name} expect_tx {sem}{OWN} type=b64", "d_:type, [a]:type, tx:u32", ptx="8.0", sm=90, does=ARRIVES)
        _row(f"{name} expect_tx {sem}{CLUSTER} type=b64", "_:type, [a]:type, tx:u32", ptx="8.0", sm=90)
    for sem in ("", "sem=release scope=cta "):
        _row(f"{name} noComplete {sem}{OWN} type=b64", f"d_:type, [a]:type, {COUNT}", ptx="8.0" if sem else "7.0", does=ARRIVES)


_row(f"init {OWN} layout?=layout::v0 type=b64", "[a]:type, count:u32", does="writes mbarrier [a]", gates=LAYOUT)
_row(f"init {OWN} layout=layout::v1 type=b64", "[a]:type, count:u32", ptx="9.3", sm=90, does="writes mbarrier [a]")
_row(f"check_layout {OWN} layout=layout::v0,layout::v1 type=b64", "d:pred, [a]:type", ptx="9.3", sm=90, lower="mbarrier_layout",
     does="reads mbarrier [a], varying")  # fmt: skip
_row(f"inval {OWN} type=b64", "[a]:type", does="writes mbarrier [a]")
_arrivals("arrive")
_arrivals("arrive_drop")
for _name in ("expect_tx", "complete_tx"):
    for _order in ORDERS:
        _row(f"{_name} {_order.format('relaxed')}{ANY} type=b64", "[a]:type, tx:u32", ptx="8.0", sm=90, gates="")
for _order in ORDERS:
    _sem = _order.format("acquire,relaxed")
    for _name, _hint, _least, _target in (("test_wait", "", "7.0", 80), ("try_wait", ", hint:u32?", "7.8", 90)):
        _least = "8.0" if _sem else _least
        _phase = f"{_sem}{OWN} phase?=phase_type::primary type=b64"
        _row(f"{_name} {_phase}", f"d:pred, [a]:type, state:type{_hint}", ptx=_least, sm=_target,
             lower="mbarrier_wait", does=WAITS, gates=f"{RELAXED} {PRIMARY}")  # fmt: skip
        _row(f"{_name} parity {_phase}", f"d:pred, [a]:type, phase:u32<0..1>{_hint}", ptx=max(_least, "7.1"),
             sm=_target, lower="mbarrier_wait", does=WAITS, gates=f"{RELAXED} {PRIMARY}")  # fmt: skip
_row("pending_count layout?=layout::v0 type=b64", "d:u32, state:u64", lower="mbarrier_pending_count", does="pure", gates=LAYOUT)

traits("integer named sized", "mbarrier")
name_words("init inval arrive arrive_drop expect_tx complete_tx test_wait try_wait parity pending_count check_layout", "mbarrier")
