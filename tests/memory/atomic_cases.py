"""Operations, types, operands and device memory for the tests of atomics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxemu._runtime import ffi, lib
from tests.support import atomic_model
from tests.support.warp_calls import WarpCaller

OPS = [
    "add",
    "sub",
    "umin",
    "umax",
    "smin",
    "smax",
    "and",
    "or",
    "xor",
    "inc_wrap",
    "dec_wrap",
    "inc",
    "dec",
    "predec",
    "xchg",
    "cas",
    "fcas",
    "fadd",
    "fmin",
    "fmax",
]
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


INTERESTING = {
    "f16": [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01],
    "bf16": [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1],
    "f32": [
        0,
        1 << 31,
        1,
        0x80000001,
        0x7FFFFF,
        0x800000,
        0x3F800000,
        0xBF800000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0xFFC00001,
    ],
    "f64": [
        0,
        1 << 63,
        1,
        1 << 63 | 1,
        0x000FFFFFFFFFFFFF,
        0x0010000000000000,
        0x3FF0000000000000,
        0xBFF0000000000000,
        0x7FEFFFFFFFFFFFFF,
        0xFFEFFFFFFFFFFFFF,
        0x7FF0000000000000,
        0xFFF0000000000000,
        0x7FF8000000000000,
    ],
}


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


class Memory:
    """Global memory in an arena, and warps that use it."""

    def __init__(self) -> None:
        self.arena = lib.pe_arena_create(1 << 26)
        self.caller = WarpCaller(self.arena)

    def array(self, size: int) -> Any:
        address = lib.pe_arena_alloc(self.arena, size, 256, b"test")
        assert address
        return np.frombuffer(ffi.buffer(ffi.cast("char *", address), size), np.uint8)


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
        self.warp.cluster_base, self.warp.cluster_bytes, self.warp.cluster_shift = self.at["shared"], 1024, 10

    def word(self, address: int) -> int:
        start = address - self.buffer.ctypes.data
        return int.from_bytes(bytes(self.buffer[start : start + 4]), "little")

    def put(self, address: int, value: int) -> None:
        start = address - self.buffer.ctypes.data
        self.buffer[start : start + 4] = list(le(value, 4))


def atom_site(op: str, type_: str, space: str = "global", count: int = 1) -> Any:
    return ffi.new("pe_atom_site *", [55, op_code(op), type_code(type_), SPACE[space], count, 0])


def check(memory: Any, expected: list[int | None], size: int) -> None:
    """None: a NaN came in, whose payload is free."""
    for index, value in enumerate(expected):
        if value is not None:
            assert int.from_bytes(bytes(memory[index * size : (index + 1) * size]), "little") == value, index
