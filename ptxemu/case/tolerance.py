"""How far results may be off: what case files and ``--tolerance`` say."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import asdict

from ptxemu.case.table import Table


class Tolerance(Struct, frozen=True):
    """How far a result may be off.

    A float is right within ``abs + rel * |expected|`` or within ``ulp`` steps of its type, an integer within ``integers``. Of all
    elements ``fraction`` may be wrong, or of all pixels ``pixels``, 0 to 1. ``psnr`` is the least ratio of peak to noise in dB;
    where nothing else is said, single elements are free.
    """

    abs: float = 0.0
    rel: float = 0.0
    ulp: int = 0
    integers: int = 0
    fraction: float = 0.0
    pixels: float = 0.0
    psnr: float = 0.0

    @property
    def of_elements(self) -> bool:
        """Whether single elements have limits, if only that of being exact."""
        return not self.psnr or any((self.abs, self.rel, self.ulp, self.integers, self.fraction, self.pixels))


LIMITS: dict[str, type[int] | type[float]] = {name: type(default) for name, default in asdict(Tolerance()).items()}
SHARES = ("fraction", "pixels")


def tolerance_of(limits: dict[str, int | float], fail: Callable[[str, str], Exception]) -> Tolerance:
    """The tolerance with these limits. Raises what ``fail`` makes of a name and of what is wrong with its number."""
    for key, value in limits.items():
        if not value >= 0:
            raise fail(key, "must not be negative")
        if key in SHARES and value > 1:
            raise fail(key, "is a share of all: 0 to 1")
        if key == "psnr" and value == math.inf:
            raise fail(key, "must be finite")
    return Tolerance(**limits)  # type: ignore[arg-type]


def read_tolerance(table: Table) -> Tolerance:
    """The tolerance that the keys of a table say."""
    return tolerance_of({key: table.need(key, kind) for key, kind in LIMITS.items() if key in table}, table.fail)
