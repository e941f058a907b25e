"""Reads the text that :mod:`ptxemu.irtext.printer` writes.

Positions are kept to the line. What follows a line number is ignored, and so are lines that are blank or comments.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptxemu.ir.ops import Function, Module, Reloc, Symbol, Variable
from ptxemu.irtext.cursor import FUNCTION, SPACES, Cursor, Line, Lines, Problem
from ptxemu.irtext.declarations import declared
from ptxemu.irtext.functions import FunctionReader
from ptxemu.irtext.operations import find
from ptxemu.irtext.printer import Body, Item
from ptxemu.text.errors import InputError


def parse_ir(text: str, name: str = "<ir>") -> tuple[Module, list[Body]]:
    """The module and the functions of a text. Raises InputError, which names the first line that is wrong."""
    parser = _Parser(text)
    try:
        return parser.run()
    except (Problem, ValueError) as problem:
        raise InputError(f"{name}:{parser.lines.number}: {problem}") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.symbols: dict[str, Symbol] = {}
        self.module = Module(self.lines.source, (0, 0), (), {}, {})

    def run(self) -> tuple[Module, list[Body]]:
        self.declare_functions()
        self.header()
        bodies = [FunctionReader(self.lines, function, self.symbols, self.module.dialect).run() for function in self.functions()]
        return self.module, [body for body in bodies if body is not None]

    def declare_functions(self) -> None:
        for line in self.lines:
            if (match := FUNCTION.match(line.text)) is not None:
                self.lines.number = line.number
                cursor = Cursor(line.text[match.end() :])
                body: list[Item] | None = None if match["declare"] else []
                name = cursor.name()
                function = Function(name, match["kind"], match["linkage"] or "", [], [], body, [], {}, line.pos)
                function.noreturn = cursor.keyword("noreturn")
                cursor.finish()
                self.symbols[name] = self.module.functions[name] = function

    def functions(self) -> Iterator[Function]:
        """The function that each line begins, the first of which the header has read."""
        while (line := self.lines.read()) is not None:
            match = FUNCTION.match(line.text)
            if match is None:
                raise Problem(f"a function expected, not '{line.text[:20]}'")
            yield self.module.functions[Cursor(line.text[match.end() :]).name()]

    # -- the head

    def header(self) -> None:
        """The lines before the first function."""
        variables: list[Line] = []
        while (line := self.lines.inside()) is not None:
            cursor = Cursor(line.text)
            word = cursor.word()
            if word == "module":
                self.title(cursor)
            elif word == "dialect":
                self.module.dialect = cursor.word()
            elif word in SPACES:
                variables.append(line)
                variable = declared(cursor, word, line.pos)
                self.symbols[variable.name] = self.module.variables[variable.name] = variable
            elif word != "files":
                raise Problem(f"unknown word '{word}'")
        for line in variables:
            self.lines.number = line.number
            self.initialise(line)

    def title(self, cursor: Cursor) -> None:
        major, _, minor = cursor.name().partition(".")
        self.module.version = int(major), int(minor)
        cursor.expect(",")
        self.module.target = tuple(cursor.names())

    def initialise(self, line: Line) -> None:
        """The rest of a variable of the module: linkage, owner and initial values."""
        cursor = Cursor(line.text)
        variable = self.symbols[declared(cursor, cursor.word(), 0).name]
        assert isinstance(variable, Variable)
        while not cursor.done:
            word = cursor.word()
            if word == "owner":
                variable.owner = cursor.name()
            elif word == "bytes":
                variable.init.append((cursor.integer(), bytes.fromhex(cursor.word())))
            elif word in ("generic", "address"):
                variable.relocs.append(self.reloc(cursor, word == "generic"))
            elif word == "fields":
                variable.fields.append(dict(_fields(cursor)))
            else:
                variable.linkage = word

    def reloc(self, cursor: Cursor, generic: bool) -> Reloc:
        offset = cursor.integer()
        cursor.expect("size")
        size, target, addend = cursor.integer(), find(self.symbols, cursor), cursor.integer()
        return Reloc(offset, size, target, addend, generic, cursor.integer() if cursor.keyword("shift") else 0)


def _fields(cursor: Cursor) -> Iterator[tuple[str, int]]:
    while not cursor.accept(";"):
        name = cursor.word()
        cursor.expect("=")
        yield name, cursor.integer()
