"""What the functions of a compiled kernel share, or of several: the texts around them in their LLVM module."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct

from ptxemu.ir.numerics import Numerics
from ptxemu.ir.observed import Observed
from ptxemu.ir.ops import Function
from ptxemu.lower.core.line_info import LineInfo
from ptxemu.lower.core.target import Target

METADATA = '!0 = !{!"branch_weights", i32 2000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}\n!2 = !{}\n'


class Unit(Struct, eq=False):
    """One LLVM module; a kernel that joins others has a copy with facts of its own and the same texts.

    ``symbols`` names the function of each routine; ``waits``: some routine has a barrier;
    ``observed``: which accesses to memory are told to the runtime; ``daz``: it runs in that mode (lower/core/denormals.py);
    ``forgets``: nothing comes to shared memory by the async proxy, to which it matters what was written before barriers;
    ``lines``: the code is to know its lines; ``ranked``: addresses of shared memory name the CTA (ir/distributed.py);
    ``steps`` numbers the ``routines`` of threaded code by what they do, ``register_classes`` the registers that they can take
    (lower/functions/steps.py)."""

    target: Target
    numerics: Numerics
    symbols: dict[Function, str]
    waits: bool
    observed: Observed = ""
    daz: bool = False
    ranked: bool = False
    forgets: bool = False
    lines: LineInfo | None = None
    declarations: dict[str, str] = {}
    constants: dict[str, str] = {}
    helpers: dict[str, str] = {}
    definitions: list[str] = []
    steps: dict[Hashable, int] = {}
    routines: list[str] = []
    register_classes: dict[Hashable, int] = {}

    @property
    def attributes(self) -> str:
        """Of functions made for it. Frames larger than the guard zone of a stack must touch it on the way."""
        daz = ' "denormal-fp-math"="preserve-sign,preserve-sign"' if self.daz else ""
        return 'nounwind "probe-stack"="inline-asm"' + daz + ("" if self.lines is None else self.lines.attachment)

    def text(self) -> str:
        parts = [f"{name} = private unnamed_addr constant {text}" for text, name in self.constants.items()]
        if self.routines:
            names = ", ".join(f"ptr @{name}" for name in self.routines)
            parts.append(f"@routines = internal constant [{len(self.routines)} x ptr] [{names}]")
        parts += self.helpers.values()
        parts += [text for _, text in sorted(self.declarations.items())]
        return "\n".join([*parts, *self.definitions, METADATA, *([] if self.lines is None else [self.lines.metadata])])
