"""The PTX of one thread of a litmus test."""

from __future__ import annotations

from collections.abc import Iterator

from tests.clients.litmus.barriers import arrival
from tests.clients.litmus.text import Instruction, Litmus, NotExpressible, Thread, is_register

WARP = 32
SPACING = 64
"""Bytes from one location to the next, so that no two share a line of a cache."""
COMPARISONS = {"beq": "eq", "bne": "ne", "bge": "ge", "ble": "le", "bgt": "gt", "blt": "lt"}
LOCAL = {"add": "add.s32", "sub": "sub.s32", "mul": "mul.lo.s32", "div": "div.s32"}
UPDATES = {"add": "add.u32", "and": "and.b32", "or": "or.b32", "xor": "xor.b32", "exch": "exch.b32", "cas": "cas.b32"}
PROXY_ACCESSES = ("sust", "suld", "tld", "cold")
# Waits, some of the time, for up to seven turns of other warps. All lanes of a warp wait alike.
PAUSE = """
  mad.lo.u32 %random, %random, 1664525, 1013904223; shr.u32 %turns, %random, 28; sub.s32 %turns, %turns, 8;
{name}: setp.le.s32 %done, %turns, 0; @%done bra {name}_END;
  nanosleep.u32 1; sub.s32 %turns, %turns, 1; bra {name};
{name}_END:
"""


class ThreadCode:
    """``%cell``: the address of the locations of this run; ``%offset``: how far that is from the first run's."""

    def __init__(self, litmus: Litmus, number: int) -> None:
        self.litmus, self.number = litmus, number
        self.thread: Thread = litmus.threads[number]
        self.places = {name: SPACING * i for i, name in enumerate(litmus.locations)}

    def lines(self) -> Iterator[str]:
        for name in self.registers():
            yield f"  mov.b32 {self._register(name)}, {self.thread.registers.get(name, 0)};"
        for place, instruction in enumerate(self.thread.instructions):
            if not instruction.opcode.endswith(":"):
                yield PAUSE.format(name=f"PAUSE_{self.number}_{place}")
            yield from self._instruction(instruction)

    def registers(self) -> list[str]:
        """All that it names, in the order of their numbers."""
        operands = {name for instruction in self.thread.instructions for name in instruction.operands if is_register(name)}
        return sorted(operands | self.thread.registers.keys(), key=lambda name: int(name[1:]))

    def declarations(self) -> str:
        return "".join(f"  .reg .b32 {self._register(name)};\n" for name in self.registers())

    def _register(self, name: str) -> str:
        return f"%t{self.number}_{name}"

    def _value(self, operand: str) -> str:
        return self._register(operand) if is_register(operand) else operand

    def _label(self, name: str) -> str:
        return f"T{self.number}_{name}"

    def _offset(self, name: str) -> int:
        return self.places[self.litmus.place(name)]

    def _address(self, name: str, base: str = "%cell") -> str:
        return f"[{base}+{self._offset(name)}]"

    def _instruction(self, instruction: Instruction) -> Iterator[str]:
        opcode, operands = instruction.opcode, instruction.operands
        name, *qualifiers = opcode.split(".")
        if opcode.endswith(":"):
            yield f"{self._label(opcode.removesuffix(':'))}:"
        elif name == "goto":
            yield f"  bra {self._label(operands[0])};"
        elif name in COMPARISONS:
            left, right = map(self._value, operands[:2])
            # The sides may both be numbers, of which setp takes one.
            yield f"  mov.b32 %left, {left}; setp.{COMPARISONS[name]}.s32 %done, %left, {right};"
            yield f"  @%done bra {self._label(operands[2])};"
        elif name in LOCAL:
            target, left, right = map(self._value, operands)
            yield f"  mov.b32 %left, {left}; {LOCAL[name]} {target}, %left, {right};"
        elif name == "ld" and not qualifiers:
            yield f"  mov.b32 {self._value(operands[0])}, {self._value(operands[1])};"
        elif name == "ld":
            yield f"  {opcode}.global.u32 {self._value(operands[0])}, {self._address(operands[1])};"
        elif name == "st":
            yield f"  {opcode}.global.u32 {self._address(operands[0])}, {self._value(operands[1])};"
        elif name in ("atom", "red"):
            yield from self._update(name, qualifiers, operands)
        elif name == "fence":
            yield from self._fence(opcode, qualifiers)
        elif name == "bar":
            yield self._barrier(instruction)
        elif name in PROXY_ACCESSES and qualifiers == ["weak"]:
            yield from self._proxy(name, operands)
        else:
            raise NotExpressible(f"{opcode}: no such instruction in PTX")

    def _update(self, name: str, qualifiers: list[str], operands: tuple[str, ...]) -> Iterator[str]:
        *order, operation = qualifiers
        target, (place, *values) = ([], operands) if name == "red" else (operands[:1], operands[1:])
        values = [self._value(value) for value in values]
        if operation == "sub":
            yield f"  neg.s32 %left, {values[0]};"
            operation, values = "add", ["%left"]
        no_reduction = name == "red" and (operation in ("exch", "cas") or order[0] in ("acquire", "acq_rel"))
        if operation not in UPDATES or no_reduction:
            raise NotExpressible(f"{name}.{order[0]}.{operation}: no such operation in PTX")
        written = ", ".join([*map(self._value, target), self._address(place), *values])
        yield f"  {name}.{'.'.join(order)}.global.{UPDATES[operation]} {written};"

    def _fence(self, opcode: str, qualifiers: list[str]) -> Iterator[str]:
        """PTX has no fences of the proxies of surfaces, textures and constants: what needs one has to hold without it."""
        if qualifiers[0] != "proxy" or qualifiers[1] == "alias":
            yield f"  {opcode};"

    def _barrier(self, instruction: Instruction) -> str:
        """Each thread is a warp."""
        came = arrival(self.litmus, self.thread, instruction)
        return f"  barrier.cta.{'sync' if came.waits else 'arrive'} {came.number}, {came.quorum * WARP};"

    def _proxy(self, name: str, operands: tuple[str, ...]) -> Iterator[str]:
        place, value = operands if name == "sust" else operands[::-1]
        offset, register = self._offset(place), self._value(value)
        if name == "cold":
            yield f"  ld.const.u32 {register}, {self._address(place, '%constant')};"
            return
        yield f"  add.u32 %at, %offset, {offset};"
        if name == "sust":
            yield f"  mov.b32 %left, {register}; sust.b.1d.b32.trap [%surface, {{%at}}], %left;"
        elif name == "suld":
            yield f"  suld.b.1d.b32.trap {register}, [%surface, {{%at}}];"
        else:
            yield f"  shr.u32 %at, %at, 2; tex.1d.v4.u32.s32 {{{register}, %left, %left, %left}}, [%texture, {{%at}}];"
