"""The columns of the tables by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ptxemu.profiler import metrics
from ptxemu.profiler.metrics import KINDS

Sums = Mapping[str, int]


class Column(Struct, frozen=True):
    """``value`` of a line's sums; ``share``: shown as percent of all lines, too."""

    title: str
    explained: str
    value: Callable[[Sums], float | None]
    share: bool = False


def _sum(template: str, *spaces: str) -> Callable[[Sums], float | None]:
    names = [template.format(*spaces, kind) for kind in KINDS]
    return lambda sums: sum(sums.get(name, 0) for name in names) or None


def _ratio(above: str, below: str) -> Callable[[Sums], float | None]:
    return lambda sums: sums.get(above, 0) / sums[below] if sums.get(below) else None


def _sectors_per_request(sums: Sums) -> float | None:
    requests = _sum(metrics.REQUESTS, "global")(sums)
    return (_sum(metrics.SECTORS, "global")(sums) or 0) / requests if requests else None


COLUMNS = (
    Column("inst", "instructions that warps execute", lambda sums: sums.get(metrics.INSTRUCTIONS), share=True),
    Column("thr/inst", "threads of an instruction whose guard holds", _ratio(metrics.ACTIVE, metrics.INSTRUCTIONS)),
    Column("diverg", "branches that threads of a warp left for different places", lambda sums: sums.get(metrics.DIVERGENT)),
    Column("sectors", "sectors of 32 bytes of global memory", _sum(metrics.SECTORS, "global")),
    Column("sect/req", "of them, for each access of a warp", _sectors_per_request),
    Column("excess", "sectors beyond those that would hold the bytes", lambda sums: sums.get(metrics.EXCESSIVE)),
    Column("conflicts", "further wavefronts of shared memory for bank conflicts", _sum(metrics.CONFLICTS)),
    Column(
        "atomic",
        "passes of atomics, one for each update of the same address in a warp",
        lambda sums: sums.get(metrics.ATOMIC_PASSES),
    ),
)


def number(value: float | None) -> str:
    """As tables show it; nothing for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
