"""The state of lowering one kernel to LLVM IR text: names, types, slots, masks and basic blocks.

Everything is emitted as text into ``lines``.  A value that another block reads lives in a stack slot; LLVM's mem2reg turns
the slots into SSA form again, which also repairs dominance after linearization.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ptxemu.analysis.runs import expected_of
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block
from ptxemu.ir.ops import Imm, Op, Operand, Reg
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.lower.core.float_bits import canonical, flush
from ptxemu.lower.core.grouped import array_of, array_type, bases_of, lanes_of
from ptxemu.lower.core.journal import Journal, Noted
from ptxemu.lower.core.known import Lines, Pairs, Reach, SharedAccesses, SureTrips
from ptxemu.lower.core.lane_emitter import LaneEmitter
from ptxemu.lower.core.layout import KernelLayout
from ptxemu.lower.core.literals import literal, offsets_literal
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.masks import bits_of, expanded
from ptxemu.lower.core.scratch import Scratch, area, bytes_of
from ptxemu.lower.core.site import Value, site_literal, site_type

WORD = f"<{LANES} x i64>"
MASK = f"<{LANES} x i1>"
ALL_ON = f"<{', '.join(['i1 true'] * LANES)}>"
NOTING = {
    "pe_copy", "pe_bulk_copy", "pe_bulk_reduce", "pe_bulk_zero", "pe_tensor_load",
    "pe_tensor_multicast", "pe_tensor_store", "pe_tensor_replace",
    "pe_tensor_publish", "pe_red", "pe_set_condition",
}  # fmt: skip
"""Functions of the runtime that note a space of their own; what atomics note is what compiled code has noted for them."""
Memory = tuple[int, str]  # a mark of the journal, and the mask's bits


class Context:
    """Names and values of the function being lowered. ``scalar`` and ``vector`` emit one value or one per lane."""

    slot_block = "%slots"
    any_warp = "%w"
    """Of the CTA, for functions that only ask what all its warps have in common."""

    of_one_place = True  # in the text: what is known there holds, and what `site` makes is there for as long as the code is

    def __init__(self, uniformity: Uniformity, layout: KernelLayout, unit: Unit) -> None:
        self.uniformity = uniformity
        self.shape: Callable[[Operand], Shape | None] = uniformity.shape
        self.in_one_lane = False
        self.layout = layout
        self.unit = unit
        self.target = unit.target
        grouped = uniformity.grouped
        self.groups: Mapping[Reg, Shape] = grouped.shapes if grouped else {}  # what is kept by groups of lanes
        self.firsts = grouped.firsts if grouped else range(1)  # the first lane of each group
        self.expected = expected_of(uniformity)
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.prologue: list[str] = []
        self.declarations = unit.declarations
        self.constants = unit.constants
        self.helpers = unit.helpers
        self.counter = 0
        self.scalar = LaneEmitter(self, 0)
        self.vector = LaneEmitter(self, LANES)
        self.storage: dict[Reg, str] = {}
        self.slots: dict[Reg, str] = {}
        self.shared_regs: set[Reg] = set()
        self.journal = Journal()
        self.names: Noted[Reg, str] = self.journal.dictionary()
        self.common_values: dict[Reg, str] = {}  # of registers that are the same for all warps that the function runs
        self.vectors: Noted[Reg, str] = self.journal.dictionary()
        self.label = "entry"
        self.trip: Op | None = None  # of this block: its trips may be those of another loop (lower/core/trips.py)
        self.noted_space = ""  # that of the access under way, as the warp's record has it on every way here; "" if not known
        self.in_loop = False  # of the graph
        self.along_rows = False  # warps of blocks side by side may come one after another
        self.in_strides = False  # in a loop in which warps go through memory in strides, and read ahead
        self.abreast: tuple[str, str] | None = None  # in such a loop: by how many warps and trips what another one reads is ahead
        self.by_trips = False  # in a loop with strides and barriers, so that warps have the same trip one after another
        self.active = ""  # the current block's mask
        self.active_bits = ""  # the same as an i32, made on demand
        self.compared: dict[str, int] = {}  # masks that are comparisons, and are no masks yet: the bits of what they compare
        self.conjunctions: dict[str, tuple[str, str]] = {}  # masks that are a mask and a condition
        self._fields: dict[str, str] = {}
        self._wrapped: str | None = None
        self.call_bytes = 0  # of the largest call
        self.argument_bytes = 0  # of a device function: where the results begin in its block
        self.returned: str | None = None  # the slot of the lanes that have returned from it
        self.widenings: dict[Op, int] = {}  # the numbers of their slots
        self.corrections = ""  # where the slots are: 64 bits each, which the runtime writes once a widening has wrapped
        self.trusted: Collection[Op] = ()  # accesses that a test of their whole segment has covered
        self.reaches: dict[Reg, Reach] = {}  # what is known of memory at addresses in code of one lane, by their registers
        self.fenceless = False  # nothing releases what threads have done by atomics of shared memory (analysis/sums.py)
        self.local_word = 0  # of local memory whose words of all lanes lie side by side: their bytes (analysis/interleaving.py)
        self.strays: frozenset[Op] | None = None  # if nobody can tell when what atomics add comes to memory (analysis/sums.py)
        self.pairs = Pairs()
        self.held: Mapping[Reg, Lines] = {}  # in a loop, lines of the cache, by registers that hold where lanes are
        self.hulls: dict[tuple[Reg, str, int, int], tuple[int, int]] = {}  # of accesses that one test covers (runs.py)
        self.shared_accesses = SharedAccesses()
        self.sure = SureTrips()
        self.checking = False  # in the version of a segment that runs when that test has failed
        self.raw: set[Reg] = set()  # registers whose NaNs may not be canonical (analysis/nans.py)
        self.quiet: set[Reg] = set()  # ... and are no signaling ones
        self.canonical: Noted[tuple[Reg, bool], str] = self.journal.dictionary()
        self.scratch = Scratch()
        self.stored: Noted[tuple[int, str, str], str] = self.journal.dictionary()  # copies in scratch by epoch, type and value
        self.known: Noted[str, str] = self.journal.dictionary()  # values that ops of the block share, by what they are
        self.slots_used, self.slots_needed = 0, 0  # of slots (memory/fragments.py), in this block of code and in all
        self.home_slots: dict[str, int] = {}  # the numbers of slots by address
        self.homes: Noted[Operand, str] = self.journal.dictionary()  # all lanes of operands in memory (memory/fragments.py)

    # -- names, slots, blocks

    def fresh(self, stem: str = "v") -> str:
        self.counter += 1
        return f"%{stem}{self.counter}"

    def temporary(self, type: str) -> str:
        """The address of memory of an LLVM type until the op ends."""
        offset = self.scratch.take(bytes_of(type))
        return self.inst(f"getelementptr i8, ptr {self.scratch.name}, i64 {offset}")

    def alloca(self, type: str) -> str:
        """A slot of its own, which LLVM can make a register if its address goes nowhere."""
        name = self.fresh("slot")
        self.allocas.append(f"  {name} = alloca {type}, align 64")
        return name

    def call_block(self, size: int) -> str:
        """Memory for the arguments and results of a call. One block serves all calls: it is never in use twice."""
        self.call_bytes = max(self.call_bytes, size, 1)
        return "%calls"

    def all_allocas(self) -> list[str]:
        """The allocas of the function, whose first block they begin."""
        areas = [
            *area("%calls", self.call_bytes),
            *area(self.slot_block, self.slots_needed * 4 * LANES),
            *area(self.scratch.name, self.scratch.needed),
        ]
        return areas + self.allocas

    def stmt(self, text: str) -> None:
        self.lines.append("  " + text)

    def inst(self, text: str) -> str:
        return self.scalar.inst(text)

    def new_label(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label
        self.noted_space = ""

    def jump(self, label: str) -> None:
        self.stmt(f"br label %{label}")

    def declare(self, name: str, text: str) -> None:
        self.declarations.setdefault(name, text)

    def call(self, result: str, name: str, *args: tuple[str, str], attributes: str = "") -> str:
        """Call a runtime function with (type, value) arguments; returns the result's name ("" for void)."""
        self.declare(name, f"declare {result} @{name}({', '.join(t for t, _ in args)}) {attributes}".rstrip())
        text = f"call {result} @{name}({', '.join(f'{t} {v}' for t, v in args)})"
        if name in NOTING:
            self.noted_space = ""
        if result == "void":
            self.stmt(text)
            return ""
        return self.inst(text)

    def when(
        self,
        cond: str,
        then: Callable[[], Sequence[str]],
        otherwise: Callable[[], Sequence[str]] | None,
        types: Sequence[str],
        *,
        likely: bool | None = None,
    ) -> list[str]:
        """Emit ``cond ? then() : otherwise()``; both return one value for each of ``types``.

        ``otherwise`` None stands for zeros.  Values made inside are not remembered outside.
        """
        yes, no, join = self.new_label("yes"), self.new_label("no"), self.new_label("join")
        weights = {None: "", True: ", !prof !0", False: ", !prof !1"}[likely]
        zeros = ["zeroinitializer" if t.startswith("<") or t.startswith("{") else zero(t) for t in types]
        start, before = self.label, self.noted_space
        self.stmt(f"br i1 {cond}, label %{yes}, label %{no if otherwise else join}{weights}")
        outcomes, spaces = [], {before} if otherwise is None else set()
        for label, body in ((yes, then), (no, otherwise)):
            if body is None:
                outcomes.append((zeros, start))
                continue
            saved = self.remembered()
            self.start(label)
            self.noted_space = before
            values = list(body())
            outcomes.append((values, self.label))
            spaces.add(self.noted_space)
            self.jump(join)
            self.remember(saved)
        self.start(join)
        self.noted_space = spaces.pop() if len(spaces) == 1 else ""
        results = []
        for index, t in enumerate(types):
            pairs = ", ".join(f"[ {values[index]}, %{label} ]" for values, label in outcomes)
            results.append(self.inst(f"phi {t} {pairs}"))
        return results

    def leave_if(self, cond: str, leave: Callable[[], object]) -> None:
        """Where ``cond`` holds, which is rare, leave the kernel: the last that ``leave`` emits is a call that does not return."""
        out, on = self.new_label("leave"), self.new_label("on")
        self.stmt(f"br i1 {cond}, label %{out}, label %{on}, !prof !1")
        saved, space = self.remembered(), self.noted_space
        self.start(out)
        leave()
        self.stmt("unreachable")
        self.remember(saved)
        self.start(on)
        self.noted_space = space

    def remembered(self) -> Memory:
        """What the current LLVM block knows about values; code on one side of a branch must not add to the other."""
        return self.journal.mark(), self.active_bits

    def remember(self, memory: Memory) -> None:
        """Go back to what was known."""
        mark, self.active_bits = memory
        self.journal.undo(mark)

    def ways(self, cond: str, succs: Sequence[Block]) -> Iterator[Block]:
        """Branch on a condition: the successors, each with what is known before the branch, for code on the way to it."""
        labels = [self.new_label("edge") for _ in succs]
        self.stmt(f"br i1 {cond}, label %{labels[0]}, label %{labels[1]}")
        saved = self.remembered()
        for label, succ in zip(labels, succs):
            self.start(label)
            self.remember(saved)
            yield succ

    @contextmanager
    def one_lane(self, shape: Callable[[Operand], Shape | None], slots: dict[Reg, str]) -> Iterator[None]:
        """What is emitted inside is for one lane: values have other shapes there, all scalar, and are kept in ``slots``."""
        whole = self.shape, self.slots
        self.shape, self.slots, self.in_one_lane = shape, slots, True
        yield
        self.shape, self.slots = whole
        self.in_one_lane = False

    def settle(self) -> None:
        """Load what only the slots of fragments hold, so that they serve again. Not inside of a branch."""
        for operand in self.homes:
            if isinstance(operand, Reg):
                self.read(operand)
        self.homes.clear()
        self.home_slots.clear()
        self.slots_used = 0

    def forget(self) -> None:
        """At the start of a block nothing is known."""
        self.journal.clear()
        self.active_bits, self.trip = "", None
        self.slots_used = 0
        self.scratch.begin_block()

    def field(self, name: str) -> str:
        """A field of the warp structure, loaded once in the entry block."""
        if name not in self._fields:
            offset, kind = self.layout.warp_field(name)
            pointer, value = self.fresh("p"), f"%w.{name.replace('[', '.').replace(']', '')}"
            self.prologue.append(f"  {pointer} = getelementptr i8, ptr %w, i64 {offset}")
            self.prologue.append(f"  {value} = load {kind}, ptr {pointer}, align 4, !invariant.load !2")
            self._fields[name] = value
        return self._fields[name]

    def once(self, key: str, text: str) -> str:
        """A value computed once in the entry block from other such values."""
        if key not in self._fields:
            name = self.fresh("k")
            self.prologue.append(f"  {name} = {text}")
            self._fields[key] = name
        return self._fields[key]

    def at_entry(self, text: str) -> None:
        """A statement at the beginning of the function, which the warps that it runs in turn share."""
        self.prologue.append("  " + text)

    def kept(self, key: str, make: Callable[[], str]) -> str:
        """A value that ops of the same block share, which the first of them makes."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def constant(self, text: str) -> str:
        """The address of private constant data (``text`` is its LLVM type and initialiser)."""
        if text not in self.constants:
            self.constants[text] = f"@k{len(self.constants)}"
        return self.constants[text]

    def lane_offsets(self, shape: Shape, t: str) -> str:
        """The address of the offsets of a pattern, as integers of LLVM type ``t``."""
        return self.constant(f"<{LANES} x {t}> {offsets_literal(shape.offsets, t)}")

    def position(self, op: Op, space: int | None = None) -> str:
        """The source position of an op: an i32, or an i64 with a space's number in its upper half."""
        return str(op.pos if space is None else space << 32 | op.pos)

    def site(self, op: Op, struct: str, /, **fields: Value) -> str:
        """The address of what is constant about an op: a struct of the runtime, whose position is the op's."""
        return self.constant(f"{site_type(struct)} {site_literal(struct, {'pos': op.pos, **fields})}")

    # -- shapes and types

    def is_scalar(self, reg: Reg) -> bool:
        return self.shape(reg) is not None

    def is_uniform(self, operand: Operand) -> bool:
        shape = self.shape(operand)
        return shape is not None and shape.uniform

    def is_there(self, operand: Operand) -> bool:
        """Whether code can read an operand here that its op does not name."""
        held = self.names, self.common_values
        return not isinstance(operand, Reg) or any(operand in values for values in held) or self.outlives_block(operand)

    def storage_type(self, reg: Reg) -> str:
        return self.storage.get(reg, f"i{reg.type.bits}")

    def full_type(self, reg: Reg) -> str:
        scalar = self.storage_type(reg)
        if self.is_grouped(reg):
            return array_type(scalar, len(self.firsts))
        return (self.scalar if self.is_scalar(reg) else self.vector).ty(scalar)

    def is_grouped(self, operand: Operand) -> bool:
        """Whether a register has one base for each group of lanes (:mod:`ptxemu.analysis.grouped`)."""
        return operand in self.groups and not self.in_one_lane

    def convert(self, value: str, source: str, target: str, vector: bool) -> str:
        """Reinterpret between LLVM scalar types of one width (or the lanes of vectors of them)."""
        emitter = self.vector if vector else self.scalar
        return emitter.cast("bitcast", source, value, target)

    # -- reading values

    def read(self, reg: Reg) -> str:
        """The value of a register as stored: a scalar base, an array of those of groups, or a vector."""
        if reg in self.common_values:
            return self.common_values[reg]
        if reg not in self.names:
            home = self.homes.get(reg) or self.slot(reg)
            self.names[reg] = self.inst(f"load {self.full_type(reg)}, ptr {home}, align 64")
        return self.names[reg]

    def outlives_block(self, reg: Reg) -> bool:
        """Whether a register must be stored, as others than its own block read it."""
        return reg in self.shared_regs

    def slot(self, reg: Reg) -> str:
        if reg not in self.slots:
            self.slots[reg] = self.alloca(self.full_type(reg))
        return self.slots[reg]

    def scalar_of(self, operand: Operand, kind: ScalarType, *, raw: bool = False) -> str:
        """A uniform operand, or the base of a pattern, as an LLVM scalar of type ``kind.llvm``.

        ``raw``: any NaN will do (:mod:`ptxemu.analysis.nans`).
        """
        if isinstance(operand, Imm):
            return literal(operand.bits, kind)
        assert isinstance(operand, Reg), operand
        value = self.read(operand)
        if operand in self.raw and not raw:
            value = self._canonical(operand, value, False)
        return self._narrow(value, self.storage_type(operand), operand.type.bits, kind, False)

    def vector_of(self, operand: Operand, kind: ScalarType, *, raw: bool = False) -> str:
        """An operand as one value per lane of type ``kind.llvm``; ``raw`` as in :meth:`scalar_of`."""
        if isinstance(operand, Imm):
            return self.vector.splat(kind.llvm, literal(operand.bits, kind))
        assert isinstance(operand, Reg), operand
        if not self.is_scalar(operand) and not self.is_grouped(operand):
            value = self.read(operand)
        else:
            if operand not in self.vectors:
                self.vectors[operand] = self.spread(operand)
            value = self.vectors[operand]
        if operand in self.raw and not raw:
            value = self._canonical(operand, value, True)
        return self._narrow(value, self.storage_type(operand), operand.type.bits, kind, True)

    def _canonical(self, reg: Reg, value: str, vector: bool) -> str:
        """The value of a raw register with its NaNs made canonical, and its subnormals flushed if that has waited; kept for the
        block."""
        if (reg, vector) not in self.canonical:
            emitter = self.vector if vector else self.scalar
            value = self.convert(value, self.storage_type(reg), "float", vector)
            if self.unit.daz:
                value = flush(emitter, "float", value)
            value = canonical(emitter, "float", value)
            self.canonical[reg, vector] = self.convert(value, "float", self.storage_type(reg), vector)
        return self.canonical[reg, vector]

    def narrow(self, value: str, reg: Reg, kind: ScalarType) -> str:
        """A scalar of a register as type ``kind.llvm``."""
        return self._narrow(value, self.storage_type(reg), reg.type.bits, kind, False)

    def _narrow(self, value: str, stored: str, bits: int, kind: ScalarType, vector: bool) -> str:
        emitter = self.vector if vector else self.scalar
        if kind.bits == bits:
            return self.convert(value, stored, kind.llvm, vector)
        value = self.convert(value, stored, f"i{bits}", vector)
        value = emitter.cast("trunc" if kind.bits < bits else "zext", f"i{bits}", value, f"i{kind.bits}")
        return self.convert(value, f"i{kind.bits}", kind.llvm, vector)

    def splat(self, t: str, value: str) -> str:
        """A scalar in every lane."""
        return self.vector.of_all(t, value)

    def spread(self, reg: Reg) -> str:
        """All lanes of a register that is kept as one base, or as those of groups."""
        t = self.storage_type(reg)
        if self.is_grouped(reg):
            shape = self.groups[reg]
            value = lanes_of(self, t, bases_of(self, reg, reg.type), shape.offsets)
            return self.corrected(value, shape) if shape.widenings else value
        found = self.shape(reg)
        assert found is not None
        value = self.splat(t, self.read(reg))
        if any(found.offsets):
            value = self.vector.bin("add", t, value, offsets_literal(found.offsets, t))
        return self.corrected(value, found) if found.widenings else value

    def corrected(self, value: str, shape: Shape) -> str:
        """Add the corrections of a 64-bit pattern whose widening wrapped in some lane."""

        def add() -> list[str]:
            place = self.spill("i64", value)
            for widening, factor in shape.widenings:
                self.correct(place, widening, factor)
            return [self.inst(f"load {WORD}, ptr {place}, align 64")]

        return self.when(self.wrapped(), add, lambda: [value], [WORD], likely=False)[0]

    def correct(self, place: str, widening: Op, factor: int) -> None:
        """Add the corrections of a widening, times a factor, to the values of all lanes in memory, if one has wrapped."""
        kept = self.inst(f"getelementptr i64, ptr {self.corrections}, i64 {self.widenings[widening]}")
        wrapped = self.scalar.cast("zext", "i1", self.wrapped(), "i32")
        self.call("void", "pe_correct", ("ptr", place), ("ptr", kept), ("i64", str(factor)), ("i32", wrapped), attributes="cold")

    def wrapped(self) -> str:
        """The sticky flag: some widening of a pattern has wrapped in this warp."""
        return self.inst(f"load i1, ptr {self.wrapped_slot()}, align 1")

    def set_wrapped(self) -> None:
        self.stmt(f"store i1 true, ptr {self.wrapped_slot()}, align 1")

    def wrapped_slot(self) -> str:
        if self._wrapped is None:
            self._wrapped = self.alloca("i1")
            self.prologue.append(f"  store i1 false, ptr {self._wrapped}, align 1")
        return self._wrapped

    # -- writing values

    def bind(self, reg: Reg, value: str) -> None:
        """Give a register its value (already of its full type)."""
        self.names[reg] = value
        if self.outlives_block(reg):
            self.stmt(f"store {self.full_type(reg)} {value}, ptr {self.slot(reg)}, align 64")

    def define(self, op: Op, index: int, value: str) -> None:
        """Write destination ``index`` of ``op``; ``value`` has LLVM type ``dst_types[index].llvm``, scalar or vector.

        Extends to the register's width, and keeps the old value where the guard is false.
        """
        reg, kind = op.dsts[index], op.dst_types[index]
        if reg is None:
            return
        vector = not self.is_scalar(reg)
        emitter = self.vector if vector else self.scalar
        stored = self.storage_type(reg)
        if kind.bits != reg.type.bits:
            value = self.convert(value, kind.llvm, f"i{kind.bits}", vector)
            extend = "sext" if kind.is_signed else "zext"
            extend = extend if kind.bits < reg.type.bits else "trunc"
            value = emitter.cast(extend, f"i{kind.bits}", value, f"i{reg.type.bits}")
            value = self.convert(value, f"i{reg.type.bits}", stored, vector)
        else:
            value = self.convert(value, kind.llvm, stored, vector)
        if op.guard is not None:
            value = self._keep_old(op, index, value, stored, vector)
        self.bind(reg, value)

    def define_same(self, op: Op, index: int, value: str) -> None:
        """Write the same scalar ``value`` to all lanes of destination ``index``."""
        reg = op.dsts[index]
        if reg is not None:
            self.define(op, index, value if self.is_scalar(reg) else self.splat(op.dst_types[index].llvm, value))

    def _keep_old(self, op: Op, index: int, value: str, stored: str, vector: bool) -> str:
        assert op.guard is not None
        old = op.old[index]
        assert isinstance(old, (Reg, Imm))
        guard = self.guard(op, vector)
        bits = old.type.bits
        if vector:
            kept = self.vector_of(old, old.type)
        else:
            kept = self.scalar_of(old, old.type)
        kept = self.convert(kept, old.type.llvm, stored, vector) if bits > 1 else kept
        return (self.vector if vector else self.scalar).select(guard, stored, value, kept)

    def guard(self, op: Op, vector: bool) -> str:
        """The guard of an op as i1 (uniform) or a mask."""
        assert op.guard is not None
        return self.predicate(op.guard[0], op.guard[1], vector)

    def predicate(self, reg: Operand, negated: bool, vector: bool) -> str:
        emitter = self.vector if vector else self.scalar
        value = self.vector_of(reg, PRED) if vector else self.scalar_of(reg, PRED)
        return emitter.bin("xor", "i1", value, emitter.int(1, 1)) if negated else value

    def handed_over(self, value: Reg | Imm, phi: Reg) -> str:
        """What an edge hands over to a phi: its argument as the phi's result is stored."""
        if self.is_grouped(phi):
            return array_of(self, self.storage_type(phi), bases_of(self, value, phi.type))
        vector = not self.is_scalar(phi)
        kind = value.type if value.type.bits == phi.type.bits else phi.type
        raw = phi in self.raw
        found = self.vector_of(value, kind, raw=raw) if vector else self.scalar_of(value, kind, raw=raw)
        return self.convert(found, kind.llvm, self.storage_type(phi), vector)

    # -- masks

    def mask_of(self, op: Op) -> str:
        """The lanes in which ``op`` takes effect."""
        if op.guard is None:
            return self.active
        if self.is_uniform(op.guard[0]):
            return self.inst(f"select i1 {self.guard(op, False)}, {MASK} {self.active}, {MASK} zeroinitializer")
        return self.conjunction(self.active, self.guard(op, True))

    def conjunction(self, mask: str, cond: str) -> str:
        """``mask and cond``; a select, because the condition may be poison in lanes that are off."""
        made = self.inst(f"select {MASK} {mask}, {MASK} {cond}, {MASK} zeroinitializer")
        if cond in self.compared:
            self.conjunctions[made] = mask, cond
        return made

    def bits_of(self, mask: str) -> str:
        """A mask as an i32."""
        if mask == self.active:
            if not self.active_bits:
                self.active_bits = bits_of(self, mask)
            return self.active_bits
        return bits_of(self, mask)

    def any(self, mask: str) -> str:
        return self.scalar.icmp("ne", f"i{LANES}", self.bits_of(mask), "0")

    def mask_from_bits(self, bits: str, width: int = 8) -> str:
        """A mask of elements of ``width`` bits from bits in an i32."""
        return expanded(self.target, self.inst, bits, width)

    def spill(self, t: str, value: str) -> str:
        """The address of a copy in memory of a vector of LLVM scalar type ``t``, until the op ends."""
        slot = self.temporary(self.vector.ty(t))
        self.stmt(f"store {self.vector.ty(t)} {value}, ptr {slot}, align 64")
        return slot

    def in_memory(self, t: str, value: str) -> str:
        """The same for callees that only read; not made again while it lasts."""
        key = (self.scratch.epoch, t, value)
        if key not in self.stored:
            self.stored[key] = self.spill(t, value)
        return self.stored[key]


def keep_in_memory(slot: str) -> str:
    """Makes LLVM keep a slot in memory: its address escapes, as far as LLVM can tell."""
    return f'  call void asm sideeffect "", "r,~{{memory}}"(ptr {slot})'


def zero(t: str) -> str:
    """The zero literal of a scalar LLVM type."""
    if t in ("float", "double"):
        return "0.0"
    return {"half": "0xH0000", "i1": "false", "ptr": "null"}.get(t, "0")
