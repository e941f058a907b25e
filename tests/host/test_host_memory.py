"""``Device(host_memory=True)``: kernels on the process's own memory, and wild pointers, which are still faults."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel

LANES = 32
PAGE = mmap.PAGESIZE
ENGINES = ("jit", "interpreter")
LOADED = ".param .u64 base, .param .u64 out"
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
LIBC.munmap.argtypes = LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

SAXPY = kernel(
    """
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
  mov.u32 %r0, %tid.x; mul.wide.u32 %rd3, %r0, 4;
  add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];
  fma.rn.f32 %f2, %f1, 0f40000000, %f2;
  st.global.f32 [%rd2], %f2;
  ret;""",
    ".param .u64 x, .param .u64 y",
)

# %rd1: the address for this thread, %rd2: shared memory, %r1 to %r4, %f0 or %rd4: what is read
ACCESSES = {
    "ld": "ld{space}.u32 %r1, [%rd1];",
    "ld.v4": "ld{space}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%rd1];",
    "ld.volatile": "ld.volatile{space}.u32 %r1, [%rd1];",
    "ld.acquire": "ld.acquire.gpu{space}.u32 %r1, [%rd1];",
    "ld.b8": "ld{space}.u8 %r1, [%rd1];",
    "st": "st{space}.u32 [%rd1], %r0;",
    "st.v4": "st{space}.v4.u32 [%rd1], {{%r0, %r0, %r0, %r0}};",
    "atom.add": "atom{space}.add.u32 %r1, [%rd1], 1;",
    "atom.add.f32": "atom{space}.add.f32 %f0, [%rd1], 0f3F800000;",
    "atom.cas": "atom{space}.cas.b32 %r1, [%rd1], 0, 1;",
    "atom.cas.b64": "atom{space}.cas.b64 %rd4, [%rd1], 0, 1;",
    "red": "red{space}.max.s32 [%rd1], 1;",
}
COPIES = {
    "cp.async": "cp.async.ca.shared.global [%rd2], [%rd1], 16; cp.async.wait_all;",
    "wmma": "wmma.load.c.sync.aligned.m16n16k16.row.global.f32 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, [%rd1];",
}
CASES = [
    *[(name, form.format(space=space), space[1:] or "generic") for name, form in ACCESSES.items() for space in (".global", "")],
    *[(name, form, "global") for name, form in COPIES.items()],
]


def access_kernel(instruction: str, step: int = 16) -> str:
    """Thread i executes an instruction at ``base + step * i``."""
    body = f"""
  ld.param.u64 %rd1, [base]; mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd3, %r0, {step}; add.s64 %rd1, %rd1, %rd3;
  mov.u64 %rd2, room; add.s64 %rd2, %rd2, %rd3;
  mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u64 %rd4, 0; mov.f32 %f0, 0f00000000;
  {instruction} // BAD
  mov.b32 %r5, %f0; cvt.u32.u64 %r6, %rd4;
  xor.b32 %r1, %r1, %r2; xor.b32 %r3, %r3, %r4; xor.b32 %r1, %r1, %r3; xor.b32 %r1, %r1, %r5; xor.b32 %r1, %r1, %r6;
  st.global.u32 [seen], %r1;
  ret;"""
    return kernel(body, ".param .u64 base", ".shared .align 16 .b8 room[1024];\n.global .u32 seen;\n")


@pytest.fixture(scope="module", params=ENGINES)
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    return ptxemu.Device("64 MiB", host_memory=True, engine=request.param)


def launch(text: str, device: ptxemu.Device, *arguments: object) -> None:
    ptxemu.loads(text, filename="test.ptx", device=device)["k"][1, LANES](*arguments)


def fault_of(text: str, device: ptxemu.Device, *arguments: object) -> ptxemu.Fault:
    with pytest.raises(ptxemu.Fault) as caught:
        launch(text, device, *arguments)
    return caught.value


@pytest.fixture
def pages():
    """Addresses in the middle of three pages of which only the first two can be used; the second can be read only."""
    address = LIBC.mmap(None, 3 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    LIBC.mprotect(address + PAGE, PAGE, mmap.PROT_READ)
    LIBC.munmap(address + 2 * PAGE, PAGE)
    yield [address + PAGE // 4 + number * PAGE for number in range(3)]
    LIBC.munmap(address, 2 * PAGE)


def test_arrays_are_the_kernels_memory(device):
    x, y = np.arange(LANES, dtype="f4"), np.ones(2 * LANES, "f4")
    launch(SAXPY, device, x, y)
    assert np.array_equal(y, np.r_[2 * x + 1, np.ones(LANES)])
    launch(SAXPY, device, x.ctypes.data, y.ctypes.data + LANES * 4)
    assert np.array_equal(y[LANES:], 2 * x + 1)
    buffer = device.to_device(x)
    launch(SAXPY, device, x, buffer)
    assert np.array_equal(buffer.array, 3 * x)


def test_no_array_is_copied(device):
    before = device.arena.used
    text = kernel("ld.param.u64 %rd1, [at]; st.global.u64 [%rd1], %rd1; ret;", ".param .u64 at")
    out = np.zeros(1, "u8")
    launch(text, device, out)
    assert out[0] == out.ctypes.data and device.arena.used == before


@pytest.mark.parametrize(("name", "instruction", "space"), CASES, ids=lambda value: str(value))
def test_wild_pointers_are_faults(device, pages, name, instruction, space):
    text = access_kernel(instruction)
    good, read_only, unmapped = pages
    launch(text, device, good)
    wild = [(8, "null pointer"), (unmapped, "illegal address"), (2**47, "illegal address"), (2**63 + 64, "illegal address")]
    if name[:2] in ("st", "at", "re"):
        wild.append((read_only, "illegal address"))
    if name == "cp.async" or name.endswith("v4") or name == "wmma":
        wild[0] = (0, "null pointer")
    for base, kind in wild:
        fault = fault_of(text, device, base)
        record = fault.record
        assert (record["kind"], record["space"]) == (kind, space), str(fault)
        assert record["where"] == f"test.ptx:{1 + text[: text.index('// BAD')].count(chr(10))}"
        assert base <= record["address"] < base + LANES * 16 * 2
        launch(text, device, good)


def test_what_runs_over_the_end_of_all_addresses(device):
    for step in (4, 16, 4096):
        fault = fault_of(access_kernel(ACCESSES["ld"].format(space=".global"), step), device, 2**47 - 4 * LANES)
        assert fault.record["kind"] == "illegal address"
        assert 2**47 - 4 * LANES <= fault.record["address"] < 2**47 + 4096 * LANES


def test_faults_say_whose_memory_it_was(pages):
    text = access_kernel("st.global.u32 [%rd1], %r0;")
    trusted, sandboxed = ptxemu.Device("64 MiB", host_memory=True), ptxemu.Device("64 MiB")
    assert "in memory of the host" in str(fault_of(text, trusted, pages[1]))
    assert "in memory of the host" not in str(fault_of(text, trusted, pages[2]))
    assert "in memory of the host" in str(fault_of(text, sandboxed, pages[0]))
    assert ctypes.string_at(pages[0], 64) == bytes(64)


def test_other_spaces_keep_their_bounds(device):
    for space, bytes_ in (("shared", 1024), ("local", 512 << 10)):
        text = access_kernel(f"ld.{space}.u32 %r1, [%rd1];")
        fault = fault_of(text, device, bytes_)
        assert (fault.record["kind"], fault.record["space"]) == ("illegal address", space)
    launch(access_kernel("ld.shared.u32 %r1, [%rd1];"), device, 0)


def test_is_global_memory(device):
    text = kernel(
        """
  ld.param.u64 %rd1, [base]; ld.param.u64 %rd2, [out];
  isspacep.global %p1, %rd1; selp.u32 %r1, 1, 0, %p1;
  st.global.u32 [%rd2], %r1;
  ret;""",
        LOADED,
    )
    out = np.full(1, 7, "u4")
    for base, wanted in ((out, 1), (device.empty(1), 1), (0, 1), (2**63, 1)):
        launch(text, device, base, out)
        assert out[0] == wanted


def test_strings_of_the_host_are_printed(device, pages):
    text = kernel(
        """
  .reg .b32 %result; .local .align 8 .b8 values[8]; .reg .b64 %at;
  mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; @%p1 ret;
  ld.param.u64 %rd1, [base]; ld.param.u64 %rd2, [out];
  cvta.local.u64 %at, 0; mov.u64 %at, values; cvta.local.u64 %at, %at;
  st.u64 [%at], %rd2;
  { .param .b64 f; .param .b64 v; .param .b32 r;
    st.param.b64 [f], %rd1; st.param.b64 [v], %at;
    call.uni (r), vprintf, (f, v); }
  ret;""",
        LOADED,
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n",
    )
    module = ptxemu.loads(text, filename="test.ptx", device=device)
    said: list[str] = []
    form, name = np.frombuffer(b"hello %s\n\0", "u1"), np.frombuffer(b"host\0", "u1")
    module["k"][1, LANES](form, name, printf=said.append)
    assert "".join(said) == "hello host\n"
    for base in (pages[2], 2**63):
        with pytest.raises(ptxemu.Fault, match="illegal address"):
            module["k"][1, LANES](form, base)


def test_only_ptx_and_only_if_it_is_asked_for():
    with pytest.raises(ptxemu.InputError, match="True or False"):
        ptxemu.Device(host_memory="yes")  # type: ignore[arg-type]
    with pytest.raises(ptxemu.InputError, match="runs PTX only"):
        ptxemu.loads("", device=ptxemu.Device("64 MiB", host_memory=True), dialect="sass")
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        launch(SAXPY, ptxemu.Device("64 MiB"), np.zeros(LANES, "f4").ctypes.data, np.zeros(LANES, "f4"))
