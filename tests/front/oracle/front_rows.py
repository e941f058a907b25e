# ruff: noqa: E501 (the word lists are tables)
"""Every row of the instruction table: one instruction that it describes, and instructions broken in one way each."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from ptxemu.isa import rows
from tests.front.oracle.front_cases import SYMBOLS, Case, header
from tests.front.oracle.front_forms import MODIFIERS
from tests.support.row_forms import NAMES, NEWEST, Form, declared, drawn

VARIABLES = SYMBOLS + ".global .texref tex;\n"
VERSIONS = ("3.0", "3.1", "3.2", "4.0", "4.1", "4.2", "4.3", "5.0",
            "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2",
            "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0", "9.1", "9.2", "9.3", "9.4", NEWEST)  # fmt: skip
TARGETS = (30, 32, 35, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 107, 120)
FIRST_VERSION = {30: "3.0", 32: "4.0", 35: "3.1", 50: "4.0", 52: "4.1", 53: "4.2", 60: "5.0", 61: "5.0",
                 62: "5.0", 70: "6.0", 72: "6.1", 75: "6.3", 80: "7.0", 86: "7.1", 87: "7.4", 89: "7.8", 90: "7.8", 100: "8.6",
                 103: "8.8", 107: "9.4", 120: "8.7"}  # fmt: skip
OTHERS = ("1", "0", "-1", "1.0", "0f3F800000", "0d3FF0000000000000", "%p1", "!%p1", "%tid.x", "%clock64", "_", "gbuf", "sbuf", "surf",
          "[%d1]", "[%r1]", "[gbuf]", "[sbuf]", "{%r1,%r2}", "{%r1}", "-%r1", "%r1|%p1", "%p1|%p2", "65536", "0x1ffffffff", "nosuch")  # fmt: skip
ADDRESSES = ("[gbuf]", "[sbuf]", "[cbuf]", "[lbuf]", "[n]", "[%d1]", "[%r1]", "[%h1]", "[%f1]", "[%p1]", "[64]", "[0]", "[gbuf+16]",
             "[sbuf+16]", "[%d1+4]", "[%d1-4]", "[%r1+4]", "[%du1]", "[%s1]", "[surf]", "[tex]", "%d1", "gbuf", "[%d1+%d2]", "[nosuch]")  # fmt: skip
IMMEDIATES = ("0", "-1", "1", "3", "4", "5", "7", "8", "12", "16", "17", "24", "31", "32", "33", "64", "128", "255", "256", "257",
              "65535", "65536", "4294967295", "4294967296", "-2147483649", "1.0", "%r1")  # fmt: skip


def case(form: Form, rule: str) -> Case:
    """A kernel with the form."""
    body = f"    .local .align 16 .b8 lbuf[64];\n    {declared(form.text)}\n    {form.text}\nLX:\n    ret;\n"
    kernel = f".visible .entry k(.param .u64 out, .param .b32 n)\n{{\n{body}}}\n"
    name = f"{form.version} {form.target} {form.text}"
    return Case(f"forms: {rule}", name, header(form.version, form.target) + VARIABLES + kernel)


Change = Callable[[random.Random, Form], Form | None]
"""Breaks one thing, or returns None where the form has no such thing."""


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
    """A modifier of another row of the opcode, mostly; of its own qualifiers, often."""
    roll = rng.random()
    if roll < 0.15:
        return rng.choice(MODIFIERS)
    rows_ = [form.row] if roll < 0.4 else rows()[form.row.opcode]
    words = sorted({word for one in rows_ for qualifier in one.qualifiers for word in qualifier.values})
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
            cases.append(case(changed, rule))
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
        places = {
            (versions[at], target),
            (versions[max(0, at - 1)], target),
            (NEWEST, TARGETS[max(0, TARGETS.index(target) - 1)]),
        }
        cases += [case(replace(form, version=v, target=f"sm_{t}{suffix * (t >= 90)}"), "gates") for v, t in sorted(places)]
    return cases
