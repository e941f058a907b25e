"""Cases of vosen/ptx_tests with operands that must meet: ``set``, ``div`` and ``vshr``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from tests.clients.ptx_cases import (
    NUMBERED,
    SMALLEST,
    Arrays,
    Case,
    Right,
    drawn,
    floats,
    flushed,
    rounded_result,
    same,
    wide,
    within_units,
)
from tests.clients.ptx_conversions import TYPES, all_of

COMPARISONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
COMBINED = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def compare(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    missing = np.isnan(a) | np.isnan(b)
    if name in ("num", "nan"):
        return missing == (name == "nan")
    open_to_nan = len(name) == 3
    return (COMPARISONS[name[:2]](a, b) & ~missing) | (missing & open_to_nan)


def comparisons() -> Iterator[Case]:
    choices = [(None, None), *product(COMBINED, (True, False))]
    for name, (combine, other) in product([*COMPARISONS, *UNSIGNED], choices):
        for text in ("u16", "s16") if name in COMPARISONS else ("u16",):

            def expected(a: np.ndarray, b: np.ndarray, name=name, combine=combine, other=other) -> np.ndarray:
                found = COMPARISONS[UNSIGNED.get(name, name)](a, b)
                return np.where(COMBINED[combine](found, other) if combine else found, 0xFFFFFFFF, 0)

            placeholders = {
                "STYPE": text, "DTYPE": "u32", "STYPE_SIZE": "2", "DTYPE_SIZE": "4", "CMP": name,
                "BOOL_OP": f".{combine}" if combine else "", "OP_SUFFIX": f", {int(other)}" if combine else "",
            }  # fmt: skip
            title = f"set_{name}_{combine}_u32_{text}_{str(other).lower()}" if combine else f"set_{name}_u32_{text}"
            kind = TYPES[text]
            yield Case(
                title, "set.ptx", placeholders, ("input_a", "input_b"), drawn(kind, kind), "u4", expected, result="output_d"
            )


def comparisons_of_floats() -> Iterator[Case]:
    names = [*COMPARISONS, *(f"{name}u" for name in COMPARISONS), "num", "nan"]
    for name, flush, combine in product(names, (True, False), COMBINED):

        def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, name=name, flush=flush, combine=combine) -> np.ndarray:
            a, b = (np.where(flush & (abs(x) < SMALLEST), 0, x) for x in (a, b))
            return COMBINED[combine](compare(name, a, b), c != 0)

        def operands(random: np.random.Generator, count: int) -> Arrays:
            a, b = (*all_of("f32")(random, count), *all_of("f32")(random, count))
            return [a, np.where(random.integers(0, 4, count) == 0, a, b), random.integers(0, 2, count, np.uint8)]

        placeholders = {"TYPE": "f32", "TYPE_SIZE": "4", "CMP": name, "BOOL_OP": combine, "FTZ": ".ftz" if flush else ""}
        title = f"set_{name}_{combine}{'_ftz' if flush else ''}_f32_f32"
        arguments = ("input_a", "input_b", "input_c")
        yield Case(title, "set_bool.ptx", placeholders, arguments, operands, "f4", expected, result="output_d")


def video_shifts() -> Iterator[Case]:
    for mode, add, sat, to, given in product(("clamp", "wrap"), (False, True), (False, True), ("u32", "s32"), ("s32", "u32")):

        def expected(
            a: np.ndarray, b: np.ndarray, c: np.ndarray, mode=mode, add=add, sat=sat, to=to
        ) -> np.ndarray:  # fmt: skip
            shifted = wide(a) >> (np.minimum(wide(b), 32) if mode == "clamp" else wide(b) & 31)
            limits = np.iinfo(TYPES[to])
            return (np.clip(shifted, limits.min, limits.max) if sat else shifted) + (wide(c) if add else 0)

        placeholders = {
            "DTYPE": to, "ATYPE": given, "SAT": ".sat" if sat else "", "MODE": f".{mode}", "OP2": ".add" if add else "",
            "OP2_ARGS": ", c" if add else "",
        }  # fmt: skip
        title = f"vshr_{to}_{given}_u32{'_sat' if sat else ''}_{mode}{'_add' if add else ''}"
        yield Case(title, "vshr.ptx", placeholders, NUMBERED, shifts(given, to), TYPES[to], expected)


def shifts(given: str, to: str) -> Callable[[np.random.Generator, int], Arrays]:
    """Values, and amounts of which half are small."""

    def generate(random: np.random.Generator, count: int) -> Arrays:
        a, b, c = drawn(TYPES[given], "u4", TYPES[to])(random, count)
        return [a, np.where(np.arange(count) % 2, b, b % 48), c]

    return generate


def near_quotient(flush: bool) -> Right:
    """Of an approximation: within 2 units for divisors up to 2^126, zeros beyond, anything for divisors that are subnormal."""

    def right(inputs: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
        a, b = (flushed(x, flush) for x in inputs)
        huge = (abs(b) > 2.0**126) & np.isfinite(b)
        beyond = np.where(np.isinf(a), np.isnan(found), found == 0)
        special = np.isnan(expected) & np.isnan(found) | np.isinf(expected) & (expected == found)
        return special | (abs(b) < SMALLEST) | np.where(huge | np.isinf(b), beyond, within_units(2)(inputs, expected, found))

    return right


def quotients() -> Iterator[Case]:
    for mode, flush in product(("approx", "full", "rn", "rz", "rm", "rp"), (False, True)):

        def expected(a: np.ndarray, b: np.ndarray, mode=mode, flush=flush) -> np.ndarray:
            a, b = (flushed(x, flush).astype(np.float64) for x in (a, b))
            return rounded_result(a / b, mode, flush)

        right = {"approx": near_quotient(flush), "full": within_units(2)}.get(mode, same)
        placeholders = {"VARIANT": f".{mode}", "FLUSH": ".ftz" if flush else ""}
        title = f"div_{mode}{'_ftz' if flush else ''}_f32"
        yield Case(title, "div.ptx", placeholders, ("input_a", "input_b"), floats(2), "f4", expected, right)


FAMILIES = (comparisons, comparisons_of_floats, video_shifts, quotients)
CASES = [case for family in FAMILIES for case in family()]
