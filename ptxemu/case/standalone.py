"""A case in a folder of its own, with copies of all the files that it names."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from ptxemu.case.arrays import Array
from ptxemu.case.schema import Case
from ptxemu.case.shrinking import Data, literal
from ptxemu.case.sizes import files, value_at, with_value
from ptxemu.case.toml_text import toml_text
from ptxemu.text.errors import InputError
from ptxemu.text.files import make_folder, reason, write_text

CASE = "case.toml"


def write_case(data: Data, case: Case, wanted: Mapping[str, Array], folder: Path) -> None:
    """Write the data of a case, which names files as ``case`` does, to a folder. It expects the arrays that are ``wanted``."""
    copies = _Copies()
    data = {key: value for key, value in data.items() if key != "ptx"}
    data |= {"program": [copies.name_of(program) for program in case.programs]}
    if wanted:
        data["expect"] = {"outputs": {name: literal(array) for name, array in wanted.items()}}
    elif case.reference is not None:
        data = with_value(data, ("expect", "reference"), copies.name_of(case.reference))
    for place in files(data):
        data = with_value(data, place, copies.name_of(case.path.parent / value_at(data, place)))
    make_folder(folder)
    copies.make(folder)
    write_text(folder / CASE, toml_text(data))


class _Copies:
    """Files, and what their copies beside the case are called."""

    def __init__(self) -> None:
        self._names: dict[Path, str] = {}

    def name_of(self, source: Path) -> str:
        if source not in self._names:
            taken = {CASE, *self._names.values()}
            self._names[source] = next(name for number in count() if (name := "_" * number + source.name) not in taken)
        return self._names[source]

    def make(self, folder: Path) -> None:
        for source, name in self._names.items():
            try:
                shutil.copyfile(source, folder / name)
            except (OSError, ValueError) as error:
                raise InputError(f"{source}: {reason(error)}") from None
