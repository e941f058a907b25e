"""The PTX in a file of a program: a text, a fat binary, or an object, a library or a program of nvcc.

These are ELF files with a section that holds fat binaries one after another, with zeros between them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ptxemu.images.fatbin import ELF, FIRST_BYTES, HEADER, NEWEST, holds_ptx, is_fat, text_of
from ptxemu.text.errors import InputError, UnsupportedError
from ptxemu.text.files import decoded

# the class and byte order; the machine; where the headers of sections are; the size of one, their number, which has the names
FILE = struct.Struct("<4x2s12xH20xQ10xHHH")
SECTION = struct.Struct("<I20xQQ")  # where its name is; where it begins; its bytes
LITTLE_64 = b"\2\1"
CUDA_MACHINE = 190
FATBINS = b".nv_fatbin\0"


def program_text(data: bytes, name: str) -> str:
    """The PTX in the contents of a file, which messages call ``name``; of a fat binary that of the newest architecture.

    Raises InputError for what is none of these, is damaged or has several modules, UnsupportedError for machine code alone.
    """
    if not is_fat(data) and not data.startswith(ELF):
        return decoded(data, name)
    try:
        return text_of(data if is_fat(data) else _module(data), NEWEST)
    except (InputError, UnsupportedError) as error:
        raise type(error)(f"{name}: {error}") from None


def _module(data: bytes) -> bytes:
    """The fat binary with PTX in an ELF file; one without if there is no other."""
    others, found = None, None
    for image in _fat_binaries(_section(data)):
        if not holds_ptx(image):
            others = image
        elif found is None:
            found = image
        else:
            raise InputError("has several modules: cuobjdump -xptx all writes the PTX of each into a file")
    module = found or others
    if module is None:
        raise InputError("is a program, a library or an object without CUDA code")
    return module


def _section(data: bytes) -> bytes:
    """What an ELF file has in the section for fat binaries: nothing if there is none."""
    if len(data) < FILE.size:
        raise InputError("is an ELF file that is cut off")
    kind, machine, start, size, count, named = FILE.unpack_from(data)
    if machine == CUDA_MACHINE:
        raise UnsupportedError("is machine code (a cubin), which holds no PTX: compile with nvcc -ptx")
    if kind != LITTLE_64:
        raise InputError("is no 64-bit program of this machine's byte order")
    if count and (named >= count or size < SECTION.size or start + size * count > len(data)):
        raise InputError("is an ELF file that is damaged")
    sections = [SECTION.unpack_from(data, start + size * number) for number in range(count)]
    names = sections[named][1] if sections else 0
    for name, begin, length in sections:
        if data.startswith(FATBINS, names + name):
            return data[begin : begin + length]
    return b""


def _fat_binaries(section: bytes) -> Iterator[bytes]:
    at = section.find(FIRST_BYTES)
    while 0 <= at <= len(section) - HEADER.size:
        _, _, head, size = HEADER.unpack_from(section, at)
        yield section[at : at + head + size]
        at = section.find(FIRST_BYTES, at + max(head + size, HEADER.size))
