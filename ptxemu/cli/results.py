"""Arrays as a command shows them: in words, in numbers, and as pictures where the terminal has colours."""

from __future__ import annotations

import math
import re
import shutil
import sys
from typing import Any

import numpy as np

from ptxemu.case.arrays import Array
from ptxemu.cli.colours import wanted
from ptxemu.device.picture import flat
from ptxemu.text.errors import InputError, shown

SELECTION = re.compile(r"(?P<name>[^\[\]]+)(?:\[(?P<index>[^\[\]]*)\])?")
NUMBER = re.compile(r"-?\d{1,18}")
SHOWN_ELEMENTS = 100
EDGE = 4  # elements at the ends of an axis of a larger array
INDENT = "    "
PICTURE_WIDTH, PICTURE_HEIGHT = 96, 64  # pixels at most, of which two are one above the other in a character


def summary(name: str, array: Array) -> str:
    """``y: float32[100]``."""
    return f"{name}: {array.dtype.name}{list(array.shape)}"


def statistics(array: Array) -> dict[str, Any]:
    """Least, greatest and mean of the finite elements, and how many are NaN or infinite; nothing for records and empty arrays."""
    if array.dtype.names is not None or array.dtype.type is np.void or not array.size or array.dtype.kind == "c":
        return {}
    numbers = array if array.dtype.kind in "biuf" else array.astype(np.float32)  # types that are not NumPy's are small
    is_finite = np.isfinite(numbers)
    finite = numbers if is_finite.all() else numbers[is_finite]
    found: dict[str, Any] = {}
    if finite.size:
        found = {"min": finite.min().item(), "max": finite.max().item(), "mean": float(finite.mean(dtype=np.float64))}
    if nans := int(np.isnan(numbers).sum()):
        found["nan"] = nans
    if infinite := array.size - finite.size - nans:
        found["infinite"] = infinite
    return found


def in_words(found: dict[str, Any]) -> str:
    """Statistics as a text: ``0.5 to 198.5, mean 99.5``."""
    parts = [_range(found)] if "min" in found else []
    parts += [f"{found[key]} {name}" for key, name in (("nan", "NaN"), ("infinite", "infinite")) if key in found]
    return ", ".join(parts)


def _range(found: dict[str, Any]) -> str:
    least, greatest = f"{found['min']:.9g}", f"{found['max']:.9g}"
    return f"all {least}" if least == greatest else f"{least} to {greatest}, mean {found['mean']:.6g}"


def select(text: str, arrays: dict[str, Array], option: str) -> tuple[str, Array]:
    """What ``NAME`` or ``NAME[0:8, 3]`` selects, and what to call it."""
    match = SELECTION.fullmatch(text)
    name = match["name"] if match else text
    if match is None or name not in arrays:
        known = f"; there are {', '.join(arrays)}" if arrays else ""
        raise InputError(f"{option} {text}: no array or surface is named {shown(name)}{known}")
    array = arrays[name]
    if match["index"] is None:
        return name, array
    try:
        return text, np.asarray(array[tuple(_index(part, f"{option} {text}") for part in match["index"].split(","))])
    except IndexError as error:
        raise InputError(f"{option} {text}: {error}") from None


def _index(text: str, where: str) -> int | slice:
    parts = [part.strip() for part in text.split(":")]
    numbers = [int(part) if NUMBER.fullmatch(part) else None for part in parts]
    stray = any(part and number is None for part, number in zip(parts, numbers, strict=True))
    if stray or len(parts) > 3 or parts == [""] or numbers[2:] == [0]:
        raise InputError(f"{where}: {shown(text)} must be a number, or first:end, or first:end:step")
    return slice(*numbers) if numbers[1:] else numbers[0] or 0


def listing(array: Array) -> str:
    """The elements, those at the ends of a large array, indented."""
    text = np.array2string(
        array, threshold=SHOWN_ELEMENTS, edgeitems=EDGE, max_line_width=_columns() - len(INDENT), separator=" "
    )
    return "\n".join(INDENT + line for line in text.split("\n"))


def _columns() -> int:
    return max(40, shutil.get_terminal_size().columns)


def picture(array: Array) -> str | None:
    """Bytes of shape (height, width[, 1, 3 or 4]) as coloured characters, two pixels each; None where stdout cannot show them."""
    pixels = flat(array)
    if pixels is None or pixels.dtype != np.uint8 or min(pixels.shape[:2]) < 2 or not _has_colours():
        return None
    small = _reduced(pixels[..., :3] if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2))
    lines = []
    for upper, lower in zip(small[0::2], small[1::2], strict=True):
        pairs = zip(upper.tolist(), lower.tolist(), strict=True)
        cells = (f"\x1b[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m\u2580" for a, b in pairs)
        lines.append(f"{INDENT}{''.join(cells)}\x1b[0m")
    return "\n".join(lines)


def _reduced(pixels: Array) -> Array:
    """Every n-th pixel of every n-th row, so that what remains fits; rows are even in number."""
    height, width = pixels.shape[:2]
    step = max(1, math.ceil(width / min(PICTURE_WIDTH, _columns() - len(INDENT))), math.ceil(height / PICTURE_HEIGHT))
    small: Array = pixels[::step, ::step]
    return small[: len(small) // 2 * 2]


def _has_colours() -> bool:
    from rich.console import Console

    return sys.stdout.isatty() and wanted(sys.stdout) and Console().color_system == "truecolor"
