"""Matching operands against the rows of the table: once for each shape of instruction.

The result is a :class:`ptxemu.check.plan.Plan`, which makes the operation from the values of the operands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Any

from ptxemu import isa
from ptxemu.check import handles, typerules
from ptxemu.check.gates import INDIRECT
from ptxemu.check.modifiers import Form
from ptxemu.check.names import written
from ptxemu.check.operands import Both, Computed, Negated, Selected, Value
from ptxemu.check.plan import Mismatch, Part, Plan
from ptxemu.errors import UnsupportedError
from ptxemu.ir import Addr, Function, Reg, SReg, SymRef, Variable
from ptxemu.isa.special import SPECIAL_REGISTERS
from ptxemu.isa.table import LITERAL_FAMILIES, SELECTORS, OperandPattern
from ptxemu.syntax import ast
from ptxemu.types import B32, TYPES, ScalarType

SURFACES = frozenset({"suld", "sust"})
RELAXED = frozenset({"ld", "ldu", "st", "cvt", "suld", "sust", "sured"})  # registers may be wider than the instruction type
UNRELAXED = frozenset(  # instruction types that take that back
    {"bf16", "bf16x2", "tf32", *(name for name in TYPES if re.fullmatch(r"u?e\dm\dx[24]", name))}
)
SYMBOL_SOURCES = frozenset({"mov", "cvta", "mapa", "getctarank"})
CLUSTER_OPCODES = frozenset({"mapa", "getctarank"})
SIZED = frozenset({"bar", "barrier", "nanosleep"})  # where the width of a sum counts
SHIFTS, SHIFT_COUNT = frozenset({"shl", "shr"}), 2
NO_FUNCTIONS = frozenset({"shl", "shr", "bar", "barrier", "nanosleep", "cvta"})  # whose operands cannot be functions
SPECIAL_SOURCES = frozenset({"mov", "cvt.int"})  # lowerings: a conversion to or from a float takes none
WIDE_ADDRESSES = frozenset({"prefetch", "prefetchu"})  # which take no address of 8 or 16 bits
GENERIC_SPACES = frozenset({"global", "shared", "local"})
NARROW_SPACES = frozenset({"shared", "local", "const", "param"})  # whose addresses fit 32 bits
COLUMNS = re.compile(r"n(\d+)")  # in the shape of a matrix
PACKED_LENGTHS = (1, 2, 4)
FRAGMENTS = frozenset({"mma", "wmma_load", "wmma_store"})  # lowerings of vectors whose typed elements agree
HANDLES = frozenset({"surface", "texture", "sampler", "gradient", "offset"})  # operand types that :mod:`handles` knows
ALIKE = frozenset({"ld", "ldu", "st", "mov"})  # whose vectors do not mix types
KEPT = frozenset({"shfl"})  # whose first result cannot be ``_`` beside a second one
OPAQUE_ROLES = frozenset({"surface", "texture"})


# ---------------------------------------------------------------- matching


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


class _Matcher:
    def __init__(self, form: Form, values: list[Value], roles: Mapping[Variable, str], independent: bool) -> None:
        self.roles = roles
        self.independent = independent
        self.row = form.row
        self.mods = form.mods
        self.typed = False  # whether the operand at hand has a type that a modifier gives
        self.defaults = form.defaults
        self.values = values
        self.relaxed = self.row.opcode in RELAXED and not UNRELAXED.intersection(self.mods.values())

    def plan(self) -> Plan:
        if self.row.any_operands:
            parts = tuple(Part("any", ()) for _ in self.values)
            return Plan(self.row, self.mods, self.defaults, parts, (), (None,) * len(parts), (), -1, ())
        if self.independent and "unified" in self.row.flags:
            raise Mismatch(f"'{self.row.opcode}{self.written()}' takes a sampler where '.target texmode_independent' is set", 1)
        if "hint" in self.mods and self.space() == "shared":
            raise Mismatch("'.L2::cache_hint' cannot be applied to .shared space", 0)
        self.unpacked()
        patterns = self.patterns()
        parts = tuple(self.part(i, pattern, value) for i, (pattern, value) in enumerate(zip(patterns, self.values)))
        dst_types = tuple(kind for part in parts if part.role == "dst" for kind in part.types)
        src_types: list[ScalarType | None] = []
        for part in parts:
            if part.role in OPAQUE_ROLES:
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
            self.orders(patterns), self.given(patterns),
        )  # fmt: skip

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

    def patterns(self) -> list[OperandPattern]:
        """The patterns of the operands present, optional ones left out from the right until the number fits."""
        all_patterns = [p for p in self.row.operands if p.when is None or p.when in self.mods]
        optional = [p for p in all_patterns if p.optional and p.when is None]
        surplus = len(all_patterns) - len(self.values)
        if 0 <= surplus <= len(optional):
            dropped = next(combinations(reversed(optional), surplus))
            return [pattern for pattern in all_patterns if pattern not in dropped]
        least, most = len(all_patterns) - len(optional), len(all_patterns)
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

    def type(self, name: str) -> ScalarType:
        if name.startswith("wide("):
            narrow = self.type(name[5:-1])
            return TYPES[narrow.name.rstrip("0123456789") + str(narrow.bits * 2)]
        if name.startswith("dot("):
            unsigned = all(self.type(part).kind == "u" for part in name[4:-1].split(","))
            return TYPES["u32" if unsigned else "s32"]
        return TYPES[self.mods.get(name, name)]

    def length(self, pattern: OperandPattern) -> int | None:
        """How many elements a pattern has; None where braces are not allowed."""
        if pattern.count is None:
            return None
        if pattern.count.isdecimal():
            return int(pattern.count)
        slot, _, divisor = pattern.count.partition("/")
        word = self.mods.get(slot)
        if divisor and word:
            return int(COLUMNS.findall(word)[0]) // int(divisor)
        return int(word[1:]) if word else 1

    def part(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        self.typed = pattern.type not in TYPES
        if isinstance(value, Selected) or pattern.selector:
            value = self.selected(index, pattern, value)
        if pattern.type in HANDLES:
            return self.opaque(index, pattern, value)
        if pattern.role == "mem":
            return self.memory(index, pattern, value)
        if pattern.type == "address":
            return self.address_register(index, value)
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
        """A surface, texture or sampler, or what goes with a texture's coordinates."""
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
            types = self.elements(index, pattern, kind, value)
        else:
            types = (kind,) * self.scalar(index, pattern)
            if value is None and pattern.sink:
                return Part("dst", types)
        if isinstance(value, tuple) and self.joined(index, types[0], value):
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
        if value[0] is None and self.row.opcode in KEPT:
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
        types = self.elements(index, pattern, kind, items)
        for position, item in enumerate(items):
            if item is not None:
                self.register(types[position], item, (*path, position))
        return Part("dst", types + extra)

    def register(self, kind: ScalarType, value: Value, path: tuple[int, ...]) -> None:
        if not isinstance(value, Reg) or isinstance(value, Computed):
            raise Mismatch(f"the destination of '{self.row.opcode}' must be a register", *path)
        if not self.fits(kind, value.type):
            raise Mismatch(self.misfit(kind, value.type, path[0]), *path)

    def fits(self, kind: ScalarType, held: ScalarType) -> bool:
        """Whether a register may be this operand; one of type f16x2 may also where a modifier gives an integer type."""
        if self.typed and held.name == "f16x2" and kind.kind in "usp":
            held = B32
        return typerules.register_fits(kind, held, self.relaxed)

    def source(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        kind = self.type(pattern.type)
        if isinstance(value, tuple):
            types = self.elements(index, pattern, kind, value)
            if any(isinstance(item, (SymRef, Computed)) for item in value):
                raise Mismatch("an element of a vector is a register or a literal", index)
            if not self.joined(index, types[0], value):
                for position, (wanted, item) in enumerate(zip(types, value)):
                    if not isinstance(item, SReg) or not typerules.special_fits(wanted, SPECIAL_REGISTERS[item.name]):
                        self.scalar_source(wanted, item, (index, position))
            return Part("src", types)
        if pattern.name.startswith("imm") and not isinstance(value, ast.Int):
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must be an integer constant", index)
        self.scalar(index, pattern)
        self.scalar_source(kind, value, (index,))
        return Part("src", (kind,))

    def joined(self, index: int, kind: ScalarType, value: tuple[Value, ...]) -> bool:
        """Whether the elements of a vector are registers of several types and fit all the same.

        They have one size, and together the bit type of that size.
        """
        types = {item.type for item in value if isinstance(item, Reg)}
        if len({held.bits for held in types}) > 1:
            raise Mismatch("the elements of a vector must have one size", index)
        if self.row.lower in FRAGMENTS:
            self.fragment(index, types, value)
        elif self.row.opcode in ALIKE:
            self.alike(index, value)
        mixed = any(isinstance(item, ast.Float) and item.width == 32 for item in value)
        if mixed and any(isinstance(item, ast.Int) for item in value):
            raise Mismatch("a vector cannot hold integer and 0f literals", index)
        if len(types) < 2 or any(not isinstance(item, Reg) or isinstance(item, Computed) for item in value):
            return False
        bits = next(iter(types)).bits
        return f"b{bits}" in TYPES and typerules.register_fits(kind, TYPES[f"b{bits}"], self.relaxed)

    def alike(self, index: int, value: tuple[Value, ...]) -> None:
        """Registers side by side are both integers, both of one floating-point type, or one of them is untyped."""
        held = [item.type if isinstance(item, Reg) else B32 for item in value]
        words = ["integer" if kind.kind in "us" else "" if kind.kind == "b" else kind.name for kind in held]
        if any(one and other and one != other for one, other in pairwise(words)):
            raise Mismatch("the elements of a vector must have one type", index)

    def fragment(self, index: int, types: set[ScalarType], value: tuple[Value, ...]) -> None:
        """Registers of one type, but for untyped ones; a lone element is a register."""
        if len({"integer" if held.kind in "us" else held.name for held in types if held.kind != "b"}) > 1:
            raise Mismatch("the elements of a fragment must have one type", index)
        if len(value) == 1 and not isinstance(value[0], Reg):
            raise Mismatch("the element of a fragment must be a register", index)

    def scalar(self, index: int, pattern: OperandPattern) -> int:
        length = self.length(pattern) or 1
        if length > 1 and self.row.opcode == "sust" and isinstance(self.values[index], (ast.Int, ast.Float)):
            raise UnsupportedError("a literal in place of a vector is not supported")
        if pattern.count == "1":
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must be in braces", index)
        if length > 1 and not (self.values[index] is None and pattern.sink):
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must be a vector of {length} elements", index)
        return length

    def unpacked(self) -> None:
        """One side of a mov that packs or unpacks is no vector."""
        if self.row.opcode == "mov" and "vec" not in self.mods and [type(value) for value in self.values] == [tuple, tuple]:
            raise Mismatch("'mov' needs '.v2' or '.v4' to copy a vector to a vector", 1)

    def elements(self, index: int, pattern: OperandPattern, kind: ScalarType, value: Value) -> tuple[ScalarType, ...]:
        """The element types of a braced operand."""
        length = self.length(pattern)
        if length == len(value):
            return (kind,) * length
        if length == 1 and self.row.opcode in SURFACES and len(value) in PACKED_LENGTHS and pattern.count not in self.mods:
            raise UnsupportedError(f"a vector without '.v{len(value)}' is not supported")
        if length is not None:
            wanted = f"{length} element" + ("s" if length > 1 else "")
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must have {wanted}, not {len(value)}", index)
        width = kind.bits // len(value)
        if self.row.opcode == "mov" and kind.kind == "b" and len(value) in PACKED_LENGTHS and width >= 8:
            return (TYPES[f"b{width}"],) * len(value)
        if self.row.opcode == "mov" and kind.kind == "b":
            raise Mismatch(f"{len(value)} elements cannot make up {kind}; there may be 2 or 4", index)
        if all(isinstance(item, (SReg, ast.Int)) for item in value) and isinstance(value[0], SReg):
            name = value[0].name.partition(".")[0]
            raise Mismatch(f"'%{name}' has several components: write %{name}.x, %{name}.y or %{name}.z", index)
        raise Mismatch(f"operand {index + 1} of '{self.row.opcode}{self.written()}' must not be a vector", index)

    def written(self) -> str:
        return "".join(f".{word}" for word in self.mods.values())

    def scalar_source(self, kind: ScalarType, value: Value, path: tuple[int, ...]) -> None:
        problem = self.source_problem(kind, value, path[0])
        if problem:
            raise Mismatch(problem, *path)

    def source_problem(self, kind: ScalarType, value: Value, index: int) -> str | None:
        opcode = self.row.opcode
        if isinstance(value, Computed):
            return self.sum_problem(kind, value, index)
        if isinstance(value, Reg):
            return None if self.fits(kind, value.type) else self.misfit(kind, value.type, index)
        if isinstance(value, (ast.Int, ast.Float)):
            return None if typerules.literal_fits(kind, value) else self.literal_misfit(kind, value)
        if isinstance(value, Negated):
            return None if kind.kind == "pred" else f"operand {index + 1} of '{opcode}' is not a predicate"
        if isinstance(value, SReg):
            return self.special_problem(kind, value)
        if isinstance(value, SymRef):
            return self.symbol_problem(kind, value)
        if isinstance(value, Addr):
            return f"'{opcode}' takes a value here, not an address in brackets"
        return f"operand {index + 1} of '{opcode}' must be a register or a literal"

    def sum_problem(self, kind: ScalarType, value: Computed, index: int) -> str | None:
        """``%r1+4``, whose width ptxas does not look at."""
        held = value.type
        mixed = held.kind not in "usb" if kind.kind in "us" else held.kind in "us" and kind.kind != "b"
        sized = self.row.opcode in SIZED or (self.row.opcode in SHIFTS and index == SHIFT_COUNT)
        if mixed or kind.kind == "pred" or (kind.kind == "packed" and held.is_float) or (sized and not self.fits(kind, held)):
            return self.misfit(kind, held, index)
        if held.kind not in "usb" or held.bits == 8 or not self.fits(kind, held):
            raise UnsupportedError(f"the sum of a register of type {held} and a constant is not supported as {kind}")
        return None

    def special_problem(self, kind: ScalarType, value: SReg) -> str | None:
        if self.row.lower not in SPECIAL_SOURCES:
            return f"a special register cannot be an operand of '{self.row.opcode}'; copy it with mov"
        types = SPECIAL_REGISTERS[value.name]
        if typerules.special_fits(kind, types):
            return None
        return f"'%{value.name}' has type {types[0]}, which does not fit '{self.row.opcode}{self.written()}'"

    def symbol_problem(self, kind: ScalarType, value: SymRef) -> str | None:
        opcode, symbol = self.row.opcode, value.symbol
        if isinstance(symbol, Function) and opcode not in NO_FUNCTIONS and (opcode != "mov" or kind.bits < 32 or kind.is_float):
            raise UnsupportedError(f"the address of a function as an operand of '{opcode}' is not supported")
        narrow = isinstance(symbol, Variable) and symbol.space == "global" and kind.bits < 64
        if value.offset and kind.kind in "usb" and (narrow or opcode not in SYMBOL_SOURCES):
            raise UnsupportedError(f"the address of a variable with an offset as an operand of '{opcode}' is not supported")
        if opcode not in SYMBOL_SOURCES or "to" in self.mods:
            name = written(symbol.name)
            return f"the name of a variable cannot be an operand of '{opcode}'; write [{name}] or use mov"
        if opcode == "cvta" and isinstance(symbol, Function):
            return f"'{symbol.name}' is a function, not a variable"
        if opcode in CLUSTER_OPCODES and not (isinstance(symbol, Variable) and symbol.space == "shared"):
            return f"'{written(symbol.name)}' is not in .shared space"
        if opcode == "cvta" and isinstance(symbol, Variable) and symbol.space != self.space():
            return f"'{written(symbol.name)}' is in .{symbol.space} space, not .{self.space()}"
        if isinstance(symbol, Variable) and symbol.type.kind == "opaque" and kind.name != "u64":
            return f"the handle of a {symbol.type} has type u64, not {kind}"
        if isinstance(symbol, Variable) and symbol.space == "param" and symbol not in self.roles:
            return f"the address of '{written(symbol.name)}' cannot be taken: it is only passed to or returned by a call"
        short = not isinstance(symbol, Variable) or symbol.space in NARROW_SPACES
        if kind.kind in "usb" and (kind.bits == 64 or (kind.bits == 32 and short)):
            return None
        if opcode == "mov" and kind.name in ("u16", "s16", "b16"):
            raise UnsupportedError(f"the low 16 bits of the address of '{written(symbol.name)}' are not supported")
        return f"the address of '{written(symbol.name)}' does not fit type {kind}"

    def misfit(self, kind: ScalarType, held: ScalarType, index: int) -> str:
        wanted = f"{kind} or wider" if self.relaxed and held.bits < kind.bits else kind
        name = self.row.opcode + self.written()
        return f"operand {index + 1} of '{name}' must be {wanted}, not a register of type {held}"

    def literal_misfit(self, kind: ScalarType, value: ast.Int | ast.Float) -> str:
        name = "an integer" if isinstance(value, ast.Int) else "a floating-point"
        advice = ""
        if isinstance(value, ast.Int) and kind.name in ("f32", "f64"):
            advice = f"; write {value.value}.0"
        return f"{name} literal does not fit type {kind} of '{self.row.opcode}'{advice}"

    # ------------------------------------------------------------ addresses

    def space(self, slot: str = "space") -> str:
        """The state space that a slot gives or that is named instead of a slot, ``""`` for generic."""
        named = slot in isa.SPACES and slot not in self.mods
        return slot if named else self.mods.get(slot, "").partition("::")[0]

    def memory(self, index: int, pattern: OperandPattern, value: Value) -> Part:
        if not isinstance(value, Addr):
            raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must be an address in brackets", index)
        types = (self.type(pattern.type),) if pattern.type else ()
        base = value.base
        if isinstance(base, SymRef):
            self.symbol_address(index, pattern.space, base.symbol)
        elif isinstance(base, Reg):
            self.check_address_register(index, base, self.space(pattern.space))
        elif self.space(pattern.space) != "local":
            raise Mismatch("a literal address is allowed in .local space only", index)
        return Part("mem", types)

    def symbol_address(self, index: int, slot: str, symbol: Any) -> None:
        space, name = self.space(slot), written(symbol.name)
        if not isinstance(symbol, Variable):
            raise Mismatch(f"'{name}' is a function, not a variable", index)
        if symbol.type.kind == "opaque":
            raise Mismatch(f"'{name}' is a {symbol.type}, which has no readable memory", index)
        if space and symbol.space != space:
            raise Mismatch(f"'{name}' is in .{symbol.space} space, not .{space}", index)
        if self.roles.get(symbol) == "input" and self.row.lower == "st":
            raise Mismatch(f"'{name}' is an input parameter and cannot be written", index)
        if self.roles.get(symbol) == "output" and self.row.lower == "ld":
            raise Mismatch(f"'{name}' is the result of the function and cannot be read", index)
        if not space and symbol.space not in GENERIC_SPACES:
            raise Mismatch(f"'{name}' is in .{symbol.space} space: write '{self.row.opcode}.{symbol.space}'", index)
        allowed = next((one.values for one in self.row.slots if one.name == slot), None)
        if not space and allowed is not None:
            if symbol.space not in allowed:
                text = f"'{self.row.opcode}{self.written()}' cannot access .{symbol.space} space"
                raise Mismatch(text, index) if self.row.opcode == "mbarrier" else UnsupportedError(text)
            self.mods = self.mods | {slot: symbol.space}

    def check_address_register(self, index: int, base: Reg, space: str) -> None:
        kind = base.type
        if kind.kind not in "usb" or kind.bits > 64:
            raise Mismatch(f"'{written(base.name)}' of type {kind} cannot be an address", index)
        widened = "widened" in self.row.flags
        if kind.bits < 32 and widened and space not in NARROW_SPACES:
            raise Mismatch(f"an address has 32 or 64 bits; '{written(base.name)}' has type {kind}", index)
        if (kind.bits < 32 and self.row.opcode not in WIDE_ADDRESSES) or (
            widened and kind.bits == 32 and space not in NARROW_SPACES
        ):
            raise UnsupportedError(f"addresses of {kind.bits} bits are not supported here")
        if kind.bits == 32 and space not in NARROW_SPACES:
            named = f".{space}" if space else "generic"
            raise Mismatch(f"a {named} address has 64 bits; '{written(base.name)}' has type {kind}", index)

    def address_register(self, index: int, value: Value) -> Part:
        if isinstance(value, Reg) and value.type.kind in "usb" and value.type.bits in (32, 64):
            return Part("src", (value.type,))
        if isinstance(value, ast.Int) and self.row.opcode == "isspacep":
            return Part("src", (TYPES["u64"],))
        raise Mismatch(f"operand {index + 1} of '{self.row.opcode}' must be a 32- or 64-bit integer register", index)

    def random_bits(self, index: int, value: Value) -> Part:
        if isinstance(value, Reg) and value.type is B32:
            return Part("src", (B32,))
        raise Mismatch(f"the random bits of '{self.row.opcode}' must be a .b32 register", index)
