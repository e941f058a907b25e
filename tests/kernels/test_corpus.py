"""Modules as real compilers write them: what they compute is what their sources say.

The sources lie beside the PTX in ``data/corpus``; they are the specification of what the kernels compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from tests.support.places import CORPUS

pytestmark = pytest.mark.filterwarnings("error::ptxemu.DtypeWarning")


def load(name: str) -> ptxemu.Module:
    return ptxemu.load(CORPUS / f"{name}.ptx")


def launch(name: str, kernel: str, grid: object, block: object, *args: object, **options: object) -> None:
    load(name)[kernel][grid, block](*args, **options)


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("grid", "block"), [(3, 128), (1, 33), (40, 64)])
def test_saxpy(grid: int, block: int) -> None:
    x, y = random(1).random((2, 1000), np.float32)
    expected = np.float32(2.5) * x.astype(np.float64) + y
    launch("saxpy", "saxpy", grid, block, 1000, 2.5, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_llvmlite_saxpy() -> None:
    x, y = random(2).random((2, 100), np.float32)
    expected = np.float32(3) * x.astype(np.float64) + y
    launch("llvmlite_saxpy", "saxpy_ll", 1, 100, x, y, 3.0)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_triton_saxpy() -> None:
    x, y = random(3).random((2, 1000), np.float32)
    expected = np.float32(3) * x.astype(np.float64) + y
    launch("triton_saxpy", "saxpy", 4, 128, x, y, 3.0, 1000, None, None)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_shared_reduce() -> None:
    x = random(4).integers(0, 100, 5000).astype(np.float32)
    out = np.zeros(7, np.float32)
    launch("shared_reduce", "reduce", 7, 256, x, out, x.size)
    padded = np.resize(np.concatenate([x, np.zeros(7 * 256 - x.size % (7 * 256))]), (-(-x.size // 1792), 7, 256))
    np.testing.assert_array_equal(out, padded.sum((0, 2)))


@pytest.mark.parametrize("n", [16, 48])
def test_matmul(n: int) -> None:
    a, b = random(5).integers(-8, 8, (2, n, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    launch("matmul_tiled", "matmul", (n // 16, n // 16), (16, 16), a, b, c, n)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize(("block", "n"), [(70, 70), (64, 40), (1, 1)])
def test_dynamic_shared(block: int, n: int) -> None:
    x, out = random(6).random(block), np.zeros(block)
    launch("dyn_shared", "rev", 1, block, x, out, n, shared=12 * block)
    np.testing.assert_array_equal(out, np.where(np.arange(block) < n, x, 0)[::-1])


def mandelbrot(x: int, y: int, w: int, h: int, limit: int) -> int:
    f = np.float32
    cr, ci = f(f(3) * f(x) / f(w)) - f(2), f(f(2) * f(y) / f(h)) - f(1)
    zr = zi = f(0)
    k = 0
    while k < limit and zr * zr + zi * zi < f(4):
        zr, zi = zr * zr - zi * zi + cr, f(2) * zr * zi + ci
        k += 1
        if not (k == 7 and x & 1) and zr > f(1e6):
            break
    return k


@pytest.mark.parametrize("block", [(8, 8), (16, 3), (32, 4), (5, 7)])
def test_mandelbrot(block: tuple[int, int]) -> None:
    w, h, limit = 37, 21, 60
    image = np.zeros((h, w), np.uint8)
    launch("divergence", "mandel", (-(-w // block[0]), -(-h // block[1])), block, image, w, h, limit)
    expected = np.array([[mandelbrot(x, y, w, h, limit) for x in range(w)] for y in range(h)])
    assert np.mean(image != expected) < 0.02  # points on the border escape one step sooner or later with fused arithmetic
    np.testing.assert_array_equal(image[expected < 5], expected[expected < 5])


def test_const_and_global_variables() -> None:
    module = load("const_global")
    out, pointed = np.zeros(32, np.float32), np.zeros(32)
    module.get_global("cfg").array[...] = 10
    device = module.device
    buffer = device.to_device(pointed)
    module.get_global("ptr").array.view(np.uint64)[...] = buffer.address
    module["cgk2"][1, 32](out, 20)
    i = np.arange(20)
    table = np.array([[1, 2, 3], [4, 5, 6], [0, 0, 0], [0, 0, 0]])
    expected = ((i & 7) + 1) * 10 + table[i & 3, i % 3] + np.array([ord(c) for c in "ptx"])[i % 3]
    np.testing.assert_array_equal(out, np.concatenate([expected, np.zeros(12)]))
    np.testing.assert_array_equal(buffer.array[:20], expected)
    assert module.get_global("counter").array == 20
    assert module.get_global("man").array == 6  # all threads of a warp read 5 and write 6


def test_clang_kernels() -> None:
    data = np.arange(64, dtype=np.int32) ** 2
    expected = data[::-1].copy()
    launch("clang_cuda", "rev", 1, 64, data, 64)
    np.testing.assert_array_equal(data, expected)
    m, v = random(7).integers(-9, 9, (40, 4)).astype(np.float32), np.array([1, -2, 3, 4], np.float32)
    out, count = np.zeros(40, np.float32), np.zeros(1, np.int32)
    launch("clang_cuda", "mv", 1, 40, m, v, out, count)
    np.testing.assert_array_equal(out, m @ v)
    assert count[0] == 40


def test_atomics_on_shared_memory() -> None:
    data = random(8).integers(3, 200, 3000, dtype=np.uint8)
    histogram = np.zeros(256, np.uint32)
    f, d, u = np.zeros(1, np.float32), np.zeros(1), np.zeros(1, np.uint64)
    extremes = np.array([2**31 - 1, -(2**31) + 1], np.int32)
    launch("atomics_shared", "hist", 3, 128, data, data.size, histogram, f, d, u, extremes)
    np.testing.assert_array_equal(histogram, np.bincount(data, minlength=256))
    total = int(data.sum(dtype=np.int64))
    assert (f[0], d[0], u[0]) == (total, total, total)  # exact: all partial sums are below 2**24
    assert extremes.tolist() == [data.min(), data.max()]


def test_barriers() -> None:
    n, limit = 128, 50
    out = np.zeros((4, n), np.int32)
    launch("barriers", "bars", 1, n, out, limit)
    t = np.arange(n)
    np.testing.assert_array_equal(out, [np.full(n, limit), np.zeros(n), np.ones(n), t ^ 1])


def test_vector_loads_and_stores() -> None:
    n = 48
    rng = random(9)
    a, c = rng.random((n, 4), np.float32), rng.integers(0, 255, (n, 4), dtype=np.uint8)
    o, s = np.zeros((4 * n, 4), np.float32), np.zeros((n, 2), np.int16)
    d, u = rng.random((n, 2)), rng.integers(0, 2**63, (n, 2), dtype=np.uint64)
    expected_d, expected_u = d[:, ::-1].copy(), np.stack([u[:, 1], np.arange(n, dtype=np.uint64)], 1)
    launch("vector_ldst", "vls", 1, n, a, o, c, s, d, u, n)
    added = a + np.array([1, 0, 0, 0], np.float32)
    np.testing.assert_array_equal(o[:n], added)
    np.testing.assert_array_equal(o[n : 2 * n], added)
    np.testing.assert_array_equal(o[2 * n : 3 * n], a)
    np.testing.assert_array_equal(o[3 * n :], np.stack([a[:, 3], a[:, 0], a[:, 1], 0 * a[:, 0]], 1))
    wide = c.astype(np.int16)
    np.testing.assert_array_equal(s, np.stack([wide[:, 0] + wide[:, 1], wide[:, 2] - wide[:, 3]], 1))
    np.testing.assert_array_equal(d, expected_d)
    np.testing.assert_array_equal(u, expected_u)


def opaque(a: int) -> int:
    return a * 17 ^ 5


def switch_case(value: int, i: int) -> int:
    cases: dict[int, Callable[[], int]] = {
        0: lambda: opaque(i), 1: lambda: i - 3, 2: lambda: opaque(i * i) + 7, 3: lambda: 7, 4: lambda: i // 3,
        5: lambda: sum(map(opaque, range(i))), 6: lambda: ~i, 7: lambda: 1000 + i + 1, 8: lambda: i.bit_count(),
        100: lambda: -1,
    }  # fmt: skip
    return cases.get(value, lambda: -2)()


def test_switch() -> None:
    n = 100
    choice = random(10).choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, -1], n).astype(np.int32)
    out = np.concatenate([1000 + np.arange(n), [0, 0]]).astype(np.int32)
    launch("switch_brx", "sw", 4, 32, choice, out, n)
    np.testing.assert_array_equal(out[:n], [switch_case(int(v), i) for i, v in enumerate(choice)])
    assert out[n + 1] == np.sum(choice == 4)
    assert out[n] in np.flatnonzero(choice == 1) - 3


def test_local_arrays() -> None:
    n, threads = 40, 40
    x = random(11).integers(-1000, 1000, n, dtype=np.int32)
    out = np.zeros(2 * n, np.int32)
    launch("local_arrays", "loc", 1, threads, x, out, n)
    expected = np.zeros_like(out)
    for i in range(threads):
        a = sorted(int(x[(i * 64 + k) % n]) for k in range(64))
        b = [(a[4 * k] + k + 128) % 256 - 128 for k in range(16)]
        expected[i] = a[x[0] & 63] + sum(b[k * 7 & 15] for k in range(n % 16))
        a[i & 63] = 5
        expected[n + i] = a[(i + x[1]) & 63]
    np.testing.assert_array_equal(out, expected)


def integer(value: float, how: Callable[[float], float], low: int, high: int, nan: int) -> int:
    """A float as an integer the way cvt does it: rounded, saturated, a NaN as the manual has it (PTX ISA "cvt")."""
    if math.isnan(value):
        return nan
    value = how(value) if math.isfinite(value) else value
    return int(max(low, min(high, math.trunc(value)))) if math.isfinite(value) else (low if value < 0 else high)


def test_conversions() -> None:
    n = 32
    edges = [0.5, -0.5, 1.5, 2.5, -2.5, 3e9, -3e9, np.inf, -np.inf, np.nan, 1e-30, 255.9, -1.5, 100.25, 7, 8]
    f = np.array(edges * 2, np.float32)
    d = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 3e10, -3e10, 1e19, -1e19, np.nan, 1e-300, 0.1, -1.7, 123456789.123, 7, 1e9] * 2)
    z = random(12).integers(-(2**31), 2**31, n).astype(np.int32)
    o, g = np.zeros((10, n), np.int32), np.zeros((5, n), np.float32)
    wide, small = np.zeros((3, n), np.int64), np.zeros((2, n), np.uint8)
    launch("cvt", "cv", 1, n, f, d, z, o, g, wide, small, n)
    limits = {"s32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "s64": (-(2**63), 2**63 - 1), "u64": (0, 2**64 - 1)}

    def convert(values: NDArray[np.floating], to: str, how: Callable[[float], float] = float) -> NDArray[np.int64]:
        wide = values.dtype == np.float64 or to.endswith("64")
        nan = -1 << int(to[1:]) - 1 if wide else 0
        numbers = [integer(float(value), how, *limits[to], nan) for value in values]
        bits = int(to[1:])
        return np.array([(n + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for n in numbers])

    np.testing.assert_array_equal(o[0], convert(f, "s32"))
    np.testing.assert_array_equal(o[1], convert(f, "s32", round))
    np.testing.assert_array_equal(o[2], convert(f, "s32", math.ceil))
    np.testing.assert_array_equal(o[3], convert(f, "s32", math.floor))
    np.testing.assert_array_equal(o[4], convert(f, "u32"))
    np.testing.assert_array_equal(o[5], convert(d, "s32"))
    np.testing.assert_array_equal(o[6], convert(d, "s32", round))
    np.testing.assert_array_equal(o[7], z.astype(np.int16))
    np.testing.assert_array_equal(o[8], z.astype(np.int8))
    np.testing.assert_array_equal(o[9], f.view(np.int32) * ~np.isnan(f) + 0x7FC00000 * np.isnan(f))
    np.testing.assert_array_equal(wide[0], convert(f, "s64"))
    np.testing.assert_array_equal(wide[1], convert(d, "s64", math.floor))
    np.testing.assert_array_equal(wide[2], convert(d, "u64"))
    real = ~np.isnan(d)
    np.testing.assert_array_equal(g[0], d.astype(np.float32))
    np.testing.assert_array_equal(g[4], z.astype(np.uint8).astype(np.float32))
    np.testing.assert_array_equal(small[1], z.astype(np.uint8))
    below, above = np.abs(g[1][real]), np.nextafter(np.abs(g[1][real]), np.float32(np.inf))
    assert np.all(below <= np.abs(d[real])) and np.all(above > np.abs(d[real]))
    up = np.array([np.float32(v) if float(np.float32(v)) >= v else np.nextafter(np.float32(v), np.float32(np.inf)) for v in z])
    np.testing.assert_array_equal(g[2], up)
    np.testing.assert_array_equal(g[3], wide[0].astype(np.float32))


def test_integer_operations() -> None:
    n = 32
    x = random(13).integers(0, 2**32, (2, n), dtype=np.uint32)
    out, q = np.zeros((24, n), np.uint32), np.zeros((5, n), np.uint64)
    launch("int_ops", "io", 1, n, x, out, q, n)
    for i in range(n):
        a, b = int(x[0, i]), int(x[1, i])
        np.testing.assert_array_equal(out[:, i], [value % 2**32 for value in integer_results(a, b, i)], err_msg=f"{i}")
        w = a << 32 | b
        m = w * w + w & 2**128 - 1
        bits = w.bit_count() + 64 - w.bit_length() + int(f"{w:064b}"[::-1], 2)
        expected = [w // (b | 1), w * w >> 64, bits, m >> 64, m // (b | 1)]
        assert [int(value) for value in q[:, i]] == [value % 2**64 for value in expected]


def integer_results(a: int, b: int, i: int) -> list[int]:
    """The rows of ``int_ops``, in their order."""
    sa, sb = a - (a >> 31 << 32), b - (b >> 31 << 32)

    def signed(value: int, bits: int) -> int:
        value %= 1 << bits
        return value - (value >> bits - 1 << bits)

    def parts(value: int, bits: int) -> list[int]:
        return [signed(value >> shift, bits) for shift in range(0, 32, bits)]

    selector, bytes_of = 0x3210 ^ i, (b << 32 | a).to_bytes(8, "little")
    permuted = bytes(bytes_of[selector >> 4 * k & 7] for k in range(4))
    quotient = abs(sa) % abs(sb | 1)
    return [
        a.bit_count(), 32 - a.bit_length(), int(f"{a:032b}"[::-1], 2), (a & -a).bit_length(),
        int.from_bytes(permuted, "little"), a * b >> 32, sa * sb >> 32, signed(a, 24) * signed(b, 24),
        abs(sa - sb) + 3, (b << 32 | a) << (i & 31) >> 32, (b << 32 | a) >> min(i, 32),
        sum(p * q for p, q in zip(parts(a, 8), parts(b, 8))) + 7,
        sum(p * q for p, q in zip(parts(a, 16), parts(b, 8))) + 7, a // (b | 1), quotient if sa >= 0 else -quotient,
        sum(((a >> s) + (b >> s) & 255) << s for s in range(0, 32, 8)),
        sum(abs(p - q) << 16 * k for k, (p, q) in enumerate(zip(parts(a, 16), parts(b, 16)))),
        a >> (i & 31) | b << (i & 31), sa >> 3, (sa + sb) >> 1, (min(sa, sb) ^ max(a, b)), abs(sa),
        (a & b) ^ (a | ~b), a >> 5 & 0x3FF,
    ]  # fmt: skip


def test_float_functions() -> None:
    """Compiled with -use_fast_math: approximations within a few parts in a million of NumPy's doubles."""
    n = 64
    x = np.linspace(0.05, 3.0, n, dtype=np.float32)
    out = np.zeros((24, n), np.float32)
    launch("float_math", "fm", 2, 32, x, out, n)
    v = x.astype(np.float64)
    rows = {
        0: np.sin(v), 1: np.cos(v), 2: np.exp(v), 3: np.log(v), 4: v**1.5, 5: np.tanh(v), 6: np.sqrt(v), 7: v**-0.5,
        8: 1 / v, 9: np.fmod(v, np.float32(0.7)), 10: np.sin(v), 11: np.exp(v), 12: np.log2(v), 13: v / 3, 14: 1 / v,
        15: np.sqrt(v), 16: v + np.float32(0.1), 17: np.clip(v, 0, 1), 19: -v, 20: v, 21: 0 * v, 22: 8 * v, 23: np.cbrt(v),
    }  # fmt: skip
    for row, expected in rows.items():
        loose = 2e-3 if row == 5 else 1e-5
        np.testing.assert_allclose(out[row], expected, rtol=loose, atol=5e-6, err_msg=f"row {row}")
    away = np.trunc(v + np.copysign(0.5, v))
    np.testing.assert_allclose(out[18], np.floor(v) + np.ceil(v) + np.trunc(v) + np.rint(v) + away)


def test_reductions_without_results() -> None:
    i, u = np.array([0, 9, -9, 0xFF, 0, 3], np.int32), np.array([6, 1, 5, 9, 1], np.uint32)
    q, f, d = np.array([1, 2], np.uint64), np.zeros(1, np.float32), np.zeros(1)
    launch("red_noret", "red_all", 2, 48, i, u, q, f, d, 5)
    inc = 6
    for _ in range(96):
        inc = 0 if inc >= 7 else inc + 1
    dec = 1
    for _ in range(96):
        dec = 7 if dec == 0 or dec > 7 else dec - 1
    assert i.tolist() == [480, 5, 5, 5, 5, 3]
    assert u.tolist() == [inc, dec, 485, 5, 5]
    assert (q.tolist(), f[0], d[0]) == ([481, 5], 480, 480)


def test_llc_atomics() -> None:
    a, d, c = np.array([1], np.uint32), np.array([0.5]), np.array([0], np.uint64)
    launch("llc_atomics", "atoms", 2, 40, a, d, c)
    assert (a[0], d[0], c[0]) == (1 + 2 * sum(range(40)), 80.5, 7)


def test_red_instructions() -> None:
    u = np.array([1, 0, 9, 0, 2, 0, 0, 0], np.uint32)
    s = np.array([9, -9, 0xFF, 0, 0], np.int32)
    q, f, d = np.array([1, 0, 2**62, 8], np.uint64), np.zeros(1, np.float32), np.zeros(1)
    launch("red_asm", "red_asm", 1, 33, u, s, q, f, d, 3)
    count, inc, dec = 33, 0, 9
    for _ in range(count):
        inc = 0 if inc >= 3 else inc + 1
        dec = 3 if dec == 0 or dec > 3 else dec - 1
    assert u[[0, 1, 2, 4, 6, 7]].tolist() == [1 + 3 * count, inc, dec, 2 + 3 * count, 3 * count, 3]
    assert s.tolist() == [3, 3, 3, 3, 3]
    assert q.tolist() == [1 + 3 * count, 3, 3, 11]
    assert (f[0], d[0]) == (3 * count, 3 * count)


def test_printf_assert_and_trap() -> None:
    module = load("printf_assert")
    written: list[str] = []
    module["pr"][1, 3](5, 2.5, None, printf=written.append)
    text = "".join(written)
    for thread in range(3):
        assert f"thread {thread} of 3: a=5 d=2.500000 p=" in text
    assert text.count("no args\n") == 3 and "100%\n" in text
    with pytest.raises(ptxemu.Fault, match="a != 13"):
        module["pr"][1, 1](13, 0.0, None, printf=written.append)
    with pytest.raises(ptxemu.Fault, match="trap"):
        module["pr"][1, 1](14, 0.0, None, printf=written.append)
    module["pr"][1, 1](15, 0.0, None, printf=written.append)


def test_special_registers() -> None:
    out, q = np.zeros((7, 32), np.uint32), np.zeros(6, np.uint64)
    launch("special_regs", "sr", 1, 32, out, q, shared=64)
    lanes = np.arange(32)
    np.testing.assert_array_equal(out[0], lanes)
    np.testing.assert_array_equal(out[1], 0)
    np.testing.assert_array_equal(out[2], (1 << lanes) - 1)
    assert np.all(out[3] < out[4])
    np.testing.assert_array_equal(out[5], 64)
    assert np.all(out[6] >= 64)
    assert q[3] == 1 and q[4] == 1 + 0 + 0 + 1


def shuffled(name: str, t: int, argument: int, width: int) -> int:
    """The lane that CUDA's shuffles read; a lane outside the segment reads itself."""
    base, lane = t & ~(width - 1), t & (width - 1)
    source = {
        "index": argument & (width - 1), "up": lane - argument, "down": lane + argument, "xor": lane ^ argument,
    }[name]  # fmt: skip
    if name == "xor":
        source_lane = t ^ argument
        return source_lane if source_lane < base + width else t
    return base + source if 0 <= source < width else t


def test_shuffles() -> None:
    n = 32
    out, f = np.zeros((9, n), np.int32), np.arange(n, dtype=np.float32) + 0.5
    d, wide = np.arange(n) * 1.25, np.arange(n, dtype=np.int64) << 33
    before = f.copy(), d.copy(), wide.copy()
    launch("shuffles", "shfl", 1, n, out, f, d, wide)
    cases = [
        ("index", 5, 32), ("next", 0, 8), ("up", 2, 32), ("up", 1, 4), ("down", 2, 32), ("down", 3, 16), ("xor", 1, 32),
        ("xor", 9, 16),
    ]  # fmt: skip
    for row, (name, argument, width) in enumerate(cases):
        how = "index" if name == "next" else name
        expected = [3 * shuffled(how, t, t + 1 if name == "next" else argument, width) for t in range(n)]
        np.testing.assert_array_equal(out[row], expected, err_msg=name)
    t = np.arange(n)
    np.testing.assert_array_equal(out[8], np.where(t & 1, 3, 2))
    np.testing.assert_array_equal(f, before[0][t ^ 16])
    np.testing.assert_array_equal(d, before[1][np.where(t + 7 < 32, t + 7, t)])
    np.testing.assert_array_equal(wide, before[2][np.where(t >= 3, t - 3, t)])


def test_votes() -> None:
    n, limit = 64, 6
    out = np.zeros((13, n), np.uint32)
    launch("votes", "votes", 1, n, out, limit)
    t = np.arange(n)
    for warp in range(2):
        lanes = t[32 * warp : 32 * warp + 32]
        p = lanes * 7 % 13 < limit
        ballot = sum(1 << int(k) for k in np.flatnonzero(p))
        rows = out[:, lanes]
        assert np.all(rows[0] == 0) and np.all(rows[1] == 1) and np.all(rows[2] == ballot)
        same = [sum(1 << k for k in range(32) if lanes[k] % 5 == lane % 5) for lane in lanes]
        np.testing.assert_array_equal(rows[3], same)
        np.testing.assert_array_equal(rows[4], 0)  # the full mask plus the predicate 1 wraps
        np.testing.assert_array_equal(rows[5], np.where(p, ballot, 0))
        np.testing.assert_array_equal(rows[6], lanes.sum())
        np.testing.assert_array_equal(rows[7], lanes.min())
        np.testing.assert_array_equal(rows[8], lanes.max())
        np.testing.assert_array_equal(rows[9], np.bitwise_xor.reduce(lanes))
        third = [sum(1 << k for k in range(32) if lanes[k] % 3 == lane % 3) for lane in lanes]
        np.testing.assert_array_equal(rows[10], third)
        ones = [k for k in range(32) if 0x0F0F0F0F >> k & 1]
        # fns with base 0 finds the (offset)-th set bit, counted from 1; offset 0 is bit 0 itself
        expected = [ones[0] if lane % 8 == 0 else ones[lane % 8 - 1] for lane in lanes]
        np.testing.assert_array_equal(rows[11], expected)
