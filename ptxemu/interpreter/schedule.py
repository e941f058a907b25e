"""Whose turn it is, where PTX leaves that open."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from msgspec import Struct, field

T = TypeVar("T")

BUDGET = 100  # instructions of a warp's turn, few, so that a warp that spins does not keep the others from what it waits for


class Schedule(Struct):
    """Warps have turns of ``budget`` instructions; in every ``patience``-th turn of a warp the lanes go first that have waited
    longest, else those that are behind, so that they catch up.

    The same launch with the same schedule goes the same way. A ``seed`` shuffles the warps of a cluster in each round, and the
    length of their turns: another order that a GPU may have, for programs whose results depend on it.
    """

    budget: int = BUDGET
    patience: int = 1
    seed: int | None = None
    _random: Random = field(default_factory=Random)

    def begin(self) -> None:
        """A launch begins."""
        self._random.seed(self.seed)

    def order(self, warps: Sequence[T]) -> Sequence[T]:
        """The warps of a cluster in the order of their turns in this round."""
        return warps if self.seed is None else self._random.sample(warps, len(warps))

    def turn(self) -> int:
        """The instructions of the next turn."""
        return self.budget if self.seed is None else self._random.randint(1, self.budget)
