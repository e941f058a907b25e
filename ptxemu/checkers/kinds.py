"""The checkers by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ptxemu._runtime import lib
from ptxemu.ir.observed import Observed
from ptxemu.text.errors import InputError, shown
from ptxemu.text.suggestions import closest


@dataclass(frozen=True, slots=True)
class Kind:
    """A checker: its bit in the runtime, and which accesses compiled code must tell for it."""

    code: int
    observed: Observed


KINDS = {
    "memory": Kind(lib.PE_CHECK_MEMORY, "strays"),
    "sync": Kind(lib.PE_CHECK_SYNC, ""),
    "race": Kind(lib.PE_CHECK_RACE, "all"),
}
NAMES = {kind.code: name for name, kind in KINDS.items()}
ALL = "all"


def parse_checks(text: str | Iterable[str]) -> tuple[str, ...]:
    """Names of checkers, in a list or with commas between them; ``all`` are all of them. Raises InputError."""
    names = text.split(",") if isinstance(text, str) else list(text)
    names = [name.strip() if isinstance(name, str) else name for name in names]
    for name in names:
        if name not in (*KINDS, ALL, ""):
            near = closest(name, KINDS) if isinstance(name, str) else ""
            raise InputError(f"there is no checker {shown(name)}{near or ': they are ' + ', '.join(KINDS)}")
    return tuple(name for name in KINDS if name in names or ALL in names)


def observed_of(checks: Iterable[str]) -> Observed:
    """Which accesses code tells of that runs under these checkers."""
    wanted = {KINDS[name].observed for name in checks}
    return "all" if "all" in wanted else "strays" if "strays" in wanted else ""
