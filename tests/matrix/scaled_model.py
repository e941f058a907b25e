"""mma with .block_scale in exact arithmetic, as microsoft/MMA-Sim (MIT) has it.

Scaled products (k 32), or sums of 16 products that are scaled (k 64 and 96), are aligned with C.  Matrices are patterns, factors
those of a row or column.  Nothing here knows ptxemu.
"""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np

from tests.support import matrix_model as model
from tests.support.tensor_core_model import LEAST_EXPONENT, rounded

GROUP = 16
NOWHERE = -4096  # the exponent of a zero
LEAST = -133  # the least exponent that terms are aligned to
NAN = 0x7FFFFFFF
FACTORS = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}


class Form(NamedTuple):
    """Types of A, B and factors, the kind, how many factors a row has, whether the instruction says that, and whether k is 96."""

    kind: str
    a: str
    b: str
    factor: str
    factors: int
    said: bool
    longest: bool = False

    @property
    def k(self) -> int:
        return 32 if self.kind == "mxf8f6f4" else 96 if self.longest else 64

    @property
    def name(self) -> str:
        said = f".scale_vec::{self.factors}X" if self.said else ""
        types = f"f32.{self.a}.{self.b}.f32.{self.factor}"
        return f"mma.sync.aligned.m16n8k{self.k}.row.col.kind::{self.kind}.block_scale{said}.{types}"


class Terms(NamedTuple):
    """significand * 2^exponent, and the exponents of the largest bits, or of those that they are taken for."""

    significand: np.ndarray
    exponent: np.ndarray
    top: np.ndarray


def terms(values: np.ndarray, least: int, bits: int) -> Terms:
    """Finite numbers that have no more than so many bits behind their first."""
    top = np.where(values == 0, NOWHERE, np.maximum(np.frexp(values)[1] - 1, least))
    exponent = np.where(values == 0, 0, top - bits)
    return Terms(np.ldexp(values, -exponent).astype(np.int64), exponent, top)


def truncated(all: list[Terms], fraction: int) -> np.ndarray:
    """Sums along the last axis of all, each number cut to so many bits behind the point of the largest exponent."""
    significand, exponent, top = (np.concatenate(parts, axis=-1) for parts in zip(*all, strict=True))
    unit = np.maximum(top.max(axis=-1), LEAST) - fraction
    shift = np.clip(exponent - unit[..., None], -62, 62)
    size = np.abs(significand)
    size = np.where(shift >= 0, size << np.maximum(shift, 0), size >> np.maximum(-shift, 0))
    return np.ldexp((np.sign(significand) * size).sum(axis=-1).astype(np.float64), unit)


def factor_values(patterns: np.ndarray, type: str) -> np.ndarray:
    found = patterns.astype(np.uint8).view(FACTORS[type]).astype(np.float64)
    return np.abs(found) if type == "ue4m3" else found


def factors_of(values: np.ndarray, type: str) -> Terms:
    if type == "ue8m0":
        power = np.log2(values).astype(np.int64)
        return Terms(np.ones_like(power), power, power)
    found = terms(values, -6, 3)
    return found._replace(top=np.where(values == 0, -126, found.top))


def scaled_products(form: Form, a: np.ndarray, b: np.ndarray, fa: np.ndarray, fb: np.ndarray) -> Terms:
    """The terms of each row and column that C is added to: products, or sums of GROUP of them."""
    x, y = terms(a, LEAST_EXPONENT[form.a], 3), terms(b, LEAST_EXPONENT[form.b], 3)
    if form.k == 32:
        scale = (np.log2(fa)[:, None] + np.log2(fb)[None]).astype(np.int64)
        met = [one[:, None] + other[None] + scale for one, other in ((x.exponent, y.exponent), (x.top, y.top))]
        return Terms(x.significand[:, None] * y.significand[None], *met)
    groups = [np.ldexp(m, 1).astype(np.int64).reshape(len(m), -1, GROUP) for m in (a, b)]  # in halves
    sums = np.einsum("igk,jgk->ijg", *groups)
    each = form.k // form.factors
    f, g = (factors_of(np.repeat(m, each, axis=1)[:, ::GROUP], form.factor) for m in (fa, fb))
    exponent, top = f.exponent[:, None] + g.exponent[None] - 2, f.top[:, None] + g.top[None]
    return Terms(sums * f.significand[:, None] * g.significand[None], exponent, top)


def product(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, sign: int = 1) -> np.ndarray:
    """Patterns of D from those of A, B with a column in each row, C, and factors of their rows; the sign is that of products."""
    left, right, start = sign * model.values(a, form.a), model.values(b, form.b), model.values(c, "f32").astype(np.float64)
    rows, columns = factor_values(fa, form.factor), factor_values(fb, form.factor)
    with np.errstate(all="ignore"):
        special = (left[:, None] * right[None]).sum(axis=-1) + start + 0 * (rows.sum(axis=1)[:, None] + columns.sum(axis=1))
    finite = [np.where(np.isfinite(m), m, 0.0) for m in (left, right, start)]
    scales = [np.where(np.isfinite(m), m, 1.0) for m in (rows, columns)]
    added = terms(finite[2][..., None], -126, 23)
    sums = truncated([added, scaled_products(form, *finite[:2], *scales)], 25 if form.k == 32 else 35)
    result = np.where(np.isfinite(special), rounded(sums, "f32", 23), special)
    return np.where(np.isnan(special), NAN, result.astype(np.float32).view(np.uint32).astype(np.int64))
