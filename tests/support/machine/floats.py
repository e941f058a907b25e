"""Instructions of f32 and f64."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.elementwise_oracle import F32, F64, Format, arithmetic, extreme
from tests.support.machine.integers import ORDERS, join
from tests.support.machine.text import Instruction
from tests.support.machine.thread import NotModelled, Thread, instruction

ROUNDINGS = ("RZ", "RM", "RP")
SUMS = {"FADD": "add", "FMUL": "mul", "FFMA": "fma", "DADD": "add", "DMUL": "mul", "DFMA": "fma"}


def rounding(i: Instruction) -> str:
    return i.first(ROUNDINGS, "RN").lower()


def _format(i: Instruction) -> Format:
    return F64 if i.name[0] == "D" else F32


def put(t: Thread, f: Format, target: str, bits: int) -> None:
    (t.store_pair if f is F64 else t.store)(target, bits)


@instruction(*SUMS)
def _sum(t: Thread, i: Instruction) -> None:
    if set(i.mods) - {"FTZ", "SAT", *ROUNDINGS}:
        raise NotModelled(i.opcode)
    f, (target, *operands) = _format(i), i.operands
    values = tuple(t.float(f, text) for text in operands)
    put(t, f, target, arithmetic(SUMS[i.name], f, values, rounding(i), "FTZ" in i, "SAT" in i))


def ordered(i: Instruction, f: Format, a: int, b: int) -> bool:
    """A comparison: with U true of NaNs; NUM and NAN ask for nothing else."""
    if "FTZ" in i:
        a, b = f.flush(a), f.flush(b)
    unordered = f.is_nan(a) or f.is_nan(b)
    name = i.first((*ORDERS, *(f"{order}U" for order in ORDERS), "NUM", "NAN"), "")
    if not name:
        raise NotModelled(i.opcode)
    if name in ("NUM", "NAN") or unordered:
        return unordered if name == "NAN" else not unordered if name == "NUM" else name.endswith("U")
    x, y = (-(v & ~f.sign) if f.is_negative(v) else v for v in (a, b))
    return bool(ORDERS[name.removesuffix("U")](x, y))


@instruction("FSETP", "DSETP")
def _compare(t: Thread, i: Instruction) -> None:
    f, (first, second, a, b, other) = _format(i), i.operands
    x, y = t.float(f, a), t.float(f, b)
    if "MIN" in i or "MAX" in i:
        _choose(t, i, f, x, y)
        return
    result = ordered(i, f, x, y)
    t.set(first, join(i, result, t.predicate(other)))
    t.set(second, join(i, not result, t.predicate(other)))


def _choose(t: Thread, i: Instruction, f: Format, x: int, y: int) -> None:
    """Whether the first is the result, and whether both are NaNs."""
    best = extreme("min" if "MIN" in i else "max", f, x, y, False)
    t.set(i.operands[0], best == x and not f.is_nan(x))
    t.set(i.operands[1], f.is_nan(x) and f.is_nan(y))


@instruction("FSEL")
def _select(t: Thread, i: Instruction) -> None:
    target, a, b, condition = i.operands
    bits = t.float(F32, a if t.predicate(condition) else b)
    t.store(target, F32.flush(bits) if "FTZ" in i else bits)


@instruction("FMNMX")
def _extreme(t: Thread, i: Instruction) -> None:
    if set(i.mods) - {"FTZ", "NAN"}:
        raise NotModelled(i.opcode)
    target, *operands, least = i.operands
    x, y = (F32.flush(v) if "FTZ" in i else v for v in (t.float(F32, text) for text in operands))
    t.store(target, extreme("min" if t.predicate(least) else "max", F32, x, y, "NAN" in i))


@instruction("FCHK")
def _check(t: Thread, i: Instruction) -> None:
    """Whether a quotient needs the subroutine: whenever an exponent is not well inside, else as is guessed.

    The hardware's bounds are not known.
    """
    target, a, b = i.operands
    dividend, divisor = (t.float(F32, text) >> 23 & 0xFF for text in (a, b))
    inside = 40 < dividend < 250 and 3 < divisor < 250 and abs(dividend - divisor) < 90
    t.unknown = i.opcode
    t.set(target, not inside or bool(t.guess))


Function = Callable[[int], int]
FUNCTIONS: dict[str, Function] = {}
"""Of MUFU, by its modifiers: of f32 those of the architecture."""


@instruction("MUFU")
def _function(t: Thread, i: Instruction) -> None:
    target, operand = i.operands
    name = ".".join(i.mods)
    if name in ("RCP64H", "RSQ64H"):
        t.unknown = i.opcode
        t.store(target, _high_word(name, t.word(operand), t.guess))
    elif name in FUNCTIONS:
        t.store(target, FUNCTIONS[name](t.float(F32, operand)))
    else:
        raise NotModelled(i.opcode)


def _high_word(name: str, high: int, guess: int) -> int:
    """A reciprocal of f64, cut to the high word; what the hardware has in the lowest of its 20 bits is guessed."""
    x = high << 32
    if F64.is_nan(x):
        return F64.nan >> 32
    if F64.flush(x) == x & F64.sign:
        return (F64.infinity | x & F64.sign) >> 32
    if name == "RSQ64H":
        x = arithmetic("sqrt", F64, (x,))
    result = F64.flush(arithmetic("rcp", F64, (x,), "rz"))
    exact = F64.is_nan(result) or F64.is_infinite(result) or F64.is_zero(result)
    return result >> 32 if exact else (result >> 32) + guess
