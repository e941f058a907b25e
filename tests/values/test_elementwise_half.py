"""f16 and bf16 arithmetic against exact rational arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.elementwise_oracle import FORMATS, Format, arithmetic, extreme, float_edges, pairs, random_bits
from tests.values.elementwise_harness import check, run

COUNTS = {"add": 2, "sub": 2, "mul": 2, "fma": 3}
SPELLING = {"add": "add", "sub": "sub.rn", "mul": "mul", "fma": "fma.rn"}


def inputs(f: Format, count: int) -> list[np.ndarray]:
    edges = float_edges(f)
    if count == 2:
        return list(pairs(edges, random_bits(16, 2000)))
    few = edges[:: len(edges) // 14]
    mesh = [x.ravel() for x in np.meshgrid(few, few, few)]
    extra = random_bits(16, 2000)
    return [np.concatenate([m, np.roll(extra, 91 * i)]) for i, m in enumerate(mesh)]


def doubled(text: str, kind: str) -> str:
    return text.replace(f".{kind}", f".{kind}x2")


def check_both(text: str, kind: str, want: list[int], *arrays: np.ndarray) -> None:
    """Check the scalar form and the packed one, which must agree half by half."""
    check(text, want, *arrays)
    even = len(want) // 2 * 2
    pair = np.array(want[:even], np.uint16).view(np.uint32)
    check(doubled(text, kind), [int(x) for x in pair], *(x[:even].copy().view(np.uint32) for x in arrays))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", COUNTS)
def test_arithmetic(name: str, kind: str) -> None:
    f = FORMATS[kind]
    arrays = inputs(f, COUNTS[name])
    rows = [tuple(map(int, xs)) for xs in zip(*arrays, strict=True)]
    options = [(False, False), (True, False), (False, True), (True, True)] if kind == "f16" else [(False, False)]
    for ftz, sat in options:
        text = SPELLING[name] + ".ftz" * ftz + ".sat" * sat + f".{kind}"
        check_both(text, kind, [arithmetic(name, f, xs, "rn", ftz, sat) for xs in rows], *arrays)
    if name == "fma":
        results = [arithmetic(name, f, xs) for xs in rows]
        check_both(f"fma.rn.relu.{kind}", kind, [0 if f.is_negative(x) else x for x in results], *arrays)


@given(st.sampled_from(["f16", "bf16"]), *[st.integers(0, 2**16 - 1)] * 3)
@settings(max_examples=1000, deadline=None)
def test_any_fma(kind: str, a: int, b: int, c: int) -> None:
    arrays = [np.array([x], np.uint16) for x in (a, b, c)]
    check(f"fma.rn.{kind}", [arithmetic("fma", FORMATS[kind], (a, b, c))], *arrays)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_signs(kind: str) -> None:
    """NVIDIA's assembler makes additions of -0 of them, whose NaN is one only."""
    f = FORMATS[kind]

    def signed(x: int, result: int) -> int:
        return f.nan if f.is_nan(x) else result

    a = np.arange(65536, dtype=np.uint16)
    for ftz in ("", ".ftz")[: 2 if kind == "f16" else 1]:
        flushed = [f.flush(int(x)) if ftz else int(x) for x in a]
        check_both(f"abs{ftz}.{kind}", kind, [signed(x, x & ~f.sign) for x in flushed], a)
        check_both(f"neg{ftz}.{kind}", kind, [signed(x, x ^ f.sign) for x in flushed], a)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_minimum_and_maximum(name: str, kind: str) -> None:
    f = FORMATS[kind]
    a, b = inputs(f, 2)
    rows = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    for ftz in ("", ".ftz")[: 2 if kind == "f16" else 1]:
        seen = [tuple(f.flush(x) for x in xs) if ftz else xs for xs in rows]
        for nan in ("", ".NaN"):
            check_both(f"{name}{ftz}{nan}.{kind}", kind, [extreme(name, f, *xs, nan=bool(nan)) for xs in seen], a, b)
            want = []
            for x, y in seen:
                magnitude = extreme(name, f, x & ~f.sign, y & ~f.sign, bool(nan))
                want.append(magnitude if f.is_nan(magnitude) else magnitude | (x ^ y) & f.sign)
            check_both(f"{name}{ftz}{nan}.xorsign.abs.{kind}", kind, want, a, b)


FUNCTIONS = {
    # text: format, function, relative bound, absolute bound (manual)
    "ex2.approx.f16": ("f16", lambda x: 2.0**x, 2**-9.9, 0.0),
    "ex2.approx.ftz.bf16": ("bf16", lambda x: 2.0**x, 2.0**-7, 0.0),
    "tanh.approx.f16": ("f16", math.tanh, 0.0, 2**-10.987),
    "tanh.approx.bf16": ("bf16", math.tanh, 0.0, 2.0**-8),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions_on_every_input(text: str) -> None:
    kind, function, relative, absolute = FUNCTIONS[text]
    f = FORMATS[kind]
    x = np.arange(65536, dtype=np.uint16)
    got = run(text, x)
    np.testing.assert_array_equal(run(doubled(text, kind), x.view(np.uint32)).view(np.uint16), got)
    quantum = float(f.value(1))
    overflow = float(f.value(f.infinity - 1))
    for a, r in zip(map(int, x), map(int, got), strict=True):
        if f.is_nan(a):
            assert r == f.nan
        elif f.is_infinite(a):
            assert r == (f.infinity if a == f.infinity else 0) if "ex2" in text else r == f.one | a & f.sign
        elif "ftz" in text and f.flush(a) != a:
            assert r == f.one
        else:
            number = f.value(a)
            exact = function(float(number)) if abs(number) < 300 else None
            if exact is None or exact > overflow:
                limit = f.infinity if "ex2" in text else f.one
                assert r in ((limit, limit - 1) if number > 0 else (0,)) if "ex2" in text else r == limit | a & f.sign
            elif not ("ftz" in text and exact < 2.0**-126):
                error = abs(float(f.value(r)) - exact)
                assert error <= max(relative * exact, absolute, quantum / 2), (hex(a), hex(r), exact)
