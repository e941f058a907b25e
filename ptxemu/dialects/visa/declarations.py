"""``.decl`` and the predefined variables (vISA "Variables")."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxemu.dialects.build import Builder
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa.ast import Alias, Number, Text, Value
from ptxemu.dialects.visa.grammar import whole
from ptxemu.dialects.visa.variables import (
    CHANNELS,
    ELEMENT_TYPES,
    MOST_BYTES,
    NULL_NAMES,
    Declared,
    General,
    Predicate,
    Scope,
    SurfaceVariable,
    new_bits,
    new_words,
)
from ptxemu.ir.ops import SReg, SymRef, Variable
from ptxemu.ir.types import TYPES, U64
from ptxemu.isa.table import internal_row
from ptxemu.syntax.ast import Name
from ptxemu.text.suggestions import closest

Attributes = Sequence[tuple[Name, Value]]
Binder = Callable[[Name], Variable]
SURFACE = internal_row("_visa_surface", "d, s", lower="visa_surface", does="pure")
ATTRIBUTES = ("v_type", "type", "num_elts", "align", "alias", "v_name", "offset")
AXES = "xyz"
PREDEFINED = {f"%{name}_{axis}": f"{ptx}.{axis}" for axis in AXES for name, ptx in (
    ("local_id", "tid"), ("local_size", "ntid"), ("group_id", "ctaid"), ("group_count", "nctaid"),
)}  # fmt: skip


def declare(body: Builder, scope: Scope, name: Name, attributes: Attributes, bind: Binder) -> None:
    """``.decl NAME v_type=G type=ud num_elts=8``, with its attributes."""
    given: dict[str, tuple[Name, Value]] = {}
    for key, value in attributes:
        if key.text not in ATTRIBUTES:
            raise TextError(f"unknown attribute '{key.text}'{closest(key.text, ATTRIBUTES)}", key.pos, key.end)
        if key.text in given:
            raise TextError(f"'{key.text}' is given twice", key.pos, key.end)
        given[key.text] = key, value
    kind = _text(given, "v_type", name)
    if kind not in DECLARE:
        key, _ = given["v_type"]
        raise TextError(f"v_type is {kind}, not one of {', '.join(DECLARE)}", key.pos, key.end)
    second = _second_name(given)
    made = DECLARE[kind](body, scope, name, second or name, given, bind)
    scope.add(name, made)
    if second is not None and second.text != name.text:
        scope.add(second, made)


def special(body: Builder, scope: Scope, name: Name) -> None:
    """Declare a predefined variable, such as ``%local_id_x``, where it is used first."""
    text = name.text.partition(".")[0]
    if text in NULL_NAMES or text in scope.names:
        return
    if text not in PREDEFINED:
        raise TextError(f"unknown predefined variable '{text}'{closest(text, (*PREDEFINED, *NULL_NAMES))}", name.pos, name.end)
    words = new_words(text, 4)
    body.emit("mov.u32", words[0], SReg(PREDEFINED[text]))
    scope.names[text] = General(text, "ud", 1, words)


def _second_name(given: dict[str, tuple[Name, Value]]) -> Name | None:
    if "v_name" not in given:
        return None
    value = given["v_name"][1]
    if not isinstance(value, Name | Text) or not value.text:
        raise TextError("v_name is a name", given["v_name"][0].pos, given["v_name"][0].end)
    return Name(value.text, value.pos, value.end)


def _text(given: dict[str, tuple[Name, Value]], key: str, name: Name) -> str:
    if key not in given:
        raise TextError(f"'{name.text}' needs {key}=", name.pos, name.end)
    value = given[key][1]
    return value.text if isinstance(value, Name) else ""


def _count(given: dict[str, tuple[Name, Value]], name: Name, most: int) -> int:
    if "num_elts" not in given:
        raise TextError(f"'{name.text}' needs num_elts=", name.pos, name.end)
    key, value = given["num_elts"]
    count = whole(value) if isinstance(value, Number) else 0
    if not 1 <= count <= most:
        raise TextError("num_elts is 1" if most == 1 else f"num_elts is from 1 to {most}", key.pos, key.end)
    return count


def _general(
    body: Builder, scope: Scope, name: Name, shown: Name, given: dict[str, tuple[Name, Value]], bind: Binder
) -> Declared:
    kind = _text(given, "type", name).lower()
    if kind not in ELEMENT_TYPES:
        key, _ = given["type"]
        raise TextError(f"type is {kind or 'no name'}, not one of {', '.join(ELEMENT_TYPES)}", key.pos, key.end)
    size = TYPES[ELEMENT_TYPES[kind]].bytes
    count = _count(given, name, MOST_BYTES // size)
    if "alias" not in given:
        return General(shown.text, kind, count, new_words(name.text, count * size))
    key, value = given["alias"]
    if not isinstance(value, Alias):
        raise TextError("an alias is written alias=<V40, 32>", key.pos, key.end)
    base = scope.general(value.name)
    offset = whole(value.offset)
    if offset < 0 or offset + count * size > base.bytes:
        text = f"{count * size} bytes from byte {offset} on exceed the {base.bytes} of '{base.name}'"
        raise TextError(text, value.name.pos, value.offset.end)
    return General(shown.text, kind, count, base.words, base.offset + offset)


def _predicate(
    body: Builder, scope: Scope, name: Name, shown: Name, given: dict[str, tuple[Name, Value]], bind: Binder
) -> Declared:
    return Predicate(shown.text, new_bits(name.text, _count(given, name, CHANNELS)))


def _surface(
    body: Builder, scope: Scope, name: Name, shown: Name, given: dict[str, tuple[Name, Value]], bind: Binder
) -> Declared:
    _count(given, name, 1)
    variable = bind(shown)
    handle = body.temp("b64")
    body.add(SURFACE, {}, (handle,), (SymRef(variable, 0),), (U64,), (U64,))
    return SurfaceVariable(shown.text, variable, handle)


DECLARE = {"G": _general, "P": _predicate, "T": _surface}
"""By v_type."""
