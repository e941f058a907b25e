"""CTM text to typed IR: directives and instructions of a file in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ptxemu.dialects.build import Builder, module_of, surface
from ptxemu.dialects.ctm.ast import Directive, Instruction, Line, Name, Number
from ptxemu.dialects.ctm.body import Input, Kernel
from ptxemu.dialects.ctm.grammar import float_bits, parser
from ptxemu.dialects.ctm.lower import LOAD, STORE, TEST, UMRT
from ptxemu.dialects.ctm.memory import CONSTANT_KINDS, TILINGS
from ptxemu.dialects.ctm.operands import CHANNELS, INPUTS, PRED, constant, temporary
from ptxemu.dialects.ctm.output import ALWAYS, KINDS, TARGETS, Output
from ptxemu.dialects.ctm.registers import WORD_BYTES
from ptxemu.dialects.program import Outside, ProgramFront, first_value
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Module, Variable
from ptxemu.syntax.ast import Int
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile

COORDINATES = 1 << 12  # of a domain
UNCACHED = "RNDR_TGT_UMRT"  # how the names of targets of uncached output begin
Argument = Name | Int | Number
ROWS = (LOAD, STORE, UMRT, TEST)


def front(source: SourceFile, diagnostics: Diagnostics, strict: bool, options: Mapping[str, str]) -> Module:
    """Parse and check a file; what is wrong goes to ``diagnostics``."""
    return _Front(source, diagnostics, strict, options).run(parser().parse(source, diagnostics))


WORDS: Mapping[Any, str] = {Name: "a name", Int: "a whole number", (Int, Number): "a number"}


class _Front(ProgramFront):
    def __init__(self, source: SourceFile, diagnostics: Diagnostics, strict: bool, options: Mapping[str, str]) -> None:
        super().__init__(module_of(source, "R5xx"), diagnostics, WORDS)
        self.strict = strict
        self.options = dict(options)
        self.surfaces: dict[str, Variable] = {}
        self._kernel: Kernel | None = None
        self.directives = {
            "kernel": self._start, "domain": self._domain, "point": self._point, "in": self._in, "out": self._out,
            "const": self._const, "constants": self._constants, "input": self._input, "output": self._output,
            "set_out_mask": self._out_mask, "set_cond_test": self._test, "set_cond_loc": self._location,
            "set_cond_out_mask": self._test_mask, "conditional": self._buffer, "engine_value": self._engine_value,
        }  # fmt: skip

    def line(self, line: Line) -> None:
        if isinstance(line, Instruction):
            self._current(line).instruction(line)
        else:
            self.directive(line)

    def _current(self, place: Instruction | Name) -> Kernel:
        if self._kernel is None:
            raise Outside(place)
        return self._kernel

    def _kernel_of(self, item: Directive) -> Kernel:
        kernel = self._current(item.name)
        kernel.body.at(item.name.pos, item.name.end)
        return kernel

    def last_errors(self) -> Iterable[TextError]:
        return self._kernel.finish(self.strict) if self._kernel is not None else ()

    # ------------------------------------------------------------ the program

    def _start(self, item: Directive) -> None:
        """``.kernel NAME cached|umrt``"""
        name, kind = self._names(item, 2)
        if name.text in self.module.functions:
            raise TextError(f"kernel '{name.text}' is defined twice", name.pos, name.end)
        if kind.text not in KINDS:
            raise TextError(f"the kind of a program is {' or '.join(KINDS)}", kind.pos, kind.end)
        self.finish_kernel()
        self._begin(name.text, name.pos, kind.text)

    def _begin(self, name: str, pos: int, kind: str) -> None:
        body = Builder(self.module, name, pos)
        body.limit("domain")
        self._kernel = Kernel(body, kind, self.options, self.diagnostics.warning)

    def nameless_kernel(self, pos: int) -> None:
        """The kind is that of the targets that the file names."""
        kind = KINDS[UNCACHED in self.module.source.text]
        self._begin(f".kernel {pos}", pos, kind)

    def _domain(self, item: Directive) -> None:
        """``.domain X0 Y0 X1 Y1``: the first and the last point of the rectangle of points."""
        kernel = self._kernel_of(item)
        values = [self._integer(argument, COORDINATES) for argument in self._arguments(item, Int, Int, Int, Int)]
        if kernel.last or kernel.registers.started or kernel.registers.domain:
            raise TextError("the domain comes first in a kernel, once", item.name.pos, item.name.end)
        if values[0] > values[2] or values[1] > values[3]:
            raise TextError("the last point lies before the first", item.name.pos, item.arguments[-1].end)
        kernel.registers.set_domain(*values)

    def _point(self, item: Directive) -> None:
        """``.point REGISTER``: its red and green start as the point's coordinates."""
        kernel = self._kernel_of(item)
        register = self._names(item, 1)[0]
        first_value(kernel.given, register.text, register, kernel.last is not None)
        kernel.registers.set_point(register)

    def _in(self, item: Directive) -> None:
        """``.in REGISTER NAME``: the register, or ``pred``, starts with the point's element of an array parameter."""
        kernel, (register, name) = self._kernel_of(item), self._names(item, 2)
        self._check_file(register)
        first_value(kernel.given, register.text, register, kernel.last is not None)
        kernel.registers.load_file(register, self._array(kernel, name, _row(register)))

    def _out(self, item: Directive) -> None:
        """``.out REGISTER NAME``: the point's element of an array parameter gets the register at the end."""
        kernel, (register, name) = self._kernel_of(item), self._names(item, 2)
        self._check_file(register)
        kernel.files.append((register, self._array(kernel, name, _row(register))))

    def _check_file(self, register: Name) -> None:
        if register.text != PRED:
            temporary(register)

    def _array(self, kernel: Kernel, name: Name, row: tuple[int, int] | None = None) -> Variable:
        if name.text in kernel.params:
            raise TextError(f"'{name.text}' is declared twice", name.pos, name.end)
        kernel.params.add(name.text)
        return kernel.body.param(name.text, "u64", name.pos, row=row)

    def _const(self, item: Directive) -> None:
        """``.const REGISTER = RED GREEN BLUE ALPHA``, or one number for all"""
        kernel = self._kernel_of(item)
        register, *values = self._arguments(item, Name, *[(Int, Number)] * 4, least=2)
        assert isinstance(register, Name)
        if len(values) not in (1, 4):
            raise TextError("a constant has four numbers, or one for all", item.name.pos, item.arguments[-1].end)
        number = constant(register)
        if number in kernel.registers.literals:
            raise TextError(f"{register.text} is given twice", register.pos, register.end)
        bits = tuple(self._bits(value) for value in values)
        kernel.registers.literals[number] = bits * (4 // len(bits))

    def _constants(self, item: Directive) -> None:
        """``.constants [float] NAME``: an array parameter of four floats for each constant register that has no number"""
        kernel, names = self._kernel_of(item), self._arguments(item, Name, Name, least=1)
        kind, name = names[0] if len(names) > 1 else None, names[-1]
        assert isinstance(name, Name)
        if isinstance(kind, Name) and kind.text != CONSTANT_KINDS[0]:
            reason = "control flow, which CTM programs here do not support" if kind.text in CONSTANT_KINDS[1:] else "do not exist"
            raise TextError(f"constants of kind '{kind.text}' {reason}", kind.pos, kind.end)
        if kernel.registers.array is not None:
            raise TextError("there is one array of constants", name.pos, name.end)
        kernel.registers.array = self._array(kernel, name)

    # ------------------------------------------------------------ memory

    def _input(self, item: Directive) -> None:
        """``.input INDEX NAME [TILING]``: a surface that the host binds"""
        kernel = self._kernel_of(item)
        index, name, *rest = self._arguments(item, Int, Name, Name, least=2)
        number = self._integer(index, INPUTS)
        if number in kernel.inputs:
            raise TextError(f"input {number} is declared twice", index.pos, index.end)
        kernel.inputs[number] = Input(self._surface(name), self._tiling(rest).endswith("_INP_2X2"))

    def _output(self, item: Directive) -> None:
        """``.output A|B|C|D NAME [TILING]``"""
        kernel = self._kernel_of(item)
        letter, name, *rest = self._arguments(item, Name, Name, Name, least=2)
        assert isinstance(letter, Name)
        if letter.text not in tuple(TARGETS):
            raise TextError(f"the outputs are {', '.join(TARGETS)}", letter.pos, letter.end)
        if letter.text in kernel.output.surfaces:
            raise TextError(f"output {letter.text} is declared twice", letter.pos, letter.end)
        self._tiling(rest)
        kernel.output.surfaces[letter.text] = self._surface(name)

    def _surface(self, name: Argument) -> Variable:
        """The surface of a name; all that name it share it."""
        assert isinstance(name, Name)
        if name.text not in self.surfaces:
            self.surfaces[name.text] = surface(self.module, name.text, name.pos)
        return self.surfaces[name.text]

    def _tiling(self, rest: list[Argument]) -> str:
        if not rest:
            return TILINGS[0]
        name = rest[0]
        assert isinstance(name, Name)
        if name.text not in TILINGS:
            raise TextError(f"unknown tiling '{name.text}'; there are {', '.join(TILINGS)}", name.pos, name.end)
        if name.text.startswith("TILED") and self.options["tiling"] == "reject":
            message = "UNSUPPORTED_TILING: the layout of tiles is not known; option tiling=ignore takes it as linear"
            raise TextError(message, name.pos, name.end)
        return name.text

    # ------------------------------------------------------------ output state

    def _output_state(self, item: Directive) -> Output:
        kernel = self._kernel_of(item)
        kernel.warn_uncached(item.name.text, item.name)
        return kernel.output

    def _out_mask(self, item: Directive) -> None:
        """``.set_out_mask MASK``"""
        self._output_state(item).out_mask = self._one(item, 16)

    def _test(self, item: Directive) -> None:
        """``.set_cond_test CONDITION``"""
        conditional = self._output_state(item).conditional
        conditional.test, conditional.place = self._one(item, ALWAYS + 1), item.name

    def _location(self, item: Directive) -> None:
        """``.set_cond_loc 0|1``: the value comes from the processors, or from the processing engine."""
        self._output_state(item).conditional.location = self._one(item, 2)

    def _test_mask(self, item: Directive) -> None:
        """``.set_cond_out_mask MASK``"""
        self._output_state(item).conditional.mask = self._one(item, 2)

    def _buffer(self, item: Directive) -> None:
        """``.conditional NAME``: the conditional output buffer"""
        name, conditional = self._names(item, 1)[0], self._output_state(item).conditional
        if conditional.buffer is not None:
            raise TextError("there is one conditional output buffer", name.pos, name.end)
        conditional.buffer = self._surface(name)

    def _engine_value(self, item: Directive) -> None:
        """``.engine_value NUMBER``: what the processing engine compares"""
        value = self._arguments(item, (Int, Number))[0]
        self._output_state(item).conditional.engine_value = self._bits(value)

    # ------------------------------------------------------------ arguments

    def _one(self, item: Directive, limit: int) -> int:
        return self._integer(self._arguments(item, Int)[0], limit)

    def _integer(self, argument: Argument, limit: int) -> int:
        assert isinstance(argument, Int)
        if not 0 <= argument.value < limit:
            raise TextError(f"expected a number from 0 to {limit - 1}", argument.pos, argument.end)
        return argument.value

    def _bits(self, argument: Argument) -> int:
        if isinstance(argument, Int):
            return float_bits(str(argument.value))
        assert isinstance(argument, Number)
        return argument.bits

    def _names(self, item: Directive, count: int) -> list[Name]:
        return [name for name in self._arguments(item, *[Name] * count) if isinstance(name, Name)]

    def _arguments(self, item: Directive, *kinds: type | tuple[type, ...], least: int | None = None) -> list[Argument]:
        return self.arguments(item, kinds, least)


def _row(register: Name) -> tuple[int, int]:
    """What each point has in the file of a register: words, and how many of them."""
    return WORD_BYTES, 1 if register.text == PRED else len(CHANNELS)
