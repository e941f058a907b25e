"""The types of an op's operands, as its row and its modifiers say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from ptxemu.ir.ops import Op, Vec
from ptxemu.ir.types import B32, PRED, TYPES, U64, ScalarType
from ptxemu.isa.operands import COORDINATES, SAMPLER
from ptxemu.isa.table import Row

FIXED = {"surface": U64, "texture": U64, "sampler": U64, "random": B32, "gradient": TYPES["f32"], "offset": TYPES["s32"]}
IMPLICIT = {"cc": PRED, "stack": U64}
Types = tuple[tuple[ScalarType | None, ...], tuple[ScalarType, ...]]


def named_type(name: str, mods: Mapping[str, str]) -> ScalarType:
    """What a type in a row stands for (KeyError if it does not name a scalar type)."""
    if name.startswith("wide("):
        narrow = named_type(name[5:-1], mods)
        return TYPES[narrow.name.rstrip("0123456789") + str(narrow.bits * 2)]
    if name.startswith("dot("):
        unsigned = all(named_type(part, mods).kind == "u" for part in name[4:-1].split(","))
        return TYPES["u32" if unsigned else "s32"]
    return TYPES[mods.get(name, name)]


def types_of(op: Op) -> Types | None:
    """The types that an op should have for its sources and its results; None if its row does not say them."""
    elements = (len(source.items) if isinstance(source, Vec) else 1 for source in op.srcs)
    return instruction_types(op.row, op.mods, len(op.dsts), elements)


def instruction_types(row: Row, mods: Mapping[str, str], results: int, elements: Iterable[int]) -> Types | None:
    """The same for an op with so many results and sources of so many elements.

    An address of untyped data has None.
    """
    return _types(row, tuple(mods.items()), results, tuple(elements))


@cache
def _types(row: Row, items: tuple[tuple[str, str], ...], results: int, elements: tuple[int, ...]) -> Types | None:
    if row.any_operands:
        return None if results else ((None,) * len(elements), ())
    try:
        return _by_name(row, dict(items), results, elements)
    except KeyError:  # a type that is known by the operand only
        return None


def _by_name(row: Row, mods: Mapping[str, str], results: int, elements: tuple[int, ...]) -> Types | None:
    found = row.fitting(mods, results, len(elements))
    if found is None:
        return None
    sources: list[ScalarType | None] = [None] * len(elements)
    made: list[ScalarType | None] = [None] * results
    for name, place in found.items():
        if place is not None and place.result:
            kind = _type(row, mods, name, results if place.vector else 1)
            made[place.start : place.stop] = [kind] * (place.stop - place.start)
        elif place is not None:
            sources[place.start : place.stop] = [_type(row, mods, name, count) for count in elements[place.start : place.stop]]
    unplaced = [index for index, kind in enumerate(made) if kind is None]  # also read, so they have their place in the sources
    for index, written in zip(unplaced, row.implicit.writes[-len(unplaced) :]):
        made[index] = IMPLICIT[written]
    return tuple(sources), tuple(kind for kind in made if kind is not None)


def _type(row: Row, mods: Mapping[str, str], name: str, elements: int) -> ScalarType | None:
    """The type of an operand, or of one of its elements."""
    pattern = row.pattern(name)
    if pattern is None:
        return _unnamed(row, mods, name)
    if pattern.type in FIXED:
        return FIXED[pattern.type]
    if pattern.role == "mem" and not pattern.type:
        return None
    kind = named_type(pattern.type, mods)
    return TYPES[f"b{kind.bits // elements}"] if pattern.count is None and elements > 1 else kind


def _unnamed(row: Row, mods: Mapping[str, str], name: str) -> ScalarType:
    """The type of an operand that has no pattern of its own."""
    if name == SAMPLER:
        return U64
    if name == "accumulator":
        return named_type(row.operands[0].type, mods)
    if name != COORDINATES:
        return IMPLICIT[name]
    surface = any(pattern.type == "surface" for pattern in row.operands)
    return B32 if surface else TYPES[mods["ctype"]]
