# ruff: noqa: E501 (the changes are tables)
"""Real modules with one change each: a word, an operand, a line, a declaration, a directive."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tests.front.oracle.front_cases import Case
from tests.front.oracle.front_forms import MODIFIERS, OPERANDS, TARGETS, TYPES, VERSIONS
from tests.support.places import CORPUS

LARGEST = 5000  # characters of a module
TRIES = 40

INSTRUCTION = re.compile(r"\s*(?:@!?%?\w+\s+)?(?:[$\w]+:\s*)?[a-z]\w*[.\w:]*(?:\s[^{}]*|[^{}]*\{[^{}]*\}[^{}]*)?;\s*(?://.*)?$")
OPERAND = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[%$\w.+\-|!]+")
REGISTER = re.compile(r"%[a-z]+\d+\b")
NUMBER = re.compile(r"(?<![\w%$.])-?\d+\b(?![.\w])")
NUMBERS = ("0", "1", "-1", "3", "4096", "65535", "65536", "4294967295", "4294967296", "-2147483649", "0x10", "1.5", "1e3", "0f3F800000",
           "0d3FF0000000000000", "1U", "18446744073709551616", "08", "%r1")  # fmt: skip
DIRECTIVE_LINE = re.compile(r"\s*\.")

Edit = Callable[[random.Random, str], str | None]
"""Changes one line, or returns None where the change does not apply."""


def sources() -> dict[str, str]:
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.ptx"))}
    return {name: text for name, text in texts.items() if len(text) <= LARGEST}


# ---------------------------------------------------------------- words of an instruction


def _head(line: str) -> tuple[str, str, str] | None:
    """What precedes the opcode, the opcode with its modifiers, and the rest."""
    match = re.match(r"(\s*(?:@!?%?\w+\s+)?)([a-z]\w*(?:\.[\w:]+)*)(.*)$", line)
    return (match[1], match[2], match[3]) if match and ";" in match[3] else None


def _words(change: Callable[[random.Random, list[str]], None]) -> Edit:
    def edit(rng: random.Random, line: str) -> str | None:
        head = _head(line)
        if head is None or "." not in head[1]:
            return None
        words = head[1].split(".")
        change(rng, words)
        return head[0] + ".".join(words) + head[2]

    return edit


def _swap_type(rng: random.Random, words: list[str]) -> None:
    places = [index for index, word in enumerate(words) if word in TYPES]
    if places:
        words[rng.choice(places)] = rng.choice(TYPES)


def _swap_modifier(rng: random.Random, words: list[str]) -> None:
    words[rng.randrange(1, len(words))] = rng.choice(MODIFIERS)


def _drop_modifier(rng: random.Random, words: list[str]) -> None:
    del words[rng.randrange(1, len(words))]


def _add_modifier(rng: random.Random, words: list[str]) -> None:
    words.insert(rng.randrange(1, len(words) + 1), rng.choice(MODIFIERS))


def _double_modifier(rng: random.Random, words: list[str]) -> None:
    index = rng.randrange(1, len(words))
    words.insert(index, words[index])


def _exchange(rng: random.Random, words: list[str]) -> None:
    if len(words) > 2:
        index = rng.randrange(1, len(words) - 1)
        words[index], words[index + 1] = words[index + 1], words[index]


def _misspell(rng: random.Random, words: list[str]) -> None:
    index = rng.randrange(len(words))
    at = rng.randrange(len(words[index]) + 1)
    words[index] = words[index][:at] + rng.choice("abxz019") + words[index][at + rng.randrange(2) :]


# ---------------------------------------------------------------- operands


def _operands(change: Callable[[random.Random, list[str]], None]) -> Edit:
    def edit(rng: random.Random, line: str) -> str | None:
        head = _head(line)
        if head is None or not INSTRUCTION.match(line) or "(" in line:
            return None
        found = OPERAND.findall(head[2].split(";")[0])
        if not found:
            return None
        change(rng, found)
        return f"{head[0]}{head[1]} {', '.join(found)};"

    return edit


def _drop(rng: random.Random, items: list[str]) -> None:
    del items[rng.randrange(len(items))]


def _double(rng: random.Random, items: list[str]) -> None:
    items.insert(rng.randrange(len(items)), rng.choice(items))


def _replace(rng: random.Random, items: list[str]) -> None:
    items[rng.randrange(len(items))] = rng.choice(OPERANDS)


def _turn(rng: random.Random, items: list[str]) -> None:
    index = rng.randrange(len(items))
    items.append(items.pop(index))


def _bracket(rng: random.Random, items: list[str]) -> None:
    index = rng.randrange(len(items))
    item = items[index]
    items[index] = (
        item[1:-1] if item[0] in "[{" else rng.choice(("[{}]", "{{{}}}", "!{}", "-{}", "{}+4", "({})", "{}.x")).format(item)
    )


# ---------------------------------------------------------------- text


def _register(rng: random.Random, line: str) -> str | None:
    found = list(REGISTER.finditer(line))
    if not found or DIRECTIVE_LINE.match(line):
        return None
    match = rng.choice(found)
    other = rng.choice(
        ("%r1", "%rd1", "%f1", "%p1", "%rs1", "%fd1", "%r9999", "%zz1", "%rd", "r1", "%r01", "%tid.x", match[0] + "x")
    )
    return line[: match.start()] + other + line[match.end() :]


def _number(rng: random.Random, line: str) -> str | None:
    found = list(NUMBER.finditer(line))
    if not found:
        return None
    match = rng.choice(found)
    return line[: match.start()] + rng.choice(NUMBERS) + line[match.end() :]


def _character(rng: random.Random, line: str) -> str | None:
    places = [index for index, char in enumerate(line) if char in ";,[]{}()<>:@%.+|!"]
    if not places:
        return None
    at = rng.choice(places)
    return line[:at] + rng.choice(("", "", line[at] * 2, rng.choice(";,[]{}():@%."))) + line[at + 1 :]


def _guard(rng: random.Random, line: str) -> str | None:
    if _head(line) is None:
        return None
    bare = re.sub(r"^\s*@!?%?\w+\s+", "", line).strip()
    return rng.choice(("@%p1 ", "@!%p1 ", "@%r1 ", "@%p999 ", "@p ", "@!%rd1 ", "@% p1 ", "@%p1, ")) + bare


def _delete(rng: random.Random, line: str) -> str | None:
    return "" if line.strip() and not line.strip().startswith("//") else None


def _repeat(rng: random.Random, line: str) -> str | None:
    return f"{line}\n{line}" if line.strip() and not line.strip().startswith("//") else None


def _name(rng: random.Random, line: str) -> str | None:
    found = [
        match for match in re.finditer(r"[$A-Za-z_][\w$]{2,}", line) if line[match.start() - 1 : match.start()] not in (".", "%")
    ]
    if not found:
        return None
    match = rng.choice(found)
    return (
        line[: match.start()] + rng.choice((match[0] + "x", match[0][:-1], "nosuch", "_", "%" + match[0])) + line[match.end() :]
    )


def _declaration(rng: random.Random, line: str) -> str | None:
    words = [match for match in re.finditer(r"\.\w+", line)]
    if not DIRECTIVE_LINE.match(line) or not words or '"' in line:
        return None
    match = rng.choice(words)
    others = (".reg", ".global", ".const", ".shared", ".local", ".param", ".u8", ".b16", ".b32", ".u64", ".f32", ".f64", ".pred", ".b128", ".v2",
              ".v4", ".align 8", ".align 3", ".visible", ".extern", ".weak", ".entry", ".func", ".foo", ".ptr", "")  # fmt: skip
    return line[: match.start()] + rng.choice(others) + line[match.end() :]


def _header(rng: random.Random, line: str) -> str | None:
    if line.startswith(".version"):
        return f".version {rng.choice(VERSIONS)}"
    if line.startswith(".target"):
        return f".target {rng.choice(TARGETS)}"
    return None


EDITS: dict[str, Sequence[Edit]] = {
    "corpus: modifiers": [_words(change) for change in (_swap_type, _swap_type, _swap_modifier, _drop_modifier, _add_modifier,
                                                       _double_modifier, _exchange, _misspell)],
    "corpus: operands": [_operands(change) for change in (_drop, _double, _replace, _replace, _turn, _bracket)] + [_number],
    "corpus: names": [_register, _register, _name, _guard],
    "corpus: text": [_character],
    "corpus: lines": [_delete, _repeat],
    "corpus: declarations": [_declaration],
    "corpus: header": [_header],
}  # fmt: skip
SHARES = {"corpus: operands": 3, "corpus: modifiers": 3, "corpus: names": 2, "corpus: lines": 2, "corpus: header": 1}


def corpus_cases(seed: int, count: int) -> list[Case]:
    """``count`` modules, each of the corpus with one line changed."""
    rng, texts = random.Random(seed), sources()
    rules = list(EDITS)
    weights = [SHARES.get(rule, 1) for rule in rules]
    cases = []
    while len(cases) < count:
        rule = rng.choices(rules, weights)[0]
        name = rng.choice(list(texts))
        lines = texts[name].split("\n")
        for _ in range(TRIES):
            at = rng.randrange(3 if rule == "corpus: header" else len(lines))
            at = rng.randrange(min(20, len(lines))) if rule == "corpus: header" else at
            changed = rng.choice(EDITS[rule])(rng, lines[at])
            if changed is not None and changed != lines[at]:
                text = "\n".join([*lines[:at], changed, *lines[at + 1 :]])
                cases.append(Case(rule, f"{name}:{at + 1}: {changed.strip()}", text))
                break
    return cases
