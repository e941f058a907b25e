"""What the printer and the parser of the typed IR agree on: names, constants, and how an instruction is spelled."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from math import prod

from ptxemu import isa
from ptxemu.ir.ops import Imm
from ptxemu.ir.types import ScalarType
from ptxemu.isa.table import Qualifier, Row
from ptxemu.passes import internal

PLAIN = re.compile(r"[\w$.+#<>|?'%:-]+")
SMALL = 1 << 16  # integers below are decimal
FLOATS = {"f32": ("0f", "<f"), "f64": ("0d", "<d")}


def quoted(name: str) -> str:
    """A name as it stands in the text: in quotes if it has characters that would end it."""
    return name if PLAIN.fullmatch(name) else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquoted(text: str) -> str:
    """The name that :func:`quoted` has written."""
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def natural(kind: ScalarType, vector: int, dims: tuple[int | None, ...]) -> tuple[int, int]:
    """The alignment and the size in bytes of a variable that does not say otherwise."""
    return kind.bytes * max(vector, 1), kind.bytes * max(vector, 1) * prod(length or 0 for length in dims)


# ---------------------------------------------------------------- constants


def constant(value: Imm) -> str:
    """The bits of a constant: a number, in hexadecimal if it is large; of a float, followed by what it stands for."""
    kind, bits = value.type, value.bits
    if kind.name in FLOATS:
        prefix, layout = FLOATS[kind.name]
        (number,) = struct.unpack(layout, bits.to_bytes(kind.bytes, "little"))
        return f"{prefix}{bits:0{kind.bits // 4}x}({number!r})"
    signed = bits - (1 << kind.bits) if kind.is_signed and bits >> (kind.bits - 1) else bits
    return str(signed) if abs(signed) < SMALL else f"{bits:#x}"


def constant_of(text: str, kind: ScalarType) -> Imm:
    """The constant that :func:`constant` has written. Raises ValueError."""
    digits = text.partition("(")[0]
    if digits[:2] in ("0f", "0d"):
        return Imm(int(digits[2:], 16), kind)
    number = int(digits, 0)
    if not -(1 << kind.bits) <= 2 * number < 2 << kind.bits:
        raise ValueError(f"{text} is out of range for {kind}")
    return Imm(number % (1 << kind.bits), kind)


# ---------------------------------------------------------------- instructions


@cache
def rows_of(dialect: str) -> Mapping[str, list[Row]]:
    """The rows that ops of a program may have, by opcode: the table's, those of passes and those of its dialect."""
    found: dict[str, list[Row]] = {opcode: list(rows) for opcode, rows in isa.rows().items()}
    for row in _inserted(dialect):
        found.setdefault(row.opcode, []).append(row)
    return found


def _inserted(dialect: str) -> Iterator[Row]:
    yield from (value for value in vars(internal).values() if isinstance(value, Row))
    for row in isa.rows()["barrier"]:
        yield from internal.halves(row)
    if dialect != "ptx":
        yield from import_module(f"ptxemu.dialects.{dialect}.front").ROWS


@cache
def _resolved(dialect: str, opcode: str, words: tuple[str, ...]) -> tuple[int, dict[str, str]] | None:
    """The first row of an opcode whose qualifiers take the modifiers in this order, by number, and what each qualifier has."""
    for number, row in enumerate(rows_of(dialect).get(opcode, ())):
        mods = assigned(row, words)
        if mods is not None:
            return number, mods
    return None


def assigned(row: Row, words: tuple[str, ...]) -> dict[str, str] | None:
    """Modifiers, in the order of the row's qualifiers, by qualifier; None if they do not fit."""
    return dict(zip(words, words)) if row.any_modifiers else _assign(row.qualifiers, words)


def _assign(qualifiers: tuple[Qualifier, ...], words: tuple[str, ...]) -> dict[str, str] | None:
    if not qualifiers:
        return None if words else {}
    qualifier, *rest = qualifiers
    if words and words[0] in qualifier.values and (found := _assign(tuple(rest), words[1:])) is not None:
        return {qualifier.name: words[0]} | found
    return None if qualifier.required else _assign(tuple(rest), words)


def spelled(dialect: str, row: Row, mods: Mapping[str, str]) -> str:
    """The opcode with its modifiers, such that :func:`instruction` gives this row and these modifiers."""
    return _spelled(dialect, row, tuple(mods.items()))


@cache
def _spelled(dialect: str, row: Row, items: tuple[tuple[str, str], ...]) -> str:
    mods = dict(items)
    words = tuple(mods.values()) if row.any_modifiers else tuple(mods[s.name] for s in row.qualifiers if s.name in mods)
    plain = assigned(row, words) == mods and all(re.fullmatch(r"[\w:]+", word) for word in words)
    number = rows_of(dialect)[row.opcode].index(row)
    head = row.opcode
    if not plain or _resolved(dialect, row.opcode, words) != (number, mods):
        head += f"/{number}"
    if plain:
        return ".".join((head, *words))
    return head + "{" + " ".join(f"{name}={quoted(value)}" for name, value in items) + "}"


INSTRUCTION = re.compile(r"(?P<opcode>\w+)(?:/(?P<number>\d+))?(?P<words>(?:\.[\w:]+)*)(?:\{(?P<mods>[^}]*)\})?")
MODIFIER = re.compile(r'(\w+)=("(?:\\.|[^"\\])*"|[^\s"]+)')


@cache
def instruction(dialect: str, text: str) -> tuple[Row, Mapping[str, str]]:
    """The row and the modifiers of an instruction as :func:`spelled` writes it. Raises ValueError."""
    match = INSTRUCTION.fullmatch(text)
    rows = rows_of(dialect).get(match["opcode"], []) if match else []
    if match is None or not rows:
        raise ValueError(f"unknown instruction '{text}'")
    words = tuple(match["words"].split(".")[1:])
    if match["number"] is None:
        found = _resolved(dialect, match["opcode"], words)
        if found is None:
            raise ValueError(f"no row takes the modifiers of '{text}'")
        return rows[found[0]], found[1]
    row = rows[int(match["number"])] if int(match["number"]) < len(rows) else None
    mods = assigned(row, words) if row is not None and match["mods"] is None else None
    if row is not None and match["mods"] is not None:
        mods = {name: unquoted(value) for name, value in MODIFIER.findall(match["mods"])}
    if row is None or mods is None:
        raise ValueError(f"no such row for '{text}'")
    return row, mods
