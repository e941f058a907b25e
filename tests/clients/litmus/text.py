"""Litmus tests as text.

A header; initial values in braces; a table with a column for each thread, whose head places it; a final condition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.clients.litmus.condition import Condition

HEAD = re.compile(r"P(\d+)\s*@\s*cta\s+(\d+)\s*,\s*gpu\s+(\d+)")
VALUE = re.compile(r"(?:P?(\d+)\s*:\s*)?(\w+)\s*=\s*(-?\w+)")
ALIAS = re.compile(r"(\w+)\s*@\s*(generic|constant|texture|surface)\s+aliases\s+(\w+)")
QUANTIFIER = re.compile(r"^\s*(~\s*exists|not\s+exists|exists|forall)\b", re.MULTILINE)
BRANCHES = ("goto", "beq", "bne", "bge", "ble", "bgt", "blt")


class NotExpressible(Exception):
    """What a text asks for that is not done here."""


@dataclass(frozen=True)
class Instruction:
    opcode: str
    """With its qualifiers; that of a label ends with a colon."""
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Thread:
    cta: tuple[int, int]
    """Its GPU, and the CTA in that."""
    registers: dict[str, int]
    """Initial values of those that have one; others are zero."""
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class Litmus:
    name: str
    locations: dict[str, int]
    """Initial values of those that are no aliases."""
    aliases: dict[str, str]
    """Names of the same memory through another address or proxy, with the name of a location."""
    threads: tuple[Thread, ...]
    quantifier: str
    """``exists``, ``~exists`` or ``forall``."""
    condition: Condition

    def place(self, name: str) -> str:
        """The location that a name stands for."""
        return self.aliases.get(name, name)


def parse(source: str) -> Litmus:
    source = re.sub(r"\(\*.*?\*\)", "", source, flags=re.DOTALL)
    header, _, rest = source.partition("{")
    declared, _, rest = rest.partition("}")
    found = list(QUANTIFIER.finditer(rest))
    if not header.split()[:1] or header.split()[0] not in ("PTX", "ptx") or len(found) != 1:
        raise ValueError("a litmus test has a header, initial values, threads and one condition")
    if re.search(r"^\s*(filter|locations)\b", rest, re.MULTILINE):
        raise NotExpressible("a filter, or a list of locations")
    locations, aliases, registers = _declarations(declared)
    threads = _threads(rest[: found[0].start()], registers)
    for thread in threads:
        for instruction in thread.instructions:
            _mention(instruction, locations, aliases)
    quantifier = "".join(found[0].group(1).replace("not", "~").split())
    return Litmus(header.split()[1], locations, aliases, threads, quantifier, Condition(rest[found[0].end() :]))


def _declarations(text: str) -> tuple[dict[str, int], dict[str, str], dict[int, dict[str, int]]]:
    """Values of locations, aliases, and values of registers by thread."""
    locations: dict[str, int] = {}
    aliases: dict[str, str] = {}
    registers: dict[int, dict[str, int]] = {}
    for item in filter(None, map(str.strip, text.split(";"))):
        if alias := ALIAS.fullmatch(item):
            name, _, other = alias.groups()
            aliases[name] = aliases.get(other, other)
        elif value := VALUE.fullmatch(item):
            thread, name, given = value.groups()
            if not re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", given):
                raise NotExpressible("a pointer as an initial value")
            where = locations if thread is None else registers.setdefault(int(thread), {})
            where[name] = int(given, 0)
        else:
            raise ValueError(f"not a declaration: {item!r}")
    return locations, aliases, registers


def _threads(table: str, registers: dict[int, dict[str, int]]) -> tuple[Thread, ...]:
    rows = [[cell.strip() for cell in row.split("|")] for row in table.split(";") if row.strip()]
    heads = [HEAD.fullmatch(cell) for cell in rows[0]]
    columns = [[row[i] for row in rows[1:] if i < len(row) and row[i]] for i in range(len(heads))]
    made = []
    for head, column in zip(heads, columns, strict=True):
        if head is None:
            raise ValueError("a thread's head is Pn@cta n,gpu n")
        number, cta, gpu = map(int, head.groups())
        if number != len(made):
            raise ValueError("threads are numbered from 0")
        made.append(Thread((gpu, cta), registers.get(number, {}), tuple(map(_instruction, column))))
    return tuple(made)


def _instruction(cell: str) -> Instruction:
    opcode, *operands = re.split(r"[\s,]+", cell)
    return Instruction(opcode, tuple(operands))


def _mention(instruction: Instruction, locations: dict[str, int], aliases: dict[str, str]) -> None:
    """Locations that have no initial value hold zero."""
    if instruction.opcode in BRANCHES:
        return
    for operand in instruction.operands:
        if re.fullmatch(r"[A-Za-z_]\w*", operand) and not is_register(operand) and operand not in aliases:
            locations.setdefault(operand, 0)


def is_register(operand: str) -> bool:
    return re.fullmatch(r"r\d+", operand) is not None
