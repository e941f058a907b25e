"""The instructions of a vISA kernel: each is checked against its row and becomes ops of PTX rows; TYPED_ATOMIC stays."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ptxemu.check.modifiers import Form, Misfit, sort_modifiers
from ptxemu.dialects import build
from ptxemu.dialects.build import Builder
from ptxemu.dialects.slots import Slots
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa import alu
from ptxemu.dialects.visa.ast import Instruction, Label, Operand, Region
from ptxemu.dialects.visa.atomic import surface_variable, typed_atomic
from ptxemu.dialects.visa.control import Divergence
from ptxemu.dialects.visa.masks import Bit, Predication, Span, channels, predication, span
from ptxemu.dialects.visa.operands import source, target
from ptxemu.dialects.visa.table import ALIASES, TABLE
from ptxemu.dialects.visa.variables import CHANNELS, General, Predicate, Scope, SurfaceVariable
from ptxemu.ir.ops import Addr, Imm, Reg, Variable
from ptxemu.ir.types import B32, TYPES
from ptxemu.syntax.ast import Name
from ptxemu.text.suggestions import ALIKE, closest

BINDLESS = "T252"  # holds a handle
TABLE_SLOTS = 256  # of the binding table
EPILOGUE = "<epilogue>"  # no label of a source


class Kernel:
    """A kernel being read.

    ``width`` is its SIMD width, ``mask`` the execution mask with which threads start.  Channels of a ``divergent`` kernel
    may go different ways.
    """

    def __init__(self, body: Builder, slots: Slots, divergent: bool, strict: bool, options: dict[str, str]) -> None:
        self.body = body
        self.slots = slots
        self.divergent = divergent
        self.started = False
        self.given: set[str] = set()  # variables whose first value is known
        self.flow: Divergence | None = None
        self.scope = Scope({BINDLESS: SurfaceVariable(BINDLESS, None, Reg(BINDLESS, TYPES["b64"]))})
        self.strict = strict
        self.options = options
        self.width = CHANNELS
        self.mask = (1 << CHANNELS) - 1
        self.labels: dict[str, Name] = {}
        self.targets: list[Name] = []
        self.outputs: list[tuple[General | Predicate, Variable]] = []
        self.index: Reg | None = None

    def start(self) -> None:
        """The first label or instruction: the mask with which threads start is known."""
        if self.divergent and not self.started:
            self.flow = Divergence(self.body, self.mask)
        self.started = True

    def label(self, item: Label) -> None:
        name = item.name
        if name.text in self.labels:
            raise TextError(f"label '{name.text}' is defined twice", name.pos, name.end)
        self.labels[name.text] = name
        self.body.at(name.pos, name.end)
        self.start()
        if self.flow is None:
            self.body.label(name.text)
        else:
            self.flow.join(name.text)

    def finish(self) -> list[TextError]:
        """Store the register files; what is wrong with the kernel as a whole."""
        if self.flow is not None:
            self.flow.finish()
        if self.outputs:
            self.body.label(EPILOGUE)
            index = self.body.thread_index()
            for variable, array in self.outputs:
                store_row(self.body, variable, array, index)
        unknown = [name for name in self.targets if name.text not in self.labels]
        return [
            TextError(f"unknown label '{name.text}'{closest(name.text, self.labels)}", name.pos, name.end) for name in unknown
        ]

    # ------------------------------------------------------------ register files

    def add_input(self, variable: General | Predicate, array: Variable) -> None:
        """Load a variable from the thread's row of a register file."""
        if self.index is None:
            self.index = self.body.thread_index()
        load_row(self.body, variable, array, self.index)

    # ------------------------------------------------------------ instructions

    def instruction(self, item: Instruction) -> None:
        form = form_of(item)
        self.body.at(item.name.pos, item.end)
        self.start()
        patterns = form.row.operands
        if len(item.operands) != len(patterns):
            plural = "" if len(patterns) == 1 else "s"
            text = f"'{item.name.text}' takes {len(patterns)} operand{plural}, not {len(item.operands)}"
            raise TextError(text, item.name.pos, item.name.end)
        if item.execution is None:
            raise TextError("an execution size is missing, such as (M1, 8)", item.name.end, item.name.end + 1)
        at = span(item.execution, self.strict, self.width)
        HANDLERS.get(item.opcode, Kernel._arithmetic)(self, form, item, at)

    def channels(self, item: Instruction, at: Span) -> list[tuple[int, build.Guard | None]]:
        return channels(self.body, self.enabled, at, self._predication(item, at))

    def _predication(self, item: Instruction, at: Span) -> Predication | None:
        return predication(self.body, self.scope, item.guard, at) if item.guard is not None else None

    def enabled(self, channel: int) -> Bit:
        """What is known of a channel, or the predicate that says whether it is enabled."""
        return bool(self.mask >> channel & 1) if self.flow is None else self.flow.bit(channel)

    def _typed_atomic(self, form: Form, item: Instruction, at: Span) -> None:
        typed_atomic(self.body, self.scope, form, item, at, self.strict, self.options, self.channels(item, at))

    def _arithmetic(self, form: Form, item: Instruction, at: Span) -> None:
        """Instructions that work on each channel by itself."""
        sources = [source(self.scope, operand, at.size) for operand in item.operands[1:]]
        where = target(self.scope, item.operands[0], at.size)
        spans = [(operand.pos, operand.end) for operand in item.operands]
        operation = alu.operation(item.opcode, where.type, sources, spans)
        alu.run(self.body, operation, where, sources, self.channels(item, at))

    def _compare(self, form: Form, item: Instruction, at: Span) -> None:
        """``cmp.lt (M1, 8) P1 a b``: a predicate takes the bits of the enabled channels, a variable all ones or zeros."""
        sources = [source(self.scope, operand, at.size) for operand in item.operands[1:]]
        spans = [(operand.pos, operand.end) for operand in item.operands]
        first = item.operands[0]
        kind = alu.comparison(sources, spans)
        if isinstance(first, Name):
            bits = self._bits(first, at)
            enabled = self.channels(item, at)
            for channel, guard in enabled:
                a, b = (value.value(self.body, channel) for value in sources)
                self.body.emit(
                    f"setp.{form.mods['cmp']}.{kind}", bits[channel], alu.reg(self.body, a), alu.reg(self.body, b), guard=guard
                )
            return
        where = target(self.scope, first, at.size)
        operation = alu.compare_into(form.mods["cmp"], kind, where.type, spans[0])
        alu.run(self.body, operation, where, sources, self.channels(item, at))

    def _select(self, form: Form, item: Instruction, at: Span) -> None:
        """``(P1) sel (M1, 8) d a b``: a where the predicate is set; the predicate does not disable channels."""
        if item.guard is None:
            raise TextError("'sel' needs a predicate, (P1)", item.name.pos, item.name.end)
        chosen = predication(self.body, self.scope, item.guard, at)
        sources = [source(self.scope, operand, at.size) for operand in item.operands[1:]]
        where = target(self.scope, item.operands[0], at.size)
        spans = [(operand.pos, operand.end) for operand in item.operands]
        operation = alu.selection(where.type, sources, spans, chosen)
        alu.run(self.body, operation, where, sources, channels(self.body, self.enabled, at, None))

    def _set_predicate(self, form: Form, item: Instruction, at: Span) -> None:
        """``setp (M1, 8) P1 a``: bit n of a predicate becomes bit 0 of element n of a region; of a scalar, its bit n."""
        name, operand = item.operands
        unpredicated(item)
        if not isinstance(name, Name):
            raise TextError("expected a predicate", name.pos, name.end)
        bits = self._bits(name, at)
        given = source(self.scope, operand, at.size)
        alu.check_integer(given, (operand.pos, operand.end))
        scalar = alu.is_scalar(given)
        if scalar:  # the execution mask does not count for a word of bits
            at = replace(at, no_mask=True)
        for channel, guard in self.channels(item, at):
            bit = self.body.temp("b32")
            value = alu.reg(self.body, given.value(self.body, channel))
            self.body.emit("bfe.u32", bit, value, channel if scalar else 0, 1)
            self.body.emit("setp.ne.u32", bits[channel], bit, 0, guard=guard)

    def _set_surface(self, form: Form, item: Instruction, at: Span) -> None:
        """``movs (M1, 1) T6(0) a``: the slot of the binding table that a surface variable selects; of T252, a handle."""
        place, operand = item.operands
        if not isinstance(place, Region) or (place.row, place.column) != (None, 0) or at.size != 1:
            raise TextError("'movs' sets element 0 of a surface variable, such as T6(0), by (M1, 1)", place.pos, place.end)
        unpredicated(item)
        variable = surface_variable(self.scope, place.name)
        handle = self._selected(variable, operand)
        for _, guard in self.channels(item, at):
            self.body.emit("mov.b64", variable.handle, handle, guard=guard)

    def _selected(self, variable: SurfaceVariable, operand: Operand) -> Reg:
        """The handle that a surface variable takes: another's, that of a slot, or a number."""
        if isinstance(operand, Region) and operand.row is None:
            if operand.column:
                raise TextError("a surface variable has one element", operand.pos, operand.end)
            return surface_variable(self.scope, operand.name).handle
        given = source(self.scope, operand, 1)
        value = given.value(self.body, 0)
        if variable.name != BINDLESS:
            if given.type != "ud":
                raise TextError(f"an index of the binding table has type ud, not {given.type}", operand.pos, operand.end)
            return self.slot(value)
        if given.type not in ("uq", "ud"):
            raise TextError(f"a handle has type uq or ud, not {given.type}", operand.pos, operand.end)
        handle = self.body.temp("b64")
        self.body.emit("mov.b64" if given.type == "uq" or isinstance(value, int) else "cvt.u64.u32", handle, value)
        return handle

    def slot(self, index: Reg | int) -> Reg:
        """The handle of the surface in a slot of the binding table; beyond its end there is none."""
        handle, inside = self.body.temp("b64"), self.body.temp("b32")
        if isinstance(index, int):
            self.slots.lookup(self.body, handle, Imm(min(index, TABLE_SLOTS), B32))
            return handle
        self.body.emit("min.u32", inside, index, TABLE_SLOTS)
        self.slots.lookup(self.body, handle, inside)
        return handle

    def _bits(self, name: Name, at: Span) -> tuple[Reg, ...]:
        found = self.scope.predicate(name)
        bits = found.bits[at.offset : at.offset + at.size]
        if len(bits) < at.size:
            text = f"channels {at.offset} to {at.offset + at.size - 1} exceed the {len(found.bits)} of '{name.text}'"
            raise TextError(text, name.pos, name.end)
        return bits

    # ------------------------------------------------------------ control

    def _jump(self, form: Form, item: Instruction, at: Span) -> None:
        """``(P1) jmp (M1, 1) label``: the thread jumps."""
        place = self._target(item)
        guard = self._scalar_guard(item, at)
        self.body.branch(place.text, guard)

    def _goto(self, form: Form, item: Instruction, at: Span) -> None:
        """``(P1) goto (M1, 8) label``: channels jump; by ``(M1, 1)`` all that are enabled."""
        place = self._target(item)
        if self.flow is None:
            return  # a line of another kernel, whose directive is wrong
        jumping = self.flow.leaving(at, self._predication(item, at))
        if place.text in self.labels:
            self.flow.backward(place.text, jumping)
        else:
            self.flow.forward(place.text, jumping)

    def _target(self, item: Instruction) -> Name:
        place = item.operands[0]
        if not isinstance(place, Name):
            raise TextError("expected a label", place.pos, place.end)
        self.targets.append(place)
        return place

    def _leave(self, form: Form, item: Instruction, at: Span) -> None:
        """``(P1) ret (M1, 1)``: the thread ends; of a larger size, its channels do."""
        if at.size > 1 and self.flow is not None:
            self.flow.disable(self.flow.leaving(at, self._predication(item, at)))
            return
        guard = self._scalar_guard(item, at)
        if self.outputs:
            self.body.branch(EPILOGUE, guard)
        else:
            self.body.emit("exit", guard=guard)

    def _scalar_guard(self, item: Instruction, at: Span) -> build.Guard | None:
        """The guard of what a whole thread does; the execution mask does not count."""
        if at.size != 1:
            size = item.execution.size if item.execution is not None else item.name
            raise TextError(f"the execution size of '{item.opcode}' is 1, not {at.size}", size.pos, size.end)
        predicate = self._predication(item, at)
        return (predicate.bit(0), predicate.inverted) if predicate is not None else None


def unpredicated(item: Instruction) -> None:
    if item.guard is not None:
        raise TextError(f"'{item.opcode}' takes no predicate", item.pos, item.name.pos)


def form_of(item: Instruction) -> Form:
    """The row of an instruction and what its modifiers mean; raises TextError."""
    opcode, name = item.opcode, item.name
    if opcode not in TABLE:
        written = name.text[: len(opcode)]
        raise TextError(f"unknown instruction '{written}'{closest(opcode, TABLE, ALIKE)}", name.pos, name.pos + len(opcode))
    words = tuple(ALIASES.get(word, word) for word in item.modifiers)
    forms = sort_modifiers(TABLE[opcode], words, False)
    if isinstance(forms, Misfit):
        if forms.index is None:
            raise TextError(forms.message, name.pos, name.end)
        start = name.pos + len(opcode) + sum(len(word) + 1 for word in item.modifiers[: forms.index])
        raise TextError(forms.message, start, start + 1 + len(item.modifiers[forms.index]))
    return forms[0]


# ---------------------------------------------------------------- register files


def load_row(body: Builder, variable: General | Predicate, array: Variable, index: Reg) -> None:
    """The thread's elements of an array parameter; bits of a predicate are those of a word."""
    if isinstance(variable, Predicate):
        word, bit = body.temp("b32"), body.temp("b32")
        body.emit("ld.global.b32", word, body.element(array, index, 4))
        for place, target_ in enumerate(variable.bits):
            body.emit("and.b32", bit, word, 1 << place)
            body.emit("setp.ne.u32", target_, bit, 0)
        return
    start = body.element(array, index, variable.bytes)
    for place in range(variable.bytes // 4):
        body.emit("ld.global.b32", variable.words[variable.offset // 4 + place], start_at(start, 4 * place))


def store_row(body: Builder, variable: General | Predicate, array: Variable, index: Reg) -> None:
    if isinstance(variable, Predicate):
        word, bit = body.temp("b32"), body.temp("b32")
        body.emit("mov.b32", word, 0)
        for place, source_ in enumerate(variable.bits):
            body.emit("selp.b32", bit, 1 << place, 0, source_)
            body.emit("or.b32", word, word, bit)
        body.emit("st.global.b32", body.element(array, index, 4), word)
        return
    start = body.element(array, index, variable.bytes)
    for place in range(variable.bytes // 4):
        body.emit("st.global.b32", start_at(start, 4 * place), variable.words[variable.offset // 4 + place])


def start_at(address: Addr, offset: int) -> Addr:
    return Addr(address.base, address.offset + offset)


Handler = Callable[[Kernel, Form, Instruction, Span], None]
HANDLERS: dict[str, Handler] = {
    "typed_atomic": Kernel._typed_atomic, "cmp": Kernel._compare, "sel": Kernel._select, "setp": Kernel._set_predicate,
    "movs": Kernel._set_surface, "jmp": Kernel._jump, "goto": Kernel._goto, "ret": Kernel._leave,
}  # fmt: skip
