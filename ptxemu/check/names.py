"""Name resolution: nested scopes, lazily created registers, labels.

One flat table holds what is visible; entering a scope costs nothing and leaving it undoes what the scope declared.
A declaration such as ``.reg .b32 %r<100000>`` is only a range: registers come to exist when first used.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from ptxemu.ir.ops import Reg, SReg, SymRef
from ptxemu.ir.types import ScalarType
from ptxemu.isa.special import SPECIAL_REGISTERS, TRIPLES
from ptxemu.syntax import ast


class VectorName(Struct, frozen=True):
    """A register declared ``.v2`` or ``.v4``, or a special register with several components."""

    items: tuple[Reg | SReg | ast.Int, ...]


def written(name: str) -> str:
    """A variable's or register's name as it stands in the source, from its unique name in the module."""
    parts = [part for part in name.split(".") if not part.isdecimal()]
    return parts[-1]


class Unknown:
    """Stands for a name already reported, so that each is reported once in a function."""


UNKNOWN = Unknown()
Entity = Reg | SymRef | SReg | VectorName | ast.Int | Unknown
Code = str | ast.TargetList | ast.Prototype  # a label's unique name, or a list

COMPONENTS = ("xr", "yg", "zb", "wa")
DIGITS = "0123456789"
MOST_DIGITS = 10  # of a register's number, leading zeros included
WARP_SZ = ast.Int(32, False, 0, 0)


class _Scope(Struct):
    """``declared`` gives the position of each declaration; ``undo`` lists (table, name, what it meant before) in order.

    ``ranges`` gives the count of each range by its prefix, ``numbered`` the declared names that end in digits by what
    precedes these.
    """

    suffix: str
    declared: dict[str, int] = {}
    ranges: dict[str, int] = {}
    numbered: dict[str, list[str]] = {}
    undo: list[tuple[dict[str, Any], str, Any]] = []


class _Range(Struct):
    type: ScalarType
    vector: int
    count: int
    scope: _Scope


class Names:
    """What names mean at one point of a function. ``entities`` may be read directly; on a miss call ``lookup``."""

    def __init__(self, module: dict[str, SymRef], module_at: Mapping[str, int] = MappingProxyType({})) -> None:
        self.entities: dict[str, Entity] = {}
        self.code: dict[str, Code] = {}
        self._module = module
        self._module_at = module_at  # where names of the module are declared first, if that matters
        self._ranges: dict[str, list[_Range]] = {}
        self._scopes = [_Scope("")]
        self._serial = 0

    # ------------------------------------------------------------ scopes

    @property
    def suffix(self) -> str:
        """Appended to names declared here, so that they are unique in the function."""
        return self._scopes[-1].suffix

    def push(self) -> None:
        self._serial += 1
        self._scopes.append(_Scope(f".{self._serial}"))

    def pop(self) -> None:
        scope = self._scopes.pop()
        for table, name, old in reversed(scope.undo):
            if old is None:
                table.pop(name, None)
            else:
                table[name] = old
        for prefix in scope.ranges:
            self._ranges[prefix].pop()

    # ------------------------------------------------------------ declarations

    def is_later(self, name: str, entity: SymRef, pos: int) -> bool:
        """Whether the module declares ``entity``, which ``name`` stands for, after ``pos`` only."""
        return self._module_at.get(name, 0) > pos and self._module.get(name) is entity

    def declare(self, name: str, entity: Entity, pos: int = 0) -> bool:
        """Give ``name`` a meaning in the innermost scope; False if that scope has declared it already."""
        return self._declare(self.entities, self.code, name, entity, pos)

    def declare_code(self, name: str, entity: Code, pos: int = 0) -> bool:
        """The same for labels and target lists, which share their names with variables."""
        return self._declare(self.code, self.entities, name, entity, pos)

    def declared_at(self, name: str) -> int:
        """Where the innermost scope has declared a name."""
        return self._scopes[-1].declared.get(name, 0)

    def declare_vector(self, name: str, type: ScalarType, count: int, pos: int = 0) -> bool:
        """Declare a ``.v2``/``.v4`` register and its elements ``name.x`` (or ``name.r``) and so on."""
        members = _members(name, type, count, self.suffix)
        return all([self.declare(member, entity, pos) for member, entity in members.items()])

    def declare_range(self, prefix: str, count: int, type: ScalarType, vector: int = 0, pos: int = 0) -> bool:
        """Declare ``prefix0`` to ``prefix<count-1>``; False if the scope has such a range already."""
        scope = self._scopes[-1]
        alike = scope.numbered.get(prefix.rstrip(DIGITS), ())
        if prefix in scope.ranges:
            return False
        fresh = not any(_in_range(name, prefix, count) for name in alike)
        scope.ranges[prefix] = count
        if fresh:
            scope.declared[prefix + "<"] = pos
        self._ranges.setdefault(prefix, []).append(_Range(type, vector, count, scope))
        if len(self._scopes) > 1:
            self._hide(prefix, count, scope)
        return fresh

    def _declare(self, table: dict[str, Any], other: dict[str, Any], name: str, entity: object, pos: int) -> bool:
        """Enter a name in ``table`` and hide what it means in the ``other`` one."""
        scope = self._scopes[-1]
        if name in scope.declared or (table is self.entities and _range_holds(scope, name)):
            return False
        scope.declared[name] = pos
        if name[-1:] in DIGITS:
            scope.numbered.setdefault(name.rstrip(DIGITS), []).append(name)
        scope.undo.append((table, name, table.get(name)))
        table[name] = entity
        if name in other:
            scope.undo.append((other, name, other.pop(name)))
        return True

    def _hide(self, prefix: str, count: int, scope: _Scope) -> None:
        """Hide registers that a range of an inner scope shadows, until the scope ends."""
        names = [f"{prefix}{index}" for index in range(count)] if count < len(self.entities) else list(self.entities)
        for name in names:
            if name in self.entities and _in_range(name.partition(".")[0], prefix, count):
                scope.undo.append((self.entities, name, self.entities.pop(name)))

    # ------------------------------------------------------------ look-up

    def lookup(self, name: str) -> Entity | None:
        """The meaning of a name, which is remembered in ``entities``."""
        entity = self.entities.get(name) or self.register(name) or self._from_range(name)
        if entity is None:
            entity = self._module.get(name) or _builtin(name)
            if entity is not None:
                self.entities[name] = entity
        return entity

    def register(self, name: str) -> Reg | None:
        """A register of a range, used for the first time under exactly this name: the common case, kept short."""
        prefix = name.rstrip(DIGITS)
        ranges = self._ranges.get(prefix)
        number = name[len(prefix) :]
        if not ranges or not 0 < len(number) <= MOST_DIGITS or (number[0] == "0" and len(number) > 1):
            return None
        origin = ranges[-1]
        if origin.vector or int(number) >= origin.count:
            return None
        suffix = origin.scope.suffix
        reg = self.entities[name] = Reg(name + suffix if suffix else name, origin.type)
        if suffix:
            origin.scope.undo.append((self.entities, name, None))
        return reg

    def is_numbered(self, name: str) -> bool:
        """Whether a range has declared the name as a register."""
        return self._range_of(name) is not None

    def _range_of(self, name: str) -> _Range | None:
        """The range that holds ``prefix<number>``; the prefix is what precedes all the digits at the end."""
        prefix = name.rstrip(DIGITS)
        if prefix not in self._ranges or not 0 < len(name) - len(prefix) <= MOST_DIGITS:
            return None
        number = int(name[len(prefix) :])
        return next((found for found in reversed(self._ranges[prefix]) if number < found.count), None)

    def _from_range(self, name: str) -> Entity | None:
        base, dot, member = name.partition(".")
        found = self._range_of(base)
        if found is None:
            return None
        prefix = base.rstrip(DIGITS)
        register = f"{prefix}{int(base[len(prefix) :])}"  # %r01 is %r1
        if register not in self.entities:
            self._create(register, found)
        entity = self.entities.get(register + dot + member)
        if entity is not None and register != base:
            self._enter(name, entity, found)
        return entity

    def _create(self, name: str, origin: _Range) -> None:
        if not origin.vector:
            self._enter(name, Reg(name + origin.scope.suffix, origin.type), origin)
            return
        for member, entity in _members(name, origin.type, origin.vector, origin.scope.suffix).items():
            self._enter(member, entity, origin)

    def _enter(self, name: str, entity: Entity, origin: _Range) -> None:
        self.entities[name] = entity
        if origin.scope.suffix:
            origin.scope.undo.append((self.entities, name, None))

    def forget(self, name: str) -> None:
        """Note that an unknown name has been reported."""
        self.entities[name] = UNKNOWN

    def range_hint(self, name: str) -> str:
        """For a number beyond those that ``%r<n>`` declares: which these are."""
        prefix = name.rstrip(DIGITS)
        found = self._ranges.get(prefix)
        if not found or prefix == name or not found[-1].count:
            return ""
        count = found[-1].count
        return f"; '.reg {prefix}<{count}>' declares {prefix}0 to {prefix}{count - 1}"

    def visible(self) -> list[str]:
        """Names to suggest in place of a misspelt one."""
        known = [name for name, entity in self.entities.items() if entity is not UNKNOWN]
        counts = {
            prefix: min(99, found[-1].count) for prefix, found in self._ranges.items() if found and prefix[-1] not in DIGITS
        }
        ranges = [f"{prefix}{index}" for prefix, count in counts.items() for index in range(count)]
        return [*known, *ranges, *self._module, *(f"%{name}" for name in (*SPECIAL_REGISTERS, *TRIPLES))]


def _range_holds(scope: _Scope, name: str) -> bool:
    """Whether a range that the scope has declared includes the name."""
    ends = range(max(len(name.rstrip(DIGITS)), len(name) - MOST_DIGITS), len(name))
    return any(int(name[end:]) < scope.ranges.get(name[:end], 0) for end in ends)


def _in_range(name: str, prefix: str, count: int) -> bool:
    tail = name[len(prefix) :]
    return name.startswith(prefix) and tail.isdecimal() and len(tail) <= MOST_DIGITS and int(tail) < count


def _members(name: str, type: ScalarType, count: int, suffix: str) -> dict[str, Entity]:
    """What the declaration of a vector register declares: its elements by each of their names, and itself."""
    items = tuple(Reg(f"{name}.{letters[0]}{suffix}", type) for letters in COMPONENTS[:count])
    members: dict[str, Entity] = {f"{name}.{letter}": item for item, letters in zip(items, COMPONENTS) for letter in letters}
    return members | {name: VectorName(items)}


def _builtin(name: str) -> Entity | None:
    if name == "WARP_SZ":
        return WARP_SZ
    if not name.startswith("%"):
        return None
    if name[1:] in SPECIAL_REGISTERS:
        return SReg(name[1:])
    base, _, member = name[1:].partition(".")
    if base not in TRIPLES:
        return None
    items: tuple[SReg | ast.Int, ...] = (*(SReg(f"{base}.{axis}") for axis in "xyz"), ast.Int(0, False, 0, 0))
    if not member:
        return VectorName(items)
    return next((item for item, letters in zip(items, COMPONENTS) if member in letters), None)
