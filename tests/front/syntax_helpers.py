"""What the tests of the parser share."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxemu.syntax import ast
from ptxemu.syntax.parser import parse
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile
from tests.support import places

CORPUS = sorted(places.CORPUS.glob("*.ptx"))
HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"


def parse_text(text: str, *, fast: bool = True) -> tuple[ast.Module, list[str]]:
    """The tree, and the errors as ``line:column: message``."""
    source = SourceFile("test.ptx", text)
    diagnostics = Diagnostics(source)
    module = parse(source, diagnostics, fast=fast)
    return module, [f"{record.line}:{record.column}: {record.message}" for record in diagnostics.records]


def read(text: str) -> ast.Module:
    module, errors = parse_text(text)
    assert errors == []
    return module


def in_kernel(body: str) -> str:
    return HEADER + ".visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n"


def statements(body: str) -> list[ast.Statement]:
    [function] = read(in_kernel(body)).items
    assert isinstance(function, ast.Function)
    assert function.body
    return function.body.body


def operand(text: str) -> ast.Operand:
    [node] = statements(f"mov.u64 %d, {text};")
    assert isinstance(node, ast.Instruction)
    return node.operands[1]


def variable(text: str) -> ast.Variable:
    [node] = read(HEADER + text).items
    assert isinstance(node, ast.Variable)
    return node


def nodes(root: object) -> Iterator[object]:
    """Every node of a tree, without recursion."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
        elif isinstance(node, Struct):
            yield node
            stack.extend(getattr(node, name) for name in node.__struct_fields__)
