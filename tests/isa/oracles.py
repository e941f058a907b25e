"""What instructions mean, written with Python's exact integers and fractions: the names that ``tests/isa`` expressions use.

Nothing here knows ptxemu.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from tests.support.elementwise_oracle import (  # noqa: F401
    BF16,
    F16,
    F32,
    F64,
    FORMATS,
    Format,
    arithmetic,
    convert,
    extreme,
    round_integer,
    signed,
    unsigned,
)  # fmt: skip
from tests.support.elementwise_oracle import clamp as clamp_integer
from tests.support.narrow_oracles import BITS as NARROW_BITS

ROUNDINGS = ("rn", "rz", "rm", "rp")
INTEGRAL = ("rni", "rzi", "rmi", "rpi")
SPECIAL_BITS = {"pred": 1, "tf32": 32, "f16x2": 32, "bf16x2": 32, "f32x2": 64, "u16x2": 32, "s16x2": 32, "u8x4": 32, "s8x4": 32,
                "bf16": 16, **NARROW_BITS}  # fmt: skip
ONES = {"u16": 0xFFFF, "s16": 0xFFFF, "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}
ORDER: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
Check = Callable[[int], bool]


# ---------------------------------------------------------------- types


def bits_of(type: str) -> int:
    return SPECIAL_BITS.get(type) or int(type[1:])


def wide(type: str) -> str:
    return f"{type[0]}{2 * bits_of(type)}"


def number(type: str, bits: int) -> int:
    """The value of a pattern; floats and packed types stay patterns."""
    return signed(bits, bits_of(type)) if type[0] == "s" and "x" not in type else bits


def same(type: str, got: int, want: int) -> bool:
    """Equal; any NaN equals any other in f64, whose payloads the manual leaves open."""
    return got == want or (type == "f64" and F64.is_nan(got) and F64.is_nan(want))


def clamp(x: int, type: str) -> int:
    return clamp_integer(x, type[0] == "s", bits_of(type))


def parts(x: int, type: str, count: int) -> list[int]:
    """The numbers packed in a register, lowest first."""
    bits = bits_of(type)
    return [number(type, x >> bits * i & ((1 << bits) - 1)) for i in range(count)]


def join(items: Sequence[int], bits: int) -> int:
    return sum((item & ((1 << bits) - 1)) << bits * i for i, item in enumerate(items))


def partwise(type: str, f: Callable[..., int], *xs: int) -> int:
    """``f`` on the numbers of a type in operands of 32 bits."""
    bits = bits_of(type)
    return join([f(*items) for items in zip(*(parts(x, type, 32 // bits) for x in xs), strict=True)], bits)


def carryless(a: int, b: int) -> int:
    """The product of polynomials over GF(2)."""
    product = 0
    for i in range(b.bit_length()):
        product ^= (a << i) * (b >> i & 1)
    return product


def wrap(x: int, type: str) -> int:
    return unsigned(x, bits_of(type))


# ---------------------------------------------------------------- integers


def add_chain(type: str, *terms: tuple[int, int]) -> tuple[int, ...]:
    """add.cc, addc.cc, ... on pairs of words, lowest first."""
    results, carry = [], 0
    for x, y in terms:
        total = wrap(x, type) + wrap(y, type) + carry
        results.append(total)
        carry = total >> bits_of(type)
    return tuple(results)


def sub_chain(type: str, *terms: tuple[int, int]) -> tuple[int, ...]:
    """sub.cc, subc.cc, ..."""
    results, borrow = [], 0
    for x, y in terms:
        total = wrap(x, type) - wrap(y, type) - borrow
        results.append(total)
        borrow = int(total < 0)
    return tuple(results)


def quotient(a: int, b: int) -> int:
    """Truncated; ones when dividing by zero, as the hardware has it."""
    if b == 0:
        return -1
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


def remainder(a: int, b: int) -> int:
    return a - b * quotient(a, b) if b else -1


def product24(a: int, b: int, type: str, mods: Sequence[str]) -> int:
    x, y = (signed(v, 24) if type[0] == "s" else unsigned(v, 24) for v in (a, b))
    exact = x * y
    return number(type, unsigned(exact >> 16 if "hi" in mods else exact, 32))


def product(a: int, b: int, type: str, mods: Sequence[str]) -> int:
    bits = bits_of(type)
    exact = a * b
    return exact >> bits if "hi" in mods else exact


def dot(a: int, b: int, c: int, types: tuple[str, str], count: int, first: int = 0) -> int:
    """dp4a and dp2a: ``count`` numbers of ``a`` by the bytes of ``b`` from ``first`` on."""
    left = parts(unsigned(a, 32), f"{types[0][0]}{32 // count}", count)
    right = parts(unsigned(b, 32), f"{types[1][0]}8", 4)[first : first + count]
    return c + sum(x * y for x, y in zip(left, right, strict=True))


def leading(x: int, type: str) -> int:
    """bfind: the highest bit that differs from the sign; -1 if none does."""
    return (~x if x < 0 else x).bit_length() - 1


def find_nth(mask: int, base: int, offset: int) -> int:
    """fns; the least offset gives what the machine code of NVIDIA's assembler does."""
    if offset == -(1 << 31):
        return 0
    if base > 31:
        return -1
    if offset == 0:
        return base if mask >> base & 1 else -1
    order = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [i for i in order if mask >> i & 1]
    return found[abs(offset) - 1] if abs(offset) <= len(found) else -1


def place(x: int, bits: int) -> int:
    """A position or a length in a word: its low 8 bits; in 64 bits, hardware takes all 32."""
    return x if bits == 64 else x & 255


def extract(a: int, position: int, length: int, type: str) -> int:
    """bfe, the manual's loop, with hardware's places."""
    bits = bits_of(type)
    a, top, position, length = unsigned(a, bits), bits - 1, place(position, bits), place(length, bits)
    sign = 0 if type[0] == "u" or length == 0 else a >> min(position + length - 1, top) & 1
    return sum((a >> (position + i) & 1 if i < length and position + i <= top else sign) << i for i in range(bits))


def insert(a: int, b: int, position: int, length: int, type: str) -> int:
    """bfi, the manual's loop, with hardware's places."""
    bits = bits_of(type)
    position, length = place(position, bits), place(length, bits)
    for i in range(max(0, min(length, bits - position))):
        b = b & ~(1 << position + i) | (a >> i & 1) << position + i
    return b


def amount(x: int, mods: Sequence[str]) -> int:
    return min(x, 32) if "clamp" in mods else x & 31


def extend(a: int, width: int, type: str) -> int:
    """szext."""
    field = unsigned(a, width) if width else 0
    return signed(field, width) if type == "s32" and width else field


def funnel(a: int, b: int, shift: int, mods: Sequence[str]) -> int:
    pool = b << 32 | a
    return pool << shift >> 32 if "l" in mods else pool >> shift


def lop3(a: int, b: int, c: int, table: int) -> int:
    minterms = [(a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c) for k in range(8)]
    return sum(0 if not table >> k & 1 else unsigned(minterms[k], 32) for k in range(8))


PERMUTATIONS = {
    "f4e": ["3210", "4321", "5432", "6543"], "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"], "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"], "rc16": ["1010", "3232", "1010", "3232"],
}  # fmt: skip


def permute(a: int, b: int, c: int, mods: Sequence[str]) -> int:
    """prmt."""
    mode = next((m for m in mods if m in PERMUTATIONS), None)
    picks = [int(d) for d in reversed(PERMUTATIONS[mode][c & 3])] if mode else [c >> 4 * i & 15 for i in range(4)]
    data = (b << 32 | a).to_bytes(8, "little")
    return join([(255 if data[i & 7] & 128 else 0) if i & 8 else data[i & 7] for i in picks], 8)


# ---------------------------------------------------------------- comparison


def compare(a: int, b: int, type: str, mods: Sequence[str]) -> bool:
    """The comparison named in ``mods``; floats by value, unordered forms true on NaN."""
    name = next(m for m in mods if m in ORDER or m in UNORDERED)
    if type not in FORMATS:
        return ORDER[name](a, b)
    f = FORMATS[type]
    if f.is_nan(a) or f.is_nan(b):
        return name == "nan" or (name != "num" and name.endswith("u"))
    if name in ("num", "nan"):
        return name == "num"

    def key(x: int) -> int:
        x = f.flush(x) if "ftz" in mods else x
        return -(x & (f.sign - 1)) if f.is_negative(x) else x

    return ORDER[name[:2]](key(a), key(b))


def combined(result: bool, mods: Sequence[str], c: bool) -> bool:
    name = next((m for m in mods if m in BOOLEAN), None)
    return BOOLEAN[name](result, c) if name else result


def set_value(type: str, result: bool) -> int:
    """What set writes: ones, or 1.0."""
    return ONES[type] if result else 0


def set_packed(target: str, type: str, mods: Sequence[str], c: bool, a: int, b: int) -> int:
    """set on two halves; integer results are 0xFFFF for each."""
    half = type[:-2]
    one = ONES[target[:-2]] if target.endswith("x2") else 0xFFFF
    results = [combined(compare(x, y, half, mods), mods, c) for x, y in zip(parts(a, half, 2), parts(b, half, 2), strict=True)]
    return join([one * r for r in results], 16)


# ---------------------------------------------------------------- floats


def rounding(mods: Sequence[str]) -> str:
    return next((m for m in mods if m in ROUNDINGS), "rn")


def floating(name: str, type: str, mods: Sequence[str], *xs: int) -> int:
    """One correctly rounded operation with the modifiers rounding, ftz, sat and relu."""
    if type.endswith("x2"):
        return pairwise_floats(type, lambda *items: floating(name, type[:-2], mods, *items), *xs)
    f = FORMATS[type]
    result = arithmetic(name, f, xs, rounding(mods), "ftz" in mods, "sat" in mods)
    return 0 if "relu" in mods and f.is_negative(result) else result


def guarded(type: str, mods: Sequence[str], a: int, b: int, c: int) -> int:
    """fma.oob: +0 if a factor is the NaN 0x7FF7 of either sign, which stands for what lies outside of a tensor."""
    if type.endswith("x2"):
        return pairwise_floats(type, lambda *items: guarded(type[:-2], mods, *items), a, b, c)
    return 0 if 0x7FF7 in (a & 0x7FFF, b & 0x7FFF) else floating("fma", type, mods, a, b, c)


def pairwise_floats(type: str, f: Callable[..., int], *xs: int) -> int:
    bits = bits_of(type) // 2
    low, high = ([x >> shift & ((1 << bits) - 1) for x in xs] for shift in (0, bits))
    return join([f(*low), f(*high)], bits)


def extreme_of(name: str, type: str, mods: Sequence[str], *xs: int) -> int:
    """min and max of two or three, with ftz, NaN, abs and xorsign.abs."""
    if type.endswith("x2"):
        return pairwise_floats(type, lambda *items: extreme_of(name, type[:-2], mods, *items), *xs)
    f = FORMATS[type]
    sign = 0
    if "xorsign" in mods:
        sign = (xs[0] ^ xs[1]) & f.sign
    if "ftz" in mods:
        xs = tuple(x if f.is_nan(x) else f.flush(x) for x in xs)
    if "abs" in mods:
        xs = tuple(x & ~f.sign for x in xs)
    result = xs[0]
    for x in xs[1:]:
        result = extreme(name, f, result, x, "NaN" in mods)
    if f.is_nan(result):
        return f.nan
    return result | sign


def negate(x: int, type: str, mods: Sequence[str]) -> Check | int:
    return _signed_copy(x, type, mods, lambda f, y: y ^ f.sign)


def absolute(x: int, type: str, mods: Sequence[str]) -> Check | int:
    return _signed_copy(x, type, mods, lambda f, y: y & ~f.sign)


def both(type: str, f: Callable[[int], Check | int], x: int) -> Check:
    """A function of each half."""
    bits = bits_of(type) // 2
    wanted = [f(half) for half in (x & (1 << bits) - 1, x >> bits)]

    def right(got: int) -> bool:
        halves = (got & (1 << bits) - 1, got >> bits)
        return all(w(h) if callable(w) else w == h for w, h in zip(wanted, halves, strict=True))

    right.__doc__ = ", ".join((w.__doc__ or "") if callable(w) else hex(w) for w in wanted)
    return right


def _signed_copy(x: int, type: str, mods: Sequence[str], change: Callable[[Format, int], int]) -> Check | int:
    if type.endswith("x2"):
        return both(type, lambda y: _signed_copy(y, type[:-2], mods, change), x)
    f = FORMATS[type]
    if f.is_nan(x):
        return f.is_nan if type == "f64" else f.nan  # which NaN is unspecified; hardware adds -0
    return change(f, f.flush(x) if "ftz" in mods else x)


def copysign(a: int, b: int, type: str) -> int:
    """``b`` with the sign of ``a``."""
    f = FORMATS[type]
    return b & ~f.sign | a & f.sign


def classified(x: int, type: str, mods: Sequence[str]) -> bool:
    """testp."""
    f = FORMATS[type]
    exponent = x & f.infinity
    return {
        "finite": exponent != f.infinity, "infinite": f.is_infinite(x), "number": not f.is_nan(x),
        "notanumber": f.is_nan(x), "normal": exponent not in (0, f.infinity) or f.is_zero(x),
        "subnormal": exponent == 0 and not f.is_zero(x),
    }[mods[0]]  # fmt: skip


# ---------------------------------------------------------------- cvt


def cvt(x: int, target: str, source: str, mods: Sequence[str]) -> int:
    """cvt between any two numbers. NaNs are canonical, but f32 and bf16 become f32 by moves, as in machine code."""
    if target == "f32" and source in ("f32", "bf16") and not {"ftz", "sat", *INTEGRAL} & set(mods):
        return x << 16 if source == "bf16" else x
    if source in FORMATS:
        return _from_float(x, target, FORMATS[source], mods)
    if target in FORMATS:
        f = FORMATS[target]
        result = f.round(Fraction(x), rounding(mods))
        return f.saturate(result) if "sat" in mods else result
    return clamp(x, target) if "sat" in mods else x


def _from_float(x: int, target: str, f: Format, mods: Sequence[str]) -> int:
    if "ftz" in mods and f is F32 and target != "f16" and not f.is_nan(x):  # from f32 to f16 hardware flushes nothing
        x = f.flush(x)
    integral = next((m for m in mods if m in INTEGRAL), None)
    if target in FORMATS:
        g = FORMATS[target]
        if integral and not f.is_nan(x) and not f.is_infinite(x):
            x = f.round(Fraction(round_integer(f.value(x), integral)), "rn", f.is_negative(x))
        return _finish(g, convert(f, replace(g, flushes="ftz" in mods and g is F32), x, rounding(mods)), mods)
    bits = bits_of(target)
    if f.is_nan(x):  # as measured on hardware
        return 1 << (bits - 1) if f is F64 or bits == 64 else 0
    if f.is_infinite(x):
        return clamp(-(1 << 99) if f.is_negative(x) else 1 << 99, target)
    return clamp(round_integer(f.value(x), str(integral)), target)


def _finish(g: Format, y: int, mods: Sequence[str]) -> int:
    if "sat" in mods:
        return g.saturate(y)
    if "satfinite" in mods and g.is_infinite(y):
        y -= 1
    return 0 if "relu" in mods and g.is_negative(y) else y


def cvt_pack(a: int, b: int, c: int, type: str) -> int:
    """cvt.pack: a above b above what is left of c."""
    bits = bits_of(type)
    return join([clamp(b, type), clamp(a, type)], bits) | c << 2 * bits


TF32 = Format(8, 10, 0x3FFFF)


def set_elements(type: str, mods: Sequence[str], a: int, b: int) -> int:
    """Each element of a packed type is all ones where the comparison holds."""
    element = type[:-2]
    bits = bits_of(element)
    pairs = zip(parts(a, element, 32 // bits), parts(b, element, 32 // bits), strict=True)
    return join([-int(compare(x, y, element, mods)) for x, y in pairs], bits)


def positive(x: int, bits: int = 16) -> int:
    """A pattern of a float, but +0 for -0 (``.pzo``)."""
    return 0 if x == 1 << bits - 1 else x


def cvt_tf32(x: int, mods: Sequence[str]) -> int:
    if F32.is_nan(x) and "rna" in mods:  # what ptxas composes cuts it, and takes a unit of tf32 from what is not finite then
        return (x & ~0x1FFF) - (0x2000 if "satfinite" in mods else 0)
    if F32.is_nan(x):
        return F32.nan & ~0x1FFF
    if "rna" in mods and not F32.is_infinite(x):  # ties away from zero: add half a unit to the magnitude and cut
        y = (x & ~F32.sign) + (1 << 12) >> 13 | (x & F32.sign) >> 13
    else:
        y = convert(F32, TF32, x, rounding(mods))
    if "satfinite" in mods and TF32.is_infinite(y):
        y -= 1
    return 0 if "relu" in mods and TF32.is_negative(y) else y << 13


# ---------------------------------------------------------------- threads


def special(field: int, thread: int, cta: int, block: tuple[int, int, int], grid: tuple[int, int, int]) -> int:
    """tid, ctaid (x, y, z each), ntid.x, nctaid.y, laneid, warpid, lanemask_lt, lanemask_ge of a thread."""
    lane = thread % 32
    tid = (thread % block[0], thread // block[0] % block[1], thread // block[0] // block[1])
    ctaid = (cta % grid[0], cta // grid[0] % grid[1], cta // grid[0] // grid[1])
    return (*tid, *ctaid, block[0], grid[1], lane, thread // 32, (1 << lane) - 1, 2**32 - (1 << lane))[field]


def collatz(n: int) -> int:
    """The steps from n to 1."""
    return 0 if n == 1 else 1 + collatz(3 * n + 1 if n % 2 else n // 2)


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """shfl, the manual's pseudo code: the source lane and whether it is in range."""
    segment, limit = c >> 8 & 31, c & 31
    most, least = lane & segment | limit & ~segment, lane & segment
    b &= 31
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment}[mode]
    inside = source >= most if mode == "up" else source <= most
    return (source if inside else lane), inside


# ---------------------------------------------------------------- memory


def slices(memory: int, type: str, count: int) -> tuple[int, ...] | int:
    """The first elements in memory."""
    items = parts(memory, type, count)
    return tuple(items) if count > 1 else items[0]


def sum_of_doubles(old: int, b: int) -> int:
    """In global memory, as an H200 was measured: a NaN stays what it is, the new one first."""
    nans = [x for x in (b, old) if F64.is_nan(x)]
    total = arithmetic("add", F64, (old, b))
    return nans[0] if nans else 0xFFF8000000000000 if F64.is_nan(total) else total


def atomic(op: str, old: int, b: int, type: str, c: int = 0, ftz: bool = False) -> int:
    """What an atomic operation leaves in memory."""
    if (op, type) == ("add", "f64"):
        return sum_of_doubles(old, b)
    if type.endswith("x2"):
        return pairwise_floats(type, lambda x, y: atomic(op, x, y, type[:-2], ftz=ftz), old, b)
    match op:
        case "add" if type in FORMATS:
            return arithmetic("add", FORMATS[type], (old, b), ftz=ftz)
        case "inc":
            return 0 if old >= b else old + 1
        case "dec":
            return b if old == 0 or old > b else old - 1
        case "exch":
            return b
        case "cas":
            return c if old == b else old
    if type in FORMATS:
        return extreme(op, FORMATS[type], old, b, False)
    functions: dict[str, Callable[[int, int], int]] = {
        "add": operator.add, "min": min, "max": max, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    }  # fmt: skip
    return functions[op](old, b)


ATOMICS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def modified(old: int, b: int, type: str, mods: Sequence[str], ftz: bool = False) -> int:
    """The pattern that the atomic operation among ``mods`` leaves in memory."""
    return wrap(atomic(next(m for m in mods if m in ATOMICS), old, b, type, ftz=ftz), type)


def modified_all(memory: int, items: Sequence[int], type: str, mods: Sequence[str], ftz: bool = False) -> int:
    """The same for each element of a vector in memory."""
    old = parts(memory, type, len(items))
    return join([modified(x, y, type, mods, ftz) for x, y in zip(old, items, strict=True)], bits_of(type))


# ---------------------------------------------------------------- surfaces

EXTENTS = {"1d": (64, 1, 1), "2d": (64, 5, 1), "3d": (64, 5, 3), "a1d": (64, 1, 3), "a2d": (64, 5, 3)}


def texel(x: int, y: int = 0, z: int = 0) -> int:
    """The byte at a position of the surfaces that suld reads; ``z`` is the slice or the layer."""
    return x * 7 + y * 31 + z * 101 + 5 & 255


def filled(i: int, geometry: str) -> int:
    """The same by flat index."""
    width, height, _ = EXTENTS[geometry]
    return texel(i % width, i // width % height, i // (width * height))


def loaded(type: str, count: int, mods: Sequence[str], x: int, y: int = 0, z: int = 0) -> tuple[int, ...]:
    """What suld.b gives for ``count`` elements at byte ``x``."""
    size = bits_of(type) // 8 * count
    geometry = first_of(mods, tuple(EXTENTS))
    width, height, depth = EXTENTS[geometry]
    outside = not (0 <= x <= width - size and 0 <= y < height and 0 <= z < depth)
    if outside and "clamp" not in mods:
        return (0,) * count
    last = depth - 1
    z = last if geometry.startswith("a") and z < 0 else max(0, min(z, last))  # a layer is unsigned
    x, y = max(0, min(x, width - size)), max(0, min(y, height - 1))
    return tuple(parts(join([texel(x + k, y, z) for k in range(size)], 8), type, count))


def first_of(mods: Sequence[str], names: Sequence[str]) -> str:
    return next(m for m in mods if m in names)
