"""SASS text to typed IR: directives, labels and instructions of a file in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ptxemu.dialects.build import Builder, module_of
from ptxemu.dialects.program import Outside, ProgramFront
from ptxemu.dialects.sass import lower  # noqa: F401  (registers the lowerings)
from ptxemu.dialects.sass.ast import Constant, Directive, Instruction, Line
from ptxemu.dialects.sass.body import Kernel
from ptxemu.dialects.sass.grammar import parser
from ptxemu.dialects.sass.memory import BANKS, POINTER, Banks, Pool, bias_of
from ptxemu.dialects.sass.table import TABLE
from ptxemu.dialects.slots import LOOKUP
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Module, Variable
from ptxemu.syntax.ast import Int, Name
from ptxemu.text.errors import Diagnostics, InputError
from ptxemu.text.source import SourceFile

TYPES = {"u32": "u32", "s32": "s32", "b32": "b32", "f32": "f32", "u64": "u64", "s64": "s64", "f64": "f64", "ptr": "u64"}
ADDRESSES = 1 << 40
ROWS = (*chain(*TABLE.values()), POINTER, LOOKUP)


def front(source: SourceFile, diagnostics: Diagnostics, strict: bool, options: Mapping[str, str]) -> Module:
    """Parse and check a file; what is wrong goes to ``diagnostics``."""
    return _Front(source, diagnostics, options).run(parser().parse(source, diagnostics))


def window(name: str, text: str) -> tuple[int, int]:
    """``first:last``, the addresses of a window without the last, or ``none``. Addresses have 40 bits."""
    if text == "none":
        return 0, 0
    first, colon, last = text.partition(":")
    try:
        bounds = int(first, 0), int(last, 0)
    except ValueError:
        bounds = 0, -1
    if not colon or not 0 <= bounds[0] <= bounds[1] <= ADDRESSES:
        raise InputError(f"option {name} is {text!r}, not 'first:last' or 'none'")
    return bounds


WORDS: Mapping[Any, str] = {Name: "a name", Int: "a number", Constant: "c[bank][offset]"}


class _Front(ProgramFront):
    def __init__(self, source: SourceFile, diagnostics: Diagnostics, options: Mapping[str, str]) -> None:
        super().__init__(module_of(source, "sm_50"), diagnostics, WORDS)
        self.windows = tuple(bound for name in ("shared_window", "local_window") for bound in window(name, options[name]))
        self.pool = Pool(self.module)
        self.banks = Banks(self.pool, bias_of(self.windows))
        self.kernel: Kernel | None = None
        self.directives = {
            "kernel": self._kernel, "param": self._param, "const": self._const, "bank": self._bank,
            "header": self._header, "maxheader": self._maximum, "helper": self._helper,
            "in": self._input, "out": self._output,
        }  # fmt: skip

    def run(self, lines: Sequence[Line]) -> Module:
        module = super().run(lines)
        self.pool.finish(self.pool.maximum)
        return module

    def line(self, line: Line) -> None:
        if isinstance(line.statement, Directive):
            self.directive(line.statement)
            return
        place = line.label or line.statement
        if place is None:
            return
        if self.kernel is None:
            raise Outside(place)
        if line.label is not None:
            self.kernel.label(line.label)
        if isinstance(line.statement, Instruction):
            self.kernel.instruction(line.statement)

    def last_errors(self) -> Iterable[TextError]:
        return self.kernel.finish() if self.kernel is not None else ()

    # ------------------------------------------------------------ directives

    def _kernel(self, item: Directive) -> None:
        """``.kernel NAME``"""
        name = self._arguments(item, Name)[0]
        assert isinstance(name, Name)
        if name.text in self.module.functions:
            raise TextError(f"kernel '{name.text}' is defined twice", name.pos, name.end)
        self.finish_kernel()
        self._start(name.text, name.pos)

    def _start(self, name: str, pos: int) -> None:
        self.banks = self.banks.fresh()
        self.kernel = Kernel(Builder(self.module, name, pos), self.banks, self.pool, self.windows)

    def nameless_kernel(self, pos: int) -> None:
        self._start(f".kernel {pos}", pos)

    def _param(self, item: Directive) -> None:
        """``.param TYPE NAME [OFFSET]``: the offset is that in constant bank 0."""
        kind, name, *rest = self._arguments(item, Name, Name, Int, least=2)
        assert isinstance(kind, Name) and isinstance(name, Name)
        if self.kernel is None:
            raise Outside(item.name, "parameters belong to a kernel")
        if kind.text not in TYPES:
            raise TextError(f"unknown type '{kind.text}'; there are {', '.join(TYPES)}", kind.pos, kind.end)
        offset = rest[0].value if rest and isinstance(rest[0], Int) else None
        self.banks.add_param(self.kernel.body, name, TYPES[kind.text], offset, pointer=kind.text == "ptr")

    def _const(self, item: Directive) -> None:
        """``.const c[BANK][OFFSET] = WORD``"""
        place, value = self._arguments(item, Constant, Int)
        assert isinstance(place, Constant) and isinstance(value, Int)
        if not -(1 << 31) <= value.value < 1 << 32:
            raise TextError("a constant is a word of 32 bits", value.pos, value.end)
        self.banks.set_word(place, value.value & 0xFFFFFFFF)

    def _bank(self, item: Directive) -> None:
        """``.bank NUMBER``: where the index of a SURED is looked up (bundle state)."""
        number = self._arguments(item, Int)[0]
        assert isinstance(number, Int)
        if not 0 <= number.value < BANKS:
            raise TextError(f"there are banks 0 to {BANKS - 1}", number.pos, number.end)
        self.banks.header_bank = number.value

    def _header(self, item: Directive) -> None:
        """``.header INDEX NAME``: a texture header of the pool is a surface that the host binds."""
        index, name = self._arguments(item, Int, Name)
        assert isinstance(index, Int) and isinstance(name, Name)
        self.pool.add(index, name)

    def _maximum(self, item: Directive) -> None:
        """``.maxheader INDEX``: SetTexHeaderPoolC.MaximumIndex."""
        index = self._arguments(item, Int)[0]
        assert isinstance(index, Int)
        self.pool.set_maximum(index)

    def _helper(self, item: Directive) -> None:
        """``.helper MASK``: the lanes of each warp that are helper or killed pixels, in the kernel that follows."""
        mask = self._arguments(item, Int)[0]
        assert isinstance(mask, Int)
        if self.kernel is None:
            raise Outside(item.name, "helper lanes belong to a kernel")
        if not 0 <= mask.value < 1 << 32:
            raise TextError("helper lanes are a mask of 32 bits", mask.pos, mask.end)
        self.kernel.helper = mask.value

    def _input(self, item: Directive) -> None:
        """``.in REGISTER NAME``: the register starts with the thread's element of an array parameter."""
        self._register_file(item, Kernel.add_input)

    def _output(self, item: Directive) -> None:
        """``.out REGISTER NAME``: the thread's element of an array parameter gets the register when the thread exits."""
        self._register_file(item, Kernel.add_output)

    def _register_file(self, item: Directive, add: Callable[[Kernel, Name, Variable], None]) -> None:
        register, name = self._arguments(item, Name, Name)
        assert isinstance(register, Name) and isinstance(name, Name)
        if self.kernel is None:
            raise Outside(item.name, "register files belong to a kernel")
        self.kernel.body.at(item.name.pos, name.end)
        add(self.kernel, register, self.banks.add_register_file(self.kernel.body, name))

    def _arguments(self, item: Directive, *kinds: type, least: int | None = None) -> tuple[Name | Int | Constant, ...]:
        return tuple(self.arguments(item, kinds, least))
