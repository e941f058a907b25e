"""CTM as text: what is refused, where the caret stands, what lint and the command line say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run as cli_run

HEAD = ".kernel k cached\n.output A a\n.output B b\n.input 0 a\n"
UMRT = ".kernel k umrt\n.output A a\n.input 0 a\n"
OWN = "RNDR_TGT_UMRT_PER_PROCESSOR_IDX"
LINE = HEAD.count("\n") + 1


def records(text: str, strict: bool = False) -> list[str]:
    return [
        f"{item.line}:{item.column}: {item.severity}: {item.message}"
        for item in ptxemu.lint(text, filename="x.ctm", strict=strict)
    ]


def column_and_message(line: str) -> str:
    found = records(HEAD + line + "\nOUTPUT NOP\n")
    assert len(found) == 1, found
    assert found[0].startswith(f"{LINE}:")
    return found[0].removeprefix(f"{LINE}:")


@pytest.mark.parametrize(
    "line",
    [
        "NOP",
        "ALU NOP",
        "ALU MAD.OMOD_U2.CLAMP.PRED_SEL_RRRR.PRED_INV r0.rg|pred.b, r1.rrrr, -r2, |r3.abgr|".replace(
            ".CLAMP", ".CLAMP.PRED_OP_LESS"
        ),
        "ALU MOV pred.rgba|r127, r0;".replace("MOV", "MOV.PRED_OP_EQUAL"),
        "RGB MUL r0, r1, 0.5; ALPHA ADD r1, r1, -|r2.r|  // two units",
        "ALPHA MOV r0, 1 ; RGB MOV r0, 0 # units in any order",
        "OUTPUT RGB MOV.RNDR_TGT_A out, r0.0h1; ALPHA MOV.RNDR_TGT_B r3|out, r0 ;",
        "TEX.TEX_SEM_ACQUIRE.PRED_SEL_AAAA r0.rg, r1.grab, inp0",
        "ALU MOV.TEX_SEM_WAIT.NOP r0, r0",
        ".const c255 = -1.5e-3, 2, 0f7fc00000 +4",
        ".const c0 = 3",
        ".set_out_mask 0xF",
    ],
)
def test_accepted(line):
    assert records(f"{HEAD}{line}\nOUTPUT NOP\n") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ALU SUB r0, r1, r2", "5: error: unknown operation 'SUB'"),
        ("ALU MVO r0, r1", "5: error: unknown operation 'MVO'; did you mean 'MOV'?"),
        ("OUTPUT TEX r0, r1, inp0", "8: error: 'TEX' is not an operation of OUTPUT instructions"),
        ("ALU MAD r0, r1, r2", "5: error: 'MAD' takes 4 operands, not 3"),
        ("ALU MOV.OMOD_U3 r0, r1", "8: error: unknown modifier '.OMOD_U3' for 'MOV'; did you mean '.OMOD_U8'?"),
        ("ALU ADD.OMOD_DISABLED r0, r1, r2", "8: error: '.OMOD_DISABLED' is a modifier of MOV, MIN, MAX, CND, CMP, not of 'ADD'"),
        ("ALU FRC.OMOD_DISABLED r0, r1", "8: error: '.OMOD_DISABLED' is a modifier of MOV, MIN, MAX, CND, CMP, not of 'FRC'"),
        ("ALU MOV.OMOD_DISABLED.CLAMP r0, r1", "5: error: a MOV that clamps cannot disable the output modifier"),
        ("ALU MOV.OMOD_U2.OMOD_U4 r0, r1", "16: error: '.OMOD_U4' and '.OMOD_U2' both give the output modifier of 'MOV'"),
        ("ALU MOV.RNDR_TGT_A r0, r1", "8: error: '.RNDR_TGT_A' is a modifier of OUTPUT instructions, not of 'MOV'"),
        ("OUTPUT MOV.PRED_OP_LESS out, r1", "11: error: '.PRED_OP_LESS' is a modifier of ALU instructions, not of 'MOV'"),
        ("ALU MOV out, r1", "9: error: ALU instructions do not write 'out'"),
        ("OUTPUT MOV.RNDR_TGT_A pred, r1", "23: error: OUTPUT instructions do not write 'pred'"),
        ("ALU MOV pred, r1", "5: error: a write of pred needs a test, such as .PRED_OP_EQUAL"),
        ("ALU MOV.PRED_OP_LESS r0, r1", "5: error: .PRED_OP_LESS needs the destination pred"),
        ("OUTPUT MOV out, r1", "8: error: a write of out needs a target, such as .RNDR_TGT_A"),
        ("OUTPUT MOV.RNDR_TGT_C out, r1", "11: error: output C is not declared: give it by .output"),
        (f"OUTPUT MOV.{OWN} out, r1", f"11: error: MIXED_OUTPUT: a program of kind cached cannot write {OWN}"),
        ("OUTPUT RGB MOV.W_OMASK r0, r1", "12: error: W_OMASK belongs to the alpha unit"),
        ("ALU MOV r128, r1", "9: error: 'r128' cannot be written; there are r0 to r127, pred and out"),
        ("ALU MOV c0, r1", "9: error: 'c0' cannot be written"),
        ("ALU MOV r0.rr, r1", "12: error: a write mask has letters of rgba, each once, or is none"),
        ("ALU MOV r0.xy, r1", "12: error: a write mask has letters of rgba, each once, or is none"),
        ("ALU ALPHA MOV r0.r, r1", "18: error: this unit has no channel r, only a"),
        ("ALU RGB MOV r0.a, r1", "16: error: this unit has no channel a, only rgb"),
        ("ALU MOV r0|r1, r2", "12: error: the two destinations are of one kind"),
        ("ALU MOV r0, r1.rg", "16: error: a swizzle of this unit has one letter or 4 of rgba0h1"),
        ("ALU RGB MOV r0, r1.rgba", "20: error: a swizzle of this unit has one letter or 3 of rgba0h1"),
        ("ALU ALPHA MOV r0, r1.rg", "22: error: a swizzle of this unit has one letter of rgba0h1"),
        ("ALU MOV r0, x1", "13: error: 'x1' is not a register; there are r0 to r127 and c0 to c255"),
        ("ALU MOV r0, c256", "13: error: 'c256' is not a register"),
        ("ALU MOV r0, c7", "13: error: c7 has no value: give it by .const or .constants"),
        ("ALU MOV r0, 2", "13: error: numbers in sources are 0, 0.5 and 1; others lie in constants"),
        ("ALU MOV r0, 1.5.5", "13: error: invalid number '1.5.5'"),
        ("ALU MOV r0 r1", "12: error: expected ',', found 'r1'"),
        ("ALU MOV r0, |r1", "16: error: expected '|' before the end of the line"),
        ("ALU RGB MOV r0, r1; RGB MOV r2, r1", "21: error: RGB has two parts"),
        ("ALU RGB MOV r0, r1; MOV r2, r1", "21: error: of two parts, one is for RGB and one for ALPHA"),
        ("RGB TEX r0, r1, inp0", "1: error: TEX takes no unit"),
        ("TEX r0, r1, inp1", "13: error: input 1 is not declared: give it by .input"),
        ("TEX r0, r1, inp16", "13: error: expected an input, inp0 to inp15"),
        ("TEX r0, r1, -inp0", "13: error: expected an input, inp0 to inp15"),
        ("ALU MOV r0, ~r1", "13: error: unexpected character '~'"),
        ("ALU MOV r0, r1 /* never closed", "16: error: this comment never ends"),
        ("output MOV.RNDR_TGT_A out, r1", "1: error: unknown kind of instruction 'output'; did you mean 'OUTPUT'?"),
        ("rgb MOV r0, r1", "1: error: unknown kind of instruction 'rgb'; did you mean 'RGB'?"),
        ("OUTPUTS RGB MOV out, r1", "1: error: unknown kind of instruction 'OUTPUTS'; did you mean 'OUTPUT'?"),
        ("MOV r0 r1", "8: error: expected ',', found 'r1'"),
        ("MOV RGB MOV r0, r1", "5: error: expected a name, found 'RGB'"),
        (".outptu C c", "1: error: unknown directive '.outptu'; did you mean '.output'?"),
        (".output E e", "9: error: the outputs are A, B, C, D"),
        (".output A again", "9: error: output A is declared twice"),
        (".output C c TILED", "13: error: UNSUPPORTED_TILING: the layout of tiles is not known"),
        (".output C c ROUND", "13: error: unknown tiling 'ROUND'; there are LINEAR, TILED, LINEAR_INP_2X2, TILED_INP_2X2"),
        (".input 0 again", "8: error: input 0 is declared twice"),
        (".input 16 c", "8: error: expected a number from 0 to 15"),
        (".const c1 = 1 2", "1: error: a constant has four numbers, or one for all"),
        (".constants int values", "12: error: constants of kind 'int' control flow, which CTM programs here do not support"),
        (".constants half values", "12: error: constants of kind 'half' do not exist"),
        (".const r1 = 1", "8: error: 'r1' is not a constant; there are c0 to c255"),
        (".domain 0 0 0", "1: error: expected .domain X0 Y0 X1 Y1"),
        (".domain 4 0 3 9", "1: error: the last point lies before the first"),
        (".point c0", "8: error: 'c0' cannot be written"),
        (".kernel k cached", "9: error: kernel 'k' is defined twice"),
        (".kernel j other", "11: error: the kind of a program is cached or umrt"),
        (".set_cond_test 8", "16: error: expected a number from 0 to 7"),
        (".in r200 x", "5: error: 'r200' cannot be written"),
    ],
)
def test_errors(line, message):
    lines = HEAD + line
    found = records(lines + "\n")
    assert found and found[0].startswith(f"{LINE}:{message}"), found


def test_errors_cost_one_line():
    found = records(f"{HEAD}ALU MVO r0, r1\nALU MOV r0, r0\nOUTPUT MOV out, r0\n}}\n")
    assert sorted(item.split(": ")[0] for item in found) == ["5:5", "7:8", "8:1"]


def test_the_caret():
    with pytest.raises(ptxemu.PtxError) as error:
        ptxemu.loads(f"{HEAD}  ALU MOV.OMOD_U3 r0, r1\n", filename="x.ctm")
    assert "\n    ALU MOV.OMOD_U3 r0, r1\n           ^~~~~~~~" in str(error.value)


def test_kernels_and_their_order():
    assert records("") == ["1:1: error: the file has no .kernel"]
    assert records("NOP\n") == ["1:1: error: this must follow a .kernel directive"]
    assert records(".domain 0 0 1 1\n") == ["1:1: error: this must follow a .kernel directive"]
    late = records(HEAD + "ALU MOV r0, 0\n.domain 0 0 1 1\n")
    assert late == ["6:1: error: the domain comes first in a kernel, once"]
    twice = records(".kernel k cached\n.conditional x\n.conditional y\nOUTPUT NOP\n")
    assert twice == ["3:14: error: there is one conditional output buffer"]
    assert records(".kernel k cached\n.set_cond_test 3\nOUTPUT NOP\n") == [
        "2:1: error: the conditional test needs a buffer: give it by .conditional"
    ]


def test_mixed_programs_are_refused():
    """No program does cached and uncached output."""
    found = records(f"{UMRT}OUTPUT MOV.{OWN} out, r0\nOUTPUT MOV.RNDR_TGT_A out, r0\n")
    assert found == ["5:11: error: MIXED_OUTPUT: a program of kind umrt cannot write RNDR_TGT_A"]
    assert records(f"{UMRT}OUTPUT MOV out, r1\n")[0].endswith("needs a target, such as .RNDR_TGT_UMRT_SAME_IDX")


def test_a_program_ends_in_an_output():
    text = f"{HEAD}OUTPUT MOV.RNDR_TGT_A out, 1\nALU MOV r0, 1\n"
    assert records(text) == []
    assert records(text, strict=True) == ["6:1: error: the last instruction of a program must be an OUTPUT"]
    assert records(f"{text}OUTPUT NOP\n", strict=True) == []
    assert records(".kernel k cached\n", strict=True) == ["1:9: error: the last instruction of a program must be an OUTPUT"]


def test_partial_and_unsynchronized_umrt_writes_are_warned_of():
    found = records(f"{UMRT}OUTPUT MOV.{OWN} out.rgb, r0\nTEX r1, r0, inp0\n")
    assert [item.split(": ")[0:3] for item in found] == [["4:1", "warning", "PARTIAL_UMRT"], ["5:1", "warning", "UNSYNCED_READ"]]
    assert records(f"{UMRT}OUTPUT MOV.{OWN}_TEX_SEM_ACQUIRE out, r0\nTEX r1, r0, inp0\n") == []
    assert records(f"{UMRT}OUTPUT ALPHA MOV out, r0\n")[0].startswith("4:1: error: a UMRT write takes its target")


def test_tiling_may_be_ignored():
    text = f"{HEAD}.input 1 t TILED\nOUTPUT NOP\n"
    assert ptxemu.loads(text, dialect="ctm", options={"tiling": "ignore"})
    with pytest.raises(ptxemu.InputError, match="tiling is 'maybe', not one of reject, ignore"):
        ptxemu.loads(text, dialect="ctm", options={"tiling": "maybe"})


# ---------------------------------------------------------------- the command line

PROGRAM = """.kernel scale cached
.in r0 values
.out r1 doubled
.out pred signs
ALU ADD.PRED_OP_LESS r1|pred, r0, r0
OUTPUT NOP
"""


def command(*arguments: object) -> int:
    return cli_run([str(argument) for argument in arguments])


def test_register_files(tmp_path):
    program = tmp_path / "scale.ctm"
    program.write_text(PROGRAM)
    values = np.random.default_rng(1).uniform(-1, 1, (64, 4)).astype(np.float32)
    np.save(tmp_path / "values.npy", values)
    np.save(tmp_path / "zeros.npy", np.zeros((64, 4), np.float32))
    np.save(tmp_path / "signs.npy", np.zeros(64, np.uint32))
    files = {"values": "values", "doubled": "zeros", "signs": "signs"}
    inputs = [word for name, file in files.items() for word in ("--arg", f"{name}=@{tmp_path}/{file}.npy")]
    outputs = ["--out", f"doubled={tmp_path}/out.npy", "--out", f"signs={tmp_path}/bits.npy"]
    assert command("run", program, "--grid", 2, "--block", 32, *inputs, *outputs) == 0
    assert (np.load(tmp_path / "out.npy") == 2 * values).all()
    assert (np.load(tmp_path / "bits.npy") == (values < 0) @ [1, 2, 4, 8]).all()


def test_verbs(tmp_path, capfd):
    program = tmp_path / "scale.ctm"
    program.write_text(PROGRAM)
    assert command("lint", "--strict", program) == 0
    assert capfd.readouterr().out == ""
    assert command("info", program) == 0
    shown = capfd.readouterr().out
    assert "CTM" in shown and "kernel scale" in shown and re.search(r"ADD\.PRED_OP_LESS +1", shown)
    assert command("compile", program) == 0
    assert capfd.readouterr().out
    program.write_text(PROGRAM.replace("ADD", "ADDD"))
    assert command("lint", program) == 2
    assert f"{program}:5:5: error: unknown operation 'ADDD'" in capfd.readouterr().out
