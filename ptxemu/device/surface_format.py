"""Texel formats of surfaces."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

PACKED = "RGB10A2"


class SurfaceFormat(Struct, frozen=True):
    """A texel format such as ``R8G8B8A8_UNORM``: component letters in memory order, bits of each, and their kind."""

    name: str
    order: str  # memory order: R RG RGBA BGRA A, or RGB10A2
    bits: int  # of one component; of RGB10A2, of the first three
    kind: str  # UNORM SNORM UINT SINT FLOAT

    @property
    def packed(self) -> bool:
        """Whether components share a word: such texels are moved as words and never converted."""
        return self.order == PACKED

    @property
    def components(self) -> int:
        return 4 if self.packed else len(self.order)

    @property
    def elements(self) -> int:
        """How many elements of :attr:`dtype` a texel is in arrays."""
        return 1 if self.packed else self.components

    @property
    def texel_bytes(self) -> int:
        return self.elements * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type of one component as it lies in memory, or of the word that holds them all."""
        if self.packed:
            return np.dtype(np.uint32)
        letter = {"UNORM": "u", "UINT": "u", "SNORM": "i", "SINT": "i", "FLOAT": "f"}[self.kind]
        return np.dtype(f"{letter}{self.bits // 8}")

    def __str__(self) -> str:
        return self.name


def _formats() -> dict[str, SurfaceFormat]:
    kinds = {8: "UNORM SNORM UINT SINT", 16: "UNORM SNORM UINT SINT FLOAT", 32: "UINT SINT FLOAT"}
    shapes = [(order, bits) for order in ("R", "RG", "RGBA") for bits in kinds] + [("BGRA", 8)]
    rows = [
        SurfaceFormat("".join(f"{letter}{bits}" for letter in order) + f"_{kind}", order, bits, kind)
        for order, bits in shapes
        for kind in kinds[bits].split()
    ]
    rows.append(SurfaceFormat("A8_UNORM", "A", 8, "UNORM"))
    rows += [SurfaceFormat(f"R10G10B10A2_{kind}", PACKED, 10, kind) for kind in kinds[8].split()]
    return {row.name: row for row in rows}


FORMATS: dict[str, SurfaceFormat] = _formats()


def surface_format(name: str | SurfaceFormat) -> SurfaceFormat:
    """The format of a name, in any case."""
    if isinstance(name, SurfaceFormat):
        return name
    try:
        return FORMATS[name.upper()]
    except (KeyError, AttributeError):
        raise InputError(f"no surface format is named {shown(name)}; there are {', '.join(FORMATS)}") from None
