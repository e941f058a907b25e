"""What is known of the bits of a kernel's results, by its instructions (``run --fidelity``).

Imported where it is asked for, as it needs the checked program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ptxemu.api import Kernel
from ptxemu.cli.verbs.info import occurrences
from ptxemu.interpreter.lane import Lane
from ptxemu.interpreter.machine import Grid, Warp
from ptxemu.interpreter.observer import Observer, observing
from ptxemu.interpreter.translate import Code
from ptxemu.isa.fidelity import DEFINED, IN_WORDS, fidelity_of


class Executions(Observer):
    """Counts how often threads execute the instructions of each kernel, by where these are in the source."""

    def __init__(self) -> None:
        self.of: dict[str, Counter[int]] = {}
        self._launch: Counter[tuple[Code, int]] = Counter()

    def begins(self, grid: Grid) -> None:
        self._launch.clear()

    def executes(self, warp: Warp, group: list[Lane], code: Code, pc: int) -> None:
        guard, lanes = code.ops[pc].guard, len(group)
        if guard is not None:
            slot, negated = code.slots[guard[0]], guard[1]
            lanes = sum(bool(lane.r[slot]) != negated for lane in group)
        self._launch[code, pc] += lanes

    def ends(self, grid: Grid, error: Exception | None) -> None:
        """Of what an instruction became, the op that was executed most often stands for it."""
        found: Counter[int] = Counter()
        for (code, pc), times in self._launch.items():
            pos = code.ops[pc].pos
            found[pos] = max(found[pos], times)
        self.of.setdefault(grid.image.code.function.name, Counter()).update(found)


@contextmanager
def counting() -> Iterator[Executions]:
    """Count what launches on the interpreter do within."""
    executions = Executions()
    with observing(executions):
        yield executions


class Fidelity(NamedTuple):
    """For each kind of ``isa/fidelity.py``, the instructions and how many there are, and how often threads executed them."""

    counts: dict[str, dict[str, int]]
    executed: dict[str, dict[str, int]] | None

    @property
    def line(self) -> str:
        """``instructions: 4 defined by PTX, executed 36 times; 1 as hardware was measured (sin.approx.f32), executed 9 times``"""
        return "instructions: " + (", " if self.executed is None else "; ").join(map(self._part, self.counts))

    def _part(self, kind: str) -> str:
        names = self.counts[kind]
        listed = "" if kind == DEFINED else f" ({', '.join(names)})"
        times = "" if self.executed is None else f", executed {sum(self.executed[kind].values()):,} times"
        return f"{sum(names.values())} {IN_WORDS[kind].partition(':')[0]}{listed}{times}"

    @property
    def facts(self) -> dict[str, dict[str, dict[str, int]]]:
        """For JSON."""
        return {"fidelity": self.counts} | ({} if self.executed is None else {"executed": self.executed})


def fidelity_of_kernel(kernel: Kernel, executions: Executions | None) -> Fidelity:
    """Of the kernel and of the functions it calls."""
    program = kernel.module.program.ir
    known: Counter[int] = Counter() if executions is None else executions.of.get(kernel.name, Counter())
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in IN_WORDS}
    times: dict[str, Counter[str]] = {kind: Counter() for kind in IN_WORDS}
    for name, op in sorted(occurrences(program, program.functions[kernel.name]), key=lambda found: found[0]):
        kind = fidelity_of(op.row, op.mods, program.numerics)
        counts[kind][name] += 1
        times[kind][name] += known[op.pos]
    used = [kind for kind in IN_WORDS if counts[kind]]
    executed = None if executions is None else {kind: dict(times[kind]) for kind in used}
    return Fidelity({kind: dict(counts[kind]) for kind in used}, executed)
