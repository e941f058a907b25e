"""The conversions of vosen/ptx_tests: ``cvt`` between all types that it tries, ``cvt.pack``, and those of 8-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import ml_dtypes
import numpy as np

from tests.clients.ptx_cases import EDGES, SMALLEST, Arrays, Case, drawn, rounded, same, wide

TYPES = {
    "s16": "i2", "u16": "u2", "s32": "i4", "u32": "u4", "s64": "i8", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8",
}  # fmt: skip
FROM = ("s16", "u16", "s32", "u32", "f16", "f32")
TO_INTEGER = {"n": np.rint, "z": np.trunc, "m": np.floor, "p": np.ceil}
MODES = ("", "rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp")


def is_float(text: str) -> bool:
    return text[0] == "f"


def size_of(text: str) -> int:
    return int(text[1:]) // 8


def is_valid(mode: str, flush: bool, sat: bool, to: str, given: str) -> bool:
    """Whether PTX has such a conversion."""
    narrower = size_of(to) < size_of(given)
    both_float, whole = is_float(to) and is_float(given), mode.endswith("i")
    wider = size_of(to) > size_of(given)
    holds_all = (to[0] == given[0] and not narrower) or (given[0] == "u" and to[0] == "s" and wider)
    if sat and holds_all and not both_float:
        return False
    if flush and "f32" not in (to, given):
        return False
    if not mode:
        return not (both_float and narrower) and is_float(to) == is_float(given)
    if whole:
        return is_float(given) and (not is_float(to) or size_of(to) == size_of(given))
    return is_float(to) and (not is_float(given) or narrower)


def whole_number(values: np.ndarray, mode: str) -> np.ndarray:
    return TO_INTEGER[mode[1]](values)


def to_float(values: np.ndarray, mode: str, flush: bool, sat: bool, to: str) -> np.ndarray:
    """``values``: exact, in f64."""
    kind = np.dtype(TYPES[to])
    if mode.endswith("i"):
        out = whole_number(values, mode).astype(kind)
    else:
        out = values if to == "f64" else rounded(values, mode or "rn", kind)
    if flush and to == "f32":
        out = np.where(abs(out) < SMALLEST, np.copysign(kind.type(0), out), out)
    if sat:
        out = np.where(np.isnan(out) | (out <= 0), 0, np.minimum(out, 1))
    return out.astype(kind)


def to_integer(values: np.ndarray, to: str) -> np.ndarray:
    """The nearest number that the type has; ``values``: whole, in f64."""
    limits = np.iinfo(TYPES[to])
    inside = (values >= float(limits.min)) & (values < float(limits.max) + (size_of(to) < 8))
    kept = np.where(inside, values, 0).astype(TYPES[to])
    return np.where(inside, kept, np.where(values < 0, limits.min, limits.max).astype(TYPES[to]))


def conversion(mode: str, flush: bool, sat: bool, to: str, given: str) -> Callable[[np.ndarray], np.ndarray]:
    def expected(x: np.ndarray) -> np.ndarray:
        if not is_float(given):
            if is_float(to):
                return to_float(x.astype(np.float64), mode, flush, sat, to)
            limits = np.iinfo(TYPES[to])
            low, high = max(limits.min, -(1 << 63)), min(limits.max, (1 << 63) - 1)
            return (np.clip(wide(x), low, high) if sat else wide(x)).astype(TYPES[to])
        values = x.astype(np.float64)
        if flush and given == "f32" and to != "f16":  # f16 of subnormal values are zeros in any case, but for their signs
            values = np.where(abs(values) < SMALLEST, np.copysign(0, values), values)
        return to_float(values, mode, flush, sat, to) if is_float(to) else to_integer(whole_number(values, mode or "rni"), to)

    return expected


def same_but_for_nan(inputs: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Integers of what is no number may be any."""
    return same(inputs, expected, found) | np.isnan(inputs[0])


def all_of(given: str) -> Callable[[np.random.Generator, int], Arrays]:
    """All values of 16 bits, or random ones of 32 behind those at the edges."""

    def generate(random: np.random.Generator, count: int) -> Arrays:
        if size_of(given) == 2:
            return [np.arange(count, dtype=np.uint32).astype(np.uint16).view(TYPES[given])]
        edges = np.concatenate([EDGES, EDGES | 1 << 31])
        values = random.integers(0, 1 << 32, count, np.uint32)
        values[: edges.size] = edges[:count]
        return [values.view(TYPES[given])]

    return generate


def placeholders_of(mode: str, flush: bool, sat: bool, to: str, given: str) -> dict[str, str]:
    return {
        "INPUT": given, "INPUT_LD": f"b{8 * size_of(given)}", "INPUT_SIZE": str(size_of(given)),
        "OUTPUT": to, "OUTPUT_ST": f"b{8 * size_of(to)}", "OUTPUT_SIZE": str(size_of(to)),
        "MODIFIERS": (f".{mode}" if mode else "") + (".ftz" if flush else "") + (".sat" if sat else ""),
    }  # fmt: skip


def conversions() -> Iterator[Case]:
    for mode, flush, sat, given, to in product(MODES, (False, True), (False, True), FROM, TYPES):
        name = "_".join(["cvt", *[mode] * bool(mode), *["ftz"] * flush, *["sat"] * sat, to, given])
        right = same_but_for_nan if is_float(given) and not is_float(to) else same
        yield Case(
            name, "cvt.ptx", placeholders_of(mode, flush, sat, to, given), ("input",), all_of(given), TYPES[to],
            conversion(mode, flush, sat, to, given), right, valid=is_valid(mode, flush, sat, to, given),
        )  # fmt: skip


def packs() -> Iterator[Case]:
    for text, kind in {"u8": np.uint8, "s8": np.int8}.items():

        def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, kind=kind) -> np.ndarray:
            limits = np.iinfo(kind)
            low, high = (np.clip(x, limits.min, limits.max).astype(np.uint8).astype(np.uint32) for x in (b, a))
            return low | high << 8 | c << 16

        yield Case(
            f"cvt_pack_sat_{text}_s32_b32", "cvt_pack.ptx", {"TYPE": text}, ("input_a", "input_b", "input_c"),
            drawn("i4", "i4", "u4"), "u4", expected,
        )  # fmt: skip


NARROW = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def nearest(text: str, x: np.ndarray) -> np.ndarray:
    """The code of the nearest finite float of 8 bits."""
    most = float(ml_dtypes.finfo(NARROW[text]).max)
    return np.clip(x, -most, most).astype(NARROW[text]).view(np.uint8).astype(np.uint16)


def narrow_floats() -> Iterator[Case]:
    for text in ("e4m3", "e5m2"):
        values = np.arange(256, dtype=np.uint8).view(NARROW[text]).astype(np.float64)

        def halves(x: np.ndarray, values=values) -> np.ndarray:
            pair = np.stack([values[x & 0xFF], values[x >> 8]], axis=1).astype(np.float16)
            return pair.view(np.uint32)[:, 0]

        def same_halves(_: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
            return same(_, *(bits.view(np.float16) for bits in (expected, found))).reshape(-1, 2).all(axis=1)

        def pairs(random: np.random.Generator, count: int) -> Arrays:
            low = np.arange(count, dtype=np.uint32).astype(np.uint16) & 0xFF
            return [low | low << 8]

        yield Case(
            f"cvt_rn_f16x2_{text}",
            "cvt_rn_f16x2_f8x2type.ptx",
            {"INPUT": f"{text}x2"},
            ("input",),
            pairs,
            "u4",
            halves,
            same_halves,
        )

        def twice(x: np.ndarray, text=text) -> np.ndarray:
            code = nearest(text, x)
            return code | code << 8

        def same_codes(inputs: Arrays, expected: np.ndarray, found: np.ndarray, values=values) -> np.ndarray:
            missing = np.isnan(values[found & 0xFF]) & np.isnan(values[found >> 8])
            return np.where(np.isnan(inputs[0]), missing, expected == found)

        yield Case(
            f"cvt_rn_satfinite_{text}x2_f32", "cvt_rn_satfinite_f8x2_f32.ptx", {"OUTPUT": f"{text}x2"}, ("input",), all_of("f32"),
            "u2", twice, same_codes,
        )  # fmt: skip


FAMILIES = (conversions, packs, narrow_floats)
CASES = [case for family in FAMILIES for case in family()]
