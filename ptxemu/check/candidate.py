"""A form of an instruction whose operands are being matched, and what its modifiers say of them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ptxemu.check import typerules
from ptxemu.check.modifiers import Form
from ptxemu.check.operands import Value
from ptxemu.ir.ops import Variable
from ptxemu.ir.types import B32, TYPES, ScalarType
from ptxemu.isa.instruction_types import named_type
from ptxemu.isa.operands import OperandPattern
from ptxemu.isa.table import SPACES

UNRELAXED = frozenset(  # instruction types for which registers may not be wider, whatever the instruction
    {"bf16", "bf16x2", "tf32", *(name for name in TYPES if re.fullmatch(r"u?e\dm\dx[24]", name))}
)


class Candidate:
    """``mods`` grows while operands are matched: by selectors, and by the state space that a symbol implies."""

    def __init__(self, form: Form, values: list[Value], roles: Mapping[Variable, str]) -> None:
        self.row = form.row
        self.mods = form.mods
        self.defaults = form.defaults
        self.values = values
        self.roles = roles
        self.typed = False  # whether a modifier gives the type of the current operand
        relaxed = "exact" not in self.row.flags and ("relaxed" in self.row.traits or "relaxed" in self.row.flags)
        self.relaxed = relaxed and not UNRELAXED.intersection(self.mods.values())

    def written(self) -> str:
        return "".join(f".{word}" for word in self.mods.values())

    def type(self, name: str) -> ScalarType:
        return named_type(name, self.mods)

    def length(self, pattern: OperandPattern) -> int | None:
        """How many elements a pattern has; None where braces are not allowed."""
        return pattern.length(self.mods)

    def space(self, qualifier: str = "space") -> str:
        """The state space that a qualifier gives or that is named instead of a qualifier, ``""`` for generic."""
        named = qualifier in SPACES and qualifier not in self.mods
        return qualifier if named else self.mods.get(qualifier, "").partition("::")[0]

    def fits(self, kind: ScalarType, held: ScalarType) -> bool:
        """Whether a register may be this operand; one of type f16x2 may also where a modifier gives an integer type."""
        if self.typed and held.name == "f16x2" and kind.kind in "usp":
            held = B32
        return typerules.register_fits(kind, held, self.relaxed)

    def misfit(self, kind: ScalarType, held: ScalarType, index: int) -> str:
        wanted = f"{kind} or wider" if self.relaxed and held.bits < kind.bits else kind
        name = self.row.opcode + self.written()
        return f"operand {index + 1} of '{name}' must be {wanted}, not a register of type {held}"
