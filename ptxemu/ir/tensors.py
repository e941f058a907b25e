"""What is constant about copies of tensors and changes of tensor maps, in the runtime's terms."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.ops import Imm, Op, Operand

MODES = {
    "tile": lib.PE_LOAD_TILE, "tile::gather4": lib.PE_LOAD_ROWS, "tile::scatter4": lib.PE_LOAD_ROWS,
    "im2col": lib.PE_LOAD_IM2COL, "im2col_no_offs": lib.PE_LOAD_IM2COL, "im2col::w": lib.PE_LOAD_IM2COL_W,
    "im2col::w::128": lib.PE_LOAD_IM2COL_W128,
}  # fmt: skip
COORDINATES, OFFSETS = int(lib.PE_TENSOR_RANK), 3  # that the runtime takes of each lane


def copy_site(op: Op) -> dict[str, int]:
    """What is constant about a copy: fields of pe_tensor_site, but for the space of the map."""
    operation = getattr(lib, f"PE_TENSOR_{op.mods['op'].upper()}") if "op" in op.mods else lib.PE_TENSOR_SET
    return {"mode": int(MODES[op.mods.get("load", "tile")]), "dims": int(op.mods["dim"][0]), "op": int(operation)}


def field_site(op: Op) -> dict[str, int]:
    """What is constant about ``tensormap.replace``: fields of pe_tensor_field_site, but for the space."""
    ordinal = op.get("immn")
    field = getattr(lib, f"PE_FIELD_{op.mods['field'].upper()}")
    return {"field": int(field), "ordinal": ordinal.bits if isinstance(ordinal, Imm) else 0}


def field_value(op: Op) -> Operand:
    """What a field becomes."""
    value: Operand = op["immv"] if "immv" in op.row.names else op["v"]
    return value
