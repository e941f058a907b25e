"""Images as programs hand them to CUDA: PTX texts, fat binaries that hold them, and what ``cuLinkComplete`` makes of several.

A fat binary is a header (magic number, version, own size, size of what follows) and entries: each a header with its kind, sizes,
architecture and flags, and a payload, PTX or machine code, plain or compressed. A linked image is a header and, for each of its
inputs, its size and bytes (cuda/linked.c).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from msgspec import Struct

from ptxemu.images import lz4
from ptxemu.process.locks import importing
from ptxemu.text.errors import InputError, UnsupportedError
from ptxemu.text.files import MAX_PROGRAM, decoded

MAGIC = 0xBA55ED50
FIRST_BYTES = MAGIC.to_bytes(4, "little")
HEADER = struct.Struct("<IHHQ")  # magic, version, bytes of this header, bytes of the entries
# kind, version, bytes of this header, of the payload, and of it before padding; options; version, architecture, name;
# flags, nothing, bytes of the payload when it is unpacked
ENTRY = struct.Struct("<HHIQIIIIIIQQQ")
VERSION = 1
PTX = 1
MACHINE_CODE = 2
LZ4, ZSTANDARD = 0x2000, 0x8000
ELF = b"\x7fELF"
LINKED = struct.Struct("<8sQQ")  # magic, bytes of the image, inputs
LINKED_MAGIC = b"PXLINKED"
INPUT = struct.Struct("<Q")
NEWEST = 1 << 32
"""In place of a compute capability: that of a device that may run all PTX."""


class Entry(Struct, frozen=True):
    """One entry of a fat binary; ``arch`` is the number in ``sm_80``."""

    kind: int
    arch: int
    payload: bytes
    flags: int
    unpacked: int


def texts_of(image: bytes, arch: int) -> tuple[dict[str, str], list[str]]:
    """The PTX of an image, or of each input of a linked one, by what messages call it; and why inputs were left out.

    An input without PTX for the device, as CUDA's own library of device functions, is left out if there are others; then the
    linker misses what it defines. Raises as :func:`text_of`.
    """
    if not image.startswith(LINKED_MAGIC):
        return {"<module>": text_of(image, arch)}, []
    texts, left_out = {}, []
    for number, one in enumerate(_inputs(image), 1):
        try:
            texts[f"<input {number}>"] = text_of(one, arch)
        except UnsupportedError as error:
            left_out.append(f"input {number} of the link is left out: {error}")
    if not texts:
        raise UnsupportedError("\n".join(left_out))
    return texts, left_out


def _inputs(image: bytes) -> Iterator[bytes]:
    if len(image) < LINKED.size:
        raise InputError("the linked image is cut off")
    _, size, count = LINKED.unpack_from(image)
    at = LINKED.size
    for _ in range(count):
        if size != len(image) or len(image) - at < INPUT.size:
            raise InputError("the linked image is damaged")
        (length,) = INPUT.unpack_from(image, at)
        at += INPUT.size
        if length > len(image) - at:
            raise InputError("the linked image is damaged")
        yield image[at : at + length]
        at += -(-length // INPUT.size) * INPUT.size


def text_of(image: bytes, arch: int) -> str:
    """The PTX in an image, for a device of compute capability ``arch`` (80 for 8.0).

    Raises InputError for an image that is damaged, UnsupportedError for one with no PTX that such a device may run.
    """
    if image.startswith(ELF):
        raise UnsupportedError("the image is machine code (a cubin) and holds no PTX")
    if is_fat(image):
        return decoded(_unpacked(_chosen(list(entries(image)), arch)).rstrip(b"\0"), "the PTX of the fat binary")
    return decoded(image.rstrip(b"\0"), "the image")


def is_fat(image: bytes) -> bool:
    """Whether it begins as a fat binary."""
    return image.startswith(FIRST_BYTES)


def holds_ptx(image: bytes) -> bool:
    """Whether a fat binary has PTX, for any device. Raises InputError if it is damaged."""
    return any(entry.kind == PTX for entry in entries(image))


def entries(image: bytes) -> Iterator[Entry]:
    """What a fat binary holds. Raises InputError if a size does not fit."""
    if len(image) < HEADER.size:
        raise _damaged("its header is cut off")
    magic, version, start, size = HEADER.unpack_from(image)
    if magic != MAGIC or version != VERSION:
        raise _damaged(f"magic number 0x{magic:x}, version {version}")
    if start < HEADER.size or start > len(image) or size > len(image) - start:
        raise _damaged("it is shorter than its header says")
    at, end = start, start + size
    while at < end:
        if end - at < ENTRY.size:
            raise _damaged("the header of an entry is cut off")
        kind, _, head, padded, packed, _, _, arch, _, _, flags, _, unpacked = ENTRY.unpack_from(image, at)
        length = packed if flags & (LZ4 | ZSTANDARD) else padded
        if head < ENTRY.size or head > end - at or padded > end - at - head or length > padded:
            raise _damaged("an entry is larger than what holds it")
        yield Entry(kind, arch, image[at + head : at + head + length], flags, unpacked)
        at += head + padded


def _chosen(found: list[Entry], arch: int) -> Entry:
    """The PTX of the highest architecture that the device has."""
    texts = [entry for entry in found if entry.kind == PTX]
    fitting = [entry for entry in texts if entry.arch <= arch]
    if fitting:
        return max(fitting, key=lambda entry: entry.arch)
    if texts:
        there = ", ".join(sorted({f"compute_{entry.arch}" for entry in texts}))
        raise UnsupportedError(f"the fat binary holds PTX for {there} only; the device's compute capability is {_dotted(arch)}")
    machine = ", ".join(sorted({f"sm_{entry.arch}" for entry in found if entry.kind == MACHINE_CODE})) or "nothing"
    wanted = "compile with -gencode arch=compute_75,code=compute_75"
    raise UnsupportedError(f"the fat binary holds no PTX, only machine code for {machine}: {wanted}")


def _dotted(arch: int) -> str:
    return f"{arch // 10}.{arch % 10}"


def _unpacked(entry: Entry) -> bytes:
    if not entry.flags & (LZ4 | ZSTANDARD):
        return entry.payload
    if entry.unpacked > MAX_PROGRAM:
        raise InputError(f"the PTX of the fat binary has {entry.unpacked} bytes, more than {MAX_PROGRAM}")
    if entry.flags & LZ4:
        return lz4.decompress(entry.payload, entry.unpacked)
    return _zstandard(entry.payload, entry.unpacked)


def _zstandard(payload: bytes, size: int) -> bytes:
    with importing:
        import zstandard

    try:
        stated = zstandard.frame_content_size(payload)  # which the decompressor would allocate, whatever it is
        if stated in (size, -1, zstandard.CONTENTSIZE_UNKNOWN):
            data = zstandard.ZstdDecompressor(max_window_size=MAX_PROGRAM).decompress(payload, max_output_size=size)
            if len(data) == size:
                return data
    except zstandard.ZstdError as error:
        raise _damaged(str(error)) from None
    raise _damaged("a zstd frame has another size than its entry says")


def _damaged(what: str) -> InputError:
    return InputError(f"the fat binary is damaged: {what}")
