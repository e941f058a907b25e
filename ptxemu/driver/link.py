"""Several checked modules as one, linked as nvlink links what ptxas compiles with ``-c`` (relocatable device code).

A name without linkage belongs to its file. ``.visible`` names may be defined once; a ``.weak`` definition gives way to
one that is not, of ``.common`` ones the largest counts; ``.extern`` ones must be defined in some file if they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ptxemu.check.declarations import same_signature
from ptxemu.ir.ops import Addr, Call, Function, LabelMark, Module, Op, Operand, Symbol, SymRef, Variable, Vec, names_of
from ptxemu.ir.runtime_calls import SIGNATURES
from ptxemu.text.errors import Diagnostic, Diagnostics, InputError, PtxError
from ptxemu.text.source import JoinedSource, Loc

STRENGTH = {"visible": 2, "common": 1, "weak": 0}  # of a definition that other files can see


def link(modules: Sequence[Module]) -> Module:
    """One module with all that the others hold, which are of no use afterwards. Raises PtxError, InputError."""
    modes = {"texmode_independent" in module.target for module in modules}
    if len(modes) > 1:
        raise InputError("files with '.target texmode_independent' and files without it cannot be linked")
    return _Linker(modules).run()


class _Linker:
    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = modules
        self.diagnostics = [Diagnostics(module.source) for module in modules]
        self.chosen: dict[str, tuple[int, Symbol]] = {}  # the file and definition of every name that others can see
        self.meaning: dict[Symbol, Symbol] = {}  # of a symbol that has been given up for another one
        self.missing: set[Symbol] = set()

    def run(self) -> Module:
        for index, module in enumerate(self.modules):
            for name, symbol in _symbols(module):
                if _shared_by_name(symbol) and _is_defined(symbol):
                    self._define(name, index, symbol)
        for index, module in enumerate(self.modules):
            for name, symbol in _symbols(module):
                if _shared_by_name(symbol):
                    self._refer(name, index, symbol)
        for index, module in enumerate(self.modules):
            self._resolve(index, module)
        records: list[Diagnostic] = [record for found in self.diagnostics for record in found.records]
        if records:
            raise PtxError(records)
        return self._joined()

    # ------------------------------------------------------------ names

    def _define(self, name: str, index: int, symbol: Symbol) -> None:
        if name not in self.chosen:
            self.chosen[name] = index, symbol
            return
        other, known = self.chosen[name]
        strengths = STRENGTH[known.linkage], STRENGTH[symbol.linkage]
        if strengths == (2, 2):
            notes = (f"it is defined in {self.modules[other].source.where(known.pos)} too",)
            self._error(index, f"'{name}' is defined twice", symbol, notes)
        elif strengths[1] > strengths[0] or (strengths == (1, 1) and _size(symbol) > _size(known)):
            self.chosen[name] = index, symbol

    def _refer(self, name: str, index: int, symbol: Symbol) -> None:
        """What a name means that other files see too."""
        found = self.chosen.get(name)
        if found is None and _is_dynamic(symbol):
            self.chosen[name] = found = index, symbol
        if found is None:
            self.missing.add(symbol)
        elif found[1] is not symbol:
            self.meaning[symbol] = found[1]
            if not _alike(symbol, found[1]):
                notes = (f"its definition is in {self.modules[found[0]].source.where(found[1].pos)}",)
                self._error(index, f"'{name}' is declared differently in another file", symbol, notes)

    def _error(self, index: int, message: str, symbol: Symbol, notes: tuple[str, ...]) -> None:
        self.diagnostics[index].error(message, symbol.pos, symbol.pos + len(symbol.name), notes)

    # ------------------------------------------------------------ references

    def _resolve(self, index: int, module: Module) -> None:
        """Make the initial values and bodies of a file refer to the definitions."""
        for variable in (*module.variables.values(), *(v for f in _functions(module) for v in f.variables)):
            for reloc in variable.relocs:
                self._use(index, reloc.target, variable.pos, variable.pos + len(variable.name))
            variable.relocs = [replace(reloc, target=self.meaning.get(reloc.target, reloc.target)) for reloc in variable.relocs]
        for op in (item for function in _functions(module) for item in function.body or () if isinstance(item, Op)):
            for symbol in names_of(op):
                self._use(index, symbol, op.pos, op.end)
            if any(symbol in self.meaning for symbol in names_of(op)):
                op.srcs = tuple(map(self._operand, op.srcs))
                op.call = None if op.call is None else self._call(op.call)

    def _use(self, index: int, symbol: Symbol, pos: int, end: int) -> None:
        if symbol in self.missing and symbol.name not in SIGNATURES:
            self.diagnostics[index].error(f"'{symbol.name}' is not defined in any of the files", pos, end)

    def _operand(self, operand: Operand) -> Operand:
        if isinstance(operand, SymRef):
            return SymRef(self.meaning.get(operand.symbol, operand.symbol), operand.offset)
        if isinstance(operand, Addr) and isinstance(operand.base, SymRef):
            return Addr(SymRef(self.meaning.get(operand.base.symbol, operand.base.symbol), operand.base.offset), operand.offset)
        if isinstance(operand, Vec):
            return Vec(tuple(map(self._operand, operand.items)))
        return operand

    def _call(self, call: Call) -> Call:
        def known(function: Function) -> Function:
            found = self.meaning.get(function, function)
            assert isinstance(found, Function)
            return found

        callee = known(call.callee) if isinstance(call.callee, Function) else call.callee
        targets = None if call.targets is None else tuple(map(known, call.targets))
        return replace(call, callee=callee, targets=targets)

    # ------------------------------------------------------------ the result

    def _joined(self) -> Module:
        source = JoinedSource([module.source for module in self.modules])
        newest = max(self.modules, key=lambda module: module.version)
        made = Module(source, newest.version, newest.target, {}, {})
        taken = set(self.chosen)
        for index, module in enumerate(self.modules):
            _shift(module, source.offsets[index])
            _add_locs(made, module)
            renamed: dict[Symbol, str] = {}
            for name, symbol in _symbols(module):
                if symbol in self.meaning:
                    continue
                key = name
                if not _shared_by_name(symbol) and name in taken:
                    key = f"{name}.{index}"
                taken.add(key)
                if key != name:
                    renamed[symbol] = key
                table: dict[str, Symbol] = made.functions if isinstance(symbol, Function) else made.variables  # type: ignore[assignment]
                table.setdefault(key, symbol)
            for symbol, key in renamed.items():
                _rename(symbol, key)
        return made


def _symbols(module: Module) -> Iterator[tuple[str, Symbol]]:
    yield from module.variables.items()
    yield from module.functions.items()


def _functions(module: Module) -> Iterable[Function]:
    return dict.fromkeys(module.functions.values())


def _shared_by_name(symbol: Symbol) -> bool:
    """Whether the name means the same in all files."""
    return symbol.linkage != "" or (isinstance(symbol, Function) and symbol.body is None)


def _is_defined(symbol: Symbol) -> bool:
    return symbol.body is not None if isinstance(symbol, Function) else symbol.linkage != "extern"


def _is_dynamic(symbol: Symbol) -> bool:
    """Dynamic shared memory is declared everywhere and defined by the launch."""
    return isinstance(symbol, Variable) and symbol.space == "shared"


def _size(symbol: Symbol) -> int:
    return symbol.size if isinstance(symbol, Variable) else 0


def _alike(symbol: Symbol, other: Symbol) -> bool:
    """Whether two symbols may be one: functions of one signature, variables of one space and size."""
    if isinstance(symbol, Function) and isinstance(other, Function):
        return same_signature(symbol, other)
    if isinstance(symbol, Function) or isinstance(other, Function):
        return False
    open_ended = not symbol.size or not other.size or "common" in (symbol.linkage, other.linkage)
    opaque = symbol.type.kind == "opaque" or other.type.kind == "opaque"
    return (
        symbol.space == other.space
        and (open_ended or symbol.size == other.size)
        and (not opaque or symbol.type.name == other.type.name)
    )


def _shift(module: Module, offset: int) -> None:
    """Move the positions of a module to where its text stands in the joined source."""
    for variable in module.variables.values():
        variable.pos += offset
    for function in _functions(module):
        function.pos += offset
        for variable in function.variables:
            variable.pos += offset
        for index, item in enumerate(function.body or ()):
            if isinstance(item, Op):
                item.pos += offset
                item.end += offset
            elif function.body is not None:
                function.body[index] = LabelMark(item.name, item.pos + offset)


def _add_locs(made: Module, module: Module) -> None:
    """Give a module the files and the ``.loc`` of another one, whose instructions count theirs behind those that there are."""
    numbers = {file: len(made.files) + count for count, file in enumerate(module.files, 1)}
    made.files |= {numbers[file]: name for file, name in module.files.items()}
    before = len(made.locs)
    for file, line, column, caller in module.locs:
        made.locs.append(Loc(numbers.get(file, 0), line, column, caller and caller + before))
    for op in (op for function in _functions(module) for op in function.ops if op.loc):
        op.loc += before


def _rename(symbol: Symbol, name: str) -> None:
    """Names are unique in a module, and those of a function's variables begin with its own."""
    if isinstance(symbol, Function):
        for variable in symbol.variables:
            variable.name = name + variable.name.removeprefix(symbol.name)
    symbol.name = name
