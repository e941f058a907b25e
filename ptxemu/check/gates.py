"""Version and target gates, which only strict mode enforces."""

from __future__ import annotations

from collections.abc import Container, Iterable

from ptxemu.isa.special import GATES
from ptxemu.isa.table import Row

Limits = tuple[tuple[int, tuple[range, ...]], ...]
Gates = tuple[tuple[int, int], int, str]
"""Version, number of the target and its suffix (``a`` or ``f``, mostly empty)."""

OPERANDS = {"|": "a second destination", "+": "an optional operand"}
INDIRECT = "*"  # given: a texture, sampler or surface by a handle in a register
INDIRECT_NEEDS = (3, 1), 20
UNSYNCED_VERSION, UNSYNCED_TARGET = (6, 4), 70  # that have no warp instructions without .sync
HOPPER, ADA_VERSION = 90, (8, 1)  # sm_89 got its instructions later than sm_90

# What a flag of a row leaves of the targets with a suffix, and what to name in a message.
EXCLUSIVE: dict[str, tuple[Container[int], str]] = {
    "hopper": ((HOPPER,), "sm_90a"),
    "blackwell": (range(100, 110), "sm_100a or sm_103a"),
    "integers": ((100, 110), "sm_100a or sm_110a"),
    "ultra": ((101, 103, 107, 110), "sm_103f or sm_110f"),
    "tensors": (range(100, 120), "sm_100a, sm_103a or sm_110a"),
    "bytes": ((107, 120, 121), "sm_107f or sm_120f"),
    "rubin": ((107,), "sm_107f"),
}

# Flags of rows whose immediates may have a last range of values from a version on, on some targets with a suffix.
LAST_VALUES: dict[str, tuple[tuple[int, int], Container[int], str]] = {
    "packed_last": ((8, 7), range(100, 1000), "af"),
    "ultra_last": ((8, 8), (103, 107), "a"),
}


def gate_errors(row: Row, mods: dict[str, str], gates: Gates, given: Iterable[str] = ()) -> list[str]:
    """What the row, its modifiers and the optional operands ``given`` need that ``.version`` and ``.target`` do not give."""
    version, target, suffix = gates
    needs = [(f"'{row.opcode}'", row.ptx, row.sm)]
    words = set(mods.values())
    needs += [(f"'.{gate.replace('&', '.')}'", *least) for gate, least in row.gates.items() if words.issuperset(gate.split("&"))]
    needs += [(f"{OPERANDS[name[0]]} of '{row.opcode}'", *row.gates[name]) for name in given if name in row.gates]
    needs += [("a handle in a register", *INDIRECT_NEEDS)] if INDIRECT in given else []
    errors: list[str] = []
    for name, ptx, sm in needs:
        errors += _lacks(name, ptx, sm, gates)
    return errors or _special(row, version, target, suffix)


def gated_limits(row: Row, limits: Limits, gates: Gates) -> Limits:
    """Of the values that immediates may have, those that ``.version`` and ``.target`` give."""
    version, target, suffix = gates
    for flag, (least, targets, suffixes) in LAST_VALUES.items():
        if flag in row.flags and (version < least or target not in targets or suffix not in suffixes):
            return tuple((index, allowed[:-1]) for index, allowed in limits)
    return limits


def special_register_errors(name: str, gates: Gates) -> list[str]:
    """What a special register, or a component of one, needs that ``.version`` and ``.target`` do not give."""
    base = name.partition(".")[0]
    return _lacks(f"'%{base}'", *GATES.get(base, ((0, 0), 0)), gates)


def _lacks(name: str, ptx: tuple[int, int], sm: int, gates: Gates) -> list[str]:
    version, target, suffix = gates
    lacks = [f"PTX {ptx[0]}.{ptx[1]} (.version is {version[0]}.{version[1]})"] if ptx > version else []
    lacks += [f"sm_{sm} (.target is sm_{target}{suffix})"] if sm > target else []
    return [f"{name} needs {' and '.join(lacks)}"] if lacks else []


def _special(row: Row, version: tuple[int, int], target: int, suffix: str) -> list[str]:
    """Gates that are not a least version and target."""
    if "accelerated" in row.flags and not suffix:
        return [f"this form of '{row.opcode}' needs a target with the suffix a or f, such as sm_{target}a"]
    if "specific" in row.flags and suffix != "a":
        return [f"this form of '{row.opcode}' needs a target with the suffix a, such as sm_{target}a"]
    for flag, (targets, name) in EXCLUSIVE.items():
        if flag in row.flags and target not in targets:
            return [f"this form of '{row.opcode}' needs {name} (.target is sm_{target}{suffix})"]
    if "unsynced" in row.flags and version >= UNSYNCED_VERSION and target >= UNSYNCED_TARGET:
        return [f"'{row.opcode}' without '.sync' exists before PTX 6.4 or before sm_70 only"]
    if "ada" in row.flags and target < HOPPER and version < ADA_VERSION:
        return [f"this form of '{row.opcode}' needs PTX 8.1 for sm_{target} (.version is {version[0]}.{version[1]})"]
    if "narrow" in row.flags:
        return [f"this form of '{row.opcode}' needs 32-bit addresses"]
    return []
