"""Video instructions (PTX ISA 9.7.17). Scalar ones are computed in 64 bits, where all their intermediate results are exact."""

from __future__ import annotations

from ptxemu.ir.ops import Op
from ptxemu.ir.types import U32, ScalarType
from ptxemu.lower.core.emit import Emitter, elementwise

SHIFTED_BITS = 34  # of the result of vshl, before saturation
HUGE = 1 << 62  # a product beyond which every scaled sum saturates


def _field(e: Emitter, x: str, first: int, bits: int, signed: bool) -> str:
    """Some bits of an i32, extended to 32."""
    lifted = e.bin("shl", "i32", x, e.int(32, 32 - first - bits)) if first + bits < 32 else x
    return e.bin("ashr" if signed else "lshr", "i32", lifted, e.int(32, 32 - bits)) if bits < 32 else lifted


def _clamp(e: Emitter, t: str, x: str, bits: int, signed: bool) -> str:
    """A signed number limited to an integer type."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    width = int(t[1:])
    return e.intrinsic("smin", t, e.intrinsic("smax", t, x, e.int(width, low)), e.int(width, high))


def _merge(e: Emitter, value: str, into: str, first: int, bits: int) -> str:
    """``into`` with the low bits of ``value`` in one place."""
    mask = ((1 << bits) - 1) << first
    placed = e.bin("and", "i32", e.bin("shl", "i32", value, e.int(32, first)), e.int(32, mask))
    return e.bin("or", "i32", placed, e.bin("and", "i32", into, e.int(32, ~mask & 0xFFFFFFFF)))


# ---------------------------------------------------------------- scalar


def _place(selector: str) -> tuple[int, int]:
    """The lowest bit and the width of a byte or half."""
    if not selector:
        return 0, 32
    bits = 8 if selector[0] == "b" else 16
    return bits * int(selector[1]), bits


def _extended(e: Emitter, kind: ScalarType, x: str, selector: str = "") -> str:
    part = _field(e, x, *_place(selector), kind.is_signed)
    return e.cast("sext" if kind.is_signed else "zext", "i32", part, "i64")


def _sources(e: Emitter, op: Op, a: str, b: str) -> tuple[str, str]:
    return tuple(  # type: ignore[return-value]
        _extended(e, op.type(f"{name}type"), x, op.mods.get(f"{name}sel", "")) for name, x in (("a", a), ("b", b))
    )


def _finished(e: Emitter, op: Op, result: str, c: str) -> str:
    """Saturation, the second operation or the merge."""
    kind = op.type("dtype") if "dtype" in op.mods else U32
    first, bits = _place(op.mods.get("dsel", ""))
    if "sat" in op.mods:
        result = _clamp(e, "i64", result, bits, kind.is_signed)
    second = op.mods.get("second")
    if second == "add":
        result = e.bin("add", "i64", result, _extended(e, kind, c))
    elif second:
        result = e.intrinsic("s" + second, "i64", result, _extended(e, kind, c))
    word = e.cast("trunc", "i64", result, "i32")
    return _merge(e, word, c, first, bits) if "dsel" in op.mods else word


def _combined(e: Emitter, name: str, t: str, x: str, y: str) -> str:
    """Two signed numbers of a type that holds the result."""
    if name in ("vmin", "vmax"):
        return e.intrinsic("s" + name[1:], t, x, y)
    if name == "vadd":
        return e.bin("add", t, x, y)
    difference = e.bin("sub", t, x, y)
    return difference if name == "vsub" else e.intrinsic("abs", t, difference, extra="i1 false")


@elementwise("video", size=30)
def arithmetic(e: Emitter, op: Op, a: str, b: str, c: str = "") -> str:
    return _finished(e, op, _combined(e, op.opcode, "i64", *_sources(e, op, a, b)), c)


@elementwise("video.shift", size=30)
def shift(e: Emitter, op: Op, a: str, b: str, c: str = "") -> str:
    """By at most 32 (``clamp``) or modulo 32; a left shift keeps 34 bits."""
    x, amount = _sources(e, op, a, b)
    if op.mods["mode"] == "wrap":
        amount = e.bin("and", "i64", amount, e.int(64, 31))
    else:
        amount = e.intrinsic("umin", "i64", amount, e.int(64, 32))
    if op.opcode == "vshr":
        return _finished(e, op, e.bin("ashr", "i64", x, amount), c)
    unused = e.int(64, 64 - SHIFTED_BITS)
    lifted = e.bin("shl", "i64", e.bin("shl", "i64", x, amount), unused)
    return _finished(e, op, e.bin("ashr", "i64", lifted, unused), c)


def _condition(op: Op) -> str:
    cmp = op.mods["cmp"]
    return cmp if cmp in ("eq", "ne") else "s" + cmp


@elementwise("video.set", size=30)
def compare(e: Emitter, op: Op, a: str, b: str, c: str = "") -> str:
    holds = e.icmp(_condition(op), "i64", *_sources(e, op, a, b))
    return _finished(e, op, e.cast("zext", "i1", holds, "i64"), c)


@elementwise("video.mad", size=30)
def multiply_add(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    """(a * b) + c, of which the product or c may be negated, or one more is added (``po``); scaled and saturated.

    The exact sum can need 66 bits, but only if it saturates or its upper bits are dropped.
    """
    unsigned = op.type("atype").kind == op.type("btype").kind == "u"
    negative = ("aneg" in op.mods) != ("bneg" in op.mods)
    signed = not unsigned or negative or "cneg" in op.mods
    product = e.bin("mul", "i64", *_sources(e, op, a, b))
    if "sat" in op.mods and signed and unsigned:
        product = e.intrinsic("umin", "i64", product, e.int(64, HUGE))
    if negative:
        product = e.bin("xor", "i64", product, e.int(64, -1))
    elif "cneg" in op.mods:
        c = e.bin("xor", "i32", c, e.int(32, -1))
    total = e.bin("add", "i64", product, e.cast("sext" if signed else "zext", "i32", c, "i64"))
    if negative or "cneg" in op.mods or "po" in op.mods:
        total = e.bin("add", "i64", total, e.int(64, 1))
    if "scale" in op.mods:
        total = e.bin("ashr" if signed else "lshr", "i64", total, e.int(64, int(op.mods["scale"].removeprefix("shr"))))
    if "sat" in op.mods and signed:
        total = _clamp(e, "i64", total, 32, signed=True)
    elif "sat" in op.mods:
        total = e.intrinsic("umin", "i64", total, e.int(64, 0xFFFFFFFF))
    return e.cast("trunc", "i64", total, "i32")


# ---------------------------------------------------------------- SIMD


def _elements(e: Emitter, op: Op, a: str, b: str) -> list[tuple[str, str]]:
    """The pairs of numbers to combine, the lowest first: each may come from either operand."""
    count = int(op.opcode[-1])
    bits = 32 // count
    columns = []
    for name, default in (("a", range(count)), ("b", range(count, 2 * count))):
        selector = op.mods.get(name + "sel", "")
        picks = [int(digit) for digit in reversed(selector[1:])] or default
        signed = op.type(name + "type").is_signed
        columns.append([_field(e, b if pick >= count else a, bits * (pick % count), bits, signed) for pick in picks])
    return list(zip(*columns, strict=True))


def _gathered(e: Emitter, op: Op, results: list[str], c: str) -> str:
    """The results whose places the mask names, added to ``c`` or put in their places in it."""
    bits = 32 // len(results)
    mask = op.mods.get("dsel")
    chosen = sorted(int(digit) for digit in mask[1:]) if mask else range(len(results))
    for place in chosen:
        if "add" in op.mods:
            c = e.bin("add", "i32", c, results[place])
        else:
            c = _merge(e, results[place], c, bits * place, bits)
    return c


def _average(e: Emitter, x: str, y: str) -> str:
    """Rounded up if the sum is not negative, else down."""
    total = e.bin("add", "i32", x, y)
    one = e.cast("zext", "i1", e.icmp("sge", "i32", total, e.int(32, 0)), "i32")
    return e.bin("ashr", "i32", e.bin("add", "i32", total, one), e.int(32, 1))


@elementwise("video.simd", size=30)
def simd(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    name = op.opcode[:-1]
    results = []
    for x, y in _elements(e, op, a, b):
        result = _average(e, x, y) if name == "vavrg" else _combined(e, name, "i32", x, y)
        if "sat" in op.mods:
            result = _clamp(e, "i32", result, 32 // int(op.opcode[-1]), op.type("dtype").is_signed)
        results.append(result)
    return _gathered(e, op, results, c)


@elementwise("video.simd.set", size=30)
def simd_compare(e: Emitter, op: Op, a: str, b: str, c: str) -> str:
    pairs = _elements(e, op, a, b)
    results = [e.cast("zext", "i1", e.icmp(_condition(op), "i32", x, y), "i32") for x, y in pairs]
    return _gathered(e, op, results, c)
