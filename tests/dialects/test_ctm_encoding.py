"""Word 0 and the RGB word of CTM instructions."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

import ptxemu
from ptxemu.dialects.ctm.ast import Instruction
from ptxemu.dialects.ctm.encoding import InstructionFields, UnitFields, decode, encode, pack, unpack
from ptxemu.dialects.ctm.grammar import parser
from ptxemu.dialects.text import TextError
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile

# The notes' bits: (word, lowest bit, codes that exist).
LAYOUT = {
    "type": (0, 0, 4), "texture_wait": (0, 2, 2), "rgb_select": (0, 3, 6), "rgb_invert": (0, 6, 2), "write_inactive": (0, 7, 2),
    "last": (0, 8, 2), "nop": (0, 9, 2), "alu_wait": (0, 10, 2), "rgb_write": (0, 11, 8), "alpha_write": (0, 14, 2),
    "rgb_output": (0, 15, 8), "alpha_output": (0, 18, 2), "rgb_clamp": (0, 19, 2), "alpha_clamp": (0, 20, 2),
    "alu_result_select": (0, 21, 2), "alpha_invert": (0, 22, 2), "alu_result_test": (0, 23, 4), "alpha_select": (0, 25, 6),
    "rgb_omod": (1, 26, 8), "rgb_target": (1, 29, 4), "alu_result_write": (1, 31, 2),
}  # fmt: skip
OMODS = ("OMOD_U1", "OMOD_U2", "OMOD_U4", "OMOD_U8", "OMOD_D2", "OMOD_D4", "OMOD_D8", "OMOD_DISABLED")
SELECTS = ("NONE", "RGBA", "RRRR", "GGGG", "BBBB", "AAAA")
TESTS = ("PRED_OP_EQUAL", "PRED_OP_LESS", "PRED_OP_GREATER_EQUAL", "PRED_OP_NOT_EQUAL")
UMRT = tuple(f"RNDR_TGT_UMRT_{i}{s}" for i in ("SAME_IDX", "PER_PROCESSOR_IDX") for s in ("", "_TEX_SEM_ACQUIRE"))
TARGETS = {"cached": tuple(f"RNDR_TGT_{letter}" for letter in "ABCD"), "umrt": UMRT}


def parsed(text: str) -> Instruction:
    source = SourceFile("t.ctm", text)
    diagnostics = Diagnostics(source)
    (item,) = parser().parse(source, diagnostics)
    diagnostics.raise_errors()
    return item


def placed(fields: dict[str, int]) -> tuple[int, int]:
    words = [0, 0]
    for name, value in fields.items():
        words[LAYOUT[name][0]] |= value << LAYOUT[name][1]
    return words[0], words[1]


def test_fields_survive_the_words():
    """Every value of every two fields beside random ones of the others lies where the table says, both ways."""
    rng = random.Random(5)
    for one, two in combinations(LAYOUT, 2):
        for value, other in product(range(LAYOUT[one][2]), range(LAYOUT[two][2])):
            fields = {name: rng.randrange(codes) for name, (_, _, codes) in LAYOUT.items()} | {one: value, two: other}
            words = placed(fields)
            assert pack(fields) == words
            assert unpack(*words) == fields


@pytest.mark.parametrize(
    ("word", "rgb", "message"),
    [
        (6 << 3, 0, "rgb_select: code 6 is reserved"),
        (7 << 25, 0, "alpha_select: code 7 is reserved"),
        (1 << 28, 0, "bits 0x10000000 are reserved"),
        (1 << 32, 0, "32 bits"),
        (0, -1, "32 bits"),
    ],
)
def test_reserved_codes(word, rgb, message):
    """Codes 6 and 7 of PRED_SEL, and the four high bits."""
    with pytest.raises(ptxemu.InputError, match=message):
        decode(word, rgb)


@pytest.mark.parametrize(
    ("word", "rgb", "message"),
    [
        (0, 1 << 25, "layout of operands, bits 0x02000000"),
        (0, 1, "layout of operands"),
        (2, 0, "programs have no flow control"),
        (1 << 7, 0, "cannot say ALU with write_inactive"),
        (1 << 10, 0, "alu_wait"),
        (1 | 1 << 21 | 1 << 23, 1 << 31, "cannot say OUTPUT with alu_result_select, alu_result_test, alu_result_write"),
        (3 | 1 << 19, 1 << 26, "cannot say TEX with rgb_clamp, rgb_omod"),
    ],
)
def test_what_programs_cannot_say(word, rgb, message):
    with pytest.raises(ptxemu.UnsupportedError, match=message):
        decode(word, rgb)


def test_codes_that_do_not_exist():
    for fields in ({"rgb_select": 6}, {"rgb_write": 8}, {"type": -1}, {"operand": 1}):
        with pytest.raises(ptxemu.InputError):
            pack(fields)
    with pytest.raises(ptxemu.InputError, match="cached or umrt"):
        decode(0, kind="both")


def unit_text(rng: random.Random, words: str) -> tuple[str, list[str], str, str]:
    """Clamping, selection and masks of a unit; the masks may be empty."""
    select, masks = rng.choice(SELECTS), ["".join(c for c in words if rng.random() < 0.6) or "none" for _ in range(2)]
    mods = [f"PRED_SEL_{select}", *rng.choice([[], ["PRED_INV"]]), *rng.choice([[], ["CLAMP"]])]
    return ".".join(mods), mods, *masks


@pytest.mark.parametrize("kind", ["cached", "umrt"])
@pytest.mark.parametrize("type", ["ALU", "OUTPUT"])
def test_instructions_survive_the_words(kind, type):
    """The modifiers and masks of random instructions, and the numeric codes of OMOD, TARGET and the tests."""
    rng = random.Random(f"{kind}{type}")
    ends, second = (TESTS, "pred") if type == "ALU" else (TARGETS[kind], "out")
    for code, omod, _ in product(range(4), range(8), range(4)):
        rgb, alpha = unit_text(rng, "rgb"), unit_text(rng, "a")
        wait, nop, last = ("TEX_SEM_WAIT",) * rng.randrange(2), ("NOP",) * rng.randrange(2), bool(rng.randrange(2))
        common = ".".join(["MAX", OMODS[omod], ends[code]])
        text = f"{type} RGB {'.'.join([common, rgb[0], *wait, *nop])} r0.{rgb[2]}|{second}.{rgb[3]}, r1, r2"
        text += f" ; ALPHA {common}.{alpha[0]} r0.{alpha[2]}|{second}.{alpha[3]}, r1, r2"
        words = encode(parsed(text), kind, last=last)
        assert (words[1] >> 26 & 7, words[1] >> 29 & 3, words[0] >> 8 & 1) == (omod, code, last)
        found = decode(*words, kind=kind)
        wanted = {OMODS[omod], *rgb[1], *wait, *nop} | ({ends[code]} if code or rgb[3] != "none" else set())
        assert (found.type, found.last) == (type, last)
        assert (set(found.rgb.modifiers), found.rgb.temporary, found.rgb.output) == (wanted, *rgb[2:])
        assert (set(found.alpha.modifiers), found.alpha.temporary, found.alpha.output) == (set(alpha[1]), *alpha[2:])


def test_examples():
    """A part without a unit is that of both; TEX has a type of its own; NOP is a bit."""
    word, rgb = encode(parsed("ALU MAD.OMOD_D2.PRED_SEL_GGGG.PRED_INV r0.ra, r1, r2, r3"), "cached")
    assert (word, rgb) == (3 << 3 | 1 << 6 | 1 << 11 | 1 << 14 | 1 << 22 | 3 << 25, 4 << 26)
    word, rgb = encode(parsed("TEX.TEX_SEM_WAIT r1.rg, r0, inp0"), "umrt", last=True)
    assert (word, rgb) == (3 | 1 << 2 | 1 << 8 | 3 << 11, 0)
    assert decode(word) == InstructionFields(
        "TEX", True, UnitFields(("TEX_SEM_WAIT", "PRED_SEL_NONE"), "rg", "none"),
        UnitFields(("PRED_SEL_NONE",), "none", "none"),
    )  # fmt: skip
    assert encode(parsed("OUTPUT NOP"), "cached") == (1 | 1 << 9, 0)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("OUTPUT ALPHA MOV.W_OMASK.RNDR_TGT_A out, 1", "cached", "W_OMASK lies in a word"),
        ("TEX.TEX_SEM_ACQUIRE r1, r0, inp0", "cached", "TEX_SEM_ACQUIRE lies in a word"),
        ("OUTPUT RGB MOV.RNDR_TGT_A out, 1 ; ALPHA MOV.RNDR_TGT_B out, 1", "cached", "alpha unit's own"),
        ("ALPHA MOV.OMOD_U2 r0, 1", "cached", "alpha unit's own"),
        ("ALU RGB MOV.PRED_OP_LESS pred, 1 ; ALPHA MOV.PRED_OP_EQUAL pred, 1", "umrt", "alpha unit's own"),
        ("OUTPUT MOV.RNDR_TGT_UMRT_SAME_IDX out, 1", "cached", "MIXED_OUTPUT"),
        ("OUTPUT MOV.RNDR_TGT_D out, 1", "umrt", "MIXED_OUTPUT"),
        ("ALU DOT r0, 1", "umrt", "unknown operation"),
    ],
)
def test_what_the_words_cannot_hold(text, kind, message):
    with pytest.raises(TextError, match=message):
        encode(parsed(text), kind)


def test_umrt_ignores_the_target_of_alpha():
    """The alpha unit's TARGET is ignored."""
    text = "OUTPUT RGB MOV.{} out, 1 ; ALPHA MOV.RNDR_TGT_UMRT_SAME_IDX out, 0"
    for code, target in enumerate(UMRT):
        assert encode(parsed(text.format(target)), "umrt")[1] == code << 29
