"""Numbered slots that hold surfaces (:mod:`ptxemu.dialects.slots`)."""

from __future__ import annotations

from ptxemu.dialects.slots import INDEX_BITS, indices_of
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import each
from ptxemu.interpreter.translate import Translator, method
from ptxemu.ir.ops import Op
from ptxemu.ir.types import U32, U64


@method("surface_slot")
def surface_slot(t: Translator, op: Op) -> Step:
    """The surface handle of an index, 0 for an empty slot."""
    index = t.reader(op["index"], U32)
    handles = {place: t.reader(item, U64) for place, item in zip(indices_of(op), op["s"], strict=True)}

    def handle(lane: Lane) -> int:
        read = handles.get(index(lane) & (1 << INDEX_BITS) - 1)
        return 0 if read is None else read(lane)

    return each(t, op, handle)
