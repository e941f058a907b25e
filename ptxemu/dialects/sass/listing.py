"""Assembling and disassembling: the words of a file's SURED and RED instructions."""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.dialects.sass.ast import Instruction, Line
from ptxemu.dialects.sass.encoding import encode
from ptxemu.dialects.sass.grammar import parser
from ptxemu.dialects.sass.operands import check_operands, form_of
from ptxemu.dialects.text import TextError
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile

ENCODED = ("SURED", "RED")


def assemble(source: SourceFile, diagnostics: Diagnostics, sm: int = 60) -> list[tuple[Instruction, int | None]]:
    """Every instruction of a file with its word; None for those whose encoding is not of SURED or RED."""
    found: list[tuple[Instruction, int | None]] = []
    for item in _instructions(parser().parse(source, diagnostics)):
        try:
            found.append((item, _word(item, sm)))
        except TextError as error:
            diagnostics.error(error.message, error.pos, error.end)
    diagnostics.sort()
    return found


def _word(item: Instruction, sm: int) -> int | None:
    if item.opcode in ENCODED:
        return encode(item, sm)
    check_operands(form_of(item), item)
    return None


def _instructions(lines: list[Line]) -> Iterator[Instruction]:
    return (line.statement for line in lines if isinstance(line.statement, Instruction))
