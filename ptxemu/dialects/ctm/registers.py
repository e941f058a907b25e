"""The registers of a CTM kernel: temporaries, constants and predicate bits of a point, and where the point is.

Programs are straight lines, so that a register may be given its first value where it is first used.
"""

from __future__ import annotations

from ptxemu.dialects.build import Builder, Guard
from ptxemu.dialects.ctm.arithmetic import Arithmetic
from ptxemu.dialects.ctm.ast import Name
from ptxemu.dialects.ctm.operands import CHANNELS, PRED, Select, temporary
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Addr, Reg, SReg, Variable
from ptxemu.ir.types import PRED as PRED_TYPE
from ptxemu.ir.types import TYPES

TEXEL_BYTES, WORD_BYTES = 16, 4
SELECTED = {"PRED_SEL_RRRR": 0, "PRED_SEL_GGGG": 1, "PRED_SEL_BBBB": 2, "PRED_SEL_AAAA": 3}


class Registers:
    def __init__(self, body: Builder, arithmetic: Arithmetic) -> None:
        self.body = body
        self.arithmetic = arithmetic
        self.literals: dict[int, tuple[int, ...]] = {}  # constants by number
        self.array: Variable | None = None  # of the other constants
        self.domain: tuple[int, int, int, int] | None = None
        self._temporaries: dict[int, list[Reg]] = {}
        self._constants: dict[int, list[Reg]] = {}
        self._predicate: list[Reg] = []
        self._position: tuple[Reg, Reg] | None = None
        self._index: Reg | None = None

    # ------------------------------------------------------------ registers

    def temporary(self, number: int) -> list[Reg]:
        """The four channels; zero at the start."""
        if number not in self._temporaries:
            self._temporaries[number] = [self.new(f"r{number}.{letter}") for letter in CHANNELS]
        return self._temporaries[number]

    def new(self, name: str) -> Reg:
        """A register that is zero."""
        made = Reg(name, TYPES["b32"])
        self.body.emit("mov.b32", made, 0)
        return made

    def new_flag(self, name: str) -> Reg:
        """A predicate that is false."""
        made = Reg(name, PRED_TYPE)
        self.body.emit("mov.pred", made, 0)
        return made

    @property
    def predicate(self) -> list[Reg]:
        """The four predicate bits; zero at the start."""
        if not self._predicate:
            self._predicate = [self.new_flag(f"{PRED}.{letter}") for letter in CHANNELS]
        return self._predicate

    def constant(self, number: int, name: Name) -> list[Reg]:
        if number not in self._constants:
            self._constants[number] = self._load_constant(number, name)
        return self._constants[number]

    def _load_constant(self, number: int, name: Name) -> list[Reg]:
        if number in self.literals:
            return [self.arithmetic.number(bits) for bits in self.literals[number]]
        if self.array is None:
            message = f"c{number} has no value: give it by .const or .constants"
            raise TextError(message, name.pos, name.end)
        loaded = [self.body.temp("b32") for _ in CHANNELS]
        self.body.emit("ld.global.v4.b32", tuple(loaded), Addr(self.body.load_param(self.array, "u64"), TEXEL_BYTES * number))
        return loaded

    def read(self, select: Select, name: Name) -> Reg:
        """One channel of a source with its signs."""
        if select.bank == "":
            value = self.arithmetic.number(select.number)
        else:
            bank = self.temporary(select.number) if select.bank == "r" else self.constant(select.number, name)
            value = bank[select.channel]
        if select.absolute:
            value = self.arithmetic.absolute(value)
        return self.arithmetic.negative(value) if select.negated else value

    def gate(self, mods: dict[str, str], channel: int) -> Guard | None:
        """PRED_SEL and PRED_INV for a channel; NONE ignores INV."""
        if mods["sel"] == "PRED_SEL_NONE":
            return None
        return self.predicate[SELECTED.get(mods["sel"], channel)], "PRED_INV" in mods

    def mask(self, gates: dict[int, Guard | None]) -> Reg:
        """Four bits: the channels among the keys whose gate is open."""
        word = self.arithmetic.number(sum(1 << channel for channel, gate in gates.items() if gate is None))
        for channel, gate in gates.items():
            if gate is None:
                continue
            flag, negated = gate
            bit, total = self.body.temp("b32"), self.body.temp("b32")
            chosen = (0, 1 << channel) if negated else (1 << channel, 0)
            self.body.emit("selp.b32", bit, *chosen, flag)
            self.body.emit("or.b32", total, word, bit)
            word = total
        return word

    # ------------------------------------------------------------ the point

    @property
    def position(self) -> tuple[Reg, Reg]:
        """x and y of the point that the thread works on."""
        if self._position is None:
            first = (0, 0) if self.domain is None else self.domain[:2]
            self._position = self._coordinate("x", first[0]), self._coordinate("y", first[1])
        return self._position

    def _coordinate(self, axis: str, first: int) -> Reg:
        value = self._thread(axis)
        if first:
            moved = self.body.temp("b32")
            self.body.emit("add.u32", moved, value, first)
            return moved
        return value

    def _thread(self, axis: str) -> Reg:
        block, extent, thread, value = (self.body.temp("u32") for _ in range(4))
        for register, name in ((block, "ctaid"), (extent, "ntid"), (thread, "tid")):
            self.body.emit("mov.u32", register, SReg(f"{name}.{axis}"))
        self.body.emit("mad.lo.u32", value, block, extent, thread)
        return value

    def set_domain(self, first_x: int, first_y: int, last_x: int, last_y: int) -> None:
        """Only points of a rectangle run; the first thread's is the first corner."""
        self.domain = first_x, first_y, last_x, last_y
        extents = last_x - first_x + 1, last_y - first_y + 1
        self.body.limit("domain", *extents)
        for axis, count in zip("xy", extents):
            outside = self.body.temp("pred")
            self.body.emit("setp.ge.u32", outside, self._thread(axis), count)
            self.body.emit("exit", guard=(outside, False))

    @property
    def started(self) -> bool:
        """Whether code depends on the domain."""
        return self._position is not None or self._index is not None

    @property
    def index(self) -> Reg:
        """The point's number in the domain, row by row."""
        if self._index is None:
            x, y, width = self._thread("x"), self._thread("y"), self.body.temp("u32")
            if self.domain is None:
                blocks, extent = self.body.temp("u32"), self.body.temp("u32")
                self.body.emit("mov.u32", blocks, SReg("nctaid.x"))
                self.body.emit("mov.u32", extent, SReg("ntid.x"))
                self.body.emit("mul.lo.u32", width, blocks, extent)
            else:
                self.body.emit("mov.u32", width, self.domain[2] - self.domain[0] + 1)
            self._index = self.body.temp("u32")
            self.body.emit("mad.lo.u32", self._index, y, width, x)
        return self._index

    def set_point(self, name: Name) -> None:
        """Put the point's coordinates into red and green, as floats."""
        for register, value in zip(self.temporary(temporary(name)), self.position):
            self.body.emit("cvt.rn.f32.u32", register, value)

    # ------------------------------------------------------------ register files

    def load_file(self, name: Name, array: Variable) -> None:
        """Four words a point for a temporary, one for the predicate."""
        if name.text == PRED:
            bits = self.body.temp("b32")
            self.body.emit("ld.global.b32", bits, self.body.element(array, self.index, WORD_BYTES))
            for channel, flag in enumerate(self.predicate):
                one = self.body.temp("b32")
                self.body.emit("and.b32", one, bits, 1 << channel)
                self.body.emit("setp.ne.u32", flag, one, 0)
            return
        registers = tuple(self.temporary(temporary(name)))
        self.body.emit("ld.global.v4.b32", registers, self.body.element(array, self.index, TEXEL_BYTES))

    def store_file(self, name: Name, array: Variable) -> None:
        if name.text == PRED:
            bits = self.mask({channel: (flag, False) for channel, flag in enumerate(self.predicate)})
            self.body.emit("st.global.b32", self.body.element(array, self.index, WORD_BYTES), bits)
            return
        registers = tuple(self.temporary(temporary(name)))
        self.body.emit("st.global.v4.b32", self.body.element(array, self.index, TEXEL_BYTES), registers)
