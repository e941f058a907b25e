"""The debug sections of a text, ``.section`` blocks of data, as bytes (PTX ISA, "Debugging Directives")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

BLOCK = re.compile(r'"[^"\n]*"|//[^\n]*|\.section\b[ \t]*(\.[\w.$]+)\s*\{([^{}]*)\}', re.ASCII)
LINE = re.compile(r"([\w.$]+):(?!:)|\.b(8|16|32|64)[ \t]+([^\n]*)|\.string[ \t]+\"([^\"\n]*)\"", re.ASCII)
COMMENT = re.compile(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/")
TERM = re.compile(r"([+-]?)\s*(?:(0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})U?|([\w.$%]+))\s*", re.ASCII)
WORD_BITS = 64
SYMBOL_SHIFT = 32
"""Symbols of the program have no addresses: the upper half of a word says which one is meant, the lower how far behind it."""


class Sections(Struct):
    """Bytes by the names of sections, and the symbols of the program that they name, by number from 1."""

    data: dict[str, bytes] = {}
    symbols: list[str] = []

    def get(self, name: str) -> bytes:
        return self.data.get(name, b"")

    def symbol(self, word: int) -> tuple[str, int] | None:
        """The symbol that a word means, and the bytes behind it; None if it means none."""
        number = word >> SYMBOL_SHIFT
        return (self.symbols[number - 1], word & (1 << SYMBOL_SHIFT) - 1) if 0 < number <= len(self.symbols) else None


def sections_of(text: str) -> Sections:
    """Those of a text of PTX; what cannot be read in them is zero."""
    made: dict[str, bytearray] = {}
    labels: dict[str, int] = {}
    words: list[tuple[str, int, int, str]] = []  # expressions to fill in: section, offset, bytes, text
    if ".section" in text:
        for match in BLOCK.finditer(text):
            if match[1] is not None:
                data = made.setdefault(match[1], bytearray())
                labels.setdefault(match[1], len(data))
                words += [(match[1], *word) for word in _assemble(match[2], data, labels)]
    numbers: dict[str, int] = {}
    for name, offset, size, expression in words:
        value = _value(expression, labels, numbers) & (1 << 8 * size) - 1
        made[name][offset : offset + size] = value.to_bytes(size, "little")
    return Sections({name: bytes(data) for name, data in made.items()}, list(numbers))


def _assemble(text: str, data: bytearray, labels: dict[str, int]) -> Iterator[tuple[int, int, str]]:
    """Add what a block says to its section; the words that are not plain bytes, which remain to be filled in."""
    for label, bits, items, string in LINE.findall(COMMENT.sub(" ", text)):
        if label:
            labels[label] = len(data)
        elif bits:
            size = int(bits) // 8
            for item in items.split(","):
                if size == 1 and item.strip().isdecimal() and len(item) < 8:
                    data.append(int(item) & 0xFF)
                else:
                    yield len(data), size, item.strip()
                    data += bytes(size)
        else:
            data += string.encode() + b"\0"


def _value(expression: str, labels: dict[str, int], numbers: dict[str, int]) -> int:
    """The sum of the terms: numbers, labels of sections, and symbols, which get a number each."""
    total = 0
    for sign, number, name in TERM.findall(expression):
        if number:
            value = int(number, 16 if number[:2] in ("0x", "0X") else 10)
        elif name in labels:
            value = labels[name]
        else:
            value = numbers.setdefault(name, len(numbers) + 1) << SYMBOL_SHIFT
        total += -value if sign == "-" else value
    return total % (1 << WORD_BITS)
