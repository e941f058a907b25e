"""Bytes, read one number after another; past their end is a DwarfError, which no reader may leave out."""

from __future__ import annotations

from ptxemu.text.errors import InputError

MOST_SEPTETS = 10  # of a LEB128 number that fits 64 bits
LONGEST_NAME = 250  # characters; the rest is cut off


class DwarfError(InputError):
    """The debug data are damaged, or say what is not understood."""


class Stream:
    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at = data, at
        self.end = len(data) if end is None else min(end, len(data))

    @property
    def left(self) -> int:
        return self.end - self.at

    def bytes(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise DwarfError("the debug data end too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.bytes(size), "little", signed=signed)

    def leb(self, signed: bool = False) -> int:
        """A LEB128 number."""
        value = 0
        for index in range(MOST_SEPTETS):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value - (1 << 7 * (index + 1)) if signed and byte & 0x40 else value
        raise DwarfError("a number in the debug data is too long")

    def string(self) -> str:
        end = self.data.find(b"\0", self.at, self.end)
        if end < 0:
            raise DwarfError("a text in the debug data has no end")
        found = self.data[self.at : min(end, self.at + LONGEST_NAME)]
        self.at = end + 1
        return found.decode("utf-8", "replace")
