"""What is known of the bits of a kernel's results, by its instructions (``run --fidelity``).

Imported where it is asked for, as it needs the checked program.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxemu.api import Kernel
from ptxemu.cli.verbs.info import instructions
from ptxemu.isa.fidelity import DEFINED, IN_WORDS


class Fidelity(NamedTuple):
    """For each kind of ``isa/fidelity.py``, the instructions and how many there are."""

    counts: dict[str, dict[str, int]]

    @property
    def line(self) -> str:
        """``instructions: 12 defined by PTX, 1 within the manual's bound (ex2.approx.f32)``."""
        parts = []
        for kind, names in self.counts.items():
            listed = "" if kind == DEFINED else f" ({', '.join(names)})"
            parts.append(f"{sum(names.values())} {IN_WORDS[kind].partition(':')[0]}{listed}")
        return "instructions: " + ", ".join(parts)


def fidelity_of_kernel(kernel: Kernel) -> Fidelity:
    """Of the kernel and of the functions it calls."""
    program = kernel.module.program.ir
    found: dict[str, dict[str, int]] = {kind: {} for kind in IN_WORDS}
    for one in instructions(program, program.functions[kernel.name]):
        found[one.bits][one.name] = one.count
    return Fidelity({kind: names for kind, names in found.items() if names})
