"""Clusters of one CTA: addresses map to themselves, and its barrier is a barrier of the CTA in two halves."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.emit import Emitter, elementwise

NOWHERE = -16  # an address that no access can have


@elementwise("mapa")
def mapa(e: Emitter, op: Op, address: str, rank: str) -> str:
    """mapa: rank 0 is the CTA itself; other ranks do not exist, and an access through the address faults."""
    kind = op.type()
    exists = e.icmp("eq", "i32", rank, e.int(32, 0))
    return e.select(exists, kind.llvm, address, e.int(kind.bits, NOWHERE))


@elementwise("getctarank")
def getctarank(e: Emitter, op: Op, address: str) -> str:
    """getctarank: every shared address is of rank 0."""
    return e.int(32, 0)


def _call(ctx: Context, op: Op, function: str) -> None:
    ctx.call("void", function, ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", ctx.bits_of(ctx.mask_of(op))))


@effect("cluster_arrive")
def cluster_arrive(ctx: Context, op: Op) -> None:
    """barrier.cluster.arrive (PTX ISA "barrier.cluster")."""
    _call(ctx, op, "pe_cluster_arrive")


@effect("cluster_wait")
def cluster_wait(ctx: Context, op: Op) -> None:
    """barrier.cluster.wait: until all threads of the cluster that have not exited have arrived."""
    _call(ctx, op, "pe_cluster_wait")
