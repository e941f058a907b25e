"""What is constant about a matrix multiplication: most of the fields of its site."""

from __future__ import annotations

from ptxemu._runtime import lib
from ptxemu.ir.numerics import Numerics
from ptxemu.ir.ops import Imm, Op
from ptxemu.isa.matrix import dimensions

ROUNDING = ("rn", "rz", "rm", "rp")


def constants_of(op: Op, numerics: Numerics) -> dict[str, int]:
    """Of ``mma``, ``mma.sp`` or ``wmma.mma``: all fields but where its registers are."""
    mods = {"atype": "f16", "btype": "f16"} | op.mods
    m, n, k = dimensions(mods["shape"])
    selector = op.get("immf")
    types = {name: int(getattr(lib, f"PE_TYPE_{mods[f'{name}type'].upper()}")) for name in "abcd"}
    return {
        "m": m, "n": n, "k": k, **types, "round": ROUNDING.index(mods.get("round", "rn")),
        "selector": selector.bits if isinstance(selector, Imm) else 0, **_sums(mods, numerics),
    }  # fmt: skip


def _sums(mods: dict[str, str], numerics: Numerics) -> dict[str, int]:
    """How products are added; those of a sparse A are counted with the elements that it does not hold."""
    flags = _flags(mods)
    if mods["dtype"] not in ("f16", "f32"):
        return {"flags": flags, "fraction": 0, "block": 0, "result": 0, "least": 0}
    found = numerics.summation(mods)
    flags |= {"plain": 0, "pairs": lib.PE_MMA_PAIRS, "chain": lib.PE_MMA_CHAIN}[found.order]
    block = found.block * 2 if "variant" in mods else found.block
    return {"flags": flags, "fraction": found.fraction, "block": block, "result": found.result, "least": found.least}


def _flags(mods: dict[str, str]) -> int:
    quads = mods["shape"] == "m8n8k4" and mods["atype"] == "f16"
    chosen = {
        "QUADS": quads, "A_COL": quads and mods["alayout"] == "col", "B_ROW": quads and mods["blayout"] == "row",
        "SPARSE": "variant" in mods, "SATURATE": "satfinite" in mods, "AND": mods.get("op") == "and",
    }  # fmt: skip
    return sum(int(getattr(lib, f"PE_MMA_{name}")) for name, value in chosen.items() if value)
