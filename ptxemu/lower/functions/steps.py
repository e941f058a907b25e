"""Threaded code: tables of steps, each a call of a routine that is compiled once for all instructions of one form.

The time to compile an instruction inline is that of its LLVM instructions; a step is a record of constant data.  A *routine*
does what the instruction's ordinary lowering says, on registers in memory: ``ptr routine(ptr w, ptr frame, i32 mask,
ptr step)``, which returns the next step.  What differs between instructions of one form is in the step: their source position,
the offsets of their registers in the frame, their immediate values.

A step is 32-bit words: the number of the routine, the position, the operands.  Those that choose the lanes and the step that
come next are in :mod:`ptxemu.lower.functions.control_steps`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.analysis.runs import Runs
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import UNIFORM, Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, SReg, SymRef, Variable, Vec, items_of
from ptxemu.ir.types import B32, B64, U64, ScalarType
from ptxemu.lower.core.access import symbol_address
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.masks import expanded
from ptxemu.lower.core.site import Value, site_literal, site_type
from ptxemu.lower.functions.control_steps import DECLARATION, routine
from ptxemu.lower.functions.homes import Homes
from ptxemu.passes.internal import STACK_POINTER

HEADER = 8  # bytes of a step before its operands
POSITION = 4
PLACE = 64  # bytes: the least size of a register's place, and its alignment
TEMPORARIES = 4  # addresses on their way to an access, at the start of a frame behind a place for the function's own use
TEMPORARY_BYTES = 8 * LANES
REGISTERS = PLACE + TEMPORARIES * TEMPORARY_BYTES  # where they may start
# Rows whose lowering looks at an immediate operand when it is lowered.
FOLDED = {"lop3", "prmt"}
EXPLICIT_CLUSTER = "is_explicit_cluster"  # whose value is the layout's
OPERAND_BITS = {8, 16, 32, 64}  # of immediate values that a step can hold


class Way(Struct, frozen=True):
    """In a step, the distance to where a label is."""

    label: Hashable


class FrameContext(Context):
    """A function whose registers lie in a frame, at ``offsets``."""

    def __init__(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(uniformity, layout, unit)
        self.offsets: dict[Reg, int] = {}
        self.sharing: Homes | None = None  # registers that are where others are
        self._class_of: dict[Reg, int] = {}

    def register_class(self, reg: Reg) -> int:
        """A number for all that a routine must know of a register: equal for registers that can take each other's place."""
        found = self._class_of.get(reg)
        if found is None:
            shape, classes = self.uniformity.shape(reg), self.unit.register_classes
            offsets = shape and shape.offsets is not UNIFORM.offsets and any(shape.offsets) and shape.offsets
            facts = (reg.type.name, offsets, self.storage_type(reg), reg in self.raw)
            found = self._class_of[reg] = classes.setdefault(facts, len(classes))
        return found

    def alike(self, one: Reg, other: Reg) -> bool:
        """Whether registers are of one class; where their shapes are one object, there is no need to make it."""
        known, storage, raw = self.uniformity.known, self.storage, self.raw
        return (
            one.type is other.type and known.get(one) is known.get(other) and storage.get(one) is storage.get(other)
            and (one in raw) is (other in raw)
        ) or self.register_class(one) == self.register_class(other)  # fmt: skip

    def bytes_of(self, reg: Reg) -> int:
        """The size of a register's place in the frame."""
        return PLACE if self.is_scalar(reg) else max(PLACE, reg.type.bits * LANES // 8)

    def slot(self, reg: Reg) -> str:
        return self.inst(f"getelementptr i8, ptr %frame, i64 {self.offset_of(reg)}")

    def offset_of(self, reg: Reg) -> int:
        return self.offsets[self._home(reg)]

    def outlives_block(self, reg: Reg) -> bool:
        return self._home(reg) in self.offsets

    def _home(self, reg: Reg) -> Reg:
        return self.sharing.home(reg) if self.sharing is not None else reg

    def bits_of(self, mask: str) -> str:
        return mask if mask == self.active_bits else super().bits_of(mask)


class RoutineContext(Context):
    """The routine of a step: its registers and immediate values are where the step's operands say."""

    of_one_place = False

    def __init__(self, caller: Context, operands: Operands) -> None:
        super().__init__(caller.uniformity, caller.layout, caller.unit)
        self.label = "body"
        self.storage, self.raw = caller.storage, caller.raw
        self.step_bytes = HEADER + 4 * len(operands.parts)
        self.active, self.active_bits = expanded(self.target, lambda text: self.once(f"active: {text}", text), "%mask"), "%mask"
        if caller.layout.framed:
            self.prologue.append("  %stack = load i64, ptr %frame, align 64")
        for index, item in enumerate(operands.items):
            at = self.operand(operands.places[index])
            if isinstance(item, Imm):
                self.prologue.append(f"  %imm{index} = load i{item.type.bits}, ptr {at}, align 4")
                self.names[operands.stand_ins[index]] = f"%imm{index}"
                continue
            self.prologue.append(f"  %offset{index} = load i32, ptr {at}, align 4")
            self.prologue.append(f"  %place{index} = getelementptr i8, ptr %frame, i32 %offset{index}")
            self.slots[item] = f"%place{index}"
            self.shared_regs.add(item)

    def runs(self, address: Addr, size: int) -> Runs | None:
        """None, as ops in different places share the routine."""
        return None

    def operand(self, part: int) -> str:
        """The address of a part of the step."""
        name = self.fresh("at")
        self.prologue.append(f"  {name} = getelementptr i8, ptr %step, i64 {HEADER + 4 * part}")
        return name

    def position(self, op: Op, space: int | None = None) -> str:
        at = self.once("position.at", f"getelementptr i8, ptr %step, i64 {POSITION}")
        value = self.once("position", f"load i32, ptr {at}, align 4")
        if space is None:
            return value
        wide = self.once("position.wide", f"zext i32 {value} to i64")
        return self.once(f"position.{space}", f"or i64 {wide}, {space << 32}")

    def site(self, op: Op, struct: str, /, **fields: Value) -> str:
        types = site_type(struct)
        slot = self.alloca(types)
        self.stmt(f"store {types} {site_literal(struct, {'pos': 0, **fields})}, ptr {slot}, align 8")
        self.stmt(f"store i32 {self.position(op)}, ptr {slot}, align 8")
        return slot

    def text(self, name: str) -> str:
        parameters = "ptr noalias %w, ptr noalias %frame, i32 %mask, ptr noalias %step"
        head = f'define internal ptr @{name}({parameters}) nounwind "probe-stack"="inline-asm" {{\nentry:'
        end = [f"  %next = getelementptr i8, ptr %step, i64 {self.step_bytes}", "  ret ptr %next", "}"]
        return "\n".join([head, *self.all_allocas(), *self.prologue, "  br label %body", "body:", *self.lines, *end])


class Operands:
    """The registers and immediate values of a step, in the order of their first mention."""

    def __init__(self, caller: FrameContext) -> None:
        self.caller = caller
        self.items: list[Reg | Imm] = []
        self.places: list[int] = []  # the part of the step that holds each
        self.parts: list[int] = []
        self.stand_ins: dict[int, Reg] = {}
        self.numbers: dict[Reg, int] = {}
        self.classes: list[Hashable] = []

    def register(self, reg: Reg, offset: int) -> int:
        """The number of a register."""
        number = self.numbers.get(reg)
        if number is None:
            number = self.numbers[reg] = len(self.items)
            self.items.append(reg)
            self.places.append(len(self.parts))
            self.parts.append(offset)
            self.classes.append(self.caller.register_class(reg))
        return number

    def word(self, value: int) -> int:
        """The part of the step that holds a number which the routine reads by itself."""
        self.parts.append(value)
        return len(self.parts) - 1

    def immediate(self, imm: Imm) -> Reg:
        """A register that stands for an immediate value of one of OPERAND_BITS."""
        number = len(self.items)
        self.items.append(imm)
        self.places.append(len(self.parts))
        self.parts.append(imm.bits & 0xFFFFFFFF)
        if imm.type.bits > 32:
            self.parts.append(imm.bits >> 32)
        self.classes.append(imm.type.name)
        stand_in = self.stand_ins[number] = Reg(f"imm{number}", imm.type)
        return stand_in


class Steps:
    """The table of a function: what is added is executed in this order, except where control steps lead elsewhere."""

    def __init__(self, ctx: FrameContext, lower: Callable[[Context, Op], None]) -> None:
        self.ctx = ctx
        self.lower = lower
        self._words: list[int] = []
        self._labels: dict[Hashable, int] = {}
        self._ways: list[tuple[int, int, Hashable]] = []  # the word, its step, where it leads to
        self._pairs: list[int] = []  # of places, to copy before the next step
        self._temporaries = 0
        self._number_of_go = self._control_number("go")

    @property
    def end(self) -> int:
        """Where the next step will be: an offset in the table."""
        self._copies()
        return 4 * len(self._words)

    def label(self, label: Hashable) -> None:
        """Name the place of the next step; a step that would only go there is left out."""
        end = self.end // 4
        if self._ways and self._ways[-1] == (end - 1, end - 2, label) and self._words[-2] == self._number_of_go:
            self._ways.pop()
            del self._words[-2:]
            end -= 2
        self._labels[label] = end

    def control(self, name: str, *words: int | Way) -> None:
        """A step of :mod:`ptxemu.lower.functions.control_steps`; a way without a label leads to the next step."""
        self._copies()
        start = len(self._words)
        self._words.append(self._control_number(name))
        for word in words:
            if isinstance(word, Way):
                self._ways.append((len(self._words), start, word.label))
            self._words.append(0 if isinstance(word, Way) else word)

    def table(self) -> str:
        """The table as an LLVM type and initialiser, once all is there."""
        words = self._words
        for word, start, label in self._ways:
            words[word] = 4 * (self._labels[label] - start) & 0xFFFFFFFF
        data = struct.pack(f"<{len(words)}I", *words)
        return f'[{len(data)} x i8] c"\\{data.hex(chr(92))}", align 8'

    # -- what can be a step

    def op(self, op: Op) -> None:
        """An instruction."""
        self._temporaries = 0
        operands = Operands(self.ctx)
        folded = op.row.lower in FOLDED or not (op.row.lower in ELEMENTWISE or _stores(op))
        srcs: list[Operand] = []
        form = [self._source(operands, op, source, srcs, folded) for source in op.srcs]
        guard = op.guard and (self._constant_or_number(operands, op.guard[0]), op.guard[1])
        old = [self._constant_or_number(operands, kept) for kept in op.old]
        dsts = [None if dst is None else self._register(operands, dst) for dst in op.dsts]
        key = (
            id(op.row), tuple(op.mods.items()), tuple(kind.name for kind in op.dst_types),
            tuple(kind and kind.name for kind in op.src_types), tuple(form), op.negs, guard, tuple(old), tuple(dsts),
            self._scope(op), tuple(operands.classes),
        )  # fmt: skip
        self.add(key, operands, op.pos, lambda ctx: self.lower(ctx, replace(op, srcs=tuple(srcs))))

    def special(self, name: str, body: Callable[..., None], value: Reg | Imm, target: Reg) -> None:
        """What ``body(ctx, value, target)`` emits; ``name`` tells it from others."""
        ctx = self.ctx
        if isinstance(value, Reg):  # most are, and there may be one for each value and edge
            key: Hashable = (name, ctx.register_class(value), ctx.register_class(target))
            if key in ctx.unit.steps:
                self._record(key, [ctx.offset_of(value), ctx.offset_of(target)], 0)
                return
        operands = Operands(ctx)
        source = self._given(operands, value)
        self._register(operands, target)
        if not isinstance(value, Reg):
            key = (name, source if source is value else value.type.name, ctx.register_class(target))
        self.add(key, operands, 0, lambda inner: body(inner, source, target))

    def plain(self, name: str, body: Callable[[Context], None]) -> None:
        """What ``body(ctx)`` emits, which has no operands; ``name`` tells it from others."""
        self.add(name, Operands(self.ctx), 0, body)

    def copy(self, source: Reg, target: Reg) -> None:
        """Copy a register to one of the same class; in which order with others before the next step is open."""
        start, end = self.ctx.offset_of(source), self.ctx.offset_of(target)
        if start != end:
            for part in range(0, self.ctx.bytes_of(target), PLACE):
                self._pairs += (start + part, end + part)

    def _copies(self) -> None:
        """A step for the copies so far."""
        if self._pairs:
            pairs, self._pairs = self._pairs, []
            self.control("places", len(pairs) // 2, *pairs)

    def _given(self, operands: Operands, value: Reg | Imm) -> Reg | Imm:
        """What a routine reads for a value: a register, or the value itself if it is too small to be an operand."""
        if isinstance(value, Reg):
            self._register(operands, value)
            return value
        return operands.immediate(value) if value.type.bits in OPERAND_BITS else value

    # -- operands

    def _register(self, operands: Operands, reg: Reg) -> int:
        return operands.register(reg, self.ctx.offset_of(reg))

    def _constant_or_number(self, operands: Operands, value: Operand | None) -> Hashable:
        """What the form of a routine has for a value that is read as a constant, or else as a register."""
        return self._register(operands, value) if isinstance(value, Reg) else value

    def _source(self, operands: Operands, op: Op, source: Operand, srcs: list[Operand], folded: bool) -> Hashable:
        """The form of a source operand; what the routine reads in its place is appended to ``srcs``."""
        if isinstance(source, Reg):
            srcs.append(source)
            return self._register(operands, source)
        if isinstance(source, Imm):
            given = source if folded else self._given(operands, source)
            srcs.append(given)
            return "imm" if given is not source else (source.bits, source.type.name)
        if isinstance(source, Vec):
            items: list[Operand] = []
            form = tuple(self._source(operands, op, item, items, folded) for item in source.items)
            srcs.append(Vec(tuple(items)))
            return form
        if isinstance(source, Addr):
            return self._address(operands, source, srcs)
        srcs.append(source)
        return source.name if isinstance(source, SReg) else (source.symbol, source.offset)

    def _address(self, operands: Operands, address: Addr, srcs: list[Operand]) -> Hashable:
        base = address.base
        if isinstance(base, Imm) or (isinstance(base, SymRef) and not isinstance(base.symbol, Variable)):
            srcs.append(address)
            return repr(address)
        if isinstance(base, SymRef):
            found = self._symbol(base, address.offset)
        elif address.offset:
            found = self._sum(base, address.offset)
        else:
            srcs.append(address)
            return "address", self._register(operands, base)
        srcs.append(Addr(found, 0))
        return "address", operands.register(found, self._place_of_temporary())

    def _scope(self, op: Op) -> Hashable:
        """What the routine takes from the function that it is made for."""
        items = [item for source in op.srcs if not isinstance(source, Reg) for item in items_of(source)]
        named = any(isinstance(item, SymRef) or (isinstance(item, SReg) and item.name == EXPLICIT_CLUSTER) for item in items)
        return self.ctx.layout if named or op.row is STACK_POINTER else None

    # -- addresses that are computed first

    def _temporary(self, kind: ScalarType, shape: Shape | None) -> Reg:
        assert self._temporaries < TEMPORARIES
        reg = Reg("address", kind)
        self.ctx.uniformity.known[reg] = shape
        self._temporaries += 1
        return reg

    def _place_of_temporary(self) -> int:
        return PLACE + (self._temporaries - 1) * TEMPORARY_BYTES

    def _sum(self, base: Reg, offset: int) -> Reg:
        """``base + offset`` in the width of the base."""
        kind = B64 if base.type.bits == 64 else B32
        found = self._temporary(kind, self.ctx.uniformity.shape(base))
        operands = Operands(self.ctx)
        self._register(operands, base)
        operands.register(found, self._place_of_temporary())
        number = operands.immediate(Imm(offset % (1 << kind.bits), kind))

        def body(ctx: Context) -> None:
            scalar = ctx.is_scalar(found)
            read = ctx.scalar_of if scalar else ctx.vector_of
            ctx.bind(found, (ctx.scalar if scalar else ctx.vector).bin("add", kind.llvm, read(base, kind), read(number, kind)))

        self.add(("sum", tuple(operands.classes)), operands, 0, body)
        return found

    def _symbol(self, symbol: SymRef, offset: int) -> Reg:
        """The address of a variable in its own space."""
        found = self._temporary(U64, self.ctx.uniformity.shape(symbol))
        operands = Operands(self.ctx)
        operands.register(found, self._place_of_temporary())
        key = ("symbol", symbol.symbol, symbol.offset + offset, self.ctx.layout)
        self.add(key, operands, 0, lambda ctx: ctx.bind(found, symbol_address(ctx, symbol, offset)))
        return found

    # -- records

    def add(self, key: Hashable, operands: Operands, pos: int, body: Callable[[RoutineContext], None]) -> None:
        """A step whose routine, the same for all of one key and how addresses are written, is what ``body`` emits."""
        key = self.ctx.unit.ranked, key
        if key not in self.ctx.unit.steps:
            self._compile(key, operands, body)
        self._record(key, operands.parts, pos)

    def _compile(self, key: Hashable, operands: Operands, body: Callable[[RoutineContext], None]) -> None:
        """Make the routine of a form."""
        name = f"step.{len(self.ctx.unit.steps)}"
        self._add_routine(key, name)
        ctx = RoutineContext(self.ctx, operands)
        body(ctx)
        self.ctx.helpers[name] = ctx.text(name)

    def _control_number(self, name: str) -> int:
        """The number of a routine of the runtime."""
        key = ("control", name)
        if key not in self.ctx.unit.steps:
            function = routine(name)
            self.ctx.declare(function, DECLARATION.format(function))
            self._add_routine(key, function)
        return self.ctx.unit.steps[key]

    def _add_routine(self, key: Hashable, name: str) -> None:
        """Number the routine for ``key``, which has this name."""
        self.ctx.unit.steps[key] = len(self.ctx.unit.routines)
        self.ctx.unit.routines.append(name)

    def _record(self, key: Hashable, parts: list[int], pos: int) -> None:
        if self._pairs:
            self._copies()
        self._words += (self.ctx.unit.steps[key], pos, *parts)


def _stores(op: Op) -> bool:
    """Whether an op writes registers to memory and does nothing else."""
    return [access.kind for access in op.effects.accesses] == ["write"] and bool(op.effects.accesses[0].data)
