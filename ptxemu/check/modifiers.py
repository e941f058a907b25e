"""Sorts the modifiers of an opcode into the qualifiers of its rows, and explains what is wrong where that fails."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from ptxemu.ir.types import TYPES
from ptxemu.isa.table import ROWS, Qualifier, Row
from ptxemu.isa.traits import name_words_of
from ptxemu.text.suggestions import nearest as nearest_name
from ptxemu.text.suggestions import proposing

QUALIFIER_NAMES = {
    "type": "type", "dtype": "type", "atype": "type", "stype": "type", "btype": "type", "size": "type",
    "cmp": "comparison", "round": "rounding mode", "vec": "vector length", "clamp": "clamp mode", "geom": "geometry",
    "cop": "cache operator", "op": "operation", "sem": "memory ordering", "space": "state space", "scope": "scope",
    "mode": "mode", "query": "query", "shape": "matrix shape", "layout": "layout", "num": "number of matrices",
    "level": "level", "evict": "eviction priority", "bool": "boolean operation", "dim": "dimension",
    "omod": "output modifier", "sel": "predicate", "test": "test", "target": "target",
}  # fmt: skip
TYPE_QUALIFIERS = frozenset({"type", "dtype", "atype", "stype", "btype", "ctype"})
REPEATABLE = frozenset({"sat", "cc", "relu", "approx", "NaN", "shiftamt", "satfinite", "sync", "uni"})  # as ptxas does
ORDERED_QUALIFIERS = (TYPE_QUALIFIERS, frozenset({"dst", "src"}), frozenset({"alayout", "blayout"}))
"""Qualifiers whose values keep the order of the row."""
GROUPS = {name: index for index, names in enumerate(ORDERED_QUALIFIERS) for name in names}
MAX_VECTOR_BITS = 128
MOST_LISTED = 10  # words in one message
COMMON_TYPES = ("u32", "s32", "f32", "u64", "f64")
WIDE_VECTORS = {("v8", 32), ("v4", 64)}  # the 256-bit accesses, which have rows of their own


class Form(Struct, frozen=True):
    """A row that takes the modifiers, and the qualifier each of them fills. ``defaults`` names qualifiers filled by default."""

    row: Row
    mods: dict[str, str]
    defaults: tuple[str, ...]


class Misfit(Struct, frozen=True):
    """Why no row takes the modifiers; ``index`` is the modifier to point at, or None for the whole opcode."""

    message: str
    index: int | None


class _Sorted(Struct):
    row: Row
    mods: dict[str, str]
    surplus: list[int]
    missing: list[Qualifier]

    @property
    def faults(self) -> tuple[int, int]:
        return len(self.surplus) + len(self.missing), len(self.surplus)


def sort_modifiers(rows: list[Row], modifiers: tuple[str, ...], strict: bool) -> list[Form] | Misfit:
    """Every row of an opcode that takes these modifiers, or what is wrong with them."""
    misplaced = _misplaced(rows[0].opcode, modifiers)
    if misplaced is not None:
        return misplaced
    known = set(modifiers)
    found = [_sort(row, modifiers) for row in rows if row.any_modifiers or row.by_modifier.keys() >= known]
    fitting = [one for one in found if not one.surplus and (not one.missing or _defaulted(one, strict))]
    wide = [one for one in fitting if _too_wide(one.row, one.mods)]
    if fitting and len(wide) == len(fitting):
        vector = modifiers.index(fitting[0].mods["vec"])
        return Misfit(f"a vector of {fitting[0].mods['type']} this long exceeds {MAX_VECTOR_BITS} bits", vector)
    forms = [_form(one) for one in fitting if one not in wide]
    return forms or _explain(rows[0].opcode, modifiers, [_sort(row, modifiers) for row in rows])


def _misplaced(opcode: str, modifiers: tuple[str, ...]) -> Misfit | None:
    """A part of the opcode's name that stands after another modifier."""
    words = name_words_of(opcode)
    start = next((index for index, word in enumerate(modifiers) if word not in words), len(modifiers))
    late = next((index for index in range(start, len(modifiers)) if modifiers[index] in words), None)
    return None if late is None else Misfit(f"'.{modifiers[late]}' must follow '{opcode}' directly", late)


def _sort(row: Row, modifiers: tuple[str, ...]) -> _Sorted:
    """Fill qualifiers in written order: required qualifiers take precedence over optional ones that accept the same word."""
    if row.any_modifiers:
        return _Sorted(row, dict(zip(modifiers, modifiers)), [], [])
    return min((_fill(row, takers, modifiers) for takers in _takers(row)), key=lambda one: one.faults)


Takers = dict[str, list[tuple[Qualifier, int, int | None]]]
"""The qualifiers that a word may fill, the preferred one first: each with its place in the row, and the group in order."""


@cache
def _takers(row: Row) -> list[Takers]:
    """With the qualifiers in written order; and with the required ones first, where that makes a difference."""
    words = name_words_of(row.opcode)
    found: list[Takers] = []
    for required_first in (False, True):
        takers: Takers = {}
        for place, qualifier in sorted(enumerate(row.qualifiers), key=lambda item: required_first and not item[1].required):
            for word in qualifier.values:
                group = -1 if word in words else GROUPS.get(qualifier.name)
                takers.setdefault(word, []).append((qualifier, place, group))
        if takers not in found:
            found.append(takers)
    return found


def _fill(row: Row, takers: Takers, modifiers: tuple[str, ...]) -> _Sorted:
    mods: dict[str, str] = {}
    surplus = []
    latest: dict[int, int] = {}  # of each group that has an order: qualifiers before this one may no longer be given
    for index, word in enumerate(modifiers):
        taker = next((taker for taker in takers.get(word, ()) if taker[0].name not in mods), None)
        if taker is None:
            if word not in REPEATABLE or word not in mods.values():
                surplus.append(index)
            continue
        qualifier, place, group = taker
        if group is not None and place < latest.get(group, 0):
            surplus.append(index)
            continue
        mods[qualifier.name] = word
        if group is not None:
            latest[group] = place
    missing = [qualifier for qualifier in row.qualifiers if qualifier.required and qualifier.name not in mods]
    return _Sorted(row, mods, surplus, missing)


def _defaulted(one: _Sorted, strict: bool) -> bool:
    return not strict and all(qualifier.default is not None for qualifier in one.missing)


def _form(one: _Sorted) -> Form:
    defaults = {qualifier.name: qualifier.default for qualifier in one.missing if qualifier.default is not None}
    return Form(one.row, one.mods | defaults, tuple(defaults))


def _too_wide(row: Row, mods: dict[str, str]) -> bool:
    length, kind = mods.get("vec"), TYPES.get(mods.get("type", ""))
    if length is None or kind is None or int(length[1:]) * kind.bits <= MAX_VECTOR_BITS:
        return False
    own_row = all(qualifier.required for qualifier in row.qualifiers if qualifier.name == "vec")
    return not (own_row and (length, kind.bits) in WIDE_VECTORS)


# ---------------------------------------------------------------- explanations


def _explain(opcode: str, modifiers: tuple[str, ...], found: list[_Sorted]) -> Misfit:
    words = {value for one in found for qualifier in one.row.qualifiers for value in qualifier.values}
    for index, word in enumerate(modifiers):
        if word not in words:
            return Misfit(_unknown(opcode, word, found, words), index)
    nearest = min(found, key=lambda one: (one.faults, not _wrong_type(one, modifiers)))
    tied = [one for one in found if one.faults == nearest.faults and one.surplus == nearest.surplus]
    if not nearest.surplus:
        return _missing(opcode, tied)
    if _wrong_type(nearest, modifiers):
        rounding = _wrong_rounding(opcode, modifiers, found)
        typed = [one for one in tied if _wrong_type(one, modifiers)]
        return rounding or _type(opcode, modifiers, nearest.surplus[0], typed)
    return _second_operation(opcode, modifiers, nearest, found) or _surplus(opcode, modifiers, nearest)


def _unknown(opcode: str, word: str, found: list[_Sorted], words: set[str]) -> str:
    """A word that no row of the opcode has: misspelt, or a modifier of other instructions."""
    qualifiers = [qualifier for one in found for qualifier in one.row.qualifiers]
    typed = dict.fromkeys(value for qualifier in qualifiers if qualifier.name in TYPE_QUALIFIERS for value in qualifier.values)
    if word in TYPES and typed:
        return f"'{opcode}' cannot have type .{word}{_other_type(word, list(typed))}"
    qualifier = next((qualifier for qualifier in qualifiers if word in _values(qualifier.name)), None)
    if qualifier is not None:
        values = dict.fromkeys(value for other in qualifiers if other.name == qualifier.name for value in other.values)
        return f"'{opcode}' cannot have the {qualifier_name(qualifier)} .{word}, only {alternatives(list(values))}"
    proposal = nearest_name(word, words)
    return f"unknown modifier '.{word}' for '{opcode}'{proposing(proposal and f'.{proposal}')}"


def _other_type(word: str, types: list[str]) -> str:
    """The type of the same size that was meant, or a short list of all."""
    alike = [] if word == "pred" else [name for name in types if name in TYPES and TYPES[name].bits == TYPES[word].bits]
    bits = f"b{TYPES[word].bits}"
    proposal = bits if TYPES[word].is_float and bits in alike else nearest_name(word, alike)
    if proposal:
        return proposing(f".{proposal}")
    return f", only {alternatives(types)}" if len(types) <= MOST_LISTED else ""


@cache
def _values(qualifier: str) -> frozenset[str]:
    """All values that instructions may have in the qualifiers of one name, where the name says what they hold."""
    if qualifier not in QUALIFIER_NAMES or qualifier in TYPE_QUALIFIERS or qualifier == "mode":
        return frozenset()
    forms = (form for rows in ROWS.values() for form in rows)
    return frozenset(word for form in forms for one in form.qualifiers if one.name == qualifier for word in one.values)


def _wrong_rounding(opcode: str, modifiers: tuple[str, ...], found: list[_Sorted]) -> Misfit | None:
    """A rounding mode that the types do not have; they have others, or none."""
    modes = _values("round")
    index = next((index for index, word in enumerate(modifiers) if word in modes), None)
    if index is None:
        return None
    others = modifiers[:index] + modifiers[index + 1 :]
    without = [_sort(one.row, others) for one in found]
    if not any(not one.surplus and {qualifier.name for qualifier in one.missing} <= {"round"} for one in without):
        return None
    return Misfit(f"'.{modifiers[index]}' cannot be combined with '{_without(opcode, modifiers, index)}'", index)


def _wrong_type(one: _Sorted, modifiers: tuple[str, ...]) -> bool:
    """Whether nothing is wrong but the type, which the row does not have."""
    if len(one.surplus) != 1 or len(one.missing) != 1:
        return False
    return modifiers[one.surplus[0]] in TYPES and all(value in TYPES for value in one.missing[0].values)


def _type(opcode: str, modifiers: tuple[str, ...], index: int, rows: list[_Sorted]) -> Misfit:
    values = dict.fromkeys(value for one in rows for value in one.missing[0].values)
    name = _without(opcode, modifiers, index)
    return Misfit(f"'{name}' cannot have type .{modifiers[index]}, only {alternatives(list(values))}", index)


def _without(opcode: str, modifiers: tuple[str, ...], index: int) -> str:
    return opcode + "".join(f".{word}" for position, word in enumerate(modifiers) if position != index)


def _second_operation(opcode: str, modifiers: tuple[str, ...], one: _Sorted, found: list[_Sorted]) -> Misfit | None:
    """Two operations, each of which has rows of its own."""
    index = one.surplus[0]
    word, first = modifiers[index], one.mods.get("op")
    known = {
        value for other in found for qualifier in other.row.qualifiers if qualifier.name == "op" for value in qualifier.values
    }
    if first is None or word not in known or word in one.row.by_modifier:
        return None
    return Misfit(f"'.{word}' and '.{first}' both give the operation of '{opcode}'", index)


def _surplus(opcode: str, modifiers: tuple[str, ...], one: _Sorted) -> Misfit:
    index = one.surplus[0]
    word = modifiers[index]
    qualifier = one.row.by_modifier.get(word)
    if qualifier is None:
        return Misfit(f"'.{word}' cannot be combined with '{_without(opcode, modifiers, index)}'", index)
    first = one.mods.get(qualifier.name)
    if first is None:
        return Misfit(f"'.{word}' stands in the wrong place among the modifiers of '{opcode}'", index)
    if first == word:
        return Misfit(f"'.{word}' is given twice", index)
    return Misfit(f"'.{word}' and '.{first}' both give the {qualifier_name(qualifier)} of '{opcode}'", index)


def _missing(opcode: str, rows: list[_Sorted]) -> Misfit:
    qualifier = rows[0].missing[0]
    names = {one.missing[0].name for one in rows}
    if len(names) > 1 and len(rows[0].missing) == 1:
        values = dict.fromkeys(value for one in rows for value in one.missing[0].values)
        if len(values) <= MOST_LISTED and not values.keys() & TYPES.keys():
            return Misfit(f"'{opcode}' needs a modifier: {alternatives(list(values))}", None)
    values = dict.fromkeys(
        value for one in rows for other in one.missing if other.name == qualifier.name for value in other.values
    )
    name = qualifier_name(qualifier)
    if qualifier.name in TYPE_QUALIFIERS and any(other in TYPE_QUALIFIERS for other in rows[0].mods):
        name = "second type"
    article = "an" if name[0] in "aeiou" else "a"
    return Misfit(f"'{opcode}' needs {article} {name}: {_some(list(values))}", None)


def _some(words: list[str]) -> str:
    """All words, or the most common types if they are many."""
    common = [word for word in COMMON_TYPES if word in words]
    if len(words) <= MOST_LISTED or not common:
        return alternatives(words)
    return ", ".join(f".{word}" for word in common) + ", or another one"


def qualifier_name(qualifier: Qualifier) -> str:
    """How messages name a qualifier."""
    return QUALIFIER_NAMES.get(qualifier.name, "modifier")


def alternatives(words: list[str]) -> str:
    """``.a, .b or .c``"""
    dotted = [f".{word}" for word in words]
    return dotted[0] if len(dotted) == 1 else ", ".join(dotted[:-1]) + " or " + dotted[-1]
