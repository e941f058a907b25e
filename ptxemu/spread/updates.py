"""Updates of memory that commute: what several blocks do with them does not depend on the order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxemu._runtime import lib
from ptxemu.driver.needs import reachable
from ptxemu.ir.graph import reads
from ptxemu.ir.operations import find
from ptxemu.ir.ops import Function, Op

Words = NDArray[Any]
COMBINED: dict[str, Callable[[Words, Words, Words], Words]] = {
    "ADD": lambda one, other, before: one + (other - before),
    "UMIN": lambda one, other, before: np.minimum(one, other),
    "SMIN": lambda one, other, before: np.minimum(one, other),
    "UMAX": lambda one, other, before: np.maximum(one, other),
    "SMAX": lambda one, other, before: np.maximum(one, other),
    "AND": lambda one, other, before: one & other,
    "OR": lambda one, other, before: one | other,
    "XOR": lambda one, other, before: one ^ other ^ before,
}
"""What memory holds after the updates of two parts of a launch, each of which began with what was there before."""
DTYPES = {"u32": "<u4", "s32": "<i4", "b32": "<u4", "u64": "<u8", "s64": "<i8", "b64": "<u8"}


class Update(Struct, frozen=True):
    """An update of integers: the name of the operation (``ir/operations.py``), and its type in PTX."""

    operation: str
    type: str

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(DTYPES[self.type])

    def combine(self, one: Words, other: Words, before: Words) -> Words:
        """What two parts leave together of words that were ``before``."""
        return COMBINED[self.operation](one, other, before)


UPDATES = [Update(operation, type) for operation in COMBINED for type in DTYPES]
FIRST_CODE = int(lib.PE_WRITTEN) + 1
SIGNED = {
    Update(one, f"b{bits}"): Update(other, f"s{bits}") for one, other in (("UMIN", "SMIN"), ("UMAX", "SMAX")) for bits in (32, 64)
}
"""Updates of numbers that have a sign where the format of the texels says so (PTX ISA, "sured.p")."""


def update_of(code: int) -> Update:
    """The update of a code in a footprint."""
    return UPDATES[code - FIRST_CODE]


def _codes(meaning: Callable[[Update], Update | None]) -> NDArray[np.uint8]:
    """For each code what it means where updates have this meaning; None: there they do not commute."""
    codes = np.arange(256, dtype=np.uint8)
    for code, update in enumerate(UPDATES, FIRST_CODE):
        found = meaning(update)
        codes[code] = lib.PE_MIXED if found is None else FIRST_CODE + UPDATES.index(found)
    return codes


IN_MEMORY = _codes(lambda update: None if update in SIGNED else update)
IN_TEXELS = _codes(lambda update: update)
IN_SIGNED_TEXELS = _codes(lambda update: SIGNED.get(update, update))
NOWHERE = _codes(lambda update: None)


def commuting(entry: Function) -> dict[int, int]:
    """The code of each update of a kernel that commutes, by its position: of integers, and without a result that is used."""
    found: dict[int, int] = {}
    for function in reachable(entry):
        used = {register for op in function.ops for register in reads(op)}
        for op in function.ops:
            if not used.intersection(op.dsts) and (update := _update(op)) in UPDATES:
                found[op.pos] = FIRST_CODE + UPDATES.index(update)
    return found


def _update(op: Op) -> Update | None:
    """What an instruction does to memory if it states an operation on one type."""
    kind = op.mods.get("type")
    if "op" not in op.mods or kind not in DTYPES:
        return None
    with suppress(KeyError):
        return Update(find(op.mods["op"], op.type()).name, kind)
    return None
