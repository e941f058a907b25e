"""What is known of the bits of an instruction's results, for each row and what it is like (ptxemu/ir/numerics.py).

A row says ``bits=`` unless PTX defines its results.  What values of operands leave open, such as a division of integers by zero,
or the payload of a NaN of f64, is no matter of rows.  What NVIDIA's assembler makes of several machine instructions was evaluated
and compared: docs/compositions.md counts the forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ptxemu.ir.numerics import Numerics

if TYPE_CHECKING:
    from ptxemu.isa.table import Row

DEFINED, MEASURED, BOUND, OPEN, UNCHECKED = "defined", "measured", "bound", "open", "unchecked"
IN_WORDS = {
    DEFINED: "defined by PTX",
    MEASURED: "as hardware was measured",
    BOUND: "within the manual's bound",
    OPEN: "left open by PTX: docs/semantics.md",
    UNCHECKED: "by a model, never checked on hardware",
}
"""The kinds, the surest first."""

MUFU, MUFU_90, SUMS, SPARSE_SUMS, CHAINS = "mufu", "mufu of sm_90", "sums", "sparse sums", "chains"
"""Of approximate functions, some of whose models were compared with sm_90 alone, and of sums of matrices: these depend on the
architecture."""

WARPGROUP_SUMS, TENSOR_SUMS = "warpgroup sums", "tensor sums"
"""Of wgmma, and of tcgen05 and scaled blocks: sums that only one architecture makes."""

MEASURED_ON = {SUMS: {70, 80, 89, 90, 100}, SPARSE_SUMS: {90}, CHAINS: {90}}
"""The architectures of whose tensor cores there are results (docs/semantics.md)."""

IN_TABLE = {
    MUFU: f"{MEASURED} if an architecture is named, else {BOUND}",
    MUFU_90: f"{MEASURED} if sm_90 is named, {UNCHECKED} if another is, else {BOUND}",
    SUMS: f"{MEASURED}, {UNCHECKED} on sm_75 and sm_120",
    SPARSE_SUMS: f"{MEASURED} on sm_90, else {UNCHECKED}", CHAINS: f"{MEASURED} on sm_90, else {UNCHECKED}",
    WARPGROUP_SUMS: MEASURED, TENSOR_SUMS: UNCHECKED,
}  # fmt: skip
"""What the list of instructions says of those."""


def fidelity_of(row: Row, mods: Mapping[str, str], numerics: Numerics) -> str:
    """One of the kinds, of an instruction with these modifiers."""
    if row.bits in (MUFU, MUFU_90) and not numerics.hardware:
        return BOUND
    if row.bits in (MUFU, MUFU_90):
        return MEASURED if row.bits == MUFU or numerics.first == 90 else UNCHECKED
    if row.bits in (SUMS, SPARSE_SUMS, WARPGROUP_SUMS, TENSOR_SUMS) and numerics.exact_sums:
        return OPEN
    if row.bits in MEASURED_ON:
        return MEASURED if numerics.used_for(mods).first in MEASURED_ON[row.bits] else UNCHECKED
    return {WARPGROUP_SUMS: MEASURED, TENSOR_SUMS: UNCHECKED}.get(row.bits, row.bits)
