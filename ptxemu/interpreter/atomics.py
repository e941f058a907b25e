"""atom and red: the runtime's read-modify-write operations."""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.memory import addresses, lane_data, take
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import Translator, method
from ptxemu.ir.operations import find, variant
from ptxemu.ir.ops import Op
from ptxemu.ir.strength import of_system, strength
from ptxemu.ir.types import ScalarType

FIRST, OLD = 1, 3  # areas


def operation(op: Op, kind: ScalarType) -> int:
    """The runtime's number of an instruction's operation on a type."""
    return find(op.mods["op"], kind).code


def type_code(name: str) -> int:
    return int(getattr(lib, f"PE_TYPE_{name.upper()}"))


@method("atom", "red")
def atomic(t: Translator, op: Op) -> Step:
    kind = op.type()
    operands = [t.readers(op[name], kind) for name in ("bc" if op.mods["op"] == "cas" else "b")]
    count, size = len(operands[0]), kind.bytes
    (address, space), writers = t.access(op, "a"), t.writers(op)
    scopes = {"system": int(of_system(op)), "order": strength(op), "flags": variant(op.mods)}
    constants = site("atom", op, op=operation(op, kind), type=type_code(kind.name), space=space, count=count, **scopes)
    wanted = any(write is not None for write in writers)

    def step(warp: Any, group: list[Lane]) -> None:
        mask, at = addresses(warp, group, address)
        data = [lane_data(warp, FIRST + number, group, readers, size) for number, readers in enumerate(operands)]
        data += [ffi.NULL] * (2 - len(data))
        old = warp.grid.transfer.area(OLD)
        warp.grid.call("pe_atomic", warp, constants, mask, at, *data, old.pointer if wanted else ffi.NULL)
        take(old, size, group, writers)

    return step
