"""Arrays as pictures."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from ptxemu.process.numpy import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


LONGEST = 2048  # pixels of a side; of larger pictures, every second, third ... texel is shown
LEAST = 4  # pixels of a side of what is taken for a picture
COMPONENTS = (1, 2, 3, 4)
COLOURS = (3, 4)  # components of what is not grey


def flat(array: NDArray[Any]) -> NDArray[Any] | None:
    """A picture of shape (height, width) or (height, width, 3 or 4), also of one component in an axis; None of other shapes."""
    picture = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    return picture if picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in COLOURS) else None


def png_of(array: NDArray[Any], swapped: bool = False) -> bytes | None:
    """A PNG for notebooks of an array (height, width[, components]); None if it is no picture, or Pillow is not there.

    Bytes are shown as they are and 16-bit numbers by their upper half. Floats of 3 or 4 components are clipped to [0, 1]; all
    else is stretched from its least to its greatest value. ``swapped``: the components are blue, green, red.
    """
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in COMPONENTS or min(array.shape[:2]) < LEAST or array.dtype.kind not in "uif":
        return None
    pixels = _bytes_of(thinned(array, LONGEST))
    if swapped and pixels.shape[2] >= 3:
        pixels = pixels[:, :, [2, 1, 0, *range(3, pixels.shape[2])]]
    if pixels.shape[2] == 2:  # red and green
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:, :, :1])], axis=2)
    return encoded(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def thinned(array: NDArray[Any], longest: int) -> NDArray[Any]:
    """Every n-th pixel of every n-th row, so that no side is longer than that."""
    step = -(-max(array.shape[:2]) // longest)
    return array[::step, ::step]


def encoded(picture: NDArray[np.uint8]) -> bytes | None:
    """A PNG of bytes that are grey, or of 3 or 4 components; None without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return None
    out = BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(out, "png")
    return out.getvalue()


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    values = array.astype(np.float64)
    if array.dtype.kind == "f" and array.shape[2] >= 3:
        low, high = 0.0, 1.0
    else:
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    with np.errstate(all="ignore"):
        scaled = (values - low) * (255 / (high - low) if high > low else 0.0)
    return np.nan_to_num(np.clip(scaled, 0, 255), nan=0).round().astype(np.uint8)
