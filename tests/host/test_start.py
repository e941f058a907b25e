"""Launches as programs in C make them: arguments, checks, the hook at the end, faults in words."""

from __future__ import annotations

import errno
import gc
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu._runtime import ffi, lib
from ptxemu.device.buffer import Buffer
from ptxemu.device.entry import KERNEL, MODULE, opened, sealed
from ptxemu.device.launch_limits import Extent
from ptxemu.device.module_entry import body_of
from ptxemu.driver import compile
from ptxemu.driver.describe import describe

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
TEXT = (
    HEAD
    + """.const .u32 factor = 3;
.visible .entry fill(.param .u64 out, .param .u8 small, .param .align 8 .b8 pair[16], .param .u32 last) {
    .reg .u64 %p, %i; .reg .u32 %a, %b, %c, %t; .reg .u16 %s;
    ld.param.u64 %p, [out];
    ld.param.u8 %s, [small];
    ld.param.u32 %a, [pair+8];
    ld.param.u32 %b, [last];
    ld.const.u32 %c, [factor];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %i, %t, 4;
    add.u64 %p, %p, %i;
    mad.lo.u32 %a, %a, %c, %b;
    cvt.u32.u16 %b, %s;
    add.u32 %a, %a, %b;
    add.u32 %a, %a, %t;
    st.global.u32 [%p], %a;
    ret;
}
.visible .entry bounded() .reqntid 8, 4 { ret; }
.visible .entry small() .maxntid 4, 2 { ret; }
.visible .entry shared() { .shared .b8 s[1024]; .reg .b64 %d; mov.u64 %d, s; st.shared.u8 [%d], 1; ret; }
.visible .entry wild() {
    .reg .u64 %p;
    mov.u64 %p, 0x123000;
    st.global.u32 [%p], 1;
    ret;
}
.visible .entry endless() { L: bra L; }
"""
)


class Program:
    """A module and its code as the compile side hands them over, and launches of it."""

    def __init__(self) -> None:
        self.device = ptxemu.Device(memory="8 MiB", workers=2)
        self.ir = compile.front(TEXT)
        entry = opened("m", MODULE, sealed("m", MODULE, body_of(describe(self.ir))))
        assert entry is not None
        made, problem = ffi.new("pe_module **"), ffi.new("char **")
        assert lib.pe_module_create(self.device.native(), entry.pointer, b"m", made, problem) == 0
        release, device = lib.pe_module_release, self.device  # which has to be there until the module is gone
        self.module = ffi.gc(made[0], lambda module, release=release, _=device: release(module))
        self.codes: dict[tuple[str, Extent | None], Any] = {}

    def code(self, name: str, block: Extent | None = None) -> Any:
        """For that block, or for any in one row."""
        if (name, block) not in self.codes:
            body = compile.kernel(self.ir, name, block=block).body
            entry = opened("k", KERNEL, sealed("k", KERNEL, body))
            assert entry is not None
            made, problem = ffi.new("pe_code **"), ffi.new("char **")
            assert lib.pe_code_load(entry.pointer, made, problem) == 0
            self.codes[name, block] = ffi.gc(made[0], lib.pe_code_release)
        return self.codes[name, block]

    def start(self, name: str, **fields: Any) -> Any:
        fields = {"grid": [1, 1, 1], "block": [32, 1, 1], **fields}
        kernel = lib.pe_module_kernel(self.module, name.encode())
        return ffi.new("pe_start *", {"module": self.module, "kernel": kernel, "code": self.code(name), **fields})

    def launch(self, start: Any) -> Any:
        out, message = ffi.new("pe_launch **"), ffi.new("char[]", lib.PE_MESSAGE_BYTES)
        assert lib.pe_start_launch(start, out, message) == 0, ffi.string(message)
        return out

    def refused(self, start: Any) -> tuple[int, str]:
        out, message = ffi.new("pe_launch **"), ffi.new("char[]", lib.PE_MESSAGE_BYTES)
        error = lib.pe_start_launch(start, out, message)
        assert error and not out[0]
        return error, ffi.string(message).decode()

    def buffer(self, count: int) -> Buffer:
        return self.device.empty(count, np.uint32)


@pytest.fixture(scope="module")
def program() -> Program:
    return Program()


NO_LIMIT = 2**32 - 1
HOOKS: list[Any] = []
"""All that were made: a thread of the pool may still be on its way out of one when its test has ended."""


def wait(out: Any) -> None:
    assert lib.pe_launch_wait(out[0], NO_LIMIT) == 1


# ---------------------------------------------------------------- arguments


def test_arguments_by_pointers(program):
    buffer = program.buffer(32)
    values = [
        ffi.new("uint64_t *", buffer.address),
        ffi.new("uint8_t *", 5),
        ffi.new("uint64_t[2]", [1, 100]),
        ffi.new("uint32_t *", 7),
    ]
    pointers = ffi.new("void *[]", values)
    out = program.launch(program.start("fill", pointers=pointers))
    wait(out)
    lib.pe_launch_end(out)
    np.testing.assert_array_equal(buffer.array, 100 * 3 + 7 + 5 + np.arange(32))


def test_arguments_in_a_buffer(program):
    buffer = program.buffer(32)
    data = ffi.from_buffer(struct.pack("<QB7xQQI", buffer.address, 6, 1, 50, 9) + b"more")
    out = program.launch(program.start("fill", buffer=data, buffer_size=len(data)))
    wait(out)
    lib.pe_launch_end(out)
    np.testing.assert_array_equal(buffer.array, 50 * 3 + 9 + 6 + np.arange(32))


def test_arguments_that_are_missing(program):
    assert program.refused(program.start("fill")) == (errno.EFAULT, "kernel fill takes 36 bytes of arguments, not 0")
    data = ffi.from_buffer(bytes(35))
    assert "36 bytes of arguments, not 35" in program.refused(program.start("fill", buffer=data, buffer_size=35))[1]
    pointers = ffi.new("void *[]", [ffi.new("uint64_t *")] * 3 + [ffi.NULL])
    assert "takes 4 arguments; number 3 has no value" in program.refused(program.start("fill", pointers=pointers))[1]


# ---------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("name", "fields", "error", "message"),
    [
        ("endless", {"grid": [0, 1, 1]}, errno.EINVAL, "grid.x must be 1 to 2147483647, not 0"),
        ("endless", {"grid": [1, 65536, 1]}, errno.EINVAL, "grid.y must be 1 to 65535, not 65536"),
        ("endless", {"block": [1, 1, 65]}, errno.EINVAL, "block.z must be 1 to 64, not 65"),
        ("endless", {"block": [32, 33, 1]}, errno.EINVAL, "block 32 x 33 x 1 has 1056 threads; the limit is 1024"),
        ("bounded", {"block": [32, 1, 1]}, errno.EINVAL, "kernel bounded requires block 8 x 4 x 1 (.reqntid), not 32 x 1 x 1"),
        ("small", {"block": [4, 3, 1]}, errno.ERANGE, "kernel small takes at most 8 threads (.maxntid), not 12"),
        ("endless", {"cluster": [1, 2, 0]}, errno.EDOM, "grid.y is 1, which clusters of 2 blocks do not make up"),
        ("endless", {"cluster": [5, 4, 1]}, errno.EDOM, "a cluster of 20 blocks is too large; the limit is 16"),
        ("endless", {"cluster": [2**32 - 1] * 3}, errno.EDOM, "is too large; the limit is 16"),
        ("shared", {"dynamic_shared": 227 * 1024}, errno.ENOSPC, "1024 static + 232448 dynamic bytes of shared memory are over"),
        ("shared", {"dynamic_shared": 2**64 - 1}, errno.ENOSPC, "dynamic bytes of shared memory are over the limit of 232448"),
    ],
)
def test_what_a_kernel_does_not_take(program, name, fields, error, message):
    found, text = program.refused(program.start(name, **fields))
    assert found == error and message in text


def test_a_cooperative_launch_that_is_too_large(program):
    error, text = program.refused(program.start("shared", grid=[20000, 1, 1], cooperative=1))
    assert error == errno.E2BIG and "too large for a cooperative launch of `shared`" in text


@pytest.mark.parametrize(("grid", "block"), [(1, 70), (1, 33), (lib.PE_FEW_BLOCKS, 64), (lib.PE_MAX_GRID_X, 32)])
def test_code_for_full_warps_of_other_launches(program, grid, block):
    start = program.start("endless", grid=[grid, 1, 1], block=[block, 1, 1], code=program.code("endless", (64, 1, 1)))
    assert program.refused(start) == (
        errno.EINVAL, "the code is for blocks of full warps in grids with less than 2097152 blocks along x"
    )  # fmt: skip


def test_code_without_facts(program):
    code = compile.kernel(program.ir, "endless")
    made, problem = ffi.new("pe_code **"), ffi.new("char **")
    assert lib.pe_code_link(code.object, len(code.object), code.symbol.encode(), made, problem) == 0
    assert not lib.pe_code_facts_of(made[0])
    assert program.refused(program.start("endless", code=made[0]))[0] == errno.EINVAL
    lib.pe_code_release(made[0])


# ---------------------------------------------------------------- the end of a launch


def test_the_hook_is_called_once_and_may_destroy_the_launch(program):
    ended, calls = threading.Event(), []

    @ffi.callback("void(void *, pe_launch *)")
    def hook(context: Any, launch: Any) -> None:
        calls.append(int(ffi.cast("uintptr_t", context)))
        lib.pe_launch_destroy(launch)
        ended.set()

    HOOKS.append(hook)
    for number in range(1, 50):
        ended.clear()
        program.launch(program.start("bounded", block=[8, 4, 1], ended=hook, context=ffi.cast("void *", number)))
        assert ended.wait(60)
    assert calls == list(range(1, 50))


def test_a_hook_may_start_the_next_launch(program):
    """A stream: each launch starts the next one on the pool's own thread."""
    buffer, ended, left = program.buffer(32), threading.Event(), [20]
    data = ffi.from_buffer(struct.pack("<QB7xQQI", buffer.address, 6, 1, 50, 9))

    @ffi.callback("void(void *, pe_launch *)")
    def hook(context: Any, launch: Any) -> None:
        lib.pe_launch_destroy(launch)
        left[0] -= 1
        if left[0]:
            program.launch(start)
        else:
            ended.set()

    HOOKS.append(hook)
    start = program.start("fill", buffer=data, buffer_size=len(data), ended=hook)
    program.launch(start)
    assert ended.wait(60)
    np.testing.assert_array_equal(buffer.array, 50 * 3 + 9 + 6 + np.arange(32))


def test_a_launch_owns_what_it_runs():
    program = Program()
    out = program.launch(program.start("endless"))
    program.module = program.codes = None  # type: ignore[assignment]
    gc.collect()
    assert lib.pe_launch_wait(out[0], 20) == 0
    assert lib.pe_launch_module(out[0])
    lib.pe_launch_end(out)
    assert lib.pe_arena_allocations(program.device.arena.handle) == 0


# ---------------------------------------------------------------- faults


def fault_text(out: Any, file: bytes | None = b"a.ptx", room: int = 1000) -> str:
    text = ffi.new("char[]", room)
    assert lib.pe_launch_fault_text(out[0], ffi.new("char[]", file) if file else ffi.NULL, text, room) == 0
    return str(ffi.string(text).decode())


def test_the_text_of_a_fault_is_that_of_python(program):
    out = program.launch(program.start("wild"))
    wait(out)
    module = ptxemu.loads(TEXT, filename="a.ptx", device=program.device)
    with pytest.raises(ptxemu.Fault) as caught:
        module["wild"][1, 32]()
    found = fault_text(out)
    assert found == str(caught.value)
    assert found.startswith("illegal address in kernel `wild` at a.ptx:28: block (0,0,0), thread (")
    assert "line:28" in fault_text(out, None)
    for room in range(1, 60):
        assert fault_text(out, room=room) == found[: room - 1]
    lib.pe_launch_end(out)


def test_no_fault_has_no_text(program):
    out = program.launch(program.start("shared"))
    wait(out)
    assert lib.pe_launch_fault_text(out[0], ffi.NULL, ffi.new("char[8]"), 8) == -1
    lib.pe_launch_end(out)


def test_every_kind_has_a_name():
    kinds = range(lib.PE_INVALID_TENSOR + 1)
    assert [kind for kind in kinds if not lib.pe_fault_name(kind)] == [lib.PE_OK, lib.PE_STOPPED]
    assert not lib.pe_fault_name(lib.PE_DIALECT_FAULTS) and lib.pe_fault_code(lib.PE_ASSERT) == 710


# ---------------------------------------------------------------- what Python's modules leave behind

SMALL = HEAD + ".global .u32 x[64];\n.global .surfref s;\n.visible .entry k() { ret; }"


def private_bytes() -> int:
    """Of this process's memory, those that no file backs."""
    fields = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return sum(int(fields[name].split()[0]) for name in ("Private_Dirty", "Private_Clean")) << 10


def test_a_thousand_modules_leave_nothing_behind(tmp_path, monkeypatch):
    """Loaded, launched and dropped: LLVM's linker kept 9 KB of each."""
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "cache"))
    device = ptxemu.Device(memory="16 MiB", workers=1)

    def use(times: int) -> None:
        for _ in range(times):
            ptxemu.loads(SMALL, device=device)["k"][1, 32]()
        gc.collect()

    use(100)
    before, used = private_bytes(), device.arena.used
    use(1000)
    assert device.arena.used == used
    assert private_bytes() - before < 3 << 20


def test_a_closed_device_gives_the_memory_of_modules_back():
    device = ptxemu.Device(memory="16 MiB")
    module = ptxemu.loads(SMALL, device=device)
    address = module.get_global("x").address
    assert mapped(address)
    device.close()
    gc.collect()
    assert not mapped(address)
    with pytest.raises(ptxemu.InputError, match="closed"):
        module["k"][1, 32]()


def mapped(address: int) -> bool:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(number, 16) for number in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[1].startswith("rw")
    return False
