"""The process that a hostile program runs in: a device, what the program is given, and what it must not touch.

Names of places, for values of programs:

* ``out``, ``data``, ``other``, ``freed``: buffers (the last is freed); ``far``: one of another device; ``.end`` is its end;
* ``arena``, ``arena.end``: device memory as a whole; ``global``, ``const``: the module's variables;
* ``host``, ``heap``: memory of the process; ``handles``: the module's table of handles; ``code``: the kernel's;
  ``stack``, ``libc``, ``object``: the stack, a function and a Python object of the process;
* ``s.1d`` and so on: handles of surfaces, ``t.2d`` of textures, ``p.linear`` of samplers; ``s.closed`` and ``t.closed`` are
  those of closed ones.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable, Sequence

import numpy as np

import ptxemu
from ptxemu._runtime import ffi, lib
from tests.fuzz.hostile.program import Value

MEMORY = 64 << 20
HEAP = 1 << 20
BUFFER = 1 << 16
SECRET = b"S3crEt!c"
TERM = re.compile(r"[+-]?[^+-]+")
SURFACES: dict[str, dict[str, object]] = {
    "1d": {"data": (16,), "format": "R8_UINT", "geometry": "1d", "layout": "linear"},
    "2d": {"data": (8, 16), "format": "R32_UINT"},
    "3d": {"data": (4, 8, 16), "format": "R32G32B32A32_FLOAT", "geometry": "3d", "layout": "block_linear"},
    "a1d": {"data": (4, 16), "format": "R16_SINT", "geometry": "a1d"},
    "a2d": {"data": (4, 8, 16), "format": "R32G32_SINT", "geometry": "a2d"},
    "packed": {"data": (8, 16), "format": "R8G8B8A8_UNORM"},
    "levels": {"data": (8, 16), "format": "R32_UINT", "levels": 3},
}
TEXTURES: dict[str, dict[str, object]] = {
    "1d": {"data": (16,), "format": "R32_FLOAT", "geometry": "1d"},
    "2d": {"data": (8, 16), "format": "R8G8B8A8_UNORM", "filter": "linear", "address": "wrap", "normalized": True},
    "3d": {"data": (4, 8, 16), "format": "R32_UINT", "geometry": "3d"},
    "a2d": {"data": (4, 8, 16), "format": "R32_FLOAT", "geometry": "a2d", "filter": "linear", "address": "mirror",
            "normalized": True},
    "cube": {"data": (6, 8, 8), "format": "R32_FLOAT", "geometry": "cube", "normalized": True},
    "levels": {"data": (8, 16), "format": "R16G16_FLOAT", "levels": 3},
}  # fmt: skip
SAMPLERS: dict[str, dict[str, object]] = {"linear": {"filter": "linear"}, "point": {"normalized": False}}


class Canary:
    """Memory that must keep its bytes."""

    def __init__(self, name: str, memory: np.ndarray, expected: bytes | None = None) -> None:
        self.name = name
        self.memory = memory
        self.expected = memory.tobytes() if expected is None else expected

    def changed(self) -> bool:
        return self.memory.tobytes() != self.expected


def secret(size: int) -> np.ndarray:
    return np.frombuffer(SECRET * (size // len(SECRET)), np.uint8).copy()


class World:
    """One device and its surroundings, for one program. ``close`` it."""

    def __init__(self, workers: int = 2) -> None:
        self.device = ptxemu.Device(MEMORY, workers=workers, heap=HEAP)
        self.far_device = ptxemu.Device(MEMORY, workers=1)
        self.out, self.data, self.other = (self.device.empty(BUFFER, np.uint8, name) for name in ("out", "data", "other"))
        freed = self.device.empty(BUFFER, np.uint8, "freed")
        self.far = self.far_device.to_device(secret(BUFFER), "far")
        self._mapping = mmap.mmap(-1, BUFFER)
        host = np.frombuffer(self._mapping, np.uint8)
        host[:] = secret(BUFFER)
        heap = secret(4096)
        self.canaries = [Canary("host memory", host), Canary("the host's heap", heap), Canary("another device", self.far.array)]
        self._frame = ctypes.c_uint64(0)
        arena = self.device.arena
        buffers = {"out": self.out, "data": self.data, "other": self.other, "freed": freed, "far": self.far}
        self.places: dict[str, Callable[[], int]] = {}
        for name, buffer in buffers.items():
            address = buffer.address
            self._place(name, address, BUFFER)
        freed.free()
        self._place("arena", arena.base, arena.size)
        self._place("host", host.ctypes.data, BUFFER)
        self._place("heap", heap.ctypes.data, heap.nbytes)
        self._place("stack", ctypes.addressof(self._frame), 8)
        self._place("object", id(self), 64)
        self._place("libc", ctypes.cast(ctypes.CDLL(None).memcpy, ctypes.c_void_p).value or 0, 64)
        self.objects: dict[str, object] = {}
        for kind, make, table in (
            ("s", self.device.surface, SURFACES), ("t", self.device.texture, TEXTURES), ("p", self.device.sampler, SAMPLERS),
        ):  # fmt: skip
            for name, options in table.items():
                self._handle(f"{kind}.{name}", make(**options))
        for kind, make in (("s", self.device.surface), ("t", self.device.texture)):
            closed = make(**SURFACES["2d"])
            self._handle(f"{kind}.closed", closed)
            closed.close()
            del self.objects[f"{kind}.closed"]

    def _place(self, name: str, address: int, size: int) -> None:
        self.places[name] = lambda: address
        self.places[f"{name}.end"] = lambda: address + size

    def _handle(self, name: str, item: object) -> None:
        handle = int(item.handle)
        self.objects[name] = item
        self.places[name] = lambda: handle

    def enter(self, module: ptxemu.Module, bind: dict[str, str]) -> None:
        """Bind a module's handles, those without a name here to what the empty name has, and learn where its parts are."""
        for name in module.info.handles:
            if item := bind.get(name, bind.get("")):
                module.bind(name, self.objects[item])
        resident = module.resident()
        for space, address in resident.bases.items():
            self._place(space, address, 256)
        address = int(ffi.cast("uintptr_t", lib.pe_module_handles(resident.module)))
        table = (ctypes.c_uint64 * max(1, module.info.handle_count)).from_address(address)
        self.canaries.append(Canary("the table of handles", np.frombuffer(table, np.uint8)))
        self._place("handles", address, 8 * len(table))

    def value(self, written: Value) -> int:
        """A value of a program, as 64 bits."""
        if isinstance(written, int):
            return written % 2**64
        total = 0
        for term in TERM.findall(written):
            sign, rest = (-1 if term[0] == "-" else 1), term.lstrip("+-")
            total += sign * (int(rest, 0) if rest[0].isdigit() else self.places[rest]() if rest in self.places else 0)
        return total % 2**64

    def words(self, columns: Sequence[Sequence[Value]]) -> np.ndarray:
        """Columns of 32 values each, for 32 lanes."""
        rows = [[self.value(column[lane % len(column)]) for lane in range(32)] for column in columns]
        return np.array(rows, np.uint64).reshape(-1)

    def fill(self, columns: Sequence[Sequence[Value]]) -> None:
        """What a launch finds in its buffers."""
        self.out.array[:] = 0
        self.data.array[:] = 0
        if columns:
            words = self.words(columns).view(np.uint8)[:BUFFER]
            self.data.array[: len(words)] = words

    def damage(self, printed: str) -> list[str]:
        """What a launch has done to the host, and whether it has told what it should not know."""
        found = [f"{canary.name} was written" for canary in self.canaries if canary.changed()]
        words = np.frombuffer(SECRET, np.uint32)
        memory = np.concatenate([self.out.array, self.data.array, self.other.array]).view(np.uint32)
        if np.isin(memory, words).any() or SECRET.decode() in printed:
            found.append("host memory was read")
        return found

    def close(self) -> None:
        self.canaries.clear()
        self.device.close()
        self.far_device.close()
