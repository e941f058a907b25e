"""The contents of debug ``.section`` blocks, which only strict mode reads (PTX ISA, "Debugging Directives: .section")."""

from __future__ import annotations

import re

from ptxemu.errors import Diagnostics
from ptxemu.syntax import ast

SECTION = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/|\.section\b[ \t]*\.[\w.$]+\s*\{([^{}]*)\}', re.ASCII | re.DOTALL)
DATA = re.compile(r"\.(\w+)\s+(-?\w+(?:\s*,\s*-?\w+)*)", re.ASCII)
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?")
WIDTHS = {"b8": 8, "b16": 16, "b32": 32, "b64": 64}
UNCHECKED = frozenset({"b32", "b64"})  # whose values ptxas does not limit


def check_sections(tree: ast.Module, diagnostics: Diagnostics) -> None:
    """Report data of a section that have no such type or do not fit it, and a debug target without any section."""
    text = diagnostics.source.text
    found = [match for match in SECTION.finditer(text) if match[1] is not None] if ".section" in text else []
    for section in found:
        if any(item.pos < section.start() < item.end for item in tree.items if isinstance(item, ast.Function)):
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
    if kind in UNCHECKED:
        return
    for word in re.finditer(r"[^\s,]+", data[2]):
        start = data.start(2) + word.start()
        if not NUMBER.fullmatch(word[0]):
            continue
        value = int(word[0].rstrip("U"), 16 if "x" in word[0].lower() else 10)
        if not -(1 << WIDTHS[kind] - 1) <= value < 1 << WIDTHS[kind]:
            diagnostics.error(f"{word[0]} does not fit type .{kind}", start, start + len(word[0]))
