"""The cases of vosen/ptx_tests: the text of each, its inputs, and what is right, by the rules of its host program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

Arrays = Sequence[np.ndarray]
Right = Callable[[Arrays, np.ndarray, np.ndarray], np.ndarray]
"""Of a case's inputs, what is expected, and what was found: which are right."""

SMALLEST = np.float32(2.0**-126)  # that is normal
UP = 2.0**64  # far enough from there
EDGES = np.array(
    [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x3F7FFFFF, 0x3F800001, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF,
     0x4B000000, 0x42FC0000, 0x43160000, 0x40490FDB],
    np.uint32,
)  # fmt: skip


def same(_: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The same bits, or both no numbers."""
    bits = np.dtype(f"u{expected.itemsize}")
    equal = expected.view(bits) == found.view(bits)
    return equal | (np.isnan(expected) & np.isnan(found)) if expected.dtype.kind == "f" else equal


def equal(inputs: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The same, or zeros of either sign."""
    return same(inputs, expected, found) | ((expected == 0) & (found == 0))


def within_units(units: int) -> Right:
    """At most so many representable values apart."""

    def right(inputs: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
        near = abs(expected.view(np.int32).astype(np.int64) - found.view(np.int32)) <= units
        return same(inputs, expected, found) | near

    return right


@dataclass(frozen=True)
class Case:
    """``file`` with its placeholders replaced is a kernel of the named arguments; ``generate`` makes their arrays of a length."""

    name: str
    file: str
    placeholders: dict[str, str]
    arguments: tuple[str, ...]
    generate: Callable[[np.random.Generator, int], Arrays]
    output: str
    expected: Callable[..., np.ndarray]
    right: Right = field(default=same)
    result: str = "output"
    """The argument behind the others."""
    valid: bool = True
    """Whether there is such an instruction: one that is none must not load."""

    def inputs(self, random: np.random.Generator, count: int) -> Arrays:
        return [np.ascontiguousarray(array) for array in self.generate(random, count)]


AB = ("input_a", "input_b")
NUMBERED = ("input0", "input1", "input2")


def drawn(*types: str) -> Callable[[np.random.Generator, int], Arrays]:
    """Arrays of random bits."""

    def generate(random: np.random.Generator, count: int) -> Arrays:
        return [np.frombuffer(random.bytes(count * np.dtype(kind).itemsize), kind) for kind in types]

    return generate


def floats(number: int) -> Callable[[np.random.Generator, int], Arrays]:
    """Arrays of random bits of f32, with all pairs of values at the edges in front."""

    def generate(random: np.random.Generator, count: int) -> Arrays:
        edges = np.concatenate([EDGES, EDGES | 1 << 31])
        arrays = [random.integers(0, 1 << 32, count, np.uint32) for _ in range(number)]
        grid = np.meshgrid(*[edges] * min(number, 2), indexing="ij")
        for array, values in zip(arrays, grid, strict=False):
            array[: values.size] = values.ravel()[:count]
        return [array.view(np.float32) for array in arrays]

    return generate


def flushed(values: np.ndarray, flush: bool) -> np.ndarray:
    """Values with zeros in place of subnormal ones."""
    return np.where(flush & (abs(values) < SMALLEST), np.copysign(0, values), values) if flush else values


def rounded(exact: np.ndarray, mode: str, kind: np.dtype = np.dtype(np.float32)) -> np.ndarray:  # noqa: B008 (it is immutable)
    """f32, or f16, of f64 that tell on which side of each they lie."""
    near = exact.astype(kind)
    wide = near.astype(np.float64)
    down, up = np.nextafter(near, kind.type(-np.inf)), np.nextafter(near, kind.type(np.inf))
    too_high, too_low = (wide > exact) & np.isfinite(exact), (wide < exact) & np.isfinite(exact)
    if mode == "rm":
        return np.where(too_high, down, near)
    if mode == "rp":
        return np.where(too_low, up, near)
    if mode == "rz":
        return np.where(too_high & (exact > 0), down, np.where(too_low & (exact < 0), up, near))
    return near


def rounded_result(exact: np.ndarray, mode: str, flush: bool) -> np.ndarray:
    """f32 of such f64. Hardware flushes what is subnormal when it is rounded as if exponents had no bounds."""
    found = rounded(exact, mode)
    small = abs(rounded(exact * UP, mode)) < np.float64(SMALLEST) * UP
    return np.where(flush & small, np.copysign(np.float32(0), found), found)


def odd_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum of f64, rounded to odd, so that another rounding to f32 is right."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    even = (total.view(np.uint64) & 1) == 0
    toward = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(np.isfinite(total) & (error != 0) & even, toward, total)


def saturated(values: np.ndarray, wanted: bool) -> np.ndarray:
    return np.where(np.isnan(values), 0, np.clip(values, 0, 1)).astype(np.float32) if wanted else values


def arithmetic() -> Iterator[Case]:
    operations: dict[str, tuple[int, Callable[..., np.ndarray]]] = {
        "add": (2, odd_sum),
        "sub": (2, lambda a, b: odd_sum(a, -b)),
        "mul": (2, np.multiply),
        "fma": (3, lambda a, b, c: odd_sum(a * b, c)),
    }
    for (name, (number, exact)), mode, flush, sat in product(
        operations.items(), ("rn", "rz", "rm", "rp"), (False, True), (False, True)
    ):

        def expected(*inputs: np.ndarray, exact=exact, mode=mode, flush=flush, sat=sat) -> np.ndarray:
            wide = [flushed(values, flush).astype(np.float64) for values in inputs]
            return saturated(rounded_result(exact(*wide), mode, flush), sat)

        marks = ("_ftz" if flush else "") + ("_sat" if sat else "")
        placeholders = {"RND": f".{mode}", "FLUSH": ".ftz" if flush else "", "SAT": ".sat" if sat else ""}
        arguments = ("input_a", "input_b", "input_c")[:number]
        yield Case(f"{name}_{mode}{marks}_f32", f"{name}_f.ptx", placeholders, arguments, floats(number), "f4", expected, equal)


def rounded_functions() -> Iterator[Case]:
    for name, exact in {"rcp": lambda x: 1 / x, "sqrt": np.sqrt}.items():
        for mode, flush in product(("rn", "rz", "rm", "rp"), (False, True)):

            def expected(x: np.ndarray, exact=exact, mode=mode, flush=flush) -> np.ndarray:
                return rounded_result(exact(flushed(x, flush).astype(np.float64)), mode, flush)

            placeholders = {"MODE": mode + (".ftz" if flush else "")}
            yield Case(
                f"{name}_{mode}{'_ftz' if flush else ''}", f"{name}.ptx", placeholders, ("input",), floats(1), "f4", expected
            )


def near(name: str, precise: Callable[[np.ndarray], np.ndarray], flush: bool) -> Right:
    """What an approximation may answer; special values are exact."""

    def right(inputs: Arrays, expected: np.ndarray, found: np.ndarray) -> np.ndarray:
        x = flushed(inputs[0], flush).astype(np.float64)
        exact, answer = precise(x), found.astype(np.float64)
        distance = abs(exact - answer)
        relative = {"sqrt": 2**-23, "rsqrt": 2**-22.9, "lg2": 2**-22, "tanh": 2**-11}
        if name in ("sin", "cos"):
            bound = np.where(abs(x) <= 2 * np.pi, 2**-20.5, np.where(abs(x) <= 100 * np.pi, 2**-14.7, np.inf))
        elif name == "lg2":
            bound = np.where((x > 0.5) & (x < 2), 1, abs(exact)) * relative[name]
        else:
            bound = abs(exact) * relative[name]
        special = ~np.isfinite(exact) | (x == 0) | np.isinf(x)
        return same(inputs, expected, found) | (~special & (distance <= bound))

    return right


def approximations() -> Iterator[Case]:
    functions = {"sin": np.sin, "cos": np.cos, "lg2": np.log2, "tanh": np.tanh, "sqrt": np.sqrt}
    functions |= {"rsqrt": lambda x: 1 / np.sqrt(x), "rcp": lambda x: 1 / x, "ex2": np.exp2}
    units = {"rcp": within_units(1), "ex2": within_units(2)}
    for (name, precise), flush in product(functions.items(), (False, True)):
        if name == "tanh" and flush:
            continue

        def expected(x: np.ndarray, precise=precise, flush=flush) -> np.ndarray:
            return flushed(precise(flushed(x, flush).astype(np.float64)).astype(np.float32), flush)

        mark = ".ftz" if flush else ""
        placeholders = {"FTZ": mark, "FLUSH": mark, "MODE": "approx" + mark}
        right = units.get(name) or near(name, precise, flush)
        title = f"{name}_approx{'_ftz' if flush else ''}"
        yield Case(title, f"{name}.ptx", placeholders, ("input",), floats(1), "f4", expected, right)


def signs() -> Iterator[Case]:
    for (name, function), flush in product({"abs": np.abs, "neg": np.negative}.items(), (False, True)):

        def expected(x: np.ndarray, function=function, flush=flush) -> np.ndarray:
            return flushed(function(x), flush)

        placeholders = {"FTZ": ".ftz" if flush else ""}
        yield Case(f"{name}{'_ftz' if flush else ''}", f"{name}.ptx", placeholders, ("input",), floats(1), "f4", expected)


def extremes() -> Iterator[Case]:
    """min and max of f16, which order the zeros."""
    for (name, function), flush, keep in product({"min": np.minimum, "max": np.maximum}.items(), (False, True), (False, True)):

        def expected(a: np.ndarray, b: np.ndarray, name=name, function=function, flush=flush, keep=keep) -> np.ndarray:
            a, b = (np.where(flush & (abs(x) < 2.0**-14), np.copysign(0, x), x).astype("f2") for x in (a, b))
            zeros = (a == 0) & (b == 0)
            negative = (np.signbit(a) | np.signbit(b)) if name == "min" else (np.signbit(a) & np.signbit(b))
            chosen = np.where(zeros, np.where(negative, -0.0, 0.0), function(a, b))
            return chosen if keep else np.where(np.isnan(a), b, np.where(np.isnan(b), a, chosen))

        text = f"{name}{'.ftz' if flush else ''}{'.NaN' if keep else ''}.f16"
        placeholders = {"TYPE_SIZE": "2", "TYPE": "f16", "BTYPE": "b16", "OP": text}
        title = f"{name}{'_ftz' if flush else ''}{'_nan' if keep else ''}"
        yield Case(title, "minmax.ptx", placeholders, AB, drawn("f2", "f2"), "f2", expected)


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int64)


def integers() -> Iterator[Case]:
    """add, sub, mul, mad, mul24 and sad: in 64 bits, of which the type's are kept."""
    for (name, function), (kind, text) in product(
        {"add": np.add, "sub": np.subtract}.items(), {"u2": "u16", "i2": "s16", "i4": "s32"}.items()
    ):
        sat = kind == "i4"

        def total(a: np.ndarray, b: np.ndarray, function=function, sat=sat) -> np.ndarray:
            exact = function(wide(a), wide(b))
            return np.clip(exact, -(1 << 31), (1 << 31) - 1) if sat else exact

        placeholders = {"TYPE": text, "TYPE_SIZE": kind[1], "SAT": ".sat" if sat else ""}
        yield Case(f"{name}{'_sat' if sat else ''}_{text}", f"{name}.ptx", placeholders, AB, drawn(kind, kind), kind, total)
    for mode, sign in product(("lo", "hi", "wide"), "ui"):
        kind, out = f"{sign}2", f"{sign}4" if mode == "wide" else f"{sign}2"
        shift, text = 16 * (mode == "hi"), {"u": "u", "i": "s"}[sign]
        sizes = {"TYPE_IN": f"{text}16", "TYPE_IN_SIZE": "2", "TYPE_OUT": f"{text}{8 * int(out[1])}", "TYPE_OUT_SIZE": out[1]}
        yield Case(
            f"mul_{mode}_{text}16", "mul.ptx", {**sizes, "MODE": mode}, AB, drawn(kind, kind), out,
            lambda a, b, shift=shift: wide(a) * wide(b) >> shift,
        )  # fmt: skip
        sizes = {"STYPE": f"{text}16", "STYPE_SIZE": "2", "DTYPE": sizes["TYPE_OUT"], "DTYPE_SIZE": out[1], "SAT": ""}
        yield Case(
            f"mad_{mode}_{text}16", "mad.ptx", {**sizes, "MODE": mode}, (*AB, "input_c"), drawn(kind, kind, out), out,
            lambda a, b, c, shift=shift: (wide(a) * wide(b) >> shift) + wide(c),
        )  # fmt: skip
    sizes = {"STYPE": "s32", "STYPE_SIZE": "4", "DTYPE": "s32", "DTYPE_SIZE": "4", "SAT": ".sat", "MODE": "hi"}
    yield Case(
        "mad_hi_sat_s32", "mad.ptx", sizes, (*AB, "input_c"), drawn("i4", "i4", "i4"), "i4",
        lambda a, b, c: np.clip((wide(a) * wide(b) >> 32) + wide(c), -(1 << 31), (1 << 31) - 1),
    )  # fmt: skip
    for mode, signed in product(("lo", "hi"), (False, True)):

        def product24(a: np.ndarray, b: np.ndarray, mode=mode, signed=signed) -> np.ndarray:
            low = [(wide(x) << 40 >> 40) if signed else wide(x) & 0xFFFFFF for x in (a, b)]
            return (low[0] * low[1]) >> (16 if mode == "hi" else 0)

        text = "s32" if signed else "u32"
        yield Case(
            f"mul24_{mode}_{text}", "mul24.ptx", {"MODE": mode, "TYPE": text}, NUMBERED[:2], drawn("u4", "u4"), "u4", product24
        )
    for kind, text in {"u2": "u16", "i2": "s16"}.items():

        def distance(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
            return wide(c) + abs(wide(a) - wide(b))

        yield Case(f"sad_{text}", "sad.ptx", {"TYPE": text}, NUMBERED, drawn(kind, kind, kind), kind, distance)


def bits() -> Iterator[Case]:
    """Reversed, shifted, extracted, inserted and permuted bits."""
    yield Case(
        "brev_b32", "brev.ptx", {"TYPE": "b32", "TYPE_SIZE": "4"}, ("input",), drawn("u4"), "u4",
        lambda x: np.packbits(np.unpackbits(x.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little"), axis=1)
        .view(">u4")[:, 0],
    )  # fmt: skip
    for text, kind in {"shl.b16": "u2", "shr.u16": "u2", "shr.s16": "i2"}.items():

        def shifted(x: np.ndarray, by: np.ndarray, text=text) -> np.ndarray:
            amount = np.minimum(wide(by), 16)
            return wide(x) << amount if text == "shl.b16" else wide(x) >> amount

        yield Case(text.replace(".", "_"), "shift.ptx", {"OP": text}, AB, drawn(kind, "u2"), kind, shifted)
    for direction, mode in product("lr", ("clamp", "wrap")):

        def funnel(a: np.ndarray, b: np.ndarray, c: np.ndarray, direction=direction, mode=mode) -> np.ndarray:
            amount = (np.minimum(c, 32) if mode == "clamp" else c & 31).astype(np.uint64)
            both = b.astype(np.uint64) << np.uint64(32) | a
            return (both << amount) >> np.uint64(32) if direction == "l" else both >> amount

        yield Case(
            f"shf_{direction}_{mode}_b32", "shf.ptx", {"DIR": direction, "MODE": mode}, (*AB, "input_c"), drawn("u4", "u4", "u4"),
            "u4", funnel,
        )  # fmt: skip
    for size, sign in product((4, 8), "ui"):

        def field_of(x: np.ndarray, start: np.ndarray, length: np.ndarray, size=size, sign=sign) -> np.ndarray:
            start, length = (wide(y) & 0xFF if size == 4 else wide(y) for y in (start, length))
            top = 8 * size - 1
            highest = np.minimum(start + length - 1, top)
            fill = (sign == "i") & (length > 0) & ((x.astype(np.int64) >> np.maximum(highest, 0)) & 1 == 1)
            moved = (x.view(f"u{size}").astype(np.uint64)) >> np.minimum(start, 63).astype(np.uint64)
            moved = np.where(start > top, 0, moved)
            kept = np.clip(np.minimum(length, 8 * size - start), 0, 64).astype(np.uint64)
            mask = np.where(kept > 63, ~np.uint64(0), (np.uint64(1) << np.minimum(kept, 63)) - np.uint64(1))
            return (moved & mask) | np.where(fill, ~mask, 0).astype(np.uint64)

        text = f"{'u' if sign == 'u' else 's'}{8 * size}"
        yield Case(
            f"bfe_rng_{text}", "bfe.ptx", {"TYPE": text, "TYPE_SIZE": str(size)}, ("input", "positions", "lengths"),
            with_fields(f"{sign}{size}"), f"{sign}{size}", field_of,
        )  # fmt: skip
    for size in (4, 8):

        def inserted(a: np.ndarray, b: np.ndarray, start: np.ndarray, length: np.ndarray, size=size) -> np.ndarray:
            start, length = (wide(y) & 0xFF if size == 4 else wide(y) for y in (start, length))
            kept = np.clip(np.minimum(length, 8 * size - start), 0, 64).astype(np.uint64)
            mask = np.where(kept > 63, ~np.uint64(0), (np.uint64(1) << np.minimum(kept, 63)) - np.uint64(1))
            by = np.minimum(start, 63).astype(np.uint64)
            return (b & ~(mask << by)) | ((a.astype(np.uint64) & mask) << by)

        yield Case(
            f"bfi_rng_b{8 * size}", "bfi.ptx", {"TYPE": f"b{8 * size}", "TYPE_SIZE": str(size)}, (*AB, "positions", "lengths"),
            with_fields(f"u{size}", f"u{size}"), f"u{size}", inserted,
        )  # fmt: skip
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        name = f"prmt_{mode}".rstrip("_")
        yield Case(name, "prmt.ptx", {"MODE": f".{mode}" if mode else ""}, NUMBERED, selectors, "u4", permutation(mode))


def with_fields(*types: str) -> Callable[[np.random.Generator, int], Arrays]:
    """Values, and a start and a length of 9 bits."""

    def generate(random: np.random.Generator, count: int) -> Arrays:
        return [*drawn(*types)(random, count), *random.integers(0, 512, (2, count), np.uint32)]

    return generate


def selectors(_: np.random.Generator, count: int) -> Arrays:
    """Two words that are always the same, and all selectors of 16 bits, which need 2^16 inputs."""
    one = np.ones(count, np.uint32)
    return [one * 0x04030201, one * 0x08070605, np.arange(count, dtype=np.uint32) & 0xFFFF]


ORDERS = {
    "f4e": [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)],
    "b4e": [(0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)],
    "rc8": [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)],
    "ecl": [(0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)],
    "ecr": [(0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)],
    "rc16": [(0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)],
}
"""Which of eight bytes prmt takes for each of the lower two bits of its selector, the lowest byte first."""


def permutation(mode: str) -> Callable[..., np.ndarray]:
    def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        octets = np.stack([a, b], axis=1).view(np.uint8)
        if mode:
            return np.take_along_axis(octets, np.array(ORDERS[mode])[c & 3], axis=1).astype(np.uint8).view(np.uint32)[:, 0]
        nibbles = (c[:, None] >> np.arange(0, 16, 4, dtype=np.uint32)) & 15
        taken = np.take_along_axis(octets, (nibbles & 7).astype(np.intp), axis=1)
        signs_of = np.where(taken & 0x80, 0xFF, 0)
        return np.where(nibbles & 8, signs_of, taken).astype(np.uint8).view(np.uint32)[:, 0]

    return expected


def carried(number: int) -> Callable[[np.random.Generator, int], Arrays]:
    """Words, and a carry."""

    def generate(random: np.random.Generator, count: int) -> Arrays:
        return [*drawn(*["u4"] * number)(random, count), random.integers(0, 2, count, np.uint32)]

    return generate


def carries() -> Iterator[Case]:
    """The sum or difference below, the carry that comes out above."""
    for (name, sub), out, text in product({"addc": False, "subc": True}.items(), (False, True), ("u32", "s32")):

        def expected(a: np.ndarray, b: np.ndarray, carry: np.ndarray, sub=sub, out=out) -> np.ndarray:
            total = wide(a) + (wide(b) ^ 0xFFFFFFFF if sub else wide(b)) + carry
            return (total & 0xFFFFFFFF) | (total >> 32 if out else wide(carry)) << 32

        placeholders = {"OP": name, "CC": ".cc" if out else "", "TYPE": text}
        title = f"{name}{'_cc' if out else ''}_{text}"
        yield Case(title, "addc_subc.ptx", placeholders, (*AB, "input_c"), carried(2), "i8", expected)
    for out, text in product((False, True), ("u32", "s32")):

        def multiplied(a: np.ndarray, b: np.ndarray, c: np.ndarray, carry: np.ndarray, out=out) -> np.ndarray:
            low = (a * b).astype(np.int64)
            total = low + wide(c) + carry
            return (total & 0xFFFFFFFF) | (total >> 32 if out else wide(carry)) << 32

        arguments = (*AB, "input_c", "input_d")
        placeholders = {"CC": ".cc" if out else "", "TYPE": text}
        yield Case(f"madc{'_cc' if out else ''}_{text}", "madc.ptx", placeholders, arguments, carried(3), "i8", multiplied)


def dot_products() -> Iterator[Case]:
    for name, a_type, b_type in product(("dp4a", "dp2a.lo", "dp2a.hi"), ("u32", "s32"), ("u32", "s32")):

        def expected(a: np.ndarray, b: np.ndarray, c: np.ndarray, name=name, signed=(a_type, b_type)) -> np.ndarray:
            size = 1 if name == "dp4a" else 2
            left = a.view(f"{'i' if signed[0] == 's32' else 'u'}{size}").reshape(len(a), -1)
            right = b.view(f"{'i' if signed[1] == 's32' else 'u'}1").reshape(len(b), -1)
            right = {"dp4a": right, "dp2a.lo": right[:, :2], "dp2a.hi": right[:, 2:]}[name]
            return wide(c) + (wide(left) * wide(right)).sum(axis=1)

        instruction = f"{name}.{a_type}.{b_type}"
        title = instruction.replace(".", "_")
        yield Case(title, "dot_product.ptx", {"DPINST": instruction}, NUMBERED, drawn("u4", "u4", "u4"), "u4", expected)


def properties() -> Iterator[Case]:
    tests: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "finite": lambda x, _: np.isfinite(x),
        "infinite": lambda x, _: np.isinf(x),
        "number": lambda x, _: ~np.isnan(x),
        "notanumber": lambda x, _: np.isnan(x),
        "normal": lambda x, least: (np.isfinite(x) & (abs(x) >= least)) | (x == 0),
        "subnormal": lambda x, least: (x != 0) & (abs(x) < least),
    }
    for (mode, test), size in product(tests.items(), (4, 8)):

        def expected(x: np.ndarray, test=test) -> np.ndarray:
            return test(x, np.finfo(x.dtype).tiny)

        def mixed(random: np.random.Generator, count: int, size=size) -> Arrays:
            (x,) = drawn(f"u{size}")(random, count)
            exponent = {4: 0xFF << 23, 8: 0x7FF << 52}[size]
            ends = np.where(np.arange(count) % 4 == 0, x & ~np.array(exponent, x.dtype), x | np.array(exponent, x.dtype))
            return [np.where(np.arange(count) % 2, x, ends).astype(x.dtype).view(f"f{size}")]

        placeholders = {"MODE": mode, "TYPE": f"f{8 * size}", "TYPE_SIZE": str(size)}
        yield Case(f"testp_{mode}_f{8 * size}", "testp.ptx", placeholders, ("input",), mixed, "u4", expected)


FAMILIES = (
    arithmetic, rounded_functions, approximations, signs, extremes, integers, bits, carries, dot_products, properties,
)  # fmt: skip
CASES = [case for family in FAMILIES for case in family()]
