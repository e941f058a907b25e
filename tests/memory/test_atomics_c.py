"""The atomic operations' C entry points against the spec's vectors and exact arithmetic (atomic_model)."""

from __future__ import annotations

import csv
import threading

import numpy as np
import pytest

from ptxemu._runtime import ffi, lib
from tests.memory.atomic_cases import FLOATS, INTEGERS, LEGAL, OPS, PAIRS, le, op_code, operands, type_code
from tests.support import atomic_model
from tests.support.places import SPEC

GUARD = b"\xa5" * 32


class Cell:
    """An aligned element between guard bytes."""

    def __init__(self, old: int, size: int) -> None:
        self.size = size
        self.memory = bytearray(3 * GUARD)
        start = ffi.from_buffer(self.memory)
        self.start = len(GUARD) + -int(ffi.cast("uintptr_t", start)) % 16
        self.memory[self.start : self.start + size] = old.to_bytes(size, "little")
        self.pointer = start + self.start

    @property
    def value(self) -> int:
        before, after = self.memory[: self.start], self.memory[self.start + self.size :]
        assert (3 * GUARD).startswith(before) and (3 * GUARD).endswith(after)
        return int.from_bytes(self.memory[self.start : self.start + self.size], "little")


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


# ---- vectors -------------------------------------------------------------------------------------------------------

# model_op: operation, the columns of its operands, flags
VECTOR_OPS = {
    "cas_ptx": ("cas", "src0", "src1", 0),
    "cmpxchg_visa": ("cas", "src1", "src0", 0),
    "fcmpwr_visa": ("fcas", "src0", "src1", 0),
    "fmin_visa": ("fmin", "src0", "src1", lib.PE_ATOM_QUIET_NAN),
    "fmax_visa": ("fmax", "src0", "src1", lib.PE_ATOM_QUIET_NAN),
    "fadd_ftz": ("fadd", "src0", "src1", lib.PE_ATOM_FTZ),
}
with (SPEC / "vectors_atomics.csv").open(newline="") as file:
    VECTORS = list(csv.DictReader(file))


@pytest.mark.parametrize("locked", [0, 1])
@pytest.mark.parametrize("index", range(len(VECTORS)))
def test_vector(index: int, locked: int) -> None:
    row = VECTORS[index]
    op, first, second, flags = VECTOR_OPS.get(row["model_op"], (row["model_op"], "src0", "src1", 0))
    a, b = (int(row[name] or "0", 16) for name in (first, second))
    old, new, returned = (int(row[name], 16) for name in ("old", "new", "returned"))
    assert update(op, row["type_class"] + row["bits"], old, a, b, flags, locked) == (new, returned)


# ---- every operation on every type ---------------------------------------------------------------------------------


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


# ---- threads -------------------------------------------------------------------------------------------------------


def test_python_threads() -> None:
    """The entry points release the GIL: 16-byte swaps and neighbouring 16-bit counters, from four threads."""
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
