"""Real modules with some tokens changed: kernels of compilers, the samples, and the instruction tests.

Numbers become hostile, registers others of their kind, modifiers others of their qualifier; statements are left out, doubled,
exchanged, or come from another module, their registers replaced by some of the same types.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache

from ptxemu.isa import rows as table
from tests.fuzz.hostile import rows, values
from tests.fuzz.hostile.program import Launch, Program, Value
from tests.isa.runner import FILES, File
from tests.isa.runner import read as read_instructions
from tests.support import places
from tests.support.places import CORPUS, ISA, KERNELS, SAMPLES
from tests.support.row_forms import declared

MODULES = ((CORPUS, "*.ptx"), (KERNELS, "*.ptx"), (places.MODULES, "*.ptx"), (SAMPLES, "*/kernel.ptx"), (ISA, "*.ptx"))
LARGEST = 12_000  # characters of a module with one kernel
FORMS = 3  # of an instruction file in one kernel
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
HEADER = re.compile(r"\s*(?:\.(?:version|target|address_size)\s[^\n]*\s*)*")
NUMBER = re.compile(r"(?<![\w.$%])-?(?:0[xX][0-9a-fA-F]+|0[fF][0-9a-fA-F]{8}|\d+)(?![\w.<])")
REGISTER = re.compile(r"%[a-zA-Z_$][\w$]*(?![\w.<])")
MODIFIER = re.compile(r"\.(\w+(?:::\w+)*)")
STATEMENT = re.compile(r"(?<![.\w%$<])(?:@!?%\w+\s+)?([a-z][a-z0-9]*)((?:\.[\w:]+)*)\s(?:[^;{}]|\{[^;{}]*\})*;")
DECLARATION = re.compile(r"\.reg\s+(?:\.v[24]\s+)?\.(\w+)\s+([^;]*);")
HANDLE = re.compile(r"\.(surfref|texref|samplerref)\s+([\w$]+)")
OBJECTS = {"surfref": values.SURFACES, "texref": values.TEXTURES, "samplerref": values.SAMPLERS}
PREFIXES = {"surfref": "s", "texref": "t", "samplerref": "p"}
SHAPES = (*rows.SHAPES, (48, 1, 1), (128, 1, 1), (256, 1, 1), (1024, 1, 1))

Change = Callable[[random.Random, str], str]


# ---------------------------------------------------------------- sources


def parts(text: str) -> list[str]:
    """The module once for each kernel: what is not a kernel, and that one."""
    header = HEADER.match(text)
    start = header.end() if header else 0
    chunks, depth = [text[:start]], 0
    for match in re.finditer(r"[{};]", text):
        depth += {"{": 1, "}": -1, ";": 0}[match[0]]
        if depth == 0:
            chunks.append(text[start : match.end()])
            start = match.end()
    kernels = [index for index, chunk in enumerate(chunks) if re.search(r"\.entry\b", chunk)]
    return ["".join(chunk for index, chunk in enumerate(chunks) if index == kernel or index not in kernels) for kernel in kernels]


@cache
def modules() -> tuple[str, ...]:
    paths = [path for folder, pattern in MODULES for path in sorted(folder.glob(pattern))]
    texts = [COMMENT.sub("", path.read_text(encoding="utf-8")) for path in paths]
    return tuple(part for text in texts for part in parts(text) if len(part) <= LARGEST)


@cache
def instructions() -> tuple[File, ...]:
    return tuple(file for file in map(read_instructions, FILES) if file.forms)


def source(rng: random.Random) -> str:
    """A module with one kernel."""
    if rng.random() < 0.5:
        return rng.choice(modules())
    file = rng.choice(instructions())
    forms = [rng.choice(file.forms) for _ in range(FORMS)]
    return rng.choice(parts(COMMENT.sub("", file.module_text(forms))))


# ---------------------------------------------------------------- registers


def kind(type: str) -> str:
    """Types whose registers can mostly stand for each other."""
    return type if type[0] in "pf" else type.lstrip("bsu")


def registers(text: str) -> dict[str, str]:
    """The kind of each declared register that the text uses."""
    ranges: dict[str, str] = {}
    for type, names in DECLARATION.findall(text):
        for name in names.split(","):
            ranges[name.strip().partition("<")[0] + ("0" if "<" in name else "")] = kind(type)
    found = {}
    for name in dict.fromkeys(REGISTER.findall(text)):
        known = ranges.get(name) or ranges.get(name.rstrip("0123456789") + "0")
        if known:
            found[name] = known
    return found


def adopted(rng: random.Random, statement: str, kinds: dict[str, str], text: str) -> str:
    """A statement with its registers, whose kinds are given, replaced by those of a text."""
    there: dict[str, list[str]] = {}
    for name, one in registers(text).items():
        there.setdefault(one, []).append(name)
    missing: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        one = kinds.get(match[0])
        if one is None:
            return match[0]
        if one in there:
            return rng.choice(there[one])
        name = f"%fresh{len(missing)}"
        missing.append(f".reg .{one if one[0] in 'pf' else 'b' + one} {name};")
        return name

    changed = REGISTER.sub(replaced, statement)
    return f"{{ {' '.join(missing)} {changed} }}" if missing else changed


# ---------------------------------------------------------------- changes


def at_random(rng: random.Random, pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """One match, of those in the kernel mostly."""
    found = list(pattern.finditer(text, text.find(".entry") if rng.random() < 0.9 else 0))
    return rng.choice(found) if found else None


def substituted(text: str, match: re.Match[str] | None, new: str, group: int = 0) -> str:
    return text if match is None else text[: match.start(group)] + new + text[match.end(group) :]


def number(rng: random.Random, text: str) -> str:
    match = at_random(rng, NUMBER, text)
    if match is None or match[0][:2].lower() == "0f":
        return substituted(text, match, f"0f{rng.choice(values.FLOATS):08X}")
    near = str(int(match[0], 0) + rng.choice((1, -1, 4, 16, 64))) if not re.fullmatch(r"-?0\d+", match[0]) else "0"
    return substituted(text, match, near if rng.random() < 0.4 else str(values.edge(rng)))


def register(rng: random.Random, text: str) -> str:
    match = at_random(rng, REGISTER, text)
    kinds = registers(text)
    others = [name for name, one in kinds.items() if match and one == kinds.get(match[0])]
    return substituted(text, match, rng.choice(others)) if others else text


def modifier(rng: random.Random, text: str) -> str:
    """Another modifier of the same qualifier of the opcode, or of any."""
    match = at_random(rng, STATEMENT, text)
    if match is None or match[1] not in table() or not match[2]:
        return text
    word = rng.choice(MODIFIER.findall(match[2]))
    forms = table()[match[1]]
    qualifiers = [row.by_modifier[word].values for row in forms if word in row.by_modifier] if rng.random() < 0.8 else []
    qualifiers = qualifiers or [qualifier.values for row in forms for qualifier in row.qualifiers]
    if not qualifiers:
        return text
    return substituted(text, match, match[2].replace(f".{word}", f".{rng.choice(rng.choice(qualifiers))}", 1), 2)


def leave_out(rng: random.Random, text: str) -> str:
    return substituted(text, at_random(rng, STATEMENT, text), "")


def repeat(rng: random.Random, text: str) -> str:
    match = at_random(rng, STATEMENT, text)
    return text if match is None else substituted(text, match, f"{match[0]} {match[0]}")


def exchange(rng: random.Random, text: str) -> str:
    first, second = at_random(rng, STATEMENT, text), at_random(rng, STATEMENT, text)
    if first is None or second is None or first.end() > second.start():
        return text
    between = text[first.end() : second.start()]
    return text[: first.start()] + second[0] + between + first[0] + text[second.end() :]


def splice(rng: random.Random, text: str) -> str:
    """A statement of another module, or one of the table, behind one of this."""
    place = at_random(rng, STATEMENT, text)
    if rng.random() < 0.5:
        new = rows.statement(rng, False)
        kinds = registers(declared(new) + " " + new)
    else:
        other = source(rng)
        found = at_random(rng, STATEMENT, other)
        new, kinds = (found[0], registers(other)) if found else ("", {})
    return text if place is None else substituted(text, place, f"{place[0]}\n{adopted(rng, new, kinds, text)}")


CHANGES: tuple[Change, ...] = (
    *(number,) * 6, *(register,) * 4, *(modifier,) * 5, leave_out, leave_out, repeat, exchange, *(splice,) * 5,
)  # fmt: skip


# ---------------------------------------------------------------- programs


def argument(rng: random.Random) -> Value:
    """An argument that the kernel can mostly work with."""
    roll = rng.random()
    return values.value(rng) if roll < 0.2 else rng.choice(values.HANDLES) if roll < 0.3 else rng.choice(("data", "out", "other"))


def small(rng: random.Random) -> Value:
    return rng.choice((0, 1, 2, 5, 16, 32, 33, 64, 100)) if rng.random() < 0.9 else values.edge(rng)


def launch(rng: random.Random) -> Launch:
    make = rng.choice((small, small, argument, values.value))
    data = tuple(values.column(rng, make) for _ in range(rows.COLUMNS * 4))
    arguments = tuple(argument(rng) for _ in range(5))
    numbers = tuple(small(rng) for _ in range(5))
    grid = rng.choice(((1, 1, 1), (1, 1, 1), (4, 1, 1), (2, 2, 1)))
    shared = rng.choice((0, 0, 1024, 48 << 10))
    return Launch("", grid, rng.choice(SHAPES), arguments, numbers, data, shared, rng.random() < 0.05)


def program(rng: random.Random) -> Program:
    text = source(rng)
    for _ in range(rng.choice((1, 1, 2, 2, 3, 5))):
        text = rng.choice(CHANGES)(rng, text)
    bind = {name: f"{PREFIXES[type]}.{rng.choice(list(OBJECTS[type]))}" for type, name in HANDLE.findall(text)}
    return Program(text, tuple(launch(rng) for _ in range(4)), opt=rng.choice((0, 0, 0, 2)), bind=bind)
