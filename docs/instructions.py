"""Writes docs/instructions.md, the list of all PTX instructions, from the instruction table: ``make generated``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ptxemu import isa
from ptxemu.isa.fidelity import IN_TABLE, IN_WORDS
from ptxemu.isa.table import OperandPattern, Qualifier, Row

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Instructions

Generated from the instruction table (`ptxemu/isa/`) by `make generated`.

One line for each form of an instruction. `{.a,.b}` is one of several modifiers, `[x]` may be left out.
*PTX* and *sm* are the least `.version` and `.target` of the form; single modifiers that need more follow it.
A module that contains an instruction marked **no** is parsed and can be inspected; running a kernel that uses one is an
error (exit code 3) that names it.

*Bits* says what is known of the results of a form, for operands whose results PTX defines at all
([compositions](compositions.md) of several machine instructions were compared with ptxemu):

""" + "".join(f"* *{name}*: {text.partition(':')[0]};\n" for name, text in IN_WORDS.items())


def qualifier_text(qualifier: Qualifier) -> str:
    words = ",".join(f".{value}" for value in qualifier.values)
    text = words if len(qualifier.values) == 1 else f"{{{words}}}"
    return text if qualifier.required and qualifier.default is None else f"[{text}]"


def operand_text(pattern: OperandPattern, form: Row) -> str:
    if pattern.name == "...":
        return "..."
    text = pattern.name
    if pattern.count and pattern.type in ("surface", "texture"):
        text = f"{text}, coordinates"
    elif pattern.count:
        text = f"{{{text}, ...}}"
    if pattern.role == "mem" or pattern.type in ("surface", "texture", "sampler"):
        text = f"[{text}]"
    if pattern.second is not None:
        text += f"|{operand_text(pattern.second, form)}"
    return f"[{text}]" if pattern.optional and pattern.role != "mem" else text


def form_text(form: Row) -> str:
    """One line in the manual's style."""
    modifiers = ".*" if form.any_modifiers else "".join(map(qualifier_text, form.qualifiers))
    operands = "..." if form.any_operands else ", ".join(operand_text(pattern, form) for pattern in form.operands)
    return f"{form.opcode}{modifiers} {operands}".strip()


def gates_text(form: Row) -> str:
    return "; ".join(f".{name}: {ptx[0]}.{ptx[1]}, sm_{sm}" for name, (ptx, sm) in sorted(form.gates.items()))


def bits_text(form: Row) -> str:
    """What is known of the results of a form that runs."""
    return IN_TABLE.get(form.bits, form.bits) if form.supported else ""


def lines(forms: list[Row]) -> Iterator[str]:
    yield "| form | PTX | sm | runs | bits | modifiers that need more |"
    yield "|---|---|---|---|---|---|"
    for form in forms:
        version = f"{form.ptx[0]}.{form.ptx[1]}"
        shown = form_text(form).replace("|", "\\|")
        runs = "yes" if form.supported else "**no**"
        yield f"| `{shown}` | {version} | {form.sm} | {runs} | {bits_text(form)} | {gates_text(form)} |"


def chapter(form: Row) -> str:
    """The title of a form's chapter, without the manual's section number."""
    return re.sub(r"^[\d.]+ ", "", form.chapter)


def page() -> str:
    """The whole page."""
    forms = sorted((form for forms in isa.rows().values() for form in forms), key=lambda form: (chapter(form), form.opcode))
    supported = sum(form.supported for form in forms)
    parts = [HEAD, f"{len(isa.rows())} opcodes, {len(forms)} forms, {supported} of them run.\n"]
    for title, group in groupby(forms, chapter):
        parts += [f"## {title}\n", "\n".join(lines(list(group))) + "\n"]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
