"""Instructions of integers, bits and predicates."""

from __future__ import annotations

import operator

from tests.isa.oracles import permute
from tests.support.elementwise_oracle import clamp
from tests.support.machine.text import Instruction
from tests.support.machine.thread import WORD, NotModelled, Thread, instruction

ORDERS = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq, "NE": operator.ne}
JOINS = {"AND": operator.and_, "OR": operator.or_, "XOR": operator.xor}


def join(i: Instruction, result: bool, other: bool) -> bool:
    return bool(JOINS[i.first(tuple(JOINS), "AND")](result, other))


def _is_predicate(text: str) -> bool:
    return text.lstrip("!")[:1] == "P" or text.lstrip("!")[:2] == "UP"


@instruction("IADD3", "UIADD3")
def _add3(t: Thread, i: Instruction) -> None:
    target, *rest = i.operands
    carries = []
    while _is_predicate(rest[0]):
        carries.append(rest.pop(0))
    total = sum(_negated_or_word(t, text) for text in rest[:3]) + sum(map(t.predicate, rest[3:]))
    t.store(target, total)
    for place, carry in enumerate(carries):
        t.set(carry, total >> 32 > place)


def _negated_or_word(t: Thread, text: str) -> int:
    """A negated register is its complement plus one, which may carry."""
    return t.word("~" + text[1:]) + 1 if text.startswith("-R") or text.startswith("-UR") else t.word(text)


@instruction("VIADD")
def _add(t: Thread, i: Instruction) -> None:
    if i.mods:
        raise NotModelled(i.opcode)
    t.store(i.operands[0], t.word(i.operands[1]) + t.word(i.operands[2]))


@instruction("IMAD")
def _multiply_add(t: Thread, i: Instruction) -> None:
    target, *rest = i.operands
    carry = rest.pop(0) if _is_predicate(rest[0]) else "PT"
    a, b, c, *extra = rest
    read = t.word if "U32" in i else t.signed
    product = read(a) * read(b)
    if "WIDE" not in i and "HI" not in i:
        t.store(target, product + t.word(c) + sum(map(t.predicate, extra)))
        return
    total = (product & (1 << 64) - 1) + t.pair(c) + sum(map(t.predicate, extra))
    t.set(carry, bool(total >> 64))
    if "HI" in i:
        t.store(target, total >> 32)
    else:
        t.store_pair(target, total)


@instruction("MOV", "UMOV")
def _move(t: Thread, i: Instruction) -> None:
    t.store(i.operands[0], t.word(i.operands[1]))


@instruction("LDC", "LDCU", "ULDC")
def _load_constant(t: Thread, i: Instruction) -> None:
    t.store(i.operands[0], t.word(i.operands[1]))


@instruction("ULEA", "LEA")
def _shift_add(t: Thread, i: Instruction) -> None:
    target, *rest = i.operands
    carry = t.predicate(rest.pop()) if "X" in i else False
    a, b = t.word(rest[0]), t.word(rest[1])
    amount = t.word(rest[-1]) & 31
    if "HI" not in i:
        t.store(target, (a << amount) + b)
        return
    high = -(a >> 31) & WORD if "SX32" in i else t.word(rest[2])
    t.store(target, ((high << 32 | a) << amount >> 32) + b + carry)


@instruction("SHF", "USHF")
def _funnel(t: Thread, i: Instruction) -> None:
    target, low, amount, high = i.operands
    width = 64 if "U64" in i or "S64" in i else 32
    count = t.word(amount) % width if "W" in i else min(t.word(amount), width)
    value = t.word(high) << 32 | t.word(low)
    if "S32" in i or "S64" in i:
        value -= value >> 63 << 64
    value = value << count if "L" in i else value >> count
    t.store(target, value >> 32 if "HI" in i else value)


def _table(lut: int, *bits: int) -> int:
    """Three words by a table of eight bits."""
    a, b, c = bits
    result = 0
    for index in range(8):
        if lut >> index & 1:
            result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return result & WORD


@instruction("LOP3", "ULOP3")
def _logic(t: Thread, i: Instruction) -> None:
    operands = list(i.operands)
    predicate = operands.pop(0) if _is_predicate(operands[0]) else "PT"
    target, a, b, c, lut, other = operands
    result = _table(t.word(lut), t.word(a), t.word(b), t.word(c))
    t.store(target, result)
    some = result != 0
    t.set(predicate, some and t.predicate(other) if "PAND" in i else some or t.predicate(other))


@instruction("PLOP3")
def _predicates(t: Thread, i: Instruction) -> None:
    first, second, *sources, lut, other = i.operands
    bits = [_sign(t, text) if text.endswith(".SIGN") else int(t.predicate(text)) for text in sources]
    index = bits[0] << 2 | bits[1] << 1 | bits[2]
    t.set(first, bool(t.word(lut) >> index & 1))
    t.set(second, bool(t.word(other) >> index & 1))


def _sign(t: Thread, text: str) -> int:
    return t.word(text.removesuffix(".SIGN")) >> 31


@instruction("ISETP", "UISETP")
def _compare(t: Thread, i: Instruction) -> None:
    first, second, a, b, other, *low = i.operands
    read = t.word if "U32" in i else t.signed
    order = i.first(tuple(ORDERS), "")
    x, y = read(a), read(b)
    if not order:
        raise NotModelled(i.opcode)
    if not low:
        result = bool(ORDERS[order](x, y))
    elif x == y or order == "EQ":
        result = x == y and t.predicate(low[0])
    else:
        result = bool(ORDERS[order](x, y))
    t.set(first, join(i, result, t.predicate(other)))
    t.set(second, join(i, not result, t.predicate(other)))


@instruction("SEL", "USEL")
def _select(t: Thread, i: Instruction) -> None:
    target, a, b, condition = i.operands
    t.store(target, t.word(a) if t.predicate(condition) else t.word(b))


@instruction("PRMT", "UPRMT")
def _permute(t: Thread, i: Instruction) -> None:
    target, a, selector, c = i.operands
    t.store(target, permute(t.word(a), t.word(c), t.word(selector), [mod.lower() for mod in i.mods]))


@instruction("IMNMX", "VIMNMX")
def _extreme(t: Thread, i: Instruction) -> None:
    kind = i.first(("U32", "U16x2", "S16x2"), "S32").removesuffix("x2")
    if set(i.mods) - {"U32", "U16x2", "S16x2", "RELU"}:
        raise NotModelled(i.opcode)
    target, *_, a, b, least = i.operands
    choose = min if t.predicate(least) else max
    results = map(choose, _parts(t.word(a), kind), _parts(t.word(b), kind))
    t.store(target, _joined([max(x, 0) if "RELU" in i else x for x in results]))


@instruction("VIADDMNMX")
def _sum_extreme(t: Thread, i: Instruction) -> None:
    target, a, b, c, least = i.operands
    total = clamp(t.signed(a) - t.signed(b[1:]) if b.startswith("-") else t.signed(a) + t.signed(b), True, 32)
    t.store(target, (min if t.predicate(least) else max)(total, t.signed(c)))


@instruction("IABS")
def _magnitude(t: Thread, i: Instruction) -> None:
    t.store(i.operands[0], abs(t.signed(i.operands[1])))


@instruction("VABSDIFF")
def _difference(t: Thread, i: Instruction) -> None:
    target, a, b, c = i.operands
    read = t.word if "U32" in i else t.signed
    t.store(target, abs(read(a) - read(b)) + t.word(c))


@instruction("POPC")
def _count(t: Thread, i: Instruction) -> None:
    t.store(i.operands[0], t.word(i.operands[1]).bit_count())


@instruction("BREV")
def _reverse(t: Thread, i: Instruction) -> None:
    t.store(i.operands[0], int(f"{t.word(i.operands[1]):032b}"[::-1], 2))


@instruction("FLO")
def _leading(t: Thread, i: Instruction) -> None:
    value = t.word(i.operands[1]) if "U32" in i else t.signed(i.operands[1])
    place = (value if value >= 0 else ~value).bit_length() - 1
    t.store(i.operands[0], 31 - place if "SH" in i and place >= 0 else place)


@instruction("SGXT")
def _extend(t: Thread, i: Instruction) -> None:
    target, a, width = i.operands
    bits = t.word(width) & 31 if "W" in i else min(t.word(width), 32)
    value = t.word(a) & (1 << bits) - 1
    if "U32" not in i and bits and value >> bits - 1:
        value -= 1 << bits
    t.store(target, value)


@instruction("BMSK")
def _mask(t: Thread, i: Instruction) -> None:
    target, start, width = i.operands
    first, count = (t.word(text) & 31 if "W" in i else min(t.word(text), 32) for text in (start, width))
    t.store(target, (1 << count) - 1 << first)


@instruction("IDP")
def _dot(t: Thread, i: Instruction) -> None:
    target, a, b, c = i.operands
    kinds = [mod for mod in i.mods if mod[0] in "US"]
    if "4A" in i:
        pairs = zip(_parts(t.word(a), kinds[0]), _parts(t.word(b), kinds[1]), strict=True)
    else:
        narrow = _parts(t.word(b), kinds[1])
        pairs = zip(_parts(t.word(a), kinds[0]), narrow[2:] if "HI" in i else narrow[:2], strict=True)
    t.store(target, t.word(c) + sum(x * y for x, y in pairs))


def _joined(parts: list[int]) -> int:
    size = 32 // len(parts)
    return sum((part & (1 << size) - 1) << size * place for place, part in enumerate(parts))


def _parts(value: int, kind: str) -> list[int]:
    size = int(kind[1:])
    parts = [value >> at & (1 << size) - 1 for at in range(0, 32, size)]
    return [part - (part >> size - 1 << size) for part in parts] if kind[0] == "S" else parts
