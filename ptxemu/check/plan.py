"""Plans: how the operands of one shape of instruction become the parts of an :class:`ptxemu.ir.ops.Op`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ptxemu.check import typerules
from ptxemu.check.operands import Negated, Selected, Value
from ptxemu.ir.ops import Imm, Operand, Reg, Vec
from ptxemu.ir.types import B32, TYPES, U64, ScalarType
from ptxemu.isa.table import Row
from ptxemu.syntax import ast


class Mismatch(Exception):
    """An operand does not fit; ``path`` leads to it (operand index, then element index) and is empty for the opcode."""

    def __init__(self, message: str, *path: int) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class Part(Struct, frozen=True):
    """What one operand becomes: ``role`` is dst, src, mem, surface, texture, tensor or any; ``types`` are of its elements."""

    role: str
    types: tuple[ScalarType, ...]
    keep: int = 0  # coordinates of a surface or texture operand


class Plan(Struct):
    """How operands of one shape become an Op.

    ``results`` is the number of leading destinations when every operand is one plain value (then ``literals`` lists
    the sources to convert), else -1 and ``parts`` tells what to do with each.  It depends on the kinds of the
    operands only; messages name operands, so a Mismatch is made anew each time.
    """

    row: Row
    mods: dict[str, str]
    defaults: tuple[str, ...]
    parts: tuple[Part, ...]
    dst_types: tuple[ScalarType, ...]
    src_types: tuple[ScalarType | None, ...]
    negs: tuple[bool, ...]
    results: int
    literals: tuple[tuple[int, ScalarType], ...]
    limits: tuple[tuple[int, tuple[range, ...]], ...] = ()  # the values that immediates may have
    orders: tuple[tuple[int, int], ...] = ()  # immediates that may not exceed others
    given: tuple[str, ...] = ()  # optional operands that are present: ``+name``, ``|name`` for a second destination, or INDIRECT
    stored: tuple[bool, ...] = ()  # the elements that a store has, where it leaves out some
    remarks: tuple[tuple[str, str], ...] = ()  # (severity, message) for each use

    def assemble(self, values: list[Value]) -> tuple[tuple[Reg | None, ...], tuple[Operand, ...]]:
        """Destinations and sources of an instruction with vectors, pairs or surfaces."""
        dsts: list[Reg | None] = []
        srcs: list[Operand] = []
        for part, value in zip(self.parts, values):
            if part.role == "dst":
                dsts += _flat(value) if isinstance(value, tuple) else [_register(value)] * len(part.types)
            elif part.role == "surface":
                srcs += _surface(value, part)
            elif part.role == "tensor":
                srcs += [value[0], Vec(tuple(_source(item, kind) for item, kind in zip(value[1], part.types)))]
            elif part.role == "texture":
                srcs += _texture(value, part)
            elif isinstance(value, tuple):
                srcs.append(_vector(value, part))
            elif value is not None:
                srcs.append(_source(value, part.types[0] if part.types else None))
        return tuple(dsts), tuple(srcs)


def _source(value: Value, kind: ScalarType | None) -> Operand:
    if isinstance(value, (ast.Int, ast.Float)):
        fallback = TYPES["b64"] if isinstance(value, ast.Int) else TYPES[f"f{value.width}"]
        return typerules.literal_value(kind or fallback, value)
    operand: Operand = _register(value)
    return operand


def _register(value: Value) -> Any:
    return value.reg if isinstance(value, (Negated, Selected)) else value


def _vector(values: tuple[Value, ...], part: Part) -> Operand:
    """A vector source; ``{x}`` is ``x``. Operands of unsupported instructions keep their nesting."""
    types = part.types or (None,) * len(values)
    items = [_vector(value, part) if isinstance(value, tuple) else _source(value, kind)
             for value, kind in zip(values, types) if value is not None]  # fmt: skip
    return items[0] if len(items) == 1 and part.role == "src" else Vec(tuple(items))


def _flat(values: tuple[Value, ...]) -> list[Reg | None]:
    """``{a, b}|p`` as a list."""
    return [item for value in values for item in (value if isinstance(value, tuple) else (value,))]


def _texture(value: Value, part: Part) -> list[Operand]:
    """The texture, its sampler (0 for its own) and the coordinates."""
    address, *sampler, last = value
    coordinates = last if isinstance(last, tuple) else (last,)
    items = tuple(_source(item, kind) for item, kind in zip(coordinates, part.types[2:]))
    return [address.base, sampler[0] if sampler else Imm(0, U64), Vec(items[: part.keep])]


def _surface(value: Value, part: Part) -> list[Operand]:
    address, *rest = value if isinstance(value, tuple) else (value,)
    if not rest:
        return [address.base]
    coordinates = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
    return [address.base, Vec(tuple(_source(item, B32) for item in coordinates[: part.keep]))]
