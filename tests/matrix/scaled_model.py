"""mma with .block_scale in exact arithmetic, as microsoft/MMA-Sim (MIT) has it.

Scaled products (k 32), or sums of 16 products that are scaled (k 64), are aligned with C.  Matrices are patterns, factors those
of a row or column.  Nothing here knows ptxemu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from tests.support import matrix_model as model
from tests.support.tensor_core_model import LEAST_EXPONENT, rounded

GROUP = 16
NOWHERE = -4096  # the exponent of a zero
NAN = 0x7FFFFFFF
FACTORS = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}


class Form(NamedTuple):
    """Types of A, B and factors, the kind, how many factors a row has, and whether the instruction says that."""

    kind: str
    a: str
    b: str
    factor: str
    factors: int
    said: bool

    @property
    def k(self) -> int:
        return 32 if self.kind == "mxf8f6f4" else 64

    @property
    def name(self) -> str:
        said = f".scale_vec::{self.factors}X" if self.said else ""
        types = f"f32.{self.a}.{self.b}.f32.{self.factor}"
        return f"mma.sync.aligned.m16n8k{self.k}.row.col.kind::{self.kind}.block_scale{said}.{types}"


class Term(NamedTuple):
    """significand * 2^exponent, and the exponent of its largest bit, or of that which it is taken for."""

    significand: int
    exponent: int
    top: int


def term(value: float, least: int, bits: int) -> Term:
    """A number that has no smaller parts than 2^-bits."""
    return Term(int(math.ldexp(value, bits)), -bits, max(math.frexp(value)[1] - 1, least) if value else NOWHERE)


def truncated(terms: Sequence[Term], fraction: int) -> float:
    """A sum of numbers, each cut to so many bits behind the point of the largest exponent."""
    unit, total = max(-133, *(one.top for one in terms)) - fraction, 0
    for significand, exponent, _ in terms:
        shift = exponent - unit
        size = abs(significand) << shift if shift >= 0 else abs(significand) >> -shift
        total += size if significand > 0 else -size
    return math.ldexp(total, unit)


def factor_values(patterns: np.ndarray, type: str) -> np.ndarray:
    found = patterns.astype(np.uint8).view(FACTORS[type]).astype(np.float64)
    return np.abs(found) if type == "ue4m3" else found


def element(form: Form, a: np.ndarray, b: np.ndarray, c: float, fa: np.ndarray, fb: np.ndarray) -> float:
    """Of values of a row, a column and C, and their factors."""
    each = form.k // form.factors
    with np.errstate(all="ignore"):
        special = float((a * b).sum() + c + 0 * (fa.sum() + fb.sum()))
    if not math.isfinite(special):
        return special
    left, right = ([term(x, LEAST_EXPONENT[type], 16) for x in line] for line, type in ((a, form.a), (b, form.b)))
    pairs, terms = list(zip(left, right, strict=True)), [term(c, -126, 149)]
    if form.k == 32:
        scale = int(math.log2(fa[0])) + int(math.log2(fb[0]))
        terms += [Term(x.significand * y.significand, scale - 32, x.top + y.top + scale) for x, y in pairs]
        return truncated(terms, 25)
    for first in range(0, form.k, GROUP):
        total = sum(x.significand * y.significand for x, y in pairs[first : first + GROUP])
        factors = [factor_of(float(factor[first // each]), form.factor) for factor in (fa, fb)]
        significand = total * factors[0].significand * factors[1].significand
        terms.append(Term(significand, sum(one.exponent for one in factors) - 32, sum(one.top for one in factors)))
    return truncated(terms, 35)


def factor_of(value: float, type: str) -> Term:
    if type == "ue8m0":
        power = int(math.log2(value))
        return Term(1, power, power)
    return term(value, -6, 9) if value else Term(0, 0, -126)


def product(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, sign: int = 1) -> np.ndarray:
    """Patterns of D from those of A, B with a column in each row, C, and factors of their rows; the sign is that of products."""
    left, right, start = model.values(a, form.a), model.values(b, form.b), model.values(c, "f32")
    rows, columns = factor_values(fa, form.factor), factor_values(fb, form.factor)
    result = np.zeros(c.shape, np.int64)
    for i, j in np.ndindex(*c.shape):
        found = np.array(element(form, sign * left[i], right[j], float(start[i, j]), rows[i], columns[j]))
        finite = np.isfinite(found)
        with np.errstate(invalid="ignore"):
            bits = int((rounded(found, "f32", 23) if finite else found).astype(np.float32).view(np.uint32))
        result[i, j] = NAN if np.isnan(found) else bits
    return result
