"""Approximate instructions: how far a result may lie from the exact value, and the special values, which are exact.

The names are those that ``tests/isa`` expressions use, beside the ones of :mod:`tests.isa.oracles`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath

from tests.isa.oracles import Check
from tests.support.elementwise_oracle import F64, FORMATS, Format, arithmetic

mpmath.mp.prec = 100
FUNCTIONS: dict[str, Callable[[mpmath.mpf], mpmath.mpf]] = {
    "rcp": lambda x: 1 / x, "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x), "sin": mpmath.sin,
    "cos": mpmath.cos, "lg2": lambda x: mpmath.log(x, 2), "tanh": mpmath.tanh,
    "ex2": lambda x: mpmath.mpf(2) ** max(-9999, min(9999, x)),
}  # fmt: skip


def approximately(name: str, type: str, mods: Sequence[str], x: int, relative: float, absolute: float = 0.0) -> Check | int:
    """A function within an error, at least one unit in the last place of a subnormal result; special values exactly."""
    f = FORMATS[type]
    x = f.flush(x) if "ftz" in mods and not f.is_nan(x) else x
    special = _special(name, f, x)
    if special is not None:
        return special
    q = f.value(x)
    exact = FUNCTIONS[name](mpmath.mpf(q.numerator) / q.denominator)
    return near(type, exact, relative, absolute, "ftz" in mods)


def coarse(name: str, x: int) -> Check | int:
    """rcp and rsqrt.approx.ftz.f64: from the upper word only, to within 2**-20; the lower word of the result is zero."""
    x &= ~0xFFFFFFFF
    sign = x & F64.sign
    if F64.is_nan(x):
        return 0x7FFFFFFF00000000
    if F64.flush(x) == sign:
        return F64.infinity | sign
    if name == "rsqrt" and sign:
        return 0x7FFFFFFF00000000
    if F64.is_infinite(x):
        return sign
    exact = FUNCTIONS[name](_mp(F64.value(x)))
    if abs(exact) < mpmath.mpf(2) ** -1022:
        return sign
    check = near("f64", exact, 2.0**-20)
    return lambda got: got & 0xFFFFFFFF == 0 and check(got)


def _special(name: str, f: Format, x: int) -> int | None:
    sign = x & f.sign
    if f.is_nan(x):
        return f.nan
    infinite, zero, minus_one = f.is_infinite(x), f.is_zero(x), f.one | f.sign
    if name in ("sqrt", "rsqrt", "lg2") and sign and not zero:
        return f.nan
    if infinite:
        end = {"rcp": sign, "rsqrt": 0, "ex2": 0 if sign else x, "tanh": minus_one if sign else f.one}
        return f.nan if name in ("sin", "cos") else end.get(name, x)
    if zero:
        return {"rcp": f.infinity | sign, "rsqrt": f.infinity | sign, "lg2": f.infinity | f.sign, "cos": f.one,
                "ex2": f.one}.get(name, x)  # fmt: skip
    return None


def near(type: str, exact: mpmath.mpf, relative: float, absolute: float = 0.0, ftz: bool = False) -> Check:
    f = FORMATS[type]
    largest, smallest = f.value(f.infinity - 1), f.value(1 << f.mantissa)
    error = max(abs(exact) * relative, absolute, _mp(f.value(1)))

    def right(got: int) -> bool:
        if f.is_nan(got):
            return False
        if abs(exact) > _mp(largest) - error and f.is_infinite(got):
            return f.is_negative(got) == (exact < 0)
        if ftz and abs(exact) < _mp(smallest) + error and f.is_zero(got):
            return True
        return not f.is_infinite(got) and abs(_mp(f.value(got)) - exact) <= error

    right.__doc__ = f"{mpmath.nstr(exact, 12)} within {mpmath.nstr(error, 3)}"
    return right


def _mp(q: Fraction) -> mpmath.mpf:
    return mpmath.mpf(q.numerator) / q.denominator


def divide_approx(a: int, b: int, type: str, mods: Sequence[str]) -> Check | int:
    """div.approx and div.full: within 2 ulp; for divisors beyond 2**126 div.approx may multiply by zero."""
    f = FORMATS[type]
    if "ftz" in mods:
        a, b = (x if f.is_nan(x) else f.flush(x) for x in (a, b))
    exact = arithmetic("div", f, (a, b))
    huge = "approx" in mods and 254 << 23 <= b & ~f.sign < f.infinity
    if huge and f.is_infinite(a):
        return f.nan
    if any(test(x) for x in (a, b) for test in (f.is_nan, f.is_infinite, f.is_zero)):
        return exact
    if huge:
        return lambda got: f.is_zero(got) or f.is_nan(got) or _close(f, a, b, got, "ftz" in mods)
    return lambda got: _close(f, a, b, got, "ftz" in mods)


def _close(f: Format, a: int, b: int, got: int, ftz: bool) -> bool:
    q = f.value(a) / f.value(b)
    return near("f32", _mp(q), 2.0**-22, 0.0, ftz)(got)
