"""The loader of our own objects: what it links, what it gives back, and what it does with bytes that are no object of ours."""

from __future__ import annotations

import ctypes
import io
import random
import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from ptxemu import _runtime
from ptxemu._runtime import ffi, lib
from ptxemu.device.linked_code import LinkedCode, LinkError
from ptxemu.driver import compile

X86_64, AARCH64 = 62, 183
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.global .u32 count;
.visible .entry kernel(.param .u64 out) {
    .reg .u64 %rd<3>;
    .reg .u32 %r<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    atom.global.add.u32 %r2, [count], 1;
    bar.sync 0;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""


@pytest.fixture(scope="module")
def code():
    return compile.kernel(compile.front(KERNEL), "kernel").object


def private_bytes() -> int:
    """Of this process's memory, those that no file backs."""
    fields = dict(line.split(":") for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:])
    return sum(int(fields[name].split()[0]) for name in ("Private_Dirty", "Private_Clean")) << 10


def executable_mappings() -> list[str]:
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if "x" in line.split()[1]]


def mapping_of(address: int) -> str:
    """The permissions of the mapping that has an address."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(number, 16) for number in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[1]
    return ""


# ---------------------------------------------------------------- linking


def test_code_can_be_executed_and_not_written(code):
    assert mapping_of(LinkedCode(code, "kernel").address) == "r-xp"


def test_no_mapping_of_the_code_can_be_written(code):
    before = set(Path("/proc/self/maps").read_text().splitlines())
    linked = LinkedCode(code, "kernel")
    made = set(Path("/proc/self/maps").read_text().splitlines()) - before
    assert linked.address and not [line for line in made if "wx" in line.split()[1]]


def test_what_was_loaded_is_given_back(code):
    for _ in range(10):
        LinkedCode(code, "kernel")
    mappings, before = len(executable_mappings()), private_bytes()
    for _ in range(1000):
        LinkedCode(code, "kernel")
    assert len(executable_mappings()) == mappings
    assert private_bytes() - before < 512 << 10


def test_code_has_owners(code):
    made, problem = ffi.new("pe_code **"), ffi.new("char **")
    assert lib.pe_code_link(code, len(code), b"kernel", made, problem) == 0
    address = lib.pe_code_address(made[0])
    lib.pe_code_keep(made[0])
    lib.pe_code_release(made[0])
    assert mapping_of(address) == "r-xp"
    lib.pe_code_release(made[0])
    assert mapping_of(address) != "r-xp"


# ---------------------------------------------------------------- what is refused


def refused(data: bytes, symbol: str = "kernel") -> str:
    with pytest.raises(LinkError) as caught:
        LinkedCode(data, symbol)
    return str(caught.value)


@pytest.mark.parametrize("data", [b"", b"no object", b"\x7fELF", bytes(64), bytes(4096)])
def test_no_object(data):
    assert "the object is" in refused(data)


def test_code_for_another_machine(code):
    other = AARCH64 if lib.pe_code_machine() == X86_64 else X86_64
    assert "another machine" in refused(code[:18] + struct.pack("<H", other) + code[20:])


def test_a_function_that_it_does_not_have(code):
    assert "does not have the function" in refused(code, "colonel")


def test_a_symbol_that_the_runtime_does_not_have(code):
    assert b"\0pe_check\0" in code
    assert "a symbol that the runtime does not have" in refused(code.replace(b"\0pe_check\0", b"\0no_check\0"))


def test_every_piece_of_an_object_is_refused_or_complete(code):
    for size in range(0, len(code), 7):
        with pytest.raises(LinkError):
            LinkedCode(code[:size], "kernel")


def test_damaged_objects_touch_nothing_else(code):
    """Bytes that are changed in headers, symbols and relocations: an error, or code that is not run here."""
    elf, random_ = ELFFile(io.BytesIO(code)), random.Random(7)
    spans = [(0, 64), (elf.header.e_shoff, 64 * elf.header.e_shnum)]
    spans += [
        (s["sh_offset"], s["sh_size"]) for s in elf.iter_sections() if s["sh_type"] in ("SHT_SYMTAB", "SHT_RELA", "SHT_STRTAB")
    ]
    outcomes = {True: 0, False: 0}
    for _ in range(4000):
        data = bytearray(code)
        for _ in range(random_.choice((1, 1, 2, 5))):
            start, size = random_.choice(spans)
            at = start + random_.randrange(size)
            value = random_.choice((0, 1, 0x7F, 0x80, 0xFF, random_.randrange(256)))
            data[at : at + random_.choice((1, 1, 4, 8))] = bytes([value]) * min(random_.choice((1, 1, 4, 8)), len(data) - at)
        try:
            LinkedCode(bytes(data), "kernel")
            outcomes[True] += 1
        except LinkError:
            outcomes[False] += 1
    assert all(outcomes.values())


# ---------------------------------------------------------------- relocations, by the documents of each machine

PLACE = 0x5555_0000_1230
PREL, CALL, ABSOLUTE, PAGE, LOW = "prel", "call", "absolute", "page", "low"
TYPES = {
    (X86_64, 1): ABSOLUTE, (X86_64, 2): PREL, (X86_64, 4): PREL,
    (AARCH64, 257): ABSOLUTE, (AARCH64, 261): PREL, (AARCH64, 275): PAGE, (AARCH64, 282): CALL, (AARCH64, 283): CALL,
    (AARCH64, 277): LOW, (AARCH64, 278): LOW, (AARCH64, 284): LOW, (AARCH64, 285): LOW, (AARCH64, 286): LOW, (AARCH64, 299): LOW,
}  # fmt: skip
SCALES = {284: 2, 285: 4, 286: 8, 299: 16}


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def target(kind: str, type: int, data: bytes) -> int:
    """The address that the relocated bytes mean."""
    (word,) = struct.unpack_from("<I", data)
    if kind == ABSOLUTE:
        return struct.unpack("<Q", data)[0]
    if kind == PREL:
        return PLACE + signed(word, 32)
    if kind == CALL:
        return PLACE + 4 * signed(word & 0x3FFFFFF, 26)
    if kind == PAGE:
        return (PLACE & ~0xFFF) + (signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21) << 12)
    return (word >> 10 & 0xFFF) * SCALES.get(type, 1)


@pytest.mark.parametrize(("machine", "type"), TYPES)
@pytest.mark.parametrize("distance", [0, 16, -16, 0x7FF_FFF0, -0x800_0000, 0x1234_5670, -0x7FFF_FFF0, 1 << 40])
def test_relocation(machine, type, distance):
    kind, value, place = TYPES[machine, type], PLACE + distance, ffi.new("uint8_t[8]", b"\0" * 8)
    reach = {PREL: 1 << 31, CALL: 1 << 27, PAGE: 1 << 32}.get(kind, 1 << 63)
    failed = lib.pe_relocate(machine, type, place, PLACE, value)
    assert bool(failed) == (not -reach <= distance < reach)
    if not failed:
        mask = {PAGE: ~0xFFF, LOW: 0xFFF}.get(kind, -1)
        assert target(kind, type, bytes(place)) == value & mask


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_instruction_around_a_relocation_stays(machine):
    place = ffi.new("uint8_t[8]", b"\xff" * 8)
    assert lib.pe_relocate(machine, 4 if machine == X86_64 else 283, place, PLACE, PLACE + 4) == 0
    assert bytes(place) == (b"\4\0\0\0" if machine == X86_64 else b"\1\0\0\xfc") + b"\xff" * 4


@pytest.mark.parametrize(("machine", "type"), [(X86_64, 0), (X86_64, 9), (AARCH64, 311), (0, 1), (3, 1)])
def test_unknown_relocation(machine, type):
    assert lib.pe_relocate(machine, type, ffi.new("uint8_t[8]"), PLACE, PLACE) == -1


def test_misaligned_load_and_call_are_out_of_reach():
    assert lib.pe_relocate(AARCH64, 299, ffi.new("uint8_t[8]"), PLACE, PLACE + 8) == -1
    assert lib.pe_relocate(AARCH64, 283, ffi.new("uint8_t[8]"), PLACE, PLACE + 2) == -1


# ---------------------------------------------------------------- the library


def test_a_process_has_one_runtime():
    """A program in C that opens the library gets the copy that Python uses."""
    library = Path(_runtime.__file__).with_name("libptxemu.so")
    opened = ctypes.CDLL(str(library))
    opened.pe_symbols.restype = ctypes.c_size_t
    assert opened.pe_symbols() == int(ffi.cast("size_t", lib.pe_symbols()))
    assert sum(str(library) in line for line in executable_mappings()) == 1
