"""Where the arrays of a case come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ptxemu.case.array_files import load_npy, load_png, of_type
from ptxemu.case.arrays import GENERATORS, Array, values
from ptxemu.case.table import Table
from ptxemu.text.files import regular

FILES = ("npy", "png")
SOURCES = (*GENERATORS, "values", *FILES)


class Source(Protocol):
    """Where an array comes from."""

    def make(self) -> Array:
        """The array, read or generated."""
        ...


class ArraySpec(Struct, frozen=True):
    """Where an array comes from: ``kind`` is one of SOURCES, ``spec`` its table or path.

    ``dtype`` says of which type the elements of a .npy file are that has them as bytes.
    """

    kind: str
    spec: Any
    folder: Path
    where: str
    dtype: str | None = None

    def make(self) -> Array:
        """The array, read or generated."""
        if self.kind in FILES:
            load = load_png if self.kind == "png" else load_npy
            array = load(regular(self.folder / self.spec, self.where), self.where)
            return array if self.dtype is None else of_type(array, self.dtype, self.where)
        if self.kind == "values":
            return values(self.spec, self.where)
        return GENERATORS[self.kind][0](self.spec, self.where)


def read_array(table: Table, folder: Path) -> ArraySpec:
    """The array that a table describes."""
    kinds = [kind for kind in SOURCES if kind in table]
    if len(kinds) != 1:
        raise table.fail("", f"must say exactly one of {', '.join(SOURCES)}")
    kind = kinds[0]
    where = table.where(kind)
    if kind in FILES:
        dtype = table.need("dtype", str) if kind == "npy" and "dtype" in table else None
        table.finish()
        return ArraySpec(kind, table.need(kind, str), folder, where, dtype)
    if kind == "values":
        table.need("values", list), table.need("dtype", str)
        table.finish()
        return ArraySpec(kind, table.data, folder, where)
    table.finish()
    spec = table.table(kind)
    spec.finish(GENERATORS[kind][1])
    return ArraySpec(kind, spec.data, folder, where)
