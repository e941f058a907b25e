"""Emission of LLVM IR text: the width-agnostic builder that elementwise lowerings use.

An elementwise lowering is written once and emits either scalar code (all sources uniform) or warp-wide code:
``e.lanes`` is 0 for scalars, else the number of lanes.  Values are strings: SSA names or constants.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from ptxemu.ir.numerics import numerics_of
from ptxemu.ir.ops import Op
from ptxemu.lower.core.target import Target

# LLVM aborts the process on an intrinsic it cannot select: only these may be emitted.
# (name stem without type suffix); every one is selectable for x86-64-v2, x86-64-v3/v4 and aarch64 at every width used.
ALLOWED_INTRINSICS = {
    "fma",
    "sqrt",
    "fabs",
    "copysign",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "roundeven",
    "minnum",
    "maxnum",
    "minimum",
    "maximum",
    "abs",
    "smin",
    "smax",
    "umin",
    "umax",
    "ctpop",
    "ctlz",
    "cttz",
    "bitreverse",
    "bswap",
    "arithmetic.fence",
    "fshl",
    "fshr",
    "sadd.sat",
    "ssub.sat",
    "uadd.sat",
    "usub.sat",
    "fptosi.sat",
    "fptoui.sat",
    "uadd.with.overflow",
    "usub.with.overflow",
    "vector.reduce.or",
    "vector.reduce.and",
    "vector.reduce.add",
    "vector.reduce.smin",
    "vector.reduce.smax",
    "vector.reduce.umin",
    "vector.reduce.umax",
    "vector.reduce.xor",
    "masked.load",
    "masked.store",
    "masked.gather",
    "masked.scatter",
    "is.fpclass",
    "expect",
}


Words = tuple[int, ...]

# LLVM keeps a value of type bfloat in registers of f32, and some processors lose subnormals on the way back: no instruction
# of ours computes in that type, so it is written as what it holds.
SPELLED = {"bfloat": "i16"}


class Emitter(ABC):
    """Appends LLVM instructions to ``lines``; names are ``%v<n>``, unique within the function."""

    numerics = numerics_of("", ())
    target = Target(frozenset())
    raw_nan = False  # the caller makes f32 NaNs canonical where their bits are observed (analysis/nans.py)
    quiet: Sequence[bool] = ()  # which sources of the op are f32 that are no signaling NaNs, if that is known
    daz = False  # the processor reads and makes no subnormals, which the caller sees to where bits are observed (denormals.py)

    def __init__(self, lanes: int, lines: list[str] | None = None) -> None:
        self.lanes = lanes
        self.lines: list[str] = [] if lines is None else lines
        self.declarations: dict[str, str] = {}
        self.facts: set[tuple[str, str]] = set()  # what is known of values: ("flushed", "%v3")
        self.scalars: dict[str, str] = {}  # of vectors that have one scalar in every lane
        self.counter = 0

    # -- names and types

    def fresh(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def ty(self, scalar: str) -> str:
        """The LLVM type of values of LLVM scalar type ``scalar``: itself, or a vector of it."""
        spelled = SPELLED.get(scalar, scalar)
        return f"<{self.lanes} x {spelled}>" if self.lanes else spelled

    def splat(self, scalar: str, literal: str) -> str:
        """A constant of type ``ty(scalar)`` with every lane equal to an LLVM scalar literal."""
        return f"splat ({SPELLED.get(scalar, scalar)} {literal})" if self.lanes else literal

    def of_all(self, scalar: str, value: str) -> str:
        """A value of type ``ty(scalar)`` with every lane equal to an LLVM scalar."""
        if not self.lanes:
            return value
        whole = self.ty(scalar)
        first = self.inst(f"insertelement {whole} poison, {SPELLED.get(scalar, scalar)} {value}, i64 0")
        found = self.inst(f"shufflevector {whole} {first}, {whole} poison, <{self.lanes} x i32> zeroinitializer")
        self.scalars[found] = value
        return found

    def int(self, bits: int, value: int) -> str:
        """An integer constant of ``bits`` bits in every lane."""
        return self.splat(f"i{bits}", str(value) if bits > 1 else ("true" if value & 1 else "false"))

    def f32(self, value: float) -> str:
        """A float constant (rounded to f32)."""
        return self.splat("float", double_literal(struct.unpack("<f", struct.pack("<f", value))[0]))

    def f64(self, value: float) -> str:
        return self.splat("double", double_literal(value))

    # -- instructions (``t`` is always an LLVM scalar type such as i32, float, i1)

    def inst(self, text: str) -> str:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def stmt(self, text: str) -> None:
        self.lines.append("  " + text)

    def bin(self, op: str, t: str, a: str, b: str) -> str:
        """``op`` is an LLVM binary instruction with flags if any: ``add``, ``fmul``, ``shl``, ``udiv`` ..."""
        return self.inst(f"{op} {self.ty(t)} {a}, {b}")

    def fneg(self, t: str, a: str) -> str:
        return self.inst(f"fneg {self.ty(t)} {a}")

    def conjunction(self, flags: Sequence[str]) -> str:
        """i1: all of some; "" if there is none."""
        return reduce(lambda one, other: self.bin("and", "i1", one, other), flags) if flags else ""

    def icmp(self, cond: str, t: str, a: str, b: str) -> str:
        return self.inst(f"icmp {cond} {self.ty(t)} {a}, {b}")

    def fcmp(self, cond: str, t: str, a: str, b: str) -> str:
        return self.inst(f"fcmp {cond} {self.ty(t)} {a}, {b}")

    def select(self, cond: str, t: str, a: str, b: str) -> str:
        return self.inst(f"select {self.ty('i1')} {cond}, {self.ty(t)} {a}, {self.ty(t)} {b}")

    def cast(self, op: str, source: str, a: str, target: str) -> str:
        """``op`` is trunc zext sext fptrunc fpext fptosi fptoui sitofp uitofp bitcast; no-op if the types are equal."""
        if self.ty(source) == self.ty(target):
            return a
        return self.inst(f"{op} {self.ty(source)} {a} to {self.ty(target)}")

    def intrinsic(self, name: str, t: str, *args: str, ret: str | None = None, extra: str = "") -> str:
        """Call ``llvm.<name>`` overloaded on ``ty(t)`` with arguments of that type.

        ``ret``: scalar result type where it differs (then the name is overloaded on both); ``extra``: constant
        trailing arguments such as ``i1 false``.
        """
        if name not in ALLOWED_INTRINSICS:
            raise AssertionError(f"intrinsic llvm.{name} is not on the allow-list")
        result = self.ty(ret or t)
        suffix = f".{mangle(self.ty(ret))}.{mangle(self.ty(t))}" if ret else f".{mangle(self.ty(t))}"
        full = f"llvm.{name}{suffix}"
        params = [self.ty(t)] * len(args) + ([extra.split()[0]] if extra else [])
        self.declare(full, f"declare {result} @{full}({', '.join(params)})")
        operands = [f"{self.ty(t)} {a}" for a in args] + ([extra] if extra else [])
        return self.inst(f"call {result} @{full}({', '.join(operands)})")

    def opaque(self, t: str, x: str) -> str:
        """A float of which LLVM knows nothing."""
        return self.intrinsic("arithmetic.fence", t, x)

    def declare(self, name: str, text: str) -> None:
        """Add a declaration, or the definition of an internal function, to the module if there is none of that name."""
        self.declarations.setdefault(name, text)

    def lanes_call(
        self, function: str, leading: list[str], result: str | None, *args: tuple[str, str], trailing: tuple[str, ...] = ()
    ) -> str:
        """Call the C function ``void function(leading..., [ptr d,] ptr a, ptr b ...)`` on values kept in memory.

        For out-of-line work that is rare: stores each (LLVM scalar type, value) of ``args``, calls, and
        loads the result of scalar type ``result``.  Works at both widths; C is told the count by ``leading``.
        ``leading`` and ``trailing`` are typed operands such as ``i32 4`` and ``ptr null``.
        """
        slots = []
        for t, value in args:
            slot = self.temporary(self.ty(t))
            self.stmt(f"store {self.ty(t)} {value}, ptr {slot}, align 64")
            slots.append(slot)
        out = self.temporary(self.ty(result)) if result else None
        pointers = ([f"ptr {out}"] if out else []) + [f"ptr {slot}" for slot in slots] + list(trailing)
        types = [part.split()[0] for part in leading + pointers]
        self.declare(function, f"declare void @{function}({', '.join(types)})")
        self.stmt(f"call void @{function}({', '.join(leading + pointers)})")
        return self.inst(f"load {self.ty(result)}, ptr {out}, align 64") if result and out else ""

    def outlined(self, name: str, build: Callable[..., str], t: str, result: str, *values: str) -> str:
        """``build`` of values of scalar type ``t``, as a function of its own, which the module has once for each width."""
        function, width = f"{name}.{self.lanes}", self.ty(result)
        names = [f"%x{i}" for i in range(len(values))]
        if function not in self.declarations:
            body = FunctionEmitter(self.lanes)
            body.target, body.declarations = self.target, self.declarations
            value = build(body, *names)
            lines = "\n".join([*body.lines, f"  ret {width} {value}"])
            self.declare(
                function, f"define internal {width} @{function}({self._typed(t, names)}) noinline nounwind {{\n{lines}\n}}"
            )
        return self.inst(f"call {width} @{function}({self._typed(t, values)})")

    def _typed(self, t: str, values: Iterable[str]) -> str:
        return ", ".join(f"{self.ty(t)} {value}" for value in values)

    def element_of(self, name: str, words: Words, index: str) -> str:
        """The element of a constant table of i32 at an i32, which must be inside."""
        table = f"[{len(words)} x i32]"
        self.declare(name, f"@{name} = internal constant {table} [{', '.join(f'i32 {word}' for word in words)}], align 64")
        place = f"getelementptr {table}, ptr @{name}, i64 0, {self.ty('i32')} {index}"
        if not self.lanes:
            return self.inst(f"load i32, ptr {self.inst(place)}, align 4")
        words_type, pointers, mask = self.ty("i32"), self.ty("ptr"), self.ty("i1")
        gather = f"llvm.masked.gather.{mangle(words_type)}.{mangle(pointers)}"
        self.declare(gather, f"declare {words_type} @{gather}({pointers}, {mask}, {words_type})")
        return self.inst(
            f"call {words_type} @{gather}({pointers} align 4 {self.inst(place)}, {mask} splat (i1 true), {words_type} poison)"
        )

    @abstractmethod
    def temporary(self, type: str) -> str:
        """The address of memory of an LLVM type, 64-byte aligned, that is the op's own until it ends."""


class FunctionEmitter(Emitter):
    """The lines of a function of its own, which has no memory for temporaries."""

    def temporary(self, type: str) -> str:
        raise NotImplementedError


def mangle(type: str) -> str:
    """LLVM's name mangling of a scalar or vector type: ``<32 x float>`` -> ``v32f32``."""
    names = {"float": "f32", "double": "f64", "half": "f16", "ptr": "p0"}
    if type.startswith("<"):
        count, _, element = type[1:-1].split(" ")
        return f"v{count}{names.get(element, element)}"
    return names.get(type, type)


def double_literal(value: float) -> str:
    """LLVM spells float and double constants as the 64-bit hex of the double."""
    return "0x" + struct.pack(">d", value).hex().upper()


# ---------------------------------------------------------------- the registry of elementwise lowerings

Elementwise = Callable[..., "str | tuple[str, ...]"]
ELEMENTWISE: dict[str, Elementwise] = {}
SIZES: dict[str, int] = {}  # of lowerings of all kinds that say so


def elementwise(*names: str, size: int | None = None) -> Callable[[Elementwise], Elementwise]:
    """Register ``fn(e: Emitter, op: Op, *sources: str) -> result(s)`` as the lowering of the rows with these names.

    Each source has the LLVM type of its ``op.src_types[i]`` (a ``!p`` is already inverted, immediates are constants);
    each result must have the LLVM type of ``op.dst_types[i]``.  The function must be pure and must not trap for any
    operand values (inactive lanes hold garbage).  ``size``: the machine instructions that it becomes on 32 lanes, if many.
    """

    def add(fn: Elementwise) -> Elementwise:
        for name in names:
            assert name not in ELEMENTWISE, name
            ELEMENTWISE[name] = fn
            if size is not None:
                SIZES[name] = size
        return fn

    return add


def source_type(op: Op, index: int) -> str:
    """LLVM scalar type of source ``index``."""
    kind = op.src_types[index]
    assert kind is not None
    return kind.llvm
