"""RED: addressing, errors and updates."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.dialects.sass.memory import BIAS
from tests.support.sass_harness import device, module

ENTRY = """.kernel k
.param ptr out
MOV R2, c[0x0][0x140]
MOV R3, c[0x0][0x144]
"""


def launch(text: str, *arguments: object, threads: int = 1, **options: str) -> None:
    module(text, tuple(options.items()))["k"][1, threads](*arguments)


def address(buffer: ptxemu.Buffer) -> int:
    """Where a program finds a buffer: device memory lies behind the windows of its address space."""
    return buffer.address - device().arena.base + BIAS


def on_registers(instruction: str, **registers: int) -> str:
    moves = [f"MOV32I {name}, 0x{value & 0xFFFFFFFF:x}" for name, value in registers.items()]
    return "\n".join([".kernel k", *moves, instruction, "EXIT"])


# ---------------------------------------------------------------- addresses


def test_the_three_examples_of_the_reference():
    """The three examples of the reference."""
    buffer = device().to_device(np.full(4096, 9, np.uint32))
    text = f"{ENTRY}MOV32I R4, 0x190\nIADD R0.CC, R2, R4\nIADD.X R1, R3, RZ\nMOV32I R5, 0x2\n"
    launch(f"{text}RED.E.MIN.U32  [R0 - 400], R5;\nEXIT", buffer)
    assert buffer.copy_to_host()[0] == 2
    launch(f"{ENTRY}MOV32I R1, 0x5\nRED.ADD.U32    [R2 + 0x1234], R1;  // Note\nEXIT", buffer)
    assert buffer.copy_to_host()[0x1234 // 4] == 14
    with pytest.raises(ptxemu.Fault, match=r"illegal address.*0xffff0000"):
        launch(on_registers("RED.MIN.S32    [0xFFFF0000], R1;   // Absolute unsigned address", R1=1))


def test_a_32_bit_sum_wraps():
    """A 32 bit sum wraps."""
    with pytest.raises(ptxemu.Fault, match=r"illegal address.*0xffffff70,"):
        launch(on_registers("RED.ADD [R4-400], R6", R4=0x100, R6=1))
    buffer = device().to_device(np.zeros(4, np.uint32))
    place = address(buffer)
    assert place < 1 << 32
    launch(
        on_registers("RED.ADD [R4+0x20], R6", R4=place - 0x20, R6=1),
    )
    launch(on_registers("RED.ADD [R4+-0x20], R6", R4=place + 0x24, R6=2))
    assert buffer.copy_to_host().tolist() == [1, 2, 0, 0]


def test_an_extended_sum_has_64_bits():
    """An extended sum has 64 bits."""
    with pytest.raises(ptxemu.Fault, match=r"illegal address.*0xfffffffc,"):
        launch(on_registers("RED.E.ADD [R4-4], R6", R4=0, R5=1, R6=1))
    with pytest.raises(ptxemu.Fault, match=r"illegal address.*0xfffffffffffffffc,"):
        launch(on_registers("RED.E.ADD [R4-4], R6", R4=0, R5=0, R6=1))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[0x7fffc]", 0x7FFFC), ("[0xfff80000]", 0xFFF80000), ("[0xf0000]", 0xFFFF0000), ("[-4]", 0xFFFFFFFC),
        ("[RZ+0x10]", 0x10), ("[RZ]", 0),
    ],
)  # fmt: skip
def test_absolute_addresses(text, seen):
    """Absolute addresses."""
    with pytest.raises(ptxemu.Fault, match=rf"illegal address.* 0x{seen:x},"):
        launch(on_registers(f"RED.ADD {text}, R6"))


def test_an_absolute_extended_address_is_sign_extended():
    """An absolute extended address is sign extended."""
    with pytest.raises(ptxemu.Fault, match=r"illegal address.* 0xffffffffffff0000,"):
        launch(on_registers("RED.E.ADD [0xf0000], R6"))


@pytest.mark.parametrize("text", ["[0x100000]", "[0xfff7ffff]", "[R4+0x80000]", "[R4-0x80001]", "[-0x80001]"])
def test_offsets_without_an_encoding(text):
    """Offsets without an encoding."""
    with pytest.raises(ptxemu.PtxError, match="does not fit 20 bits"):
        ptxemu.loads(on_registers(f"RED.ADD {text}, R6"), dialect="sass")


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("place", "size", "kind"),
    [
        (0x01000000, "U32", "invalid address space"),
        (0x01FFFFFC, "U32", "invalid address space"),
        (0x02000001, "U32", "invalid address space"),  # the window comes before the alignment
        (0x02FFFFFF, "U64", "invalid address space"),
        (0x00FFFFFC, "U32", "illegal address"),
        (0x03000000, "U32", "illegal address"),
        (0x03000002, "U32", "misaligned address"),  # the alignment comes before the region
        (0x03000004, "U64", "misaligned address"),
        (0x03000002, "F16x2.RN", "misaligned address"),
    ],
)
def test_faults(place, size, kind):
    """faults."""
    op = "ADD"
    where = rf"at <string>:\d+: block \(0,0,0\), thread \(0,0,0\), \d-byte access to generic address 0x{place:x}"
    with pytest.raises(ptxemu.Fault, match=rf"{kind} in kernel `k` {where}, in the program's own address space$"):
        launch(on_registers(f"RED.{op}.{size} [R4], R6", R4=place, R6=1))


def test_windows_are_configurable():
    """Windows are configurable."""
    text = on_registers("RED.ADD [R4], R6", R4=0x01000000, R6=1)
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        launch(text, shared_window="none")
    with pytest.raises(ptxemu.Fault, match="invalid address space"):
        launch(text, shared_window="none", local_window="0x1000000:0x1000004")
    with pytest.raises(ptxemu.InputError, match="option shared_window is '5', not 'first:last' or 'none'"):
        launch(text, shared_window="5")


@pytest.mark.parametrize("window", ["0x10000000:0x20000000", "0:0x40000000", "0xfffffffffe:0x10000000000", "0x10:0x10"])
def test_no_buffer_lies_in_a_window(window):
    """Wherever the windows are, the loader gives buffers addresses outside them."""
    buffer = device().to_device(np.zeros(2, np.uint32))
    for options in ({"shared_window": window}, {"local_window": window}, {"local_window": window, "shared_window": "none"}):
        launch(f"{ENTRY}MOV32I R6, 0x1\nRED.E.ADD [R2+4], R6\nEXIT", buffer, **options)
    assert buffer.copy_to_host().tolist() == [0, 3]
    for wrong in ("2:1", "0:0x10000000001", "-1:5", "1", "a:b", ""):
        with pytest.raises(ptxemu.InputError, match="option shared_window is"):
            launch(ENTRY, buffer, shared_window=wrong)


def test_both_windows_may_be_disabled():
    """Then only the region test is left."""
    for place in (0x01000000, 0x02000000):
        with pytest.raises(ptxemu.Fault, match="illegal address"):
            launch(on_registers("RED.ADD [R4], R6", R4=place), shared_window="none", local_window="none")


def test_no_policy_aligns_an_address():
    """No policy aligns an address."""
    with pytest.raises(ptxemu.Fault, match="misaligned"):
        launch(on_registers("RED.ADD [R4], R6", R4=0x03000002, R6=1), align="mask")


def test_errors_leave_memory_untouched():
    """Errors leave memory untouched."""
    buffer = device().to_device(np.zeros(8, np.uint32))
    for shift in (1, 2, 3):
        with pytest.raises(ptxemu.Fault, match="misaligned"):
            launch(on_registers(f"RED.ADD [R4+{shift}], R6", R4=address(buffer), R6=-1))
    with pytest.raises(ptxemu.Fault, match="misaligned"):
        launch(on_registers("RED.ADD.U64 [R4+4], R6", R4=address(buffer), R6=-1))
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        launch(on_registers("RED.ADD [R4], R6", R4=address(buffer) + (64 << 20), R6=-1))
    assert not buffer.copy_to_host().any()


def test_the_whole_element_must_lie_in_one_region():
    """The whole element must lie in one region."""
    buffer = device().to_device(np.zeros(5, np.uint32))
    launch(on_registers("RED.ADD.U64 [R4+8], R6", R4=address(buffer), R6=1, R7=2))
    launch(on_registers("RED.ADD [R4+16], R6", R4=address(buffer), R6=3))
    assert buffer.copy_to_host().tolist() == [0, 0, 1, 2, 3]
    for text in ("RED.ADD.U64 [R4+16], R6", "RED.ADD [R4+20], R6"):
        with pytest.raises(ptxemu.Fault, match="illegal address"):
            launch(on_registers(text, R4=address(buffer), R6=3))


def test_lanes_may_go_to_several_regions_but_not_between():
    """Each lane's element lies in an allocated region; that its neighbours' do says nothing."""
    first, second = sorted((device().to_device(np.zeros(5, np.uint32)) for _ in range(2)), key=lambda one: one.address)
    text = ".kernel k\n.in R4 place\nMOV32I R6, 0x1\nRED.ADD [R4], R6\nEXIT"
    inside = [address(first), address(first) + 16, address(second) + 4, address(second) + 16]
    launch(text, np.array(inside, np.uint32), threads=4)
    assert first.copy_to_host().tolist() == [1, 0, 0, 0, 1] and second.copy_to_host().tolist() == [0, 1, 0, 0, 1]
    between = [address(first), address(first) + 20, address(second), address(first) + 20]
    with pytest.raises(ptxemu.Fault, match=r"illegal address.*thread \(1,0,0\)") as fault:
        launch(text, np.array(between, np.uint32), threads=4)
    assert fault.value.record["count"] == 2
    assert first.copy_to_host()[0] == 2 and second.copy_to_host()[0] == 0


def test_all_lanes_at_one_address():
    """The exact total, and floats in the order of lanes."""
    buffer = device().to_device(np.zeros(2, np.uint32))
    launch(f"{ENTRY}MOV32I R6, 0x3\nRED.E.ADD [R2+4], R6\nEXIT", buffer, threads=1000)
    assert buffer.copy_to_host().tolist() == [0, 3000]
    sums = device().to_device(np.zeros(1, np.float32))
    values = np.geomspace(1, 1e8, 32, dtype=np.float32)
    text = f"{ENTRY.replace('MOV', '.in R6 value' + chr(10) + 'MOV', 1)}RED.E.ADD.F32.FTZ.RN [R2], R6\nEXIT"
    launch(text, sums, values, threads=32)
    assert sums.copy_to_host()[0] == np.add.accumulate(values)[-1]


def test_lanes_before_the_fault_are_done():
    """Lanes before the fault are done."""
    buffer = device().to_device(np.zeros(8, np.uint32))
    text = (
        ENTRY.replace("MOV", ".in R4 offset\nMOV", 1)
        + "IADD R2.CC, R2, R4\nIADD.X R3, R3, RZ\nMOV32I R6, 0x7\nRED.E.ADD [R2], R6\nEXIT"
    )
    offsets = np.array([0, 4, 2, 8], np.uint32)
    with pytest.raises(ptxemu.Fault, match=r"misaligned.*thread \(2,0,0\)"):
        launch(text, buffer, offsets, threads=4)
    assert buffer.copy_to_host().tolist() == [7, 7, 0, 0, 0, 0, 0, 0]


def test_a_null_pointer_stays_null():
    """A null pointer stays null."""
    with pytest.raises(ptxemu.Fault, match=r"illegal address.* 0x0,"):
        launch(f"{ENTRY}RED.E.ADD [R2], R6\nEXIT", None)


def test_guarded_and_helper_lanes_do_nothing():
    """Guarded and helper lanes do nothing."""
    buffer = device().to_device(np.zeros(4, np.uint32))
    text = f"{ENTRY}.helper 0x1\nS2R R0, SR_TID.X\nISETP.NE.AND P1, PT, R0, 0x2, PT\nMOV32I R6, 0x1\n@P1 RED.E.ADD [R2], R6\nEXIT"
    launch(text, buffer, threads=8)
    assert buffer.copy_to_host()[0] == 6


@pytest.mark.parametrize(("size", "ftz", "result"), [("F16x2.RN", False, 0x00010002), ("F16x2.FTZ.RN", True, 0)])
def test_halves_keep_subnormals_unless_they_say_ftz(size, ftz, result):
    """Halves keep subnormals unless they say ftz."""
    buffer = device().to_device(np.array([0x00000001], np.uint32))
    launch(f"{ENTRY}MOV32I R6, 0x10001\nRED.E.ADD.{size} [R2], R6\nEXIT", buffer)
    assert buffer.copy_to_host()[0] == result


def test_many_threads_on_one_word():
    """Many threads on one word."""
    buffer = device().to_device(np.zeros(2, np.uint32))
    text = f"{ENTRY}MOV32I R6, 0x1\nMOV32I R7, 0x3\nRED.E.ADD [R2], R6\nRED.INC [R2+4], R7\nEXIT"
    module(text)["k"][20, 256](buffer)
    assert buffer.copy_to_host().tolist() == [5120, 5120 % 4]
