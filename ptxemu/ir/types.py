"""Scalar types of PTX: names, widths and kinds (PTX ISA, "Types")."""

from __future__ import annotations

from msgspec import Struct


class ScalarType(Struct, frozen=True):
    """One fundamental PTX type such as ``u32``, ``f16x2`` or ``pred``.

    ``kind`` is one of ``u`` (unsigned), ``s`` (signed), ``f`` (float), ``b`` (bits), ``pred``, ``opaque``
    (``texref``, ``samplerref``, ``surfref``) and ``packed`` (several small elements in one register).
    ``bits`` is the full width of a register of the type.  ``llvm`` is the LLVM scalar type that holds it.
    """

    name: str
    kind: str
    bits: int
    llvm: str

    @property
    def bytes(self) -> int:
        """In memory; a predicate parameter takes one."""
        return -(-self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.kind == "s"

    def __str__(self) -> str:
        return self.name


OPAQUE = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}
"""Types of variables that stand for objects of the host, and what these are called."""


def _rows() -> list[ScalarType]:
    rows = [ScalarType("pred", "pred", 1, "i1")]
    for kind in "usb":
        rows += [ScalarType(f"{kind}{bits}", kind, bits, f"i{bits}") for bits in (8, 16, 32, 64)]
    rows.append(ScalarType("b128", "b", 128, "i128"))
    rows += [
        ScalarType("f16", "f", 16, "half"),
        ScalarType("f32", "f", 32, "float"),
        ScalarType("f64", "f", 64, "double"),
        ScalarType("bf16", "f", 16, "bfloat"),
        ScalarType("tf32", "f", 32, "i32"),
        ScalarType("f16x2", "packed", 32, "i32"),
        ScalarType("bf16x2", "packed", 32, "i32"),
        ScalarType("f32x2", "packed", 64, "i64"),
        ScalarType("u16x2", "packed", 32, "i32"),
        ScalarType("s16x2", "packed", 32, "i32"),
        ScalarType("u8x4", "packed", 32, "i32"),
        ScalarType("s8x4", "packed", 32, "i32"),
        ScalarType("e4m3", "packed", 8, "i8"),
        ScalarType("e5m2", "packed", 8, "i8"),
        ScalarType("e2m1x2", "packed", 8, "i8"),
        ScalarType("e2m1x4", "packed", 16, "i16"),
    ]
    rows += [ScalarType(f"{name}x2", "packed", 16, "i16") for name in ("e4m3", "e5m2", "e2m3", "e3m2", "ue8m0", "s2f6", "ue5m3")]
    rows += [ScalarType(f"{name}x4", "packed", 32, "i32") for name in ("e4m3", "e5m2", "e2m3", "e3m2")]
    rows += [ScalarType(name, "opaque", 64, "i64") for name in OPAQUE]
    return rows


def signed(number: int, bits: int) -> int:
    """A number modulo 2**bits as one whose highest bit is its sign."""
    half = 1 << bits - 1
    return (number + half) % (1 << bits) - half


TYPES: dict[str, ScalarType] = {row.name: row for row in _rows()}

PRED = TYPES["pred"]
U32 = TYPES["u32"]
B32 = TYPES["b32"]
B64 = TYPES["b64"]
U64 = TYPES["u64"]
