"""Comparison of a result with what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxemu.case.arrays import Array
from ptxemu.case.schema import Tolerance
from ptxemu.device.dtypes import SMALL_FLOATS

SIGNED: dict[int, Any] = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one output compares; ``message`` says what differs, or how far it is off at most."""

    name: str
    passed: bool
    message: str


def compare(name: str, actual: Array, expected: object, tolerance: Tolerance) -> Comparison:
    """Integers must be equal; floats within the tolerance, NaN equal to NaN and infinities exact."""
    try:
        actual, wanted = _of_one_type(actual, np.asarray(expected))
    except ValueError as error:
        return Comparison(name, False, f"expected something that is not an array: {error}")
    problem = _mismatch_of_kind(actual, wanted)
    if problem:
        return Comparison(name, False, problem)
    with np.errstate(all="ignore"):
        right, distance = (np.asarray(actual == wanted), "") if _exact(actual) else _close(actual, wanted, tolerance)
    if right.all():
        return Comparison(name, True, distance)
    return Comparison(name, False, _first_difference(actual, wanted, right) + (f", {distance}" if distance else ""))


def ulp_distance(left: Array, right: Array) -> NDArray[np.uint64]:
    """How many representable numbers lie from one float to the other (both of one dtype, no NaN)."""
    a, b = _ordered(left), _ordered(right)
    distance: NDArray[np.uint64] = np.where(a > b, a - b, b - a)
    return distance


def _ordered(array: Array) -> NDArray[np.uint64]:
    """Each float's place in the order of all floats of its type, up to a constant."""
    signed = SIGNED[array.dtype.itemsize]
    bits = np.ascontiguousarray(array).view(signed).astype(np.int64)
    steps: NDArray[np.int64] = np.where(bits < 0, np.int64(np.iinfo(signed).min) - bits, bits)
    return steps.view(np.uint64) + np.uint64(2**63)


def _of_one_type(actual: Array, wanted: Array) -> tuple[Array, Array]:
    """The arrays, of which one may be bytes that are elements of the other: so are types in .npy files that are not NumPy's."""
    if wanted.dtype.itemsize == actual.dtype.itemsize and not wanted.dtype.hasobject:
        if _is_raw(wanted):
            return actual, wanted.view(actual.dtype)
        if _is_raw(actual):
            return actual.view(wanted.dtype), wanted
    return actual, wanted


def _is_raw(array: Array) -> bool:
    return array.dtype.type is np.void and array.dtype.names is None


def _exact(array: Array) -> bool:
    """Whether elements are compared exactly: integers, records, raw bytes."""
    return array.dtype.kind in "biu" or array.dtype.type is np.void


def _mismatch_of_kind(actual: Array, wanted: Array) -> str:
    if wanted.shape != actual.shape:
        return f"shape {actual.shape}, expected {wanted.shape}"
    same = _kind(actual) == _kind(wanted) if actual.dtype.type is not np.void else actual.dtype == wanted.dtype
    return "" if same else f"dtype {actual.dtype.name}, expected {wanted.dtype.name}"


def _kind(array: Array) -> str:
    """Which types an array may be compared with."""
    if array.dtype.kind in "biu":
        return "integer"
    if array.dtype.kind in "fc" or array.dtype.name in SMALL_FLOATS:
        return "float"
    return array.dtype.name


def _close(actual: Array, wanted: Array, tolerance: Tolerance) -> tuple[NDArray[np.bool_], str]:
    wide: Any = np.complex128 if "c" in (actual.dtype.kind, wanted.dtype.kind) else np.float64
    found, goal = actual.astype(wide), wanted.astype(wide)
    equal = (found == goal) | (np.isnan(found) & np.isnan(goal))
    finite = np.isfinite(found) & np.isfinite(goal)
    error = np.abs(np.where(finite, found, 0) - np.where(finite, goal, 0))
    limit = tolerance.abs + tolerance.rel * np.abs(np.where(finite, goal, 0))
    right = equal | (finite & (error <= limit))
    if tolerance.ulp and actual.dtype.kind == wanted.dtype.kind == "f" and actual.dtype.itemsize in SIGNED:
        rounded = wanted.astype(actual.dtype)
        right |= finite & (ulp_distance(actual, rounded) <= tolerance.ulp)
    worst = float(error.max(initial=0))
    return right, f"largest error {worst:.3g}" if worst else ""


def _first_difference(actual: Array, wanted: Array, right: NDArray[np.bool_]) -> str:
    wrong = np.argwhere(~right)
    index = tuple(int(number) for number in wrong[0])
    place = ", ".join(map(str, index))
    return f"{len(wrong)} of {right.size} differ; first at [{place}]: {actual[index]}, expected {wanted[index]}"
