"""What kind of work an instruction is, and how many operations on floats: for those who count.

The classes are those in which profilers show the mix of instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxemu.isa import convert, floating, half, logic, matrix, surfaces, texture, video
from ptxemu.isa.compare import CHAPTER as COMPARISONS
from ptxemu.isa.compare import HALF_CHAPTER as HALF_COMPARISONS

if TYPE_CHECKING:
    from ptxemu.ir.ops import Op

CONTROL, SYNC, EXCHANGE, ATOMIC, MATRIX = "control", "synchronization", "warp exchange", "atomic", "matrix"
SPECIAL, CONVERSION, MOVE, OTHER = "special function", "conversion", "move", "other"

_CHAPTERS = {
    COMPARISONS: "comparison", HALF_COMPARISONS: "comparison", logic.CHAPTER: "logic", video.CHAPTER: "video",
    matrix.CHAPTER: MATRIX, surfaces.CHAPTER: "surface", texture.CHAPTER: "texture",
}  # fmt: skip
_SPECIAL_FUNCTIONS = {"rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"}
_OPERATIONS = {"add": "add", "sub": "add", "mul": "mul", "fma": "fma", "mad": "fma"}
_PRECISIONS = {"f16": "h", "bf16": "h", "f16x2": "h", "bf16x2": "h", "f32": "f", "f32x2": "f", "f64": "d"}


def class_of(op: Op) -> str:
    """``fp32``, ``integer``, ``load global`` ... of an instruction."""
    row, effects = op.row, op.effects
    if row.chapter in _CHAPTERS:
        return _CHAPTERS[row.chapter]
    if effects.leaves or effects.calls or op.labels:
        return CONTROL
    if effects.accesses and not any(access.is_of_mbarrier for access in effects.accesses):
        return _memory_class(op)
    if effects.accesses or effects.waits or effects.arrives or effects.fences or effects.meets == "warp":
        return SYNC
    if effects.meets:
        return EXCHANGE
    if row.opcode in _SPECIAL_FUNCTIONS:
        return SPECIAL
    if row.chapter == convert.CHAPTER:
        return CONVERSION if row.opcode == "cvt" else MOVE
    if row.chapter in (floating.CHAPTER, half.CHAPTER) or "Floating" in row.chapter:
        return _float_class(op)
    return "integer" if "Integer" in row.chapter else OTHER


def _memory_class(op: Op) -> str:
    if any(access.kind == "update" for access in op.effects.accesses):
        return ATOMIC
    verb = {(True, False): "load", (False, True): "store"}.get(
        (any(access.reads for access in op.effects.accesses), any(access.writes for access in op.effects.accesses)), "copy"
    )
    return f"{verb} {op.access.space.split('::')[0]}"


def _float_class(op: Op) -> str:
    precision = _PRECISIONS.get(op.mods.get("type", ""), "f")
    return {"h": "fp16", "f": "fp32", "d": "fp64"}[precision]


def float_operation(op: Op) -> tuple[str, int] | None:
    """What a thread computes, ``fadd``, ``dfma``, ``hmul`` ..., and on how many elements; None if it is none of these."""
    kind = op.mods.get("type", "")
    if op.opcode not in _OPERATIONS or kind not in _PRECISIONS or not class_of(op).startswith("fp"):
        return None
    return _PRECISIONS[kind] + _OPERATIONS[op.opcode], 2 if kind.endswith("x2") else 1


def matrix_operations(op: Op) -> int:
    """The multiplications and additions of one instruction of a whole warp, 0 if it multiplies no matrices."""
    shape = op.mods.get("shape", "")
    if class_of(op) != MATRIX or op.opcode not in ("mma", "wmma") or "c" not in op.row.names:
        return 0
    m, _, rest = shape.removeprefix("m").partition("n")
    n, _, k = rest.partition("k")
    return 2 * int(m) * int(n) * int(k)


OPERATIONS_OF = {"add": 1, "mul": 1, "fma": 2}
"""Of each kind of :func:`float_operation`, behind the letter of its precision."""
