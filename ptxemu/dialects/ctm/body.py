"""The instructions of a CTM kernel: what the two units compute, and which registers, predicate bits and targets get it."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ptxemu.check.modifiers import Form
from ptxemu.dialects.build import Builder, Guard
from ptxemu.dialects.ctm.arithmetic import Arithmetic
from ptxemu.dialects.ctm.ast import Instruction, Name, Part, Source
from ptxemu.dialects.ctm.lower import LOAD
from ptxemu.dialects.ctm.operands import (
    OUT,
    PRED,
    Destination,
    Unit,
    destinations,
    form_of,
    input_number,
    selects,
    unit_of,
)
from ptxemu.dialects.ctm.output import ALL, Output, Write, target_span
from ptxemu.dialects.ctm.registers import Registers
from ptxemu.dialects.ctm.table import DISABLED
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Reg, SymRef, Variable
from ptxemu.ir.types import B32, U64

ALPHA = 3
Warn = Callable[[str, int, int], None]


class Work(Struct):
    """A part of an instruction: what it is, what it writes, what it has computed."""

    part: Part
    form: Form
    unit: Unit
    writes: dict[str, Destination]
    values: dict[int, Reg]


class Input(Struct, frozen=True):
    """An input; ``neighbours``: it is LINEAR_INP_2X2."""

    surface: Variable
    neighbours: bool


class Kernel:
    """A kernel being read."""

    def __init__(self, body: Builder, kind: str, options: dict[str, str], warn: Warn) -> None:
        self.body = body
        self.arithmetic = Arithmetic(body, options["choice_nan"] == "any")
        self.registers = Registers(body, self.arithmetic)
        self.output = Output(self.registers, kind, int(options["umrt_group"]))
        self.inputs: dict[int, Input] = {}
        self.files: list[tuple[Name, Variable]] = []
        self.params: set[str] = set()
        self.last: Instruction | None = None
        self.given: set[str] = set()  # registers whose first value is known
        self._warn = warn
        self._reads: list[tuple[Variable, Name]] = []

    def instruction(self, item: Instruction) -> None:
        kind = item.kind.text if item.kind else "ALU"
        self.last = item
        self.body.at(item.pos, item.end)
        _check_units(item)
        works = [self._work(kind, part) for part in item.parts]
        if kind == "OUTPUT":
            self._check_output(works)
        for work in works:
            self.body.at(work.part.name.pos, work.part.end)
            self._compute(work)
        self.body.at(item.pos, item.end)
        for work in works:
            if "temporary" in work.writes:
                self._write_temporary(work)
        if kind == "OUTPUT":
            self._send(works, item)
        for work in works:
            if PRED in work.writes:
                self._write_predicate(work)

    def _work(self, kind: str, part: Part) -> Work:
        form, unit = form_of(kind, part), unit_of(part)
        writes = destinations(part.operands[0], unit, kind) if part.operands else {}
        if PRED in writes and "test" not in form.mods:
            raise TextError("a write of pred needs a test, such as .PRED_OP_EQUAL", part.name.pos, part.name.end)
        if "test" in form.mods and PRED not in writes:
            raise TextError(f".{form.mods['test']} needs the destination pred", part.name.pos, part.name.end)
        if part.opcode == "MOV" and form.mods["omod"] == DISABLED and "CLAMP" in form.mods:
            raise TextError("a MOV that clamps cannot disable the output modifier", part.name.pos, part.name.end)
        return Work(part, form, unit, writes, {})

    # ------------------------------------------------------------ computing

    def _compute(self, work: Work) -> None:
        if work.part.opcode == "TEX":
            self._texture(work)
            return
        wanted = sorted({channel for target in work.writes.values() for channel in target.channels})
        if "W_OMASK" in work.form.mods:
            wanted = sorted({*wanted, ALPHA})
        sources = [(selects(operand, work.unit), _source_name(operand)) for operand in work.part.operands[1:]]
        for channel in wanted:
            values = [self.registers.read(found[channel], name) for found, name in sources]
            work.values[channel] = self.arithmetic.result(work.form, values)

    def _texture(self, work: Work) -> None:
        """A read of an input at the whole part of the coordinates in red and green of the source."""
        part = work.part
        number, name = input_number(part.operands[2])
        if number not in self.inputs:
            raise TextError(f"input {number} is not declared: give it by .input", name.pos, name.end)
        where = selects(part.operands[1], work.unit)
        x, y = (self.registers.read(where[channel], name) for channel in range(2))
        found = self.inputs[number]
        loaded = tuple(self.body.temp("b32") for _ in range(4))
        mods = {"2x2": "2x2"} if found.neighbours else {}
        self.body.add(LOAD, mods, loaded, (SymRef(found.surface, 0), x, y), (B32,) * 4, (U64, B32, B32))
        work.values = dict(enumerate(loaded))
        self._reads.append((found.surface, part.name))

    # ------------------------------------------------------------ writing

    def _gates(self, work: Work, target: Destination) -> dict[int, Guard | None]:
        return {channel: self.registers.gate(work.form.mods, channel) for channel in target.channels}

    def _write_temporary(self, work: Work) -> None:
        target = work.writes["temporary"]
        registers = self.registers.temporary(target.number)
        for channel, gate in self._gates(work, target).items():
            self.body.emit("mov.b32", registers[channel], work.values[channel], guard=gate)

    def _write_predicate(self, work: Work) -> None:
        """The old predicate gates what a temporary takes, never the predicate itself (guide, section 3.3.9)."""
        test = work.form.mods["test"]
        for channel in work.writes[PRED].channels:
            found = self.arithmetic.test(test, work.values[channel])
            self.body.emit("mov.pred", self.registers.predicate[channel], found)

    def _check_output(self, works: list[Work]) -> None:
        """Targets exist and fit the program; UMRT ignores that of the alpha unit."""
        for work in works:
            name, target = work.part.name, work.form.mods.get("target")
            if "W_OMASK" in work.form.mods:
                if ALPHA not in work.unit.channels:
                    raise TextError("W_OMASK belongs to the alpha unit", name.pos, name.end)
                self.warn_uncached("W_OMASK", name)
            if self.output.kind == "umrt" and work.unit.words == "a":
                continue
            if OUT in work.writes and target is None:
                example = "RNDR_TGT_UMRT_SAME_IDX" if self.output.kind == "umrt" else "RNDR_TGT_A"
                raise TextError(f"a write of out needs a target, such as .{example}", name.pos, name.end)
            if target is not None:
                self.output.check_target(target, *target_span(name, target))

    def warn_uncached(self, what: str, name: Name) -> None:
        """UMRT writes leave before the output mask and the conditional test."""
        if self.output.kind == "umrt":
            self._warn(f"{what} has no effect on uncached output", name.pos, name.end)

    def _send(self, works: list[Work], item: Instruction) -> None:
        outs = [work for work in works if OUT in work.writes]
        for work in works:
            if "W_OMASK" in work.form.mods:
                self.output.set_value(work.values[ALPHA], self.registers.gate(work.form.mods, ALPHA))
        if self.output.kind == "umrt":
            self._send_umrt(outs, item)
            return
        for work in outs:
            gates = self._gates(work, work.writes[OUT])
            values = {channel: work.values[channel] for channel in gates}
            self.output.cached(work.form.mods["target"], Write(values, gates))

    def _send_umrt(self, outs: list[Work], item: Instruction) -> None:
        write = Write()
        for work in outs:
            gates = self._gates(work, work.writes[OUT])
            write.gates |= gates
            write.values |= {channel: work.values[channel] for channel in gates}
        if not write.gates:
            return
        target = next((work.form.mods["target"] for work in outs if work.unit.words != "a"), None)
        if target is None:
            raise TextError("a UMRT write takes its target and its coordinates from the RGB unit", item.pos, item.end)
        if len(write.gates) < ALL.bit_count():
            message = "PARTIAL_UMRT: a UMRT write takes all channels or none; this one is skipped, an error in strict mode"
            self._warn(message, item.pos, item.end)
        self.output.umrt(target, write)

    # ------------------------------------------------------------ the end

    def finish(self, strict: bool) -> list[TextError]:
        """Send the outputs and store the register files; what is wrong with the kernel as a whole."""
        self.output.finish()
        for name, array in self.files:
            self.registers.store_file(name, array)
        self._warn_unsynced()
        pos = self.body.function.pos
        end = pos + len(self.body.function.name)
        problems = [problem] if (problem := self.output.problem()) else []
        kind = self.last.kind if self.last else None
        if strict and (kind is None or kind.text != "OUTPUT"):
            where = (self.last.pos, self.last.end) if self.last else (pos, end)
            problems.append(TextError("the last instruction of a program must be an OUTPUT", *where))
        return problems

    def _warn_unsynced(self) -> None:
        if not self.output.scatters or self.output.acquires:
            return
        written = self.output.surfaces["A"]
        others = []
        for surface, name in self._reads:
            if surface is written:
                message = "UNSYNCED_READ: this reads what UMRT writes, and no write acquires the texture semaphore"
                self._warn(message, name.pos, name.end)
            else:
                others.append((written.name, surface.name))
        self.body.function.unsynced = tuple(others)


def _check_units(item: Instruction) -> None:
    """One part for both units, or one for each."""
    seen: set[str] = set()
    for part in item.parts:
        if part.unit is None and len(item.parts) > 1:
            raise TextError("of two parts, one is for RGB and one for ALPHA", part.pos, part.end)
        if part.unit is not None and part.unit.text in seen:
            raise TextError(f"{part.unit.text} has two parts", part.pos, part.end)
        if part.unit is not None:
            seen.add(part.unit.text)
            if part.opcode == "TEX":
                raise TextError("TEX takes no unit", part.unit.pos, part.unit.end)


def _source_name(operand: object) -> Name:
    """The register that messages about a source point to."""
    assert isinstance(operand, Source)
    value = operand.value
    return value if isinstance(value, Name) else Name("", value.pos, value.end)
