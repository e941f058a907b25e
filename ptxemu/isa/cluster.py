"""Thread block clusters (PTX ISA, "Cluster of Cooperative Thread Arrays")."""

from __future__ import annotations

from ptxemu.isa.table import row
from ptxemu.isa.traits import traits

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

traits("symbols shared", "mapa", "getctarank")
