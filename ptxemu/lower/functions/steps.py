"""Threaded code: tables of steps, each a call of a routine that is compiled once for all instructions of one form.

The time to compile an instruction inline is that of its LLVM instructions; a step is a record of constant data.  A *routine*
does what the instruction's ordinary lowering says, on registers in memory: ``void routine(ptr w, ptr frame, i32 mask,
ptr step)``.  What differs between instructions of one form is in the step: their source position, the offsets of their
registers in the frame, their immediate values.

A step is an array of 64-bit words: the routine, then 32-bit parts: the step's size in bytes, the position, the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec.structs import replace

from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, SReg, SymRef, Variable, Vec, items_of
from ptxemu.ir.types import B32, B64, U64, ScalarType
from ptxemu.lower.core.access import symbol_address
from ptxemu.lower.core.context import MASK, Context
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.literals import array
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.site import Value, site_literal, site_type
from ptxemu.passes.internal import STACK_POINTER

HEADER = 16  # bytes of a step before its operands
POSITION = 12
PLACE = 64  # bytes: the least size of a register's place, and its alignment
TEMPORARIES = 4  # addresses on their way to an access, at the start of a frame behind a place for the function's own use
TEMPORARY_BYTES = 8 * LANES
REGISTERS = PLACE + TEMPORARIES * TEMPORARY_BYTES  # where they may start
NOWHERE = 8  # a place for masks that nobody reads
# Rows whose lowering looks at an immediate operand when it is lowered.
FOLDED = {"lop3", "prmt"}
OPERAND_BITS = {8, 16, 32, 64}  # of immediate values that a step can hold

RUN = """define internal void @steps(ptr %w, ptr %frame, i32 %mask, ptr %first, ptr %end) noinline nounwind {
entry:
  br label %loop
loop:
  %step = phi ptr [ %first, %entry ], [ %next, %loop ]
  %routine = load ptr, ptr %step, align 8
  call void %routine(ptr %w, ptr %frame, i32 %mask, ptr %step)
  %size.at = getelementptr i8, ptr %step, i64 8
  %size = load i32, ptr %size.at, align 8
  %next = getelementptr i8, ptr %step, i32 %size
  %more = icmp ne ptr %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}"""

# A step of pairs of places: what is in the first goes to the second.
COPY = """define internal void @copy(ptr %w, ptr %frame, i32 %mask, ptr %step) nounwind {
entry:
  %size.at = getelementptr i8, ptr %step, i64 8
  %size = load i32, ptr %size.at, align 8
  %end = getelementptr i8, ptr %step, i32 %size
  %first = getelementptr i8, ptr %step, i64 16
  br label %loop
loop:
  %pair = phi ptr [ %first, %entry ], [ %next, %loop ]
  %from = load i32, ptr %pair, align 8
  %to.at = getelementptr i8, ptr %pair, i64 4
  %to = load i32, ptr %to.at, align 4
  %source = getelementptr i8, ptr %frame, i32 %from
  %target = getelementptr i8, ptr %frame, i32 %to
  %value = load <16 x i32>, ptr %source, align 64
  store <16 x i32> %value, ptr %target, align 64
  %next = getelementptr i8, ptr %pair, i64 8
  %more = icmp ne ptr %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}"""

# The lanes of a computed branch part ways. Each edge has the range of its steps and the place of the lanes that wait at its end.
# Returns the number of the edge if all lanes took the same, else -1.
SCATTER = f"""define internal i32 @scatter(ptr %w, ptr %frame, i32 %mask, ptr %indices,
    i32 %last, ptr %table, ptr %edges, ptr %steps) noinline nounwind {{
entry:
  %values = load <{LANES} x i32>, ptr %indices, align 64
  br label %loop
loop:
  %left = phi i32 [ %mask, %entry ], [ %rest, %sent ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %index = extractelement <{LANES} x i32> %values, i32 %lane
  %first = insertelement <{LANES} x i32> poison, i32 %index, i64 0
  %all = shufflevector <{LANES} x i32> %first, <{LANES} x i32> poison, <{LANES} x i32> zeroinitializer
  %equal = icmp eq <{LANES} x i32> %values, %all
  %bits = bitcast {MASK} %equal to i{LANES}
  %same = and i32 %bits, %left
  %rest = xor i32 %left, %same
  %outside = icmp ugt i32 %index, %last
  %entry.number = select i1 %outside, i32 %last, i32 %index
  %number.at = getelementptr i32, ptr %table, i32 %entry.number
  %number = load i32, ptr %number.at, align 4
  %edge = getelementptr [3 x i32], ptr %edges, i32 %number
  %begin = load i32, ptr %edge, align 4
  %end.at = getelementptr i32, ptr %edge, i32 1
  %end = load i32, ptr %end.at, align 4
  %place.at = getelementptr i32, ptr %edge, i32 2
  %place = load i32, ptr %place.at, align 4
  %some = icmp ne i32 %begin, %end
  br i1 %some, label %hand, label %sent
hand:
  %begin.at = getelementptr i8, ptr %steps, i32 %begin
  %behind = getelementptr i8, ptr %steps, i32 %end
  call void @steps(ptr %w, ptr %frame, i32 %same, ptr %begin.at, ptr %behind)
  br label %sent
sent:
  %slot = getelementptr i8, ptr %frame, i32 %place
  %waiting = load i32, ptr %slot, align 4
  %more = or i32 %waiting, %same
  store i32 %more, ptr %slot, align 4
  %again = icmp ne i32 %rest, 0
  br i1 %again, label %loop, label %done
done:
  %together = icmp eq i32 %same, %mask
  %result = select i1 %together, i32 %number, i32 -1
  ret i32 %result
}}"""


class FrameContext(Context):
    """A function whose registers lie in a frame, at ``offsets``."""

    def __init__(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        super().__init__(uniformity, layout, unit)
        self.offsets: dict[Reg, int] = {}
        self._form_of: dict[Reg, int] = {}

    def form(self, reg: Reg) -> int:
        """A number for all that a routine must know of a register: equal for registers that can take each other's place."""
        found = self._form_of.get(reg)
        if found is None:
            shape = self.uniformity.shape(reg)
            facts = (reg.type.name, shape and shape.offsets, self.storage_type(reg), reg in self.raw)
            found = self._form_of[reg] = self.unit.forms.setdefault(facts, len(self.unit.forms))
        return found

    def slot(self, reg: Reg) -> str:
        return self.inst(f"getelementptr i8, ptr %frame, i64 {self.offsets[reg]}")

    def bits_of(self, mask: str) -> str:
        return mask if mask == self.active_bits else super().bits_of(mask)


class RoutineContext(Context):
    """The routine of a step: its registers and immediate values are where the step's operands say."""

    def __init__(self, caller: Context, operands: Operands) -> None:
        super().__init__(caller.uniformity, caller.layout, caller.unit)
        self.storage, self.raw = caller.storage, caller.raw
        self.active, self.active_bits = "%active", "%mask"
        self.prologue.append(f"  %active = bitcast i32 %mask to {MASK}")
        if caller.layout.framed:
            self.prologue.append("  %stack = load i64, ptr %frame, align 64")
        for index, item in enumerate(operands.items):
            at = self._operand(operands.places[index])
            if isinstance(item, Imm):
                self.prologue.append(f"  %imm{index} = load i{item.type.bits}, ptr {at}, align 4")
                self.names[operands.stand_ins[index]] = f"%imm{index}"
                continue
            self.prologue.append(f"  %offset{index} = load i32, ptr {at}, align 4")
            self.prologue.append(f"  %place{index} = getelementptr i8, ptr %frame, i32 %offset{index}")
            self.slots[item] = f"%place{index}"
            self.shared_regs.add(item)

    def _operand(self, part: int) -> str:
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
        head = f'define internal void @{name}({parameters}) nounwind "probe-stack"="inline-asm" {{\nentry:'
        parts = [head, *self.all_allocas(), *self.prologue, "  br label %body", "body:", *self.lines, "  ret void", "}"]
        return "\n".join(parts)


class Operands:
    """The registers and immediate values of a step, in the order of their first mention."""

    def __init__(self, caller: FrameContext) -> None:
        self.caller = caller
        self.items: list[Reg | Imm] = []
        self.places: list[int] = []  # the part of the step that holds each
        self.parts: list[int] = []
        self.stand_ins: dict[int, Reg] = {}
        self.numbers: dict[Reg, int] = {}
        self.forms: list[Hashable] = []

    def register(self, reg: Reg, offset: int) -> int:
        """The number of a register."""
        number = self.numbers.get(reg)
        if number is None:
            number = self.numbers[reg] = len(self.items)
            self.items.append(reg)
            self.places.append(len(self.parts))
            self.parts.append(offset)
            self.forms.append(self.caller.form(reg))
        return number

    def immediate(self, imm: Imm) -> Reg:
        """A register that stands for an immediate value of one of OPERAND_BITS."""
        number = len(self.items)
        self.items.append(imm)
        self.places.append(len(self.parts))
        self.parts.append(imm.bits & 0xFFFFFFFF)
        if imm.type.bits > 32:
            self.parts.append(imm.bits >> 32)
        self.forms.append(imm.type.name)
        stand_in = self.stand_ins[number] = Reg(f"imm{number}", imm.type)
        return stand_in


class Steps:
    """Collects the steps of a run of instructions; :meth:`flush` emits the call that executes them."""

    def __init__(self, ctx: FrameContext, lower: Callable[[Context, Op], None]) -> None:
        self.ctx = ctx
        self.lower = lower
        self.words: list[str] = []
        self._pairs: list[str] = []  # of places, to copy before the next step
        self._temporaries = 0

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
            self._scope(op), tuple(operands.forms),
        )  # fmt: skip
        self._add(key, operands, op.pos, lambda ctx: self.lower(ctx, replace(op, srcs=tuple(srcs))))

    def special(self, form: str, body: Callable[..., None], value: Reg | Imm, target: Reg) -> None:
        """What ``body(ctx, value, target)`` emits; ``form`` is a name for it."""
        ctx = self.ctx
        if isinstance(value, Reg):  # most are, and there may be one for each value and edge
            key: Hashable = (form, ctx.form(value), ctx.form(target))
            if key in ctx.unit.steps:
                self._record(key, [ctx.offsets[value], ctx.offsets[target]], 0)
                return
        operands = Operands(ctx)
        source = self._given(operands, value)
        self._register(operands, target)
        if not isinstance(value, Reg):
            key = (form, source if source is value else value.type.name, ctx.form(target))
        self._add(key, operands, 0, lambda inner: body(inner, source, target))

    def copy(self, source: Reg, target: Reg, size: int) -> None:
        """Copy a register of ``size`` bytes to one of the same form; in which order with others before the next step is open."""
        start, end = self.ctx.offsets[source], self.ctx.offsets[target]
        if start != end:
            self._pairs += [str(start + part | end + part << 32) for part in range(0, size, PLACE)]

    def _copies(self) -> None:
        """A step for the copies so far."""
        pairs, self._pairs = self._pairs, []
        if pairs:
            self.ctx.helpers["copy"] = COPY
            self.words += ["ptrtoint (ptr @copy to i64)", str(HEADER + 8 * len(pairs)), *pairs]

    def _given(self, operands: Operands, value: Reg | Imm) -> Reg | Imm:
        """What a routine reads for a value: a register, or the value itself if it is too small to be an operand."""
        if isinstance(value, Reg):
            self._register(operands, value)
            return value
        return operands.immediate(value) if value.type.bits in OPERAND_BITS else value

    # -- operands

    def _register(self, operands: Operands, reg: Reg) -> int:
        return operands.register(reg, self.ctx.offsets[reg])

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
        return source.name if isinstance(source, SReg) else (id(source.symbol), source.offset)

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
        symbols = any(isinstance(item, SymRef) for source in op.srcs for item in items_of(source))
        return id(self.ctx.layout) if symbols or op.row is STACK_POINTER else None

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

        self._add(("sum", tuple(operands.forms)), operands, 0, body)
        return found

    def _symbol(self, symbol: SymRef, offset: int) -> Reg:
        """The address of a variable in its own space."""
        found = self._temporary(U64, self.ctx.uniformity.shape(symbol))
        operands = Operands(self.ctx)
        operands.register(found, self._place_of_temporary())
        key = ("symbol", id(symbol.symbol), symbol.offset + offset, id(self.ctx.layout))
        self._add(key, operands, 0, lambda ctx: ctx.bind(found, symbol_address(ctx, symbol, offset)))
        return found

    # -- records

    def _add(self, key: Hashable, operands: Operands, pos: int, body: Callable[[Context], None]) -> None:
        if key not in self.ctx.unit.steps:
            self._compile(key, operands, body)
        parts = operands.parts
        self._record(key, parts if len(parts) % 2 == 0 else [*parts, 0], pos)

    def _compile(self, key: Hashable, operands: Operands, body: Callable[[Context], None]) -> None:
        """Make the routine of a form."""
        routines = self.ctx.unit.steps
        name = f"step.{len(routines)}"
        ctx = RoutineContext(self.ctx, operands)
        body(ctx)
        self.ctx.helpers[name] = ctx.text(name)
        routines[key] = f"ptrtoint (ptr @{name} to i64)"

    def _record(self, key: Hashable, parts: list[int], pos: int) -> None:
        if self._pairs:
            self._copies()
        words = self.words
        words.append(self.ctx.unit.steps[key])
        words.append(str(HEADER + 4 * len(parts) | pos << 32))
        for index in range(0, len(parts), 2):
            words.append(str(parts[index] | parts[index + 1] << 32))

    def take(self) -> list[str]:
        """The words of the steps collected so far, which are forgotten."""
        self._copies()
        words, self.words = self.words, []
        return words

    def flush(self, bits: str) -> None:
        """Emit the call that executes the steps collected so far, for the lanes in ``bits``."""
        words = self.take()
        if not words:
            return
        self.ctx.helpers["steps"] = RUN
        count = len(words)
        table = self.ctx.constant(array("i64", words))
        end = f"getelementptr (i8, ptr {table}, i64 {8 * count})"
        self.ctx.stmt(f"call void @steps(ptr %w, ptr %frame, i32 {bits}, ptr {table}, ptr {end})")


def _stores(op: Op) -> bool:
    """Whether an op writes registers to memory and does nothing else."""
    return [access.kind for access in op.effects.accesses] == ["write"] and bool(op.effects.accesses[0].data)
