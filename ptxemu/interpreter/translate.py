"""From the checker's IR to what the machine executes: for each instruction a function of the lanes that come to it.

Nothing is reordered, moved or removed.  Instructions that only compute are their lowerings, written once for each form
(:mod:`ptxemu.interpreter.elementwise`); the others have methods here, by the name of their lowering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.lane import SPLIT, YIELD, Lane, Step
from ptxemu.ir.numerics import Numerics
from ptxemu.ir.ops import MAILBOXES, Addr, Function, Imm, LabelMark, Op, Operand, Reg, SReg, SymRef, items_of
from ptxemu.ir.types import B32, B64, PRED, U64, ScalarType
from ptxemu.isa.table import CLUSTER
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.layout import STARTS, KernelLayout, align_up, place
from ptxemu.text.errors import UnsupportedError

Method = Callable[["Translator", Op], Step]
METHODS: dict[str, Method] = {}
FRAME_ALIGN = 16
WORD64 = (1 << 64) - 1
CARRY = Reg("%cc", PRED)

Reader = Callable[[Lane], int]
Writer = Callable[[Lane, int], None]


def method(*names: str) -> Callable[[Method], Method]:
    """Register ``fn(t, op) -> step`` for the rows with these lowerings."""

    def add(fn: Method) -> Method:
        for name in names:
            assert name not in METHODS, name
            METHODS[name] = fn
        return fn

    return add


GUARDED: set[str] = set()
"""Methods that look at the guard themselves."""


class Code:
    """A translated function.

    ``template`` are the registers and constants of a new frame, ``offsets`` the places of the variables in it, ``parameters``
    and ``results`` those of the formals.  ``frame_bytes`` is its size in local memory, ``align`` what it is aligned to,
    ``host_bytes`` roughly what it takes of the host's.  An open array parameter lies behind the frame, as long as what a call
    passes.  ``returning`` are the moves of results by where calls return to; ``ops`` the instructions of the steps, ``slots``
    where registers are, and ``labels`` where labels are.
    """

    def __init__(self, function: Function, number: int) -> None:
        self.function = function
        self.number = number
        self.steps: list[Step] = []
        self.ops: list[Op] = []
        self.slots: dict[Reg, int] = {}
        self.labels: dict[str, int] = {}
        self.template: list[int] = []
        formals = [] if function.kind == "entry" else [*(param.variable for param in function.params), *function.returns]
        own = [variable for variable in function.variables if variable.space in ("local", "param")]
        closed = [formal for formal in formals if None not in formal.dims]
        self.offsets, end = place(list(dict.fromkeys([*closed, *own])))
        self.align = max([FRAME_ALIGN, *(variable.align for variable in [*formals, *own])])
        self.frame_bytes = align_up(end, self.align)
        self.offsets |= {formal: self.frame_bytes for formal in formals if formal not in closed}
        self.parameters = [] if function.kind == "entry" else [self.offsets[param.variable] for param in function.params]
        self.results = [self.offsets[variable] for variable in function.returns]
        self.returning: dict[int, list[Callable[[Lane, int, Code], None]]] = {}

    @property
    def host_bytes(self) -> int:
        return 8 * len(self.template) + FRAME_ALIGN


def bits_of(kind: ScalarType) -> int:
    return (1 << kind.bits) - 1


class Translator:
    """Makes the code of one function from its body."""

    def __init__(
        self, code: Code, layout: KernelLayout, codes: dict[Function, Code], numerics: Numerics, ranked: bool = False
    ) -> None:
        self.code, self.layout, self.codes, self.numerics = code, layout, codes, numerics
        self.ranked = ranked  # addresses of shared memory name their CTA (ir/distributed.py)
        self.labels, self.slots = code.labels, code.slots
        self.constants: dict[int, int] = {}
        self.pos = code.function.pos  # of the instruction that is being translated

    def translate(self) -> None:
        assert self.code.function.body is not None
        for item in self.code.function.body:
            if isinstance(item, LabelMark):
                self.labels[item.name] = len(self.code.steps)
            else:
                self.pos = item.pos
                self._add(item, self._step(item))
        end = _end_of(self.code.function)
        self._add(end, METHODS["ret"](self, end))

    def _add(self, op: Op, step: Step) -> None:
        self.code.steps.append(step)
        self.code.ops.append(op)

    @property
    def after(self) -> int:
        """Where lanes go on after the instruction that is being translated."""
        return len(self.code.steps) + 1

    def _step(self, op: Op) -> Step:
        name = op.row.lower
        if name not in METHODS and name in ELEMENTWISE:
            from ptxemu.interpreter.elementwise import elementwise

            return elementwise(self, op)
        if name not in METHODS:
            raise UnsupportedError(f"instruction '{op.opcode}' is not supported by the interpreter")
        step = METHODS[name](self, op)
        return step if op.guard is None or name in GUARDED else self._guarded(op, step)

    def _guarded(self, op: Op, step: Step) -> Step:
        """The lanes whose guard holds execute the instruction."""
        holds, after = self.guard(op), self.after

        def guarded(warp: Any, group: list[Lane]) -> int | None:
            chosen = [lane for lane in group if holds(lane)]
            if len(chosen) == len(group):
                return step(warp, group)
            others = [lane for lane in group if lane not in chosen]
            result = step(warp, chosen) if chosen else None
            if result is None or result == YIELD:
                return result
            for lane in others:
                lane.pc = after
            return SPLIT

        return guarded

    def guard(self, op: Op) -> Callable[[Lane], bool]:
        assert op.guard is not None
        index, negated = self.slot(op.guard[0]), op.guard[1]
        return lambda lane: bool(lane.r[index]) != negated

    # -- registers and operands

    def slot(self, reg: Reg) -> int:
        if reg not in self.slots:
            self.slots[reg] = len(self.code.template)
            self.code.template.append(0)
        return self.slots[reg]

    def constant(self, value: int) -> int:
        """The slot of a constant."""
        if value not in self.constants:
            self.constants[value] = len(self.code.template)
            self.code.template.append(value)
        return self.constants[value]

    def reader(self, operand: Operand, kind: ScalarType) -> Reader:
        """How to read an operand as the bits of a type; wider registers are cut, narrower ones extended by zeros."""
        if isinstance(operand, Reg):
            index, mask = self.slot(operand), bits_of(kind)
            return (lambda lane: lane.r[index] & mask) if kind.bits < operand.type.bits else (lambda lane: lane.r[index])
        if isinstance(operand, Imm):
            value = operand.bits & bits_of(kind)
            return lambda lane: value
        if isinstance(operand, SReg):
            from ptxemu.interpreter.special import special

            read, mask = special(self, operand.name), bits_of(kind)
            return lambda lane: read(lane) & mask
        assert isinstance(operand, SymRef), operand
        address, mask = self.symbol(operand), bits_of(kind)
        return lambda lane: address(lane) & mask

    def readers(self, operand: Operand, kind: ScalarType | None) -> list[Reader]:
        """Of the elements of a vector, or of a single operand."""
        assert kind is not None
        return [self.reader(item, kind) for item in items_of(operand)]

    def operand(self, op: Op, name: str) -> Reader:
        """Of the operand of that name, as its instruction type; the value of ``!p``."""
        kind = op.type_of(name)
        assert kind is not None
        return self.predicate(op[name], op.negated(name)) if kind is PRED else self.reader(op[name], kind)

    def predicate(self, operand: Operand, negated: bool) -> Reader:
        read = self.reader(operand, PRED)
        return (lambda lane: read(lane) ^ 1) if negated else read

    def writer(self, reg: Reg | None, kind: ScalarType) -> Writer | None:
        """How to write the bits of a type to a register, which may be wider: extended as the type says."""
        if reg is None:
            return None
        index, mask = self.slot(reg), bits_of(reg.type)
        if reg.type.bits > kind.bits and kind.is_signed:
            sign = 1 << (kind.bits - 1)

            def extend(lane: Lane, value: int) -> None:
                lane.r[index] = ((value ^ sign) - sign) & mask

            return extend

        def write(lane: Lane, value: int) -> None:
            lane.r[index] = value & mask

        return write

    def result(self, op: Op) -> Writer | None:
        """Of the first result; None if there is none, or it is not written (``_``)."""
        return self.writers(op)[0] if op.dsts else None

    def writers(self, op: Op) -> list[Writer | None]:
        return [self.writer(dst, kind) for dst, kind in zip(op.dsts, op.dst_types, strict=True)]

    # -- addresses

    def access(self, op: Op, name: str) -> tuple[Reader, int]:
        """The address of an access, and the runtime's number of its space: one in the shared memory of a cluster is generic."""
        operand, space = op[name], op.access_of(name).space
        assert isinstance(operand, Addr), operand
        computed = isinstance(operand.base, Reg)
        if space == CLUSTER and computed:
            read = self.address(operand)
            return (lambda lane: lane.warp.windows.accessed(read(lane))), int(lib.PE_GENERIC)
        if self._in_mailbox(op, operand):
            space = "local"
        space = "shared" if space == CLUSTER else space  # a variable, or a number
        read = self.address(operand, space)
        code = int(getattr(lib, f"PE_{space.upper()}"))
        if self.ranked and space == "shared" and computed:
            return (lambda lane: lane.warp.windows.stripped(read(lane))), code
        return read, code

    def _in_mailbox(self, op: Op, operand: Addr) -> bool:
        """Whether it is a parameter of a device function, or of a call: those are in local memory."""
        base = operand.base
        if isinstance(base, SymRef):
            return base.symbol in self.code.offsets and base.symbol.space == "param"
        named = not MAILBOXES.isdisjoint(op.mods.values())
        return isinstance(base, Reg) and named and self.code.function.kind != "entry"

    def address(self, operand: Operand, space: str = "") -> Reader:
        """The address that an operand states, in its own space."""
        assert isinstance(operand, Addr), operand
        offset, base = operand.offset, operand.base
        if isinstance(base, SymRef):
            return self.symbol(SymRef(base.symbol, base.offset + offset), handles=False)
        if isinstance(base, Imm):
            value = base.bits + offset & WORD64
            return lambda lane: value
        kind = B64 if base.type.bits == 64 else B32
        read, mask = self.reader(base, kind), bits_of(kind)
        if kind is B32 and space in STARTS:
            start = STARTS[space]
            return lambda lane: nearest(getattr(lane.warp.w, start), read(lane) + offset)
        return lambda lane: read(lane) + offset & mask

    def symbol(self, symbol: SymRef, *, handles: bool = True) -> Reader:
        """The value of a symbol: its address in its space, or a surface's or texture's handle."""
        target, offset = symbol.symbol, symbol.offset
        if isinstance(target, Function):
            value = self.layout.module.function_address(target) + offset
            return lambda lane: value
        if handles and target in self.layout.module.handle_index:
            index = self.layout.module.handle_index[target]
            return lambda lane: int(ffi.cast("uint64_t *", lane.warp.w.handles)[index]) + offset
        if target in self.layout.shared:
            value = self.layout.shared[target] + offset & WORD64
            named = self.ranked and handles
            return (lambda lane: lane.warp.windows.field + value & WORD64) if named else (lambda lane: value)
        if target in self.code.offsets:
            value = self.code.offsets[target] + offset
            return lambda lane: lane.base + value & WORD64
        if target in self.layout.params:
            value = self.layout.params[target] + offset
            return lambda lane: lane.warp.w.param_base + value & WORD64
        value = self.layout.module.offsets[target] + offset
        if target.space == "const":
            return lambda lane: lane.warp.w.const_base + value & WORD64
        return lambda lane: lane.warp.w.global_base + value & WORD64

    def handle(self, operand: Operand) -> Reader:
        """The handle of a surface, texture or sampler: a variable's, a parameter's or a register's value."""
        if isinstance(operand, SymRef) and operand.symbol in self.layout.params:
            address = self.symbol(operand)
            return lambda lane: int(ffi.cast("uint64_t *", address(lane))[0])
        return self.reader(operand, U64)


def nearest(start: int, half: int) -> int:
    """The address that 32 bits are the low half of, nearest to the start of its window."""
    return start + (half - start + (1 << 31)) % (1 << 32) - (1 << 31) & WORD64


def write_all(writers: Iterable[Writer | None], lane: Lane, values: Iterable[int]) -> None:
    for write, value in zip(writers, values, strict=True):
        if write is not None:
            write(lane, value)


def _end_of(function: Function) -> Op:
    """What falling off the end of a body is: a return."""
    from ptxemu.isa.table import ROWS

    return Op(ROWS["ret"][0], {}, (), (), (), (), function.pos, function.pos)
