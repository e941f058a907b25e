"""SASS programs: text, diagnostics, the instructions around SURED and RED, constants and register files."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ptxemu
from ptxemu.driver.compile import Options, emit, front
from tests.support.sass_harness import run

HEAD = ".header 3 image\n.const c[0x0][0x148] = 0xABC00003\n.kernel k\n"


def errors(text: str, strict: bool = False) -> list[str]:
    """``line:column: message`` of every error."""
    found = ptxemu.lint(text, filename="t.sass", strict=strict)
    return [f"{item.line}:{item.column}: {item.message}" for item in found if item.severity == "error"]


def error_of(line: str) -> str:
    """The error of one line of a kernel, without its line number."""
    (message,) = errors(f"{HEAD}{line}\nEXIT")
    assert message.startswith("4:"), message
    return message.removeprefix("4:")


# ---------------------------------------------------------------- legality

SIZES = ("U32", "S32", "SD32", "U64", "S64", "SD64", "F32.FTZ.RN", "F16x2.RN", "F64.RN")
LEGAL = {
    "ADD": "SR SR S SR - - SR SR R", "MIN": "SR SR S SR SR S - SR -", "MAX": "SR SR S SR SR S - SR -",
    "INC": "SR - - - - - - - -", "DEC": "SR - - - - - - - -", "AND": "SR SR S SR - - - - -", "OR": "SR SR S SR - - - - -",
    "XOR": "SR SR S SR - - - - -",
}  # fmt: skip


@pytest.mark.parametrize("op", LEGAL)
def test_legality_table(op):
    """8 operations, 9 sizes, SURED and RED."""
    for size, letters in zip(SIZES, LEGAL[op].split(), strict=True):
        for letter, text in (("S", f"SURED.D.1D.{op}.{size} [R4], R8, 0x52"), ("R", f"RED.{op}.{size} [R4], R8")):
            found = errors(HEAD + text)
            assert bool(found) == (letter not in letters), text
            if found:
                assert re.search(rf"4:\d+: .*\.{re.escape(size)}", found[0]), found


@pytest.mark.parametrize("size", ["F16x2.FTZ.RN", "F16x2.RN"])
def test_both_spellings_of_halves(size):
    """Both spellings of halves."""
    for op in ("ADD", "MIN", "MAX"):
        assert errors(f"{HEAD}SURED.D.1D.{op}.{size} [R4], R8, 0x52\nRED.{op}.{size} [R4], R8") == []


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    "line",
    [
        "SURED.D.2D.ADD.U32 [R2], R4, R6; # surface header in R6",
        "@!P0 SURED.D.BA.2D.MAX.S32.IGN [R4], R7, 0x52 {&req_6} {&rdN} {?sched} ;",
        "SURED.D.1D_BUFFER.INC [R4], R7, 82 &req={0,1} &rd=0x2 ?WAIT4_END_GROUP ;",
        "{ RED.E.ADD.F64.RN [R2], R4 ;",
        "RED.ADD.32 [R4+-0x190], R6 }",
        "}",
        "RED.ADD.64 [R4 - 400], R6 ; }",
        "here: RED.MIN.S32 [0xFFFF0000], R1; // Absolute unsigned address",
        ".L_1: /* a comment */ @PT NOP ;",
        "SURED.D.3D.AND.SD32.TRAP [R252], RZ, R254 ?sched",
        "MOV R1, c[0x0][0x8]",
        "ISETP.LT.U32.AND P0, P1, R1, 0x10, !P2",
    ],
)
def test_accepted(line):
    """Accepted."""
    assert errors(HEAD + line) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("MVO R1, R2", "1: unknown instruction 'MVO'; did you mean 'MOV'?"),
        ("SURED.D.4D.ADD [R4], R8, 0x52", "8: unknown modifier '.4D' for 'SURED'; did you mean '.D'?"),
        ("SURED.D.2D [R4], R8, 0x52", "1: 'SURED' needs an operation: "),
        ("SURED.D.2D.ADD.IGN.TRAP [R4], R8, 0x52", "19: '.TRAP' and '.IGN' both give the clamp mode of 'SURED'"),
        ("SURED.D.2D.ADD [R4], R8", "1: 'SURED' takes 3 operands, not 2"),
        ("SURED.D.2D.ADD [R5], R8, 0x52", "17: 2 coordinates start at a multiple of 2, not R5"),
        ("SURED.D.3D.ADD [R6], R8, 0x52", "17: 3 coordinates start at a multiple of 4, not R6"),
        ("SURED.D.1D.ADD [RZ], R8, 0x52", "17: coordinates may not lie in RZ"),
        ("SURED.D.1D.ADD [R4], R8, RZ", "26: the header word may not be RZ"),
        ("SURED.D.1D.ADD [R4+4], R8, 0x52", "16: coordinates are a register, [Ra]"),
        ("SURED.D.1D.ADD.U64 [R4], R7, 0x52", "26: a pair starts at an even register below R254, not R7"),
        ("SURED.D.1D.ADD.U64 [R4], R254, 0x52", "26: a pair starts at an even register below R254, not R254"),
        ("SURED.D.1D.ADD [R4], R255, 0x52", "22: 'R255' is not a register; there are R0 to R254 and RZ"),
        ("SURED.D.1D.ADD [R4], R8, 0x2000", "26: an index has 13 bits"),
        ("SURED.D.1D.ADD [R4], R8, 0x53", "26: there is no word in c[0x0][0x14c]: give it by .const or .param"),
        ("SURED.D.1D.ADD [R4], 0x1, 0x52", "22: expected a register"),
        ("RED.E.ADD [R3], R8", "12: a pair starts at an even register below R254, not R3"),
        ("RED.ADD [R4+0x80000], R8", "9: the offset does not fit 20 bits"),
        ("@P7 NOP", "2: 'P7' is not a predicate; there are P0 to P6 and PT"),
        ("MOV R1, c[0x0][0x1000]", "9: there is no word in c[0x0][0x1000]: give it by .const or .param"),
        ("MOV R1, x[0x0][0x1000]", "9: a constant bank is written c[bank][offset]"),
        ("MOV R1, 0x100000000", "9: the number does not fit 32 bits"),
        ("S2R R1, SR_TID.W", "9: unknown special register 'SR_TID.W'; did you mean 'SR_TID."),
        ("BRA nowhere", "5: unknown label 'nowhere'"),
        ("RED.ADD [R4, R8", "12: expected ']', found ','"),
        ("RED.ADD R4], R8", "11: expected ',' or ';', found ']'"),
        ("RED.ADD [R4], R8 R9", "18: expected ',' or ';', found 'R9'"),
        ("MOV R1, 12abc", "9: invalid number '12abc'"),
        ("MOV R1, ~", "9: unexpected character '~'"),
        ("MOV R1, R2 /* never closed", "12: this comment never ends"),
        (".shader x", "1: unknown directive '.shader'"),
        (".const c[0x0][0x8] = 1", "8: the extents of the launch lie here"),
        ("RED.ADD [R4+R5], R6", "13: expected a number, found 'R5'"),
        ("SURED.D.ADD [R2], R4, R6", "1: 'SURED' needs a dimension: .1D, .1D_BUFFER, .1D_ARRAY, .2D, .2D_ARRAY or .3D"),
        ("SURED.D.2D.ADD.MIN [R2], R4, R6", "15: '.MIN' and '.ADD' both give the operation of 'SURED'"),
        (".param u32", "1: expected .param TYPE NAME [OFFSET]"),
        ('NOP "x"', "5: unexpected character '\"'"),
        ('NOP "x', "5: this text never ends"),
        (".header 3 again", "9: header 3 is declared twice"),
        (".param u32 x 0x148", "12: 'x' overlaps another parameter or constant"),
        (".param u64 x 0x144", "12: 'x' must lie at a multiple of 8 in the parameters (from 0x140 on, 4096 bytes)"),
        (".param vec x", "8: unknown type 'vec'; there are u32"),
        (".const c[0x0][0x3] = 0x1", "8: there are banks 0 to 17 of 64 KiB; words lie at multiples of 4"),
        (".kernel k", "9: kernel 'k' is defined twice"),
        (".bank 18", "7: there are banks 0 to 17"),
        (".bank -1", "7: there are banks 0 to 17"),
        (".helper 0x100000000", "9: helper lanes are a mask of 32 bits"),
        (".maxheader 0x100000", "12: a header index has 20 bits"),
        ("MOV R1.CC, R2", "5: 'R1.CC' is not a register"),
        ("IADD R1, R2.CC, R3", "10: 'R2.CC' is not a register"),
        ("IADD R1, R2, -R3.CC", "15: 'R3.CC' is not a register"),
        ("RED.ADD [R4.CC], R5", "10: 'R4.CC' is not a register"),
        ("SURED.D.1D.ADD [R4], R8.CC, 0x52", "22: 'R8.CC' is not a register"),
        (".in R1.CC x", "5: 'R1.CC' is not a register"),
        ("IADD P0.CC, R2, R3", "6: 'P0' is not a register"),
        ("IADD R1, -R400, R3", "11: 'R400' is not a register"),
        ("IADD R1.CC, R2, -R3", "17: a sum with a carry takes no negated register"),
        ("IADD.X R1, -R2, R3", "12: a sum with a carry takes no negated register"),
        ("RED.E.ADD.STRONG.GPU [R4], R8", "10: '.STRONG' belongs to the SASS of sm_70 and later, an unsupported SASS dialect"),
        ("RED.E.ADD desc[UR4][R2.64], R8", "11: 'desc[' belongs to the SASS of sm_70 and later, an unsupported SASS dialect"),
        ("RED.E.ADD [R2.64], R8", "12: 'R2.64' belongs to the SASS of sm_70 and later"),
        ("@UP0 RED.ADD [R2], R8", "2: 'UP0' belongs to the SASS of sm_70 and later"),
        ("REDG.E.ADD [R2], R8", "1: 'REDG' belongs to the SASS of sm_70 and later"),
        ("SURED.D.2D.ADD [R4], R8, 0x0, 0x52", "26: a bank before the index belongs to the SASS of sm_70 and later"),
        ("SURED.D.2D.ADD [R4], R8, UR4", "26: 'UR4' belongs to the SASS of sm_70 and later, an unsupported SASS dialect"),
    ],
)
def test_errors(line, message):
    """Errors."""
    assert error_of(line).startswith(message)


def test_errors_of_the_file():
    """Errors of the file."""
    assert errors("") == ["1:1: the file has no .kernel"]
    assert errors("MOV R1, R2") == ["1:1: this must follow a .kernel directive"]
    assert errors(".param u32 x\n.kernel k\nx: EXIT\nx: EXIT")[:2] == [
        "1:1: parameters belong to a kernel", "4:1: label 'x' is defined twice",
    ]  # fmt: skip
    assert errors(".kernel k\nNOP\n.in R1 x") == ["3:5: register files are read before the first instruction"]
    assert len(errors(".kernel k\n" + "FOO\n" * 100)) == 20


def test_a_register_file_that_lies_elsewhere_is_a_fault():
    """A register file may be an address, of which nothing is known before the launch."""
    text = ".kernel k\n.in R4 x\n.out R4 y\nEXIT"
    module = ptxemu.loads(text, dialect="sass", device=ptxemu.Device("64 MiB", workers=1))
    buffer = module.device.to_device(np.zeros(2048, np.uint32))
    for values, line in (((0x40, buffer), 2), ((buffer, 0x40), 3)):
        with pytest.raises(ptxemu.Fault, match=rf"null pointer in kernel `k` at <string>:{line}"):
            module["k"][4, 512](*values)


def test_mode_p_is_read_but_not_run():
    """Mode p is read but not run."""
    text = f"{HEAD}SURED.P.2D.ADD [R4], R8, 0x52\nEXIT"
    assert errors(text) == []
    with pytest.raises(ptxemu.UnsupportedError, match=r"<string>:4: instruction 'SURED.P.2D.ADD' is not supported"):
        ptxemu.loads(text, dialect="sass")["k"][1, 1]()


@settings(max_examples=80)
@given(st.data())
def test_wrong_text_is_diagnosed(data):
    """No text makes anything but diagnostics."""
    lines = (HEAD + "L: @!P0 SURED.D.BA.2D.MAX.S32.IGN [R4], R7, 0x52 {&req_6}\nRED.E.ADD [R2+-0x4], R6\nBRA L").split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        line = lines[number]
        at = data.draw(st.integers(0, len(line)))
        end = data.draw(st.integers(at, min(len(line), at + 4)))
        lines[number] = line[:at] + data.draw(st.text('RP019[]{}(),;:@!+-=.xc&? \t\n"/*#é\0Z', max_size=3)) + line[end:]
    for item in ptxemu.lint("\n".join(lines), dialect="sass"):
        assert item.severity in ("error", "warning") and item.line >= 1


# ---------------------------------------------------------------- instructions around the reductions

VALUES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xDEADBEEF]
PAIRS = [(a, b) for a in VALUES for b in VALUES]


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


ARITHMETIC = {
    "MOV R5, R4": lambda a, b: a,
    "MOV R5, RZ": lambda a, b: 0,
    "MOV32I R5, 0xdeadbeef": lambda a, b: 0xDEADBEEF,
    "IADD R5, R4, R6": lambda a, b: a + b,
    "IADD R5, R4, -R6": lambda a, b: a - b,
    "IADD R5, R4, -0x1": lambda a, b: a - 1,
    "IADD R5, -R4, R6": lambda a, b: b - a,
    "IADD32I R5, R4, 0x12345678": lambda a, b: a + 0x12345678,
    "IADD32I R5, -R4, 0x7": lambda a, b: 7 - a,
    "IMAD R5, R4, R6, R4": lambda a, b: a * b + a,
    "IMAD R5, -R4, R6, -R4": lambda a, b: -a * b - a,
    "SHL R5, R4, R6": lambda a, b: a << b if b < 32 else 0,
    "SHR.U32 R5, R4, R6": lambda a, b: a >> b if b < 32 else 0,
    "SHR R5, R4, R6": lambda a, b: signed(a) >> min(b, 31),
    "LOP.AND R5, R4, R6": lambda a, b: a & b,
    "LOP.OR R5, R4, R6": lambda a, b: a | b,
    "LOP.XOR R5, R4, 0xff": lambda a, b: a ^ 0xFF,
}


@pytest.mark.parametrize("text", ARITHMETIC)
def test_arithmetic(text):
    a, b = zip(*PAIRS, strict=True)
    got = run(text, {"R4": a, "R6": b}, outputs=["R5"])["R5"]
    assert got.tolist() == [ARITHMETIC[text](x, y) & 0xFFFFFFFF for x, y in PAIRS]


def test_carry():
    a, b = zip(*PAIRS, strict=True)
    got = run(["IADD R5.CC, R4, R6", "IADD.X R7, R4, R6"], {"R4": a, "R6": b}, outputs=["R5", "R7"])
    wide = [(x << 32 | x) + (y << 32 | y) for x, y in PAIRS]
    assert got["R5"].tolist() == [value & 0xFFFFFFFF for value in wide]
    assert got["R7"].tolist() == [value >> 32 & 0xFFFFFFFF for value in wide]


COMPARE = {"LT": "<", "EQ": "==", "LE": "<=", "GT": ">", "NE": "!=", "GE": ">="}


@pytest.mark.parametrize("cmp", COMPARE)
@pytest.mark.parametrize("size", ["U32", "S32"])
def test_compare(cmp, size):
    a, b = zip(*PAIRS, strict=True)
    text = [f"ISETP.{cmp}.{size}.AND P0, P1, R4, R6, PT", "MOV R5, RZ", "MOV R7, RZ", "@P0 MOV32I R5, 0x1", "@P1 MOV32I R7, 0x1"]
    got = run(text, {"R4": a, "R6": b}, outputs=["R5", "R7"])
    read = signed if size == "S32" else int
    expected = [int(eval(f"x {COMPARE[cmp]} y", {"x": read(x), "y": read(y)})) for x, y in PAIRS]
    assert got["R5"].tolist() == expected
    assert got["R7"].tolist() == [1 - bit for bit in expected]


def test_compare_with_a_predicate():
    text = ["ISETP.NE.AND P2, PT, R6, RZ, PT", "MOV R5, RZ"]
    for shift, (word, test) in enumerate([("AND", "P2"), ("OR", "!P2"), ("XOR", "P2"), ("AND", "!PT")]):
        text += [f"ISETP.EQ.{word} P0, P1, R4, 0x1, {test}", f"@P0 LOP.OR R5, R5, {1 << shift}"]
    got = run(text, {"R4": [0, 1, 0, 1], "R6": [0, 0, 1, 1]}, outputs=["R5"])["R5"]
    assert got.tolist() == [0b0010, 0b0110, 0b0100, 0b0011]


def test_control_flow():
    """A loop with an exit of its own for each lane: the sum of 1 .. R4."""
    text = [
        "MOV R5, RZ", "again: ISETP.EQ.AND P0, PT, R4, RZ, PT", "@P0 BRA `(.done)", "IADD R5, R5, R4", "IADD R4, R4, -0x1",
        "BRA (again)", ".done: NOP",
    ]  # fmt: skip
    got = run(text, {"R4": range(40)}, outputs=["R5"])["R5"]
    assert got.tolist() == [n * (n + 1) // 2 for n in range(40)]


def test_exit_is_for_each_lane():
    text = ["MOV32I R5, 0x1", "ISETP.GT.AND P0, PT, R4, 0x2, PT", "@P0 EXIT", "MOV32I R5, 0x2"]
    assert run(text, {"R4": range(5)}, outputs=["R5"])["R5"].tolist() == [2, 2, 2, 1, 1]


def test_special_registers_and_driver_constants():
    text = """.kernel k
    .out R0 tx
    .out R1 ty
    .out R2 tz
    .out R3 cx
    .out R4 lane
    .out R5 nx
    .out R6 gx
    S2R R0, SR_TID.X
    S2R R1, SR_TID.Y
    S2R R2, SR_TID.Z
    S2R R3, SR_CTAID.X
    S2R R4, SR_LANEID
    MOV R5, c[0x0][0x8]
    MOV R6, c[0x0][0x14]
    EXIT"""
    files = [np.zeros(48, np.uint32) for _ in range(7)]
    ptxemu.loads(text, dialect="sass")["k"][2, (2, 3, 4)](*files)
    thread = np.arange(48) % 24
    expected = [thread % 2, thread // 2 % 3, thread // 6, np.arange(48) // 24, thread, np.full(48, 2), np.full(48, 2)]
    assert all((got == want).all() for got, want in zip(files, expected, strict=True))


def test_parameters_lie_in_bank_0():
    text = """.const c[0x3][0x10] = -2
    .kernel k
    .param u32 a
    .param u64 b
    .param f32 c 0x160
    .out R1 r1
    .out R2 r2
    .out R3 r3
    .out R4 r4
    .out R5 r5
    MOV R1, c[0x0][0x140]
    MOV R2, c[0x0][0x148]
    MOV R3, c[0x0][0x14c]
    MOV R4, c[0x0][0x160]
    IADD R5, R1, c[0x3][0x10]"""
    files = [np.zeros(1, np.uint32) for _ in range(5)]
    module = ptxemu.loads(text, dialect="sass")
    assert [item.name for item in module.info.kernels["k"].parameters][:3] == ["a", "b", "c"]
    module["k"][1, 1](7, 0x1122334455667788, 1.5, *files)
    assert [int(file[0]) for file in files] == [7, 0x55667788, 0x11223344, 0x3FC00000, 5]


def test_registers_and_predicates_start_as_zero():
    got = run(["IADD R5, R100, 0x7", "@P3 MOV32I R5, 0x1", "@!P3 IADD R5, R5, 0x1"], {"R4": [0, 1]}, outputs=["R5"])["R5"]
    assert got.tolist() == [8, 8]


# ---------------------------------------------------------------- machines

PROGRAM = f"""{HEAD}.param ptr out
.in R4 x
.out R5 y
S2R R0, SR_TID.X
ISETP.LT.AND P0, PT, R4, c[0x0][0x8], PT
@P0 SURED.D.BA.1D.MAX.SD32.IGN [R4], R0, 0x52
@!P0 SURED.D.3D.ADD.F16x2.RN [R4], R8, R0
MOV R2, c[0x0][0x140]
RED.MIN.U64 [R2+0x8], R8
EXIT"""


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("variant", ["row", "any"])
def test_compiles_for_every_machine(cpu, variant):
    module = front(PROGRAM, "t.sass", dialect="sass")
    assert emit(module, "k", Options(cpu=cpu, opt=1, variant=variant), "obj")


def test_a_constant_is_given_once():
    """What a constant bank holds is clear; a kernel may replace a word of the module, once."""
    text = ".const c[0x1][0x8] = 1\n.kernel one\n.const c[0x1][0x8] = 2\nEXIT\n.kernel two\n.const c[0x1][0x8] = 3\nEXIT\n"
    assert errors(text) == []
    assert errors(text + ".const c[0x1][0x8] = 4\n") == ["8:8: c[0x1][0x8] is given twice"]
