"""Hostile texts: the parser neither recurses on them nor takes more than linear time, and reports what is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ply import lex

from ptxemu.syntax import ast, lexer
from tests.front.syntax_helpers import CORPUS, HEADER, in_kernel, parse_text

LENGTH = 1 << 16


def repeated(piece: str, length: int = LENGTH) -> str:
    return piece * (length // len(piece))


@pytest.mark.parametrize(
    "text",
    [
        in_kernel("mov.u32 %r1, " + "(" * LENGTH + "5" + ")" * LENGTH + ";"),
        in_kernel("mov.u32 %r1, " + "-" * LENGTH + "5;"),
        in_kernel("mov.u32 %r1, " + repeated("1+") + "5;"),
        in_kernel("mov.u32 %r1, " + repeated("1?2:") + "5;"),
        in_kernel(repeated("L:") + "ret;"),
        in_kernel(repeated("{}")),
        in_kernel(repeated("add.u32 %r1, %r2, 7; ")),
        in_kernel("call f, (" + repeated("a, ") + "a);"),
        in_kernel("mov.u32 {" + repeated("%r1, ") + "%r1}, a;"),
        in_kernel("T: .branchtargets " + repeated("A, ") + "A;"),
        in_kernel("a" + repeated(" .b") + ";"),
        in_kernel(".pragma " + repeated('"a", ') + '"a";'),
        in_kernel(".reg .b32 " + ", ".join(f"%a{n}" for n in range(100_000)) + ";"),
        in_kernel(".reg .b32 %r<100000>; mov.b32 %r99999, 1;"),
        HEADER + ".global .b8 x[] = {" + repeated("1, ") + "1};",
        HEADER + ".global .b8 x[] = {" + repeated("-1, ") + "1};",
        HEADER + ".entry k(" + ", ".join(f".param .u32 p{n}" for n in range(10_000)) + ") { ret; }",
        HEADER + ".global .u32 " + "a" * LENGTH + ";",
        HEADER + ".global .u32 a" + repeated("[1]") + ";",
        HEADER + '.file 1 "' + repeated("\\\\x") + '"',
        "/*" + " *" * LENGTH + "*/",
        repeated("@@DWARF .byte 1\n"),
        repeated("\n# 1"),
        "\r\n" * LENGTH,
    ],
    ids=range(24),
)
def test_long_texts_parse(text: str) -> None:
    assert parse_text(text)[1] == []


@pytest.mark.parametrize(
    "piece",
    [
        *"(){}[];:,.+-*/\\\"'@%$#~!\0\x01é", "/*", "*/", '\\"', "L:", "a[", "5 ", ".entry ", ".section a {", ".reg ", "%r<",
        ".loc ", "1e", "$.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["module", "parameters", "body", "operand", "value"])
def test_repeated_junk_is_reported_and_bounded(piece: str, place: str) -> None:
    before = {
        "module": HEADER,
        "parameters": HEADER + ".entry k(",
        "body": HEADER + ".entry k() { ",
        "operand": HEADER + ".entry k() { mov.u32 a, ",
        "value": HEADER + ".global .u32 x = ",
    }[place]
    errors = parse_text(before + repeated(piece, LENGTH // 4))[1]
    assert len(errors) <= 20
    assert errors or (place == "module" and piece in "#\0/")


@pytest.mark.parametrize(
    ("number", "column"), [("9" * 100_000, 14), ("0x" + "f" * 100_000, 14), ("1." + "9" * 100_000, 14)], ids=["d", "x", "f"]
)
def test_numbers_that_no_type_can_hold(number: str, column: int) -> None:
    assert parse_text(in_kernel(f"mov.u32 %r1, {number};"))[1] == [f"6:{column}: this number is too long"]


def test_nested_groups_are_refused() -> None:
    errors = parse_text(in_kernel("call f, " + "(" * 10_000 + "a" + ", b)" * 10_000 + ";"))[1]
    assert errors == ["6:10008: only the operands of 'call' can be in parentheses"]


# ---------------------------------------------------------------- tables


def test_the_rules_of_the_lexer_are_sound():
    """PLY tests them here, as it does not when it is to start fast: it raises where a rule matches nothing, or cannot be."""
    rules = lexer._Rules()
    assert lex.lex(object=rules, reflags=re.ASCII, errorlog=lex.NullLogger()).lexre is not None
    rules.t_EMPTY = "x*"
    with pytest.raises(SyntaxError):
        lex.lex(object=rules, reflags=re.ASCII, errorlog=lex.NullLogger())


def test_generated_tables_are_used_and_stale_ones_are_not(tmp_path: Path, root: Path) -> None:
    """In a fresh process, so that the tables of this one do not matter."""
    generated = tmp_path / "_tables.py"
    subprocess.run([sys.executable, "tools/tables.py", generated], cwd=root, check=True)
    program = (
        "import sys, importlib.util\n"
        "from ply import yacc\n"
        f"spec = importlib.util.spec_from_file_location('ptxemu.syntax._tables', {str(generated)!r})\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "if len(sys.argv) > 1: module._lr_signature = 'stale'\n"
        "sys.modules['ptxemu.syntax._tables'] = module\n"
        "generated = []\n"
        "original = yacc.LRGeneratedTable\n"
        "yacc.LRGeneratedTable = lambda *a, **k: generated.append(1) or original(*a, **k)\n"
        "import ptxemu.syntax; ptxemu.syntax._tables = module\n"
        "from ptxemu.text.errors import Diagnostics\n"
        "from ptxemu.text.source import SourceFile\n"
        "from ptxemu.syntax.parser import parse\n"
        f"source = SourceFile('k.ptx', open({str(CORPUS[0])!r}).read())\n"
        "diagnostics = Diagnostics(source)\n"
        "print(len(parse(source, diagnostics).items), len(diagnostics.records), len(generated))\n"
    )
    items = len(parse_text(CORPUS[0].read_text())[0].items)
    for argument, generations in ([], 0), (["stale"], 1):
        run = subprocess.run([sys.executable, "-c", program, *argument], capture_output=True, text=True, cwd=root, check=True)
        assert run.stdout.split() == [str(items), "0", str(generations)]


def test_tables_are_for_all_versions_of_python() -> None:
    """From 3.13 on, docstrings have no indentation, and PLY's signature is made of them."""
    from ptxemu.syntax import _tables

    assert "\n    " not in _tables._lr_signature
    assert "\n| " in _tables._lr_signature


def test_the_grammar_has_no_conflicts() -> None:
    from ply import yacc

    from ptxemu.syntax import grammar

    messages: list[str] = []

    class Log:
        def warning(self, text: str, *arguments: object) -> None:
            messages.append(text % arguments)

        info = error = critical = debug = warning

    log = Log()
    yacc.yacc(module=grammar, tabmodule="no_such_tables", debug=True, write_tables=False, errorlog=log, debuglog=log)
    assert not [text for text in messages if "conflict" in text.lower() or "unused" in text.lower()]


def test_the_tree_of_an_unchanged_module_is_equal_and_of_a_changed_one_is_not() -> None:
    text = CORPUS[0].read_text()
    first, second = parse_text(text)[0], parse_text(text)[0]
    assert first == second
    assert parse_text(text.replace("ret;", "exit;"))[0] != first
    assert isinstance(first, ast.Module)
