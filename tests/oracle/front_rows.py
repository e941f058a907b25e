# ruff: noqa: E501 (the word lists are tables)
"""Every row of the instruction table: one instruction that it describes, and instructions broken in one way each."""

from __future__ import annotations

import random
import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

from front_cases import SYMBOLS, Case, header
from front_forms import MODIFIERS

from ptxemu.check.handles import AXES, COORDINATES
from ptxemu.isa import rows
from ptxemu.isa.table import OperandPattern, Row
from ptxemu.types import TYPES

NAMES = ("p", "b", "h", "r", "d", "q", "f", "g", "e", "ee", "u", "s", "du", "ds")
KINDS = ("pred", "b8", "b16", "b32", "b64", "b128", "f32", "f64", "f16", "f16x2", "u32", "s32", "u64", "s64")
REGISTER = re.compile(r"%([a-z]+)\d")
VARIABLES = SYMBOLS + ".global .texref tex;\n"
BANKS = {"pred": "p", "f32": "f", "f64": "g"}
WIDTHS = {8: "b", 16: "h", 32: "r", 64: "d", 128: "q"}
BUFFERS = {"global": "gbuf", "shared": "sbuf", "const": "cbuf", "local": "lbuf", "param": "n"}
NARROW = {"shared", "local", "const", "param"}
SELECTORS = {"part": ("b0", "b3", "h1"), "halves": ("h10", "h32"), "bytes": ("b3210", "b7531"), "halfmask": ("h10", "h0"),
             "bytemask": ("b3210", "b20"), "whole": ("",)}  # fmt: skip
VERSIONS = ("3.0", "3.1", "3.2", "4.0", "4.1", "4.2", "4.3", "5.0",
            "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2",
            "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0")  # fmt: skip
TARGETS = (30, 32, 35, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120)
FIRST_VERSION = {30: "3.0", 32: "4.0", 35: "3.1", 50: "4.0", 52: "4.1", 53: "4.2", 60: "5.0", 61: "5.0",
                 62: "5.0", 70: "6.0", 72: "6.1", 75: "6.3", 80: "7.0", 86: "7.1", 87: "7.4", 89: "7.8", 90: "7.8", 100: "8.6",
                 103: "8.8", 120: "8.7"}  # fmt: skip
OTHERS = ("1", "0", "-1", "1.0", "0f3F800000", "0d3FF0000000000000", "%p1", "!%p1", "%tid.x", "%clock64", "_", "gbuf", "sbuf", "surf",
          "[%d1]", "[%r1]", "[gbuf]", "[sbuf]", "{%r1,%r2}", "{%r1}", "-%r1", "%r1|%p1", "%p1|%p2", "65536", "0x1ffffffff", "nosuch")  # fmt: skip
ADDRESSES = ("[gbuf]", "[sbuf]", "[cbuf]", "[lbuf]", "[n]", "[%d1]", "[%r1]", "[%h1]", "[%f1]", "[%p1]", "[64]", "[0]", "[gbuf+16]",
             "[sbuf+16]", "[%d1+4]", "[%d1-4]", "[%r1+4]", "[%du1]", "[%s1]", "[surf]", "[tex]", "%d1", "gbuf", "[%d1+%d2]", "[nosuch]")  # fmt: skip
IMMEDIATES = ("0", "-1", "1", "3", "4", "5", "7", "8", "12", "16", "17", "24", "31", "32", "33", "64", "128", "255", "256", "257",
              "65535", "65536", "4294967295", "4294967296", "-2147483649", "1.0", "%r1")  # fmt: skip


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

    def case(self, rule: str) -> Case:
        body = f"    .local .align 16 .b8 lbuf[64];\n    {declared(self.text)}\n    {self.text}\nLX:\n    ret;\n"
        kernel = f".visible .entry k(.param .u64 out, .param .b32 n)\n{{\n{body}}}\n"
        name = f"{self.version} {self.target} {self.text}"
        return Case(f"forms: {rule}", name, header(self.version, self.target) + VARIABLES + kernel)


Change = Callable[[random.Random, Form], Form | None]
"""Breaks one thing, or returns None where the form has no such thing."""


def declared(text: str) -> str:
    """The registers of an instruction: no others, as their types have versions and targets of their own."""
    used = set(REGISTER.findall(text)) | {"p"}
    return " ".join(f".reg .{kind} %{name}<40>;" for name, kind in zip(NAMES, KINDS) if name in used)


# ---------------------------------------------------------------- a form that a row describes


def drawn(rng: random.Random, row: Row) -> Form:
    slots = [(slot, rng.choice(slot.values)) for slot in row.slots if slot.required or rng.random() < 0.35]
    mods = {slot.name: word for slot, word in slots}
    patterns = [one for one in row.operands if (one.when in mods if one.when else not one.optional or rng.random() < 0.5)]
    return Form(
        row, tuple(word for _, word in slots), tuple(_operand(rng, one, mods) for one in patterns), "9.0", _target(row, mods)
    )


def _target(row: Row, mods: dict[str, str]) -> str:
    least = max([row.sm, *(row.gates[word][1] for word in mods.values() if word in row.gates)])
    return "sm_90" if least <= 90 else f"sm_{least}a"


def _operand(rng: random.Random, pattern: OperandPattern, mods: dict[str, str]) -> str:
    if pattern.role == "mem":
        return _address(rng, pattern, mods)
    if pattern.type in ("surface", "texture", "sampler"):
        return _handle(rng, pattern, mods)
    if pattern.type in ("gradient", "offset"):
        axes = AXES[mods[pattern.count or ""]]
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
    if space == "param" or rng.random() < 0.3:
        return f"[{BUFFERS.get(space, 'gbuf')}{offset if space != 'param' else ''}]"
    return f"[{'%r1' if space in NARROW and rng.random() < 0.5 else '%d1'}{offset}]"


def _handle(rng: random.Random, pattern: OperandPattern, mods: dict[str, str]) -> str:
    base = rng.choice(("%d1", {"surface": "surf", "texture": "tex", "sampler": "%d1"}[pattern.type]))
    if pattern.count is None:
        return f"[{base}]"
    needed, bank = COORDINATES[mods[pattern.count]], "f" if mods.get("ctype") == "f32" else "r"
    items = [f"%{bank}{index + 1}" for index in range(4 if needed == 3 else needed)]
    if mods[pattern.count] in ("a1d", "a2d", "acube"):
        items[0] = "%r1"
    return f"[{base}, {{{', '.join(items)}}}]"


# ---------------------------------------------------------------- modifiers


def _inserted(items: tuple[str, ...], index: int, *new: str, drop: int = 0) -> tuple[str, ...]:
    return (*items[:index], *new, *items[index + drop :])


def _missing(rng: random.Random, form: Form) -> Form | None:
    if not form.modifiers:
        return None
    return replace(form, modifiers=_inserted(form.modifiers, rng.randrange(len(form.modifiers)), drop=1))


def _repeated(rng: random.Random, form: Form) -> Form | None:
    if not form.modifiers:
        return None
    index = rng.randrange(len(form.modifiers))
    return replace(form, modifiers=_inserted(form.modifiers, rng.choice((index, len(form.modifiers))), form.modifiers[index]))


def _reordered(rng: random.Random, form: Form) -> Form | None:
    if len(form.modifiers) < 2:
        return None
    words = list(form.modifiers)
    first, second = rng.sample(range(len(words)), 2) if rng.random() < 0.3 else (at := rng.randrange(len(words) - 1), at + 1)
    words[first], words[second] = words[second], words[first]
    return replace(form, modifiers=tuple(words))


def _unknown(rng: random.Random, form: Form) -> Form | None:
    if not form.modifiers:
        return None
    index = rng.randrange(len(form.modifiers))
    word = rng.choice((form.modifiers[index] + "x", form.modifiers[index][:-1] or "z", "foo"))
    return replace(form, modifiers=_inserted(form.modifiers, index, word, drop=1))


def _akin(rng: random.Random, form: Form) -> str:
    """A modifier of another row of the opcode, mostly; of its own slots, often."""
    roll = rng.random()
    if roll < 0.15:
        return rng.choice(MODIFIERS)
    rows_ = [form.row] if roll < 0.4 else rows()[form.row.opcode]
    words = sorted({word for one in rows_ for slot in one.slots for word in slot.values})
    return rng.choice(words or MODIFIERS)


def _exchanged(rng: random.Random, form: Form) -> Form | None:
    if not form.modifiers:
        return None
    return replace(form, modifiers=_inserted(form.modifiers, rng.randrange(len(form.modifiers)), _akin(rng, form), drop=1))


def _added(rng: random.Random, form: Form) -> Form:
    return replace(form, modifiers=_inserted(form.modifiers, rng.randrange(len(form.modifiers) + 1), _akin(rng, form)))


# ---------------------------------------------------------------- operands


def _changed(rng: random.Random, form: Form, change: Callable[[str], str | None], index: int | None = None) -> Form | None:
    if not form.operands:
        return None
    at = rng.randrange(len(form.operands)) if index is None else index
    text = change(form.operands[at])
    return None if text is None else replace(form, operands=_inserted(form.operands, at, text, drop=1))


def _fewer(rng: random.Random, form: Form) -> Form | None:
    return replace(form, operands=_inserted(form.operands, rng.randrange(len(form.operands)), drop=1)) if form.operands else None


def _more(rng: random.Random, form: Form) -> Form:
    extra = rng.choice(("%r7", "%r7", "0", "%p3", "%d7", *form.operands))
    return replace(
        form, operands=_inserted(form.operands, rng.choice((len(form.operands), rng.randrange(len(form.operands) + 1))), extra)
    )


def _register(rng: random.Random, form: Form) -> Form | None:
    """Another type in a register, or in one or all elements of a vector."""

    def change(text: str) -> str | None:
        if "%" not in text or text.startswith("["):
            return None
        bank = rng.choice(NAMES)
        parts = text.split("%")
        chosen = range(1, len(parts)) if rng.random() < 0.5 else [rng.randrange(1, len(parts))]
        for index in chosen:
            parts[index] = bank + parts[index].lstrip("abcdefghijklmnopqrstuvwxyz")
        return "%".join(parts)

    return _changed(rng, form, change)


def _operand_kind(rng: random.Random, form: Form) -> Form | None:
    return _changed(rng, form, lambda text: rng.choice(OTHERS))


def _vector_length(rng: random.Random, form: Form) -> Form | None:
    def change(text: str) -> str | None:
        if "{" not in text:
            return None
        start, end = text.index("{") + 1, text.index("}")
        items = text[start:end].split(", ")
        items = rng.choice(
            (items[:-1], [*items, items[-1]], items * 2, items[: len(items) // 2], ["_", *items[1:]], ["1", *items[1:]])
        )
        braced = "{" + ", ".join(items) + "}"
        return text[: start - 1] + rng.choice((braced, braced, braced, braced, ", ".join(items))) + text[end + 1 :]

    return _changed(rng, form, change, next((at for at, text in enumerate(form.operands) if "{" in text), None))


def _place(rng: random.Random, form: Form) -> Form | None:
    places = [at for at, text in enumerate(form.operands) if text.startswith("[") and "{" not in text]
    return _changed(rng, form, lambda text: rng.choice(ADDRESSES), rng.choice(places)) if places else None


def _immediate(rng: random.Random, form: Form) -> Form | None:
    if len(form.operands) < 1:
        return None
    literal = [at for at, text in enumerate(form.operands) if text.lstrip("-")[0].isdigit()]
    at = rng.choice(literal) if literal and rng.random() < 0.7 else rng.randrange(len(form.operands))
    return _changed(rng, form, lambda text: rng.choice(IMMEDIATES) if text[0] not in "[{" else None, at)


def _swapped(rng: random.Random, form: Form) -> Form | None:
    if len(form.operands) < 2:
        return None
    items, at = list(form.operands), rng.randrange(len(form.operands) - 1)
    items[at], items[at + 1] = items[at + 1], items[at]
    return replace(form, operands=tuple(items))


# ---------------------------------------------------------------- the module around it


def _needs(form: Form) -> tuple[tuple[int, int], int]:
    gates = [(form.row.ptx, form.row.sm), *(form.row.gates[word] for word in form.modifiers if word in form.row.gates)]
    return max(ptx for ptx, _ in gates), max(sm for _, sm in gates)


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


def _version(rng: random.Random, form: Form) -> Form:
    """One below what it needs, or just enough, for a target that the version knows."""
    ptx, sm = _needs(form)
    at = bisect_left([_number(version) for version in VERSIONS], ptx)
    version = VERSIONS[max(0, min(len(VERSIONS) - 1, at + rng.choice((-1, -1, 0))))]
    known = [target for target in TARGETS if _number(FIRST_VERSION[target]) <= _number(version)]
    enough = [target for target in known if target >= sm]
    return replace(form, version=version, target=f"sm_{enough[0] if enough else known[-1]}")


def _older_target(rng: random.Random, form: Form) -> Form:
    at = bisect_left(TARGETS, _needs(form)[1])
    return replace(form, target=f"sm_{TARGETS[max(0, min(len(TARGETS) - 1, at + rng.choice((-1, -1, 0))))]}")


def _guarded(rng: random.Random, form: Form) -> Form:
    return replace(form, guard=rng.choice(("@%p1 ", "@!%p1 ", "@%r1 ", "@nosuch ", "@!%d1 ", "@1 ")))


CHANGES: dict[str, tuple[Change, ...]] = {
    "valid": (lambda rng, form: form,) * 4,
    "modifier missing": (_missing,) * 2,
    "modifier repeated": (_repeated,),
    "modifier order": (_reordered,),
    "modifier unknown": (_unknown,),
    "modifier changed": (_exchanged,) * 3,
    "modifier added": (_added,) * 2,
    "operand count": (_fewer, _more),
    "operand order": (_swapped,),
    "register type": (_register,) * 3,
    "operand kind": (_operand_kind,) * 3,
    "vector length": (_vector_length,) * 2,
    "address": (_place,) * 2,
    "immediate": (_immediate,) * 2,
    "version": (_version,) * 3,
    "target": (_older_target,) * 2,
    "guard": (_guarded,),
}


def row_cases(seed: int, count: int) -> list[Case]:
    """``count`` forms: opcodes weigh as the square roots of their numbers of rows."""
    rng = random.Random(seed)
    table = {opcode: [row for row in forms if not row.any_operands] for opcode, forms in rows().items()}
    opcodes = [opcode for opcode, forms in table.items() if forms]
    weights = [len(table[opcode]) ** 0.5 for opcode in opcodes]
    rules = [rule for rule, changes in CHANGES.items() for _ in changes]
    cases: list[Case] = []
    while len(cases) < count:
        row = rng.choice(table[rng.choices(opcodes, weights)[0]])
        rule = rng.choice(rules)
        changed = CHANGES[rule][0](rng, drawn(rng, row))
        if changed is not None:
            cases.append(changed.case(rule))
    return cases


def gate_cases(seed: int) -> list[Case]:
    """A form of every row where it should just be accepted: the least version and target, and one below each."""
    rng = random.Random(seed)
    cases: list[Case] = []
    for row in (row for opcode in sorted(rows()) for row in rows()[opcode] if not row.any_operands):
        form = drawn(rng, row)
        ptx, sm = _needs(form)
        target = next(target for target in TARGETS if target >= sm)
        versions = [v for v in VERSIONS if _number(v) >= _number(FIRST_VERSION[target])]
        at = min(len(versions) - 1, bisect_left([_number(v) for v in versions], ptx))
        suffix = "a" if form.target.endswith("a") else ""
        places = {(versions[at], target), (versions[max(0, at - 1)], target), ("9.0", TARGETS[max(0, TARGETS.index(target) - 1)])}
        cases += [replace(form, version=v, target=f"sm_{t}{suffix * (t >= 90)}").case("gates") for v, t in sorted(places)]
    return cases
