"""Integer division that never traps, exact on vectors: through floating-point division, or lane by lane.

The manual leaves division by zero unspecified: quotient and remainder are all ones, which is what the code made by NVIDIA's
assembler yields for every type.  The lowest integer divided by -1 is itself, remainder 0.
"""

from __future__ import annotations

from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.emit import Emitter, FunctionEmitter
from ptxemu.lower.core.float_bits import constant, sign_mask


def quotient(e: Emitter, kind: ScalarType, a: str, b: str) -> str:
    """a / b rounded toward zero."""
    if e.lanes and kind.bits == 64:
        return _lane_by_lane(e, kind, "quotient", a, b)
    if kind.bits == 32 and b in e.scalars:
        return _by_scalar(e, kind, a, e.scalars[b])
    zero, divisor = _divisor(e, kind, a, b)
    return e.select(zero, kind.llvm, constant(e, kind.llvm, -1), _divide(e, kind, a, divisor))


def remainder(e: Emitter, kind: ScalarType, a: str, b: str) -> str:
    """a - b * (a / b)."""
    if e.lanes and kind.bits == 64:
        return _lane_by_lane(e, kind, "remainder", a, b)
    t = kind.llvm
    if kind.bits == 32 and b in e.scalars:
        rest = e.bin("sub", t, a, e.bin("mul", t, _by_scalar(e, kind, a, e.scalars[b]), b))
        return e.bin("or", t, rest, _ones_if(e, t, _is(e, t, e.scalars[b], 0)))
    zero, divisor = _divisor(e, kind, a, b)
    rest = e.bin("sub", t, a, e.bin("mul", t, _divide(e, kind, a, divisor), divisor))
    return e.select(zero, t, constant(e, t, -1), rest)


def _divisor(e: Emitter, kind: ScalarType, a: str, b: str) -> tuple[str, str]:
    """Whether b is zero, and b with 1 in place of divisors that would trap."""
    t = kind.llvm
    zero = e.icmp("eq", t, b, constant(e, t, 0))
    replaced = zero
    if kind.is_signed:
        lowest = e.icmp("eq", t, a, constant(e, t, sign_mask(t)))
        overflow = e.bin("and", "i1", lowest, e.icmp("eq", t, b, constant(e, t, -1)))
        replaced = e.bin("or", "i1", zero, overflow)
    return zero, e.select(replaced, t, constant(e, t, 1), b)


def _divide(e: Emitter, kind: ScalarType, a: str, b: str) -> str:
    """Hosts have no vector integer division: up to 32 bits divide as floats.

    With n-bit operands and p > n + 1 significant bits the quotient, rounded once, never reaches the next integer: that is
    at least 1/b away, the rounding error at most (a/b) * 2**-p < 1/b.
    """
    t = kind.llvm
    if not e.lanes:
        return e.bin("sdiv" if kind.is_signed else "udiv", t, a, b)
    number = "double" if kind.bits == 32 else "float"
    sign = "s" if kind.is_signed else "u"
    a, b = (e.cast(sign + "itofp", t, x, number) for x in (a, b))
    ratio = e.bin("fdiv", number, a, b)
    if kind.bits == 32:
        return e.cast(f"fpto{sign}i", number, ratio, t)
    return e.cast("trunc", "i32", e.cast("fptosi", number, ratio, "i32"), t)


def _by_scalar(e: Emitter, kind: ScalarType, a: str, b: str) -> str:
    """a / b of 32 bits, where all lanes have one divisor: products with its reciprocal, of which one is made.

    Half a unit farther from zero, a quotient is half of 1/b from any integer at least, and the product of doubles is
    nearer to it than 2**32 / b * 2**-52. Where b is -1, the quotient is -a, also of the lowest integer.
    """
    t, sign = kind.llvm, "s" if kind.is_signed else "u"
    zero = _is(e, t, b, 0)
    minus = _is(e, t, b, -1) if kind.is_signed else "false"
    divisor = e.inst(f"select i1 {e.inst(f'or i1 {zero}, {minus}')}, {t} 1, {t} {b}")
    reciprocal = e.inst(f"fdiv double 1.0, {e.inst(f'{sign}itofp {t} {divisor} to double')}")
    number, half = e.cast(f"{sign}itofp", t, a, "double"), e.f64(0.5)
    farther = e.bin("fadd", "double", number, e.intrinsic("copysign", "double", half, number) if kind.is_signed else half)
    quotient = e.cast(f"fpto{sign}i", "double", e.bin("fmul", "double", farther, e.of_all("double", reciprocal)), t)
    if kind.is_signed:  # a / 1 becomes -a
        negative = _ones_if(e, t, minus)
        quotient = e.bin("sub", t, e.bin("xor", t, quotient, negative), negative)
    return e.bin("or", t, quotient, _ones_if(e, t, zero))


def _ones_if(e: Emitter, t: str, flag: str) -> str:
    """All ones in every lane if a scalar i1 is set, else zeros: LLVM makes branches of vectors that one i1 chooses."""
    return e.of_all(t, e.inst(f"sext i1 {flag} to {t}"))


def _is(e: Emitter, t: str, scalar: str, value: int) -> str:
    """i1: a scalar has a value."""
    return e.inst(f"icmp eq {t} {scalar}, {value}")


def _lane_by_lane(e: Emitter, kind: ScalarType, name: str, a: str, b: str) -> str:
    """64-bit division in a loop, out of line: as one operation on vectors LLVM takes 40 ms for it."""
    t, function = kind.llvm, f"lanes.{name}.{kind.name}.{e.lanes}"
    body = FunctionEmitter(0)
    result = (quotient if name == "quotient" else remainder)(body, kind, "%a", "%b")
    lines = "\n".join(body.lines)
    e.declare(
        function,
        f"""define internal void @{function}(ptr %results, ptr %dividends, ptr %divisors) noinline nounwind {{
entry:
  br label %loop
loop:
  %lane = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a.at = getelementptr {t}, ptr %dividends, i64 %lane
  %b.at = getelementptr {t}, ptr %divisors, i64 %lane
  %a = load {t}, ptr %a.at, align 8
  %b = load {t}, ptr %b.at, align 8
{lines}
  %result.at = getelementptr {t}, ptr %results, i64 %lane
  store {t} {result}, ptr %result.at, align 8
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, {e.lanes}
  br i1 %more, label %loop, label %done
done:
  ret void
}}""",
    )
    return e.lanes_call(function, [], t, (t, a), (t, b))
