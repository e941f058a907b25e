"""What the tests of the checker share: modules, bodies and messages of small texts."""

from __future__ import annotations

from ptxemu.check import check
from ptxemu.ir.ops import LabelMark, Module, Op
from ptxemu.syntax.parser import parse
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile

HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
REGISTERS = """
    .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
    .reg .b128 %q<9>;
"""


def diagnose(text: str, *, strict: bool = False) -> tuple[Module, Diagnostics]:
    source = SourceFile("test.ptx", text)
    diagnostics = Diagnostics(source, strict)
    tree = parse(source, diagnostics)
    module = check(tree, source, diagnostics)
    return module, diagnostics


def load(text: str) -> Module:
    module, diagnostics = diagnose(HEADER + text)
    assert [record.render() for record in diagnostics.errors] == []
    return module


def errors(text: str) -> list[str]:
    return [record.message for record in diagnose(HEADER + text)[1].errors]


def body(statements: str, *, before: str = "", params: str = "") -> list[Op | LabelMark]:
    module = load(f"{before}\n.visible .entry k({params})\n{{{REGISTERS}{statements}\n}}")
    items = module.functions["k"].body
    assert items is not None
    return items


def operation(statement: str, **context: str) -> Op:
    (op,) = body(statement, **context)
    assert isinstance(op, Op)
    return op


def ops(statements: str, **context: str) -> list[Op]:
    return [item for item in body(statements, **context) if isinstance(item, Op)]
