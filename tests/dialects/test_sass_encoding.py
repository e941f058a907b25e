"""The words of SURED and RED: those that ptxas made, every code, and random instructions there and back."""

from __future__ import annotations

import random

import pytest

from ptxemu.cli import run
from ptxemu.dialects.sass.encoding import OPS, RED_SIZES, SURED_SIZES, decode, encode
from ptxemu.dialects.sass.grammar import parser
from ptxemu.dialects.sass.table import CLAMPS, DIMS, TABLE
from ptxemu.dialects.text import TextError
from ptxemu.text.errors import Diagnostics, InputError
from ptxemu.text.source import SourceFile

WORDS = {
    0xEB58052602970407: "SURED.D.BA.2D.MAX.S32.IGN [R4], R7, 0x52",
    0xEB58052602870407: "SURED.D.BA.2D.MAX.IGN [R4], R7, 0x52",
    0xEB5A052602870407: "SURED.D.BA.2D.MAX [R4], R7, 0x52",
    0xEB5C052602870407: "SURED.D.BA.2D.MAX.TRAP [R4], R7, 0x52",
    0xEB58052602670407: "SURED.D.2D.MAX.SD32.IGN [R4], R7, 0x52",
    0xEB58052602770604: "SURED.D.2D.MAX.SD64.IGN [R6], R4, 0x52",
    0xEB58052602D70604: "SURED.D.BA.2D.MAX.S64.IGN [R6], R4, 0x52",
    0xEB58052A02970407: "SURED.D.BA.3D.MAX.S32.IGN [R4], R7, 0x52",
    0xEB58052002980005: "@!P0 SURED.D.BA.1D.MAX.S32.IGN [R0], R5, 0x52",
    0xEB50050602870407: "SURED.D.BA.2D.MAX.IGN [R4], R7, R10",
    0xEBF9FFE700980406: "@!P0 RED.E.MIN.S32 [R4+-0x190], R6",
    0xEBF97FFFC1000406: "@P0 RED.E.MAX [R4+0x7fffc], R6",
    0xEBF9000001870406: "RED.E.INC [R4], R6",
    0xEBF9000000370200: "RED.E.ADD.F32.FTZ.RN [R2], R0",
    0xEBF9000000470406: "RED.E.ADD.F16x2.RN [R4], R6",
    0xEBF9000000670204: "RED.E.ADD.F64.RN [R2], R4",
}


def instruction(text: str):
    source = SourceFile("<test>", text)
    diagnostics = Diagnostics(source)
    (line,) = parser().parse(source, diagnostics)
    assert not diagnostics.records
    return line.statement


def word(text: str, sm: int = 60) -> int:
    return encode(instruction(text), sm)


@pytest.mark.parametrize(("code", "text"), WORDS.items(), ids=lambda value: value if isinstance(value, str) else hex(value))
def test_words_of_ptxas(code, text):
    """Words of ptxas."""
    assert word(text) == code
    assert decode(code) == text


def test_defaults_and_aliases_have_the_same_word():
    """Defaults and aliases have the same word."""
    assert word("SURED.D.BA.2D.MAX.U32.NEAR [R4], R7, 0x52") == 0xEB5A052602870407
    assert word("RED.E.INC.U32 [R4], R6") == word("RED.E.INC.32 [R4+0x0], R6 ;") == 0xEBF9000001870406
    assert word("RED.ADD.64 [R4], R6") == word("RED.ADD.U64 [R4], R6")
    assert decode(word("RED.MIN.S32 [0xFFFF0000], R1")) == "RED.MIN.S32 [0xf0000], R1"
    assert word("RED.MIN.S32 [0xf0000], R1") == word("RED.MIN.S32 [-0x10000], R1")
    assert decode(word("@!PT RED.ADD [RZ], RZ")) == "@!PT RED.ADD [RZ], RZ"


def test_every_code_of_sured_is_read():
    """Every code of sured is read."""
    for op, name in enumerate(OPS):
        for size, size_name in enumerate(SURED_SIZES):
            for dim, dim_name in enumerate(DIMS):
                for clamp, clamp_name in enumerate(CLAMPS):
                    code = 0xEB58052000070407 | op << 24 | size << 20 | dim << 33 | clamp << 49
                    words = ["SURED.D", dim_name, name, *([] if size == 0 else [size_name])]
                    words += [] if clamp_name == "NEAR" else [clamp_name]
                    assert decode(code) == ".".join(words) + " [R4], R7, 0x52"


def test_every_code_of_red_is_read():
    """Every code of red is read."""
    for op, name in enumerate(OPS):
        for size, size_name in enumerate(RED_SIZES):
            code = 0xEBF8000000070407 | op << 23 | size << 20
            assert decode(code) == ".".join(["RED", name, *([] if size == 0 else [size_name])]) + " [R4], R7"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (0xEB5E052602870407, "3 is not a code of the clamp field"),
        (0xEB58052C02870407, "6 is not a code of the dim field"),
        (0xEB58052E02870407, "7 is not a code of the dim field"),
        (0xEBF9000000770406, "7 is not a code of the size field"),
        (0xEBFB000000070406, "is neither SURED nor RED"),
        (0xEB58052642870407, "bits 0x0000000040000000 must be zero"),
        (0x4C98078000870001, "is neither SURED nor RED"),
        (1 << 64, "does not fit in 64 bits"),
    ],
)
def test_bad_words(code, message):
    """Bad words."""
    with pytest.raises(InputError, match=message):
        decode(code)


def test_sizes_of_later_targets():
    """Sizes of later targets."""
    for code in (0xEBF9000000470406, 0xEBF9000000670204, 0xEB58052600470407):
        assert "RN" in decode(code)
        with pytest.raises(InputError, match="needs sm_60"):
            decode(code, 50)
    with pytest.raises(TextError, match="needs sm_60"):
        word("RED.E.ADD.F64.RN [R2], R4", 50)
    with pytest.raises(TextError, match="has no encoding"):
        word("RED.E.ADD.F16x2.FTZ.RN [R2], R4")


# ---------------------------------------------------------------- random instructions

ENCODED = {"SURED": SURED_SIZES, "RED": RED_SIZES}


def legal_pairs(opcode: str) -> list[tuple[str, str]]:
    found = []
    for row in TABLE[opcode]:
        qualifiers = {qualifier.name: qualifier.values for qualifier in row.qualifiers}
        found += [(qualifiers["op"][0], size) for size in qualifiers["size"] if size in ENCODED[opcode]]
    return sorted(set(found))


def register(rng: random.Random, align: int = 1, span: int = 1, zero: bool = True) -> str:
    if zero and rng.random() < 0.1:
        return "RZ"
    return f"R{rng.randrange(0, (256 - span) // align) * align}"


def random_text(rng: random.Random) -> str:
    guard = rng.choice(["", "@P3 ", "@!P0 ", "@!PT "])
    opcode = rng.choice(["SURED", "RED"])
    op, size = rng.choice(PAIRS[opcode])
    wide = "64" in size
    data = register(rng, 2, 2) if wide else register(rng)
    if opcode == "RED":
        extended = rng.random() < 0.5
        base = register(rng, 2, 2) if extended else register(rng)
        offset = rng.choice([0, 4, -4, 0x7FFFC, -0x80000, rng.randrange(-0x80000, 0x80000)])
        place = f"{base}+{'-' if offset < 0 else ''}0x{abs(offset):x}" if offset else base
        if base == "RZ" and offset:
            place = f"0x{offset & 0xFFFFF:x}"
        words = [opcode, *(["E"] if extended else []), op, *([] if size == "U32" else [size])]
        return f"{guard}{'.'.join(words)} [{place}], {data}"
    dim = rng.choice(DIMS)
    clamp = rng.choice(CLAMPS)
    align = {"1D": 1, "1D_BUFFER": 1, "1D_ARRAY": 2, "2D": 2}.get(dim, 4)
    words = [
        opcode,
        rng.choice(["D", "D.BA"]),
        dim,
        op,
        *([] if size == "U32" else [size]),
        *([] if clamp == "NEAR" else [clamp]),
    ]
    handle = f"0x{rng.randrange(1 << 13):x}" if rng.random() < 0.5 else register(rng, zero=False)
    return f"{guard}{'.'.join(words)} [{register(rng, align, align, zero=False)}], {data}, {handle}"


PAIRS = {opcode: legal_pairs(opcode) for opcode in ENCODED}


def test_random_instructions_there_and_back():
    """10,000 legal instructions: text to word to the same text, and that text to the same word."""
    rng = random.Random(5)
    texts = [random_text(rng) for _ in range(10_000)]
    source = SourceFile("<test>", "\n".join(texts))
    diagnostics = Diagnostics(source)
    lines = parser().parse(source, diagnostics)
    assert not diagnostics.records and len(lines) == len(texts)
    for text, line in zip(texts, lines, strict=True):
        assert decode(encode(line.statement)) == text


# ---------------------------------------------------------------- commands


def test_commands(tmp_path, capfd):
    path = tmp_path / "x.sass"
    path.write_text(".kernel k\n MOV R1, RZ\n @P0 RED.E.MAX [R4+0x7fffc], R6 ;\n EXIT\n")
    assert run(["assemble", str(path)]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown[1] == "0xebf97fffc1000406      3  @P0 RED.E.MAX [R4+0x7fffc], R6"
    assert [line.split(None, 1)[1] for line in (shown[0], shown[2])] == ["MOV R1, RZ", "EXIT"]
    assert run(["disassemble", "0xebf97fffc1000406", "eb5a052602870407"]) == 0
    assert capfd.readouterr().out == "@P0 RED.E.MAX [R4+0x7fffc], R6 ;\nSURED.D.BA.2D.MAX [R4], R7, 0x52 ;\n"
    assert run(["disassemble", "hello"]) == 2
    for line in ("MOV R300, R1", "@P9 NOP", "IADD R1, R2, -R400", "ISETP.LT.AND P8, PT, R1, R2, PT", "MOV R1.CC, R2"):
        path.write_text(f".kernel k\n{line}\n")
        assert run(["assemble", str(path)]) == 2
    assert "is not a register" in capfd.readouterr().err
    path.write_text(".kernel k\n RED.E.ADD.F64.RN [R2], R4\n RED.ADD [R3")
    assert run(["assemble", "--sm", "50", str(path)]) == 2
    shown = capfd.readouterr().err
    assert shown.index("x.sass:2:2: error: size .F64.RN needs sm_60") < shown.index("x.sass:3:13: error")
    other = tmp_path / "x.VISA"
    other.write_text('.kernel "k"\nret (M1, 1)\n')
    assert run(["assemble", str(other)]) == 2
    assert "x.VISA is a file of vISA: only the instructions of SASS have words here" in capfd.readouterr().err
