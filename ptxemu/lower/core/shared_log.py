"""Accesses of shared memory that are listed: they leave no stamps as long as no others race with them
(csrc/check/race_claims.c)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

from msgspec import Struct

from ptxemu._runtime import ffi, lib
from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op
from ptxemu.lower.core.access import Access, Span, pattern_test
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.warp_stamps import STATE, pointer, state

LOGGED, FORESEEN = ffi.typeof("pe_logged"), ffi.typeof("pe_foreseen")
LOG = dict(ffi.typeof("pe_shared_log").fields)
MOST_WARPS = 1024 // LANES


class Log(Struct, frozen=True):
    """What has been done in the CTA's shared memory, a ``pe_shared_log``: accesses are listed there as long as no others race
    with them, and leave no stamps."""

    ctx: Context

    def is_empty(self) -> str:
        """i1."""
        return self.ctx.scalar.icmp("eq", "i64", self._load("count"), "0")

    def is_past(self, kind: str) -> str:
        """i1: all that was ``written``, also by ``strong`` accesses, or ``read``, is before what the warp does now."""
        return self.ctx.scalar.icmp("ult", "i64", self._load(kind), state(self.ctx, "floor"))

    def note(self, kind: str) -> None:
        """The warp writes, or reads, and leaves stamps."""
        for name, now in ((kind, state(self.ctx, "now")), ("exact", self._load("turn"))):
            last = self.ctx.scalar.intrinsic("umax", "i64", self._load(name), now)
            self.ctx.stmt(f"store i64 {last}, ptr {self._at(name)}, align 8")
        self.ctx.stmt(f"store i64 0, ptr {self._at('foreseen')}, align 8")

    def may_claim(self) -> str:
        """i1: nobody has left stamps since all warps have met."""
        return self.ctx.scalar.icmp("ult", "i64", self._load("exact"), self._load("turn"))

    def flush(self) -> None:
        """What is listed leaves its stamps."""

        def told() -> list[str]:
            self.ctx.call("void", "pe_observe_listed", ("ptr", "%w"), attributes="cold")
            return []

        self.ctx.when(self.is_empty(), list, told, [], likely=True)

    def has_room(self) -> str:
        """i1: one more read can be listed."""
        return self.ctx.scalar.icmp("ult", "i64", self._load("count"), str(int(lib.PE_MOST_LOGGED)))

    def expects(self, site: str, base: str) -> str:
        """i1: it is known that an access behind all that is listed races with nothing."""
        scalar, count = self.ctx.scalar, self._load("count")

        def is_next() -> list[str]:
            at = scalar.bin("add", "i64", self._load("expected"), scalar.bin("mul", "i64", count, str(ffi.sizeof(FORESEEN))))
            warp = scalar.cast("zext", "i32", self.ctx.field("warpid"), "i64")
            who = scalar.bin("shl", "i64", warp, str(int(lib.PE_FORESEEN_WARP_AT)))
            who = scalar.bin("or", "i64", who, self.ctx.inst(f"ptrtoint ptr {site} to i64"))
            same = [
                scalar.icmp("eq", "i64", self.ctx.inst(f"load i64, ptr {pointer(self.ctx, at, field.offset)}, align 8"), value)
                for field, value in ((dict(FORESEEN.fields)["who"], who), (dict(FORESEEN.fields)["base"], base))
            ]
            return [reduce(lambda a, b: scalar.bin("and", "i1", a, b), same)]

        some = scalar.icmp("ult", "i64", count, self._load("foreseen"))
        return self.ctx.when(some, is_next, lambda: ["false"], ["i1"])[0]

    def add(self, site: str, base: str, mask: str, number: int = 1) -> None:
        """List an access of the warp, or some off one base, whose sites lie one after another."""
        scalar, count = self.ctx.scalar, self._load("count")
        first = scalar.bin("add", "i64", self._start(), scalar.bin("mul", "i64", count, str(ffi.sizeof(LOGGED))))
        lanes = scalar.cast("zext", f"i{LANES}", self.ctx.bits_of(mask), "i64")
        lanes = scalar.bin("or", "i64", lanes, str(number << int(lib.PE_LOGGED_AT)))
        entry = {"site": f"ptr {site}", "base": f"i64 {base}", "now": f"i64 {state(self.ctx, 'now')}", "lanes": f"i64 {lanes}"}
        for name, value in entry.items():
            offset = LOG["accesses"].offset + dict(LOGGED.fields)[name].offset
            self.ctx.stmt(f"store {value}, ptr {pointer(self.ctx, first, offset)}, align 8")
        self.ctx.stmt(f"store i64 {scalar.bin('add', 'i64', count, '1')}, ptr {self._at('count')}, align 8")

    def _start(self) -> str:
        return self.ctx.once("stamping.log", f"add i64 {self.ctx.field('watch')}, {ffi.sizeof(STATE) * MOST_WARPS}")

    def _at(self, name: str) -> str:
        return pointer(self.ctx, self._start(), LOG[name].offset)

    def _load(self, name: str) -> str:
        return self.ctx.inst(f"load i64, ptr {self._at(name)}, align 8")


class Listing(Struct, frozen=True):
    """An access of shared memory by a pattern that may be listed, or some of a kind off one base, of which it is the first;
    ``site`` is a ``pe_pattern_site``, or ``number`` of them."""

    ctx: Context
    found: Access
    site: str
    span: Span | None  # that is to be tested
    claims: bool  # accesses of other warps may be listed, too
    number: int = 1

    def passes(self, otherwise: Callable[[], str]) -> str:
        """i1: it is listed; or ``otherwise``."""
        scalar, log = self.ctx.scalar, Log(self.ctx)
        may = log.expects(self.site, self.found.base) if self.claims else "false"
        if self.found.kind == lib.PE_READ:
            past = scalar.bin("and", "i1", log.is_past("written"), log.is_past("strong"))
            past = scalar.bin("and", "i1", past, log.has_room())
            may = scalar.bin("or", "i1", may, self._tested(past))

        def rest() -> list[str]:
            if not self.claims:
                return [otherwise()]
            return self.ctx.when(self._claimed(log), lambda: ["true"], lambda: [otherwise()], ["i1"])

        return self.ctx.when(may, partial(self._add, log), rest, ["i1"], likely=True)[0]

    def _add(self, log: Log) -> list[str]:
        log.add(self.site, self.found.base, self.found.mask, self.number)
        return ["true"]

    def _claimed(self, log: Log) -> str:
        """i1: the checker lists it, as no other access that is listed can race with it."""

        def claim() -> list[str]:
            mask = ("i32", self.ctx.bits_of(self.found.mask))
            given = ("ptr", "%w"), ("ptr", self.site), ("i32", str(self.number)), mask, ("i64", self.found.base)
            return [self.ctx.scalar.icmp("ne", "i32", self.ctx.call("i32", "pe_observe_claimed", *given), "0")]

        return self.ctx.when(self._tested(log.may_claim()), claim, lambda: ["false"], ["i1"])[0]

    def _tested(self, good: str) -> str:
        """i1: ``good``, and all that is accessed is in memory."""
        return good if self.span is None else self.ctx.scalar.bin("and", "i1", good, pattern_test(self.ctx, self.span))


def listing_of_all(ctx: Context, found: Access, ops: Sequence[Op], sites: str, claims: bool) -> Listing:
    """That of some accesses off one base, the first of which is ``found``; ``sites`` are all of theirs."""
    assert found.shape is not None
    offsets = [op.access.address.distance - found.address.distance for op in ops]
    low, high = found.shape.spread
    hull = Shape((low + min(offsets), high + max(offsets)), widenings=found.shape.widenings)
    return Listing(ctx, found, sites, Span("shared", found.base, hull, found.size), claims, len(ops))
