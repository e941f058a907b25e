"""Instructions of f16 and bf16, single and packed."""

from __future__ import annotations

from tests.isa.oracles import guarded
from tests.support.elementwise_oracle import BF16, F16, F32, Format, arithmetic, convert, extreme
from tests.support.machine.floats import ordered, rounding
from tests.support.machine.integers import join
from tests.support.machine.text import Instruction
from tests.support.machine.thread import NotModelled, Thread, instruction, packed_constant

SUMS = {"HADD2": "add", "HMUL2": "mul", "HFMA2": "fma"}


def _format(i: Instruction) -> Format:
    return BF16 if "BF16_V2" in i else F16


def _values(t: Thread, f: Format, texts: tuple[str, ...]) -> list[tuple[int, int]]:
    """Operands by halves; a constant is two numbers, the high half first."""
    found: list[tuple[int, int]] = []
    left = list(texts)
    while left:
        text = left.pop(0)
        if text.lstrip("-~|!")[:1] == "R":
            found.append(t.halves(f, text))
        else:
            found.append(packed_constant(text, left.pop(0), f))
    return found


@instruction(*SUMS)
def _sum(t: Thread, i: Instruction) -> None:
    f, (target, *texts) = _format(i), i.operands
    if set(i.mods) - {"BF16_V2", "MMA", "FTZ", "SAT", "OOB", "RELU", "F32"}:
        raise NotModelled(i.opcode)
    columns = list(zip(*_values(t, f, tuple(texts)), strict=True))
    if "F32" in i:
        wide = tuple(convert(f, F32, x) for x in columns[0])
        t.store(target, arithmetic(SUMS[i.name], F32, wide))
        return
    low, high = (_half(i, f, values) for values in columns)
    t.store(target, high << 16 | low)


def _half(i: Instruction, f: Format, values: tuple[int, ...]) -> int:
    if "OOB" in i:
        mods = [mod.lower() for mod in i.mods]
        return guarded("bf16" if f is BF16 else "f16", mods, *values)
    result = arithmetic(SUMS[i.name], f, values, ftz="FTZ" in i, sat="SAT" in i)
    return 0 if "RELU" in i and f.is_negative(result) and not f.is_nan(result) else result


@instruction("HMNMX2")
def _extreme(t: Thread, i: Instruction) -> None:
    f, (target, a, b, least) = _format(i), i.operands
    if set(i.mods) - {"BF16_V2", "NAN"}:
        raise NotModelled(i.opcode)
    name = "min" if t.predicate(least) else "max"
    low, high = (extreme(name, f, x, y, "NAN" in i) for x, y in zip(t.halves(f, a), t.halves(f, b), strict=True))
    t.store(target, high << 16 | low)


@instruction("HSETP2")
def _compare(t: Thread, i: Instruction) -> None:
    f, (first, second, a, b, other) = _format(i), i.operands
    results = (ordered(i, f, x, y) for x, y in zip(t.halves(f, a), t.halves(f, b), strict=True))
    old = t.predicate(other)
    for target, result in zip((first, second), results, strict=True):
        t.set(target, join(i, result, old))


@instruction("HSET2")
def _set(t: Thread, i: Instruction) -> None:
    """1.0 or all ones."""
    f, (target, a, b, other) = _format(i), i.operands
    true = f.one if "BF" in i else 0xFFFF
    results = (ordered(i, f, x, y) for x, y in zip(t.halves(f, a), t.halves(f, b), strict=True))
    low, high = (true if join(i, result, t.predicate(other)) else 0 for result in results)
    t.store(target, high << 16 | low)


@instruction("F2FP")
def _pack(t: Thread, i: Instruction) -> None:
    """Two f32 to halves of one register: the first operand is the high one."""
    if "PACK_AB" not in i or set(i.mods) - {"F16", "BF16", "F32", "PACK_AB", "RZ", "RM", "RP"}:
        raise NotModelled(i.opcode)
    target, a, b = i.operands
    f = BF16 if "BF16" in i else F16
    high, low = (convert(F32, f, t.float(F32, text), rounding(i)) for text in (a, b))
    t.store(target, high << 16 | low)
