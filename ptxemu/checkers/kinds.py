"""The checkers by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from typing import cast

from ptxemu._runtime import ffi, lib
from ptxemu.ir.observed import Observed
from ptxemu.text.errors import InputError, shown
from ptxemu.text.suggestions import closest


def _kinds() -> Iterator[tuple[str, int]]:
    count = ffi.new("uint32_t *")
    kinds = lib.pe_check_kinds(count)
    for kind in ffi.unpack(kinds, count[0]):
        yield ffi.string(kind.name).decode(), kind.code


KINDS = dict(_kinds())
"""The bit of each in the runtime."""
NAMES = {code: name for name, code in KINDS.items()}
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


def codes_of(checks: Iterable[str]) -> int:
    """The set of checkers as the runtime knows it."""
    return reduce(or_, (KINDS[name] for name in checks), 0)


def observed_of(checks: Iterable[str]) -> Observed:
    """Which accesses code tells of that runs under these checkers."""
    return cast("Observed", ffi.string(lib.pe_checks_observed(codes_of(checks))).decode())
