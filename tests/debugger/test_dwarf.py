"""Reading DWARF: against pyelftools, and what is damaged."""

from __future__ import annotations

import inspect
import io
import random
import re

import pytest
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo

from ptxemu.dwarf.entries import entries_of
from ptxemu.dwarf.info import DebugInfo
from ptxemu.dwarf.locations import Place, locate, register_name
from ptxemu.dwarf.names import At, Tag
from ptxemu.dwarf.sections import Sections, sections_of
from ptxemu.dwarf.stream import DwarfError
from ptxemu.dwarf.types import Type
from ptxemu.text.errors import InputError
from tests.support.places import DEBUGGED

TEXT = (DEBUGGED / "locals.ptx").read_text()


def as_elftools(sections: Sections) -> DWARFInfo:
    """The same bytes, read by pyelftools."""
    names = list(inspect.signature(DWARFInfo.__init__).parameters)[2:]
    found = dict.fromkeys(names)
    for name in ("debug_info", "debug_abbrev", "debug_str", "debug_loc"):
        data = sections.get(f".{name}")
        found[f"{name}_sec"] = DebugSectionDescriptor(io.BytesIO(data), f".{name}", 0, len(data), 0)
    return DWARFInfo(DwarfConfig(True, "x64", 8), **found)


def test_entries_are_those_of_pyelftools() -> None:
    sections = sections_of(TEXT)
    ours = entries_of(sections)
    [unit] = as_elftools(sections).iter_CUs()
    theirs = {die.offset: die for die in unit.iter_DIEs() if not die.is_null()}
    assert set(ours) == set(theirs) and len(ours) > 70
    for offset, die in theirs.items():
        parent = die.get_parent()
        assert die.tag == f"DW_TAG_{Tag(ours[offset].tag).name.lower()}"
        assert (None if ours[offset].parent is None else ours[offset].parent.offset) == (
            None if parent is None else parent.offset
        )
        for attribute, value in ours[offset].attributes.items():
            name = f"DW_AT_{At(attribute).name.lower()}"
            kept = die.attributes[name]
            expected = bytes(kept.value) if isinstance(kept.value, list) else kept.value
            expected = die.get_DIE_from_attribute(name).offset if "ref" in kept.form else expected
            assert value == (expected.decode() if isinstance(value, str) else expected), (offset, name)


def test_data_of_sections() -> None:
    text = """
.section .debug_str { info: .b8 65, 0x42 , 0
second: .b8 0x43,0 // a comment
.string "late"
}
.section .debug_info {
.b32 second, second-info , -1
.b64 outside+8
.b16 0xFFFF /* .b8 1 */
.b8 300
}
"""
    found = sections_of(text)
    assert found.get(".debug_str") == b"AB\0C\0late\0"
    words = found.get(".debug_info")
    assert words[:12] == (3).to_bytes(4, "little") * 2 + b"\xff" * 4 and words[20:] == b"\xff\xff\x2c"
    assert found.symbol(int.from_bytes(words[12:20], "little")) == ("outside", 8)
    assert found.symbol(5) is None and found.symbol(99 << 32) is None


class Registers:
    def register(self, name: str) -> int:
        return {"%rd1": 0x1000, "%r2": 7}[name]

    def symbol(self, name: str) -> Place:
        return Place("local", 16)

    def word(self, place: Place) -> int:
        return place.address * 2


def number(name: str) -> bytes:
    """A register's name as ULEB128."""
    value, out = int.from_bytes(name.encode(), "big"), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


SYMBOLS = Sections({}, ["depot"])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (b"\x90" + number("%r2"), 7),
        (b"\x92" + number("%rd1") + b"\x78", Place("generic", 0xFF8)),  # bregx -8
        (b"\x92" + number("%rd1") + b"\x08\x06", Place("generic", 0x2010)),  # and deref
        (b"\x03" + (1 << 32 | 4).to_bytes(8, "little") + b"\x23\x80\x01", Place("local", 148)),  # addr, plus_uconst 128
        (b"\x11\x7f\x9f", 2**64 - 1),  # consts -1, stack_value
        (b"\x35\x31\x1c\x9f", 4),  # lit5 lit1 minus stack_value
        (b"\x9e\x04\x00\x00\x80\x3f", 0x3F800000),  # implicit_value
    ],
)
def test_location_expressions(expression: bytes, expected: Place | int) -> None:
    assert locate(expression, SYMBOLS, Registers()) == expected


@pytest.mark.parametrize("expression", [b"", b"\x96", b"\x22", b"\x06", b"\xff", b"\x03\x01", b"\x90" + b"\xff" * 12])
def test_expressions_that_are_not_understood(expression: bytes) -> None:
    with pytest.raises(DwarfError):
        locate(expression, SYMBOLS, Registers())


def test_register_names() -> None:
    assert [register_name(int.from_bytes(name.encode(), "big")) for name in ("%r1", "%fd12", "%SP")] == ["%r1", "%fd12", "%SP"]


def use(text: str) -> None:
    """All that is ever asked of debug data."""
    info = DebugInfo(text)
    labels = {name: index for index, name in enumerate(re.findall(r"^(\$L__\w+):", text, re.MULTILINE))}
    for pc in range(0, len(labels), 3):
        list(info.visible(labels, pc))
    for entry in [*info.globals(), *info.entries.values()]:
        try:
            kind = Type(info, entry)
            str(kind)
            list(kind.values)
            assert kind.plain.size >= 0
            list(kind.members)
            info.location(entry, Registers(), labels, 4)
        except (InputError, KeyError):
            pass


@pytest.mark.parametrize("seed", range(40))
def test_damaged_data_are_no_trouble(seed: int) -> None:
    draw = random.Random(seed)
    lines = TEXT.splitlines()
    data = [index for index, line in enumerate(lines) if line.startswith(".b")]
    for index in draw.sample(data, draw.choice([1, 5, 50, 500])):
        lines[index] = draw.choice(
            ["", ".b8 255", ".b8 0", f".b8 {draw.randrange(256)}", ".b32 $L__tmp3", ".b64 -1", "nonsense:"]
        )
    use("\n".join(lines[: draw.choice([len(lines), draw.randrange(len(lines))])]) + "\n}")


def loop(kind: int) -> str:
    """A variable of a type that is made of itself."""
    abbreviations = f"1,17,1,0,0, 2,{kind},1,73,19,0,0, 3,33,0,47,11,0,0, 4,13,0,73,19,0,0, 0"
    entries = ["1", "2", ".b32 12", "3,255", "4", ".b32 12", "0,0"]
    body = "\n".join(text if text.startswith(".") else f".b8 {text}" for text in entries)
    return f"""
.section .debug_abbrev {{ .b8 {abbreviations}
}}
.section .debug_info {{ .b32 start_end-start
start: .b16 2
.b32 0
.b8 8
{body}
start_end:
}}
"""


@pytest.mark.parametrize("kind", sorted(Tag))
def test_types_of_themselves(kind: Tag) -> None:
    use(loop(kind))
    found = DebugInfo(loop(kind))
    assert len(found.entries) == 4
    assert len(str(Type(found, found.entries[12]))) < 300
