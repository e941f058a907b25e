"""Values that programs should not survive on by luck: edges of integers, of buffers, of the process."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.hostile.program import Value
from tests.fuzz.hostile.world import SAMPLERS, SURFACES, TEXTURES

EDGES = (0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 127, 255, 256, 511, 512, 4095, 4096, 65535, 65536, 1 << 20,
         (1 << 31) - 1, 1 << 31, (1 << 32) - 4, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 47) - 1, 1 << 47, (1 << 63) - 1, 1 << 63,
         -1, -2, -4, -8, -16, -17, -64, -256, -4096, -65536, -(1 << 31))  # fmt: skip
DELTAS = (0, 0, 0, 1, 2, 4, 8, 12, 16, 64, 128, 255, 256, 4096, 65536)
NEAR = ("out", "out.end", "data", "data.end", "other", "other.end", "freed", "freed.end")
FAR = ("arena", "arena.end", "host", "host.end", "heap", "far", "far.end", "handles", "code", "stack", "object", "libc",
       "global", "const")  # fmt: skip
KINDS = (("s", SURFACES), ("t", TEXTURES), ("p", SAMPLERS))
HANDLES = (*(f"{kind}.{name}" for kind, names in KINDS for name in names), "s.closed", "t.closed")
FLOATS = (0, 1 << 31, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 1, 0x4F000000, 0xCF000000,
          0x5F000000)  # fmt: skip


def edge(rng: random.Random) -> int:
    return rng.choice(EDGES) + rng.choice((0, 0, 0, 0, 1, -1, 4, 16))


def place(rng: random.Random, names: tuple[str, ...]) -> str:
    delta = rng.choice(DELTAS)
    return rng.choice(names) + (f"{rng.choice('+-')}{delta}" if delta else "")


def value(rng: random.Random) -> Value:
    """Any hostile value: addresses, handles, sizes, counts, coordinates; sometimes a good one."""
    roll = rng.random()
    if roll < 0.3:
        return place(rng, NEAR)
    if roll < 0.42:
        return place(rng, FAR)
    if roll < 0.52:
        return place(rng, HANDLES) if rng.random() < 0.3 else rng.choice(HANDLES)
    if roll < 0.62:
        return rng.randrange(0, 300)
    if roll < 0.67:
        return rng.choice(FLOATS) << rng.choice((0, 0, 32))
    if roll < 0.72:
        return rng.getrandbits(64)
    return edge(rng)


def address(rng: random.Random) -> Value:
    """A value that is mostly an address, one time in two of the program's own memory."""
    return rng.choice(("out", "data", "out+64", "data+4096", "out+128")) if rng.random() < 0.5 else value(rng)


def column(rng: random.Random, make: Callable[[random.Random], Value] = value) -> tuple[Value, ...]:
    """Values of the lanes: all the same, some different, or each another."""
    kinds = rng.choice((1, 1, 1, 2, 2, 3, 5, 32))
    if rng.random() < 0.15:  # consecutive
        first, step = make(rng), rng.choice((1, 4, 8, 16, 4096))
        return tuple(first + step * lane if isinstance(first, int) else f"{first}+{step * lane}" for lane in range(32))
    return tuple(make(rng) for _ in range(kinds))
