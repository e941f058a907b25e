"""Running TYPED_ATOMIC: one hardware thread for each row of variable contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptxemu
from ptxemu.device.surface_object import SurfaceObject

Words = NDArray[np.uint32]
Options = Mapping[str, str | int | bool]


@cache
def device() -> ptxemu.Device:
    return ptxemu.Device("512 MiB", workers=1)


@cache
def module(text: str, options: tuple[tuple[str, str | int | bool], ...] = (), strict: bool = False) -> ptxemu.Module:
    return ptxemu.loads(text, dialect="visa", device=device(), options=dict(options), strict=strict, opt=0)


def kernel_text(lines: Sequence[str], files: Mapping[str, tuple[str, int]], outputs: Sequence[str], head: str = "") -> str:
    """A kernel ``k``: ``files`` are type (P for predicates) and number of elements of the variables that the host fills."""
    text = ['.kernel "k"', head, ".decl T6 v_type=T num_elts=1 v_name=image"]
    for name, (kind, count) in files.items():
        text.append(
            f".decl {name} v_type=P num_elts={count}" if kind == "P" else f".decl {name} v_type=G type={kind} num_elts={count}"
        )
    text += [f".in {name} in_{name}" for name in files] + [f".out {name} out_{name}" for name in outputs]
    return "\n".join([*text, *lines, "ret (M1, 1)"]) + "\n"


def run(
    lines: Sequence[str] | str,
    values: Mapping[str, Any],
    surface: SurfaceObject | None = None,
    outputs: Sequence[str] = (),
    *,
    types: Mapping[str, str] | None = None,
    head: str = "",
    options: Options | None = None,
    strict: bool = False,
    width: int = 8,
) -> dict[str, Words]:
    """Run with a thread for each row of the values; the contents of the outputs, a row for each thread.

    Variables have ``width`` elements, in which rows are repeated; those named P are predicates, filled from the bits of a word.
    """
    kinds = types or {}
    files, arrays = {}, {}
    for name, value in values.items():
        words = np.asarray(value, dtype=object)
        if name.startswith("P"):
            files[name] = ("P", 32)
            arrays[name] = np.atleast_1d(words).astype(np.uint64).astype(np.uint32)[:, None]
        else:
            files[name] = (kinds.get(name, "ud"), width)
            rows = words if words.ndim == 2 else words[None, :] if words.ndim == 1 else np.full((1, width), words)
            arrays[name] = np.array([[int(v) & 0xFFFFFFFF for v in row] for row in rows], np.uint32)
    count = max((len(array) for array in arrays.values()), default=1)
    for name, array in arrays.items():
        columns = 1 if files[name][0] == "P" else width
        arrays[name] = np.ascontiguousarray(np.broadcast_to(array, (count, columns))).copy()
    results = {name: np.zeros((count, 1 if name.startswith("P") else width), np.uint32) for name in outputs}
    text = kernel_text([lines] if isinstance(lines, str) else lines, files, outputs, head)
    loaded = module(text, tuple((options or {}).items()), strict)
    if surface is not None:
        loaded.bind("image", surface)
    loaded["k"][1, count](*arrays.values(), *results.values())
    return results


def errors(text: str, strict: bool = False) -> list[str]:
    """``line:column: message`` of every error."""
    found = ptxemu.lint(text, filename="t.visa", strict=strict)
    return [f"{item.line}:{item.column}: {item.message}" for item in found if item.severity == "error"]


def memory(surface: SurfaceObject) -> NDArray[np.uint8]:
    """The bytes of a surface, padding included."""
    inner = surface.surface
    view: NDArray[np.uint8] = inner.arena.view(inner.address, inner.total_bytes)
    return view
