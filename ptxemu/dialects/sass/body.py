"""The instructions of a SASS kernel: each is checked against its row and becomes ops of PTX rows; SURED and RED stay."""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.check.modifiers import Form
from ptxemu.dialects.build import Builder, Guard
from ptxemu.dialects.program import first_value
from ptxemu.dialects.sass.ast import Address, Instruction, Negative, Operand
from ptxemu.dialects.sass.memory import Banks, Pool
from ptxemu.dialects.sass.operands import ZERO, Operands, Source, check_operands, form_of, has_carry, without_carry
from ptxemu.dialects.sass.table import ENGINE_TYPES, GEOMETRIES
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Imm, Reg, Variable, Vec
from ptxemu.ir.types import B32, B64
from ptxemu.syntax.ast import Int, Name
from ptxemu.text.suggestions import closest

WORD_BYTES = 4
EPILOGUE = "<epilogue>"  # no label of a source


class Kernel:
    """A kernel being read. ``helper`` are the lanes of each warp that are helper pixels, whose reductions do nothing."""

    def __init__(self, body: Builder, banks: Banks, pool: Pool, windows: tuple[int, ...]) -> None:
        self.body = body
        self.banks = banks
        self.pool = pool
        self.windows = windows
        self.helper = 0
        self.outputs: list[tuple[tuple[int, int], Reg, Variable]] = []
        self.index: Reg | None = None
        self.started = False
        self.given = {ZERO}  # registers whose first value is known
        self.carries = False  # the instruction at hand gives its carry
        self.operands = Operands(body, banks)
        self.labels: dict[str, Name] = {}
        self.targets: list[Name] = []

    def label(self, name: Name) -> None:
        if name.text in self.labels:
            raise TextError(f"label '{name.text}' is defined twice", name.pos, name.end)
        self.labels[name.text] = name
        self.started = True
        self.body.at(name.pos, name.end)
        self.body.label(name.text)

    def add_input(self, name: Name, array: Variable) -> None:
        """Load a register from a register file."""
        first_value(self.given, name.text, name, self.started)
        self.body.emit("ld.global.b32", self.operands.target(name), self.body.element(array, self.thread_index(), 4))

    def add_output(self, name: Name, array: Variable) -> None:
        """Store a register to a register file at the end."""
        self.outputs.append(((self.body.pos, self.body.end), self.operands.target(name), array))

    def thread_index(self) -> Reg:
        if self.index is None:
            self.index = self.body.thread_index()
        return self.index

    def finish(self) -> list[TextError]:
        """Store the register files; what is wrong with the kernel as a whole."""
        if self.outputs:
            self.body.label(EPILOGUE)
            index = self.body.thread_index()
            for place, register, array in self.outputs:
                self.body.at(*place)
                self.body.emit("st.global.b32", self.body.element(array, index, 4), register)
        unknown = [name for name in self.targets if name.text not in self.labels]
        return [
            TextError(f"unknown label '{name.text}'{closest(name.text, self.labels)}", name.pos, name.end) for name in unknown
        ]

    def instruction(self, item: Instruction) -> None:
        form = form_of(item)
        self.started = True
        self.body.at(item.pos, item.end)
        check_operands(form, item)
        guard = None if item.guard is None else self.operands.guard(*item.guard)
        self.carries = has_carry(item)
        HANDLERS[item.opcode](self, form, without_carry(item), guard)

    # ------------------------------------------------------------ moves and arithmetic

    def move(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        self.write("mov.u32", operands, guard)

    def write(self, text: str, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        """A PTX instruction on the operands as they stand."""
        sources = [self.operands.source(operand) for operand in operands[1:]]
        self.body.emit(text, self.operands.target(operands[0]), *sources, guard=guard)

    def special(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        self.body.emit("mov.u32", self.operands.target(operands[0]), self.operands.special(operands[1]), guard=guard)

    def add(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        """IADD, with the carry out of ``Rd.CC`` and the carry in of ``.X``."""
        name = "addc" if "X" in form.mods else "add"
        negated = next((operand for operand in operands if isinstance(operand, Negative)), None)
        if negated is not None and (self.carries or name == "addc"):
            raise TextError("a sum with a carry takes no negated register: its carry is not documented", negated.pos, negated.end)
        self.write(f"{name}.cc.u32" if self.carries else f"{name}.u32", operands, guard)

    def multiply_add(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        self.write("mad.lo.u32", operands, guard)

    def shift_left(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        self.write("shl.b32", operands, guard)

    def shift_right(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        self.write(f"shr.{form.mods['size'].lower()}", operands, guard)

    def logic(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        self.write(f"{form.mods['op'].lower()}.b32", operands, guard)

    def compare(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        """``ISETP Pd, Pq, Ra, b, Pc``: Pd = (Ra cmp b) op Pc, Pq = !(Ra cmp b) op Pc."""
        first, second, a, b, c = operands
        values = [self.operands.source(a), self.operands.source(b)]
        tested = self.operands.predicate(c)
        truth, body = self.body.temp("pred"), self.body
        body.emit(f"setp.{form.mods['cmp'].lower()}.{form.mods['size'].lower()}", truth, *values)
        inverse = body.temp("pred")
        body.emit("not.pred", inverse, truth)
        for target, value in ((first, truth), (second, inverse)):
            body.emit(f"{form.mods['bool'].lower()}.pred", self.operands.predicate_target(target), value, tested, guard=guard)

    # ------------------------------------------------------------ control

    def branch(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        assert isinstance(operands[0], Name)
        self.targets.append(operands[0])
        self.body.branch(operands[0].text, guard)

    def leave(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        if self.outputs:
            self.body.branch(EPILOGUE, guard)
        else:
            self.body.emit("exit", guard=guard)

    def nothing(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        """NOP"""

    # ------------------------------------------------------------ reductions

    def surface_reduction(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        """SURED: Ra holds x, y, z and at last the layer, whose low 16 bits count."""
        place, data, word = operands
        assert isinstance(place, Address) and place.base is not None
        kind = ENGINE_TYPES[form.mods["size"]]
        count = len(GEOMETRIES[form.mods["dim"]].coordinates)
        coordinates: list[Reg | Imm] = list(self.operands.group(place.base, count))
        if form.mods["dim"].endswith("ARRAY"):
            layer = self.body.temp("b32")
            self.body.emit("and.b32", layer, coordinates[-1], 0xFFFF)
            coordinates[-1] = layer
        handle = self.handle(word)
        value = self.operands.data(data, kind.bits)
        width = B64 if kind.bits == 64 else B32
        mods = form.mods | {"helper": str(self.helper)}
        self.body.add(form.row, mods, (), (Vec(tuple(coordinates)), value, handle), (), (B32, width, B64), guard=guard)

    def handle(self, word: Operand) -> Reg:
        """The surface that a header word selects."""
        value: Source | None = None
        if isinstance(word, Int):
            value = self.banks.word(self.body, self.banks.header_bank, WORD_BYTES * word.value)
            if value is None:
                where = f"c[0x{self.banks.header_bank:x}][0x{WORD_BYTES * word.value:x}]"
                raise TextError(f"there is no word in {where}: give it by .const or .param", word.pos, word.end)
        else:
            value = self.operands.source(word)
        handle = self.body.temp("b64")
        self.pool.lookup(self.body, handle, Imm(value, B32) if isinstance(value, int) else value)
        return handle

    def memory_reduction(self, form: Form, operands: tuple[Operand, ...], guard: Guard | None) -> None:
        """RED on a 32-bit sum, or with .E on a 64-bit sum."""
        place, data = operands
        assert isinstance(place, Address)
        address = self.operands.address(place, extended="E" in form.mods)
        kind = ENGINE_TYPES[form.mods["size"]]
        value = self.operands.data(data, kind.bits)
        width = B64 if kind.bits == 64 else B32
        mods = form.mods | {"windows": ",".join(map(str, self.windows)), "helper": str(self.helper), "bias": str(self.banks.bias)}
        self.body.add(form.row, mods, (), (address, value), (), (B64, width), guard=guard)


Handler = Callable[[Kernel, Form, tuple[Operand, ...], "Guard | None"], None]
HANDLERS: dict[str, Handler] = {
    "MOV": Kernel.move, "MOV32I": Kernel.move, "S2R": Kernel.special, "IADD": Kernel.add, "IADD32I": Kernel.add,
    "IMAD": Kernel.multiply_add, "SHL": Kernel.shift_left, "SHR": Kernel.shift_right, "LOP": Kernel.logic,
    "ISETP": Kernel.compare, "BRA": Kernel.branch, "EXIT": Kernel.leave, "NOP": Kernel.nothing,
    "SURED": Kernel.surface_reduction, "RED": Kernel.memory_reduction,
}  # fmt: skip
