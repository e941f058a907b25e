"""Version and target gates, which only strict mode enforces."""

from __future__ import annotations

from ptxemu.isa.table import Row


def gate_errors(row: Row, mods: dict[str, str], version: tuple[int, int], target: int) -> list[str]:
    """What the row and its modifiers need that the module's ``.version`` and ``.target`` do not give."""
    needs = [(row.opcode, row.ptx, row.sm)]
    needs += [(f".{word}", *row.gates[word]) for word in mods.values() if word in row.gates]
    errors = []
    for name, ptx, sm in needs:
        lacks = [f"PTX {ptx[0]}.{ptx[1]} (.version is {version[0]}.{version[1]})"] if ptx > version else []
        lacks += [f"sm_{sm} (.target is sm_{target})"] if sm > target else []
        if lacks:
            errors.append(f"'{name}' needs {' and '.join(lacks)}")
    return errors
