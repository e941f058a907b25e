"""What was found in a kernel, before anybody describes it."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """``raw`` are the bytes of ``pe_finding``, one after another; the kernel is of the image, for a device of an architecture."""

    image: bytes
    arch: int
    kernel: str
    raw: bytes
