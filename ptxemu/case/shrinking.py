"""Making a case that fails smaller, by delta debugging: it must fail as before (Zeller, Hildebrandt: Simplifying and Isolating
Failure-Inducing Input, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ptxemu.case.arrays import GENERATORS, Array
from ptxemu.case.sizes import Place, arrays, axes, elements, sizes, threads, value_at, with_value
from ptxemu.device.dtypes import SMALL_FLOATS

MAX_LITERAL = 1024  # elements of an array that is written out
Data = dict[str, Any]


class Shrinker:
    """The data of a case, which gets smaller while ``fails`` says of the smaller data that it still fails.

    With ``in_proportion``, launches keep their threads for each element: with fewer of them a correct kernel would fail as well.
    ``make`` is the array at a place. After ``limit`` runs it ends with what it has. Each step is deterministic.
    """

    def __init__(
        self,
        data: Data,
        fails: Callable[[Data], bool],
        make: Callable[[Data, Place], Array],
        say: Callable[[str], None],
        in_proportion: bool,
        limit: int,
    ) -> None:
        self.data, self.runs = data, 0
        self._fails, self._make, self._say, self._limit = fails, make, say, limit
        self._threads = (threads(data), elements(data)) if in_proportion else None
        self._tried: set[str] = set()
        self._sizes = list(sizes(data).values())

    def shrink(self) -> Data:
        """The smallest data that is found."""
        while any([self._shrink_sizes(), self._shrink_axes("block"), self._shrink_axes("grid")]):
            pass
        for place in arrays(self.data):
            self._clear(place)
        return self.data

    def _try(self, candidate: Data, what: str) -> bool:
        """Take a candidate if it fails and has not been tried."""
        key = repr(candidate)
        if key in self._tried or self.runs >= self._limit or not self._has_threads(candidate):
            return False
        self._tried.add(key)
        self.runs += 1
        if not self._fails(candidate):
            return False
        self.data = candidate
        self._say(what)
        return True

    def _has_threads(self, candidate: Data) -> bool:
        if self._threads is None:
            return True
        count, size = self._threads
        if count >= size:  # whole threads for each element; there may have been some too many
            return threads(candidate) >= count // size * elements(candidate)
        return threads(candidate) * size >= count * elements(candidate)

    def _shrink_sizes(self) -> bool:
        """Whether a size could be made smaller."""
        return any([self._shrink_size(group) for group in self._sizes])

    def _shrink_size(self, group: list[Place]) -> bool:
        """Whether a size could be made smaller, with all that are multiples of it, one of these, or alone."""
        value = value_at(self.data, group[0])
        multiples = [other for other in self._sizes if other is not group and value_at(self.data, other[0]) % value == 0]
        choices = [multiples, *([other] for other in multiples if len(multiples) > 1), []]
        named = ", ".join(dict.fromkeys(map(_name, group)))
        for smaller in _smaller(value):
            for others in choices:
                if self._try(self._resized([group, *others], value, smaller), f"{named}: {value} -> {smaller}"):
                    self._shrink_size(group)
                    return True
        return False

    def _resized(self, groups: list[list[Place]], value: int, smaller: int) -> Data:
        """The data with sizes that are smaller in the same proportion."""
        candidate = self.data
        for place in (place for group in groups for place in group):
            candidate = with_value(candidate, place, value_at(self.data, place) // value * smaller)
        return candidate

    def _shrink_axes(self, key: str) -> bool:
        return any([self._shrink_axis(place) for place in axes(self.data, key)])

    def _shrink_axis(self, place: Place) -> bool:
        value = value_at(self.data, place)
        for smaller in _smaller(value):
            if self._try(with_value(self.data, place, smaller), f"{_name(place)}: {value} -> {smaller}"):
                self._shrink_axis(place)
                return True
        return False

    def _clear(self, place: Place) -> None:
        """Write out an array, and make zeros of as many of its elements as can be."""
        array = self._make(self.data, place)
        if array.size > MAX_LITERAL or not (array.dtype.kind in "iuf" or array.dtype.name in SMALL_FLOATS):
            return
        count, kept = 1, np.flatnonzero(array != 0)
        while kept.size and count <= 2 * kept.size:
            for part in np.array_split(kept, min(count, kept.size)):
                cleared = array.copy()
                cleared.flat[part] = 0
                candidate = with_value(self.data, place, literal(cleared))
                if self._try(candidate, f"{_name(place)}: zero at {part.size} of {array.size} places"):
                    array = cleared
            count, kept = 2 * count, np.flatnonzero(array != 0)


def _smaller(value: int) -> Iterator[int]:
    """Numbers below one, the smallest first, then ever nearer to it."""
    step = value - 1
    while step:
        yield value - step
        step //= 2


def _name(place: Place) -> str:
    """What a place is called: ``n`` of an argument, ``x`` of the shape of an array, ``block``."""
    if "shape" in place:
        place = place[: place.index("shape")]
        place = place[:-1] if place[-1] in GENERATORS else place
    parts = [part for part in place if part not in ("args", "buffers")]
    return ".".join(map(str, parts))


def literal(array: Array) -> Data:
    """An array as case files have it, written out unless it is zeros."""
    if not np.any(array):
        return {"zeros": {"dtype": array.dtype.name, "shape": list(array.shape)}}
    kind = int if array.dtype.kind in "iu" else float
    return {"values": _nested(array, kind), "dtype": array.dtype.name}


def _nested(array: Array, kind: type[int] | type[float]) -> list[Any]:
    return [kind(item) if item.ndim == 0 else _nested(item, kind) for item in map(np.asarray, array)]
