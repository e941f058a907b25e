"""The typed IR as text: one op a line, with its line of the source.

:mod:`ptxemu.irtext.parser` reads it (docs/ir.md).  Names are those of the IR, made unique by a number
where two things have one name.  What :class:`Notes` say of the results of analyses follows the line number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from ptxemu.ir.graph import Block, Graph, Phi, reads, symbols, writes
from ptxemu.ir.ops import (
    Addr,
    Call,
    Function,
    Imm,
    LabelMark,
    Module,
    Op,
    Operand,
    Param,
    Reg,
    SReg,
    Symbol,
    Variable,
    Vec,
)
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.irtext.words import constant, natural, quoted, spelled
from ptxemu.isa.instruction_types import types_of
from ptxemu.isa.special import SPECIAL_REGISTERS
from ptxemu.text.source import JoinedSource, parts_of

Item = Op | LabelMark
WIDTH = 72  # of a line up to its comment


class Body(Struct, frozen=True):
    """A function with its code: a flat list, or a graph. ``variables`` are those that the code may use."""

    function: Function
    code: list[Item] | Graph
    variables: list[Variable]

    @property
    def ops(self) -> Iterator[Op]:
        if isinstance(self.code, Graph):
            return (op for block in self.code.blocks for op in block.ops)
        return (item for item in self.code if isinstance(item, Op))


class Notes:
    """What an analysis of one graph says of its parts, as words; nothing, unless a class overrides it."""

    def of_graph(self) -> Iterable[str]:
        return ()

    def of_block(self, block: Block) -> Iterable[str]:
        return ()

    def of_value(self, reg: Reg) -> Iterable[str]:
        return ()

    def of_op(self, op: Op) -> Iterable[str]:
        return ()


Annotate = Callable[[Graph], Sequence[Notes]]


def print_ir(module: Module, bodies: Sequence[Body], annotate: Annotate | None = None) -> str:
    """Functions of a module as text, with the symbols that they mention."""
    printer = _Module(module, bodies)
    parts = [printer.header()]
    parts += ["\n".join(printer.function(body.function, body, annotate)) for body in bodies]
    return "\n\n".join(part for part in parts if part) + "\n"


def print_op(module: Module, op: Op) -> str:
    """An op alone."""
    function = Function("", "func", "", [], [], [], [], {}, 0)
    printer = _Function(_Module(module, []), function, _Names())
    printer.defined.update(reads(op))
    return printer.op(op).strip()


class _Names:
    """Unique names for objects, each that of the object or, if another one has it, with a number."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self.of: dict[object, str] = {}

    def __call__(self, thing: object, name: str) -> str:
        found = self.of.get(thing)
        if found is None:
            found, number = name, 1
            while found in self.taken:
                number += 1
                found = f"{name}'{number}"
            self.taken.add(found)
            self.of[thing] = found
        return found


# ---------------------------------------------------------------- the module and its symbols


class _Module:
    def __init__(self, module: Module, bodies: Sequence[Body]) -> None:
        self.module = module
        self.names = _Names()
        self.shown = {body.function for body in bodies}
        self.symbols = list(dict.fromkeys(_mentioned(module, bodies)))
        for symbol in self.symbols:
            self.names(symbol, symbol.name)

    def header(self) -> str:
        module = self.module
        first = [f"module {'.'.join(map(str, module.version))}, {', '.join(map(quoted, module.target))}"]
        if len(files := parts_of(module.source)) > 1:
            first.append("files " + ", ".join(quoted(part.name) for part in files))
        if module.dialect != "ptx":
            first.append(f"dialect {module.dialect}")
        variables = [symbol for symbol in self.symbols if isinstance(symbol, Variable)]
        lines = [self.line(f"{variable.space} {self.variable(variable)}", variable.pos) for variable in variables]
        declared = [symbol for symbol in self.symbols if isinstance(symbol, Function) and symbol not in self.shown]
        for function in declared:
            lines += self.function(function, None, None)
        return "\n".join([*first, *lines])

    def where(self, pos: int) -> str:
        source = self.module.source
        line = str(source.line(pos))
        return f"{bisect_right(source.offsets, pos)}:{line}" if isinstance(source, JoinedSource) else line

    def line(self, text: str, pos: int, notes: Iterable[str] = ()) -> str:
        """A line with its position, if it has one, and notes."""
        words = " | ".join((self.where(pos) if pos else "", *notes)).strip()
        return f"{text:<{WIDTH}} // {words}" if words else text

    def symbol(self, symbol: Symbol) -> str:
        return "@" + quoted(self.names(symbol, symbol.name))

    def variable(self, variable: Variable) -> str:
        """All of a variable of the module except its space and its position."""
        words = [f"{self.symbol(variable)}: {extent(variable)}"]
        words += [variable.linkage] if variable.linkage else []
        if variable.owner is not None:
            words.append(f"owner {quoted(variable.owner)}")
        words += [f"bytes {offset} {data.hex()}" for offset, data in variable.init]
        for reloc in variable.relocs:
            kind = "generic" if reloc.generic else "address"
            shift = f" shift {reloc.shift}" if reloc.shift else ""
            words.append(f"{kind} {reloc.offset} size {reloc.size} {self.symbol(reloc.target)} {reloc.addend}{shift}")
        for fields in variable.fields:
            words.append("fields " + " ".join(f"{name}={value}" for name, value in fields.items()) + ";")
        return " ".join(words)

    def function(self, function: Function, body: Body | None, annotate: Annotate | None) -> list[str]:
        """The head of a function and, if it is shown, its code."""
        local = _Names(self.names.taken) if body is not None else self.names
        printer = _Function(self, function, local)
        words = ["declare"] if body is None else []
        words += [function.linkage] if function.linkage else []
        words += [function.kind, self.symbol(function)]
        words += ["noreturn"] if function.noreturn else []
        lines = [self.line(" ".join(words), function.pos), *printer.head(body)]
        return lines if body is None else [*lines, *printer.code(body, annotate)]


def extent(variable: Variable) -> str:
    """Type and extents, and the alignment and the size where they do not follow from these."""
    vector = f"v{variable.vector}." if variable.vector > 1 else ""
    text = f"{vector}{variable.type}" + "".join("[]" if length is None else f"[{length}]" for length in variable.dims)
    align, size = natural(variable.type, variable.vector, variable.dims)
    text += f" align {variable.align}" if variable.align != align else ""
    return text + (f" size {variable.size}" if variable.size != size else "")


def _mentioned(module: Module, bodies: Sequence[Body]) -> Iterator[Symbol]:
    """The module's symbols that bodies mention, directly or in initial values; variables in order of their definition."""
    found: dict[Symbol, None] = {}
    work: list[Symbol] = [symbol for body in bodies for symbol in (body.function, *_symbols(body))]
    while work:
        symbol = work.pop()
        if symbol not in found:
            found[symbol] = None
            if isinstance(symbol, Variable):
                work += [reloc.target for reloc in symbol.relocs]
    yield from (variable for variable in module.variables.values() if variable in found)
    yield from sorted(found, key=lambda symbol: (symbol.pos, symbol.name))


def _symbols(body: Body) -> Iterator[Symbol]:
    """What a body mentions of the module: no local variables and no parameters."""
    yield from (variable for variable in body.variables if _shared(variable))
    for op in body.ops:
        for source in op.srcs:
            yield from (symbol for symbol in symbols(source) if _shared(symbol))
        if op.call is not None:
            callee = op.call.callee
            yield from (function for function in (callee, *(op.call.targets or ())) if isinstance(function, Function))


def _shared(symbol: Symbol) -> bool:
    return isinstance(symbol, Function) or symbol.space not in ("local", "param")


# ---------------------------------------------------------------- one function


class _Function:
    def __init__(self, module: _Module, function: Function, symbols: _Names) -> None:
        self.module = module
        self.function = function
        self.symbols = symbols
        self.symbols.of |= module.names.of
        self.registers = _Names(f"%{name}" for name in SPECIAL_REGISTERS)
        self.blocks = _Names()
        self.defined: set[Reg] = set()
        self.notes: Sequence[Notes] = ()

    def head(self, body: Body | None) -> list[str]:
        function = self.function
        lines = [self.formal(param) for param in function.params]
        lines += [self.declared("return", "", variable) for variable in function.returns]
        lines += [f"  limit {name} {' '.join(map(str, values))}".rstrip() for name, values in function.limits.items()]
        lines += [f"  unsynced {quoted(written)} {quoted(read)}" for written, read in function.unsynced]
        if body is None:
            return lines
        graph = body.code if isinstance(body.code, Graph) else None
        for variable in body.variables:
            lines.append(f"  uses {self.symbol(variable)}" if _shared(variable) else self.declared(variable.space, "", variable))
        for variable, offset in (graph.incoming if graph is not None else {}).items():
            lines.append(self.declared("incoming", f" at {offset}", variable))
        return lines

    def formal(self, param: Param) -> str:
        words = f" at {param.offset}"
        words += "" if param.ptr is None else f" ptr {param.ptr[0] or 'generic'} {param.ptr[1]}"
        words += "" if param.row is None else f" row {param.row[0]} {param.row[1]}"
        return self.declared("formal", words, param.variable)

    def declared(self, what: str, more: str, variable: Variable) -> str:
        """A variable of the function itself. ``what`` is its space, or its part if that says the space."""
        text = f"{self.symbol(variable)}: {extent(variable)}"
        text += "" if variable.owner == self.function.name else f" owner {quoted(variable.owner or '')}"
        return self.module.line(f"  {what} {text}{more}", variable.pos)

    def code(self, body: Body, annotate: Annotate | None) -> list[str]:
        for op in body.ops:
            self.defined.update(writes(op))
        if isinstance(body.code, Graph):
            self.defined.update(dst for block in body.code.blocks for dst in block.phis.dsts)
            self.notes = annotate(body.code) if annotate is not None else ()
            notes = [f"  // {note}" for notes in self.notes for note in notes.of_graph()]
            return [*notes, "{", *(line for block in body.code.blocks for line in self.block(body.code, block)), "}"]
        return ["flat {", *(self.item(item) for item in body.code), "}"]

    def item(self, item: Item) -> str:
        return self.module.line(f"{quoted(item.name)}:", item.pos) if isinstance(item, LabelMark) else self.op(item)

    # -- blocks

    def name(self, block: Block) -> str:
        return quoted(self.blocks(block, block.name))

    def block(self, graph: Graph, block: Block) -> Iterator[str]:
        words = [f"{self.name(block)}:"]
        words += ["spins"] if block in graph.spins else []
        if block in graph.joint:
            words.append(f"joint ({', '.join(map(self.name, graph.joint[block]))})")
        notes = [note for notes in self.notes for note in notes.of_block(block)]
        yield f"{' '.join(words):<{WIDTH}} // {' | '.join(notes)}" if notes else " ".join(words)
        for phi in block.phis:
            yield self.phi(phi)
        yield from map(self.op, block.ops)
        yield self.module.line(f"  {self.terminator(block)}", block.pos)

    def phi(self, phi: Phi) -> str:
        args = ", ".join(f"{self.name(pred)} {self.value(arg, phi.dst.type)}" for pred, arg in phi.args.items())
        text = f"  {self.definition(phi.dst)} = phi {args}"
        notes = [note for notes in self.notes for note in notes.of_value(phi.dst)]
        return f"{text:<{WIDTH}} // {' | '.join(notes)}" if notes else text

    def terminator(self, block: Block) -> str:
        targets = ", ".join(map(self.name, block.succs))
        if block.table and block.cond is not None:
            return f"switch {self.value(block.cond, None)}, {targets} table {' '.join(map(str, block.table))}"
        if block.cond is None:
            return f"jump {targets}" if targets else "end"
        return f"branch {'!' if block.negated else ''}{self.value(block.cond, PRED)}, {targets}"

    # -- ops

    def op(self, op: Op) -> str:
        guard = "" if op.guard is None else f"@{'!' if op.guard[1] else ''}{self.value(op.guard[0], PRED)} "
        dsts = ", ".join(self.definition(dst) for dst in op.dsts)
        text = f"  {guard}{dsts} = " if dsts else f"  {guard}"
        text += spelled(self.module.module.dialect, op.row, op.mods) + self.types(op)
        sources = [self.source(op, index) for index in range(len(op.srcs))]
        text += f" {', '.join(sources)}" if sources else ""
        text += f" -> {', '.join(map(quoted, op.labels))}" if op.labels else ""
        text += self.call(op.call) if op.call is not None else ""
        text += f" else {', '.join(self.kept(op))}" if op.old else ""
        return self.module.line(text, op.pos, self.op_notes(op))

    def kept(self, op: Op) -> Iterator[str]:
        """What the destinations are where the guard is false."""
        for old, dst in zip(op.old, op.dsts):
            yield "_" if old is None else self.value(old, None if dst is None else dst.type)

    def op_notes(self, op: Op) -> Iterator[str]:
        for notes in self.notes:
            yield from notes.of_op(op)
            for reg in writes(op):
                yield from notes.of_value(reg)

    def types(self, op: Op) -> str:
        """The instruction's types, if they are not those that the row gives."""
        if types_of(op) == (op.src_types, op.dst_types):
            return ""
        sources = ", ".join("_" if kind is None else kind.name for kind in op.src_types)
        results = ", ".join(kind.name for kind in op.dst_types)
        return f"({sources}{' -> ' if sources and results else '-> ' if results else ''}{results})"

    def definition(self, reg: Reg | None) -> str:
        return "_" if reg is None else f"{self.register(reg)}:{reg.type}"

    def register(self, reg: Reg) -> str:
        return quoted(self.registers(reg, reg.name if reg.name.startswith("%") else f"%{reg.name}"))

    def source(self, op: Op, index: int) -> str:
        kind = op.src_types[index] if index < len(op.src_types) else None
        negated = index < len(op.negs) and op.negs[index]
        return ("!" if negated else "") + self.value(op.srcs[index], kind)

    def value(self, value: Operand | Variable, kind: ScalarType | None) -> str:
        """An operand; a constant has its type unless it is ``kind``, a register that nothing writes always."""
        if isinstance(value, Reg):
            return self.register(value) if value in self.defined else self.definition(value)
        if isinstance(value, Imm):
            return constant(value) if value.type is kind else f"{constant(value)}:{value.type}"
        if isinstance(value, SReg):
            return f"%{value.name}"
        if isinstance(value, Vec):
            return "{" + ", ".join(self.value(item, kind) for item in value.items) + "}"
        if isinstance(value, Addr):
            offset = f" + {value.offset}" if value.offset > 0 else f" - {-value.offset}" if value.offset < 0 else ""
            return f"[{self.value(value.base, None)}{offset}]"
        if isinstance(value, Variable):
            return self.symbol(value)
        return self.symbol(value.symbol) + (f" + {value.offset}" if value.offset else "")

    def symbol(self, symbol: Symbol) -> str:
        return "@" + quoted(self.symbols(symbol, symbol.name))

    # -- calls

    def call(self, call: Call) -> str:
        args = ", ".join(self.value(arg, None) for arg in call.args)
        returns = ", ".join(self.returned(value) for value in call.returns)
        text = f" to {self.value(call.callee, None) if isinstance(call.callee, Reg) else self.symbol(call.callee)}({args})"
        text += f" returns ({returns})" if returns else ""
        text += " uniform" if call.uniform else ""
        text += " exits" if call.exits else ""
        if call.targets is not None:
            text += f" targets ({', '.join(map(self.symbol, call.targets))})"
        if call.prototype is not None:
            params, results = (", ".join(map(extent, formals)) for formals in call.prototype)
            text += f" prototype ({params}) ({results})"
        return text

    def returned(self, value: Variable | Reg | Vec) -> str:
        if isinstance(value, Vec):
            return "{" + ", ".join(self.returned(item) for item in value.items) + "}"  # type: ignore[arg-type]
        return self.definition(value) if isinstance(value, Reg) else self.symbol(value)
