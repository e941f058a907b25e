"""Comparison of a result with what was expected."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxemu.case.arrays import Array
from ptxemu.case.tolerance import Tolerance
from ptxemu.device.dtypes import SMALL_FLOATS

SIGNED: dict[int, Any] = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
MOST_COMPONENTS = 4  # of a pixel


class Comparison(Struct, frozen=True):
    """How one output compares; ``message`` says what differs, or how far it is off at most.

    Of its ``elements``, ``differing`` ones are off by more than they may. The ``largest`` error is that of the element at
    ``worst``. ``psnr`` is in dB; None if nothing is off, or if nobody asks.
    """

    name: str
    passed: bool
    message: str
    elements: int = 0
    differing: int = 0
    largest: float = 0.0
    worst: tuple[int, ...] = ()
    psnr: float | None = None


def compare(name: str, actual: Array, expected: object, tolerance: Tolerance, other: str = "expected") -> Comparison:
    """Integers and floats within their tolerance, NaN equal to NaN and infinities exact. ``other`` is what messages call them."""
    try:
        actual, wanted = aligned(actual, np.asarray(expected))
    except ValueError as invalid:
        return Comparison(name, False, f"expected something that is not an array: {invalid}")
    problem = _mismatch_of_kind(actual, wanted)
    if problem:
        return Comparison(name, False, problem)
    if np.array_equal(actual, wanted):  # takes no memory to speak of
        return Comparison(name, True, "", actual.size)
    with np.errstate(all="ignore"):
        error = errors(actual, wanted)
        right = np.asarray(error == 0) if _opaque(actual) else _right(actual, wanted, error, tolerance)
        psnr = _psnr(error, wanted) if tolerance.psnr and not _opaque(actual) else None
    verdicts = [*_of_elements(right, tolerance), *_of_noise(psnr, tolerance)]
    passed = all(fine for fine, _ in verdicts)
    differing, largest = right.size - int(np.count_nonzero(right)), float(error.max(initial=0))
    worst = tuple(int(number) for number in np.unravel_index(np.argmax(error), error.shape)) if largest else ()
    told = [*(text for _, text in verdicts), *_places(actual, wanted, right, worst, other)]
    distance = "" if _opaque(actual) or not largest else _distance(actual, wanted, largest, worst, tolerance)
    message = "; ".join(told) + (", " if told and distance else "") + distance
    return Comparison(name, passed, message, right.size, differing, largest, worst, psnr)


def aligned(actual: Array, wanted: Array) -> tuple[Array, Array]:
    """The arrays, of which one may be bytes that are elements of the other: so are types in .npy files that are not NumPy's."""
    if wanted.dtype.itemsize == actual.dtype.itemsize and not wanted.dtype.hasobject:
        if _is_raw(wanted):
            return actual, wanted.view(actual.dtype)
        if _is_raw(actual):
            return actual.view(wanted.dtype), wanted
    return actual, wanted


def errors(actual: Array, wanted: Array) -> NDArray[np.float64]:
    """How far each element is off: infinitely, where one of the two is not finite; by 1, of records and bytes that differ."""
    if _opaque(actual):
        return np.asarray(actual != wanted).astype(np.float64)
    if _kind(actual) == "integer":
        return _integer_errors(actual, wanted)
    wide: Any = np.complex128 if "c" in (actual.dtype.kind, wanted.dtype.kind) else np.float64
    found, goal = actual.astype(wide), wanted.astype(wide)
    error: NDArray[np.float64] = np.asarray(np.abs(found - goal))
    error[~np.isfinite(error)] = np.inf  # a difference may also overflow
    error[(found == goal) | (np.isnan(found) & np.isnan(goal))] = 0
    return error


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


def _integer_errors(actual: Array, wanted: Array) -> NDArray[np.float64]:
    """Differences, rounded only once; modulo 2**64 they are exact, but for those that are larger than that."""
    rough: NDArray[np.float64] = np.abs(actual.astype(np.float64) - wanted.astype(np.float64))
    a, b = (array.astype(np.uint64) for array in (actual, wanted))
    exact = np.where(actual > wanted, a - b, b - a)
    return np.where(rough > 2.0**63, rough, exact.astype(np.float64))


def _is_raw(array: Array) -> bool:
    return array.dtype.type is np.void and array.dtype.names is None


def _opaque(array: Array) -> bool:
    """Whether elements are no numbers: records and raw bytes, which are equal or not."""
    return array.dtype.type is np.void


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


def _right(actual: Array, wanted: Array, error: NDArray[np.float64], tolerance: Tolerance) -> NDArray[np.bool_]:
    """Which elements are as near as they must be."""
    if _kind(actual) == "integer":
        return np.asarray(error <= tolerance.integers)
    wide: Any = np.complex128 if wanted.dtype.kind == "c" else np.float64
    limit = tolerance.abs + tolerance.rel * np.abs(wanted.astype(wide))
    right = np.asarray((error == 0) | (np.isfinite(error) & (error <= limit)))
    if tolerance.ulp and _has_steps(actual, wanted):
        right |= _steps(actual, wanted) <= tolerance.ulp
    return right


def _has_steps(actual: Array, wanted: Array) -> bool:
    return "c" not in (actual.dtype.kind, wanted.dtype.kind) and actual.dtype.itemsize in SIGNED


def _steps(actual: Array, wanted: Array) -> NDArray[np.float64]:
    """How many numbers of the result's type lie between it and what was expected; infinitely many if one is not finite."""
    rounded = wanted.astype(actual.dtype)
    finite = np.isfinite(actual.astype(np.float64)) & np.isfinite(wanted.astype(np.float64))
    return np.where(finite, ulp_distance(actual, rounded).astype(np.float64), np.inf)


def _psnr(error: NDArray[np.float64], wanted: Array) -> float | None:
    """The ratio of peak to noise in dB: of integers the peak is the type's greatest number, of floats the greatest expected."""
    noise = float(np.mean(np.square(error))) if error.size else 0.0
    if not noise:
        return None
    if wanted.dtype.kind in "iu":
        peak = float(np.iinfo(wanted.dtype).max)
    else:
        magnitudes = np.abs(wanted if wanted.dtype.kind in "fc" else wanted.astype(np.float32))
        peak = float(magnitudes.max(where=np.isfinite(magnitudes), initial=0))
    return 20 * math.log10(peak) - 10 * math.log10(noise) if peak and noise < math.inf else -math.inf


def _of_elements(right: NDArray[np.bool_], tolerance: Tolerance) -> Iterator[tuple[bool, str]]:
    """How many elements or pixels are wrong, and whether that is within the tolerance; nothing if all are right."""
    share, unit = (tolerance.pixels, " pixels") if tolerance.pixels else (tolerance.fraction, "")
    places = _pixels(right) if tolerance.pixels else right
    wrong = places.size - int(np.count_nonzero(places))
    if tolerance.of_elements and wrong:
        fine = wrong <= share * places.size
        allowed = f", {100 * share:g} % may" if share else ""
        yield fine, f"{wrong} of {places.size}{unit} differ{allowed}"


def _of_noise(psnr: float | None, tolerance: Tolerance) -> Iterator[tuple[bool, str]]:
    """Whether there is no more noise than the tolerance allows; nothing if there is none."""
    if psnr is not None:
        fine = psnr >= tolerance.psnr
        yield fine, f"PSNR {psnr:.1f} dB" + ("" if fine else f", less than {tolerance.psnr:g} dB")


def _pixels(right: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pixels are right in all their components: the last axis of (..., height, width, components)."""
    return np.asarray(right.all(axis=-1)) if right.ndim > 2 and right.shape[-1] <= MOST_COMPONENTS else right


def _places(actual: Array, wanted: Array, right: NDArray[np.bool_], worst: tuple[int, ...], other: str) -> list[str]:
    """The first element that differs, and the one that differs most."""
    if right.all():
        return []
    first = tuple(int(number) for number in np.unravel_index(np.argmin(right), right.shape))
    found = [f"first at {_element(actual, wanted, first, other)}"]
    if worst != first and not _opaque(actual):
        found.append(f"worst at {_element(actual, wanted, worst, other)}")
    return found


def _element(actual: Array, wanted: Array, index: tuple[int, ...], other: str) -> str:
    return f"[{', '.join(map(str, index))}]: {actual[index]}, {other} {wanted[index]}"


def _distance(actual: Array, wanted: Array, largest: float, worst: tuple[int, ...], tolerance: Tolerance) -> str:
    """``largest error 0.5 (3 ulp)``, of a whole number with all digits."""
    if _kind(actual) == "integer":
        return f"largest error {abs(int(actual[worst]) - int(wanted[worst]))}"
    if not tolerance.ulp or not _has_steps(actual, wanted):
        return f"largest error {largest:.3g}"
    steps = float(_steps(actual[(*worst, None)], wanted[(*worst, None)])[0])
    return f"largest error {largest:.3g} ({steps:.9g} ulp)"
