"""vISA text to typed IR: directives, labels and instructions of a file in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from ptxemu.dialects.build import HANDLE, Builder, module_of, surface
from ptxemu.dialects.program import Outside, ProgramFront, first_value
from ptxemu.dialects.slots import LOOKUP, Slots
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa import lower  # noqa: F401  (registers the lowerings)
from ptxemu.dialects.visa.ast import Alias, Directive, Instruction, Label, Line, Number, Text, Value, Word
from ptxemu.dialects.visa.atomic import surface_variable
from ptxemu.dialects.visa.declarations import SURFACE, declare, special
from ptxemu.dialects.visa.grammar import parser, whole
from ptxemu.dialects.visa.kernel import BINDLESS, TABLE_SLOTS, Kernel
from ptxemu.dialects.visa.table import TABLE
from ptxemu.dialects.visa.variables import CHANNELS, ELEMENT_TYPES, General, Predicate, SurfaceVariable, write
from ptxemu.ir.ops import Addr, Module, SymRef, Variable
from ptxemu.syntax.ast import Name
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import SourceFile
from ptxemu.text.suggestions import closest

ARGUMENT_BYTES = 8
WIDTHS = (8, 16, 32)
PREDICATE_BYTES = 4  # in a register file

ROWS = (*chain(*TABLE.values()), SURFACE, LOOKUP)


def front(source: SourceFile, diagnostics: Diagnostics, strict: bool, options: Mapping[str, str]) -> Module:
    """Parse and check a file; what is wrong goes to ``diagnostics``."""
    return _Front(source, diagnostics, strict, options).run(parser().parse(source, diagnostics))


def divergent_kernels(lines: Sequence[Line]) -> set[int]:
    """Where the kernels begin whose channels may go different ways: by ``goto``, or by ``ret`` of several channels."""
    found: set[int] = set()
    start = -1
    for line in lines:
        if isinstance(line, Directive) and line.name.text == ".kernel":
            start = line.name.pos
        elif isinstance(line, Instruction):
            wide = line.execution is not None and line.execution.size.text != "1"
            if line.opcode == "goto" or (line.opcode == "ret" and wide):
                found.add(start)
    return found


class _Front(ProgramFront):
    def __init__(self, source: SourceFile, diagnostics: Diagnostics, strict: bool, options: Mapping[str, str]) -> None:
        super().__init__(module_of(source, "TGLLP"), diagnostics)
        self.strict = strict
        self.options = dict(options)
        self.kernel: Kernel | None = None
        self.slots = Slots(self.module)
        self.divergent: set[int] = set()
        self.directives: dict[str, Callable[[Directive], None]] = {
            "kernel": self._kernel, "decl": self._declare, "input": self._argument, "in": self._input, "out": self._output,
            "kernel_attr": self._attribute, "version": self._version, "em": self._mask,
            "slot": self._slot,
        }  # fmt: skip

    def run(self, lines: Sequence[Line]) -> Module:
        self.divergent = divergent_kernels(lines)
        module = super().run(lines)
        self.slots.finish()
        return module

    def line(self, line: Line) -> None:
        if isinstance(line, Directive):
            self.directive(line)
        elif isinstance(line, Label):
            self._current(line.name).label(line)
        else:
            kernel = self._current(line.name)
            self._specials(kernel, line)
            kernel.instruction(line)

    def _current(self, name: Name) -> Kernel:
        if self.kernel is None:
            raise Outside(name)
        return self.kernel

    def last_errors(self) -> Iterable[TextError]:
        return self.kernel.finish() if self.kernel is not None else ()

    def _specials(self, kernel: Kernel, line: Instruction) -> None:
        """Declare the predefined variables that an instruction names."""
        for operand in line.operands:
            name = operand if isinstance(operand, Name) else getattr(operand, "name", None)
            if isinstance(name, Name) and name.text.startswith("%"):
                special(kernel.body, kernel.scope, name)

    # ------------------------------------------------------------ directives

    def _version(self, item: Directive) -> None:
        """``.version 3.6``"""
        self._words(item, Number)

    def _kernel(self, item: Directive) -> None:
        """``.kernel "name"``"""
        (name,) = self._words(item, (Name, Text))
        if name.text in self.module.functions:
            raise TextError(f"kernel '{name.text}' is defined twice", name.pos, name.end)
        self.finish_kernel()
        self._start(name.text, name.pos, item.name.pos in self.divergent)

    def _start(self, name: str, pos: int, divergent: bool) -> None:
        self.kernel = Kernel(Builder(self.module, name, pos), self.slots, divergent, self.strict, self.options)

    def nameless_kernel(self, pos: int) -> None:
        self._start(f".kernel {pos}", pos, True)

    def _attribute(self, item: Directive) -> None:
        """``.kernel_attr SimdSize=8``: the SIMD width; other attributes do not matter here."""
        kernel = self._current(item.name)
        for name, value in item.attributes:
            if name.text != "SimdSize":
                continue
            self._before_start(kernel, item)
            width = whole(value) if isinstance(value, Number) else 0
            if width not in WIDTHS:
                raise TextError(f"the SIMD width is one of {', '.join(map(str, WIDTHS))}", name.pos, _end(value))
            kernel.width = width
            kernel.mask &= (1 << width) - 1

    def _mask(self, item: Directive) -> None:
        """``.em MASK``: the execution mask with which threads start."""
        (number,) = self._words(item, Number)
        assert isinstance(number, Number)
        kernel, bits = self._current(item.name), whole(number)
        self._before_start(kernel, item)
        if not 0 <= bits < 1 << CHANNELS:
            raise TextError(f"an execution mask has {CHANNELS} bits", number.pos, number.end)
        kernel.mask &= bits

    def _before_start(self, kernel: Kernel, item: Directive) -> None:
        if kernel.started:
            raise TextError(f"'{item.name.text}' must precede the instructions of its kernel", item.name.pos, item.name.end)

    def _slot(self, item: Directive) -> None:
        """``.slot INDEX NAME``: a slot of the binding table holds a surface that the host binds."""
        index, name = self._words(item, Number, Name)
        assert isinstance(index, Number) and isinstance(name, Name)
        number = whole(index)
        if not 0 <= number < TABLE_SLOTS:
            raise TextError(f"the binding table has {TABLE_SLOTS} slots", index.pos, index.end)
        if number in self.slots.variables:
            raise TextError(f"slot {number} is declared twice", index.pos, index.end)
        self.slots.variables[number] = self._surface(name)

    def _declare(self, item: Directive) -> None:
        """``.decl V40 v_type=G type=ud num_elts=8``"""
        kernel = self._current(item.name)
        (name,) = self._words(item, Name, attributes=True)
        assert isinstance(name, Name)
        kernel.body.at(item.name.pos, _end(item.attributes[-1][1]) if item.attributes else name.end)
        declare(kernel.body, kernel.scope, name, item.attributes, self._surface)

    def _surface(self, name: Name) -> Variable:
        """The surface of a name, which kernels of one file share."""
        known = self.module.variables.get(name.text)
        if known is not None and known.type is HANDLE:
            return known
        return surface(self.module, name.text, name.pos)

    def _argument(self, item: Directive) -> None:
        """``.input V34 offset=64 size=4``: an argument of the kernel, the same for all threads.

        That of a surface variable is its slot of the binding table, that of T252 a handle.
        """
        (name,) = self._words(item, Name, attributes=True)
        assert isinstance(name, Name)
        kernel = self._current(item.name)
        found = kernel.scope.names.get(name.text)
        if isinstance(found, SurfaceVariable):
            self._surface_argument(kernel, item, name)
            return
        variable = kernel.scope.general(name)
        first_value(kernel.given, variable.name, name, kernel.started)
        self._unused(item, ("offset", "size"))
        size = next((whole(value) for key, value in item.attributes if key.text == "size" and isinstance(value, Number)), None)
        if variable.count != 1 or variable.offset % 4 or size not in (None, variable.size):
            text = f"an argument is a scalar of up to {ARGUMENT_BYTES} bytes; a thread's values come by .in"
            raise TextError(text, name.pos, name.end)
        body = kernel.body
        body.at(item.name.pos, name.end)
        parameter = self._parameter(body, variable.name, ELEMENT_TYPES[variable.type], name)
        value = body.temp("b64" if variable.size == 8 else "b32")
        body.emit(f"ld.param.u{8 * variable.size}", value, Addr(SymRef(parameter, 0), 0))
        write(body, variable, 0, variable.size, value, None)

    def _surface_argument(self, kernel: Kernel, item: Directive, name: Name) -> None:
        self._unused(item, ("offset", "size"))
        kernel.body.at(item.name.pos, name.end)
        variable = surface_variable(kernel.scope, name)
        first_value(kernel.given, variable.name, name, kernel.started)
        bindless = variable.name == BINDLESS
        parameter = self._parameter(kernel.body, variable.name, "u64" if bindless else "u32", name)
        value = kernel.body.load_param(parameter, "b64" if bindless else "b32")
        kernel.body.emit("mov.b64", variable.handle, value if bindless else kernel.slot(value))

    def _parameter(self, body: Builder, text: str, kind: str, name: Name, row: tuple[int, int] | None = None) -> Variable:
        if any(param.variable.name == text for param in body.function.params):
            raise TextError(f"'{text}' is a parameter already", name.pos, name.end)
        return body.param(text, kind, name.pos, row=row)

    def _input(self, item: Directive) -> None:
        """``.in V40 name``: each thread's first value of a variable is a row of an array parameter."""
        variable, array = self._register_file(item)
        kernel = self._current(item.name)
        first_value(kernel.given, variable.name, item.name, kernel.started)
        kernel.add_input(variable, array)

    def _output(self, item: Directive) -> None:
        """``.out V40 name``: the last value of a variable goes to the thread's row of an array parameter."""
        variable, array = self._register_file(item)
        self._current(item.name).outputs.append((variable, array))

    def _register_file(self, item: Directive) -> tuple[General | Predicate, Variable]:
        first, second = self._words(item, Name, Name)
        assert isinstance(first, Name) and isinstance(second, Name)
        kernel = self._current(item.name)
        found = kernel.scope.names.get(first.text)
        variable = found if isinstance(found, Predicate) else kernel.scope.general(first)
        if isinstance(variable, General) and (variable.bytes % 4 or variable.offset % 4):
            raise TextError("a register file has whole dwords", first.pos, first.end)
        kernel.body.at(item.name.pos, second.end)
        row = (variable.size, variable.count) if isinstance(variable, General) else (PREDICATE_BYTES, 1)
        return variable, self._parameter(kernel.body, second.text, "u64", second, row)

    def _unused(self, item: Directive, known: tuple[str, ...]) -> None:
        for key, _ in item.attributes:
            if key.text not in known:
                raise TextError(f"unknown attribute '{key.text}'{closest(key.text, known)}", key.pos, key.end)

    def _words(self, item: Directive, *kinds: type | tuple[type, ...], attributes: bool = False) -> tuple[Word, ...]:
        """The plain words of a directive, which must be of these kinds."""
        right = len(item.words) == len(kinds) and all(map(isinstance, item.words, kinds))
        if not right or (item.attributes and not attributes):
            raise TextError(self.usage(item), item.name.pos, item.name.end)
        return item.words


def _end(value: Value) -> int:
    return value.offset.end if isinstance(value, Alias) else value.end
