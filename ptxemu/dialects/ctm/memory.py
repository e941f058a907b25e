"""The registers that describe inputs and outputs in memory: base address, format and height (docs/dialects.md, "CTM")."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from ptxemu.device.buffer import Buffer
from ptxemu.device.device import Device
from ptxemu.device.surface import Surface
from ptxemu.device.surface_format import surface_format
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.text.errors import InputError, UnsupportedError

FORMATS = {
    0: ("UINT16_1", "R16_UNORM"), 1: ("UINT8_4", "R8G8B8A8_UNORM"), 2: ("FLOAT32_1", "R32_FLOAT"),
    3: ("FLOAT32_2", "R32G32_FLOAT"), 4: ("FLOAT32_4", "R32G32B32A32_FLOAT"),
}  # fmt: skip
"""The data formats by code: the guide's names, and those of surfaces."""
TILINGS = ("LINEAR", "TILED", "LINEAR_INP_2X2", "TILED_INP_2X2")
WORD = 0xFFFFFFFF
CONSTANTS, CONSTANT_BYTES = 256, 16
CONSTANT_KINDS = ("float", "int", "bool")
BASE, PITCH, TILING, FORMAT, HEIGHT = 0xFFFFF800, 0x1FFC, 0x30000, 0x7000000, 0x1FFF
"""The bits of the fields."""


class Description(Struct, frozen=True):
    """What the registers say. The pitch, in elements, is also the width: there is no register for one."""

    base: int
    pitch: int
    height: int
    tiling: str
    name: str
    format: str


def describe(base: int, format: int, height: int, *, tiling: str = "reject", float_to_uint: str = "normalised") -> Description:
    """The meaning of the three words of ``set_inp_fmt``, ``set_out_fmt`` and ``set_cond_out_fmt``.

    The low bits of the base do not count.  Raises InputError for reserved bits and codes, for empty surfaces, and for tiled
    ones unless ``tiling`` is ``ignore``.
    """
    for name, word in (("base", base), ("format", format), ("height", height)):
        if not 0 <= word <= WORD:
            raise InputError(f"the {name} register has 32 bits, not {word:#x}")
    reserved = format & ~(PITCH | TILING | FORMAT)
    if reserved or height & ~HEIGHT:
        where = f"format word 0x{format:08x}: bits 0x{reserved:08x}" if reserved else f"height word 0x{height:08x}: high bits"
        raise InputError(f"{where} are reserved and must be zero")
    code = (format & FORMAT) >> 24
    if code not in FORMATS:
        raise InputError(f"format word 0x{format:08x}: data format {code} is reserved")
    layout = TILINGS[(format & TILING) >> 16]
    if layout.startswith("TILED") and tiling != "ignore":
        raise InputError(f"UNSUPPORTED_TILING: the layout of {layout} is not known; tiling=ignore takes it as linear")
    if not format & PITCH or not height:
        raise InputError("a surface has at least one row of elements")
    guide, surface = FORMATS[code]
    if float_to_uint == "integer":
        surface = surface.replace("UNORM", "UINT")
    return Description(base & BASE, format & PITCH, height, layout, guide, surface)


def register_words(name: str, pitch: int, height: int, base: int = 0, tiling: str = "LINEAR") -> tuple[int, int, int]:
    """The words of base, format and height that describe a surface."""
    codes = {guide: code for code, (guide, _) in FORMATS.items()}
    if name not in codes or tiling not in TILINGS:
        raise InputError(f"there is no {name} in layout {tiling}; formats are {', '.join(codes)}")
    if pitch & ~PITCH or height & ~HEIGHT or base & ~BASE:
        raise InputError("a pitch is a multiple of 4 below 8192, a height below 8192, a base a multiple of 2048 below 2^32")
    return base, pitch | TILINGS.index(tiling) << 16 | codes[name] << 24, height


def constants_of(memory: Buffer, base: int, format: int, *, kind: str = "float") -> Buffer:
    """The constant registers that two words describe in ``memory``, whose first byte has address zero: an array for
    ``.constants``, from c0 on, as many as there are up to c255.

    The words are those of ``set_out_fmt``; constants are one row of FLOAT32_4, so that the pitch does not matter.
    """
    if kind not in CONSTANT_KINDS:
        raise InputError(f"constants are {', '.join(CONSTANT_KINDS)}, not {kind!r}")
    if kind != CONSTANT_KINDS[0]:
        raise UnsupportedError(f"constants of kind {kind} control flow, which CTM programs here do not support")
    found = describe(base, format | PITCH, 1)
    if (found.name, found.tiling) != ("FLOAT32_4", "LINEAR"):
        raise InputError(f"constants are FLOAT32_4 in layout LINEAR, not {found.name} in layout {found.tiling}")
    count = min((memory.nbytes - found.base) // CONSTANT_BYTES, CONSTANTS)
    if count < 1:
        raise InputError(f"constants at 0x{found.base:x} lie beyond the {memory.nbytes} bytes of memory")
    return memory.part(found.base, (count, 4), np.dtype(np.float32))


def surface_of(
    device: Device,
    memory: Buffer,
    base: int,
    format: int,
    height: int,
    *,
    tiling: str = "reject",
    float_to_uint: str = "normalised",
) -> SurfaceObject:
    """The surface that registers describe in ``memory``, whose first byte has address zero. Keep the buffer."""
    found = describe(base, format, height, tiling=tiling, float_to_uint=float_to_uint)
    element = surface_format(found.format).texel_bytes
    size = found.pitch * element * found.height
    if found.base + size > memory.nbytes:
        raise InputError(f"a surface of {size} bytes at 0x{found.base:x} lies beyond the {memory.nbytes} bytes of memory")
    options: dict[str, Any] = {"pitch": found.pitch * element, "pitch_align": element}
    made = Surface(
        device.arena, found.format, found.pitch, found.height, address=memory.address + found.base, size=size, **options
    )
    made.descriptor.inp_2x2 = found.tiling.endswith("_INP_2X2")
    return SurfaceObject(made, device.surface_table)
