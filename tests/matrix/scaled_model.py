"""mma with .block_scale in exact arithmetic, as microsoft/MMA-Sim (MIT) has it.

Scaled products (k 32), or sums of 16 products that are scaled (k 64), are aligned with C.  Matrices are patterns, factors those
of a row or column.  Nothing here knows ptxemu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
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


def exponent(value: float, least: int) -> int:
    return max(math.frexp(value)[1] - 1, least) if value else NOWHERE


def truncated(terms: Sequence[tuple[Fraction, int]], fraction: int) -> float:
    """A sum of numbers, each cut to so many bits behind the point of the largest exponent."""
    unit = Fraction(2) ** (max(-133, *(top for _, top in terms)) - fraction)
    return float(sum(math.trunc(value / unit) for value, _ in terms) * unit)


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
    least = LEAST_EXPONENT[form.a], LEAST_EXPONENT[form.b]
    terms = [(Fraction(c), exponent(c, -126))]
    if form.k == 32:
        scale = int(math.log2(fa[0])) + int(math.log2(fb[0]))
        for x, y in zip(a, b, strict=True):
            tops = exponent(x, least[0]), exponent(y, least[1])
            terms.append((Fraction(x) * Fraction(y) * Fraction(2) ** scale, sum(tops) + scale))
        return truncated(terms, 25)
    for first in range(0, form.k, GROUP):
        part = slice(first, first + GROUP)
        x, y = fa[first // each], fb[first // each]
        floor = -6 if form.factor == "ue4m3" else -127
        exact = sum(Fraction(i) * Fraction(j) for i, j in zip(a[part], b[part], strict=True))
        tops = [exponent(factor, floor) if factor else -126 for factor in (x, y)]
        terms.append((exact * Fraction(x) * Fraction(y), sum(tops)))
    return truncated(terms, 35)


def product(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray) -> np.ndarray:
    """Patterns of D from those of A, B with a column in each row, C, and factors of their rows."""
    left, right, start = model.values(a, form.a), model.values(b, form.b), model.values(c, "f32")
    rows, columns = factor_values(fa, form.factor), factor_values(fb, form.factor)
    result = np.zeros(c.shape, np.int64)
    for i, j in np.ndindex(*c.shape):
        found = np.array(element(form, left[i], right[j], float(start[i, j]), rows[i], columns[j]))
        finite = np.isfinite(found)
        with np.errstate(invalid="ignore"):
            bits = int((rounded(found, "f32", 23) if finite else found).astype(np.float32).view(np.uint32))
        result[i, j] = NAN if np.isnan(found) else bits
    return result
