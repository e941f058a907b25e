"""The execution mask while channels of a thread go different ways (vISA "Execution model", "Branch Instructions"; "GOTO", "RET").

A forward ``goto`` disables the channels that jump until the thread comes to the label; a backward one disables those that do
not until it comes to the next instruction.  Such a place is a join: it enables the channels that wait for it.  A thread
without enabled channels goes on at the next join where some wait.  All that wait, wait for places behind the one where the
thread is, so it looks at the joins in the order of the text.
"""

from __future__ import annotations

from ptxemu.dialects.build import Builder
from ptxemu.dialects.visa.masks import Bit, Predication, Span
from ptxemu.ir.ops import Reg
from ptxemu.ir.types import TYPES


class Divergence:
    """The execution mask of a kernel with divergent branches: a word of bits, as are the channels that wait for a place."""

    def __init__(self, body: Builder, channels: int) -> None:
        self._body = body
        self._enabled = self._word("<em>")
        self._start = channels
        body.emit("mov.b32", self._enabled, channels)
        self._joins = 0
        self._sought: set[int] = set()
        self._waiting: dict[str, Reg] = {}
        self._bits: dict[int, Reg] = {}  # of the basic block

    def bit(self, channel: int) -> Bit:
        """Whether a channel is enabled here."""
        if not self._start >> channel & 1:
            return False
        if channel not in self._bits:
            self._bits[channel] = self._nonzero(self._and(self._enabled, 1 << channel))
        return self._bits[channel]

    def leaving(self, at: Span, predicate: Predication | None) -> Reg:
        """The enabled channels that a branch takes with it; by execution size 1, all or none."""
        if at.size == 1:
            return self._enabled_if(predicate)
        if predicate is None:
            return self._and(self._enabled, _ones(at.size) << at.offset)
        word = self._body.temp("b32")
        self._body.emit("mov.b32", word, 0)
        part = self._body.temp("b32")
        for channel in range(at.size):
            chosen = 1 << at.offset + channel
            self._body.emit("selp.b32", part, *_pick(chosen, predicate.inverted), predicate.bit(channel))
            self._body.emit("or.b32", word, word, part)
        return self._and(self._enabled, word)

    def forward(self, label: str, jumping: Reg) -> None:
        """``goto`` to a label that is still to come."""
        waiting = self._waiting.setdefault(label, self._word(label))
        self._body.emit("or.b32", waiting, waiting, jumping)
        self.disable(jumping)

    def backward(self, label: str, jumping: Reg) -> None:
        """``goto`` to a label before, then the join of the channels that do not jump."""
        after = f"<after {self._joins}>"
        waiting = self._waiting[after] = self._word(after)
        self._body.emit("xor.b32", self._enabled, self._enabled, jumping)
        self._body.emit("or.b32", waiting, waiting, self._enabled)
        self._body.emit("mov.b32", self._enabled, jumping)
        self._body.branch(label, (self._nonzero(jumping), False))
        self.join(after)

    def disable(self, leaving: Reg) -> None:
        """Disable enabled channels; if they were the last, go where others wait."""
        self._bits.clear()
        some, idle = self._nonzero(leaving), self._body.temp("pred")
        self._body.emit("xor.b32", self._enabled, self._enabled, leaving)
        self._body.emit("setp.eq.and.u32", idle, self._enabled, 0, some)
        self._seek((idle, False))

    def join(self, label: str) -> None:
        """Mark a label; the channels that wait for it are enabled."""
        self._bits.clear()
        waiting = self._waiting.get(label)
        if waiting is None:
            self._body.label(label)
            return
        here, self._joins = self._joins, self._joins + 1
        if here in self._sought:
            self._body.branch(label)
            self._body.label(_seek_label(here))
            self._seek((self._nonzero(waiting), True))
        self._body.label(label)
        self._body.emit("or.b32", self._enabled, self._enabled, waiting)
        self._body.emit("mov.b32", waiting, 0)

    def finish(self) -> None:
        """The end of the kernel, where no channel waits any more."""
        if self._joins in self._sought:
            self._body.label(_seek_label(self._joins))

    def _seek(self, guard: tuple[Reg, bool]) -> None:
        """Go to the next join where channels wait."""
        self._sought.add(self._joins)
        self._body.branch(_seek_label(self._joins), guard)

    def _word(self, place: str) -> Reg:
        """Bits of channels: none when a thread starts, as all registers are zero."""
        return Reg(f"{place}.channels", TYPES["b32"])

    def _enabled_if(self, predicate: Predication | None) -> Reg:
        found = self._body.temp("b32")
        if predicate is None:
            self._body.emit("mov.b32", found, self._enabled)
        else:
            self._body.emit("mov.b32", found, 0)
            self._body.emit("mov.b32", found, self._enabled, guard=(predicate.bit(0), predicate.inverted))
        return found

    def _and(self, word: Reg, other: Reg | int) -> Reg:
        found = self._body.temp("b32")
        self._body.emit("and.b32", found, word, other)
        return found

    def _nonzero(self, word: Reg) -> Reg:
        found = self._body.temp("pred")
        self._body.emit("setp.ne.u32", found, word, 0)
        return found


def _ones(count: int) -> int:
    return (1 << count) - 1


def _pick(value: int, inverted: bool) -> tuple[int, int]:
    return (0, value) if inverted else (value, 0)


def _seek_label(join: int) -> str:
    return f"<seek {join}>"
