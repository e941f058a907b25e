"""Texture headers of Maxwell, version 2: eight words that describe a surface (open-gpu-doc, class B197).

The pool of a program takes surfaces; this makes one of a packed header, and a packed header of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxemu.device.device import Device
from ptxemu.device.surface import Surface
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.text.errors import InputError

WORDS = 8
# Places of fields as (lowest bit, bits) in the 256 bits of a header.
COMPONENTS, HEADER_VERSION, TEXTURE_TYPE, MAX_MIP_LEVEL = (0, 7), (85, 3), (151, 4), (124, 4)
DATA_TYPES = ((7, 3), (10, 3), (13, 3), (16, 3))
SOURCES = ((19, 3), (22, 3), (25, 3), (28, 3))
GOBS_HEIGHT, GOBS_DEPTH, GOBS_WIDTH = (99, 3), (102, 3), (96, 3)
PITCH, WIDTH, HEIGHT, DEPTH = (96, 16), (128, 16), (160, 16), (176, 14)
HIGH_ADDRESS = (64, 16)
PITCH_UNIT = 32

BUFFER, PITCH_LINEAR, BLOCK_LINEAR = 0, 2, 3
ADDRESSES = {BUFFER: (32, 32, 0), PITCH_LINEAR: (37, 27, 5), BLOCK_LINEAR: (41, 23, 9)}
"""Of each header version: lowest bit, bits, and the lowest bit of the address that they hold."""
LAYOUTS = {BUFFER: "linear", PITCH_LINEAR: "pitch", BLOCK_LINEAR: "block_linear"}
SIZES = {
    0x01: "R32G32B32A32", 0x03: "R16G16B16A16", 0x04: "R32G32", 0x08: "R8G8B8A8", 0x09: "R10G10B10A2", 0x0C: "R16G16",
    0x0F: "R32", 0x18: "R8G8", 0x1B: "R16", 0x1D: "R8",
}  # fmt: skip
KINDS = {1: "SNORM", 2: "UNORM", 3: "SINT", 4: "UINT", 7: "FLOAT"}
GEOMETRIES = {0: "1d", 1: "2d", 2: "3d", 3: "cube", 4: "a1d", 5: "a2d", 6: "1d_buffer", 7: "2d", 8: "acube"}
WITHOUT_LEVELS = (6, 7)  # types whose headers have no mip levels
READ_SOURCES = (2, 3, 4, 5)  # X, Y, Z, W come from R, G, B, A


def describe(words: Sequence[int]) -> dict[str, Any]:
    """What :class:`ptxemu.device.surface.Surface` takes, from a packed header. Raises InputError for what no surface can be."""
    if len(words) != WORDS or not all(0 <= int(word) < 1 << 32 for word in words):
        raise InputError(f"a texture header is {WORDS} words of 32 bits")
    bits = sum(int(word) << 32 * index for index, word in enumerate(words))

    def field(place: tuple[int, int]) -> int:
        return bits >> place[0] & (1 << place[1]) - 1

    version = field(HEADER_VERSION)
    geometry = _choice(GEOMETRIES, field(TEXTURE_TYPE), "type")
    layout = _choice(LAYOUTS, version, "version")
    size = _choice(SIZES, field(COMPONENTS), "component sizes")
    kinds = {field(place) for place in DATA_TYPES[: size.count("R") + size.count("G") + size.count("B") + size.count("A")]}
    if len(kinds) != 1:
        raise InputError("texture header: the components have different data types")
    low, count, shift = ADDRESSES[version]
    found: dict[str, Any] = {
        "format": f"{size}_{_choice(KINDS, kinds.pop(), 'data type')}",
        "geometry": geometry,
        "layout": layout,
        "width": field(WIDTH) + 1,
        "levels": 1 if field(TEXTURE_TYPE) in WITHOUT_LEVELS else field(MAX_MIP_LEVEL) + 1,
        "address": field(HIGH_ADDRESS) << 32 | field((low, count)) << shift,
    }
    if version == BUFFER:
        found["width"] = (field(PITCH) << 16 | field(WIDTH)) + 1
        return found
    if geometry not in ("1d", "a1d"):
        found["height"] = field(HEIGHT) + 1
    if geometry == "3d":
        found["depth"] = field(DEPTH) + 1
    if geometry in ("a1d", "a2d", "cube", "acube"):
        found["layers"] = (field(DEPTH) + 1) * (6 if "cube" in geometry else 1)
    if version == PITCH_LINEAR:
        found["pitch"] = field(PITCH) * PITCH_UNIT
    else:
        found |= {"block_height_log2": field(GOBS_HEIGHT), "block_depth_log2": field(GOBS_DEPTH)}
        if field(GOBS_WIDTH):
            raise InputError("texture header: blocks are one GOB wide")
    return found


def _choice(table: dict[int, str], code: int, what: str) -> str:
    if code not in table:
        raise InputError(f"texture header: {code} is not a valid code of {what}")
    return table[code]


def surface_of(device: Device, words: Sequence[int], name: str = "surface") -> SurfaceObject:
    """The surface that a packed header describes, in memory that the caller has allocated on the device."""
    fields = describe(words)
    return SurfaceObject(Surface(device.arena, name=name, **fields), device.surface_table)


def header_of(surface: Surface) -> tuple[int, ...]:
    """The packed header of a surface."""
    d = surface.descriptor
    version = {layout: code for code, layout in LAYOUTS.items()}[surface.layout]
    if surface.layout == "linear" and surface.geometry != "1d_buffer":
        version = PITCH_LINEAR
    text, kind = str(surface.format).rsplit("_", 1)
    codes = {
        COMPONENTS: _code(SIZES, text), HEADER_VERSION: version, TEXTURE_TYPE: _code(GEOMETRIES, surface.geometry),
        WIDTH: d.width - 1 & 0xFFFF,
    }  # fmt: skip
    codes |= dict.fromkeys(DATA_TYPES, _code(KINDS, kind)) | dict(zip(SOURCES, READ_SOURCES, strict=True))
    low, count, shift = ADDRESSES[version]
    _check_multiple("address", surface.address, 1 << shift)
    codes |= {HIGH_ADDRESS: surface.address >> 32, (low, count): (surface.address & 0xFFFFFFFF) >> shift}
    if version == BUFFER:
        codes[PITCH] = d.width - 1 >> 16
        return _words(codes)
    layers = d.layers // 6 if "cube" in surface.geometry else d.layers
    codes |= {HEIGHT: d.height - 1, DEPTH: max(d.depth, layers) - 1, MAX_MIP_LEVEL: d.levels - 1}
    if version == PITCH_LINEAR:
        _check_multiple("pitch", d.pitch, PITCH_UNIT)
        codes[PITCH] = d.pitch // PITCH_UNIT
    else:
        codes |= {GOBS_HEIGHT: d.block_h_log2, GOBS_DEPTH: d.block_d_log2}
    return _words(codes)


def _check_multiple(what: str, value: int, unit: int) -> None:
    if value % unit:
        raise InputError(f"a texture header cannot describe {what} 0x{value:x}, which is not a multiple of {unit}")


def _code(table: dict[int, str], text: str) -> int:
    found = next((code for code, name in table.items() if name == text), None)
    if found is None:
        raise InputError(f"a texture header cannot describe {text}")
    return found


def _words(codes: dict[tuple[int, int], int]) -> tuple[int, ...]:
    bits = 0
    for (low, count), value in codes.items():
        if not 0 <= value < 1 << count:
            raise InputError(f"texture header: {value} does not fit {count} bits")
        bits |= value << low
    return tuple(bits >> 32 * index & 0xFFFFFFFF for index in range(WORDS))
