"""The vectors of ``tests/data/spec``, and which instruction expresses each of them."""

from __future__ import annotations

import csv
from itertools import groupby

import ptxemu
from ptxemu.device.surface_object import SurfaceObject
from tests.support.places import SPEC

Row = dict[str, str]
Group = tuple[str, int]


def rows(name: str) -> list[Row]:
    """The vectors of ``vectors_<name>.csv``."""
    with (SPEC / f"vectors_{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------- atomic operations: (operation, bits) -> instruction

PTX: dict[Group, str] = {
    ("fadd", 16): "add.noftz.f16", ("fadd", 64): "add.f64", ("fadd_ftz", 32): "add.f32", ("inc_wrap", 32): "inc.u32",
    ("dec_wrap", 32): "dec.u32",
}  # fmt: skip
PTX |= {("u" + op, bits): f"{op}.u{bits}" for op in ("min", "max") for bits in (32, 64)}
PTX |= {("s" + op, bits): f"{op}.s{bits}" for op in ("min", "max") for bits in (32, 64)}
PTX |= {(op, bits): f"{op}.b{bits}" for op in ("and", "or", "xor") for bits in (32, 64)}
PTX |= {("add", bits): f"add.u{bits}" for bits in (32, 64)}
"""``red.global`` and ``atom.global``."""

PTX_ATOM = {("xchg", bits): f"exch.b{bits}" for bits in (32, 64)} | {("cas_ptx", bits): f"cas.b{bits}" for bits in (16, 32, 64)}
"""``atom.global`` alone."""

PTX_SHARED = {("fadd", 32): "add.f32"}
"""``atom.shared``, where sums keep subnormals."""

PTX_SURED = {key: text for key, text in PTX.items() if key[0] in ("add", "umin", "umax", "smin", "smax")}
PTX_SURED |= {("and", 32): "and.b32", ("or", 32): "or.b32"}

SASS_RED: dict[Group, str] = {
    ("fadd", 16): "ADD.F16x2.RN", ("fadd", 64): "ADD.F64.RN", ("fadd_ftz", 32): "ADD.F32.FTZ.RN", ("inc_wrap", 32): "INC",
    ("dec_wrap", 32): "DEC",
}  # fmt: skip
SASS_RED |= {("u" + op, bits): f"{op.upper()}.U{bits}" for op in ("min", "max") for bits in (32, 64)}
SASS_RED |= {("s" + op, bits): f"{op.upper()}.S{bits}" for op in ("min", "max") for bits in (32, 64)}
SASS_RED |= {(op, bits): f"{op.upper()}.{bits}" for op in ("add", "and", "or", "xor") for bits in (32, 64)}
SASS_SURED = {
    key: text.replace(".32", ".U32").replace(".64", ".U64") for key, text in SASS_RED.items() if key != ("fadd", 64)
}  # fmt: skip

VISA_WORDS = {
    "add": "add", "sub": "sub", "umin": "min", "umax": "max", "smin": "imin", "smax": "imax", "and": "and", "or": "or",
    "xor": "xor", "inc": "inc", "dec": "dec", "predec": "predec", "xchg": "xchg", "cmpxchg_visa": "cmpxchg",
    "fmin_visa": "fmin", "fmax_visa": "fmax", "fcmpwr_visa": "fcmpwr",
}  # fmt: skip
VISA: dict[Group, str] = {
    (name, bits): word + (".16" if bits == 16 else "") for name, word in VISA_WORDS.items() for bits in (16, 32)
}  # fmt: skip

NOWHERE = {
    ("sub", 64): "only vISA subtracts, and its elements have 16 or 32 bits",
    ("cmpxchg_visa", 64): "vISA's order of operands, 64 bits: its elements have 16 or 32",
}
"""Groups that no instruction set expresses."""


def atomics() -> dict[Group, list[Row]]:
    """The vectors of each operation and width."""

    def key(row: Row) -> Group:
        return row["model_op"], int(row["bits"])

    return {group: list(found) for group, found in groupby(sorted(rows("atomics"), key=key), key)}


def column(found: list[Row], name: str) -> list[int]:
    """A column of bits; empty fields are zero."""
    return [int(row[name] or "0", 16) for row in found]


# ---------------------------------------------------------------- bounds and places

COORDINATES = {"1d": "{%x}", "2d": "{%x, %y}", "3d": "{%x, %y, %z, %z}", "a1d": "{%l, %x}", "a2d": "{%l, %x, %y, %y}"}
"""What PTX writes for a coordinate of a geometry."""


def shape(geometry: str, width: int, height: int, depth: int, layers: int) -> tuple[int, ...]:
    """The shape of a surface's array."""
    return {"1d": (width,), "1d_buffer": (width,), "2d": (height, width), "3d": (depth, height, width),
            "a1d": (layers, width), "a2d": (layers, height, width)}[geometry]  # fmt: skip


def extents(row: Row, width: str = "width") -> tuple[int, int, int, int]:
    """Width, height, depth and layers of a vector's surface."""
    a, b, c, d = (max(1, int(row[name] or 0)) for name in (width, "height", "depth", "layers"))
    return a, b, c, d


def addressed(device: ptxemu.Device, row: Row, format: str) -> SurfaceObject:
    """The surface of a vector of addresses, all zero."""
    options: dict[str, int | str] = {"layout": "pitch", "pitch": int(row["pitch"] or 0)}
    if row["layout"] == "blocklinear":
        options = {"layout": "block_linear", "block_height_log2": int(row["req_block_h_log2"]),
                   "block_depth_log2": int(row["req_block_d_log2"])}  # fmt: skip
    return device.surface(shape(row["geom"], *extents(row)), format=format, geometry=row["geom"], **options)  # type: ignore[arg-type]


def ptx_accepts(row: Row) -> bool:
    """Does a PTX surface instruction express a vector of bounds? Bytes: suld.b and sust.b; scaled: sured.p."""
    return row["geom"] in COORDINATES and (row["x_mode"] == "byte" or row["access_bytes"] in ("4", "8"))


def sass_accepts(row: Row) -> bool:
    """Does SURED? It updates 4 and 8 bytes."""
    return row["access_bytes"] in ("4", "8")


def visa_accepts(row: Row) -> bool:
    """Does TYPED_ATOMIC? It names texels of 2 and 4 bytes, and drops what lies outside."""
    size = int(row["access_bytes"])
    aligned = row["x_mode"] != "byte" or int(row["x"]) % size == 0
    return row["clamp"] == "zero" and size in (2, 4) and aligned and int(row["width_bytes"]) % size == 0
