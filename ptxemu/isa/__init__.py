"""The instruction table: one module per chapter of the manual, one row per syntax line.

:mod:`ptxemu.isa.table` describes the row language.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from importlib import import_module
from pkgutil import iter_modules

from ptxemu.ir.types import TYPES
from ptxemu.isa.operands import OperandPattern
from ptxemu.isa.table import ROWS, SPACES, Row, Table

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

WORDS = frozenset({"", "label", "targets", "address", "surface", "texture", "sampler", "gradient", "offset", "random", "tensor"})


CONTROL = frozenset({"block", "function", "kernel"})
"""What instructions may leave so that the passes handle them: nothing is left to lower."""


def rows() -> Table:
    """Every row of the table by opcode."""
    return ROWS


def verify(lowerings: Container[str], elementwise: Container[str], table: Mapping[str, list[Row]] = ROWS) -> None:
    """Assert that each row is well formed and has a lowering among ``lowerings`` or is listed as unsupported.

    Rows whose lowering is not ``elementwise`` say what they do.
    """
    for forms in table.values():
        for form in forms:
            handled = not form.supported or form.effects.leaves in CONTROL or form.lower in lowerings
            assert handled, f"no lowering {form.lower!r} for row: {form.text}"
            silent = form.supported and not form.stated and form.lower not in elementwise
            assert not silent, f"what it does (does=, ptxemu/isa/effects.py) is missing in row: {form.text}"
            for name in form.effects.operands:
                assert name in form.names, f"there is no operand {name!r} of its effects in row: {form.text}"
            for pattern in form.operands:
                assert _well_formed(form, pattern), f"operand {pattern.name!r} has no type in row: {form.text}"


def _well_formed(form: Row, pattern: OperandPattern) -> bool:
    qualifiers = {qualifier.name for qualifier in form.qualifiers}
    kinds = pattern.type.removeprefix("wide(").removeprefix("dot(").removesuffix(")").split(",")
    known = all(kind in WORDS or kind in TYPES or kind in qualifiers for kind in kinds)
    counted = pattern.count is None or pattern.count.partition("/")[0] in qualifiers or pattern.count.isdecimal()
    conditional = pattern.when is None or pattern.when in qualifiers
    placed = pattern.space == "space" or pattern.space in qualifiers or pattern.space in SPACES
    return known and counted and conditional and placed and (pattern.second is None or _well_formed(form, pattern.second))
