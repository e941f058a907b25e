"""Operands that name surfaces, textures and samplers, with their coordinates (PTX ISA, "tex", "Surface Instructions").

Coordinates come in tuples of one, two or four; elements beyond those that the geometry needs are ignored.
"""

from __future__ import annotations

from ptxemu.check import typerules
from ptxemu.check.names import written
from ptxemu.check.operands import Value
from ptxemu.check.plan import Mismatch, Part
from ptxemu.ir import types
from ptxemu.ir.geometry import GEOMETRIES
from ptxemu.ir.ops import Addr, Imm, Reg, SymRef, Variable
from ptxemu.ir.types import B32, TYPES, U32, U64, ScalarType
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError

OPAQUE = {what: name for name, what in types.OPAQUE.items()}
TUPLE_LENGTHS = (1, 2, 4)


def surface(opcode: str, index: int, geometry: str | None, value: Value) -> Part:
    """``[surface, coordinates]``, or ``[surface]`` where there is no geometry."""
    (base, *rest) = value if isinstance(value, tuple) else (value,)
    _bracketed(opcode, index, "surface", base)
    if geometry is None:
        if rest:
            raise Mismatch(f"'{opcode}' takes no coordinates", index)
        return Part("surface", (U64,))
    if len(rest) != 1:
        raise Mismatch(f"'{opcode}' needs one coordinate tuple after the surface", index)
    _coordinates(index, geometry, rest[0], TYPES["s32"])
    return Part("surface", (U64, B32), len(GEOMETRIES[geometry].coordinates))


def indirect(value: Value) -> bool:
    """Whether an operand has its handle in a register."""
    base = value[0] if isinstance(value, tuple) else value
    return isinstance(base, Addr) and isinstance(base.base, Reg)


def query(opcode: str, index: int, what: str, value: Value) -> Part:
    """``[texture]`` or ``[sampler]``."""
    if isinstance(value, tuple):
        raise Mismatch(f"'{opcode}' takes no coordinates", index)
    _bracketed(opcode, index, what, value)
    return Part("surface", (U64,))


def texture(opcode: str, index: int, mods: dict[str, str], value: Value, independent: bool) -> Part:
    """``[texture, coordinates]``, in independent mode ``[texture, sampler, coordinates]``."""
    (base, *rest) = value if isinstance(value, tuple) else (value,)
    _bracketed(opcode, index, "texture", base)
    ignored = not independent and len(rest) == 2 and _sampler_ignored(index, rest[0])
    if len(rest) != 1 + (independent or ignored):
        mode = "a sampler and a coordinate tuple" if independent else "one coordinate tuple"
        note = ", as '.target texmode_independent' is set" if independent else ""
        raise Mismatch(f"'{opcode}' needs {mode} after the texture{note}", index)
    if independent:
        _handle(index, "sampler", rest[0])
    types = _coordinates(index, mods["geom"], rest[-1], TYPES[mods["ctype"]])
    if ignored and not isinstance(rest[-1], tuple):
        raise Mismatch("a coordinate after a sampler must be in braces", index)
    if ignored:
        raise UnsupportedError("a sampler beside a texture needs '.target texmode_independent'")
    return Part("texture", (U64, U64, *types), len(GEOMETRIES[mods["geom"]].coordinates))


def _sampler_ignored(index: int, value: Value) -> bool:
    """In unified mode ptxas takes a register, a texture or a surface in place of a sampler."""
    if isinstance(value, Reg):
        _handle(index, "sampler", value)
    symbol = value.symbol if isinstance(value, SymRef) else None
    return isinstance(value, Reg) or (isinstance(symbol, Variable) and symbol.type.kind == "opaque")


def gradient(opcode: str, index: int, geometry: str, value: Value) -> Part:
    """A vector of f32, one for each axis; four where there are three."""
    wanted = _padded(geometry)
    if not isinstance(value, tuple) or len(value) != wanted:
        raise Mismatch(f"a gradient of geometry .{geometry} is a vector of {wanted}", index)
    _elements(index, value, (TYPES["f32"],) * wanted, "gradient", integers=False)
    return Part("src", (TYPES["f32"],) * wanted)


def offset(opcode: str, index: int, geometry: str, value: Value) -> Part:
    """A vector of s32, at least one for each axis."""
    if not isinstance(value, tuple):
        raise Mismatch("a texel offset must be a vector in braces", index)
    if len(value) < GEOMETRIES[geometry].axes or len(value) not in TUPLE_LENGTHS:
        raise Mismatch(f"an offset of geometry .{geometry} is a vector of {_padded(geometry)}, not {len(value)}", index)
    _elements(index, value, (TYPES["s32"],) * len(value), "offset")
    return Part("src", (TYPES["s32"],) * len(value))


def tensor(index: int, count: int, value: tuple[Value, ...]) -> tuple[ScalarType, ...]:
    """The types of the coordinates in a tensor."""
    if len(value) != count:
        raise Mismatch(f"there must be {count} tensor coordinate{'s' * (count > 1)}, not {len(value)}", index)
    types = (TYPES["s32"],) * count
    _elements(index, value, types, "tensor coordinate")
    return types


def _padded(geometry: str) -> int:
    """The length of a vector with an element for each axis."""
    axes = GEOMETRIES[geometry].axes
    return 4 if axes == 3 else axes


def _bracketed(opcode: str, index: int, what: str, value: Value) -> None:
    if not isinstance(value, Addr):
        raise Mismatch(f"operand {index + 1} of '{opcode}' must be a {what} in brackets", index)
    if value.offset or (isinstance(value.base, SymRef) and value.base.offset):
        raise Mismatch(f"a {what} operand takes no offset; add it to the register", index)
    _handle(index, what, value.base)


def _handle(index: int, what: str, base: Value) -> None:
    if isinstance(base, Reg):
        if base.type.kind not in "usb" or base.type.bits != 64:
            raise Mismatch(f"a {what} handle has 64 bits; '{written(base.name)}' has type {base.type}", index)
    elif isinstance(base, Imm) or not isinstance(base, SymRef):
        raise Mismatch(f"a {what} is a .{OPAQUE[what]} variable or a 64-bit register, not a literal", index)
    elif not isinstance(base.symbol, Variable) or base.symbol.type.name != OPAQUE[what]:
        raise Mismatch(f"'{written(base.symbol.name)}' is not a {what}", index)
    elif base.symbol.dims:
        name = written(base.symbol.name)
        raise Mismatch(f"'{name}' is an array of {what}s; take an address with mov.u64 first", index)


def _coordinates(index: int, geometry: str, value: Value, kind: ScalarType) -> tuple[ScalarType, ...]:
    """The types of the elements of a tuple."""
    needed = len(GEOMETRIES[geometry].coordinates)
    if not isinstance(value, tuple):
        if isinstance(value, (ast.Int, ast.Float)):
            raise Mismatch("a literal coordinate must be in braces", index)
        value = (value,)
    if len(value) < needed or len(value) not in TUPLE_LENGTHS:
        wanted = {1: "1 coordinate", 2: "2 coordinates"}.get(needed, "4 coordinates")
        raise Mismatch(f"geometry .{geometry} needs {wanted}, not {len(value)}", index)
    types = (U32 if GEOMETRIES[geometry].indexed else kind, *(kind,) * (len(value) - 1))
    if GEOMETRIES[geometry].indexed:
        _element(index, value[0], U32, "layer index")
        untyped = all(not isinstance(item, Reg) or item.type.bits == 32 for item in value[1:])
        for item in value[1:]:
            _element(index, item, B32 if untyped and isinstance(item, Reg) else kind, "coordinate")
    else:
        _elements(index, value, types, "coordinate")
    return types


def _elements(index: int, values: tuple[Value, ...], types: tuple[ScalarType, ...], what: str, *, integers: bool = True) -> None:
    """Whether the elements of a tuple fit, each by itself or all together."""
    held = [item.type for item in values if isinstance(item, Reg)]
    together = bool(held) and typerules.vector_fits(types[0], held, integers=integers)
    for item, kind in zip(values, types):
        if not (together and isinstance(item, Reg)):
            _element(index, item, kind, what)


def _element(index: int, item: Value, kind: ScalarType, what: str) -> None:
    if isinstance(item, Reg):
        fits = typerules.register_fits(kind, item.type, relaxed=False)
    else:
        fits = isinstance(item, (ast.Int, ast.Float)) and typerules.literal_fits(kind, item)
    if not fits:
        name = "an f32" if kind.is_float else "a 32-bit integer"
        raise Mismatch(f"a {what} must be {name} register or a literal", index)
