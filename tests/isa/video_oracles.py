"""The manual's pseudo-code of the video instructions (PTX ISA 9.7.17), on Python integers.

Instructions are given as text, operands as patterns of 32 bits.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.elementwise_oracle import clamp, signed, unsigned

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
OPERAND = re.compile(r"(-?)\s*%\w+(?:\.(\w+))?|-?\w+")


@dataclass(frozen=True)
class Video:
    """An instruction taken apart; ``types`` are dtype, atype and btype."""

    opcode: str
    mods: tuple[str, ...]
    types: tuple[str, ...]
    negated: tuple[bool, ...]
    selectors: tuple[str, ...]


def parsed(text: str) -> Video:
    head, _, tail = text.strip().partition(" ")
    opcode, *mods = head.split(".")
    types = [word for word in mods if word in ("u32", "s32")]
    if opcode.startswith("vset"):
        types.insert(0, "u32")
    found = [OPERAND.fullmatch(part.strip()) for part in tail.rstrip("; ").split(",")]
    assert all(found), text
    negated = tuple(bool(m[1]) for m in found if m)
    return Video(opcode, tuple(mods), tuple(types), negated, tuple(m[2] or "" for m in found if m))


def video(text: str, a: int, b: int, c: int = 0) -> int:
    """What the instruction gives."""
    v = parsed(text)
    if v.opcode[-1] in "24":
        return simd(v, a, b, c)
    return multiply_add(v, a, b, c) if v.opcode == "vmad" else scalar(v, a, b, c)


def number(x: int, type: str, bits: int = 32) -> int:
    return signed(x, bits) if type == "s32" else unsigned(x, bits)


def part(x: int, type: str, selector: str) -> int:
    """partSelectSignExtend"""
    if not selector:
        return number(x, type)
    bits = 8 if selector[0] == "b" else 16
    return number(x >> bits * int(selector[1]), type, bits)


# ---------------------------------------------------------------- scalar


def scalar(v: Video, a: int, b: int, c: int) -> int:
    ta, tb = part(a, v.types[1], v.selectors[1]), part(b, v.types[2], v.selectors[2])
    tmp = operation(v, ta, tb)
    dsel = v.selectors[0]
    width = {"": 32, "b": 8, "h": 16}[dsel[:1]]
    if "sat" in v.mods:
        tmp = clamp(tmp, v.types[0] == "s32", width)
    other = number(c, v.types[0])
    if "add" in v.mods:
        tmp += other
    elif "min" in v.mods:
        tmp = min(tmp, other)
    elif "max" in v.mods:
        tmp = max(tmp, other)
    if dsel:
        shift = width * int(dsel[1])
        mask = ((1 << width) - 1) << shift
        return tmp << shift & mask | c & ~mask
    return unsigned(tmp, 32)


def operation(v: Video, a: int, b: int) -> int:
    match v.opcode.rstrip("24"):
        case "vadd":
            return a + b
        case "vsub":
            return a - b
        case "vabsdiff":
            return abs(a - b)
        case "vmin":
            return min(a, b)
        case "vmax":
            return max(a, b)
        case "vavrg":
            return a + b + 1 >> 1 if a + b >= 0 else a + b >> 1
        case "vset":
            return int(next(COMPARE[m] for m in v.mods if m in COMPARE)(a, b))
    amount = min(b, 32) if "clamp" in v.mods else b & 31
    return signed(a << amount, 34) if v.opcode == "vshl" else a >> amount


def multiply_add(v: Video, a: int, b: int, c: int) -> int:
    _, minus_a, minus_b, minus_c = v.negated
    final = "s32" in v.types[1:] or minus_a != minus_b or minus_c
    tmp = part(a, v.types[1], v.selectors[1]) * part(b, v.types[2], v.selectors[2])
    one = 0
    if "po" in v.mods:
        one = 1
    elif minus_a != minus_b:
        tmp, one = ~tmp, 1
    elif minus_c:
        c, one = unsigned(~c, 32), 1
    tmp += (signed(c, 32) if final else c) + one
    result = tmp >> (7 if "shr7" in v.mods else 15 if "shr15" in v.mods else 0)
    return unsigned(clamp(result, final, 32) if "sat" in v.mods else result, 32)


# ---------------------------------------------------------------- SIMD


def simd(v: Video, a: int, b: int, c: int) -> int:
    count = int(v.opcode[-1])
    bits = 32 // count
    default = {2: ("10", "32"), 4: ("3210", "7654")}[count]
    columns = []
    for type, selector, usual in zip(v.types[1:], v.selectors[1:], default):  # c has no selector
        digits = [int(digit) for digit in reversed(selector[1:] or usual)]
        columns.append([number((b << 32 | a) >> bits * digit, type, bits) for digit in digits])
    results = [operation(v, x, y) for x, y in zip(*columns, strict=True)]
    if "sat" in v.mods:
        results = [clamp(t, v.types[0] == "s32", bits) for t in results]
    mask = v.selectors[0][1:] or default[0]
    chosen = [str(i) in mask for i in range(count)]
    if "add" in v.mods:
        return unsigned(c + sum(t for t, use in zip(results, chosen, strict=True) if use), 32)
    fields = [t if use else c >> bits * i for i, (t, use) in enumerate(zip(results, chosen, strict=True))]
    return sum(unsigned(x, bits) << bits * i for i, x in enumerate(fields))
