"""The typed IR as text: what is printed is read back to what prints the same, after every pass."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ptxemu import dialects
from ptxemu.driver import compile, pipeline
from ptxemu.ir.ops import Imm, Module
from ptxemu.ir.types import TYPES
from ptxemu.irtext.parser import parse_ir
from ptxemu.irtext.printer import Body, print_ir
from ptxemu.irtext.words import constant, constant_of
from ptxemu.isa import rows
from ptxemu.isa.instruction_types import types_of
from ptxemu.text.errors import InputError, PtxError, UnsupportedError
from tests.support.places import CORPUS, DATA, SAMPLES
from tests.support.row_forms import Form, declared, drawn

PROGRAMS = sorted(
    path
    for folder in (DATA, SAMPLES)
    for path in folder.rglob("*")
    if path.suffix in {".ptx", ".sass", ".visa", ".visaasm", ".ctm"}
)


def front(path: Path) -> Module:
    return compile.front(path.read_text(), path.name, dialect=dialects.of_file(path.name).name)


def again(text: str) -> str:
    """What is printed of what has been read."""
    return print_ir(*parse_ir(text))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
@pytest.mark.parametrize("variant", ["row", "any"])
def test_every_kernel_is_read_back_after_every_pass(path: Path, variant: str) -> None:
    module = front(path)
    passes = set()

    def compare(name: str, bodies: pipeline.Bodies) -> None:
        passes.add(name)
        text = print_ir(module, bodies.listing)
        assert again(text) == text

    text = compile.emit_ir(module, module.entries[0].name, compile.Options(), "check")
    assert again(text) == text
    for entry in module.entries:
        pipeline.analyse(pipeline.prepare(module, entry, variant, compare), compare)
    assert passes >= {step.name for step in pipeline.TO_SSA}


@pytest.mark.parametrize("opcode", sorted(rows()))
def test_every_row_is_read_back(opcode: str) -> None:
    """Modifiers and operands drawn at random from each row of the table, as far as they are PTX."""
    rng, accepted = random.Random(opcode), 0
    for row in rows()[opcode]:
        for _ in range(3):
            body = checked(drawn(rng, row))
            if body is None:
                continue
            accepted += 1
            text = print_ir(*body)
            module, (found,) = parse_ir(text)
            assert print_ir(module, [found]) == text
            for before, after in zip(body[1][0].ops, found.ops, strict=True):
                assert (after.row, after.mods) == (before.row, before.mods)
                assert (after.src_types, after.dst_types) == (before.src_types, before.dst_types)
                assert types_of(before) in (None, (before.src_types, before.dst_types))
    assert accepted or opcode in {"brx", "call"}, "the kernels have these"


def checked(form: Form) -> tuple[Module, list[Body]] | None:
    text = f""".version {form.version}
.target {form.target}
.address_size 64
.global .align 16 .b8 gbuf[64];
.shared .align 16 .b8 sbuf[64];
.const .align 16 .b8 cbuf[64];
.global .surfref surf;
.global .texref tex;
.entry k(.param .u64 n)
{{
    .local .align 16 .b8 lbuf[64];
    {declared(form.text)}
LX:
    {form.text}
}}
"""
    try:
        module = compile.front(text)
    except (PtxError, UnsupportedError):
        return None
    (function,) = module.entries
    return module, [Body(function, function.body, function.variables)]


CONSTANTS = [
    ("u32", 7, "7"), ("s32", 0xFFFFFFFF, "-1"), ("s64", 2**64 - 65535, "-65535"), ("u32", 0xFFFFFFFF, "0xffffffff"),
    ("b16", 0xFFFF, "65535"), ("f32", 0x3F800000, "0f3f800000(1.0)"), ("f32", 0xFFC00001, "0fffc00001(nan)"),
    ("f64", 0x8000000000000000, "0d8000000000000000(-0.0)"), ("f64", 0x7FF0000000000000, "0d7ff0000000000000(inf)"),
    ("pred", 1, "1"), ("f16x2", 0x3C003C00, "0x3c003c00"), ("b128", 1 << 127, hex(1 << 127)), ("s8", 0x80, "-128"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "bits", "text"), CONSTANTS)
def test_constants_show_their_bits(kind: str, bits: int, text: str) -> None:
    value = Imm(bits, TYPES[kind])
    assert constant(value) == text
    assert constant_of(text, TYPES[kind]) == value


HEAD = "module 8.0, sm_80\n\n"


def test_the_text_of_a_graph_says_all_that_it_holds() -> None:
    text = (
        HEAD
        + """\
visible entry @k                                                         // 3
  formal @n: u32 at 0                                                    // 3
  limit maxntid 64 1 1
  local @"a b": b8[16] align 8                                           // 4
{
"the start":
  @!%p#0:pred %x#1:b32, _ = ld.v2.u32 [%rd:b64 - 8] else 5:s32, _        // 5
  %y:b32 = _move(s16 -> s32) %x#1                                        // 5
  st.global.f32 [@"a b" + 4], 0fbf800000(-1.0)                           // 6
  branch !%p#0:pred, loop, done                                          // 7
loop: spins joint (loop, done)
  %i:b32 = phi "the start" %y, loop 1:u32
  jump loop
done:
  end                                                                    // 9
}
"""
    )
    assert again(text) == text


def test_files_of_a_linked_program_are_told_apart() -> None:
    text = "module 8.0, sm_80\nfiles a.ptx, b.ptx\n\nentry @k" + " " * 65 + "// 2:14\nflat {\n}\n"
    assert again(text) == text
    module, _ = parse_ir(text)
    assert module.source.where(module.functions["k"].pos) == "b.ptx:14"


WRONG = [
    ("entry @k\n{\na:\n  %x = add.u32 1, 2\n  end\n}", 8, "'%x' has no type"),
    ("entry @k\n{\na:\n  %x:u99 = add.u32 1, 2\n  end\n}", 6, "there is no type 'u99'"),
    ("entry @k\n{\na:\n  nosuch.u32 1\n  end\n}", 6, "unknown instruction 'nosuch.u32'"),
    ("entry @k\n{\na:\n  add.v7 1\n  end\n}", 6, "no row takes the modifiers of 'add.v7'"),
    ("entry @k\n{\na:\n  add/99.u32 1\n  end\n}", 6, "no such row for 'add/99.u32'"),
    ("entry @k\n{\na:\n  %x:b32 = add.u32 1, 2, 3\n  end\n}", 6, "'add' needs its types in parentheses"),
    ("entry @k\n{\na:\n  %x:b32 = add.u32 1, 2 3\n  end\n}", 6, "',' expected, not '3'"),
    ("entry @k\n{\na:\n  %x:b32 = add.u32 1, 4294967296\n  end\n}", 6, "4294967296 is out of range for u32"),
    ("entry @k\n{\na:\n  st.u32 [@y], 2\n  end\n}", 6, "there is no symbol 'y'"),
    ("entry @k\n{\na:\n  jump b\n}", 7, "there is no block 'b'"),
    (
        "entry @k\n{\na:\n  jump c\nb:\n  jump c\nc:\n  %x:b32 = phi a 1, b 2\n  %y:b32 = phi a 3\n  end\n}",
        11,
        "the phis of a block have values for the same blocks",
    ),
    ("entry @k\n{\na:\n  end\na:\n  end\n}", 7, "there are two blocks 'a'"),
    ("entry @k\n{\n  end\n}", 5, "a block expected"),
    ("entry @k\n  limit\n", 4, "a word expected, not ''"),
    ("heap @x: u32\n", 3, "unknown word 'heap'"),
]


@pytest.mark.parametrize(("text", "line", "message"), WRONG)
def test_what_is_wrong_is_an_error_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_ir(HEAD + text)
    assert str(caught.value).startswith(f"<ir>:{line}: {message}")


def test_the_text_is_the_same_in_every_process() -> None:
    """No name or order depends on addresses or on the seed of hashes."""
    path = CORPUS / "recursion.ptx"
    command = [sys.executable, "-m", "ptxemu", "compile", str(path), "--emit", "ir"]
    assert len({subprocess.run(command, capture_output=True, check=True).stdout for _ in range(3)}) == 1
