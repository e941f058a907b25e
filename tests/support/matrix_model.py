"""The matrix instructions on bit patterns, with NumPy: fragments by the manual's formulas for single elements, products by
the definition or as tensor cores do it.

A fragment is a list of 32-bit words, register by register, 32 lanes each (two words, low first, for every f64).
Nothing here knows ptxemu.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

from tests.support import tensor_core_model
from tests.support.elementwise_oracle import F64, arithmetic

LANE = np.arange(32)
GROUP, THREAD = LANE // 4, LANE % 4
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "e3m2": 8, "e2m3": 8, "e2m1": 8,
        "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f32": 32, "s32": 32}  # fmt: skip
SIGNED = {"s8", "s4", "s32"}
INTEGERS = {"s8", "u8", "s4", "u4", "b1", "s32"}
NARROW = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 0, 8), "e5m2": (ml_dtypes.float8_e5m2, 0, 8), "e3m2": (ml_dtypes.float6_e3m2fn, 0, 6),
    "e2m3": (ml_dtypes.float6_e2m3fn, 0, 6), "e2m1": (ml_dtypes.float4_e2m1fn, 2, 4),
}  # fmt: skip
"""What NumPy calls a type, and its lowest bit and width in a byte."""
Place = tuple[np.ndarray, np.ndarray]  # row and column in every lane


# ---------------------------------------------------------------- fragments ("Matrix Fragments for mma.m16n8k16" and so on)


def packed(type: str) -> int:
    """Elements of one register."""
    return max(32 // BITS[type], 1)


def places_a(m: int, k: int, type: str) -> list[Place]:
    per = packed(type)
    rows = max(m // 8, 1)
    found = []
    for i in range(m * k // 32):
        register = i // per
        found.append((GROUP + 8 * (register % rows), THREAD * per + i % per + 4 * per * (register // rows)))
    return found


def places_b(n: int, k: int, type: str) -> list[Place]:
    """For n = 8: k and n."""
    per = packed(type)
    return [(THREAD * per + i % per + 4 * per * (i // per), GROUP) for i in range(n * k // 32)]


def places_c(m: int, n: int) -> list[Place]:
    return [(GROUP + 8 * (i // 2), THREAD * 2 + i % 2) for i in range(m * n // 32)]


def quad_places(role: str, layout: str, type: str) -> list[Place]:
    """mma.m8n8k4 with f16 multiplicands, within each of the four matrices."""
    high = LANE >= 16
    if role == "a":
        if layout == "row":
            return [(LANE % 4 + 4 * high, np.full(32, i)) for i in range(4)]
        return [(i % 4 + 4 * high, LANE % 4) for i in range(4)]
    if role == "b":
        if layout == "row":
            return [(LANE % 4, i + 4 * high) for i in range(4)]
        return [(np.full(32, i), LANE % 4 + 4 * high) for i in range(4)]
    if type == "f16":
        return [(LANE % 4 + 4 * high, np.full(32, i)) for i in range(8)]
    return [((LANE & 1) + (i & 2) + 4 * high, (i & 4) + (LANE & 2) + (i & 1)) for i in range(8)]


# ---------------------------------------------------------------- registers and elements


def elements(words: Sequence[int], type: str) -> np.ndarray:
    """[lane][element] bit patterns of a fragment."""
    array = np.array(words, np.uint32)
    if type == "f64":
        return array.view(np.uint64).reshape(-1, 32).T
    registers = array.reshape(-1, 32).T
    bits, per = BITS[type], packed(type)
    shifts = (bits * np.arange(per)).astype(np.uint32)
    values = registers[:, :, None] >> shifts & np.uint32((1 << bits) - 1)
    return values.reshape(32, -1)


def words(found: np.ndarray, type: str) -> list[int]:
    """The fragment of [lane][element] bit patterns."""
    if type == "f64":
        return [int(x) for x in np.ascontiguousarray(found.T).astype(np.uint64).ravel().view(np.uint32)]
    per = packed(type)
    parts = found.astype(np.uint64).reshape(32, -1, per) << (BITS[type] * np.arange(per)).astype(np.uint64)
    return [int(x) for x in np.bitwise_or.reduce(parts, axis=2).T.ravel()]


def values(bits: np.ndarray, type: str) -> np.ndarray:
    """Bit patterns as float64, which holds every type exactly."""
    if type in INTEGERS:
        whole = bits.astype(np.int64)
        negative = (whole >> (BITS[type] - 1)) & 1 if type in SIGNED else 0
        return (whole - (negative << BITS[type])).astype(np.float64)
    if type == "f16":
        return _widened(bits.astype(np.uint16).view(np.float16))
    if type in ("bf16", "tf32", "f32"):
        whole = bits.astype(np.uint32) << np.uint32(16) if type == "bf16" else bits.astype(np.uint32)
        return _widened((whole & np.uint32(0xFFFFE000) if type == "tf32" else whole).view(np.float32))
    if type == "f64":
        return np.ascontiguousarray(bits).view(np.float64)
    narrow, first, width = NARROW[type]
    held = (bits.astype(np.uint8) >> first & (1 << width) - 1).astype(np.uint8)
    return held.view(narrow).astype(np.float64)


def _widened(found: np.ndarray) -> np.ndarray:
    """As float64; NaNs whose quiet bit is clear are no reason for a warning."""
    with np.errstate(invalid="ignore"):
        return found.astype(np.float64)


def patterns(results: np.ndarray, type: str) -> np.ndarray:
    """float64 results rounded to a type; NaNs are canonical."""
    with np.errstate(over="ignore", invalid="ignore"):
        if type == "f16":
            return np.where(np.isnan(results), 0x7FFF, results.astype(np.float16).view(np.uint16))
        return np.where(np.isnan(results), 0x7FFFFFFF, results.astype(np.float32).view(np.uint32))


def matrix(found: np.ndarray, places: list[Place], shape: tuple[int, int]) -> np.ndarray:
    result = np.zeros(shape, found.dtype)
    for i, (row, column) in enumerate(places):
        result[row, column] = found[:, i]
    return result


def fragment(whole: np.ndarray, places: list[Place]) -> np.ndarray:
    return np.stack([whole[row, column] for row, column in places], axis=1)


# ---------------------------------------------------------------- products


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c plus the products in the order of k, in binary64. Of a sparse A, B is (m, k, n): see chosen."""
    total = c.astype(np.float64)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            total = total + a[:, k, None] * b[..., k, :]
    return total


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    """f64 bit patterns: a chain of fused multiply-adds."""
    total = c.copy()
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            for k in range(a.shape[1]):
                total[i, j] = _fused(int(a[i, k]), int(b[k, j]), int(total[i, j]), mode)
    return total


def _fused(a: int, b: int, c: int, mode: str) -> int:
    """a * b + c; the NaN of b, c or a, the first that there is, or a negative one without payload."""
    for x in (b, c, a):
        if F64.is_nan(x):
            return x | 1 << 51
    result = arithmetic("fma", F64, (a, b, c), mode)
    return 0xFFF8 << 48 if F64.is_nan(result) else result


def multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray, form: Form, like: str) -> np.ndarray:
    """D's bit patterns from those of A, B and C, by ``exact`` sums or those of an architecture.

    Of a sparse A, B is (m, k, n): see chosen.
    """
    if form.d == "f64":
        return fused(a, b, c, next((mod for mod in form.mods if mod in ("rn", "rz", "rm", "rp")), "rn"))
    if form.a == "b1":
        pairs = a[:, :, None] & b[None] if "and" in form.mods else a[:, :, None] ^ b[None]
        return (c.astype(np.int64) + pairs.sum(axis=1).astype(np.int64)) & 0xFFFFFFFF
    left, right = values(a, form.a), values(b, form.b)
    if form.d != "s32":
        if like == "exact":
            return patterns(product(left, right, values(c, form.c)), form.d)
        types = form.a, form.b, form.c, form.d
        return patterns(tensor_core_model.product(left, right, values(c, form.c), types, like, form.quads), form.d)
    exact = product(left, right, values(c, "s32")).astype(np.int64)
    return (np.clip(exact, -(1 << 31), (1 << 31) - 1) if "satfinite" in form.mods else exact) & 0xFFFFFFFF


class Form:
    """An instruction by its modifiers."""

    def __init__(self, text: str) -> None:
        self.mods = re.split(r"(?<!:)\.(?!:)", text)
        shape = next(mod for mod in self.mods if re.fullmatch(r"m\d+n\d+k\d+", mod))
        self.m, self.n, self.k = map(int, re.findall(r"\d+", shape))
        types = [mod for mod in self.mods if mod in BITS]
        self.d, self.a, self.b, self.c = types if len(types) == 4 else (types[0], "f16", "f16", types[-1])
        self.layouts = [mod for mod in self.mods if mod in ("row", "col")]
        self.quads = (self.m, self.n, self.k) == (8, 8, 4) and self.a == "f16"
        self.sparse = any(mod.startswith("sp") for mod in self.mods)


def mma(
    text: str, a: Sequence[int], b: Sequence[int], c: Sequence[int], e: Sequence[int] = (), selector: int = 0, like: str = "sm_90"
) -> list[int]:
    """The fragment that an ``mma`` leaves in its destination."""
    return list(_mma(text, tuple(a), tuple(b), tuple(c), tuple(e), selector, like))


@cache
def _mma(
    text: str, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], e: tuple[int, ...], selector: int, like: str
) -> tuple[int, ...]:
    form = Form(text)
    if form.quads:
        return tuple(quads(form, a, b, c, like))
    places = places_c(form.m, form.n)
    held = form.k // 2 if form.sparse else form.k
    left = matrix(elements(a, form.a), places_a(form.m, held, form.a), (form.m, held))
    right = matrix(elements(b, form.b), places_b(form.n, form.k, form.b), (form.k, form.n))
    if form.sparse:
        right = right[chosen(form, e, selector)]
    start = matrix(elements(c, form.c), places, (form.m, form.n))
    return tuple(words(fragment(multiply(left, right, start, form, like), places), form.d))


def quads(form: Form, a: Sequence[int], b: Sequence[int], c: Sequence[int], like: str) -> list[int]:
    """Four products, each of eight lanes."""
    given = [(elements(w, t), quad_places(r, layout, t)) for w, t, r, layout in (
        (a, "f16", "a", form.layouts[0]), (b, "f16", "b", form.layouts[1]), (c, form.c, "c", ""))]  # fmt: skip
    places = quad_places("c", "", form.d)
    result = np.zeros((32, 8), np.uint32)
    for quad in range(4):
        mine = quad == LANE // 4 % 4
        parts = []
        for (found, where), shape in zip(given, ((8, 4), (4, 8), (8, 8)), strict=True):
            own = [(row[mine], column[mine]) for row, column in where]
            parts.append(matrix(found[mine], own, shape))
        result[mine] = fragment(multiply(*parts, form, like), [(row[mine], column[mine]) for row, column in places])
    return words(result, form.d)


# ---------------------------------------------------------------- sparse A

CHUNKS = {32: 2, 16: 4, 8: 4, 4: 8}  # elements that four bits of metadata are about, by their size


def chunk_place(form: Form, row: int, chunk: int, selector: int) -> tuple[int, int]:
    """Lane and first bit of the four bits of metadata about a chunk ("Sparse matrix storage" and its figures)."""
    group, upper = row % 8, row // 8
    if BITS[form.a] >= 16:  # bits 0-15 of a lane are about row g, bits 16-31 about row g + 8
        lanes_each = form.k // CHUNKS[BITS[form.a]] // 4
        return 4 * group + selector * lanes_each + chunk // 4, 16 * upper + 4 * (chunk % 4)
    return 4 * group + 2 * selector + upper + 2 * (chunk // 8), 4 * (chunk % 8)  # neighbours hold rows g and g + 8


def chosen(form: Form, e: Sequence[int], selector: int) -> np.ndarray:
    """(m, k / 2): the row of B that each element of A multiplies. Rows of B that none names are not even looked at."""
    size = CHUNKS[BITS[form.a]]
    rows = []
    for row in range(form.m):
        places = [chunk_place(form, row, chunk, selector) for chunk in range(form.k // size)]
        rows.append(chosen_by([e[lane] >> first & 15 for lane, first in places], form.a))
    return np.array(rows)


def chosen_by(chunks: Sequence[int], type: str) -> list[int]:
    """The same of one row, by its metadata."""
    found = []
    for chunk, bits in enumerate(chunks):
        first = CHUNKS[BITS[type]] * chunk
        if BITS[type] == 32:
            found.append(first + {0b0100: 0, 0b1110: 1}[bits])
            continue
        for index in (bits & 3, bits >> 2):
            found += [first + 2 * index, first + 2 * index + 1] if BITS[type] == 4 else [first + index]
    return found


# ---------------------------------------------------------------- matrices in memory


def stored(memory: Sequence[int], type: str, layout: str, stride: int, shape: tuple[int, int]) -> np.ndarray:
    """The matrix whose lines begin ``stride`` elements apart in words of memory."""
    flat = elements_in_order(memory, type)
    row, column = np.indices(shape)
    return flat[row * stride + column if layout == "row" else column * stride + row]


def elements_in_order(memory: Sequence[int], type: str) -> np.ndarray:
    array = np.array(memory, np.uint32)
    if BITS[type] >= 8:
        return array.view(f"u{BITS[type] // 8}")
    return (array[:, None] >> (BITS[type] * np.arange(packed(type))).astype(np.uint32) & ((1 << BITS[type]) - 1)).ravel()


@cache
def _wmma(text: str, layouts: str, strides: tuple[int, ...], size: int, like: str, *memory: tuple[int, ...]) -> tuple[int, ...]:
    form = Form(text)
    shapes = (form.m, form.k), (form.k, form.n), (form.m, form.n)
    given = zip(memory, (form.a, form.b, form.c), [*form.layouts, layouts.split()[0]], strides, shapes, strict=False)
    d = multiply(*(stored(*one) for one in given), form, like)
    result = np.zeros(size, np.uint32).view(f"u{BITS[form.d] // 8}")
    row, column = np.indices(d.shape)
    result[row * strides[3] + column if layouts.split()[1] == "row" else column * strides[3] + row] = d
    return tuple(int(x) for x in result.view(np.uint32))


def wmma(
    text: str, layouts: str, strides: Sequence[int], size: int, *memory: Sequence[int], like: str = "sm_80"
) -> tuple[int, ...]:
    """``size`` words of zeros into which wmma.store.d has put the product; the layouts are those of C and D."""
    return _wmma(text, layouts, tuple(strides), size, like, *map(tuple, memory))


def ldmatrix(memory: Sequence[int], addresses: Sequence[int], count: int, transpose: bool) -> list[int]:
    """The fragment of matrices whose rows begin at byte addresses."""
    halves = np.array(memory, np.uint32).view(np.uint16)
    result = []
    for number in range(count):
        rows = np.stack([halves[addresses[8 * number + i] // 2 :][:8] for i in range(8)])
        places = [(GROUP, 2 * THREAD + i) for i in range(2)]
        result += words(fragment(rows.T if transpose else rows, places), "f16")
    return result


def stmatrix(fragments: Sequence[int], addresses: Sequence[int], count: int, transpose: bool, size: int) -> list[int]:
    """``size`` words of zeros after the matrices' rows are stored at byte addresses."""
    halves = np.zeros(2 * size, np.uint16)
    for number in range(count):
        tile = matrix(
            elements(fragments[32 * number : 32 * number + 32], "f16"), [(GROUP, 2 * THREAD + i) for i in range(2)], (8, 8)
        )
        for i, row in enumerate(tile.T if transpose else tile):
            halves[addresses[8 * number + i] // 2 :][:8] = row
    return [int(x) for x in halves.view(np.uint32)]


def ldmatrix_lines(memory: Sequence[int], addresses: Sequence[int], count: int, lines: int, bits: int) -> list[int]:
    """The registers of all lanes: matrices whose lines are 16 elements of so many bits; those of 16 lines are transposed."""
    data = np.array(memory, np.uint32).tobytes()
    result = []
    for number in range(count):
        rows = [int.from_bytes(data[addresses[lines * number + i] :][:16], "little") for i in range(lines)]
        found = np.array([[row >> bits * i & (1 << bits) - 1 for i in range(16)] for row in rows], np.uint8)
        tile = found.T if lines == 16 else found
        for first in range(0, lines, 8):
            registers = (tile[first + group, 4 * thread : 4 * thread + 4] for group, thread in zip(GROUP, THREAD, strict=True))
            result += [int.from_bytes(register.tobytes(), "little") for register in registers]
    return result


def stmatrix_lines(fragments: Sequence[int], addresses: Sequence[int], count: int, size: int) -> list[int]:
    """``size`` words of zeros after transposed matrices of 16 rows and 8 columns of bytes are stored."""
    data = np.zeros(4 * size, np.uint8)
    for number in range(count):
        tile = np.zeros((16, 8), np.uint8)
        for group, thread, register in zip(GROUP, THREAD, fragments[32 * number : 32 * number + 32], strict=True):
            tile[group, 2 * thread : 2 * thread + 2] = register & 255, register >> 8 & 255
            tile[group + 8, 2 * thread : 2 * thread + 2] = register >> 16 & 255, register >> 24
        for i, column in enumerate(tile.T):
            data[addresses[8 * number + i] :][:16] = column
    return [int(x) for x in data.view(np.uint32)]


# ---------------------------------------------------------------- values for tests


def hashed(i: int, seed: int = 0) -> int:
    x = (i + 1) * 0x9E3779B1 + seed * 0x85EBCA77 & 0xFFFFFFFF
    x = (x ^ x >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    return (x ^ x >> 12) * 0x297A2D39 & 0xFFFFFFFF


SMALL = {  # small integers
    "f16": [0, 0x3C00, 0x4000, 0xBC00, 0x4200, 0xC400], "bf16": [0, 0x3F80, 0x4000, 0xBF80, 0x4040, 0xC080],
    "tf32": [0, 0x3F800000, 0x40000000, 0xBF801FFF, 0x40400000, 0xC0800000], "e4m3": [0, 0x38, 0x40, 0xB8, 0x44, 0xC8],
    "e5m2": [0, 0x3C, 0x40, 0xBC, 0x42, 0xC4],
}  # fmt: skip
SMALL["f32"] = [*SMALL["tf32"][:3], 0xBF800000, 0x40490FDB, 0xC0800000]


def noise(i: int, type: str, seed: int = 0) -> int:
    """Word ``i`` of an arbitrary fragment: whole registers of integers, small numbers of float types."""
    if type == "f64":
        number = float(hashed(i // 2, seed) % 2000 - 1000) / 8 if hashed(i // 2, seed) % 3 else 1.0 / 3
        return int(np.float64(number).view(np.uint64)) >> 32 * (i % 2) & 0xFFFFFFFF
    if type in INTEGERS:
        return hashed(i, seed)
    choice, bits = SMALL[type], BITS[type]
    return sum(choice[hashed(i * packed(type) + j, seed) % len(choice)] << bits * j for j in range(packed(type)))


def metadata(i: int, type: str, seed: int = 0, ordered: bool = True) -> int:
    """An arbitrary metadata word: legal in every chunk."""
    codes = [0b0100, 0b1110] if BITS[type] == 32 else [0x4, 0x8, 0x9, 0xC, 0xD, 0xE]
    if not ordered and BITS[type] != 32:
        codes = codes + [(code & 3) << 2 | code >> 2 for code in codes]
    return sum(codes[hashed(8 * i + j, seed) % len(codes)] << 4 * j for j in range(8))


ORACLES = {
    "mma": mma, "wmma": wmma, "ldmatrix": ldmatrix, "stmatrix": stmatrix, "noise": noise, "metadata": metadata, "hashed": hashed,
    "ldmatrix_lines": ldmatrix_lines, "stmatrix_lines": stmatrix_lines,
}  # fmt: skip
