"""What tensor cores make of a row, a column and an element of C, with integers of NumPy.

Written from F. A. Khattak and M. Mikaitis, "Accurate Models of NVIDIA Tensor Cores", and from what NVIDIA's assembler makes of
the instructions that have no tensor core. Nothing here knows ptxemu.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray
ZERO = -10_000  # the exponent of a zero
LEAST_EXPONENT = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "e3m2": -2, "e2m3": 0, "e2m1": 0,
                  "f32": -126}  # fmt: skip
SIGNIFICAND_BITS = 24


class TensorCore(NamedTuple):
    """Bits behind the point of aligned terms, how many products are added at once of 16 and of 32 bits, and the least exponent
    that they are aligned to for results of f32 and f16."""

    fraction: int
    halves: int
    words: int
    least: int
    least_half: int


AMPERE, HOPPER = TensorCore(24, 8, 4, -132, -20), TensorCore(25, 16, 8, -133, -21)
CORES = {
    "sm_70": TensorCore(23, 4, 0, -1000, -19), "sm_75": TensorCore(24, 8, 0, -132, -20), "sm_80": AMPERE, "sm_86": AMPERE,
    "sm_89": AMPERE, "sm_90": HOPPER, "sm_100": HOPPER, "sm_120": HOPPER,
}  # fmt: skip
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
FIRST = {"bf16": "sm_80", "tf32": "sm_80", "e4m3": "sm_89", "e5m2": "sm_89", "e3m2": "sm_120", "e2m3": "sm_120", "e2m1": "sm_120"}
"""What older architectures lack, they are taken to do as these."""


def _parts(x: Array, least: int) -> tuple[Array, Array]:
    """Integer significands of SIGNIFICAND_BITS bits and exponents of finite numbers; others are taken for zero."""
    finite = np.where(np.isfinite(x), x, 0.0)
    exponent = np.where(finite == 0, ZERO, np.maximum(np.frexp(finite)[1] - 1, least)).astype(np.int64)
    scale = np.where(finite == 0, 0, SIGNIFICAND_BITS - 1 - exponent)
    return np.ldexp(finite, scale).astype(np.int64), exponent


def _aligned(significand: Array, bits: int, exponent: Array, top: Array, fraction: int) -> Array:
    """Terms of so many bits behind the point as multiples of 2^(top - fraction), cut toward zero."""
    shift = np.clip(fraction - bits + exponent - top, -62, 8)
    magnitude = np.abs(significand)
    return np.sign(significand) * np.where(shift >= 0, magnitude << np.maximum(shift, 0), magnitude >> np.maximum(-shift, 0))


def block(a: Array, b: Array, c: Array, types: tuple[str, str, str], fraction: int, least: int, result: int) -> Array:
    """One addition of c and the products of a (m, l) and b, which is (l, n), or (m, l, n) if each row has a b of its own.

    ``types`` are those of a, b and the sum.
    """
    with np.errstate(all="ignore"):
        special = (a[:, :, None] * b + 0.0).sum(axis=1) + c
    (sa, ea), (sb, eb) = _parts(a, LEAST_EXPONENT[types[0]]), _parts(b, LEAST_EXPONENT[types[1]])
    sc, ec = _parts(c, LEAST_EXPONENT[types[2]])
    drop = SIGNIFICAND_BITS - 11  # no multiplicand has more than 11 bits
    products = (sa >> drop)[:, :, None] * (sb >> drop)
    exponents = np.where(products == 0, ZERO, ea[:, :, None] + eb)
    top = np.maximum(np.maximum(exponents.max(axis=1), ec), least)
    total = _aligned(products, 20, exponents, top[:, None], fraction).sum(axis=1)
    total = total + _aligned(sc, SIGNIFICAND_BITS - 1, ec, top, fraction)
    return np.where(np.isfinite(special), rounded(np.ldexp(total.astype(np.float64), top - fraction), types[2], result), special)


def rounded(x: Array, type: str, result: int) -> Array:
    """To f16 to nearest even, to f32 to so many bits behind the point, toward zero. A zero is positive."""
    with np.errstate(over="ignore"):
        if type == "f16":
            return x.astype(np.float16).astype(np.float64) + 0.0
        exponent = np.maximum(np.frexp(x)[1] - 1, -126)
        cut = np.ldexp(np.trunc(np.ldexp(x, result - exponent)), exponent - result)
        return cut.astype(np.float32).astype(np.float64) + 0.0


def product(a: Array, b: Array, c: Array, types: tuple[str, str, str, str], like: str, quads: bool) -> Array:
    """d as float64, of matrices as float64 whose types are those of a, b, c and d. Of a sparse a, b is (m, k, n)."""
    like = max(like, *(FIRST.get(type, like) for type in types[:2]), key=lambda name: int(name.removeprefix("sm_")))
    core, kind, whole = CORES[like], types[0], types[2:] == ("f16", "f16")
    sum_type = "f16" if whole else "f32"
    if quads and like not in ("sm_70", "sm_75"):
        return _chained(a, b, c, types[3])
    least = core.least_half if whole else core.least
    if kind in NARROW and like == "sm_89":
        return _blocks(a, b, c, 16, (*types[:2], sum_type), 13, -132, 13)
    if kind in NARROW and like == "sm_120":
        return _blocks(a, b, c, 32, (*types[:2], sum_type), 25, -133, 23)
    if kind in NARROW:
        first = np.arange(a.shape[1]) // 2 % 2 == 0
        total = np.zeros(c.shape)
        for part in (first, ~first):
            total = _blocks(a[:, part], b[..., part, :], total, core.halves, ("f16", "f16", sum_type), core.fraction, least, 23)
        with np.errstate(all="ignore"):
            return (c + total).astype(np.float16 if whole else np.float32).astype(np.float64)
    size = core.words if kind == "tf32" else core.halves
    return _blocks(a, b, c, size, (*types[:2], sum_type), core.fraction, least, 23)


def _blocks(
    a: Array, b: Array, c: Array, size: int, types: tuple[str, str, str], fraction: int, least: int, result: int
) -> Array:
    for start in range(0, a.shape[1], size):
        part = slice(start, start + size)
        c = block(a[:, part], b[..., part, :], c, types, fraction, least, result)
    return c


def _chained(a: Array, b: Array, c: Array, type: str) -> Array:
    """Multiplications and additions of f32, whose products are exact."""
    with np.errstate(all="ignore"):
        x = [np.float32(a[:, k, None]) * np.float32(b[None, k]) for k in range(4)]
        if type == "f16":
            return ((np.float32(c) + (x[0] + x[1])) + (x[2] + x[3])).astype(np.float64)
        return (np.float32(c) + (((0 + x[0] + x[1]) + x[2]) + x[3])).astype(np.float64)
