"""Bad accesses and other ends of a kernel: what the error names, what stays intact, and what must not fault."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import ptxemu
from ptxemu.device.advice import COOPERATIVE
from ptxemu.device.device import default_device
from tests.support.kernel_tools import kernel, run

LANES = 32
FORMS = {
    # %r0 is the thread, %rd5 the base, %rd6 the byte offset of the thread
    "uniform": "mov.u64 %rd6, 0;",
    "pattern": "mul.wide.u32 %rd6, %r0, 4;",
    "rows": "and.b32 %r5, %r0, 15; mul.wide.u32 %rd6, %r5, 4;",
    "varying": "xor.b32 %r5, %r0, 3; mul.wide.u32 %rd6, %r5, 4;",
}
FIRST_OFFSET = {"uniform": 0, "pattern": 0, "rows": 0, "varying": 12}  # of thread 0
ACCESSES = {
    "load": "ld.{space}.u32 %r6, [%rd7];",
    "store": "st.{space}.u32 [%rd7], %r0;",
    "atomic": "atom.{space}.add.u32 %r6, [%rd7], 1;",
    "reduction": "red.{space}.add.u32 [%rd7], 1;",
}
PARAMETERS = ".param .u64 base, .param .u64 out"
SHARED = ".shared .align 16 .b8 s[128];\n.const .align 16 .b8 c[128];\n.global .align 16 .b8 g[128];\n"


def access_kernel(space: str, form: str, access: str) -> str:
    """Threads access ``base`` + the offset of the form in a space, then report to ``out`` that they are done."""
    written = ACCESSES[access].format(space=space) if space else ACCESSES[access].replace(".{space}", "")
    return kernel(
        f"""
  .local .align 16 .b8 depot[128];
  ld.param.u64 %rd5, [base]; ld.param.u64 %rd8, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r6, 0;
  {FORMS[form]}
  mov.u64 %rd9, depot; mov.u64 %rd10, s; mov.u64 %rd11, c;
  add.s64 %rd7, %rd5, %rd6;
  {written} // BAD
  mul.wide.u32 %rd12, %r0, 4; add.s64 %rd12, %rd8, %rd12;
  st.global.u32 [%rd12], %r6;
  ret;""",
        PARAMETERS,
        SHARED,
    )


def bad_line(text: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if "// BAD" in line)


def fault_of(text: str, *args: object, grid: int = 1, block: int = LANES, **options: object) -> ptxemu.Fault:
    with pytest.raises(ptxemu.Fault) as caught:
        run(text, grid, block, *args, **options)
    return caught.value


def check_message(fault: ptxemu.Fault, text: str, kind: str, space: str, address: int) -> None:
    message, record = str(fault), fault.record
    assert record["kind"] == kind
    assert f"{kind} in kernel `k` at test.ptx:{bad_line(text)}: block (0,0,0), " in message
    assert f"{space} address 0x{address:x}" in message
    assert "\n" not in message
    assert record["space"] == space and record["address"] == address


def works_after(module_text: str) -> None:
    """The module that has just faulted runs with good arguments."""
    data, out = np.zeros(64, np.uint32), np.ones(64, np.uint32)
    run(module_text, 1, LANES, data, out)
    assert not out[:LANES].all()


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("space", ["global", ""])
def test_bad_global_address(space: str, form: str, access: str) -> None:
    """Null, wild, negative, misaligned, freed and one past the end of a whole page."""
    device = default_device()
    page = os.sysconf("SC_PAGE_SIZE")
    data = device.to_device(np.zeros(page // 4, np.uint32), "data")
    out = device.to_device(np.full(64, 7, np.uint32), "out")
    text = access_kernel(space, form, access)
    first, named = FIRST_OFFSET[form], space or "generic"
    for base, kind in [
        (0, "null pointer"),
        (16, "null pointer"),
        (data.address + 2, "misaligned address"),
        (data.address + (1 << 45), "illegal address"),
        (2**64 - 64, "illegal address"),
        (2**47, "illegal address"),
    ]:
        fault = fault_of(text, base, out)
        check_message(fault, text, kind, named, (base + first) % 2**64)
        assert fault.record["thread"] == (0, 0, 0)
    for base in (data.address + page, data.address - 32 * 4):
        fault = fault_of(text, base, out)
        record = fault.record
        assert record["kind"] == "illegal address"
        assert record["where"] == f"test.ptx:{bad_line(text)}"
        assert f"`data` ({page} bytes" in str(fault)
        assert isinstance(record["address"], int) and base <= record["address"] < base + 128
    np.testing.assert_array_equal(out.array, 7)
    np.testing.assert_array_equal(data.array, 0)
    works_after(text)


ILLEGAL, MISALIGNED = "illegal address", "misaligned address"
NAMES = {"shared": "shared", "local": "local", "const": "constant", "param": "parameter"}


@dataclass(frozen=True)
class Window:
    """A space with exact bounds: where its variable lies among the registers of ``access_kernel``."""

    space: str
    accesses: tuple[str, ...]
    size: int = 128


WINDOWS = [
    Window("shared", ("load", "store", "atomic", "reduction")),
    Window("local", ("load", "store")),
    Window("const", ("load",)),
    Window("param", ("load",)),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.space)
def test_bad_window_address(window: Window, form: str) -> None:
    """Shared, local, constant and parameter space end exactly at their last byte."""
    variable = {"shared": "s", "local": "depot", "const": "c", "param": "block"}[window.space]
    for access in window.accesses:
        written = ACCESSES[access].format(space=window.space)
        text = kernel(
            f"""
  .local .align 16 .b8 depot[128];
  ld.param.s64 %rd4, [shift];
  mov.u32 %r0, %tid.x;
  {FORMS[form]}
  mov.u64 %rd5, {variable}; add.s64 %rd5, %rd5, %rd4; add.s64 %rd7, %rd5, %rd6;
  {written} // BAD
  ret;""",
            ".param .s64 shift, .param .align 8 .b8 block[120]",
            SHARED,
        )
        extent = 120 if window.space == "param" else window.size
        reach = {"uniform": 4, "pattern": 128, "rows": 64, "varying": 128}[form]
        for shift, kind in [(-8 if form != "varying" else -64, ILLEGAL), (extent, ILLEGAL), (1, MISALIGNED), (1 << 20, ILLEGAL)]:
            if window.space == "param" and shift < 0:
                continue  # the parameter before lies there
            fault = fault_of(text, shift, bytes(120))
            assert fault.record["kind"] == kind, (access, shift)
            assert fault.record["space"] == NAMES[window.space]
            assert fault.record["where"] == f"test.ptx:{bad_line(text)}"
            assert fault.record["size"] == 4
        inside = extent - reach
        if inside >= 0:
            run(text, 1, LANES, inside, bytes(120))
        fault = fault_of(text, extent - reach + 4, bytes(120))
        last = {"uniform": 0, "pattern": 31, "rows": 15, "varying": 28}[form]
        if inside >= 0:
            assert fault.record["thread"] == (last, 0, 0)


@pytest.mark.parametrize("space", ["shared", "const"])
def test_windows_are_exact_to_the_byte(space: str) -> None:
    declaration = f".{space} .align 1 .b8 v[13];"
    inside = declaration if space == "local" else ""
    text = kernel(
        f"""{inside}
  ld.param.u32 %r1, [index];
  cvt.u64.u32 %rd1, %r1; mov.u64 %rd2, v; add.s64 %rd3, %rd2, %rd1;
  ld.{space}.u8 %h1, [%rd3]; // BAD
  ret;""",
        ".param .u32 index",
        "" if inside else declaration,
    )
    run(text, 1, LANES, 12)
    fault = fault_of(text, 13)
    assert (fault.record["kind"], fault.record["size"]) == (ILLEGAL, 1)


def test_generic_address_of_a_window_that_ends() -> None:
    """A generic address one past the shared window is not a silent access to something else."""
    text = kernel(
        """
  mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1;
  ld.param.u64 %rd3, [shift]; add.s64 %rd4, %rd2, %rd3;
  st.u32 [%rd4], 1; // BAD
  ret;""",
        ".param .u64 shift",
        ".shared .align 16 .b8 s[128];",
    )
    run(text, 1, LANES, 124)
    assert fault_of(text, 1 << 40).record["kind"] == ILLEGAL
    assert fault_of(text, 2).record["kind"] == MISALIGNED


GUARDED = """
  ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [bad]; ld.param.u64 %rd3, [out];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %rd4, %r0, 4;
  add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, %rd3, %rd4;
  and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0;
  selp.b64 %rd8, %rd5, %rd6, %p1;
  mov.u32 %r2, 99;
"""
BRANCHED = """
  @!%p1 bra SKIP;
  {access}
SKIP:
"""
PREDICATED = "  @%p1 {access}\n"
PLACES = ["%rd8", "%rd6"]


@pytest.mark.parametrize("shape", [BRANCHED, PREDICATED], ids=["branch", "guard"])
@pytest.mark.parametrize(
    "access",
    [
        "ld.global.u32 %r2, [%rd8];",
        "ld.u32 %r2, [%rd8];",
        "st.global.u32 [%rd8], 99;",
        "atom.global.exch.b32 %r3, [%rd8], 99;",
        "red.global.max.u32 [%rd8], 99;",
    ],
)
@pytest.mark.parametrize("bad", [0, 2, 1 << 46])
def test_inactive_lanes_do_not_fault(shape: str, access: str, bad: int) -> None:
    """Odd threads hold a bad address, but do not access it."""
    text = kernel(
        GUARDED + shape.format(access=access) + "  st.global.u32 [%rd7], %r2;\n  ret;",
        ".param .u64 data, .param .u64 bad, .param .u64 out",
    )
    data, out = np.full(40, 99, np.uint32), np.zeros(40, np.uint32)
    run(text, 1, 40, data, bad, out)
    np.testing.assert_array_equal(out, 99)
    np.testing.assert_array_equal(data, 99)


@pytest.mark.parametrize("shape", [BRANCHED, PREDICATED], ids=["branch", "guard"])
@pytest.mark.parametrize("access", ["ld.global.u32 %r2, [%rd6];", "st.global.u32 [%rd6], 99;"])
@pytest.mark.parametrize("bad", [0, 2, 1 << 46])
def test_code_that_no_lane_enters_does_not_fault(shape: str, access: str, bad: int) -> None:
    """A pattern of bad addresses under a condition that is false in all threads."""
    never = "  setp.gt.u32 %p1, %r0, 1000;\n"
    text = kernel(
        GUARDED + never + shape.format(access=access) + "  st.global.u32 [%rd7], %r2;\n  ret;",
        ".param .u64 data, .param .u64 bad, .param .u64 out",
    )
    out = np.zeros(40, np.uint32)
    run(text, 1, 40, np.zeros(1, np.uint32), bad, out)
    np.testing.assert_array_equal(out, 99)


SAXPY = """
  ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n]; ld.param.u64 %rd9, [shared];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r0, %r3, %r4, %r2;
  setp.ge.s32 %p1, %r0, %r1;
  @%p1 bra END;
  mul.wide.s32 %rd2, %r0, {size}; add.s64 %rd3, %rd1, %rd2;
  ld.global.{type} {value}, [%rd3];
  st.global.{type} [%rd3], {value};
END:
  ret;
"""


@pytest.mark.parametrize(("kind", "size", "value"), [("u8", 1, "%h1"), ("u32", 4, "%r5"), ("v2.u64", 16, "{%rd5, %rd6}")])
@pytest.mark.parametrize("count", [1, 31, 33, 255])
def test_partial_warp_at_the_end_of_a_buffer(kind: str, size: int, value: str, count: int) -> None:
    """The last lanes' addresses lie on an unmapped page; the guard keeps them out."""
    text = kernel(SAXPY.format(type=kind, size=size, value=value), ".param .u64 x, .param .u32 n, .param .u64 shared")
    page = os.sysconf("SC_PAGE_SIZE")
    buffer = default_device().to_device(np.arange(page, dtype=np.uint32).view(np.uint8)[:page])
    before = buffer.copy_to_host()
    start = buffer.address + page - count * size
    if start % size == 0:
        run(text, 4, 96, start, count, 0)
        np.testing.assert_array_equal(buffer.array, before)


def test_blocks_that_are_no_multiple_of_a_warp() -> None:
    """Lanes beyond the block do not exist: they neither load nor fault."""
    page = os.sysconf("SC_PAGE_SIZE")
    buffer = default_device().to_device(np.arange(page // 4, dtype=np.uint32))
    text = kernel(
        """
  ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r1, [%rd3]; add.u32 %r1, %r1, 1; st.global.u32 [%rd3], %r1; ret;""",
        ".param .u64 x",
    )
    run(text, 1, 5, buffer.address + page - 20)
    np.testing.assert_array_equal(buffer.array, np.arange(page // 4) + (np.arange(page // 4) >= page // 4 - 5))


def test_only_the_bad_lane_is_blamed() -> None:
    text = kernel(
        """
  ld.param.u64 %rd1, [index]; ld.param.u64 %rd2, [data];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0;
  mul.wide.s32 %rd3, %r3, 8; add.s64 %rd4, %rd1, %rd3; ld.global.u64 %rd5, [%rd4];
  add.s64 %rd6, %rd2, %rd5;
  ld.global.u32 %r4, [%rd6]; // BAD
  ret;""",
        ".param .u64 index, .param .u64 data",
    )
    index = np.zeros(60, np.int64)
    index[43] = 1 << 44
    with pytest.raises(ptxemu.Fault) as caught:
        run(text, (1, 1, 1), (12, 5, 1), index, np.zeros(4, np.uint32))
    record = caught.value.record
    assert (record["thread"], record["warp"], record["lane"]) == ((7, 3, 0), 1, 11)


def test_fault_in_a_later_block_names_it() -> None:
    text = kernel(
        """
  ld.param.u64 %rd1, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; setp.eq.u32 %p1, %r0, 3; setp.eq.and.u32 %p2, %r1, 2, %p1;
  @!%p2 ret;
  mov.u64 %rd2, 0;
  st.global.u32 [%rd2], 1; // BAD
  ret;""",
    )
    with pytest.raises(ptxemu.Fault) as caught:
        run(text, (5, 4, 1), 32, np.zeros(4))
    assert caught.value.record["block"] == (3, 2, 0)


def test_arrays_are_unchanged_after_a_fault() -> None:
    text = access_kernel("global", "uniform", "store")
    out = np.full(64, 5, np.uint32)
    fault_of(text, 0, out)
    np.testing.assert_array_equal(out, 5)


def test_trap_and_brkpt() -> None:
    text = kernel(
        """
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 9;
  brkpt;
  @%p1 bra GOOD;
  trap; // BAD
GOOD:
  ret;"""
    )
    fault = fault_of(text, np.zeros(1))
    assert fault.record["kind"] == "trap" and fault.record["thread"] == (9, 0, 0)
    assert f"trap in kernel `k` at test.ptx:{bad_line(text)}" in str(fault)
    run(text, 1, 9, np.zeros(1))


DEADLOCK = """
  ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x;
  setp.lt.u32 %p1, %r0, 32;
  @%p1 bra FIRST;
  bar.sync 1, 96; // BAD
  ret;
FIRST:
  bar.sync 2, 64;
  ret;
"""


def test_deadlock_is_reported() -> None:
    fault = fault_of(kernel(DEADLOCK), np.zeros(1), block=64)
    assert fault.record["kind"] == "deadlock"
    assert "in kernel `k` at test.ptx:" in str(fault)


ENDLESS = {
    "uniform": "LOOP: bra LOOP;",
    "divergent": "LOOP: add.s32 %r1, %r1, %r0; setp.ne.s32 %p1, %r1, -1; @%p1 bra LOOP; bra LOOP;",
    "memory": "LOOP: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra LOOP;",
    "barrier": "LOOP: bar.sync 0; bra LOOP;",
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_timeout_ends_an_endless_kernel(kind: str) -> None:
    text = kernel(f"ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, 0;\n{ENDLESS[kind]}\nret;")
    module = ptxemu.loads(text)
    seen = rf", last seen at <string>:\d+; {re.escape(COOPERATIVE)}(\n|$)" if kind == "memory" else ""
    message = r"^kernel `k` did not end within 0\.05 s: block \([012],0,0\), warp [01] was running" + seen
    with pytest.raises(ptxemu.LaunchTimeout, match=message):
        module["k"][3, 64](np.zeros(1, np.uint32), timeout=0.05)
    if kind == "memory":
        module["k"][1, 64](np.ones(1, np.uint32), timeout=60)


def test_interrupt_ends_an_endless_kernel() -> None:
    text = kernel(f"ld.param.u64 %rd1, [out];\n{ENDLESS['uniform']}\nret;")
    module = ptxemu.loads(text)

    def interrupt() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    launcher, out = module["k"][2, 32], np.zeros(1, np.uint32)
    with pytest.raises(KeyboardInterrupt):
        launcher(out, timeout=60)
    thread.join()


FRAGMENT = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
EVERY_ACCESS = [
    "ld.global.u32 %r1, [%rd1];",
    "ld.u32 %r1, [%rd1];",
    "st.global.u32 [%rd1], 0;",
    "red.global.add.u32 [%rd1], 1;",
    "atom.global.add.u32 %r1, [%rd1], 1;",
    "atom.add.u32 %r1, [%rd1], 1;",
    "cp.async.ca.shared.global [s], [%rd1], 16;",
    "cp.async.ca.shared.global [s], [%rd1], 16, 8;",
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%rd1], 16, [bar];",
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 16;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], 16;",
    "st.bulk.weak [%rd1], 16, 0;",
    "mbarrier.init.b64 [%rd1], 1;",
    "mbarrier.arrive.b64 %rd2, [%rd1];",
    "mbarrier.try_wait.parity.b64 %p1, [%rd1], 0;",
    "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd1];",
    "stmatrix.sync.aligned.m8n8.x1.b16 [%rd1], {%r1};",
    "ldmatrix.sync.aligned.m16n16.x1.trans.b8 {%r1, %r2}, [%rd1];",
    "ldmatrix.sync.aligned.m8n16.x1.b8x16.b4x16_p64 {%r1}, [%rd1];",
    "stmatrix.sync.aligned.m16n8.x1.trans.b8 [%rd1], {%r1};",
    f"wmma.load.a.sync.aligned.row.m16n16k16.f16 {FRAGMENT}, [%rd1];",
    f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {FRAGMENT}, [%rd1];",
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1, %r2, %r3, %r4};",
]
WARP_WIDE = ("ldmatrix", "stmatrix", "wmma")


def fault_of_access(instruction: str, address: int) -> ptxemu.Fault:
    body = f"ld.param.u64 %rd1, [at]; {instruction} st.global.u32 [g], %r1; ret;"
    declarations = SHARED + ".shared .align 8 .b64 bar;\n"
    text = kernel(body, ".param .u64 at", declarations).replace("8.0", "8.6", 1).replace("sm_80", "sm_100a")
    return fault_of(text, address % 2**64, block=LANES if instruction.startswith(WARP_WIDE) else 1)


@pytest.mark.parametrize(
    ("address", "kind"), [(0, "null pointer"), (64, "null pointer"), (1 << 40, "illegal address"), (-16, "illegal address")]
)
@pytest.mark.parametrize("instruction", EVERY_ACCESS)
def test_every_instruction_says_the_same_of_an_address(instruction, address, kind):
    message = str(fault_of_access(instruction, address))
    assert message.startswith(f"{kind} in kernel `k` at test.ptx:")
    assert "bytes before" not in message and "past the end" not in message
    assert message.endswith(", outside of any allocation" if kind == "illegal address" else f"address 0x{address:x}")


@pytest.mark.parametrize("instruction", EVERY_ACCESS)
def test_a_misaligned_address_is_that_wherever_it_leads(instruction):
    for address in (2, (1 << 47) + 2, -14):
        assert fault_of_access(instruction, address).record["kind"] == "misaligned address"
