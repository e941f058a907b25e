"""Reading PTX files and checking PTX text, with none of what it takes to run it: tools that only check start fast."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ptxemu import dialects
from ptxemu.images.host import program_text
from ptxemu.process.gc_pause import collector_paused
from ptxemu.process.locks import importing
from ptxemu.process.stages import CHECK, PARSE, stage
from ptxemu.text.errors import Diagnostic, Diagnostics, UnsupportedError
from ptxemu.text.files import MAX_PROGRAM, read_file
from ptxemu.text.source import SourceFile

if TYPE_CHECKING:
    from ptxemu.ir.ops import Module


def lint(text: str, *, filename: str = "<string>", strict: bool = False, dialect: str | None = None) -> list[Diagnostic]:
    """Every error and warning of a text; none if it is right, even if ptxemu cannot run it."""
    source = SourceFile(filename, text)
    diagnostics = Diagnostics(source, strict)
    language = dialects.of_file(filename) if dialect is None else dialects.find(dialect)
    with suppress(UnsupportedError), collector_paused():
        if language is dialects.PTX:
            check_ptx(source, diagnostics)
        else:
            dialects.front(language.name, source, diagnostics, strict, language.check_options({}))
    return diagnostics.records


def check_ptx(source: SourceFile, diagnostics: Diagnostics) -> Module:
    """The typed module of a PTX text, of use only if there are no errors. All errors are reported."""
    with importing:
        from ptxemu.check import check
        from ptxemu.syntax.parser import parse

    with stage(PARSE):
        tree = parse(source, diagnostics)
    diagnostics.next_stage()
    try:
        with stage(CHECK):
            return check(tree, source, diagnostics)
    finally:
        diagnostics.finish()


def read_ptx(path: Path) -> str:
    """The PTX in a file, which may be a fat binary, or what nvcc makes of a program. Raises as :func:`program_text`."""
    return program_text(read_file(path, MAX_PROGRAM), str(path))
