"""Elementwise lowerings as Python functions of bit patterns.

The lowerings write LLVM instructions through an :class:`~ptxemu.lower.core.emit.Emitter`.  This one writes each of them as a
line of Python instead; values are names of integers, or in packed arithmetic of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptxemu.interpreter import arithmetic
from ptxemu.lower.core.emit import FunctionEmitter, Words
from ptxemu.lower.core.float_bits import FLOAT_BITS, width

BITCAST = re.compile(r"bitcast (.+) (\S+) to (.+)")
VECTOR = re.compile(r"<(\d+) x (\w+)>")
SIGNED = {"slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
UNSIGNED = {"eq": "==", "ne": "!=", "ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
PLAIN = {"and": "&", "or": "|", "xor": "^"}
WRAPPING = {"add": "+", "sub": "-", "mul": "*"}
FLOATING = {"fadd", "fsub", "fmul", "fdiv"}
ROUNDINGS = {"floor": "math.floor", "ceil": "math.ceil", "trunc": "math.trunc", "rint": "round", "roundeven": "round"}
NAMESPACE = {**vars(arithmetic)}


def literal(t: str, text: str) -> int:
    """The bits of an LLVM constant of scalar type ``t``."""
    if text.startswith("splat ("):
        text = text[len("splat (") : -1].split(" ", 1)[1]
    if text in ("false", "zeroinitializer", "poison"):
        return 0
    if text == "true":
        return 1
    if t not in arithmetic.CODES:
        return int(text) & ((1 << width(t)) - 1)
    if text.startswith("0xH"):
        return int(text[3:], 16)
    bits = int(text, 16) if text.startswith("0x") else arithmetic.encode("double", float(text))
    if t == "double":
        return bits
    if arithmetic.is_nan("double", bits):
        return bits >> 63 << 31 | 0x7F800000 | bits >> 29 & 0x7FFFFF
    return arithmetic.encode(t, arithmetic.decode("double", bits))


class Evaluator(FunctionEmitter):
    """Writes Python. ``names`` holds those of scalars, ``parts`` the elements of vectors by name."""

    def __init__(self, sources: list[str]) -> None:
        super().__init__(0)
        self.names = set(sources)
        self.parts: dict[str, tuple[str, ...]] = {}

    def fresh(self) -> str:
        self.counter += 1
        return f"v{self.counter}"

    def line(self, expression: str) -> str:
        name = self.fresh()
        self.lines.append(f"{name} = {expression}")
        self.names.add(name)
        return name

    def value(self, t: str, text: str) -> str:
        """A scalar as Python text."""
        return text if text in self.names else str(literal(t, text))

    def _each(self, values: list[tuple[str, str]], compute: object) -> str:
        """``compute`` on scalars, or on each element of vectors."""
        assert callable(compute)
        if not self.lanes:
            return self.line(compute(*(self.value(t, text) for t, text in values)))
        columns = [self.parts.get(text) or (str(literal(t, text)),) * self.lanes for t, text in values]
        name = self.fresh()
        self.parts[name] = tuple(self.line(compute(*column)) for column in zip(*columns, strict=True))
        return name

    # -- the emitter's instructions

    def inst(self, text: str) -> str:
        """Of instructions as text there are bitcasts between packed registers and their elements."""
        match = BITCAST.fullmatch(text)
        assert match is not None, text
        source, value, target = match.groups()
        if shape := VECTOR.fullmatch(target):
            size, count = width(shape[2]), int(shape[1])
            whole, name = self.value(source, value), self.fresh()
            self.parts[name] = tuple(self.line(f"{whole} >> {i * size} & {(1 << size) - 1}") for i in range(count))
            return name
        shape = VECTOR.fullmatch(source)
        assert shape is not None, text
        size = width(shape[2])
        parts = self.parts.get(value) or (str(literal(shape[2], value)),) * int(shape[1])
        return self.line(" | ".join(f"{part} << {i * size}" for i, part in enumerate(parts)))

    def stmt(self, text: str) -> None:
        raise NotImplementedError(text)

    def bin(self, op: str, t: str, a: str, b: str) -> str:
        name = op.split()[0]
        if name in FLOATING:
            return self._each([(t, a), (t, b)], lambda x, y: f"{name}({t!r}, {x}, {y})")
        bits = width(t)
        return self._each([(t, a), (t, b)], lambda x, y: _integer(name, bits, x, y))

    def fneg(self, t: str, a: str) -> str:
        return self._each([(t, a)], lambda x: f"{x} ^ {1 << width(t) - 1}")

    def icmp(self, cond: str, t: str, a: str, b: str) -> str:
        if cond in UNSIGNED:
            return self._each([(t, a), (t, b)], lambda x, y: f"{x} {UNSIGNED[cond]} {y}")
        half = 1 << width(t) - 1  # signed order is that of the patterns with the sign inverted
        return self._each([(t, a), (t, b)], lambda x, y: f"({x} ^ {half}) {SIGNED[cond]} ({y} ^ {half})")

    def fcmp(self, cond: str, t: str, a: str, b: str) -> str:
        return self._each([(t, a), (t, b)], lambda x, y: f"compare({t!r}, {cond!r}, {x}, {y})")

    def select(self, cond: str, t: str, a: str, b: str) -> str:
        return self._each([("i1", cond), (t, a), (t, b)], lambda c, x, y: f"{x} if {c} else {y}")

    def cast(self, op: str, source: str, a: str, target: str) -> str:
        if self.ty(source) == self.ty(target):
            return a
        return self._each([(source, a)], lambda x: _cast(op, source, x, target))

    def intrinsic(self, name: str, t: str, *args: str, ret: str | None = None, extra: str = "") -> str:
        return self._each([(t, a) for a in args], lambda *xs: _intrinsic(name, t, xs, ret or t))

    def opaque(self, t: str, x: str) -> str:
        return x

    def outlined(self, name: str, build: Callable[..., str], t: str, result: str, *values: str) -> str:
        return build(self, *(self.value(t, value) for value in values))

    def element_of(self, name: str, words: Words, index: str) -> str:
        return self._each([("i32", index)], lambda x: f"{words}[{x}]")

    def lanes_call(
        self, function: str, leading: list[str], result: str | None, *args: tuple[str, str], trailing: tuple[str, ...] = ()
    ) -> str:
        numbers = tuple(int(item.split()[1]) for item in leading)
        assert result is not None and all(item == "ptr null" for item in trailing)
        values = ", ".join(self.value(t, value) for t, value in args)
        return self.line(f"call({function!r}, {numbers}, {width(result)}, ({values},), {len(trailing)})")


def _integer(name: str, bits: int, x: str, y: str) -> str:
    full = (1 << bits) - 1
    if name in PLAIN:
        return f"{x} {PLAIN[name]} {y}"
    if name in WRAPPING:
        return f"({x} {WRAPPING[name]} {y}) & {full}"
    if name == "shl":
        return f"({x} << {y}) & {full} if {y} < {bits} else 0"
    if name == "lshr":
        return f"{x} >> {y} if {y} < {bits} else 0"
    if name == "ashr":
        return f"(signed({x}, {bits}) >> min({y}, {bits - 1})) & {full}"
    a, b = (f"signed({v}, {bits})" if name[0] == "s" else v for v in (x, y))
    if name in ("sdiv", "udiv"):
        return f"divide({a}, {b}) & {full}"
    assert name in ("srem", "urem"), name
    return f"({a} - divide({a}, {b}) * {b}) & {full}"


def _cast(op: str, source: str, x: str, target: str) -> str:
    full = (1 << width(target)) - 1
    if op in ("bitcast", "zext"):
        return x
    if op == "trunc":
        return f"{x} & {full}"
    if op == "sext":
        return f"signed({x}, {width(source)}) & {full}"
    if op in ("fptrunc", "fpext"):
        return f"convert({source!r}, {x}, {target!r})"
    if op in ("sitofp", "uitofp"):
        number = f"signed({x}, {width(source)})" if op == "sitofp" else x
        return f"from_integer({number}, {target!r})"
    assert op in ("fptosi", "fptoui"), op
    return _to_integer(source, x, target, op == "fptosi")


def _to_integer(source: str, x: str, target: str, is_signed: bool) -> str:
    low, high = _limits(width(target), is_signed)
    return f"to_integer({source!r}, {x}, {low}, {high}) & {(1 << width(target)) - 1}"


def _limits(bits: int, is_signed: bool) -> tuple[int, int]:
    return (-1 << bits - 1, (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)


def _intrinsic(name: str, t: str, xs: tuple[str, ...], result: str) -> str:
    if name in ("fptosi.sat", "fptoui.sat"):
        return _to_integer(t, xs[0], result, name == "fptosi.sat")
    if t in FLOAT_BITS:
        return _float_intrinsic(name, t, xs)
    bits, full = width(t), (1 << width(t)) - 1
    plain = {
        "ctpop": "({0}).bit_count()", "ctlz": "leading_zeros({0}, BITS)", "cttz": "trailing_zeros({0}, BITS)",
        "bitreverse": "reverse({0}, BITS)", "umin": "min({0}, {1})", "umax": "max({0}, {1})",
        "abs": "abs(signed({0}, BITS)) & FULL", "smin": "min(signed({0}, BITS), signed({1}, BITS)) & FULL",
        "smax": "max(signed({0}, BITS), signed({1}, BITS)) & FULL",
        "bswap": "int.from_bytes(({0}).to_bytes(BITS // 8, 'big'), 'little')",
        "fshl": "(({0} << BITS | {1}) << {2} % BITS >> BITS) & FULL", "fshr": "(({0} << BITS | {1}) >> {2} % BITS) & FULL",
    }  # fmt: skip
    if name in plain:
        return plain[name].replace("BITS", str(bits)).replace("FULL", str(full)).format(*xs)
    assert name.endswith((".sat",)), name
    low, high = _limits(bits, name[0] == "s")
    a, b = (f"signed({x}, {bits})" if name[0] == "s" else x for x in xs)
    return f"clamp({a} {'+' if name[1:4] == 'add' else '-'} {b}, {low}, {high}) & {full}"


def _float_intrinsic(name: str, t: str, xs: tuple[str, ...]) -> str:
    sign = 1 << width(t) - 1
    if name == "fabs":
        return f"{xs[0]} & {sign - 1}"
    if name == "copysign":
        return f"{xs[0]} & {sign - 1} | {xs[1]} & {sign}"
    if name in ROUNDINGS:
        return f"rounded({t!r}, {xs[0]}, {ROUNDINGS[name]})"
    assert name in ("fma", "sqrt"), name
    return f"{name}({t!r}, {', '.join(xs)})"
