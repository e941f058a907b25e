"""Thread block clusters (PTX ISA, "Cluster of Cooperative Thread Arrays")."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import name_words, traits

MOVEMENT = "Data Movement and Conversion Instructions"
SYNC = "Parallel Synchronization and Communication Instructions"

for _qualifiers in ("", "space=shared::cluster "):
    row("mapa", f"{_qualifiers}type=u32,u64", "d:type, a:type, rank:u32", ptx="7.8", sm=90, does="pure", chapter=MOVEMENT)
    row("getctarank", f"{_qualifiers}type=u32,u64", "d:u32, a:type", ptx="7.8", sm=90, does="pure", chapter=MOVEMENT)

GATES = "release@8.0@90 relaxed@8.0@90 acquire@8.0@90"
row("barrier", "cluster arrive sem?=release,relaxed aligned?", "", ptx="7.8", sm=90, lower="cluster_arrive",
    does="arrives cluster", chapter=SYNC, gates=GATES)  # fmt: skip
row("barrier", "cluster wait sem?=acquire aligned?", "", ptx="7.8", sm=90, lower="cluster_wait", does="waits cluster",
    chapter=SYNC, gates=GATES)  # fmt: skip

row("clusterlaunchcontrol", "try_cancel async space?=shared::cta completion=mbarrier::complete_tx::bytes "
    "multicast?=multicast::cluster::all type=b128", "[a]:, [m]:", ptx="8.6", sm=100, lower="cluster_cancel", flags="widened",
    does="writes [a] for 16, updates mbarrier [m]", chapter=SYNC)  # fmt: skip
for _query, _result in (
    ("is_canceled dtype=pred", "d:pred"), ("get_first_ctaid vec=v4 dtype=b32", "d:b32*4"),
    ("axis=get_first_ctaid::x,get_first_ctaid::y,get_first_ctaid::z dtype=b32", "d:b32"),
):  # fmt: skip
    row("clusterlaunchcontrol", f"query_cancel {_query} atype=b128", f"{_result}, a:b128", ptx="8.6", sm=100,
        lower="cancel_query", chapter=SYNC)  # fmt: skip

traits("symbols shared", "mapa", "getctarank")
name_words("try_cancel query_cancel", "clusterlaunchcontrol")
