"""What is known of accesses to memory where code for them is emitted."""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxemu.ir.ops import Op


@dataclass(slots=True)
class Pairs:
    """Ops that are lowered together (lower/memory/pairs.py): the second of each first and the first of each second, and what
    loads of the second kind have got already."""

    second: dict[Op, Op] = field(default_factory=dict)
    first: dict[Op, Op] = field(default_factory=dict)
    loaded: dict[Op, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reach:
    """Memory that is sure to be there: ``bytes`` from ``start`` on, two i64.

    ``places``: how many multiples of an alignment, the second number, are offsets of so many bytes in it, the first one.
    ``marching``: addresses in it come from those of an earlier trip of a loop.
    """

    start: str
    bytes: str
    places: dict[tuple[int, int], str]
    marching: bool = False
