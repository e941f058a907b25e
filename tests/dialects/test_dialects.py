"""What all dialects share: choice by suffix, options, diagnostics, the command line, and the list of operations."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from ply import yacc

import ptxemu
from ptxemu import dialects
from ptxemu._runtime import lib
from ptxemu.check import body
from ptxemu.cli import run
from ptxemu.dialects import operations
from ptxemu.dialects.ctm import table as ctm_table
from ptxemu.dialects.operations import find_sass
from ptxemu.dialects.sass import table as sass_table
from ptxemu.dialects.sass.table import ENGINE_TYPES, TABLE
from ptxemu.dialects.visa import table as visa_table
from ptxemu.driver.compile import Options, emit, front
from ptxemu.ir import operations as engine
from ptxemu.ir.operations import OPERATIONS, find
from ptxemu.ir.types import TYPES
from ptxemu.isa import rows
from ptxemu.isa.table import Row, add_row
from tests.fuzz import dialects as fuzz_dialects
from tests.support import processors
from tests.support.places import SAMPLES

ADD_LANES = """.header 3 image
.const c[0x0][0x148] = 0xABC00003
.kernel scatter
.param u32 n
        S2R R4, SR_TID.X
        ISETP.GE.U32.AND P0, PT, R4, c[0x0][0x140], PT
   @P0  EXIT
        MOV R5, RZ
        SURED.D.2D.ADD.IGN [R4], R4, 0x52
        EXIT
"""
CASE = """
block = 32
grid = 1
[args]
n = 7
[bind]
image = "texels"
[surfaces.texels]
format = "R32_UINT"
width = 16
height = 2
[expect.outputs.texels]
expression = "np.where(np.arange(32) < 7, np.arange(32), 0).astype(np.uint32).reshape(2, 16)"
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "kernel.sass"
    path.write_text(ADD_LANES)
    return path


def test_suffix_chooses_the_dialect(program):
    module = ptxemu.load(program)
    surface = module.device.surface((2, 16), format="R32_UINT")
    module.bind("image", surface)
    module["scatter"][1, 32](7)
    assert surface.copy_to_host().ravel().tolist() == [*range(7), *[0] * 25]


def test_dialect_by_name_and_its_errors():
    assert list(ptxemu.loads(ADD_LANES, dialect="sass")) == ["scatter"]
    with pytest.raises(ptxemu.InputError, match="no dialect is named 'arm'; there are ptx, sass"):
        ptxemu.loads(ADD_LANES, dialect="arm")
    with pytest.raises(ptxemu.InputError, match="SASS has no option 'colour'; there are shared_window, local_window, align, "):
        ptxemu.loads(ADD_LANES, dialect="sass", options={"colour": "red"})
    with pytest.raises(ptxemu.InputError, match="surface policy align is 'never'"):
        ptxemu.loads(ADD_LANES, dialect="sass", options={"align": "never"})


def test_the_device_policy_goes_before_the_dialects():
    device = ptxemu.Device("64 MiB", surface_policy=ptxemu.SurfacePolicy(invalid_header="fault"))
    module = ptxemu.loads(ADD_LANES, dialect="sass", device=device)
    with pytest.raises(ptxemu.Fault, match="unbound surface"):
        module["scatter"][1, 32](7)
    module = ptxemu.loads(ADD_LANES, dialect="sass", device=ptxemu.Device("64 MiB"))
    module["scatter"][1, 32](7)  # a header without a surface is an invalid texture


def test_commands(program, tmp_path, capfd):
    case = tmp_path / "case.toml"
    case.write_text(CASE)
    assert run(["run", str(tmp_path)]) == 0  # the only file called kernel
    elsewhere = tmp_path / "other" / "program.sass"
    elsewhere.parent.mkdir()
    elsewhere.write_text(ADD_LANES.replace("SURED.D.2D.ADD", "SURED.D.2D.MAX"))
    assert run(["run", str(elsewhere), str(case)]) == 0
    assert run(["lint", str(program)]) == 0
    assert run(["compile", str(program)]) == 0
    assert "pe_surface" in capfd.readouterr().out
    assert run(["info", str(program)]) == 0
    shown = capfd.readouterr().out
    assert "SASS for sm_50" in shown and "SURED.D.2D.ADD.IGN     1" in shown


def test_info_counts_instructions_alone(tmp_path, capfd):
    """Labels and the lines of register files are no instructions of a vISA program."""
    path = tmp_path / "k.visa"
    path.write_text(
        '.kernel "k"\n.decl V40 v_type=G type=ud num_elts=8\n.decl P1 v_type=P num_elts=8\n.in V40 x\n.out V40 y\n'
        "cmp.lt (M1, 8) P1 V40(0,0)<8;8,1> 5:ud\n(P1) goto (M1, 8) DONE\nDONE:\nret (M1, 8)\n"
    )
    assert run(["info", str(path)]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert [line.split() for line in shown[-3:]] == [["cmp.lt", "1"], ["goto", "1"], ["ret", "1"]], shown
    assert "bytes of parameters" in shown[-4]


def test_an_error_costs_one_line(tmp_path, capfd):
    path = tmp_path / "bad.sass"
    path.write_text(".kernel k\n MOV R1, , R2\n MVO R1, R2\n SURED.D.2D.ADD [R4 R5\n EXIT\n")
    assert run(["lint", str(path)]) == 2
    assert capfd.readouterr().out.splitlines() == [
        f"{path}:2:10: error: expected an operand, found ','",
        "   MOV R1, , R2",
        "           ^",
        f"{path}:3:2: error: unknown instruction 'MVO'; did you mean 'MOV'?",
        "   MVO R1, R2",
        "   ^~~",
        f"{path}:4:21: error: expected ']', found 'R5'",
        "   SURED.D.2D.ADD [R4 R5",
        "                      ^~",
    ]


def test_faults_name_file_and_line(program):
    module = ptxemu.load(program)
    module.bind("image", module.device.surface((2, 16), format="R32_UINT", geometry="a1d"))
    with pytest.raises(ptxemu.Fault, match=r"surface geometry mismatch in kernel `scatter` at .*kernel.sass:9: block"):
        module["scatter"][1, 32](7)


# ---------------------------------------------------------------- one list of operations


FILES = {
    "sass": (".kernel k\n.in R4 x\n.out R4 y\nIADD32I R4, R4, 0x1\nEXIT", np.uint32, (90,)),
    "visa": (
        '.kernel "k"\n.decl V40 v_type=G type=uw num_elts=8\n.in V40 x\n.out V40 y\n'
        "add (M1, 8) V40(0,0)<1> V40(0,0)<8;8,1> 0x1:uw\nret (M1, 1)",
        np.uint16,
        (90, 8),
    ),
    "ctm": (".kernel k cached\n.in r0 x\n.out r0 y\nALU ADD r0, r0, 1\nOUTPUT NOP", np.float32, (90, 4)),
}


@pytest.mark.parametrize("dialect", FILES)
def test_register_files_are_checked_before_the_launch(dialect):
    """One row for each thread, of elements as large as the register's; the same array may go in and come out."""
    text, kind, shape = FILES[dialect]
    kernel = ptxemu.loads(text, dialect=dialect, device=ptxemu.Device("64 MiB", workers=2))["k"][2, 45]
    first = np.arange(np.prod(shape), dtype=kind).reshape(shape)
    both = first.copy()
    kernel(both, both)
    assert (both == first + 1).all()
    wrong = np.zeros(shape, np.float64)
    for arrays in ((first[:89], both), (both, first[:-1])):
        with pytest.raises(ptxemu.InputError, match="the register file needs 90"):
            kernel(*arrays)
        with pytest.raises(ptxemu.InputError, match="the register file needs 90"):
            kernel(*map(kernel.kernel.module.device.to_device, arrays))
    for arrays in ((wrong, both), (both, wrong)):
        with pytest.raises(ptxemu.InputError, match=f"elements of {both.itemsize} bytes, not float64"):
            kernel(*arrays)
    assert (both == first + 1).all()


ONCE = {  # the directives that give a first value, and an instruction
    "sass": (".kernel k\n", (".in R4 x", ".in R4 y"), "NOP"),
    "visa": (
        '.kernel "k"\n.decl V1 v_type=G type=ud num_elts=1\n.decl T6 v_type=T num_elts=1\n',
        (".in V1 x", ".in V1 y", ".input V1 offset=0 size=4"),
        "mov (M1, 1) V1(0,0)<1> 1:ud",
    ),
    "ctm": (".kernel k cached\n", (".in r0 x", ".in r0 y", ".point r0"), "NOP"),
}


@pytest.mark.parametrize("dialect", ONCE)
def test_a_register_has_one_first_value(dialect):
    """Nothing overwrites what a directive gave, and no directive what an instruction wrote."""
    head, directives, instruction = ONCE[dialect]
    line = head.count("\n") + 2
    for first in directives:
        assert ptxemu.lint(f"{head}{first}\n{instruction}", dialect=dialect) == []
        for second in set(directives) - {first}:
            found = ptxemu.lint(f"{head}{first}\n{second}", dialect=dialect)
            assert [(item.line, "has a first value already" in item.message) for item in found] == [(line, True)]
        found = ptxemu.lint(f"{head}{instruction}\n{first}", dialect=dialect)
        assert [(item.line, item.message) for item in found] == [(line, "register files are read before the first instruction")]


STRICT = {
    "visa": '.kernel "k"\n.decl V40 v_type=G type=ud num_elts=8\n.decl T6 v_type=T num_elts=1\n'
    "TYPED_ATOMIC.INC (M2, 8) T6 V40.0 V0 V0 V0 V0 V0 V0\nret (M1, 1)",
    "ctm": ".kernel k cached\nALU MOV r0, 1",
}


@pytest.mark.parametrize("dialect", STRICT)
def test_strict_is_one_switch(dialect):
    """Whether ``strict`` is an argument, of a case or a call, or an option: text and launches are strict together."""
    ptxemu.loads(STRICT[dialect], dialect=dialect, options={"strict": False})
    for given in ({"strict": True}, {"options": {"strict": True}}):
        with pytest.raises(ptxemu.PtxError, match="error"):
            ptxemu.loads(STRICT[dialect], dialect=dialect, **given)
    assert ptxemu.lint(STRICT[dialect], dialect=dialect, strict=True)


@pytest.mark.parametrize(("dialect", "start"), [("sass", "MOV R1, "), ("visa", "mov (M1, 1) "), ("ctm", "MOV r1, ")])
@pytest.mark.parametrize("junk", ["x ", "r2, "])
def test_the_longest_lines_cost_their_length(dialect, start, junk):
    """Very long lines are read, or refused, and a message shows only the place."""
    found = ptxemu.lint(start + junk * (1 << 16), dialect=dialect)
    assert found and all(len(item.render()) < 1000 for item in found)


@pytest.mark.parametrize("dialect", ["sass", "visa", "ctm"])
def test_the_tables_of_a_grammar_are_made_once(dialect, monkeypatch):
    ptxemu.lint("@", filename=f"first.{dialect}")
    monkeypatch.delattr(yacc, "LRGeneratedTable")
    assert ptxemu.lint("@", filename=f"second.{dialect}")


def test_every_table_refers_to_the_list():
    """No table knows an operation that the list lacks, and every pair of the tables is one that the engine runs."""
    for opcode in ("sured", "red", "atom"):
        for row in rows()[opcode]:
            qualifiers = {qualifier.name: qualifier.values for qualifier in row.qualifiers}
            for word in qualifiers["op"] if row.supported else ():
                for kind in qualifiers["type"]:
                    entry = find(word, TYPES[kind])
                    assert lib.pe_atom_legal(entry.code, getattr(lib, f"PE_TYPE_{kind.upper()}"))
    for opcode in ("SURED", "RED"):
        for row in TABLE[opcode]:
            qualifiers = {qualifier.name: qualifier.values for qualifier in row.qualifiers}
            for size in qualifiers["size"]:
                entry = find_sass(qualifiers["op"][0], ENGINE_TYPES[size])
                assert lib.pe_atom_legal(entry.code, getattr(lib, f"PE_TYPE_{ENGINE_TYPES[size].name.upper()}"))
    for target, entry in ctm_table.uncached().items():
        assert "UMRT" in target and lib.pe_atom_legal(entry.code, lib.PE_TYPE_B32)
    for row in visa_table.TABLE[visa_table.ATOMIC]:
        entry = visa_table.entry_of(row.qualifiers[0].values[0])
        for half in (False, True):
            kind = visa_table.element_type(entry, half)
            assert lib.pe_atom_legal(entry.code, getattr(lib, f"PE_TYPE_{kind.name.upper()}"))


def test_the_list_and_the_engine_have_the_same_operations():
    codes = [entry.code for entry in OPERATIONS]
    assert sorted(codes) == list(range(lib.PE_ATOM_FMAX + 1))
    numbers = [entry.visa_code for entry in operations.OPERATIONS if entry.visa]
    assert sorted(numbers) == [*range(0x0E), 0x10, 0x11, 0x12]


PTX_LESS = """.version 8.0
.target sm_80
.address_size 64
.entry k(.param .u64 p) { .reg .u64 %d; ld.param.u64 %d, [p]; red.global.less.u32 [%d], 7; ret; }"""
LESS = {
    "sass": ".header 3 image\n.kernel k\nMOV32I R10, 0x3\nMOV32I R8, 0x7\nSURED.D.2D.LESS [R4], R8, R10\nEXIT",
    "visa": ".kernel k\n.decl U v_type=G type=ud num_elts=8\n.decl A v_type=G type=ud num_elts=8\n"
            ".decl T6 v_type=T num_elts=1 v_name=image\nmov (M1, 1) A(0,0)<1> 0x7:ud\n"
            "TYPED_ATOMIC.LESS (M1, 1) T6 U.0 U.0 V0 V0 A.0 V0 V0",
    "ctm": ".kernel k umrt\n.output A image\n.const c0 = 0 0 0 0\n.const c1 = 0f00000007 0 0 0\n"
           "OUTPUT MAX.OMOD_DISABLED.RNDR_TGT_UMRT_LESS_SAME_IDX out, c1.ra00, c1.ra00",
}  # fmt: skip


def test_a_new_operation_is_one_row_of_the_list(monkeypatch, request):
    """No instruction set subtracts by this name; one row, which names an entry of the engine, and all of them do.

    The rows of SASS, vISA and CTM follow the list; PTX has a row of its own for the types, versions and targets.
    """
    for dialect, text in {**LESS, "ptx": PTX_LESS}.items():
        assert [item.severity for item in ptxemu.lint(text, dialect=dialect)] == ["error"]
    monkeypatch.setattr(engine, "OPERATIONS", [*engine.OPERATIONS, engine.Operation("SUB", "us", "less")])
    monkeypatch.setattr(operations, "OPERATIONS", list(operations.OPERATIONS))
    operations.operation("SUB", "LESS", "less", 0x1F, sured="U32", red="U32", ctm="UMRT_LESS")
    fresh: dict[str, dict[str, list[Row]]] = {"sass": {}, "visa": {}, "ptx": {}}
    sass_table.build(fresh["sass"])
    visa_table.build(fresh["visa"])
    outputs: dict[str, dict[str, list[Row]]] = {"ALU": {}, "OUTPUT": {}}
    ctm_table.build(outputs)
    add_row(fresh["ptx"], "red", "space=global op=less type=u32", "[a]:type, b:type", lower="red", does="updates [a] as b")
    (less,) = fresh["ptx"]["red"]
    monkeypatch.setattr(body, "_forms", body._forms.__wrapped__)
    rows()["red"].insert(0, less)
    request.addfinalizer(lambda: rows()["red"].remove(less))
    for table, made in ((sass_table.TABLE, fresh["sass"]), (visa_table.TABLE, fresh["visa"]),
                        *((ctm_table.TABLES[kind], outputs[kind]) for kind in outputs)):  # fmt: skip
        for opcode, forms in made.items():
            monkeypatch.setitem(table, opcode, forms)
    results = []
    for dialect, text in LESS.items():
        module = ptxemu.loads(text, dialect=dialect)
        format = "R32_FLOAT" if dialect == "ctm" else "R32_UINT"
        surface = module.device.surface((2, 4), format=format)
        module.bind("image", surface)
        module["k"][1, 1]()
        results.append(surface.copy_to_host().view(np.uint32).ravel().tolist())
    memory = np.zeros(8, np.uint32)
    ptxemu.loads(PTX_LESS)["k"][1, 1](memory)
    assert results == [[2**32 - 7, *[0] * 7]] * 3 and memory.tolist() == results[0]


def test_ptx_is_a_dialect_too():
    assert dialects.of_file("x.ptx") is dialects.of_file("x") is dialects.PTX
    module = ptxemu.loads(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }", dialect="ptx")
    module["k"][1, np.int64(1)]()


# ---------------------------------------------------------------- other machines

PROGRAMS = sorted(path for path in SAMPLES.glob("*/kernel.*") if path.suffix in (".sass", ".visa", ".ctm"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.parent.name)
def test_samples_compile_for_aarch64(path, monkeypatch):
    """Object code of every program, which calls nothing but the runtime and C's mathematics."""
    processors.aarch64(monkeypatch, "generic")
    module = front(path.read_text(), path.name, dialect=dialects.of_file(path.name).name)
    assert module.functions
    for name in module.functions:
        code = emit(module, name, Options(opt=0, variant="any"), "obj")
        symbols = ELFFile(BytesIO(code)).get_section_by_name(".symtab")
        outside = {item.name for item in symbols.iter_symbols() if item["st_shndx"] == "SHN_UNDEF" and item.name}
        assert all(word.startswith("pe_") or word in ("memset", "memcpy", "fmaf") for word in outside), outside


@pytest.mark.parametrize(("dialect", "texts"), [("sass", 80), ("visa", 40), ("ctm", 60)])
def test_no_text_breaks_anything(dialect: str, texts: int) -> None:
    """A short run of each fuzz target; some mutations still run."""
    tried, ran = fuzz_dialects.target(dialect).fuzz(texts, 60)
    assert tried and ran


@pytest.mark.parametrize(
    ("dialect", "line", "found"),
    [
        ("sass", ".kernal k", "1:1 unknown directive '.kernal'; did you mean '.kernel'?"),
        ("sass", ".kernel", "1:1 expected .kernel NAME"),
        ("sass", "// none", "2:1 this must follow a .kernel directive"),
        ("visa", '.kernal "k"', "1:1 unknown directive '.kernal'; did you mean '.kernel'?"),
        ("visa", '.kernel "k', "1:9 this text never ends"),
        ("visa", "// none", "2:1 this must follow a .kernel directive"),
        ("ctm", ".kernal k umrt", "1:1 unknown directive '.kernal'; did you mean '.kernel'?"),
        ("ctm", ".kernel k", "1:1 expected .kernel NAME cached|umrt"),
        ("ctm", ".kernel umrt k", "1:14 the kind of a program is cached or umrt"),
        ("ctm", "// none", "2:1 this must follow a .kernel directive"),
    ],
)
def test_what_follows_a_wrong_kernel_line_is_not_blamed_for_it(dialect, line, found):
    """Issue 5, "Bad programs get line, column and a caret": one report for a fault, and the rest is checked."""
    body = {
        "sass": "L:\nBRA L\nMOV R0\nEXIT\n",
        "visa": "L:\ngoto (M1, 8) L\nmov (M1, 8)\nret (M1, 1)\n",
        "ctm": ".output A a\nOUTPUT MOV.RNDR_TGT_UMRT_SAME_IDX out, r0\nMOV r0\nOUTPUT NOP\n",
    }[dialect]
    errors = [one for one in ptxemu.lint(f"{line}\n{body}", dialect=dialect) if one.severity == "error"]
    first, second = [f"{one.line}:{one.column} {one.message}" for one in errors]
    assert first == found
    assert second.startswith("4:1 '") and "operand" in second


def test_two_kernels_of_one_name_are_both_checked():
    """A kernel that is defined twice is an error once; labels and parameters of the two do not meet."""
    text = ".kernel k\n.in R0 a\nL:\nBRA M\n.kernel k\n.in R0 a\nL:\nBRA L\nEXIT R0\n"
    found = [f"{one.line}: {one.message}" for one in ptxemu.lint(text, dialect="sass")]
    assert found == ["4: unknown label 'M'", "5: kernel 'k' is defined twice", "9: 'EXIT' takes 0 operands, not 1"]


@pytest.mark.parametrize(
    "text", [".kernel k\nEXIT\n", '.kernel "k"\nret (M1, 1)\n', ".kernel k cached\nOUTPUT NOP\n"], ids=["sass", "visa", "ctm"]
)
def test_a_byte_order_mark_is_no_text(text, request):
    """Editors write it; it is ignored as in PTX, at the beginning alone."""
    dialect = request.node.callspec.id
    assert ptxemu.lint(f"\ufeff{text}", dialect=dialect) == []
    (error,) = ptxemu.lint(f"\ufeff\ufeff{text}", dialect=dialect)
    assert (error.line, error.column) == (1, 2) and error.message.startswith("unexpected character")
