"""What a report shows of a result beside its message: how large its errors are, and pictures."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ptxemu.case.arrays import Array
from ptxemu.case.compare import aligned, errors
from ptxemu.device.picture import encoded, flat, thinned
from ptxemu.text.errors import Fault, InputError
from ptxemu.text.files import MAX_PROGRAM, read_text

BINS = 24
MAX_SHOWN = 1024  # pixels of a picture in each direction; of larger ones every n-th is shown
CONTEXT = 3  # lines around the one that a fault names


class Exhibit(Struct, frozen=True):
    """The errors of an output, and what it looks like if it is a picture.

    ``exact`` elements are not off, ``bins`` are how many have errors between 10 to the power of ``low`` and of ``high``, and
    ``infinite`` ones are off infinitely. Pictures are PNG files in base64.
    """

    name: str
    exact: int
    infinite: int = 0
    low: float = 0.0
    high: float = 0.0
    bins: tuple[int, ...] = ()
    actual: str = ""
    expected: str = ""
    difference: str = ""


def exhibit(name: str, actual: Array, expected: Any, is_surface: bool) -> Exhibit:
    """What there is to show of an output that can be compared. Floats of a surface are grey from 0 to 1."""
    found, wanted = aligned(actual, np.asarray(expected))
    with np.errstate(all="ignore"):
        error = errors(found, wanted)
    seen, sought = (_png(array, is_surface) for array in (found, wanted))
    if not seen or not sought:
        return Exhibit(name, *_histogram(error))
    return Exhibit(name, *_histogram(error), seen, sought, _png(_visible(error)) if error.any() else "")


def excerpt(error: Exception) -> str:
    """The lines of the program around the one that a fault names."""
    location = error.details.location if isinstance(error, Fault) else None
    if location is None:
        return ""
    try:
        lines = read_text(Path(location.file), MAX_PROGRAM).splitlines()
    except InputError:
        return ""
    first = max(1, location.line - CONTEXT)
    shown = lines[first - 1 : location.line + CONTEXT]
    return "\n".join(f"{'>' if number == location.line else ' '}{number:5} {line}" for number, line in enumerate(shown, first))


def _histogram(error: NDArray[np.float64]) -> tuple[int, int, float, float, tuple[int, ...]]:
    finite = error[(error > 0) & np.isfinite(error)]
    exact, infinite = int(np.count_nonzero(error == 0)), int(np.count_nonzero(np.isinf(error)))
    if not finite.size:
        return exact, infinite, 0.0, 0.0, ()
    powers = np.log10(finite)
    low, high = float(np.floor(powers.min())), float(np.floor(powers.max())) + 1
    counts, _ = np.histogram(powers, bins=min(BINS, int(high - low) * 4), range=(low, high))
    return exact, infinite, low, high, tuple(int(count) for count in counts)


def _visible(error: NDArray[np.float64]) -> Array:
    """Errors as a grey picture, the largest white; those of a pixel's components as one."""
    whole = error.max(axis=-1) if error.ndim == 3 else error
    finite = np.where(np.isfinite(whole), whole, 0)
    grey = np.where(np.isfinite(whole), finite / (finite.max() or 1), 1)
    visible: Array = np.ceil(255 * grey).astype(np.uint8)
    return visible


def _png(array: Array, is_surface: bool = False) -> str:
    """Bytes or floats of shape (height, width[, 1, 3 or 4]) as a picture; nothing if they are none, or without Pillow."""
    picture = flat(array)
    if picture is None or min(picture.shape[:2]) < 2:
        return ""
    if picture.dtype.kind == "f" and (picture.ndim == 3 or is_surface):
        picture = np.rint(255 * np.clip(np.nan_to_num(picture.astype(np.float64)), 0, 1)).astype(np.uint8)
    png = encoded(thinned(picture, MAX_SHOWN)) if picture.dtype == np.uint8 else None
    return base64.b64encode(png).decode() if png is not None else ""
