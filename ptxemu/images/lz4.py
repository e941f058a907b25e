"""LZ4 blocks, as fat binaries hold them (lz4_Block_format.md of the LZ4 project)."""

from __future__ import annotations

from ptxemu.text.errors import InputError

LEAST_MATCH = 4
EXTENDED = 15


def decompress(data: bytes, size: int) -> bytes:
    """The ``size`` bytes that a block stands for. Raises InputError if it stands for anything else."""
    out = bytearray()
    at = 0
    while at < len(data):
        token = data[at]
        literals, at = _length(data, at + 1, token >> 4)
        if literals > min(len(data) - at, size - len(out)):
            raise _damaged()
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            break
        if len(data) - at < 2:
            raise _damaged()
        distance = data[at] | data[at + 1] << 8
        matched, at = _length(data, at + 2, token & EXTENDED)
        _repeat(out, distance, matched + LEAST_MATCH, size)
    if len(out) != size:
        raise _damaged()
    return bytes(out)


def _length(data: bytes, at: int, first: int) -> tuple[int, int]:
    """A length whose first part is in a token, and where the data go on."""
    length = first
    more = first == EXTENDED
    while more:
        if at == len(data):
            raise _damaged()
        length += data[at]
        more = data[at] == 255
        at += 1
    return length, at


def _repeat(out: bytearray, distance: int, length: int, size: int) -> None:
    """Append what lies ``distance`` bytes back; the copy may reach into itself."""
    if not 0 < distance <= len(out) or length > size - len(out):
        raise _damaged()
    pattern = bytes(out[len(out) - distance : len(out) - distance + min(length, distance)])
    out += (pattern * (length // distance + 1))[:length]


def _damaged() -> InputError:
    return InputError("the fat binary is damaged: a block of LZ4 does not hold what it should")
