"""Launches whose kernel is a single call of a warp entry point of the C runtime, with the test's own lane arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from ptxemu._runtime import ffi, lib

ALL_LANES = 0xFFFFFFFF
LANES = 32

SIGNATURES = {
    "pe_surface": ("void", ("ptr", "i32", "ptr", "ptr", "ptr", "ptr", "ptr", "ptr")),
    "pe_typed_atomic": ("void", ("ptr", "i32", "ptr")),
    "pe_suq": ("void", ("i32", "i32", "i32", "ptr", "ptr")),
    "pe_is_surface": ("i32", ("i32", "ptr")),
    "pe_atomic": ("void", ("ptr", "i32", "ptr", "ptr", "ptr", "ptr")),
}


COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
FIXED = ("ptr", "ptr", "ptr", "i64")  # the result, the function, the image of shared memory and its bytes


def _kernel_text(name: str) -> str:
    """IR of a kernel that fills shared memory from an image, calls the function, and copies shared memory back."""
    result, arguments = SIGNATURES[name]
    lines = [f"define void @call_{name}(ptr %w) {{"]
    for field_name in ("param_base", "shared_base"):
        lines.append(f"%at_{field_name} = getelementptr i8, ptr %w, i64 {ffi.offsetof('pe_warp', field_name)}")
        lines.append(f"%{field_name} = load ptr, ptr %at_{field_name}")
    loaded = []
    for index, type_ in enumerate((*FIXED, *arguments)):
        lines.append(f"%p{index} = getelementptr i64, ptr %param_base, i64 {index}")
        lines.append(f"%a{index} = load {type_}, ptr %p{index}")
        loaded.append(f"{type_} %a{index}")
    copy = "call void @llvm.memcpy.p0.p0.i64(ptr {}, ptr {}, i64 %a3, i1 false)"
    lines.append(copy.format("%shared_base", "%a2"))
    call = f"call {result} %a1({', '.join(['ptr %w', *loaded[len(FIXED) :]])})"
    lines += [call] if result == "void" else [f"%r = {call}", f"store {result} %r, ptr %a0"]
    lines.append(copy.format("%a2", "%shared_base"))
    return "\n".join([*lines, "ret void", "}"])


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly("\n".join([COPY, *map(_kernel_text, SIGNATURES)]))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


@cache
def _functions() -> dict[str, int]:
    table, found, index = lib.pe_symbols(), {}, 0
    while table[index].name:
        found[ffi.string(table[index].name).decode()] = int(ffi.cast("uint64_t", table[index].address))
        index += 1
    return found


def address_of(value: Any) -> int:
    """What an argument is to the machine: arrays and cffi pointers by address."""
    if value is None:
        return 0
    if isinstance(value, np.ndarray):
        return value.ctypes.data
    return int(value) if isinstance(value, int) else int(ffi.cast("uint64_t", value))


@dataclass
class Fault:
    kind: int
    lane: int
    slot: int
    coordinates: list[int]
    space: int
    address: int
    size: int
    pos: int


@dataclass
class Outcome:
    fault: Fault | None
    result: int


@dataclass
class WarpCaller:
    """Calls warp entry points inside launches on one arena."""

    arena: Any
    keep: list[Any] = field(default_factory=list)

    def start(
        self,
        name: str,
        *arguments: Any,
        surfaces: Any = None,
        ctas: int = 1,
        workers: int = 1,
        shared: NDArray[np.uint8] | None = None,
    ) -> tuple[Any, NDArray[np.uint64], Any]:
        result = np.zeros(1, np.uint64)
        image = np.zeros(0, np.uint8) if shared is None else shared
        fixed = (result, _functions()[name], image, image.nbytes)
        params = np.array([address_of(value) for value in (*fixed, *arguments)], np.uint64)
        config = ffi.new("pe_config *")
        config.kernel = _engine().get_function_address(f"call_{name}")
        config.grid, config.block = [ctas, 1, 1], [LANES, 1, 1]
        config.params, config.params_size = ffi.cast("void *", params.ctypes.data), params.nbytes
        config.dynamic_shared, config.workers = image.nbytes, workers
        config.surfaces = ffi.NULL if surfaces is None else surfaces
        launch = ffi.new("pe_launch **")
        assert lib.pe_launch_start(self.arena, config, launch) == 0
        return launch[0], result, (params, image, arguments, surfaces)

    def finish(self, started: tuple[Any, NDArray[np.uint64], Any]) -> Outcome:
        launch, result, _ = started
        while not lib.pe_launch_wait(launch, 1000):
            pass
        record, counters = ffi.new("pe_record *"), ffi.new("pe_counters *")
        lib.pe_launch_result(launch, record, counters)
        lib.pe_launch_destroy(launch)
        fault = None
        if record.kind != lib.PE_OK:
            fault = Fault(
                record.kind,
                record.lane,
                record.slot,
                list(record.coordinates),
                record.space,
                record.address,
                record.size,
                record.pos,
            )
        return Outcome(fault, int(result[0]))

    def call(self, name: str, *arguments: Any, **options: Any) -> Outcome:
        return self.finish(self.start(name, *arguments, **options))


def int32(values: Any) -> NDArray[np.int32]:
    """Lane values as 32-bit coordinates; u32 layers share the bits."""
    return (np.asarray(values, np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
