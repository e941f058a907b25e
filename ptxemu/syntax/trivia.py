"""Comments and debug data: everything that the parser does not need, turned into blanks of the same length.

Positions stay those of the source.  Besides ``//`` and ``/* */`` comments these are preprocessor lines
(``# 1 "a.cu"``), ``@@DWARF`` lines and the contents of debug ``.section`` blocks (PTX ISA, "Debugging Directives").
"""

from __future__ import annotations

import re

from ptxemu.text.source import unmarked

_STRING = r'"(?:[^"\\\n]++|\\[^\n])*+"?'
_COMMENT = r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?"
_COMMENTS = re.compile(f"{_STRING}|{_COMMENT}")
_SECTION = r"\.section\b[ \t]*\.[\w.$]+\s*\{[^{}]*+\}"
_DEBUG = re.compile(rf"{_STRING}|\n[ \t]*+#[^\n]*+|@@DWARF[^\n]*+|{_SECTION}", re.ASCII)
_NOT_LINE_END = re.compile(r"[^\n]+")


def blank(text: str) -> str:
    """``text`` with comments and debug data replaced by spaces; line ends and all positions are kept."""
    text = unmarked(text)
    kept = len(text.rstrip("\0"))
    if kept < len(text):
        text = text[:kept] + " " * (len(text) - kept)
    text = without_comments(text)
    if "#" in text or "@@DWARF" in text or ".section" in text:
        if text.startswith("#"):
            line = text.find("\n")
            text = _blank(text[:line]) + text[line:] if line >= 0 else _blank(text)
        text = _DEBUG.sub(_blank_match, text)
    return text


def without_comments(text: str) -> str:
    """``text`` with comments replaced by spaces."""
    return _COMMENTS.sub(_blank_match, text)


def _blank_match(match: re.Match[str]) -> str:
    found = match[0]
    is_open = found.startswith("/*") and not found.endswith("*/", 2)
    return found if found[0] == '"' or is_open else _blank(found)


def _blank(text: str) -> str:
    return _NOT_LINE_END.sub(lambda run: " " * len(run[0]), text) if "\n" in text else " " * len(text)
