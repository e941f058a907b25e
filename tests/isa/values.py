"""Input values of the instruction tests: edges of each type, every pair of them, and random bits."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np

from tests.support.elementwise_oracle import FORMATS, float_edges, integer_edges, random_bits
from tests.support.narrow_oracles import BITS as NARROW_BITS

SHIFTS = (0, 1, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 65536, 1 << 31, 2**32 - 1)
POOLS: dict[str, tuple[int, ...]] = {
    "shifts": SHIFTS,
    "fields": (0, 1, 5, 16, 30, 31, 32, 33, 62, 63, 64, 127, 200, 255, 256, 288, 2**32 - 1),
    "small": tuple(range(35)),
    "lanes": tuple(range(32)),
    "near": (*range(35), *(2**32 - x for x in range(1, 35)), 2**31, 2**31 - 1),
    "selectors": (*(0x11111111 * x for x in range(16)), 0x3210, 0x7654, 0x89AB, 0xFEDC, 0x5410, 0x7632, 0x0123),
    "angles": (
        *(int(x) for x in np.linspace(-6.28, 6.28, 150).astype(np.float32).view(np.uint32)),
        *(0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FFFFFFF, 0x7FC00001, 1, 0x80000001, 0x00800000),
    ),
    "narrow": tuple(
        sign | exponent << 23 | fraction
        for exponent in (0, 1, 100, *range(109, 137), 254, 255)
        for fraction in (0, 1, 0x40000, 0x80000, 0x100000, 0x1FFFFF, 0x380000, 0x600000, 0x700000, 0x7FFFFF)
        for sign in (0, 1 << 31)
    ),
    "powers": tuple(exponent << 23 | fraction for exponent in range(256) for fraction in (0, 1, 0x3FFFFF, 0x400000, 0x400001)),
    "halves": tuple(
        sign | exponent << 23 | fraction
        for exponent in (0, 1, 50, *range(101, 115), 120, 127, 142, 143, 253, 254, 255)
        for fraction in (0, 1, 0x1000, 0x1FFF, 0x2345, 0x7FDFFF, 0x7FE000, 0x7F0001, 0x7FFFFF)
        for sign in (0, 1 << 31)
    ),
    "scale": (127, 126, 130, 120, 137, 0, 1, 254, 255),
    "scales": (0x7F7F, 0x7E80, 0x8578, 0x827D, 0x0001, 0xFE00, 0x7FFF, 0xFF7F, 0x01FE, 0x7085),
    "oob": (0x7FF7, 0xFFF7, 0x7FF6, 0x7FFF, 0x7E00, 0x7C00, 0x3C00, 0xBC00, 0x4200, 0x8000, 0, 1),
    "oob2": (0x7FF77FF7, 0x3C007FF7, 0x7FF73C00, 0x42003C00, 0x7FFFFFF7, 0x7C007FF7, 0x7FF6BC00, 0),
    "inside": (0, 16, 32, 48),
    "bytes": (0, 16, 32, 48, 64, 80, 1 << 20, 2**31 - 16, 2**32 - 16, 2**31),
    "rows": (0, 1, 2, 3, 4, 5, 6, 1000, 2**31 - 1, 2**32 - 1, 2**31),
    "some": (0, 1, 2),
    "texels": (0, 1, 2, 3, 4, 5, 2**32 - 1, 2**32 - 2, 7, 2**31, 2**31 - 1),
    "unit": tuple(int(x) for x in np.linspace(-1.25, 2.375, 30).astype(np.float32).view(np.uint32)),
    "levels": tuple(int(x) for x in np.array([0, 1, 0.25, 0.5, 0.75, -1, 2, 9, -0.0], np.float32).view(np.uint32)),
    "slopes": tuple(int(x) for x in np.array([0, 0.25, -0.5, 1, 0.0625, 3], np.float32).view(np.uint32)),
    "offsets": tuple(x % 2**32 for x in range(-8, 8)),
    "axis": tuple(int(x) for x in np.array([0, 1, -1, 0.5, -0.75, 0.3, 2], np.float32).view(np.uint32)),
}


@cache
def edges(kind: str, bits: int, pool: str) -> tuple[int, ...]:
    """The values to combine, the most telling first."""
    if pool:
        return POOLS[pool]
    if kind == "pred":
        return (0, 1)
    if kind in NARROW_BITS:
        return tuple((0x0101 * i ^ 0x0100 * (i // 3)) & (1 << bits) - 1 for i in range(256))
    if kind in FORMATS:
        f = FORMATS[kind]
        first = [0, f.sign, f.one, f.one | f.sign, f.infinity, f.infinity | f.sign, f.nan, f.infinity - 1, 1 << f.mantissa, 1,
                 (1 << f.mantissa) - 1 | f.sign, f.one + 1, f.infinity + 1, f.sign | (f.infinity - 1)]  # fmt: skip
        rest = [int(x) for x in float_edges(f)]
    elif bits <= 64 and not kind.endswith("x2") and not kind.startswith("m") and kind != "tf32":
        top = 1 << (bits - 1)
        first = [0, 1, 2 * top - 1, top, top - 1, 2, top + 1, 2 * top - 2, 0x5A, 7]
        rest = [int(x) for x in integer_edges(bits)]
    elif kind.endswith("x2"):
        half = edges(kind[:-2], bits // 2, "")
        first, rest = [], [x | half[(5 * i + 3) % len(half)] << bits // 2 for i, x in enumerate(half)]
    else:
        return (*(int.from_bytes(random_bits(8, bits // 8, seed).tobytes(), "little") for seed in range(64)), 0)
    return tuple(dict.fromkeys([*first, *rest]))


def random_values(kind: str, bits: int, pool: str, count: int, seed: int) -> list[int]:
    if pool or kind == "pred" or kind in NARROW_BITS:
        return [int(x) for x in np.random.default_rng(seed).choice(np.array(edges(kind, bits, pool), object), count)]
    if kind.endswith("x2") and bits <= 64:
        half = kind[:-2]
        halves = edges(half, bits // 2, "")
        picked = np.random.default_rng(seed).integers(0, len(halves), (count, 2))
        return [halves[a] | halves[b] << bits // 2 for a, b in picked]
    raw = np.random.default_rng(seed).integers(0, 256, (count, max(bits // 8, 1)), dtype=np.uint8)
    return [int.from_bytes(row.tobytes(), "little") for row in raw]


def columns(operands: list[tuple[str, int, str]], count: int) -> list[np.ndarray]:
    """One array of bytes (count x size) for each operand: combinations of edges, then random values."""
    return list(_columns(tuple(operands), count))


@cache
def _columns(operands: tuple[tuple[str, int, str], ...], count: int) -> tuple[np.ndarray, ...]:
    if not operands:
        return ()
    lists = [edges(*operand) for operand in operands]
    total = int(np.prod([len(values) for values in lists], dtype=object))
    combined = count if total <= count else count * 3 // 4
    if total <= combined:
        rows = list(itertools.product(*lists))
    else:
        side = max(2, int(combined ** (1 / len(lists))))
        rows = list(itertools.product(*(values[:side] for values in lists)))[: combined // 2]
        rng = np.random.default_rng(3)
        picks = [rng.permutation(np.resize(np.arange(len(values)), combined - len(rows))) for values in lists]
        rows += [tuple(v[p[i]] for v, p in zip(lists, picks, strict=True)) for i in range(combined - len(rows))]
    extra = [random_values(*operand, count - len(rows), 7 + i) for i, operand in enumerate(operands)]
    values = [[row[i] for row in rows] + extra[i] for i in range(len(operands))]
    return tuple(
        np.frombuffer(b"".join(int(x).to_bytes(max(bits // 8, 1), "little") for x in column), np.uint8).reshape(count, -1)
        for column, (_, bits, _) in zip(values, operands, strict=True)
    )
