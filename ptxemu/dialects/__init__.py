"""The sister instruction sets: assembly programs that run on the same compiler, runtime and command line as PTX.

A dialect is a package ``ptxemu.dialects.<name>`` whose module ``front`` has a function ``front`` from source text to a
checked :class:`ptxemu.ir.ops.Module`.  Its programs are ops of PTX rows, made by :mod:`ptxemu.dialects.build`, and of a few
rows of its own, whose lowerings it registers; everything behind the typed IR is shared.  This module says only what a warm
start needs, so it imports none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import PurePath

from msgspec import Struct

from ptxemu.ir.ops import Module
from ptxemu.text.errors import Diagnostics, InputError, shown
from ptxemu.text.source import SourceFile


class Dialect(Struct, frozen=True):
    """An instruction set.

    ``options`` are the choices where its documents are silent: the values of each, the default first, or the default alone
    as a text where any text may be given.  ``policy`` are the defaults of :class:`ptxemu.device.surface.SurfacePolicy` fields.
    ``hosted``: launches of its programs report what those of PTX do not (:mod:`ptxemu.dialects.host`).
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...] | str] = {}
    policy: Mapping[str, str | int] = {}
    hosted: bool = False

    def check_options(self, given: Mapping[str, str], others: Iterable[str] = ()) -> dict[str, str]:
        """Every option's value. Raises InputError for a name or value that does not exist; ``others`` exist elsewhere."""
        for name, value in given.items():
            if name not in self.options:
                known = ", ".join([*self.options, *others]) or "none"
                raise InputError(f"{self.title} has no option '{name}'; there are {known}")
            values = self.options[name]
            if not isinstance(values, str) and value not in values:
                raise InputError(f"option {name} is {value!r}, not one of {', '.join(values)}")
        defaults = {name: values if isinstance(values, str) else values[0] for name, values in self.options.items()}
        return {**defaults, **given}


PTX = Dialect("ptx", "PTX", (".ptx",))
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        PTX,
        Dialect(
            "sass",
            "SASS",
            (".sass",),
            options={"shared_window": "0x01000000:0x02000000", "local_window": "0x02000000:0x03000000"},
            policy={"invalid_header": "drop"},
        ),
        Dialect(
            "visa",
            "vISA",
            (".visa", ".visaasm"),
            options={
                "strict_typed_float": ("accept", "reject"),
                "half_result": ("zero", "sign"),
                "surplus_coordinate": ("fault", "ignore"),
                "missing_coordinate": ("fault", "zero"),
                "raw_alignment": ("any", "register"),
            },
            policy={"invalid_header": "drop"},
        ),
        Dialect(
            "ctm",
            "CTM",
            (".ctm",),
            options={
                "choice_nan": ("any", "condition"),
                "tiling": ("reject", "ignore"),
                "umrt_group": ("4", "1", "2", "8", "16", "32"),
            },
            hosted=True,
        ),
    )
}


def find(name: str) -> Dialect:
    """A dialect by name."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise InputError(f"no dialect is named {shown(name)}; there are {', '.join(DIALECTS)}")
    return DIALECTS[name]


def of_file(path: str) -> Dialect:
    """The dialect that a file's suffix says; PTX for all others."""
    suffix = PurePath(path).suffix.lower()
    return next((dialect for dialect in DIALECTS.values() if suffix in dialect.suffixes), PTX)


def front(name: str, source: SourceFile, diagnostics: Diagnostics, strict: bool, options: Mapping[str, str]) -> Module:
    """Parse and check a program of a dialect; errors go to ``diagnostics``."""
    module: Module = import_module(f"ptxemu.dialects.{name}.front").front(source, diagnostics, strict, options)
    module.dialect = name
    return module
