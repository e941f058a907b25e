"""The contents of debug ``.section`` blocks, which only strict mode reads (PTX ISA, "Debugging Directives: .section")."""

from __future__ import annotations

import re
from bisect import bisect_left

from ptxemu.syntax import ast
from ptxemu.syntax.trivia import without_comments
from ptxemu.text.errors import Diagnostics
from ptxemu.text.source import after_blanks

SECTION = re.compile(r'"[^"\n]*"|\.section\b[ \t]*\.[\w.$]+\s*\{([^{}]*)\}', re.ASCII)
DATA = re.compile(r"\.(\w+)\s+(-?\w+(?:\s*,\s*-?\w+)*)", re.ASCII)
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
MOST_DIGITS = 24  # of a number that may fit a type
WIDTHS = {"b8": 8, "b16": 16, "b32": 32, "b64": 64}
UNCHECKED = frozenset({"b32", "b64"})  # whose values ptxas limits to 64 bits only


def check_sections(tree: ast.Module, diagnostics: Diagnostics) -> None:
    """Report data of a section that do not fit their type, and a debug target without sections."""
    text = diagnostics.source.text
    text = without_comments(text) if ".section" in text else ""
    found = [match for match in SECTION.finditer(text) if match[1] is not None]
    functions = sorted((item.pos, item.end) for item in tree.items if isinstance(item, ast.Function))
    for section in found:
        before = bisect_left(functions, (section.start(),)) - 1
        if before >= 0 and section.start() < functions[before][1]:
            diagnostics.error("a '.section' cannot stand in a function", section.start(), section.start() + len(".section"))
        if (stray := text.find(";", section.start(1), section.end(1))) >= 0:
            diagnostics.error("the data of a section have no ';'", stray, stray + 1)
        for data in DATA.finditer(text, section.start(1), section.end(1)):
            _data(data, diagnostics)
    if "debug" in tree.target and not (found or diagnostics.damage or diagnostics.errors):
        diagnostics.error("'.target debug' needs a debug section", tree.target_pos)


def _data(data: re.Match[str], diagnostics: Diagnostics) -> None:
    kind = data[1]
    if kind not in WIDTHS:
        if NUMBER.fullmatch(data[2].split(",")[0].strip()):
            diagnostics.error(f"the type of data is .b8, .b16, .b32 or .b64, not .{kind}", data.start(), data.end(1))
        return
    bits = 65 if kind in UNCHECKED else WIDTHS[kind]
    for word in re.finditer(r"[^\s,]+", data[2]):
        value = _value(word[0]) if NUMBER.fullmatch(word[0]) else 0
        if not -(1 << bits - 1) <= value < 1 << min(bits, 64):
            pos, end = data.start(2) + word.start(), data.start(2) + word.end()
            after = after_blanks(diagnostics.source.text, data.end(2))
            if value < 1 << 64 and diagnostics.source.line(after) != diagnostics.source.line(pos):
                pos, end = after, after + 1  # where ptxas has read the whole list
            shown = word[0] if len(word[0]) <= MOST_DIGITS else f"{word[0][:MOST_DIGITS]}..."
            diagnostics.error(f"{shown} does not fit type .{kind}", pos, end)


def _value(number: str) -> int:
    """A number; one with too many digits becomes a number that fits no type."""
    digits = number.rstrip("U").lower().replace("0x", "").lstrip("-0") or "0"
    if len(digits) > MOST_DIGITS:
        return 1 << 128
    value = int(digits, 16 if "x" in number.lower() else 10)
    return -value if number.startswith("-") else value
