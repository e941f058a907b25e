"""One thread: registers, predicates, shared memory and control."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from tests.support.elementwise_oracle import F16, F64, Format
from tests.support.machine.text import Function, Instruction

WORD = 0xFFFFFFFF
STEPS = 4096
REGISTER = re.compile(r"(?P<sign>[-~!]?)(?P<bar>\|?)(?P<name>U?[RP](?:Z|T|\d+))\|?(?P<part>(?:\.\w+)*)")
ADDRESS = re.compile(r"\[(?:(?P<base>U?R\w+)\+?)?(?P<offset>0x[0-9a-f]+)?\]")
CONSTANT = re.compile(r"c\[0x([0-9a-f]+)\]\[0x([0-9a-f]+)\]")
Method = Callable[["Thread", Instruction], None]
METHODS: dict[str, Method] = {}


class NotModelled(Exception):
    """An instruction, or an operand of one, that the model does not know."""


def instruction(*names: str) -> Callable[[Method], Method]:
    def add(method: Method) -> Method:
        METHODS.update(dict.fromkeys(names, method))
        return method

    return add


class Thread:
    """``guess``: which of several answers instructions give whose bits are not known; ``unknown`` names the last of these."""

    def __init__(self, function: Function, shared: bytearray, constants: dict[int, bytes], guess: int = 0) -> None:
        self.function, self.shared, self.constants, self.guess = function, shared, constants, guess
        self.unknown = ""
        self.registers: dict[str, int] = {}
        self.at = 0

    def run(self) -> None:
        code = self.function.code
        for _ in range(STEPS):
            step = code[self.at]
            self.at += 1
            if step.guard and not self.predicate(step.guard):
                continue
            if step.name == "EXIT":
                return
            if step.name not in METHODS:
                raise NotModelled(step.opcode)
            METHODS[step.name](self, step)
        raise NotModelled(f"more than {STEPS} steps")

    # -- integers

    def word(self, text: str) -> int:
        """32 bits of a register or constant."""
        if found := CONSTANT.fullmatch(text):
            return self._constant(found, 4)
        if not (found := REGISTER.fullmatch(text)):
            try:
                return int(text, 0) & WORD
            except ValueError:
                raise NotModelled(text) from None
        if found["bar"] or found["part"]:
            raise NotModelled(text)
        value = self.registers.get(found["name"], 0)
        return (-value if found["sign"] == "-" else ~value if found["sign"] == "~" else value) & WORD

    def signed(self, text: str) -> int:
        value = self.word(text)
        return value - (value >> 31 << 32)

    def pair(self, text: str) -> int:
        """64 bits, in two registers or a bank of constants."""
        if found := CONSTANT.fullmatch(text):
            return self._constant(found, 8)
        if not REGISTER.fullmatch(text):
            raise NotModelled(text)
        return self.word(text) | self.word(_next(text)) << 32

    def _constant(self, found: re.Match[str], size: int) -> int:
        """What is not in a bank, such as the end of the stack, is 0."""
        bank, offset = (int(part, 16) for part in found.groups())
        return int.from_bytes(self.constants.get(bank, b"")[offset : offset + size], "little")

    def store(self, name: str, value: int) -> None:
        if name not in ("RZ", "URZ"):
            self.registers[name] = value & WORD

    def store_pair(self, name: str, value: int) -> None:
        self.store(name, value)
        self.store(_next(name), value >> 32)

    # -- predicates

    def predicate(self, text: str) -> bool:
        inverted, name = text.startswith("!"), text.lstrip("!")
        value = name.endswith("PT") or bool(self.registers.get(name, 0))
        return value != inverted

    def set(self, name: str, value: bool) -> None:
        if not name.endswith("PT"):
            self.registers[name] = int(value)

    # -- floats

    def float(self, f: Format, text: str) -> int:
        """The bits of an operand of f32 or f64, with its sign changed as it says."""
        if (found := REGISTER.fullmatch(text)) is None:
            return self.word(text) if text.startswith("c[") else constant(f, text)
        if found["part"]:
            raise NotModelled(text)
        bits = self.registers.get(found["name"], 0)
        if f is F64:
            bits |= self.registers.get(_next(found["name"]), 0) << 32
        return with_sign(f, found, bits)

    def halves(self, f: Format, text: str) -> tuple[int, int]:
        """The low and the high half of a packed operand."""
        if (found := REGISTER.fullmatch(text)) is None:
            raise NotModelled(text)
        bits = self.registers.get(found["name"], 0)
        low, high = (with_sign(f, found, half) for half in (bits & 0xFFFF, bits >> 16))
        parts = {"": (low, high), ".H0_H0": (low, low), ".H1_H1": (high, high)}
        if found["part"] not in parts:
            raise NotModelled(text)
        return parts[found["part"]]

    def address(self, text: str) -> int:
        found = ADDRESS.fullmatch(text)
        if found is None:
            raise NotModelled(text)
        return (self.word(found["base"]) if found["base"] else 0) + int(found["offset"] or "0", 0)


def with_sign(f: Format, found: re.Match[str], bits: int) -> int:
    bits = bits & ~f.sign if found["bar"] else bits
    return bits ^ f.sign if found["sign"] == "-" else bits


def constant(f: Format, text: str) -> int:
    """A number as text; of f64, the high word counts."""
    text = text.strip()
    if "INF" in text or "NAN" in text:
        quiet = f.infinity | (1 << f.mantissa - 1 if "NAN" in text else 0)
        return quiet | (f.sign if text[0] == "-" else 0)
    try:
        bits = f.round(Fraction(text), "rn", text.startswith("-"))
    except ValueError:
        raise NotModelled(text) from None
    return bits >> 32 << 32 if f is F64 else bits


def packed_constant(high: str, low: str, f: Format = F16) -> tuple[int, int]:
    return constant(f, low), constant(f, high)


def _next(name: str) -> str:
    return name if name.endswith("Z") else re.sub(r"\d+", lambda number: str(int(number[0]) + 1), name, count=1)


# ---------------------------------------------------------------- memory and control


def _bytes(i: Instruction) -> int:
    return int(i.first(("U8", "U16", "64", "128"), "32").lstrip("U")) // 8


@instruction("LDS")
def _load(t: Thread, i: Instruction) -> None:
    at, size = t.address(i.operands[1]), _bytes(i)
    value = int.from_bytes(t.shared[at : at + size], "little")
    (t.store_pair if size == 8 else t.store)(i.operands[0], value)


@instruction("STS")
def _store(t: Thread, i: Instruction) -> None:
    at, size = t.address(i.operands[0]), _bytes(i)
    value = t.pair(i.operands[1]) if size == 8 else t.word(i.operands[1])
    t.shared[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


@instruction("BRA")
def _branch(t: Thread, i: Instruction) -> None:
    *conditions, target = i.operands
    if all(map(t.predicate, conditions)):
        t.at = t.function.labels[target]


@instruction("CALL")
def _call(t: Thread, i: Instruction) -> None:
    t.at = t.function.labels[i.operands[0]]


@instruction("RET")
def _return(t: Thread, i: Instruction) -> None:
    t.at = t.function.labels[i.operands[1]] + t.word(i.operands[0]) // 16


@instruction("NOP", "NANOSLEEP", "PMTRIG", "BSSY", "BSYNC", "WARPSYNC")
def _nothing(t: Thread, i: Instruction) -> None:
    """What changes no register of a thread that is alone."""


@instruction("S2UR", "S2R")
def _special_register(t: Thread, i: Instruction) -> None:
    if i.operands[1] != "SR_CgaCtaId":
        raise NotModelled(i.operands[1])
    t.store(i.operands[0], 0)


@instruction("CS2R")
def _zero(t: Thread, i: Instruction) -> None:
    if i.operands[1] != "SRZ":
        raise NotModelled(i.operands[1])
    (t.store if "32" in i else t.store_pair)(i.operands[0], 0)
