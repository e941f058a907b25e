"""Making a program smaller that does what it must not: launches and lines are left out while it still does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tests.fuzz.hostile.pool import Child, Finding, Tally
from tests.fuzz.hostile.program import Program, read

T = TypeVar("T")


def smaller(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """A shorter sequence that still fails: parts of it are left out, halves first, single items at last."""
    size = len(items) // 2
    while size:
        at = 0
        while at < len(items):
            shorter = [*items[:at], *items[at + size :]]
            if fails(shorter):
                items = shorter
            else:
                at += size
        size //= 2
    return items


def minimized(finding: Finding) -> Program:
    """The smallest program found that ends in a finding of the same kind."""
    child, program = Child(), finding.program

    def fails(one: Program) -> bool:
        found = child.run(one, Tally())
        return found is not None and found.kind == finding.kind

    alone = replace(program, launches=program.launches[finding.step.index :][:1])
    if fails(alone):
        program = alone
    launches = smaller(program.launches, lambda some: bool(some) and fails(replace(program, launches=tuple(some))))
    program = replace(program, launches=tuple(launches))
    lines = smaller(program.text.split("\n"), lambda some: fails(replace(program, text="\n".join(some))))
    child.close()
    return replace(program, text="\n".join(lines))


def command(path: Path) -> int:
    program = read(path)
    child = Child()
    found = child.run(program, Tally())
    child.close()
    if found is None:
        print(f"{path}: nothing happens")
        return 1
    least = path.with_suffix(".min.ptx")
    least.write_text(minimized(found).written(), encoding="utf-8", errors="surrogatepass")
    print(f"{least}: {found.kind}")
    return 0
