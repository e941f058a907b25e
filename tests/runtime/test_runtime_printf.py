"""vprintf: every conversion against Python's own formatting (and libc's, where Python has none)."""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from ptxemu.device.arena import Arena
from ptxemu.text.errors import Fault
from tests.runtime.runtime_harness import I32, I64, Code, Kernel


@pytest.fixture
def arena() -> Iterator[Arena]:
    arena = Arena(1 << 28)
    yield arena
    arena.close()


def put(arena: Arena, data: bytes) -> int:
    address = arena.alloc(max(len(data), 1))
    arena.view(address, max(len(data), 1))[: len(data)] = np.frombuffer(data, np.uint8)
    return address


def build(c: Code) -> None:
    """vprintf(p0 + lane * p3, p1 + lane * p4) for the lanes of p5; results to p2[lane]."""
    formats, args = c.b.alloca(I64, 32), c.b.alloca(I64, 32)
    with c.loop(32) as lane:
        wide = c.b.zext(lane, I64)
        c.b.store(c.b.add(c.param(0), c.b.mul(wide, c.param(3))), c.at(formats, lane, I64))
        c.b.store(c.b.add(c.param(1), c.b.mul(wide, c.param(4))), c.at(args, lane, I64))
    c.call("pe_vprintf", 21, c.param(5, I32), formats, args, c.pointer(c.param(2)))


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return Kernel(build)


def pack(arena: Arena, values: list[object]) -> bytes:
    """The argument buffer as nvcc stores it: int (4), ("l", int) (8), float (8), str (pointer)."""
    data = b""
    for value in values:
        if isinstance(value, int):
            item = struct.pack("<I", value & 0xFFFFFFFF)
        elif isinstance(value, tuple):
            item = struct.pack("<Q", value[1] & 0xFFFFFFFFFFFFFFFF)
        elif isinstance(value, float):
            item = struct.pack("<d", value)
        else:
            assert isinstance(value, str)
            item = struct.pack("<Q", put(arena, value.encode() + b"\0"))
        data += bytes(-len(data) % len(item)) + item
    return data


def printed(arena: Arena, kernel: Kernel, format: str, values: list[object]) -> tuple[str, int]:
    result = arena.alloc(128)
    text: list[str] = []
    kernel(arena, put(arena, format.encode() + b"\0"), put(arena, pack(arena, values)), result, 0, 0, 1, printf=text.append)
    return "".join(text), int(arena.view(result, 4).view(np.int32)[0])


INTEGERS = [0, 1, -1, 42, -12345, 2**31 - 1, -(2**31)]
FLAGS = ["", "-", "+", " ", "0", "#", "-+", "+0", "# ", "-#0"]
FLOATS = [0.0, -0.0, 1.0, -1.5, 3.14159265358979, 1e300, 1e-310, 123456.789]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("size", ["", "8", ".5", "12.3", ".0", "3."])
def test_integers(arena: Arena, kernel: Kernel, flags: str, size: str) -> None:
    libc = ctypes.CDLL(None)
    formats: list[str] = []
    values: list[object] = []
    expected: list[str] = []
    for conversion, length in itertools.product("diuoxX", ["", "h", "hh", "l", "ll"]):
        wide = length[:1] == "l"
        for value in [*INTEGERS, 2**40 + 7] if wide else INTEGERS:
            formats.append(f"<%{flags}{size}{length}{conversion}>")
            values.append(("l", value) if wide else value)
            buffer = ctypes.create_string_buffer(64)
            libc.snprintf(buffer, 64, formats[-1].encode(), (ctypes.c_long if wide else ctypes.c_int)(value))
            expected.append(buffer.value.decode())
    assert printed(arena, kernel, "\n".join(formats), values) == ("\n".join(expected), len(values))


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("size", ["", "14", ".3", "20.10", ".0"])
def test_floats(arena: Arena, kernel: Kernel, flags: str, size: str) -> None:
    formats = [f"%{flags}{size}{conversion}" for conversion in "feEgGF"]
    text, count = printed(arena, kernel, "|".join(formats * len(FLOATS)), [f for f in FLOATS for _ in formats])
    assert text == "|".join(format % value for value in FLOATS for format in formats)
    assert count == len(formats) * len(FLOATS)


def test_infinities_and_nan(arena: Arena, kernel: Kernel) -> None:
    """Padding is never zeros (C17 7.21.6.1)."""
    text, _ = printed(arena, kernel, "%f|%08F|%+g|%-6e|%08f", [math.inf, -math.inf, math.inf, math.inf, math.nan])
    assert text == "inf|    -INF|+inf|inf   |     nan"


def test_hexadecimal_floats(arena: Arena, kernel: Kernel) -> None:
    for value in (1.0, -0.1, 1e300, 5e-324):
        text, _ = printed(arena, kernel, "%a %.20f", [value, value])
        shown, decimal = text.split()
        assert float.fromhex(shown) == value
        assert decimal == f"{value:.20f}"


def test_mixed_arguments_are_aligned(arena: Arena, kernel: Kernel) -> None:
    values: list[object] = [1, 2.5, 3, ("l", -4), "five", 6, 7, 8.0]
    text, count = printed(arena, kernel, "%d %g %d %ld %s %d %d %g\n", values)
    assert (text, count) == ("1 2.5 3 -4 five 6 7 8\n", 8)


def test_strings_and_characters(arena: Arena, kernel: Kernel) -> None:
    values: list[object] = ["abc", "abcdef", "abc", "abc", "", 65]
    text, count = printed(arena, kernel, "[%s] [%.3s] [%6s] [%-6s] [%s] %c%%", values)
    assert (text, count) == ("[abc] [abc] [   abc] [abc   ] [] A%", 6)
    assert printed(arena, kernel, "%s", [("l", 0)])[0] == "(null)"
    assert printed(arena, kernel, "ünïcödé %s", ["→"])[0] == "ünïcödé →"


def test_pointers(arena: Arena, kernel: Kernel) -> None:
    assert printed(arena, kernel, "%p", [("l", 0x7FFF12345678)])[0] == "0x7fff12345678"


def test_star_width_and_precision(arena: Arena, kernel: Kernel) -> None:
    text, count = printed(arena, kernel, "[%*d] [%*d] [%.*f] [%*.*f] [%.*f]", [6, 1, -6, 2, 2, 3.14159, 9, 1, 2.55, -1, 0.5])
    assert text == f"[     1] [2     ] [3.14] [{2.55:9.1f}] [0.500000]"
    assert count == 11


def test_without_arguments(arena: Arena, kernel: Kernel) -> None:
    assert printed(arena, kernel, "hello\n", []) == ("hello\n", 0)
    assert printed(arena, kernel, "", []) == ("", 0)
    assert printed(arena, kernel, "100%% %", []) == ("100% %", 0)
    assert printed(arena, kernel, "%k %5", []) == ("%k %5", 0)


def test_huge_width_is_bounded(arena: Arena, kernel: Kernel) -> None:
    text, _ = printed(arena, kernel, "%999999999d", [1])
    assert len(text) == 65536
    assert text.strip() == "1"


def test_every_lane_of_the_mask_in_order(arena: Arena, kernel: Kernel) -> None:
    result = arena.alloc(128)
    arena.view(result, 128).view(np.int32)[:] = 99
    args = put(arena, struct.pack("<32i", *range(32)))
    text: list[str] = []
    mask = 0xF00F0F35
    kernel(arena, put(arena, b"%d,\0"), args, result, 0, 4, mask, printf=text.append)
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    assert "".join(text) == "".join(f"{lane}," for lane in lanes)
    expected = [1 if mask >> lane & 1 else 99 for lane in range(32)]
    assert arena.view(result, 128).view(np.int32).tolist() == expected


def test_null_format(arena: Arena, kernel: Kernel) -> None:
    result = arena.alloc(128)
    kernel(arena, 0, 0, result, 0, 0, 1)
    assert arena.view(result, 4).view(np.int32)[0] == -1


def print_line(c: Code) -> None:
    """vprintf(p0, p1) for every lane."""
    formats, args, result = c.b.alloca(I64, 32), c.b.alloca(I64, 32), c.b.alloca(I32, 32)
    with c.loop(32) as lane:
        c.b.store(c.param(0), c.at(formats, lane, I64))
        c.b.store(c.param(1), c.at(args, lane, I64))
    c.call("pe_vprintf", 21, -1, formats, args, result)


def test_lines_of_many_warps_stay_whole(arena: Arena) -> None:
    text: list[str] = []
    format, args = put(arena, b"one line of %d\n\0"), put(arena, struct.pack("<i", 7))
    Kernel(print_line)(arena, format, args, grid=(50, 1, 1), block=(64, 1, 1), workers=4, printf=text.append)
    assert "".join(text) == "one line of 7\n" * (50 * 2 * 32)


def test_output_is_bounded(arena: Arena) -> None:
    """The kernel prints more than the buffer takes, before anybody can look."""

    def flood(c: Code) -> None:
        formats, args, result = c.b.alloca(I64, 32), c.b.alloca(I64, 32), c.b.alloca(I32, 32)
        c.b.store(c.param(0), formats)
        c.b.store(c.param(1), args)
        with c.loop(400):
            c.call("pe_vprintf", 21, 1, formats, args, result)

    count = 0

    def sink(text: str) -> None:
        nonlocal count
        count += len(text)

    format, args = put(arena, b"%65536d\0"), put(arena, struct.pack("<i", 7))
    result = Kernel(flood)(arena, format, args, printf=sink)
    assert count + result.output_dropped == 400 * 65536


@pytest.mark.parametrize(
    ("format", "args", "expected"),
    [
        (None, b"", "illegal address"),
        (b"no end", b"", "illegal address"),
        (b"%d %d\0", b"1234", None),
        (b"%s\0", struct.pack("<Q", 64), "null pointer"),
        (b"%s\0", struct.pack("<Q", 1 << 40), "illegal address"),
    ],
)
def test_bad_pointers(arena: Arena, kernel: Kernel, format: bytes | None, args: bytes, expected: str | None) -> None:
    address = arena.base - 64 if format is None else put(arena, format)
    arguments = put(arena, args)
    if expected is None:  # arguments run out at the end of their allocation
        expected, arguments = "illegal address", put(arena, bytes(256)) + 252
    with pytest.raises(Fault, match=f"{expected} in kernel `test` at test.ptx:21"):
        kernel(arena, address, arguments, arena.alloc(128), 0, 0, 1)


def test_default_output_is_stdout(arena: Arena, kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel(arena, put(arena, b"out\n\0"), 0, arena.alloc(128), 0, 0, 1)
    assert capsys.readouterr().out == "out\n"
