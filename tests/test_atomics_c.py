"""The atomic operations' C entry points against the spec's vectors and exact arithmetic (atomic_model)."""

from __future__ import annotations

import csv
import threading
from pathlib import Path
from typing import Any

import atomic_model
import numpy as np
import pytest
from warp_calls import ALL_LANES, LANES, WarpCaller

from ptxemu._runtime import ffi, lib

DATA = Path(__file__).parent / "data" / "spec"
OPS = "add sub umin umax smin smax and or xor inc_wrap dec_wrap inc dec predec xchg cas fcas fadd fmin fmax".split()
INTEGERS = ["u16", "s16", "b16", "u32", "s32", "b32", "u64", "s64", "b64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
PAIRS = ["f16x2", "bf16x2"]
SPACE = {"generic": lib.PE_GENERIC, "global": lib.PE_GLOBAL, "shared": lib.PE_SHARED}


def op_code(name: str) -> int:
    return int(getattr(lib, f"PE_ATOM_{name.upper()}"))


def type_code(name: str) -> int:
    return int(getattr(lib, f"PE_TYPE_{name.upper()}"))


def legal_types(op: str) -> list[str]:
    if op in ("fadd", "fmin", "fmax"):
        return FLOATS[: 4 if op == "fadd" else 3] + PAIRS
    return FLOATS if op == "fcas" else INTEGERS


LEGAL = [(op, type_) for op in OPS for type_ in legal_types(op)]


def le(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


class Cell:
    """An aligned element between guard bytes."""

    def __init__(self, old: int, size: int) -> None:
        self.size = size
        self.words = np.full(12, 0xA5A5A5A5A5A5A5A5, np.uint64)
        self.start = 4 * 8 + (-self.words.ctypes.data) % 16
        self.bytes = self.words.view(np.uint8)
        self.bytes[self.start : self.start + size] = list(le(old, size))

    @property
    def pointer(self) -> Any:
        return ffi.cast("void *", self.words.ctypes.data + self.start)

    @property
    def value(self) -> int:
        around = np.delete(self.bytes, range(self.start, self.start + self.size))
        assert (around == 0xA5).all()
        return int.from_bytes(bytes(self.bytes[self.start : self.start + self.size]), "little")


def update(op: str, type_: str, old: int, a: int, b: int = 0, flags: int = 0, locked: int = 1) -> tuple[int, int]:
    """The new value and the returned one."""
    size = lib.pe_atom_bytes(type_code(type_))
    cell, out = Cell(old, size), ffi.new("uint8_t[16]")
    operands = le(a, size), le(b, size)
    lib.pe_atom_update(cell.pointer, op_code(op), type_code(type_), flags, *operands, out, locked)
    silent = Cell(old, size)
    lib.pe_atom_update(silent.pointer, op_code(op), type_code(type_), flags, *operands, ffi.NULL, locked)
    assert silent.value == cell.value
    return cell.value, int.from_bytes(bytes(out)[:size], "little")


# ---- vectors ---------------------------------------------------------------------------------------------------------

# model_op: operation, the columns of its operands, flags
VECTOR_OPS = {
    "cas_ptx": ("cas", "src0", "src1", 0),
    "cmpxchg_visa": ("cas", "src1", "src0", 0),
    "fcmpwr_visa": ("fcas", "src0", "src1", 0),
    "fmin_visa": ("fmin", "src0", "src1", lib.PE_ATOM_QUIET_NAN),
    "fmax_visa": ("fmax", "src0", "src1", lib.PE_ATOM_QUIET_NAN),
    "fadd_ftz": ("fadd", "src0", "src1", lib.PE_ATOM_FTZ),
}
with (DATA / "vectors_atomics.csv").open(newline="") as file:
    VECTORS = list(csv.DictReader(file))


@pytest.mark.parametrize("locked", [0, 1])
@pytest.mark.parametrize("index", range(len(VECTORS)))
def test_vector(index: int, locked: int) -> None:
    row = VECTORS[index]
    op, first, second, flags = VECTOR_OPS.get(row["model_op"], (row["model_op"], "src0", "src1", 0))
    a, b = (int(row[name] or "0", 16) for name in (first, second))
    old, new, returned = (int(row[name], 16) for name in ("old", "new", "returned"))
    assert update(op, row["type_class"] + row["bits"], old, a, b, flags, locked) == (new, returned)


# ---- every operation on every type -----------------------------------------------------------------------------------

INTERESTING = {
    "f16": [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01],
    "bf16": [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1],
    "f32": [0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
            0xFF800000, 0x7FC00000, 0xFFC00001],
    "f64": [0, 1 << 63, 1, 1 << 63 | 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000,
            0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000],
}  # fmt: skip


def operands(type_: str, rng: np.random.Generator, count: int) -> list[int]:
    """Edge values, small ones, neighbours and random bits."""
    if type_ in PAIRS:
        halves = operands(type_[:-2], rng, 2 * count)
        return [low | high << 16 for low, high in zip(halves[::2], halves[1::2])]
    width = atomic_model.bits_of(type_)
    edges = INTERESTING.get(type_, [0, 1, 2, (1 << width) - 1, 1 << width - 1, (1 << width - 1) - 1])
    found = [edges[int(i)] for i in rng.integers(0, len(edges), count)]
    for index in range(count):
        if rng.random() < 0.5:
            found[index] = int.from_bytes(rng.bytes(width // 8), "little")
    return found


@pytest.mark.parametrize(("op", "type_"), LEGAL)
def test_operation(op: str, type_: str) -> None:
    assert lib.pe_atom_legal(op_code(op), type_code(type_))
    rng = np.random.default_rng(1)
    values = [operands(type_, rng, 300) for _ in range(3)]
    for number, (old, a, b) in enumerate(zip(*values)):
        if number % 3 == 0 and op in ("cas", "fcas"):
            a = old
        for ftz in (False, True) if op == "fadd" else (False,):
            expected = atomic_model.apply(op, type_, old, a, b, ftz)
            new, returned = update(op, type_, old, a, b, lib.PE_ATOM_FTZ if ftz else 0, number % 2)
            assert returned == (new if op == "predec" else old)
            if expected is None:
                assert atomic_model.is_nan(type_, new)
            else:
                assert new == expected, (hex(old), hex(a), hex(b), ftz)


def test_sums_are_rounded_once() -> None:
    """Sums whose exact value lies at or near the middle of two floats."""
    rng = np.random.default_rng(2)
    for type_ in FLOATS:
        exponent, fraction = atomic_model.FLOATS[type_]
        for _ in range(1500):
            high = int(rng.integers(fraction + 3, (1 << exponent) - 2))
            low = high - int(rng.integers(0, fraction + 3))
            x = high << fraction | int(rng.integers(0, 1 << fraction))
            y = max(low, 0) << fraction | int(rng.choice([0, 1, (1 << fraction) - 1, 1 << fraction - 1]))
            y |= int(rng.integers(0, 2)) << exponent + fraction
            assert update("fadd", type_, x, y)[0] == atomic_model.float_add(type_, x, y, False), (type_, hex(x), hex(y))


def test_illegal_combinations() -> None:
    every = [*INTEGERS, *FLOATS, *PAIRS, "b128", "u8", "s8"]
    legal = {*LEGAL, ("xchg", "b128"), ("cas", "b128"), ("fmin", "f64"), ("fmax", "f64")}
    for op in OPS:
        for type_ in every:
            assert bool(lib.pe_atom_legal(op_code(op), type_code(type_))) == ((op, type_) in legal), (op, type_)


def test_nan_choices() -> None:
    one, nan = 0x3C00, 0x7E01
    assert update("fmin", "f16", nan, nan)[0] == 0x7FFF
    assert update("fmin", "f16", nan, nan, flags=lib.PE_ATOM_QUIET_NAN)[0] == 0x7E00
    assert update("fmax", "f16", nan, one)[0] == one
    assert update("fmax", "f16", one, nan, flags=lib.PE_ATOM_KEEP_OLD)[0] == one
    assert update("fmax", "f16", nan, nan, flags=lib.PE_ATOM_KEEP_OLD)[0] == nan
    assert update("fadd", "f16x2", 0x00010001, 0x00010001, flags=lib.PE_ATOM_FTZ)[0] == 0


@pytest.mark.parametrize("locked", [0, 1])
def test_16_bytes(locked: int) -> None:
    first, second, third = (int.from_bytes(bytes(range(start, start + 16)), "little") for start in (1, 60, 120))
    assert update("xchg", "b128", first, second, locked=locked) == (second, first)
    assert update("cas", "b128", first, first, third, locked=locked) == (third, first)
    assert update("cas", "b128", first, second, third, locked=locked) == (first, first)
    assert update("cas", "b128", first, first ^ 1 << 127, third, locked=locked) == (first, first)


def test_half_conversions() -> None:
    """Every f16 value, and every f32 halfway between two of them and its neighbours, against NumPy."""
    bits = np.arange(0x10000, dtype=np.uint16)
    numbers = bits.view(np.float16).astype(np.float32)
    finite = bits[np.isfinite(numbers)]
    for pattern in finite[::7]:
        assert lib.pe_f32_from_f16(int(pattern)) == numbers[pattern]
    for pattern in range(0, 0x7C00, 5):
        middle = (int(numbers[pattern].view(np.uint32)) + int(numbers[pattern + 1].view(np.uint32))) // 2
        for f32 in (middle - 1, middle, middle + 1):
            value = np.array([f32], np.uint32).view(np.float32)
            with np.errstate(over="ignore"):
                expected = int(value.astype(np.float16).view(np.uint16)[0])
            assert lib.pe_f16_from_f32(float(value[0])) == expected
            assert lib.pe_f16_from_f32(-float(value[0])) == expected | 0x8000
    assert lib.pe_f16_from_f32(float("nan")) == 0x7FFF


def test_bfloat_conversions() -> None:
    rng = np.random.default_rng(4)
    for f32 in [*(int(v) for v in rng.integers(0, 0x7F800000, 2000)), 0x3F808000, 0x3F818000, 0x7F7FFFFF, 1, 0x8000]:
        value = np.array([f32], np.uint32).view(np.float32)[0]
        expected = atomic_model.rounded("bf16", atomic_model.value("f32", f32), False)
        assert lib.pe_bf16_from_f32(float(value)) == expected
    assert lib.pe_bf16_from_f32(float("nan")) == 0x7FFF


# ---- device addresses ------------------------------------------------------------------------------------------------


class Memory:
    """Global memory in an arena, and warps that use it."""

    def __init__(self) -> None:
        self.arena = lib.pe_arena_create(1 << 26)
        self.caller = WarpCaller(self.arena)

    def array(self, size: int) -> Any:
        address = lib.pe_arena_alloc(self.arena, size, 256, b"test")
        assert address
        return np.frombuffer(ffi.buffer(ffi.cast("char *", address), size), np.uint8)


@pytest.fixture(scope="module")
def memory() -> Any:
    made = Memory()
    yield made
    lib.pe_arena_destroy(made.arena)


def atom_site(op: str, type_: str, space: str = "global", count: int = 1) -> Any:
    return ffi.new("pe_atom_site *", [55, op_code(op), type_code(type_), SPACE[space], count])


class Windows:
    """A pe_warp whose windows lie in one NumPy buffer: global, shared, local, const, param, 1 KiB each."""

    NAMES = ("global", "shared", "local", "const", "param")

    def __init__(self) -> None:
        self.buffer = np.zeros(8192, np.uint8)
        base = (self.buffer.ctypes.data + 1023) & ~1023
        self.at = {name: base + 1024 * index for index, name in enumerate(self.NAMES)}
        self.warp = ffi.new("pe_warp *")
        self.warp.arena_base, self.warp.arena_size = base, 5 * 1024
        for name in self.NAMES[1:]:
            setattr(self.warp, f"{name}_base", self.at[name])
        self.warp.shared_size, self.warp.const_size, self.warp.param_size = 1000, 1024, 1024
        self.warp.local_size = 32

    def word(self, address: int) -> int:
        start = address - self.buffer.ctypes.data
        return int.from_bytes(bytes(self.buffer[start : start + 4]), "little")

    def put(self, address: int, value: int) -> None:
        start = address - self.buffer.ctypes.data
        self.buffer[start : start + 4] = list(le(value, 4))

    def add(self, space: str, address: int, type_: str = "u32", op: str = "add", a: int = 1) -> int:
        size = lib.pe_atom_bytes(type_code(type_))
        return int(lib.pe_mem_atomic(self.warp, SPACE[space], address, op_code(op), type_code(type_), 0, le(a, size),
                                     le(0, size), ffi.NULL, 1))  # fmt: skip


ADDRESSES = [
    # space, window or None, offset, expected
    ("global", "global", 8, "OK"), ("generic", "global", 8, "OK"), ("generic", "shared", 8, "OK"),
    ("shared", None, 8, "OK"), ("shared", None, 996, "OK"), ("shared", None, 1000, "ILLEGAL_ADDRESS"),
    ("shared", None, 998, "MISALIGNED"), ("generic", "shared", 1000, "ILLEGAL_ADDRESS"), ("shared", None, 2**32, "ILLEGAL_ADDRESS"),
    ("global", "shared", 8, "INVALID_ADDRESS_SPACE"), ("global", "local", 8, "INVALID_ADDRESS_SPACE"),
    ("generic", "local", 8, "INVALID_ADDRESS_SPACE"), ("generic", "const", 8, "INVALID_ADDRESS_SPACE"),
    ("generic", "param", 8, "INVALID_ADDRESS_SPACE"), ("generic", "local", 9, "INVALID_ADDRESS_SPACE"),
    ("global", "global", 6, "MISALIGNED"), ("generic", "global", 7, "MISALIGNED"), ("generic", "shared", 6, "MISALIGNED"),
    ("global", "global", -4, "ILLEGAL_ADDRESS"), ("global", "param", 1024, "ILLEGAL_ADDRESS"),
    ("global", None, 0, "NULL"), ("generic", None, 8, "NULL"), ("global", None, 2**63, "ILLEGAL_ADDRESS"),
    ("global", None, 2**64 - 4, "ILLEGAL_ADDRESS"), ("generic", None, 2, "MISALIGNED"),
]  # fmt: skip


@pytest.mark.parametrize(("space", "window", "offset", "expected"), ADDRESSES)
def test_address(space: str, window: str | None, offset: int, expected: str) -> None:
    windows = Windows()
    address = windows.at[window] + offset if window else offset
    if (space, window, offset) == ("generic", "shared", 1000):
        # Past the window lies whatever the arena holds: here nothing.
        windows.warp.arena_size = 1024
    assert windows.add(space, address) == getattr(lib, f"PE_{expected}")
    changed = np.flatnonzero(windows.buffer)
    assert len(changed) == (1 if expected == "OK" else 0)
    if expected == "OK":
        place = windows.at["shared"] + offset if space == "shared" else address
        assert windows.word(place) == 1


def test_f32_sums_flush_in_global_memory_only() -> None:
    windows = Windows()
    for space, window, new in [("global", "global", 0), ("generic", "global", 0), ("generic", "shared", 2)]:
        windows.put(windows.at[window], 1)
        assert windows.add(space, windows.at[window], "f32", "fadd", 1) == lib.PE_OK
        assert windows.word(windows.at[window]) == new
    windows.put(windows.at["shared"], 1)
    windows.add("shared", 0, "f32", "fadd", 1)
    assert windows.word(windows.at["shared"]) == 2


# ---- warps -------------------------------------------------------------------------------------------------------------

PATTERNS = ["one", "distinct", "few", "random"]


def lane_places(pattern: str, rng: np.random.Generator) -> Any:
    if pattern == "one":
        return np.full(LANES, 3)
    if pattern == "distinct":
        return rng.permutation(LANES)
    return rng.integers(0, 4 if pattern == "few" else LANES, LANES)


def sequential(op: str, type_: str, cells: list[int], places: Any, mask: int, a: list[int], b: list[int], ftz: bool) -> Any:
    """What the lanes of a warp do, one by one; None once a value is any NaN."""
    returned: list[int | None] = [None] * LANES
    values: list[int | None] = list(cells)
    for lane in range(LANES):
        if mask >> lane & 1:
            old = values[places[lane]]
            new = None if old is None else atomic_model.apply(op, type_, old, a[lane], b[lane], ftz)
            returned[lane] = new if op == "predec" else old
            values[places[lane]] = new
    return values, returned


@pytest.mark.parametrize("space", SPACE)
@pytest.mark.parametrize(("op", "type_"), LEGAL)
def test_warp(op: str, type_: str, space: str, memory: Memory) -> None:
    """Lanes of every address pattern and mask, with and without a result, in every space."""
    rng = np.random.default_rng(LEGAL.index((op, type_)) * 3 + list(SPACE).index(space))
    size = lib.pe_atom_bytes(type_code(type_))
    cells_memory = memory.array(1024)
    for pattern in PATTERNS:
        for mask in (ALL_LANES, int(rng.integers(1, 1 << 32)), 1 << int(rng.integers(0, 32))):
            cells, a, b = operands(type_, rng, LANES), operands(type_, rng, LANES), operands(type_, rng, LANES)
            places = lane_places(pattern, rng)
            cells_memory[: LANES * size] = np.frombuffer(b"".join(le(v, size) for v in cells), np.uint8)
            base = 0 if space == "shared" else cells_memory.ctypes.data
            addresses = (base + places * size).astype(np.uint64)
            # Lanes that are off may hold anything.
            addresses[[lane for lane in range(LANES) if not mask >> lane & 1]] = 0xDEAD
            packed = [np.frombuffer(b"".join(le(v, size) for v in values), np.uint8) for values in (a, b)]
            old = np.full(LANES * size, 0xEE, np.uint8)
            wanted = rng.random() < 0.6
            outcome = memory.caller.call("pe_atomic", atom_site(op, type_, space), mask, addresses, *packed,
                                         old if wanted else None,
                                         shared=cells_memory if space == "shared" else None)  # fmt: skip
            assert outcome.fault is None
            ftz = op == "fadd" and type_ == "f32" and space != "shared"
            values, returned = sequential(op, type_, cells, places, mask, a, b, ftz)
            check(cells_memory, values, size)
            if wanted:
                check(old, [0xEE * int("01" * size, 16) if not mask >> i & 1 else v for i, v in enumerate(returned)], size)


def check(memory: Any, expected: list[int | None], size: int) -> None:
    """None: a NaN came in, whose payload is free."""
    for index, value in enumerate(expected):
        if value is not None:
            assert int.from_bytes(bytes(memory[index * size : (index + 1) * size]), "little") == value, index


@pytest.mark.parametrize(("type_", "count"), [("f32", 2), ("f32", 4), ("f16", 2), ("f16", 4), ("f16", 8), ("bf16", 8),
                                              ("f16x2", 2), ("bf16x2", 4)])  # fmt: skip
def test_vector_forms(type_: str, count: int, memory: Memory) -> None:
    rng = np.random.default_rng(count)
    size = lib.pe_atom_bytes(type_code(type_))
    for op in ("fadd", "fmin", "fmax") if type_ != "f32" else ("fadd",):
        cells = memory.array(LANES * 16)
        values = operands(type_, rng, LANES * count)
        a = operands(type_, rng, LANES * count)
        cells[: len(values) * size] = np.frombuffer(b"".join(le(v, size) for v in values), np.uint8)
        addresses = (cells.ctypes.data + np.arange(LANES) * size * count).astype(np.uint64)
        old = np.zeros(LANES * count * size, np.uint8)
        operand = np.frombuffer(b"".join(le(v, size) for v in a), np.uint8)
        outcome = memory.caller.call("pe_atomic", atom_site(op, type_, "global", count), ALL_LANES, addresses, operand, None, old)
        assert outcome.fault is None
        check(cells, [atomic_model.apply(op, type_, v, x, 0, type_ == "f32") for v, x in zip(values, a)], size)  # type: ignore[arg-type]
        check(old, values, size)  # type: ignore[arg-type]


FAULTS = [
    # lane 5's address, relative to global memory or absolute, space, count; kind
    ("global", 2, "global", 1, "MISALIGNED"), ("global", 4, "global", 2, "MISALIGNED"),
    ("absolute", 64, "global", 1, "NULL"), ("absolute", 1 << 62, "generic", 1, "ILLEGAL_ADDRESS"),
    ("absolute", 1024, "shared", 1, "ILLEGAL_ADDRESS"), ("absolute", 2, "shared", 1, "MISALIGNED"),
    ("global", 1 << 20, "global", 1, "ILLEGAL_ADDRESS"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "offset", "space", "count", "kind"), FAULTS)
def test_warp_fault(base: str, offset: int, space: str, count: int, kind: str, memory: Memory) -> None:
    """The lanes before the failing one are done, it and those after it write nothing."""
    cells = memory.array(1024)
    start = 0 if space == "shared" else cells.ctypes.data
    addresses = (start + np.arange(LANES) * 8).astype(np.uint64)
    addresses[5] = offset + (cells.ctypes.data if base == "global" else 0)
    ones = np.full(LANES * count, 1.0, np.float32)
    site = atom_site("fadd", "f32", space, count)
    outcome = memory.caller.call("pe_atomic", site, 0xFFFFFFFE, addresses, ones, None, None, shared=np.zeros(1024, np.uint8))
    assert outcome.fault is not None
    assert outcome.fault.kind == getattr(lib, f"PE_{kind}")
    if (base, offset) != ("global", 1 << 20):  # an unmapped page is found by the CPU, which does not know the lane
        assert (outcome.fault.lane, outcome.fault.address, outcome.fault.space) == (5, int(addresses[5]), SPACE[space])
        assert outcome.fault.size == 4 * count
    assert outcome.fault.pos == 55
    if space != "shared":
        done = cells.view(np.float32)[: LANES * 2].reshape(LANES, 2)[:, 0]
        assert list(done) == [0, 1, 1, 1, 1] + [0] * 27


def test_mixed_generic_lanes(memory: Memory) -> None:
    """Generic lanes in global and shared memory: each follows the space it hits."""
    cells = memory.array(256)
    cells.view(np.uint32)[:] = 1
    addresses = (cells.ctypes.data + np.arange(LANES) * 4).astype(np.uint64)
    operand = np.ones(LANES, np.uint32)  # the least subnormal
    outcome = memory.caller.call("pe_atomic", atom_site("fadd", "f32", "generic"), ALL_LANES, addresses, operand, None, None)
    assert outcome.fault is None
    assert not cells.view(np.uint32)[:LANES].any()


def test_illegal_operation_is_a_fault(memory: Memory) -> None:
    cells = memory.array(256)
    addresses = np.full(LANES, cells.ctypes.data, np.uint64)
    outcome = memory.caller.call("pe_atomic", atom_site("and", "f32"), 1, addresses, np.ones(LANES, np.uint32), None, None)
    assert outcome.fault is not None and outcome.fault.kind == lib.PE_ILLEGAL_OP_TYPE
    assert not cells.any()


# ---- concurrency -----------------------------------------------------------------------------------------------------

TOTALS = [
    ("add", "u32", 3, lambda n: 3 * n % 2**32), ("add", "u64", 2**33, lambda n: 2**33 * n % 2**64),
    ("sub", "u16", 1, lambda n: -n % 2**16), ("inc_wrap", "u32", 9, lambda n: n % 10),
    ("dec_wrap", "u32", 9, lambda n: -n % 10), ("predec", "u32", 0, lambda n: -n % 2**32), ("xor", "b32", 5, lambda n: 5 * (n % 2)),
]  # fmt: skip


@pytest.mark.parametrize("pattern", ["one", "few"])
@pytest.mark.parametrize(("op", "type_", "operand", "total"), TOTALS)
def test_concurrent_totals(op: str, type_: str, operand: int, total: Any, pattern: str, memory: Memory) -> None:
    """Two launches of two workers each."""
    size, ctas = lib.pe_atom_bytes(type_code(type_)), 3000
    cells = memory.array(256)
    places = np.arange(LANES) % (1 if pattern == "one" else 4)
    addresses = (cells.ctypes.data + places * size).astype(np.uint64)
    a = np.frombuffer(le(operand, size) * LANES, np.uint8)
    arguments = ("pe_atomic", atom_site(op, type_), ALL_LANES, addresses, a, None, None)
    started = [memory.caller.start(*arguments, ctas=ctas, workers=2) for _ in range(2)]
    for one in started:
        assert memory.caller.finish(one).fault is None
    updates = 2 * ctas * LANES // len(set(places))
    check(cells, [total(updates)] * len(set(places)), size)


@pytest.mark.parametrize(("type_", "one", "ctas"), [("f32", 0x3F800000, 3000), ("f64", 0x3FF0000000000000, 3000),
                                                    ("f16x2", 0x3C003C00, 30), ("bf16", 0x3F80, 3)])  # fmt: skip
def test_concurrent_float_sums(type_: str, one: int, ctas: int, memory: Memory) -> None:
    """Sums of ones stay exact as long as the format holds them."""
    size = lib.pe_atom_bytes(type_code(type_))
    cells = memory.array(256)
    addresses = np.full(LANES, cells.ctypes.data, np.uint64)
    a = np.frombuffer(le(one, size) * LANES, np.uint8)
    started = [memory.caller.start("pe_atomic", atom_site("fadd", type_), ALL_LANES, addresses, a, None, None, ctas=ctas,
                                   workers=2) for _ in range(2)]  # fmt: skip
    for launch in started:
        assert memory.caller.finish(launch).fault is None
    number = atomic_model.Fraction(2 * ctas * LANES)
    element = type_.removesuffix("x2")
    expected = atomic_model.rounded(element, number, False)
    check(cells, [expected | expected << 16 if element != type_ else expected], size)


def test_returned_values_are_distinct_tickets(memory: Memory) -> None:
    cells = memory.array(256)
    addresses = np.full(LANES, cells.ctypes.data, np.uint64)
    ones = np.ones(LANES, np.uint32)
    results = [np.zeros(LANES, np.uint32) for _ in range(64)]
    site = atom_site("add", "u32")
    started = [memory.caller.start("pe_atomic", site, ALL_LANES, addresses, ones, None, r, workers=1) for r in results]
    for launch in started:
        memory.caller.finish(launch)
    assert sorted(np.concatenate(results)) == list(range(64 * LANES))
    assert all((np.diff(r) == 1).all() for r in results)


def test_python_threads() -> None:
    """The entry points release the GIL: 16-byte swaps, 16-bit counters side by side, and a 64-bit sum, from four threads."""
    counters = np.zeros(8, np.uint16)
    wide = np.zeros(4, np.uint64)
    swapped = wide[(-wide.ctypes.data // 8) % 2 :][:2]
    rounds, threads = 2000, 4
    seen: list[list[int]] = [[] for _ in range(threads)]

    def work(thread: int) -> None:
        out = ffi.new("uint8_t[16]")
        for turn in range(rounds):
            place = ffi.cast("void *", counters.ctypes.data + 2 * ((thread + turn) % 8))
            lib.pe_atom_update(place, op_code("inc"), type_code("u16"), 0, b"\0\0", b"\0\0", ffi.NULL, 1)
            token = (thread * rounds + turn + 1) * ((1 << 64) + 1)
            pair = ffi.cast("void *", swapped.ctypes.data)
            lib.pe_atom_update(pair, op_code("xchg"), type_code("b128"), 0, le(token, 16), b"", out, 1)
            seen[thread].append(int.from_bytes(bytes(out), "little"))

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert int(counters.astype(np.int64).sum()) == rounds * threads
    last = int(swapped[0])
    assert int(swapped[1]) == last
    tokens = sorted([*(value for found in seen for value in found), last * ((1 << 64) + 1)])
    assert tokens == [value * ((1 << 64) + 1) for value in range(rounds * threads + 1)]
