"""Stamps of sums and the like whose old values nobody wants, which compiled code makes by itself (lower/memory/updates.py): in a
worker's twin (csrc/check/race_sums.c), and in shared memory."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ptxemu._runtime import ffi, lib
from ptxemu.ir.ops import Op
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.shared_log import Log
from ptxemu.lower.core.stamps import BYTES, STRONG, is_numbered, site_number
from ptxemu.lower.core.warp_stamps import pointer, state
from ptxemu.lower.core.word_groups import WORD_BYTES

UPDATE = 1 << lib.PE_SITE_BITS
STAMP_BYTES = ffi.sizeof("pe_stamp")


class SumStamps(Struct, frozen=True):
    """Those of an instruction."""

    ctx: Context
    op: Op

    def may_be_left(self) -> str:
        """i1: in a twin."""
        return is_numbered(self.ctx, self.op, site_number(self.ctx, self.op))

    def may_be_left_in_shared(self) -> str:
        """i1: nobody has made a plain access of shared memory since all warps have met, and stamps of all of it are kept."""
        log, scalar = Log(self.ctx), self.ctx.scalar
        size = self.ctx.field("shared_size")
        ends = ["0", scalar.bin("sub", "i64", scalar.intrinsic("umax", "i64", size, str(WORD_BYTES)), str(WORD_BYTES))]
        tests = [self.may_be_left(), log.is_empty(), log.is_past("written"), log.is_past("read")]
        tests += [scalar.icmp("ule", "i64", size, str(1 << int(lib.PE_SHADOW_LOG2)))]
        tests += [scalar.icmp("ne", "i64", self.ctx.inst(f"load i64, ptr {self._in_shared(end)}, align 8"), "0") for end in ends]
        return scalar.conjunction(tests)

    def leaving(self, start: str, each: int, words: int = 1) -> Callable[[str, str], None]:
        """What leaves the stamps of a lane's words, at ``each`` times an offset from a start; lanes and offsets are i64."""
        scalar = self.ctx.scalar
        first = scalar.bin("or", "i64", state(self.ctx, "now"), str(BYTES | STRONG | UPDATE))
        first = scalar.bin("or", "i64", first, site_number(self.ctx, self.op))

        def leave(lane: str, offset: str) -> None:
            stamp = scalar.bin("or", "i64", first, scalar.bin("shl", "i64", lane, str(lib.PE_STAMP_LANE_AT)))
            place = scalar.bin("add", "i64", start, scalar.bin("mul", "i64", offset, str(each)))
            for word in range(words):
                self.ctx.stmt(f"store i64 {stamp}, ptr {pointer(self.ctx, place, STAMP_BYTES * word)}, align {STAMP_BYTES}")

        return leave

    def leaving_in_shared(self, size: int) -> Callable[[str, str], None]:
        """The same at offsets in shared memory, of ``size`` bytes."""
        Log(self.ctx).note("strong")
        return self.leaving(self._start_of_shared(), STAMP_BYTES // WORD_BYTES, size // WORD_BYTES)

    def _start_of_shared(self) -> str:
        twice = self.ctx.scalar.bin("shl", "i64", self.ctx.field("shared_base"), "1")
        return self.ctx.scalar.bin("add", "i64", state(self.ctx, "writes"), twice)

    def _in_shared(self, offset: str) -> str:
        twice = self.ctx.scalar.bin("and", "i64", self.ctx.scalar.bin("shl", "i64", offset, "1"), str(-STAMP_BYTES))
        return pointer(self.ctx, self.ctx.scalar.bin("add", "i64", self._start_of_shared(), twice), 0)
