"""Instructions that convert numbers."""

from __future__ import annotations

from fractions import Fraction

from tests.support.elementwise_oracle import BF16, F16, F32, F64, Format, clamp, convert, round_integer, signed
from tests.support.machine.floats import put, rounding
from tests.support.machine.text import Instruction
from tests.support.machine.thread import NotModelled, Thread, instruction

FORMATS = {"F16": F16, "BF16": BF16, "F32": F32, "F64": F64}
INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")
WHOLE = {"TRUNC": "rzi", "FLOOR": "rmi", "CEIL": "rpi"}


def _source(t: Thread, f: Format, text: str) -> int:
    if f in (F32, F64):
        return t.float(f, text)
    part = 0 if text.endswith(".H0_H0") or "." not in text else 1
    return t.halves(f, text.split(".")[0])[part]


@instruction("F2F")
def _between_floats(t: Thread, i: Instruction) -> None:
    target, source = (FORMATS[mod] for mod in i.mods if mod in FORMATS)
    if set(i.mods) - {*FORMATS, "RZ", "RM", "RP"}:
        raise NotModelled(i.opcode)
    put(t, target, i.operands[0], convert(source, target, _source(t, source, i.operands[1]), rounding(i)))


@instruction("F2I")
def _to_integer(t: Thread, i: Instruction) -> None:
    """NTZ: a NaN becomes zero, else the highest bit."""
    kind, f = i.first(INTEGERS, "S32"), FORMATS[i.first(tuple(FORMATS), "F32")]
    bits, x = int(kind[1:]), _source(t, f, i.operands[1])
    if "FTZ" in i:
        x = f.flush(x)
    if f.is_nan(x):
        value = 0 if "NTZ" in i else 1 << bits - 1
    elif f.is_infinite(x):
        value = clamp(-(1 << 99) if f.is_negative(x) else 1 << 99, kind[0] == "S", bits)
    else:
        value = clamp(round_integer(f.value(x), WHOLE.get(i.first(tuple(WHOLE), ""), "rni")), kind[0] == "S", bits)
    (t.store_pair if bits == 64 else t.store)(i.operands[0], value)


@instruction("I2F", "I2FP")
def _from_integer(t: Thread, i: Instruction) -> None:
    kind, f = i.first(INTEGERS, "S32"), FORMATS[i.first(tuple(FORMATS), "F32")]
    bits = int(kind[1:])
    value = t.pair(i.operands[1]) if bits == 64 else t.word(i.operands[1])
    value = signed(value, bits) if kind[0] == "S" else value & (1 << bits) - 1
    put(t, f, i.operands[0], f.round(Fraction(value), rounding(i)))


@instruction("I2I")
def _saturate(t: Thread, i: Instruction) -> None:
    target, source = (mod for mod in i.mods if mod in INTEGERS)
    if "SAT" not in i or source != "S32":
        raise NotModelled(i.opcode)
    t.store(i.operands[0], clamp(t.signed(i.operands[1]), target[0] == "S", int(target[1:])))


@instruction("I2IP")
def _pack(t: Thread, i: Instruction) -> None:
    """Two saturated integers in the low bits, the second lowest; above them the low bits of the last operand."""
    target, a, b, upper = i.operands
    kind = i.mods[0]
    bits, above = int(kind[1:]), upper.split(".")[0]
    low, high = (clamp(t.signed(text), kind[0] == "S", bits) & (1 << bits) - 1 for text in (b, a))
    t.store(target, t.word(above) << 2 * bits | high << bits | low)
