"""What is constant about a matrix multiplication: most of the fields of its site."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ptxemu._runtime import lib
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.numerics import Numerics, Summation
from ptxemu.ir.operations import find
from ptxemu.ir.ops import Imm, Op, items_of
from ptxemu.isa.matrix import dimensions

ROUNDING = ("rn", "rz", "rm", "rp")


def constants_of(op: Op, numerics: Numerics) -> dict[str, int]:
    """Of ``mma``, ``mma.sp`` or ``wmma.mma``: all fields but where its registers are."""
    return _constants({"atype": "f16", "btype": "f16"} | op.mods, numerics.summation, constant_of(op, "immf"))


def constant_of(op: Op, name: str) -> int:
    """The value of an operand that is a constant; 0 if the row has none of that name."""
    value = op.get(name)
    return value.bits if isinstance(value, Imm) else 0


def _constants(mods: dict[str, str], summation: Callable[[Mapping[str, str]], Summation], selector: int) -> dict[str, int]:
    m, n, k = dimensions(mods["shape"])
    types = {name: int(getattr(lib, f"PE_TYPE_{mods[f'{name}type'].upper()}")) for name in "abcd"}
    return {
        "m": m, "n": n, "k": k, **types, "round": ROUNDING.index(mods.get("round", "rn")),
        "selector": selector, **_sums(mods, summation),
    }  # fmt: skip


def warpgroup_constants_of(op: Op, numerics: Numerics) -> dict[str, int]:
    """The same of the rows that a warp has of a ``wgmma.mma_async``."""
    mods = {**op.mods, "ctype": op.mods["dtype"]} | ({"variant": "sp"} if "sp" in op.mods else {})
    found = _constants(mods, numerics.warpgroup_summation, constant_of(op, "immsel"))
    negated = "immsa" in op.row.names and constant_of(op, "immsa") != constant_of(op, "immsb")
    return found | {"m": 16, "flags": found["flags"] | (lib.PE_MMA_NEGATE if negated else 0)}


def scaled_constants_of(op: Op) -> dict[str, int]:
    """Of ``mma`` with ``.block_scale``: all fields but where its registers are."""
    sparse = int("variant" in op.mods)
    k = dimensions(op.mods["shape"])[2] >> sparse
    factors = 1 if op.mods["kind"] == "kind::mxf8f6f4" else 4 if op.mods.get("scale") == "scale_vec::4X" else 2
    types = {name: int(getattr(lib, f"PE_TYPE_{op.mods[f'{name}type'].upper()}")) for name in "ab"}
    return {"k": k, **types, "each": k // factors, "e4m3": int(op.mods["stype"] == "ue4m3"), "sparse": sparse}


KINDS = {"kind::f16": "f16", "kind::tf32": "tf32", "kind::f8f6f4": "e4m3"}
"""Of ``tcgen05.mma``, with one of the types that are added alike."""


def tensor_constants_of(op: Op, numerics: Numerics) -> dict[str, int]:
    """What a ``tcgen05.mma`` says beside its descriptors."""
    kind = op.mods["kind"]
    type = KINDS.get(kind)
    full, half = (numerics.tensor_summation(type, half=half) if type else Summation() for half in (False, True))
    return {
        "kind": int(getattr(lib, f"PE_KIND_{kind.removeprefix('kind::').upper()}")), "shift": constant_of(op, "immscale"),
        "each": 16 if op.mods.get("scale") in ("scale_vec::4X", "block16") else 32,
        "ctas": ctas_of(op), "stationary": int("ws" in op.mods), "moves_a": int("ashift" in op.mods),
        "fraction": full.fraction, "block": full.block, "result": full.result, "least": full.least, "least_half": half.least,
    }  # fmt: skip


def ctas_of(op: Op) -> int:
    """How many CTAs a ``tcgen05`` instruction is about: 2 of a pair."""
    return int(op.mods["cta_group"].removeprefix("cta_group::"))


COPIES = {"": (1, 0, 0), "warpx4": (4, 32, 0), "warpx2::02_13": (2, 64, 0), "warpx2::01_23": (2, 32, 32)}
"""Of ``tcgen05.cp``, by the warps whose lanes get the same: how often, how many lanes apart, and those between both halves."""


def tensor_copy_of(op: Op) -> dict[str, int]:
    """What a ``tcgen05.cp`` says beside its address and descriptor."""
    rows, bits = op.mods["shape"].removesuffix("b").split("x")
    copies, apart, behind = COPIES[op.mods.get("warps", "")]
    return {
        "rows": int(rows), "lines": int(bits) // 128, "bits": {"b6x16_p32": 6, "b4x16_p64": 4}.get(op.mods.get("from", ""), 8),
        "copies": copies, "apart": apart, "behind": behind, "ctas": ctas_of(op),
        "every": LANES if rows == "4" else 1,
    }  # fmt: skip


def tensor_columns_of(op: Op) -> dict[str, int]:
    """What a ``tcgen05.ld`` or ``tcgen05.st`` says beside its address."""
    registers = len(op.dsts) - ("red" in op.mods) or len(items_of(op["v"]))
    return {
        "shape": int(getattr(lib, f"PE_TMEM_{op.mods['shape'].upper()}")), "registers": registers,
        "packed": int("pack" in op.mods or "unpack" in op.mods), "apart": constant_of(op, "immapart"),
        **_reduction_of(op),
    }  # fmt: skip


def _reduction_of(op: Op) -> dict[str, int]:
    """How a ``tcgen05.ld.red`` reduces the registers of a thread; zeros of others."""
    if "red" not in op.mods:
        return {"op": 0, "type": 0, "flags": 0}
    kind = op.type()
    flags = lib.PE_TMEM_ABS * ("abs" in op.mods) | lib.PE_TMEM_NAN * ("NaN" in op.mods)
    return {"op": find(op.mods["op"], kind).code, "type": int(getattr(lib, f"PE_TYPE_{kind.name.upper()}")), "flags": flags}


def _sums(mods: dict[str, str], summation: Callable[[Mapping[str, str]], Summation]) -> dict[str, int]:
    """How products are added. A sum in pairs is made by two instructions, of half the products each."""
    flags = _flags(mods)
    if mods["dtype"] not in ("f16", "f32"):
        return {"flags": flags, "fraction": 0, "block": 0, "result": 0, "least": 0}
    found = summation(mods)
    flags |= {"plain": 0, "pairs": lib.PE_MMA_PAIRS, "chain": lib.PE_MMA_CHAIN}[found.order]
    products = dimensions(mods["shape"])[2] // (2 if "variant" in mods else 1)
    block = min(found.block, products // 2) if found.order == "pairs" else found.block
    return {"flags": flags, "fraction": found.fraction, "block": block, "result": found.result, "least": found.least}


def _flags(mods: dict[str, str]) -> int:
    quads = mods["shape"] == "m8n8k4" and mods["atype"] == "f16"
    chosen = {
        "QUADS": quads, "A_COL": quads and mods["alayout"] == "col", "B_ROW": quads and mods["blayout"] == "row",
        "SPARSE": "variant" in mods, "SATURATE": "satfinite" in mods, "AND": mods.get("op") == "and",
    }  # fmt: skip
    return sum(int(getattr(lib, f"PE_MMA_{name}")) for name, value in chosen.items() if value)
