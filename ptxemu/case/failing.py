"""How a case fails, so that another one can be found to fail in the same way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ptxemu.case.arrays import Array
from ptxemu.case.compare import Comparison, compare
from ptxemu.case.runner import CaseResult
from ptxemu.case.schema import Case, case_of
from ptxemu.case.shrinking import Data
from ptxemu.case.sizes import Place, arrays, value_at, with_value
from ptxemu.case.sources import ArraySpec, read_array
from ptxemu.case.table import Table
from ptxemu.text.errors import Error, Fault, LaunchTimeout


class Failure(Struct, frozen=True):
    """A wrong result, a fault (its kind and line) or a launch that takes too long; ``message`` tells more, and may change."""

    kind: str
    message: str


class Candidates:
    """Cases made of data, beside a case file. Arrays of files have a ``shape`` in the data, and are cut to it."""

    def __init__(self, case: Case, run: Callable[[Case], CaseResult], folder: Path) -> None:
        self._case, self._run, self._folder = case, run, folder

    def start(self, data: Data) -> Data:
        """The data with shapes of arrays from files, without results to save."""
        data = {key: value for key, value in data.items() if key != "save"}
        for place in arrays(data):
            table = value_at(data, place)
            if "npy" in table:
                data = with_value(data, place, {**table, "shape": list(self.array(data, place).shape)})
        return data

    def array(self, data: Data, place: Place) -> Array:
        """The array that a table describes."""
        table = Table(str(self._case.path), ".".join(map(str, place)), value_at(self.concrete(data), place))
        return read_array(table, self._case.path.parent).make()

    def concrete(self, data: Data) -> Data:
        """Data as case files have it: arrays that are cut are in files of their own."""
        for place in arrays(data):
            table = value_at(data, place)
            if "npy" in table and "shape" in table:
                data = with_value(data, place, self._cut(table, place))
        return data

    def case(self, data: Data) -> Case:
        return case_of(Table(str(self._case.path), "", self.concrete(data)), self._case.path)

    def failure(self, data: Data, good: tuple[Path, ...]) -> Failure | None:
        """How the case fails, if it does: by itself, or where ``good`` programs do not."""
        try:
            case = self.case(data)
            wanted = self._run(replace(case, programs=good)).arrays if good else None
        except (Error, MemoryError):
            return None
        try:
            result = self._run(case)
            found = differences(case, result.arrays, wanted) if wanted is not None else result.comparisons
        except Fault as error:
            place = error.details.location
            return Failure(f"{error.details.kind} in line {place.line if place else '?'}", str(error))
        except LaunchTimeout as error:
            return Failure("timeout", str(error))
        except (Error, MemoryError):
            return None
        wrong = [item for item in found if not item.passed and item.differing]  # not one of another shape
        return Failure("wrong results", "; ".join(f"{item.name}: {item.message}" for item in wrong)) if wrong else None

    def _cut(self, table: dict[str, Any], place: Place) -> dict[str, Any]:
        shape = tuple(table["shape"])
        rest = {key: value for key, value in table.items() if key != "shape"}
        whole = ArraySpec("npy", table["npy"], self._case.path.parent, str(self._case.path), table.get("dtype")).make()
        if whole.shape == shape:
            return rest
        path = self._folder / f"{'.'.join(map(str, place)).replace('/', '_')}-{'x'.join(map(str, shape))}.npy"
        np.save(path, whole[tuple(map(slice, shape))], allow_pickle=False)
        return {**rest, "npy": str(path)}


def differences(case: Case, found: dict[str, Array], wanted: dict[str, Array], other: str = "expected") -> list[Comparison]:
    """How the arrays of a case differ from those that another program has made, within the tolerances of the case."""
    return [compare(name, array, wanted[name], case.tolerance_of(name), other) for name, array in found.items()]
