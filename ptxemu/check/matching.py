"""Matching operands against the rows of the table: once for each shape of instruction.

The result is a :class:`ptxemu.check.plan.Plan`, which makes the operation from the values of the operands.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxemu.check import addresses, handles, sources, typerules, vectors
from ptxemu.check.candidate import Candidate
from ptxemu.check.gates import INDIRECT
from ptxemu.check.modifiers import Form
from ptxemu.check.operands import Both, Computed, Negated, Selected, Value
from ptxemu.check.plan import Mismatch, Part, Plan
from ptxemu.ir.ops import Reg, SReg, SymRef, Variable
from ptxemu.ir.types import B32, PRED, TYPES, ScalarType
from ptxemu.isa.operands import LITERAL_FAMILIES, SELECTORS, OperandPattern, present
from ptxemu.isa.special import SPECIAL_REGISTERS
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError

HANDLES = frozenset({"surface", "texture", "sampler", "gradient", "offset", "tensor"})  # operand types that :mod:`handles` knows
OPAQUE_ROLES = frozenset({"surface", "texture", "tensor"})


def match(forms: list[Form], values: list[Value], roles: Mapping[Variable, str], independent: bool = False) -> Plan:
    """The plan of the first form whose operands fit; else the Mismatch of the form that came furthest.

    ``roles`` tells which parameters are an input, which stores may not write, or an output, which loads may not read;
    ``independent`` is the texturing mode of the module.
    """
    failures: list[Mismatch] = []
    for form in forms:
        try:
            return _Matcher(form, values, roles, independent).plan()
        except Mismatch as failure:
            failures.append(failure)
    raise max(failures, key=lambda failure: (failure.path, len(failure.message)))


class _Matcher(Candidate):
    def __init__(self, form: Form, values: list[Value], roles: Mapping[Variable, str], independent: bool) -> None:
        super().__init__(form, values, roles)
        self.independent = independent

    def plan(self) -> Plan:
        if self.row.any_operands:
            parts = tuple(Part("any", ()) for _ in self.values)
            return Plan(self.row, self.mods, self.defaults, parts, (), (None,) * len(parts), (), -1, ())
        if self.independent and "unified" in self.row.flags:
            raise Mismatch(f"'{self.row.opcode}{self.written()}' takes a sampler where '.target texmode_independent' is set", 1)
        if "hint" in self.mods and self.space() == "shared":
            raise Mismatch("'.L2::cache_hint' cannot be applied to .shared space", 0)
        vectors.unpacked(self)
        patterns = self.patterns()
        parts = self.parts(patterns)
        dst_types = tuple(kind for part in parts if part.role == "dst" for kind in part.types)
        src_types: list[ScalarType | None] = []
        for part in parts:
            if part.role == "texture":
                src_types += (*part.types[:2], part.types[-1])  # the coordinates are one operand
            elif part.role == "tensor":
                src_types += (None, part.types[0])
            elif part.role in OPAQUE_ROLES:
                src_types += part.types
            elif part.role != "dst":
                src_types.append(part.types[0] if part.types else None)
        shape = self.shape(parts)
        limits = tuple(
            (i, pattern.values)
            for i, (pattern, value) in enumerate(zip(patterns, self.values))
            if pattern.values and isinstance(value, (ast.Int, ast.Float))
        )
        return Plan(
            self.row, self.mods, self.defaults, parts, dst_types, tuple(src_types), self.negs(), *shape, limits,
            self.orders(patterns), self.given(patterns), self.stored(),
        )  # fmt: skip

    def parts(self, patterns: list[OperandPattern]) -> tuple[Part, ...]:
        """The plans of all operands. A wrong operand matters more than one that is not supported."""
        parts, unsupported = [], None
        for index, (pattern, value) in enumerate(zip(patterns, self.values)):
            try:
                parts.append(self.part(index, pattern, value))
            except UnsupportedError as error:
                unsupported = unsupported or error
        if unsupported is not None:
            raise unsupported
        return tuple(parts)

    def orders(self, patterns: list[OperandPattern]) -> tuple[tuple[int, int], ...]:
        """Constants that may not exceed other constants."""
        places = {pattern.name: index for index, pattern in enumerate(patterns)}
        pairs = [(index, places[pattern.most]) for index, pattern in enumerate(patterns) if pattern.most in places]
        return tuple((one, other) for one, other in pairs if isinstance(self.values[one], ast.Int))

    def given(self, patterns: list[OperandPattern]) -> tuple[str, ...]:
        """The optional operands that are there."""
        names = [f"+{pattern.name}" for pattern in patterns if pattern.optional]
        seconds = (p.second.name for p, value in zip(patterns, self.values) if p.second and isinstance(value, Both))
        indirect = any(p.type in handles.OPAQUE and handles.indirect(value) for p, value in zip(patterns, self.values))
        return (*names, *(f"|{name}" for name in seconds), *([INDIRECT] if indirect else []))

    def stored(self) -> tuple[bool, ...]:
        """Which elements a store has, if it leaves out some."""
        vector = self.values[1] if "masked" in self.row.traits else None
        return tuple(item is not None for item in vector) if isinstance(vector, tuple) and None in vector else ()

    def patterns(self) -> list[OperandPattern]:
        """The patterns of the operands present, optional ones left out from the right until the number fits."""
        possible = [p for p in self.row.operands if p.when is None or p.when in self.mods]
        found = present(self.row.operands, self.mods, len(possible) - len(self.values))
        if found is not None:
            return found
        least, most = sum(not p.optional or p.when is not None for p in possible), len(possible)
        wanted = f"{least}" if least == most else f"{least} or {most}" if most == least + 1 else f"{least} to {most}"
        plural = "" if wanted == "1" else "s"
        wanted = "no" if wanted == "0" else wanted
        raise Mismatch(f"'{self.row.opcode}' takes {wanted} operand{plural}, not {len(self.values)}{self.hint()}")

    def hint(self) -> str:
        without_policy = any(p.when is not None and p.when not in self.mods for p in self.row.operands)
        return " (a cache policy needs '.L2::cache_hint')" if without_policy else ""

    def negs(self) -> tuple[bool, ...]:
        negs = tuple(isinstance(v, Negated) for v, p in zip(self.values, self.patterns()) if p.role != "dst")
        return negs if any(negs) else ()

    def shape(self, parts: tuple[Part, ...]) -> tuple[int, tuple[tuple[int, ScalarType], ...]]:
        """``results`` and ``literals`` of the plan."""
        literals = []
        for index, (part, value) in enumerate(zip(parts, self.values)):
            if (
                part.role in OPAQUE_ROLES
                or isinstance(value, (tuple, Negated, Selected))
                or (part.role == "dst" and value is None)
            ):
                return -1, ()
            if isinstance(value, (ast.Int, ast.Float)):
                literals.append((index, part.types[0]))
        return sum(part.role == "dst" for part in parts), tuple(literals)

    # ------------------------------------------------------------ one operand

    def part(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        self.typed = pattern.type not in TYPES
        if isinstance(value, Selected) or pattern.selector:
            value = self.selected(index, pattern, value)
        if pattern.type in HANDLES:
            return self.opaque(index, pattern, value)
        if pattern.role == "mem":
            return addresses.in_brackets(self, index, pattern, value)
        if pattern.type == "address":
            return addresses.in_register(self, index, value)
        if pattern.type == "random":
            return self.random_bits(index, value)
        if pattern.role == "dst":
            return self.destination(index, pattern, value)
        return self.source(index, pattern, value)

    def selected(self, index: int, pattern: OperandPattern, value: Value) -> Value:
        """The register alone: its selector and its negation become modifiers named after the operand."""
        name = f"operand {index + 1} of '{self.row.opcode}{self.written()}'"
        selector, negative = (value.selector, value.negative) if isinstance(value, Selected) else ("", False)
        if negative and not pattern.negatable:
            raise Mismatch("a register operand cannot be negated; use neg or sub", index)
        if selector and not (pattern.selector and SELECTORS[pattern.selector].fullmatch(selector)):
            raise Mismatch(f"{name} cannot have the selector '.{selector}'", index)
        if pattern.selected and not selector:
            raise Mismatch(f"{name} needs a selector", index)
        if not isinstance(value, (Selected, Reg)) and pattern.selector not in LITERAL_FAMILIES:
            raise Mismatch(f"{name} must be a register", index)
        marks = {pattern.name + "sel": selector, pattern.name + "neg": "neg" if negative else ""}
        self.mods = self.mods | {key: mark for key, mark in marks.items() if mark}
        return value.reg if isinstance(value, Selected) else value

    def opaque(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        """A surface, texture, sampler or tensor, or what goes with a texture's coordinates."""
        if pattern.type == "tensor":
            return addresses.of_tensor(self, index, pattern, value)
        opcode, geometry = self.row.opcode, self.mods[pattern.count] if pattern.count else None
        if pattern.type == "surface":
            return handles.surface(opcode, index, geometry, value)
        if geometry is None:
            return handles.query(opcode, index, pattern.type, value)
        if pattern.type == "texture":
            return handles.texture(opcode, index, self.mods, value, self.independent)
        return (handles.gradient if pattern.type == "gradient" else handles.offset)(opcode, index, geometry, value)

    def destination(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        kind = self.type(pattern.type)
        if pattern.name == "_" and value is not None:
            raise Mismatch(f"'{self.row.opcode}{self.written()}' has no result: its destination must be '_'", index)
        if pattern.second is not None and pattern.count is not None:
            return self.vector_pair(index, pattern, kind, pattern.second, value)
        if pattern.second is not None:
            if value is None and pattern.sink:
                return Part("dst", (kind,))
            return self.pair(index, kind, pattern.second, value)
        if isinstance(value, tuple):
            types = vectors.elements(self, index, pattern, kind, value)
        else:
            types = (kind,) * vectors.scalar(self, index, pattern)
            if value is None and pattern.sink:
                return Part("dst", types)
        if isinstance(value, tuple) and vectors.joined(self, index, types[0], value):
            return Part("dst", types)
        if isinstance(value, tuple) and all(item is None for item in value):
            raise Mismatch(f"the destination of '{self.row.opcode}' needs at least one register", index)
        for position, item in enumerate(value if isinstance(value, tuple) else (value,)):
            if item is not None or not isinstance(value, tuple):
                path = (index, position) if isinstance(value, tuple) else (index,)
                self.register(types[position], item, path)
        return Part("dst", types)

    def pair(self, index: int, kind: ScalarType, second: OperandPattern, value: Value) -> Part:
        if isinstance(value, tuple) and not isinstance(value, Both):
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must not be a vector", index)
        if not isinstance(value, tuple):
            if not second.optional:
                raise Mismatch(f"'{self.row.opcode}' has two destinations, written 'd|p'", index)
            self.register(kind, value, (index,))
            return Part("dst", (kind,))
        types = (kind, self.type(second.type))
        if value[-1] is None and not second.optional:
            raise Mismatch(f"the second destination of '{self.row.opcode}' must be a register", index, 1)
        if value[0] is None and "kept" in self.row.traits:
            raise Mismatch(f"the result of '{self.row.opcode}' cannot be discarded", index, 0)
        for position, (wanted, item) in enumerate(zip(types, value)):
            if item is not None:
                self.register(wanted, item, (index, position))
        return Part("dst", types)

    def vector_pair(self, index: int, pattern: OperandPattern, kind: ScalarType, second: OperandPattern, value: Value) -> Part:
        """``{a, b}|p``, the predicate optional."""
        items: Value = value
        extra: tuple[ScalarType, ...] = ()
        path: tuple[int, ...] = (index,)
        if isinstance(value, Both):
            items, extra, path = value[0], (self.type(second.type),), (index, 0)
            self.register(extra[0], value[1], (index, 1))
        if not isinstance(items, tuple):
            raise Mismatch(
                f"operand {index + 1} of '{self.row.opcode}' must be a vector of {self.length(pattern)} elements", index
            )
        types = vectors.elements(self, index, pattern, kind, items)
        if vectors.joined(self, index, kind, items):
            return Part("dst", types + extra)
        if all(item is None for item in items):
            raise Mismatch(f"the destination of '{self.row.opcode}' needs at least one register", index)
        for position, item in enumerate(items):
            if item is not None:
                self.register(types[position], item, (*path, position))
        return Part("dst", types + extra)

    def register(self, kind: ScalarType, value: Value, path: tuple[int, ...]) -> None:
        if not isinstance(value, Reg) or isinstance(value, Computed):
            raise Mismatch(f"the destination of '{self.row.opcode}' must be a register", *path)
        integer = "integer" in self.row.traits or "integer" in self.row.flags
        if not self.fits(kind, value.type) or (integer and value.type.kind not in "usb" and not kind.is_float and kind != PRED):
            raise Mismatch(self.misfit(kind, value.type, path[0]), *path)

    def source(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        kind = self.type(pattern.type)
        if isinstance(value, tuple):
            types = vectors.elements(self, index, pattern, kind, value)
            if any(isinstance(item, (SymRef, Computed)) for item in value):
                raise Mismatch("an element of a vector is a register or a literal", index)
            if not vectors.joined(self, index, types[0], value):
                for position, (wanted, item) in enumerate(zip(types, value)):
                    if not isinstance(item, SReg) or not typerules.special_fits(wanted, SPECIAL_REGISTERS[item.name]):
                        self.scalar_source(wanted, item, (index, position))
            return Part("src", types)
        if pattern.name.startswith("imm") and not isinstance(value, ast.Int):
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must be an integer constant", index)
        vectors.scalar(self, index, pattern)
        self.scalar_source(kind, value, (index,))
        return Part("src", (kind,))

    def scalar_source(self, kind: ScalarType, value: Value, path: tuple[int, ...]) -> None:
        problem = sources.problem(self, kind, value, path[0])
        if problem:
            raise Mismatch(problem, *path)

    def random_bits(self, index: int, value: Value) -> Part:
        if isinstance(value, Reg) and value.type is B32:
            return Part("src", (B32,))
        raise Mismatch(f"the random bits of '{self.row.opcode}' must be a .b32 register", index)
