"""The rest of the PTX instruction set: checked, so that modules which contain it can be judged, but not run.

The accepted set is the one measured with ptxas. Of tcgen05, what ``ptxemu/isa/tcgen05.py`` does not have is recognised only.
"""

from __future__ import annotations

from ptxemu.isa.table import UNSUPPORTED, row

MATRIX = "Warp Level Matrix Instructions"

# ---------------------------------------------------------------- tcgen05

row("tcgen05", "...", "...", ptx="8.6", sm=100, lower=UNSUPPORTED, flags="accelerated", chapter=MATRIX)

# ---------------------------------------------------------------- fabric, compression

row("fabric", "...", "...", ptx="9.3", sm=100, lower=UNSUPPORTED, chapter="9.7.11 Fabric Instructions")
for _opcode in ("spcompress", "spdecompress"):
    row(_opcode, "...", "...", ptx="9.4", sm=107, lower=UNSUPPORTED, flags="accelerated rubin", chapter=MATRIX)
