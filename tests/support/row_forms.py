"""Instructions as rows of the instruction table describe them, written with registers and symbols of fixed names.

Registers are ``%r1``, ``%d1`` and so on: their letters, one of ``NAMES``, say which of ``KINDS`` they have.  Symbols are
those of ``BUFFERS``, ``surf`` and ``tex``; the label is ``LX``.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from ptxemu.ir.geometry import GEOMETRIES
from ptxemu.ir.types import TYPES
from ptxemu.isa.operands import OperandPattern
from ptxemu.isa.table import Row

NEWEST = "9.5"  # version of PTX

NAMES = ("p", "b", "h", "r", "d", "q", "f", "g", "e", "ee", "u", "s", "du", "ds")
KINDS = ("pred", "b8", "b16", "b32", "b64", "b128", "f32", "f64", "f16", "f16x2", "u32", "s32", "u64", "s64")
REGISTER = re.compile(r"%([a-z]+)\d")
BANKS = {"pred": "p", "f32": "f", "f64": "g"}
WIDTHS = {8: "b", 16: "h", 32: "r", 64: "d", 128: "q"}
BUFFERS = {"global": "gbuf", "shared": "sbuf", "const": "cbuf", "local": "lbuf", "param": "n"}
NARROW = {"shared", "local", "const", "param"}
SELECTORS = {"part": ("b0", "b3", "h1"), "halves": ("h10", "h32"), "bytes": ("b3210", "b7531"), "halfmask": ("h10", "h0"),
             "bytemask": ("b3210", "b20"), "whole": ("",)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """An instruction in parts, and the module that it stands in."""

    row: Row
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    version: str
    target: str
    guard: str = ""

    @property
    def text(self) -> str:
        return f"{self.guard}{'.'.join((self.row.opcode, *self.modifiers))} {', '.join(self.operands)}".strip() + ";"


def declared(text: str) -> str:
    """The registers of an instruction: no others, as their types have versions and targets of their own."""
    used = set(REGISTER.findall(text)) | {"p"}
    return " ".join(f".reg .{kind} %{name}<40>;" for name, kind in zip(NAMES, KINDS) if name in used)


def drawn(rng: random.Random, row: Row) -> Form:
    qualifiers = [
        (qualifier, rng.choice(qualifier.values)) for qualifier in row.qualifiers if qualifier.required or rng.random() < 0.35
    ]
    mods = {qualifier.name: word for qualifier, word in qualifiers}
    patterns = [one for one in row.operands if (one.when in mods if one.when else not one.optional or rng.random() < 0.5)]
    operands = tuple(_operand(rng, one, mods) for one in patterns)
    return Form(row, tuple(word for _, word in qualifiers), operands, NEWEST, _target(row, mods))


def _target(row: Row, mods: dict[str, str]) -> str:
    least = max([row.sm, *(row.gates[word][1] for word in mods.values() if word in row.gates)])
    return "sm_90" if least <= 90 else f"sm_{least}a"


def _operand(rng: random.Random, pattern: OperandPattern, mods: dict[str, str]) -> str:
    if pattern.type == "tensor":
        return f"[{rng.choice(('%d1', 'gbuf'))}, {_vector('r', pattern.length(mods) or 1, 1)}]"
    if pattern.role == "mem":
        return _address(rng, pattern, mods)
    if pattern.type in ("surface", "texture", "sampler"):
        return _handle(rng, pattern, mods)
    if pattern.type in ("gradient", "offset"):
        axes = GEOMETRIES[mods[pattern.count or ""]].axes
        return _vector("f" if pattern.type == "gradient" else "r", 4 if axes == 3 else axes, 4)
    if pattern.type in ("label", "targets"):
        return "LX"
    if pattern.name == "_" or (pattern.sink and rng.random() < 0.1):
        return "_"
    if pattern.name.startswith("imm"):
        return str(rng.choice(rng.choice(pattern.values))) if pattern.values else str(rng.randrange(32))
    bank, plain = _bank(pattern.type, mods), pattern.role == "src" and pattern.count is None
    if plain and bank != "p" and not pattern.selector and pattern.type not in ("address", "random") and rng.random() < 0.12:
        literal = "1.5" if bank in "fg" else str(rng.choice(rng.choice(pattern.values))) if pattern.values else "3"
        return literal
    length = _length(pattern, mods)
    text = f"%{bank}{rng.randrange(1, 8)}" if length is None else _vector(bank, length, rng.randrange(1, 8))
    if pattern.selector and (pattern.selected or rng.random() < 0.4):
        selector = rng.choice(SELECTORS[pattern.selector])
        text += "." * bool(selector) + selector
    if pattern.second is not None and (not pattern.second.optional or rng.random() < 0.5):
        text += "|%p2"
    return text


def _length(pattern: OperandPattern, mods: dict[str, str]) -> int | None:
    if pattern.count is None or not (pattern.count.isdecimal() or pattern.count in mods):
        return None
    return int(pattern.count) if pattern.count.isdecimal() else int(mods[pattern.count][1:])


def _vector(bank: str, length: int, first: int) -> str:
    return "{" + ", ".join(f"%{bank}{first + index}" for index in range(length)) + "}"


def _bank(kind: str, mods: dict[str, str]) -> str:
    if kind.startswith("dot("):
        return "r"
    wide = kind.startswith("wide(")
    name = kind[5:-1] if wide else kind
    name = mods.get(name, name)
    if name in BANKS:
        return BANKS[name]
    return "d" if name == "address" else "r" if name == "random" else WIDTHS[TYPES[name].bits << wide]


def _address(rng: random.Random, pattern: OperandPattern, mods: dict[str, str]) -> str:
    space = mods.get(pattern.space, pattern.space if pattern.space in BUFFERS else "").partition("::")[0]
    offset = rng.choice(("", "", "+16", "+0"))
    if pattern.space == "tensor":
        return f"[%r1{offset}]"
    if space == "param" or rng.random() < 0.3:
        return f"[{BUFFERS.get(space, 'gbuf')}{offset if space != 'param' else ''}]"
    return f"[{'%r1' if space in NARROW and rng.random() < 0.5 else '%d1'}{offset}]"


def _handle(rng: random.Random, pattern: OperandPattern, mods: dict[str, str]) -> str:
    base = rng.choice(("%d1", {"surface": "surf", "texture": "tex", "sampler": "%d1"}[pattern.type]))
    if pattern.count is None:
        return f"[{base}]"
    needed, bank = len(GEOMETRIES[mods[pattern.count]].coordinates), "f" if mods.get("ctype") == "f32" else "r"
    items = [f"%{bank}{index + 1}" for index in range(4 if needed == 3 else needed)]
    if mods[pattern.count] in ("a1d", "a2d", "acube"):
        items[0] = "%r1"
    return f"[{base}, {{{', '.join(items)}}}]"
