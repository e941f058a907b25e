"""Where results go: cached targets, UMRT writes and the conditional test (docs/dialects.md, "CTM")."""

from __future__ import annotations

from msgspec import Struct

from ptxemu.dialects.build import Guard
from ptxemu.dialects.ctm.ast import Name
from ptxemu.dialects.ctm.lower import STORE, TEST, UMRT
from ptxemu.dialects.ctm.operands import CHANNELS, OUT
from ptxemu.dialects.ctm.registers import Registers
from ptxemu.dialects.ctm.table import ACQUIRE, CACHED, SAME, uncached
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Operand, Reg, SymRef, Variable, Vec
from ptxemu.ir.types import B32, PRED, U64

TARGETS = "ABCD"
KINDS = ("cached", "umrt")
ALL = 15
NEVER, ALWAYS = 0, 7


class Conditional(Struct):
    """The state of the conditional output unit."""

    test: int = ALWAYS
    location: int = 0
    mask: int = 1
    buffer: Variable | None = None
    engine_value: int = 0
    place: Name | None = None  # where the test is set


class Target(Struct):
    """What a point has sent to a cached target so far."""

    values: list[Reg]
    written: list[Reg]


class Write(Struct):
    """What an OUTPUT instruction sends: channels with their values and gates, and the target by channel."""

    values: dict[int, Reg] = {}
    gates: dict[int, Guard | None] = {}


class Output:
    """The outputs of one kernel; ``group`` is the number of points that share an index."""

    def __init__(self, registers: Registers, kind: str, group: int) -> None:
        self.registers = registers
        self.body = registers.body
        self.kind = kind
        self.group = group
        self.surfaces: dict[str, Variable] = {}
        self.out_mask = ALL
        self.conditional = Conditional()
        self.scatters = self.acquires = False
        self._targets: dict[str, Target] = {}
        self._value: Reg | None = None  # for the conditional test

    def check_target(self, target: str, pos: int, end: int) -> None:
        """Raise TextError unless the program may write a target (seed page 31: no program does both kinds of writes)."""
        cached = target in CACHED
        if cached != (self.kind == "cached"):
            raise TextError(f"MIXED_OUTPUT: a program of kind {self.kind} cannot write {target}", pos, end)
        letter = target[-1] if cached else TARGETS[0]
        if letter not in self.surfaces:
            raise TextError(f"output {letter} is not declared: give it by .output", pos, end)

    # ------------------------------------------------------------ cached output

    def cached(self, target: str, write: Write) -> None:
        """Keep channels until the end; the last write of each wins."""
        letter = target[-1]
        if letter not in self._targets:
            names = [f"{OUT}{letter}.{channel}" for channel in CHANNELS]
            self._targets[letter] = Target(
                [self.registers.new(name) for name in names], [self.registers.new_flag(f"{name}?") for name in names]
            )
        found = self._targets[letter]
        for channel, value in write.values.items():
            self.body.emit("mov.b32", found.values[channel], value, guard=write.gates[channel])
            self.body.emit("mov.pred", found.written[channel], 1, guard=write.gates[channel])

    def set_value(self, value: Reg, gate: Guard | None) -> None:
        """The value of the point for the conditional test."""
        if self._value is None:
            self._value = self.registers.new("w")
        self.body.emit("mov.b32", self._value, value, guard=gate)

    def finish(self) -> None:
        """Send what the targets hold, if the conditional test passes; the test has an effect of its own."""
        if self.kind != KINDS[0] or self.conditional.test == NEVER:
            return
        passed = self._test()
        for letter in sorted(self._targets):
            target = self._targets[letter]
            gates: dict[int, Guard | None] = {
                channel: (target.written[channel], False) for channel in range(4) if self.out_mask >> channel & 1
            }
            sources = (*self._place(letter), Vec(tuple(target.values)), self.registers.mask(gates))
            self.body.add(STORE, {}, (), sources, (), (U64, B32, B32, B32, B32), guard=passed)

    def _place(self, letter: str) -> tuple[SymRef, Reg, Reg]:
        return SymRef(self.surfaces[letter], 0), *self.registers.position

    def _test(self) -> Guard | None:
        state = self.conditional
        if state.buffer is None:
            return None
        value = self._value if state.location == 0 else None
        if value is None:
            value = self.registers.arithmetic.number(state.engine_value if state.location else 0)
        passed = self.body.temp("pred")
        mods = {"condition": str(state.test)} | ({"update": "update"} if state.mask & 1 else {})
        sources = (SymRef(state.buffer, 0), *self.registers.position, value)
        self.body.add(TEST, mods, (passed,), sources, (PRED,), (U64, B32, B32, B32))
        return passed, False

    def problem(self) -> TextError | None:
        """What is wrong with the state as a whole."""
        place = self.conditional.place
        if place is not None and self.conditional.buffer is None and self.conditional.test not in (NEVER, ALWAYS):
            return TextError("the conditional test needs a buffer: give it by .conditional", place.pos, place.end)
        return None

    # ------------------------------------------------------------ UMRT

    def umrt(self, target: str, write: Write) -> None:
        """Write at once. Channels that the instruction lacks make the write a partial one."""
        self.scatters = True
        self.acquires |= target.endswith(ACQUIRE)
        nothing = self.registers.arithmetic.number(0)
        values = [write.values.get(channel, nothing) for channel in range(4)]
        mods = {"op": str(uncached()[target].code), "group": str(self.group)}
        if target.removesuffix(ACQUIRE).endswith(SAME):
            mods["same"] = "same"
        sources: tuple[Operand, ...] = (SymRef(self.surfaces[TARGETS[0]], 0), *values, self.registers.mask(write.gates))
        self.body.add(UMRT, mods, (), sources, (), (U64, *[B32] * 5))


def target_span(name: Name, target: str) -> tuple[int, int]:
    """Where a target stands among the modifiers of an instruction."""
    start = name.pos + name.text.index(f".{target}")
    return start, start + 1 + len(target)
