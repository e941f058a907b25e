"""Literals (PTX ISA, "Constants"): integers, floats and strings, from their text to their value."""

from __future__ import annotations

import math
import re
import struct
import sys

INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)(U?)", re.ASCII)
EXACT_FLOAT = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}", re.ASCII)
DECIMAL_FLOAT = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?", re.ASCII)

LONGEST_NUMBER = 800
"""Characters of the longest number that is read: Python's conversions are quadratic, and no exact double is longer."""

_EXACT_DIGITS = {"0f": 8, "0d": 16}
_DIGIT = re.compile(r"[1-9]", re.ASCII)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def integer_value(text: str) -> int:
    """The value of a literal that matches :data:`INTEGER`."""
    digits = text.rstrip("U")
    prefix = digits[:2].lower()
    if prefix == "0x":
        return int(digits, 16)
    if prefix == "0b":
        return int(digits, 2)
    if digits[0] == "0":
        return int(digits, 8)
    return int(digits)


def overflows(text: str) -> bool:
    """Whether ptxas finds a literal too large: a digit follows when 64 bits, in which it calculates, hold 2^63 or more."""
    digits, base = text.rstrip("U").lower(), 10
    if digits[0] == "0":
        base, digits = {"0x": (16, digits[2:]), "0b": (2, digits[2:])}.get(digits[:2], (8, digits[1:]))
    value = 0
    for digit in digits:
        if value >> 63:
            return True
        value = (value * base + int(digit, 16)) & ((1 << 64) - 1)
    return False


def float_bits(text: str) -> tuple[int, int]:
    """(bits, width) of a literal that matches :data:`EXACT_FLOAT` or :data:`DECIMAL_FLOAT`."""
    prefix = text[:2].lower()
    if prefix == "0f":
        return int(text[2:], 16), 32
    if prefix == "0d":
        return int(text[2:], 16), 64
    return double_to_bits(float(text)), 64


def is_representable(text: str) -> bool:
    """Whether a decimal float is zero or a normal .f64 number: others overflow, in either direction."""
    if text[:2].lower() in ("0f", "0d"):
        return True
    value = float(text)
    return sys.float_info.min <= value < math.inf or (value == 0 and not _DIGIT.search(text.lower().partition("e")[0]))


def why_invalid(text: str) -> str:
    """What is wrong with a number, as the end of a message; empty if that is not clear."""
    prefix, digits = text[:2].lower(), text[2:]
    if prefix in _EXACT_DIGITS and len(digits) != _EXACT_DIGITS[prefix]:
        return f": {prefix} takes {_EXACT_DIGITS[prefix]} hexadecimal digits, not {len(digits)}"
    if text[-1] in "fFlL" and text[:-1].replace(".", "").isdecimal():
        return f": numbers have no suffix '{text[-1]}'"
    if text[0] == "0" and text.isdecimal():
        return ": a number that begins with 0 is octal"
    return ""


def double_to_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


def bits_to_double(bits: int) -> float:
    value: float = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    return value


def string_value(text: str) -> str:
    """The characters of a quoted string, C escapes replaced; an unknown escape stands for its own character."""
    body = text[1:-1]
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def _unescape(match: re.Match[str]) -> str:
    hexadecimal, octal, other = match.groups()
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    if octal:
        return chr(int(octal, 8) & 0xFF)
    return _SIMPLE_ESCAPES.get(other, other)
