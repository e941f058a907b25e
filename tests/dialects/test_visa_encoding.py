"""The bytes of TYPED_ATOMIC."""

from __future__ import annotations

import random

import pytest

import ptxemu
from ptxemu.dialects.operations import OPERATIONS
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa.encoding import decode, encode
from ptxemu.dialects.visa.grammar import parser
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile


def encoded(text: str) -> bytes:
    source = SourceFile("t.visa", text)
    diagnostics = Diagnostics(source)
    (item,) = parser().parse(source, diagnostics)
    assert not diagnostics.errors
    return encode(item)


def test_the_example():
    """The example."""
    code = encoded("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V41.0 V0 V0 V42.0 V0 V44.0")
    wanted = "73 00 03 00 00 06 28 00 00 00 00 00 29 00 00 00 00 00" + " 00" * 12
    wanted += " 2a 00 00 00 00 00" + " 00" * 6 + " 2c 00 00 00 00 00"
    assert code == bytes.fromhex(wanted)
    assert decode(code) == "TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V41.0 V0 V0 V42.0 V0 V44.0"


@pytest.mark.parametrize(("op", "byte"), [("ADD", 0), ("FCMPWR", 0x12), ("ADD.16", 0x20), ("PREDEC.16", 0x2D)])
def test_operation_bytes(op, byte):
    """Operation bytes."""
    assert encoded(f"TYPED_ATOMIC.{op} (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0")[1] == byte


@pytest.mark.parametrize(("mask", "byte"), [("M1, 8", 3), ("M3, 8", 0x23), ("M1_NM, 8", 0x83), ("8", 3), ("NoMask, 8", 0x83)])
def test_execution_bytes(mask, byte):
    """Execution bytes."""
    assert encoded(f"TYPED_ATOMIC.INC ({mask}) T6 V40.0 V0 V0 V0 V0 V0 V0")[2] == byte


@pytest.mark.parametrize(
    ("guard", "word"), [("P3", 3), ("!P3", 0x8003), ("P1.any", 0x2001), ("!P1.all", 0xC001), ("P4095", 0xFFF)]
)
def test_predicate_words(guard, word):
    """Predicate words."""
    code = encoded(f"({guard}) TYPED_ATOMIC.INC (M1, 8) T6 V40.0 V0 V0 V0 V0 V0 V0")
    assert int.from_bytes(code[3:5], "little") == word


def test_text_survives():
    """2,000 random instructions: text, bytes, text."""
    rng = random.Random(5)
    words = [entry.visa.upper() for entry in OPERATIONS if entry.visa]

    def raw(least: int = 0) -> str:
        return "V0" if least == 0 and rng.random() < 0.3 else f"V{rng.randint(1, 2**32 - 1) % 10**9}.{rng.randint(0, 65535)}"

    texts = []
    for _ in range(2_000):
        guard = rng.choice(["", "", f"({rng.choice(['', '!'])}P{rng.randint(1, 4095)}{rng.choice(['', '.any', '.all'])}) "])
        size = rng.choice((1, 2, 4, 8, 8))
        mask = f"M{rng.randint(1, 7)}{rng.choice(['', '_NM'])}"
        name = f"TYPED_ATOMIC.{rng.choice(words)}{rng.choice(['', '.16'])}"
        operands = " ".join(raw() for _ in range(7))
        texts.append(f"{guard}{name} ({mask}, {size}) T{rng.randint(0, 255)} {operands}")
    source = SourceFile("t.visa", "\n".join(texts))
    diagnostics = Diagnostics(source)
    items = parser().parse(source, diagnostics)
    assert not diagnostics.errors
    assert [decode(encode(item)) for item in items] == texts


def test_the_loader_keeps_the_map_of_names():
    """An index is one into the kernel's table of variables; the finalizer's spellings, on request."""
    table = {"coordinates": 1, "image": 2, "chosen": 3, "value": 4}
    names = {index: name for name, index in table.items()}
    text = "(!chosen.any) TYPED_ATOMIC.IMIN (M3_NM, 8) image coordinates.64 V0 V0 V0 value.0 V0 value.32"
    (item,) = parser().parse(SourceFile("t.visa", text), Diagnostics(SourceFile("t.visa", text)))
    code = encode(item, lambda name: table[name.text])
    assert code[5] == 2 and int.from_bytes(code[3:5], "little") == 0xA003 and code[6:12] == bytes([1, 0, 0, 0, 64, 0])
    assert decode(code, lambda kind, index: names[index]) == text
    wanted = "(!P3.any) TYPED_ATOMIC.MINSINT (M3_NM, 8) T2 V1.64 %null.0 %null.0 %null.0 V4.0 %null.0 V4.32"
    assert decode(code, finalizer=True) == wanted


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 0x72, "opcode 0x72 is not that of TYPED_ATOMIC"), (1, 0x0E, "operation 0x0e is reserved"),
        (1, 0x13, "operation 0x13 is reserved"), (1, 0x40, "operation 0x40 is reserved"), (1, 0x80, "operation 0x80"),
        (2, 0x04, "execution size 0x04 is reserved"), (2, 0x0B, "execution size 0x0b is reserved"),
        (4, 0x10, "predicate 0x1000 is reserved"), (4, 0x60, "predicate 0x6000 is reserved"),
    ],
)  # fmt: skip
def test_reserved_codes(place, value, message):
    """Reserved codes."""
    code = bytearray(encoded("TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0"))
    code[place] = value
    with pytest.raises(ptxemu.InputError, match=message):
        decode(bytes(code))
    with pytest.raises(ptxemu.InputError, match="has 48 bytes, not 47"):
        decode(bytes(code[1:]))


@pytest.mark.parametrize(
    "text",
    [
        "TYPED_ATOMIC.ADD (M1, 8) T256 V40.0 V0 V0 V0 V42.0 V0 V0",
        "TYPED_ATOMIC.ADD (M1, 8) image V40.0 V0 V0 V0 V42.0 V0 V0",
        "TYPED_ATOMIC.ADD (M1, 8) T6 V40.65536 V0 V0 V0 V42.0 V0 V0",
        "(P4096) TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0",
        "(P0) TYPED_ATOMIC.ADD (M1, 8) T6 V40.0 V0 V0 V0 V42.0 V0 V0",
        "TYPED_ATOMIC.ADD (M1, 16) T6 V40.0 V0 V0 V0 V42.0 V0 V0",
        "TYPED_ATOMIC.ADD T6 V40.0 V0 V0 V0 V42.0 V0 V0",
        "add (M1, 8) V40(0,0)<1> V40(0,0)<1;1,0> 1:ud",
    ],
)
def test_what_has_no_encoding(text):
    """What has no encoding; predicate 0 stands for none, as V0 does for no variable."""
    with pytest.raises(TextError):
        encoded(text)
