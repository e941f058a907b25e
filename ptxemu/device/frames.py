"""How much stack the functions of an object take, which LLVM decides last and does not report."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

# A large frame is touched page by page on the way down ("probe-stack"), to an end that is computed first: in r11 or x9.
X86 = re.compile(rb"\x49\x89\xe3\x49\x81\xeb(.{4})", re.DOTALL)  # mov %rsp, %r11; sub $bytes, %r11
AARCH64_FIRST, AARCH64_NEXT = 0xD14003E9, 0xD1400129  # sub x9, sp, #pages, lsl #12; sub x9, x9, #pages, lsl #12
AARCH64_PAGES = 0xFFF << 10
SMALL = 32 << 10  # frames that begin in another way are smaller
X86_64_MACHINE, AARCH64_MACHINE = 62, 183  # e_machine


def largest_frame(code: bytes) -> int:
    """Bytes that are enough for the frame of any function of an ELF object."""
    (machine,) = struct.unpack_from("<H", code, 18)
    if machine == X86_64_MACHINE:
        sizes = [struct.unpack("<I", size)[0] for size in X86.findall(code)]
    elif machine == AARCH64_MACHINE:
        sizes = _aarch64(struct.unpack_from(f"<{len(code) // 4}I", code))
    else:
        sizes = []
    return max(sizes, default=0) + SMALL


def _aarch64(words: Sequence[int]) -> list[int]:
    sizes = []
    for first in (place for place, word in enumerate(words) if word & ~AARCH64_PAGES == AARCH64_FIRST):
        total, place, kind = 0, first, AARCH64_FIRST
        while place < len(words) and words[place] & ~AARCH64_PAGES == kind:
            total += (words[place] & AARCH64_PAGES) << 2
            place, kind = place + 1, AARCH64_NEXT
        sizes.append(total)
    return sizes
