"""The parser's diagnostics: wording, exact place, and going on after an error."""

from __future__ import annotations

import pytest

from ptxemu.syntax import ast
from tests.front.syntax_helpers import HEADER, in_kernel, parse_text

FIRST = 6  # the line of a kernel's first statement


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ("mov.u32 %r1, 5\nret;", ["7:1: expected ';' before 'ret'"]),
        ("mov.u32 %r1, 5 ret;", ["6:16: expected ',' or ';' before 'ret'"]),
        ("ld.u32 %r1, [%r2+4;", ["6:19: expected ',' or ']' before ';'"]),
        ("st.v2.u32 [a], {%r1, %r2;", ["6:25: expected ',' or '}' before ';'"]),
        ("call f, (a;", ["6:11: expected ',' or ')' before ';'"]),
        ("mov.u32 %r1,, 5;", ["6:13: expected an operand before ','"]),
        ("mov.u32 %r1, ;", ["6:14: expected an operand before ';'"]),
        (".reg .foo %a;", ["6:6: unknown type '.foo'"]),
        (".reg u32 %a;", ["6:6: expected a type before 'u32'; did you mean '.u32'?"]),
        (".bogus 5;", ["6:1: unknown directive '.bogus'"]),
        (".loc 1 2;", ["6:1: expected a file, a line and a column after '.loc'"]),
        (".section .a 5", ["6:1: malformed or unterminated '.section'"]),
        (";", ["6:1: expected an instruction, a declaration or '}' before ';'"]),
        (
            "@%p { mov.u32 a, 1; mov.u32 b, 2; }\nmov.u32 a b;",
            ["6:5: expected a name before '{'", "7:11: expected ',' or ';' before 'b'"],
        ),
        ("mov.u32 %r1, 08;", ["6:14: invalid number '08': a number that begins with 0 is octal"]),
        ("mov.f32 %r1, 0f3f80;", ["6:14: invalid number '0f3f80': 0f takes 8 hexadecimal digits, not 4"]),
        ("mov.u32 %r1, 5L;", ["6:14: invalid number '5L': numbers have no suffix 'L'"]),
        ("mov.u32 %r1, 5/(2-2);", ["6:14: division by zero in a constant expression"]),
        ("mov.u32 %r1, 1.0+2;", ["6:14: '+' mixes an integer and a float constant"]),
        ("mov.u32 %r1, -0f3F800000;", ["6:14: a 0f constant cannot be part of an expression"]),
        ("mov.u32 %r1, %r2*4;", ["6:14: '*' needs constants: this is not one"]),
        ("mov.u32 %r1, (%r2);", ["6:14: only the operands of 'call' can be in parentheses"]),
        ("ld.u32 %r1, [%r1+%r2];", ["6:18: expected a constant after '+'"]),
        ("ld.u32 %r1, [-%r1];", ["6:14: expected a register, a symbol or a constant address"]),
        ("mov.u32 %r1, a.b.c;", ["6:14: 'a.b.c' is not an operand: expected a register, a symbol or a vector member"]),
        ("L.x: ret;", ["6:1: 'L.x' is not a name for a label"]),
        ("P: .callprototype _ (.param .b32 _) f;", ["6:37: expected ';' before 'f'"]),
        ("P: .callprototype () f ();", ["6:22: expected '_' in place of the function name"]),
        ('.pragma "x', ["6:9: unterminated string", "7:1: expected a string before '}'"]),
        ("ret; /* x", ["6:6: unterminated comment"]),
        ("mov.u32 %r1, é;", ["6:14: unexpected character 'é'"]),
        ("ret; \0", ["6:6: unexpected character '\\x00'"]),
    ],
)
def test_errors_in_a_body(body: str, errors: list[str]) -> None:
    assert parse_text(in_kernel(body))[1] == errors
    assert parse_text(in_kernel(body), fast=False)[1] == errors


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("hello world", ["4:1: expected a directive, a declaration or a function before 'hello'"]),
        (".version 8.0", ["4:1: '.version' is given twice"]),
        (".address_size 65", ["4:15: '.address_size' must be 32 or 64"]),
        (".target", ["4:8: expected a name before the end of the file"]),
        (".global .u32 x = {1, 2;", ["4:23: expected ',' or '}' before ';'"]),
        (".global .u32 x = foo(y);", ["4:18: expected 'generic' before '(', found 'foo'"]),
        (".global .u32 x = {%p|%q};", ["4:19: expected a constant, or an address with a constant offset"]),
        (".global .align 4 .align 8 .u32 x;", ["4:32: the alignment of 'x' is given twice; the last one counts"]),
        (".global .u32 x[y];", ["4:16: expected an integer constant"]),
        (".visible .extern .global .u32 x;", ["4:10: expected a variable or a function before '.extern'"]),
        (
            ".entry k(.param .u64 x .param .u64 y) { bad bad bad }",
            ["4:24: expected ',' or ')' before '.param'", "4:49: expected ',' or ';' before 'bad'"],
        ),
        (".entry k(.param .foo x) { ret; }", ["4:17: unknown type '.foo'"]),
        (".entry k(, ) { ret; }", ["4:10: expected a parameter before ','"]),
        (".entry k() .maxfoo 5 { ret; }", ["4:12: unknown directive '.maxfoo'"]),
        (".entry k() .maxntid { ret; }", ["4:12: '.maxntid' takes one to three integers"]),
        (".entry k() .maxnreg 1, 2 { ret; }", ["4:12: '.maxnreg' takes one integer"]),
        (".func k() .noreturn 1 { ret; }", ["4:11: '.noreturn' takes no value"]),
        (".entry (.param .b32 r) k() { ret; }", ["4:8: expected a name before '('"]),
        (".entry k() { ret; }\n}", ["5:1: unmatched '}'"]),
        (".entry k() { ret;\n.entry l() { ret; }", ["5:1: expected '}' before '.entry'"]),
        (".entry k()\n{ {\nret;", ["6:5: expected '}' before the end of the file"]),
    ],
)
def test_errors_in_a_module(text: str, errors: list[str]) -> None:
    assert parse_text(HEADER + text)[1] == errors
    assert parse_text(HEADER + text, fast=False)[1] == errors


def test_version_numbers() -> None:
    assert parse_text(".version 8\n.version x.y")[1] == [
        "1:10: expected a version number such as 8.0 after '.version'",
        "2:1: expected a value after '.version'",
    ]


def test_what_follows_an_error_is_still_read() -> None:
    module, errors = parse_text(
        HEADER
        + ".entry a() { mov.u32 %r1 5;\nadd.u32 %r1, %r1, 1;\n}\n.global .foo g;\n"
        + ".entry b() { ret;\n.visible .entry c() { ret; }\n"
    )
    assert [error.split(": ")[0] for error in errors] == ["4:26", "7:9", "9:10"]
    assert [item.name for item in module.items if isinstance(item, ast.Function)] == ["a", "b", "c"]
    body = module.items[0].body  # type: ignore[union-attr]
    assert body
    assert [node.opcode for node in body.body if isinstance(node, ast.Instruction)] == ["mov", "add"]


def test_a_missing_semicolon_costs_nothing() -> None:
    module, errors = parse_text(in_kernel("mov.u32 %r1, 5\nadd.u32 %r1, %r1, 1;\nret;"))
    assert len(errors) == 1
    body = module.items[0].body  # type: ignore[union-attr]
    assert body
    assert [node.opcode for node in body.body if isinstance(node, ast.Instruction)] == ["mov", "add", "ret"]


def test_a_missing_brace_names_the_one_to_match() -> None:
    from ptxemu.syntax.parser import parse
    from ptxemu.text.errors import Diagnostics
    from ptxemu.text.source import SourceFile

    source = SourceFile("k.ptx", HEADER + ".entry k()\n{ {\nret;")
    diagnostics = Diagnostics(source)
    parse(source, diagnostics)
    assert diagnostics.records[0].notes == ("the '{' to match is on line 5, column 3",)


def test_at_most_twenty_errors() -> None:
    errors = parse_text(in_kernel("\n".join(f"mov.u32 %r{n} 1;" for n in range(100))))[1]
    assert len(errors) == 20


@pytest.mark.parametrize("depth", [200, 255])
def test_deep_scopes(depth: int) -> None:
    assert parse_text(HEADER + ".entry k() " + "{" * depth + "ret;" + "}" * depth)[1] == []


def test_scopes_that_are_too_deep() -> None:
    errors = parse_text(HEADER + ".entry k() " + "{" * 300 + "}" * 300)[1]
    assert errors == ["4:268: braces are nested deeper than 256 levels"]
    errors = parse_text(HEADER + ".global .u32 x = " + "{" * 100_000)[1]
    assert errors == ["4:274: braces are nested deeper than 256 levels"]
