"""Shared memory of other CTAs of a cluster: ``.shared::cluster`` addresses, and generic ones (ir/distributed.py)."""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.ir.distributed import BEYOND, FIRST, OFFSETS, RANK_AT
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.emit import Emitter


class Windows:
    """The windows of the thread's cluster, for scalars or for all lanes; addresses are i64."""

    def __init__(self, ctx: Context, vector: bool) -> None:
        self.ctx, self.vector = ctx, vector
        self.e: Emitter = ctx.vector if vector else ctx.scalar

    def field(self, name: str) -> str:
        value = self.ctx.field(name)
        return self._everywhere(name, value) if self.vector else value

    def count(self) -> str:
        """CTAs of the cluster."""
        value = self.ctx.once("cluster.ctas", f"zext i32 {self.ctx.field('cluster_nctarank')} to i64")
        return self._everywhere("cluster.ctas", value) if self.vector else value

    def _everywhere(self, key: str, value: str) -> str:
        word = f"<{LANES} x i64>"
        first = self.ctx.once(f"{key}.first", f"insertelement {word} poison, i64 {value}, i64 0")
        return self.ctx.once(f"{key}.all", f"shufflevector {word} {first}, {word} poison, <{LANES} x i32> zeroinitializer")

    def _int(self, value: int) -> str:
        return self.e.int(64, value)

    # ---- addresses of .shared::cluster

    def rank_field(self, address: str) -> str:
        """0 for the thread's own CTA, else the rank plus FIRST."""
        return self.e.bin("lshr", "i64", address, self._int(RANK_AT))

    def rank_in(self, address: str) -> str:
        """The rank that an address names; a number that no CTA has if it names none."""
        return self.e.bin("sub", "i64", self.rank_field(address), self._int(FIRST))

    def own_field(self) -> str:
        """The bits of an address that name the thread's own CTA; none in a cluster of one."""
        ranked = self.e.bin("add", "i64", self.own_rank(), self._int(FIRST))
        lone = self.e.icmp("eq", "i64", self.count(), self._int(1))
        return self.e.select(lone, "i64", self._int(0), self.e.bin("shl", "i64", ranked, self._int(RANK_AT)))

    def stripped(self, address: str) -> str:
        """An address in the thread's own window, or a little before or behind it, without the rank that it may name."""
        e, field = self.e, self.own_field()
        near = e.bin("add", "i64", address, self._int(1 << RANK_AT - 1))
        named = e.icmp("eq", "i64", e.bin("and", "i64", near, self._int(~OFFSETS)), field)
        return e.select(named, "i64", e.bin("sub", "i64", address, field), address)

    def generic(self, address: str) -> str:
        """The generic address of a ``.shared::cluster`` one; beyond all memory if there is no CTA of that rank."""
        e = self.e
        ranked, offset = self.rank_field(address), e.bin("and", "i64", address, self._int(OFFSETS))
        own = e.icmp("eq", "i64", ranked, self._int(0))
        base = e.select(own, "i64", self.field("shared_base"), self._window(self.rank_in(address)))
        exists = e.bin("or", "i1", own, e.icmp("ult", "i64", self.rank_in(address), self.count()))
        return e.select(exists, "i64", e.bin("add", "i64", base, offset), self._beyond(address))

    def accessed(self, address: str) -> str:
        """The same of an address that is accessed: beyond all memory if it is in no window."""
        offset = self.e.bin("and", "i64", address, self._int(OFFSETS))
        inside = self.e.icmp("ult", "i64", offset, self.field("shared_size"))
        return self.e.select(inside, "i64", self.generic(address), self._beyond(address))

    def _beyond(self, address: str) -> str:
        return self.e.bin("or", "i64", address, self._int(BEYOND))

    def own(self, address: str) -> str:
        """The generic address of one in the thread's own window, wherever that ends."""
        return self.e.bin("add", "i64", address, self.field("shared_base"))

    def named(self, ranked: str, offset: str) -> str:
        """The ``.shared::cluster`` address of an offset in the window of a rank plus FIRST."""
        return self.e.bin("or", "i64", self.e.bin("shl", "i64", ranked, self._int(RANK_AT)), offset)

    # ---- generic addresses

    def offset(self, address: str) -> str:
        """From the first window on, which may be negative or beyond them all."""
        return self.e.bin("sub", "i64", address, self.field("cluster_base"))

    def holds(self, offset: str) -> str:
        """i1: whether such an offset lies in one of them."""
        return self.e.icmp("ult", "i64", offset, self.field("cluster_bytes"))

    def rank_of(self, offset: str) -> str:
        return self.e.bin("lshr", "i64", offset, self.field("cluster_shift"))

    def own_rank(self) -> str:
        return self.rank_of(self.offset(self.field("shared_base")))

    def within(self, offset: str) -> str:
        """From the start of its window on."""
        start = self.e.bin("shl", "i64", self.rank_of(offset), self.field("cluster_shift"))
        return self.e.bin("sub", "i64", offset, start)

    def _window(self, rank: str) -> str:
        """Where that of a rank starts."""
        return self.e.bin("add", "i64", self.e.bin("shl", "i64", rank, self.field("cluster_shift")), self.field("cluster_base"))

    def shared(self, address: str) -> str:
        """The ``.shared::cluster`` address of a generic one."""
        e, offset = self.e, self.offset(address)
        own = e.bin("sub", "i64", address, self.field("shared_base"))
        if self.ctx.unit.ranked:
            own = e.bin("add", "i64", own, self.own_field())
        foreign = e.icmp("ne", "i64", self.rank_of(offset), self.own_rank())
        ranked = e.bin("add", "i64", self.rank_of(offset), self._int(FIRST))
        there = e.bin("and", "i1", foreign, self.holds(offset))
        return e.select(there, "i64", self.named(ranked, self.within(offset)), own)

    def moved(self, address: str, rank: str) -> str:
        """The generic address of the same place in the window of another CTA; beyond all memory if there is none."""
        e, offset = self.e, self.offset(address)
        good = e.bin("and", "i1", self.holds(offset), e.icmp("ult", "i64", rank, self.count()))
        place = e.bin("add", "i64", self._window(rank), self.within(offset))
        return e.select(good, "i64", place, self._beyond(address))
