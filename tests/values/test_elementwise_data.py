"""``mov``: values, packing and unpacking."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.elementwise_oracle import random_bits
from tests.values.elementwise_harness import check, run

KINDS = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")


@pytest.mark.parametrize("kind", KINDS)
def test_values(kind: str) -> None:
    a = random_bits(int(kind[1:]), 40)
    check(f"mov.{kind}", [int(x) for x in a], a)


def test_predicates() -> None:
    a = np.arange(40) % 3 == 0
    check("mov.pred", [int(x) for x in a], a)


@pytest.mark.parametrize(("bits", "count"), [(16, 2), (32, 2), (32, 4), (64, 2), (64, 4)])
def test_pack_and_unpack(bits: int, count: int) -> None:
    part = bits // count
    parts = [random_bits(part, 40, seed) for seed in range(count)]
    whole = sum(p.astype(f"u{bits // 8}") << np.array(i * part, f"u{bits // 8}") for i, p in enumerate(parts))
    check(f"mov.b{bits}", [int(x) for x in whole], *parts, vector=count)
    np.testing.assert_array_equal(run(f"mov.b{bits}", whole, vector=count), parts)
